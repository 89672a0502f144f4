"""Operators of a pass on one chip, for arrays of plans or rows, and the time of each.

Which operators exist is structure: it follows from the architecture and the pass. How long each
takes is formulas of values: products by the kernel model that kernels and training share. Axes of
the plan (tokens, tensor parallel, group sizes) are numbers or arrays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import formula, in_use, select, somewhere, total
from tco.core.trace import scope, untraced_value
from tco.core.types import AnyArray, JsonMapping, Quantity
from tco.core.units import FLOP, Byte, Pure, Second
from tco.fabric.collective_costs import only_if_shared
from tco.fabric.collective_rates import Paces, evenly, paces_of, shortest_collective_time
from tco.fabric.collective_times import GroupLinks
from tco.fabric.collectives import fastest_algorithm_time, reach
from tco.fabric.expert_exchange import Tokens
from tco.fabric.links import Links, RankGroup
from tco.models.layers import Architecture, Side
from tco.performance.chip.formats import FORMATS, WIDE
from tco.performance.chip.gemm import Operands, Product, Sides, batching_key, product, products
from tco.performance.chip.kernels import quantising_size
from tco.performance.chip.roofline import (
    elementwise_bytes,
    layer_kernels,
    rank_wait,
    repeated,
    stream_time,
    wait_beyond,
)
from tco.performance.layer.chip_model import Machine

ATTENTION, DENSE, EXPERTS, HEAD = range(4)  # places of operands in a machine
LAUNCHES = "launches"


@formula("s", source="tco-calibration")
def engine_factor(
    time: Second, split: Pure, whole_experts: Pure, expert_parallel: Pure
) -> Quantity:
    """Time of grouped products in an engine slower than the best: t f.

    The factors of whole and of split experts differ.
    """
    return time * select(expert_parallel > 1, whole_experts, split)


class Products(NamedTuple):
    """Matrix products of an operator in one layer: their sides, groups and times."""

    operand_index: int
    sides: list[Sides]
    groups: Any
    timed_products: Product  # a product in every entry of its fields
    first: int = 0  # entry

    def product_field(self, field_name: str) -> Any:
        """Return a field of all its products."""
        return getattr(self.timed_products, field_name)[self.first : self.first + len(self.sides)]


class OperatorWork(NamedTuple):
    """Work in FLOP, traffic in bytes and peak rate of one layer."""

    flops: Quantity
    traffic: Quantity
    peak: Quantity


class Operator(NamedTuple):
    """An operator of a pass over all its layers: forward time and work, and its backward pass."""

    name: str
    time: Quantity
    layers: Any = 1
    flops: Any = 0.0  # of one layer
    bytes: Any = 0.0  # of one layer, through memory or handed to a collective
    compute_rate: Any = None  # achieved; in training the peak
    bandwidth: Any = None
    latency: Quantity = 0.0  # start of a collective, else zero
    link: bool = False
    kernels: Quantity = 0  # started for one layer
    products: Products | None = None
    backward: Quantity = 0.0  # time over all layers
    recompute_level: int = 0  # least level that repeats the forward part; zero if none does
    weight_time: Quantity | None = None  # part of the backward time that weight gradients take
    # part of the forward time that recomputation repeats; None if it repeats all of it
    repeated_part: Quantity | None = None
    backward_work: tuple[OperatorWork, ...] = ()
    # time that a collective occupies the links of each tier; None for other operators
    link_times: JsonMapping | None = None
    exposed_share: Any = 0.0  # share of a collective's time that the chip waits for
    runs: tuple[int, int] = (0, 0)  # number of a collective's runs, forward and backward

    @property
    def repeated_time(self) -> Quantity:
        """Time of the forward part where it is computed again."""
        return self.time if self.repeated_part is None else self.repeated_part


class PassShape(NamedTuple):
    """The plan of a pass, and the tokens of an attention group. Fields are numbers or arrays."""

    group: Quantity  # chips of a stage, over which experts and attention groups are spread
    tensor_parallel: Any
    expert_parallel: Any
    tokens: Quantity  # tokens of an attention group; each of its chips computes all of them
    keys: Quantity  # cached tokens that a query attends to, on average
    sequences: Quantity  # sequences whose caches a group holds
    decode: bool
    # tokens that a prompt reads from its cache; None: its own, as no prefix is cached
    read: Any = None
    # chips that each hold a part of every sequence, and compute its tokens together
    context_parallel: Quantity = 1
    domains: Quantity = 1  # scale-up domains of a stage
    replicas: Quantity = 1  # sets of experts
    copies: Quantity = 1  # domains that each see all tokens, with their part of every expert
    crossing: Quantity = 0  # 1 where attention groups lie across the domains
    parts: Quantity = 1  # parts of a prompt, each on a group of its own
    # ranks that share the work on the hidden state, where sequences are split between products
    split: Quantity | None = None

    @property
    def attention_chips(self) -> Any:
        """Chips that share the attention of a sequence."""
        return self.tensor_parallel * self.context_parallel

    @property
    def expert_chips(self) -> Any:
        """Chips that hold one set of experts."""
        return self.group / self.replicas


@lru_cache(maxsize=256)
def _distinct_rows(*axes: bytes) -> tuple[AnyArray, AnyArray]:
    plan_rows = np.column_stack([np.frombuffer(axis) for axis in axes])
    _, first, back = np.unique(plan_rows, axis=0, return_index=True, return_inverse=True)
    return first, back.ravel()


class DistinctPlans:
    """Distinct plans of a search, so that an operator is computed once for equal plans.

    Plans are equal if their axes and their work are. Where plans with equal axes differ in their
    work, every plan counts as distinct.
    """

    def __init__(self, axes: Iterable[Any], work: Iterable[Any]) -> None:
        self.first_rows: Quantity | None = None
        columns = [axis for axis in axes if self.differs(axis)]
        if columns and all(column.shape[1] == 1 for column in columns):
            first, back = _distinct_rows(
                *(np.asarray(column, dtype=float).tobytes() for column in columns)
            )
            if all(
                np.array_equal(work_value[first][back], work_value)
                for work_value in work
                if self.differs(work_value)
            ):
                self.first_rows, self.row_of_plan = first, back

    @staticmethod
    def differs(plan_value: Any) -> bool:
        """Say whether a value is one for each plan of a search."""
        return isinstance(plan_value, np.ndarray) and plan_value.ndim == 2 and len(plan_value) > 1

    def reduce(self, plan_value: Any) -> Any:
        """Return a value of all plans for the distinct plans alone."""
        return (
            plan_value[self.first_rows]
            if self.first_rows is not None and self.differs(plan_value)
            else plan_value
        )

    def expand(self, plan_value: Any) -> Any:
        """Return a value of the distinct plans for all plans."""
        return (
            plan_value[self.row_of_plan]
            if self.first_rows is not None and self.differs(plan_value)
            else plan_value
        )


def _plan_batch_count(shape: PassShape) -> int:
    sizes = [
        plan_value.shape
        for plan_value in (shape.tensor_parallel, shape.tokens)
        if isinstance(plan_value, np.ndarray)
    ]
    return math.prod(np.broadcast_shapes(*sizes)) if sizes else 1


def _recorded_by_row(work_value: Quantity) -> bool:
    return not isinstance(work_value, np.ndarray) and np.ndim(untraced_value(work_value)) > 0


FEWEST_TO_GROUP = 2**10  # plans and batches; below this, grouping costs more than it saves
UNGROUPED = DistinctPlans((), ())  # every plan counts as distinct
PLACEHOLDER = Operator("", 0.0)  # holds the position of queued products


def waited_for(
    time: Quantity, waits: JsonMapping, wait_name: str, ranks: Quantity, world: Quantity
) -> Quantity:
    """Return the time of a collective with its waits, in s.

    The time lasts until the last rank has come. Ranks that reach beyond their world wait longer.

    Args:
        time: Time of the collective without the wait, s.
        waits: Waits by name, s, with `network_wait` for ranks beyond the world.
        wait_name: Name of the wait between two ranks.
        ranks: Ranks of the collective.
        world: Chips of the world.

    """
    beyond = ranks > world
    time = total("until_the_last", [time, rank_wait(waits[wait_name], ranks)])
    return wait_beyond(time, waits["network_wait"], 1.0 * beyond) if somewhere(beyond) else time


class QueuedProducts(NamedTuple):
    """Products of tokens with a layer part's weights, queued until those of a format are timed."""

    operator_index: int  # index of their operator in the pass
    name: str
    layers: Quantity
    sides: list[Sides]
    operand_index: int
    kernels: Quantity


class Pass:
    """Collects the operators of one forward pass on one chip."""

    def __init__(
        self, machine: Machine, model: Architecture, shape: PassShape, exchanges: bool = True
    ) -> None:
        self.machine, self.model, self.shape = machine, model, shape
        # whether the pass adds the exchange of tokens between experts; training adds its own
        self.exchanges = exchanges
        self.groups = shape.group / shape.attention_chips
        axes = (shape.tensor_parallel, shape.context_parallel, shape.parts)
        work = (shape.tokens, shape.keys, shape.sequences, shape.read)
        is_grouped = _plan_batch_count(shape) > FEWEST_TO_GROUP and not any(
            _recorded_by_row(work_value) for work_value in work
        )
        # distinct plans for all operators but experts and collectives
        self.distinct = DistinctPlans(axes, work) if is_grouped else UNGROUPED
        self.operators: list[Operator] = []
        self.queued: list[QueuedProducts] = []
        self.kernels: list[Quantity] = []
        self.numbers: list[Quantity] = []  # numbers per token that elementwise kernels move
        # numbers per token that are cast before products, by operand index
        self.cast: dict[int, list[Any]] = {}

    @property
    def distinct_shape(self) -> PassShape:
        """Shape of the distinct plans."""
        shape, reduce = self.shape, self.distinct.reduce
        return shape._replace(
            tensor_parallel=reduce(shape.tensor_parallel),
            context_parallel=reduce(shape.context_parallel),
            tokens=reduce(shape.tokens),
            keys=reduce(shape.keys),
            sequences=reduce(shape.sequences),
            read=reduce(shape.read),
        )

    def count(self, kind: str, layers: Quantity) -> Any:
        """Count the kernels that a part of all its layers starts."""
        kernels = self.machine.counted(f"kernels_{kind}")
        self.kernels.append(layer_kernels(kernels, layers))
        return kernels

    def products(
        self,
        operator_name: str,
        layers: Quantity,
        sides: Collection[Side],
        tokens: Quantity,
        operand_index: int,
        kernels: str = "",
    ) -> None:
        """Add products of tokens with weights of the given sides, and note casts of activations.

        Each side is inner x outer.
        """
        token_rows, reduce = self.distinct.reduce(tokens), self.distinct.reduce
        if self.casts(operand_index):
            self.cast.setdefault(operand_index, []).extend(layers * inner for inner, _ in sides)
        with scope(operator_name):
            started = self.count(kernels, layers) if kernels else 0
        several = [Sides(token_rows, reduce(outer), reduce(inner)) for inner, outer in sides]
        self.queued.append(
            QueuedProducts(
                len(self.operators), operator_name, layers, several, operand_index, started
            )
        )
        self.operators.append(PLACEHOLDER)

    def take_products(self) -> None:
        """Time the queued products, those of equal formats in one call.

        While a trace is recorded, the products of each part are timed in the part's own position.
        """
        is_tracing = in_use() is not None
        operands = self.machine.operands
        batches = dict[Any, list[QueuedProducts]]()
        for queued in self.queued:
            batch_key = queued.operator_index
            if not is_tracing:
                batch_key = batching_key(operands[queued.operand_index])
            batches.setdefault(batch_key, []).append(queued)
        for parts in batches.values():
            with scope(parts[0].name):
                timed_products = products(
                    [operands[queued.operand_index] for queued in parts for _ in queued.sides],
                    [sides for queued in parts for sides in queued.sides],
                )
                end, expand = 0, self.distinct.expand
                for queued in parts:
                    start, end = end, end + len(queued.sides)
                    time, flops, bytes_moved = (
                        total(queued.name, field[start:end])
                        for field in (
                            timed_products.time,
                            timed_products.flops,
                            timed_products.bytes,
                        )
                    )
                    time, flops, bytes_moved = map(
                        expand,
                        (
                            self.machine.within_power(
                                operands[queued.operand_index].input_size, time, flops, bytes_moved
                            ),
                            flops,
                            bytes_moved,
                        ),
                    )
                    timed_part = Products(
                        queued.operand_index, queued.sides, None, timed_products, start
                    )
                    self.operators[queued.operator_index] = self.summed(
                        queued.name,
                        queued.layers,
                        time,
                        flops,
                        bytes_moved,
                        timed_part,
                        queued.kernels,
                    )

    def grouped(
        self,
        operator_name: str,
        layers: Quantity,
        sides: Collection[Side],
        tokens: Quantity,
        reached: Quantity,
        kernels: str,
    ) -> None:
        """Add the products of experts: so many reached, so many tokens each."""
        machine, started = self.machine, self.count(kernels, layers)
        several = [Sides(tokens, outer, inner) for inner, outer in sides]
        if machine.separate_experts:
            self.kernels.append(layer_kernels(reached, layers * len(sides)))
        timed_products = experts_products(machine, several, reached, machine.operands[EXPERTS])
        layer_time, flops, bytes_moved = (
            total(operator_name, field)
            for field in (timed_products.time, timed_products.flops, timed_products.bytes)
        )
        layer_time = machine.within_power(
            machine.operands[EXPERTS].input_size, layer_time, flops, bytes_moved
        )
        if machine.expert_factor is not None:
            layer_time = engine_factor(
                layer_time, machine.expert_factor, machine.whole_factor, self.shape.expert_parallel
            )
        if machine.expert_start is not None and self.shape.decode:
            layer_time = total(
                "experts one after the other", [layer_time, repeated(machine.expert_start, reached)]
            )
        taken = Products(EXPERTS, several, reached, timed_products)
        self.operators.append(
            self.summed(operator_name, layers, layer_time, flops, bytes_moved, taken, started)
        )

    def summed(
        self,
        operator_name: str,
        layers: Quantity,
        layer_time: Any,
        flops: Quantity,
        bytes_moved: Quantity,
        taken: Products,
        kernels: Quantity,
    ) -> Operator:
        """Return the operator of several products that take some time a layer."""
        product_operands = self.machine.operands[taken.operand_index]
        return Operator(
            operator_name,
            repeated(layer_time, layers),
            layers,
            flops,
            bytes_moved,
            product_operands.rate,
            product_operands.stream,
            kernels=kernels,
            products=taken,
        )

    def casts(self, operand_index: int) -> bool:
        """Say whether activations are cast before products."""
        return (
            operand_index != HEAD
            and FORMATS[self.machine.formats[operand_index].activations].bits < WIDE
        )

    def cast_bytes(self, operand_index: int, tokens: Quantity, numbers: Quantity) -> Quantity:
        """Return the traffic of casting some numbers a token to the format of products."""
        machine = self.machine
        wide, taken = machine.activation_size, machine.operands[operand_index].input_size
        sizes = [quantising_size(1, wide, taken)]
        # software casts to what was asked for, and from that to what the units take
        if machine.asked_size is not None:
            sizes = [
                quantising_size(1, wide, machine.asked_size),
                quantising_size(1, machine.asked_size, taken),
            ]
        return elementwise_bytes(
            tokens,
            numbers,
            machine.elementwise,
            total("cast", sizes) if len(sizes) > 1 else sizes[0],
        )

    def core(
        self,
        operator_name: str,
        layers: Quantity,
        time: Quantity,
        flops: Quantity,
        bytes_moved: Quantity,
        rate: Quantity,
    ) -> None:
        """Add an operator whose time is known."""
        time = repeated(time, layers)
        self.operators.append(
            Operator(operator_name, time, layers, flops, bytes_moved, rate, self.machine.bandwidth)
        )

    def stream(
        self,
        operator_name: str,
        layers: Quantity,
        bytes_moved: Quantity,
        bandwidth: Quantity | None = None,
    ) -> None:
        """Add elementwise kernels, which only move data, at the bandwidth of rows unless given."""
        machine = self.machine
        rate = machine.row_bandwidth if bandwidth is None else bandwidth
        time = repeated(stream_time(bytes_moved, rate), layers)
        self.operators.append(
            Operator(
                operator_name, time, layers, 0.0, bytes_moved, machine.operands[HEAD].rate, rate
            )
        )

    def elementwise(self, numbers: Quantity) -> None:
        """Note the numbers per token that elementwise kernels of all layers read or write."""
        self.numbers.append(numbers)

    @property
    def hidden(self) -> Quantity:
        """Numbers of the hidden state of a token that a chip's own kernels go over."""
        return (
            self.model.hidden if self.shape.split is None else self.model.hidden / self.shape.split
        )

    def finish(self, operator_name: str = "elementwise") -> None:
        """Add what all layers share: products, elementwise kernels, casts, and launch gaps."""
        machine, tokens = self.machine, self.shape.tokens
        self.take_products()
        with scope(operator_name):
            traffic_terms = [
                elementwise_bytes(
                    tokens,
                    total("numbers", self.numbers),
                    machine.elementwise,
                    machine.activation_size,
                )
            ]
            traffic_terms += [
                self.cast_bytes(operand_index, tokens, sum(numbers))
                for operand_index, numbers in self.cast.items()
            ]
            self.stream(operator_name, 1, total("elementwise", traffic_terms))
        with scope(LAUNCHES):
            time = repeated(machine.launch, total("kernels", self.kernels))
            self.operators.append(waiting_operator(machine, LAUNCHES, time))

    def collective(
        self, operator_name: str, layers: Quantity, time: Quantity, size: Quantity, rate: Quantity
    ) -> None:
        """Add a collective that moves `size` bytes a chip."""
        latency = self.machine.links.latencies.start
        self.operators.append(
            Operator(
                operator_name, repeated(time, layers), layers, None, size, None, rate, latency, True
            )
        )

    def collective_time(
        self, operation: str, group: RankGroup, amount: Quantity, tokens: Tokens | None = None
    ) -> tuple[Quantity, Links]:
        """Return collective time in seconds, and the links that `group` uses.

        `amount` is in bytes, or in tokens per rank where `tokens` is given.

        The result is cached by group and amount. For an array of amounts, the parts of the
        algorithms that do not depend on the amount are cached by group.
        """
        links, collective_cache = self.machine.links, self.machine.wait_times
        group_key = (*group, *(() if tokens is None else (tokens.bytes, tokens.active)))

        def group_links_and_paces() -> tuple[GroupLinks, Paces]:
            group_links = reach(links, group)
            unit_amount = 1.0 if tokens is None else tokens._replace(count=1.0)
            return group_links, paces_of(group_links, operation, unit_amount)

        def compute() -> tuple[Quantity, Links]:
            if isinstance(amount, np.ndarray) and evenly(links, operation):
                cached = collective_cache.of(("paces", operation), group_key, group_links_and_paces)
                if cached is not None:
                    group_links, paces = cached
                    return shortest_collective_time(paces, amount), group_links.links
            group_links = reach(links, group)
            sent = amount if tokens is None else tokens._replace(count=amount)
            return fastest_algorithm_time(group_links, operation, sent), group_links.links

        # nothing is cached for large arrays or in a trace
        return collective_cache.of(("time", operation), (*group_key, amount), compute) or compute()

    def waited(self, time: Quantity, wait_name: str, ranks: Quantity) -> Quantity:
        """Return a collective's time with the wait for its slowest rank.

        Ranks that reach beyond their scale-up domain wait longer.
        """
        machine = self.machine

        def until_the_last(time: Quantity) -> Quantity:
            return waited_for(time, machine.waits, wait_name, ranks, machine.links.world)

        wait_time = machine.wait_times.of((wait_name,), (ranks,), lambda: until_the_last(0.0))
        return (
            until_the_last(time)
            if wait_time is None
            else total("until_the_last", [time, wait_time])
        )

    def gather(
        self, operator_name: str, layers: Quantity, group: RankGroup, size: Quantity
    ) -> None:
        """Add an all-gather of `size` bytes over some chips."""
        time, links = self.collective_time("all-gather", group, size)
        waited = self.waited(time, "collective_wait", group.ranks)
        self.collective(
            operator_name, layers, only_if_shared(waited, group.ranks), size, links.inside
        )


def waiting_operator(machine: Machine, operator_name: str, time: Quantity) -> Operator:
    """Return an operator in which a chip computes and moves nothing."""
    rate = machine.operands[HEAD].rate
    return Operator(
        operator_name, time, compute_rate=rate, bandwidth=machine.bandwidth, latency=time
    )


@formula("FLOP", source="scaling-book")
def group_work(flops: FLOP, groups: Pure) -> Quantity:
    """Work of equal products: g F."""
    return groups * flops


@formula("byte", source="scaling-book")
def group_bytes(bytes_moved: Byte, groups: Pure) -> Quantity:
    """Traffic of equal products: g Q."""
    return groups * bytes_moved


def experts_products(
    machine: Machine, several: list[Sides], groups: Quantity, expert_operands: Operands
) -> Product:
    """Return the products of experts: one kernel whose tiles share the waves, or one per expert."""
    if not machine.separate_experts:
        return products([expert_operands] * len(several), several, groups)
    single_products = [
        product(expert_operands, sides.rows, sides.columns, sides.inner) for sides in several
    ]
    time, computing, moving = (
        [
            repeated(getattr(single_product, product_field), groups)
            for single_product in single_products
        ]
        for product_field in ("time", "computing", "moving")
    )
    flops = [group_work(single_product.flops, groups) for single_product in single_products]
    bytes_moved = [group_bytes(single_product.bytes, groups) for single_product in single_products]
    return Product(time, computing, moving, flops, bytes_moved)
