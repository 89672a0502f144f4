"""The work of one micro-batch through all layers on one chip: the operators of a layer, each
forward and backward, and collectives.

Forward is the list of operators that serving goes through as well; backward is the same list with
other counts. Nothing here depends on pipeline, data parallelism or schedule, so a search computes
it for the few hundred distinct shapes only and gathers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import elementwise_maximum, elementwise_minimum
from tco.core.formula import formula, total
from tco.core.trace import scope
from tco.core.types import JsonObject, Quantity
from tco.core.units import FLOP, Byte, FLOPPerSecond, Pure, Second
from tco.fabric.collective_costs import only_if_shared, outer_share, ring_bytes
from tco.fabric.collectives import fastest_algorithm_time, reach
from tco.fabric.expert_exchange import Tokens
from tco.fabric.links import Links, RankGroup, among, group_product, strided
from tco.models.architecture import Architecture
from tco.models.layers import Attention, FeedForward, StateMixer, keys_and_values
from tco.performance.chip.formats import FORMATS, WIDE
from tco.performance.chip.gemm import Operands, Sides, products
from tco.performance.chip.kernels import products_weights, quantising_size
from tco.performance.chip.roofline import (
    attention_scores,
    causal_keys,
    elementwise_bytes,
    exposed_time,
    message_bytes,
    passed_numbers,
    per_rank,
    repeated,
    smooth_maximum,
    stream_time,
)
from tco.performance.layer import layers as layer
from tco.performance.layer.chip_model import Machine, times_as_long
from tco.performance.layer.operators import (
    DENSE,
    EXPERTS,
    HEAD,
    LAUNCHES,
    Operator,
    OperatorWork,
    Pass,
    experts_products,
)
from tco.performance.layer.operators import PassShape as LayerShape
from tco.performance.training.job import GENERIC, UNFUSED, TrainingJob

NEVER, SELECTIVE, FULL = 0, 1, 2  # the least recomputation that repeats an operator's forward part
TIERS = ("inside", "across")  # of the fabric: inside a scale-up domain, across domains
ELEMENTWISE, CORE, RECURRENCE = "elementwise", "attention core", "recurrence"
# what training software leaves in memory, or runs in kernels of its own
SCORES, SCAN = "attention scores in memory", "recurrence in memory"
EXPERT_BIAS, GRADIENT_CASTS = "activations of experts with bias", "casts of experts' gradients"
# parameters of training by operator: the time backward over that forward; else elementwise
BACKWARD = {
    RECURRENCE: "recurrence_backward",
    "permute and gate": "permute_backward",
    SCORES: "score_backward",
    SCAN: "recurrence_backward",
}
# products of attention backward over forward: five for two where scores are computed anew, else
# four
ANEW, KEPT_SCORES = (
    2.5,
    2.0,
)
DOWN = ("feed-forward", "shared expert", "experts")  # parts whose result no gradient needs


@formula(unit="", source="tco-model")
def rank_tokens(micro_batch: Pure, sequence: Pure, context_parallel: Pure) -> Quantity:
    """Tokens of a micro-batch on one chip of a context-parallel group: T = b s / cp."""
    return micro_batch * sequence / context_parallel


@formula(unit="", source="tco-model")
def exposed_share(overlapped: Pure, exposed: Pure) -> Quantity:
    """Share of a collective's time the step grows by: all of it, or x where it runs in pieces
    beside compute: 1 - o (1 - x).
    """
    return 1 - overlapped * (1 - exposed)


@formula(unit="byte", source="scaling-book")
def weight_gradient_bytes(
    tokens: Pure, inner: Pure, outer: Pure, groups: Pure, input_size: Byte, accumulator_size: Byte
) -> Quantity:
    """Traffic of g products that make weight gradients, sums read and written: Q = g (b_in m (k +
    n) + 2 b_acc k n).
    """
    return groups * (input_size * tokens * (inner + outer) + 2 * accumulator_size * inner * outer)


@formula(unit="byte", source="narayanan2021")
def gradient_sum_bytes(weights: Pure, gradient_size: Byte, accumulator_size: Byte) -> Quantity:
    """Traffic of adding a product's gradients to the sums in a kernel of its own: Q = W (b_g + 2
    b_acc).
    """
    return weights * (gradient_size + 2 * accumulator_size)


@formula(unit="", source="tco-model")
def attention_span(keys: Pure, sequence: Pure, context_parallel: Pure) -> Quantity:
    """Tokens of a causal sequence whose queries meet so many keys, within one kernel: s = min(2 k,
    s_job / cp).
    """
    return elementwise_minimum(2 * keys, sequence / context_parallel)


@formula(unit="FLOP/s", source="cudnn-sdpa-training")
def attention_rate(peak: FLOPPerSecond, share: Pure, span: Pure, half_span: Pure) -> Quantity:
    """Rate of a fused attention kernel, half of it where sequences are short: x P s / (s +
    s_half).
    """
    return share * peak * span / (span + half_span)


@formula(unit="FLOP", source="flashattention3")
def attention_backward_flops(flops: FLOP, products: Pure) -> Quantity:
    """Work of attention backward, n the products over the two forward: F = n F_forward."""
    return products * flops


@formula(unit="s", source="flashattention3")
def attention_pass_time(core: Second, products: Pure, share: Pure) -> Quantity:
    """Time of n times the forward products at a share x of their rate: t = n t_core / x."""
    return products * core / share


@formula(unit="s", source="tco-model")
def attention_kernel_time(
    least: Second, flops: FLOP, rate: FLOPPerSecond, layers: Pure
) -> Quantity:
    """Time of a kernel that no kernel of the chip beats: t = max(t_least, L F / P)."""
    return elementwise_maximum(least, layers * flops / rate)


class MicroBatchShape(NamedTuple):
    """Parallel shape and size of a micro-batch: numbers, or arrays that broadcast."""

    tensor: Quantity
    context: Any
    expert: Any
    micro_batch: Quantity
    data_stride: Quantity  # chips between neighbours of a data-parallel group
    sequence_parallel: Quantity
    overlap: Quantity

    @property
    def split(self) -> Any:
        """Ranks that share what goes over the hidden state."""
        return 1 + (self.tensor - 1) * self.sequence_parallel


class Exchange(NamedTuple):
    """One collective of a group: its time, and how long it holds the links of each tier."""

    time: Quantity
    holds: JsonObject


def all_gather(links: Links, size: Quantity, group: RankGroup) -> Exchange:
    """Return an all-gather or a reduce-scatter of `size` bytes, the gathered size."""
    at = reach(links, group)
    inner = ring_bytes(size, group.ranks, 1)
    outer = outer_share(size, group.domains, group.per_domain, 1)
    time = only_if_shared(fastest_algorithm_time(at, "all-gather", size), group.ranks)
    return Exchange(
        time, {"inside": stream_time(inner, at.links.inside), "across": stream_time(outer, at.rate)}
    )


def expert_exchange(links: Links, tokens: Tokens, group: RankGroup, tier: str) -> Exchange:
    """Return a dispatch or combine of tokens to the experts of a group, each token once to each
    place.
    """
    time = only_if_shared(
        fastest_algorithm_time(reach(links, group), "dispatch", tokens), np.minimum(group.ranks, 2)
    )
    return Exchange(time, {tier: time})


@dataclass(slots=True)
class Work:
    """All operators of a micro-batch, forward and backward, and their sums."""

    tokens: Quantity
    operators: list[Operator] = field(default_factory=list)
    # exchanges between domains, which some schedules hide
    across: list[Operator] = field(default_factory=list)
    head: list[Operator] = field(default_factory=list)

    def forward(self) -> Quantity:
        """Return the time of the forward pass, exchanges between domains left out."""
        return total("forward", [operator.time for operator in self.operators])

    def backward(self) -> Quantity:
        """Return the time of the backward pass without recomputation."""
        return total("backward", [operator.backward for operator in self.operators])

    def weights(self) -> Quantity:
        """Return the time of the weight gradients, part of the backward pass."""
        times = [
            operator.weight_time for operator in self.operators if operator.weight_time is not None
        ]
        return total("weight_gradients", times) if times else 0.0

    def again(self, level: int) -> list[Quantity]:
        """Return the forward times that recomputation of a level repeats."""
        return [
            operator.repeated_time
            for operator in self.operators
            if NEVER < operator.recompute_level <= level
        ]

    def crossing(self, level: int) -> Quantity:
        """Return the time of exchanges between domains, recomputation included."""
        times: list[Quantity] = []
        for operator in self.across:
            times += [operator.time, operator.backward, *([operator.time] * (level == FULL))]
        return total("crossing", times)

    def links(self, level: int, tier: str) -> tuple[Any, Any]:
        """Return busy time of a tier's links and waiting time of chips.

        Both times are in seconds, belong to collectives and include recomputation. Both are zero
        where no collective uses `tier`.
        """
        busy_times, wait_times = [], []
        for operator in (*self.operators, *self.across):
            if tier not in operator.link_times:
                continue
            time, (forward, backward) = operator.link_times[tier], operator.runs
            runs = (2 if level == FULL else 1) * forward + backward
            busy_times.append(exposed_time(time, runs, 1.0))
            wait_times.append(exposed_time(time, runs, operator.exposed_share))
        if not busy_times:
            return 0.0, 0.0
        return total(f"links_{tier}", busy_times), total(f"waits_{tier}", wait_times)

    def output(self) -> Quantity:
        """Return the time of the output head, both ways."""
        return total(
            "output_head",
            [time for operator in self.head for time in (operator.time, operator.backward)],
        )


def work_of(job: TrainingJob, machine: Machine, shape: MicroBatchShape) -> Work:
    """Return the whole work of a micro-batch."""
    model = with_predictions(job.model)
    tokens = rank_tokens(shape.micro_batch, job.sequence, shape.context)
    work, ahead = Work(tokens), model.prediction_layers
    lies = LayerShape(
        shape.expert,
        shape.tensor,
        shape.expert,
        tokens,
        causal_keys(job.sequence),
        shape.micro_batch,
        decode=False,
        read=job.sequence,
        split=shape.split,
    )
    made = Pass(machine, model, lies, exchanges=False)
    parts = layer.hidden_state_part_count(model.blocks)
    layer.layers_of(made)
    if job.software.dropout:
        made.elementwise(passed_numbers(made.hidden, machine.counted("mask_passes"), parts / 2))
    if ahead:  # each joins the hidden state with the embedding of the token that follows
        side = 2 * model.hidden, model.hidden / shape.tensor
        made.products("predicted token in", ahead, (side,), tokens, DENSE)
    made.finish()
    with scope(CORE):
        keys = [layer.keys_attended(attention, lies.keys) for attention in model.attentions]
        spans = [attention_span(attended, job.sequence, shape.context) for attended in keys]
    for attention, layers in model.attentions.items():
        if not job.software.fused:
            scores_in_memory(made, job, attention, layers)
        context_ring(made, job, shape, attention, layers)
    for mixer, layers in model.mixers.items():
        scan_in_memory(made, job, mixer, layers)
    for part, layers in model.feed_forwards.items():
        if part.experts:
            expert_kernels(made, job, part, layers)
            expert_exchanges(work, made, job, shape, part, layers)
    tensor_collectives(made, job, shape, parts)
    work.operators = both_ways(job, machine, made.operators, FULL, spans)
    with scope("head"):
        last = Pass(machine, model, lies, exchanges=False)
        layer.head(last, tokens, 1 + ahead)
        logits = model.vocabulary / shape.tensor
        last.elementwise(passed_numbers(logits, machine.counted("logit_passes"), 1 + ahead))
        last.finish("softmax and loss")
        work.head = both_ways(job, machine, last.operators, NEVER)
    return work


def with_predictions(model: Architecture) -> Architecture:
    """Return a model with the layers that predict further tokens, which training runs like its last
    ones.
    """
    if not model.prediction_layers:
        return model
    last = model.blocks[-1]
    return model._replace(
        blocks=(*model.blocks[:-1], last._replace(layers=last.layers + model.prediction_layers))
    )


# ---------------------------------------------------------------- what operators are backward
def both_ways(
    job: TrainingJob,
    machine: Machine,
    operators: list[Operator],
    level: int,
    spans: Sequence[Quantity] = (),
) -> list[Operator]:
    """Return operators with their backward pass.

    Args:
        job: Training job.
        machine: Chip model of the job.
        operators: Operators forward; collectives have both ways already.
        level: Least recomputation that repeats their forward part.
        spans: Tokens that the kernels of the attention cores work on, in the order of the cores.

    """
    backward, cores = gradients(job, machine, operators), iter(spans)
    trained = []
    for place, operator in enumerate(operators):
        if operator.link:
            trained.append(operator)
        elif operator.products is not None:
            trained.append(trained_products(job, machine, operator, *backward[place], level))
        elif operator.name == CORE:
            trained.append(trained_attention(job, machine, operator, next(cores), level))
        else:
            trained.append(trained_stream(job, machine, operator, level))
    return trained


class Gradient(NamedTuple):
    """Products backward, an entry of every field for each product forward."""

    time: Sequence[Any] = ()
    computing: Sequence[Quantity] = ()
    flops: Sequence[Any] = ()
    bytes: Sequence[Any] = ()

    def some(self, entries: Sequence[int]) -> Gradient:
        """Return some of the products, none where there are none."""
        return Gradient(*([column[entry] for entry in entries] for column in self if len(column)))


def gradients(
    job: TrainingJob, machine: Machine, operators: list[Operator]
) -> dict[int, tuple[Gradient, Gradient]]:
    """Return input and weight gradient products, keyed by operator index.

    Only operators with products have an entry. Operators with identical gradients are computed
    together.
    """
    found: dict[int, tuple[Gradient, Gradient]] = {}
    alike: dict[int, list[tuple[int, Sides]]] = {}
    for place, operator in enumerate(operators):
        if (products_forward := operator.products) is None:
            continue
        operands = machine.gradients[products_forward.place]
        if products_forward.groups is None:
            members = alike.setdefault(id(operands), [])
            members += [(place, sides) for sides in products_forward.sides]
        else:
            with scope(operator.name):
                found[place] = backward_of(
                    job, machine, operands, products_forward.sides, products_forward.groups
                )
    for operands in {id(operands): operands for operands in machine.gradients}.values():
        members = alike.get(id(operands), [])
        if not members:
            continue
        with scope("gradients"):
            ways = backward_of(job, machine, operands, [sides for _, sides in members], None)
        for place in dict.fromkeys(place for place, _ in members):
            entries = [entry for entry, (owner, _) in enumerate(members) if owner == place]
            found[place] = ways[0].some(entries), ways[1].some(entries)
    return found


def backward_of(
    job: TrainingJob,
    machine: Machine,
    operands: Operands,
    forward: Sequence[Sides],
    groups: Quantity | None,
) -> tuple[Gradient, Gradient]:
    """Return the products that make the gradients of inputs and of weights: two for each, one where
    adapters leave the weights as they are.
    """
    turned = [Sides(one.rows, one.inner, one.columns) for one in forward]
    if not job.software.adapters:
        turned += [Sides(one.columns, one.inner, one.rows) for one in forward]
    found = (
        products([operands] * len(turned), turned)
        if groups is None
        else experts_products(machine, turned, groups, operands)
    )
    columns = found.time, found.computing, found.flops, found.bytes
    count = len(forward)
    inputs = Gradient(*(column[:count] for column in columns))
    if job.software.adapters:
        return inputs, Gradient()
    weights = Gradient(*(column[count:] for column in columns))
    return inputs, with_sums(job, operands, forward, groups, weights)


def with_sums(
    job: TrainingJob,
    operands: Operands,
    forward: Sequence[Sides],
    groups: Quantity | None,
    found: Gradient,
) -> Gradient:
    """Return the products that make weight gradients, which add to the sums themselves, or leave
    that to a kernel of its own.
    """
    size, times, moved = job.values["workload.accumulator_size"], [], []
    count = 1 if groups is None else groups
    for at, sides in enumerate(forward):
        rows, columns, inner = sides
        if job.software.adds_in_product:
            moved.append(
                weight_gradient_bytes(rows, inner, columns, count, operands.input_size, size)
            )
            times.append(
                smooth_maximum(
                    found.computing[at], stream_time(moved[-1], operands.stream), operands.overlap
                )
            )
        else:
            weights = products_weights(columns, inner, count)
            sums = gradient_sum_bytes(weights, job.wide_size, size)
            moved.append(total("bytes", [found.bytes[at], sums]))
            times.append(
                total("product and sum", [found.time[at], stream_time(sums, operands.stream)])
            )
    return found._replace(time=times, bytes=moved)


def trained_products(
    job: TrainingJob,
    machine: Machine,
    operator: Operator,
    inputs: Gradient,
    weights: Gradient,
    level: int,
) -> Operator:
    """Return products with weights both ways."""
    taken, layers = operator.products, operator.layers
    assert taken is not None
    repeated_part = None
    with scope(operator.name):
        size = machine.gradients[taken.place].input_size
        ways = [
            [total("gradients", column) for column in (way.time, way.flops, way.bytes)]
            for way in (inputs, weights)
            if len(way.time)
        ]
        times = [repeated(machine.within_power(size, *way), layers) for way in ways]
        # compilers see that no gradient needs what the way out gives
        if job.software.compiled and operator.name in DOWN:
            again = [
                total("again", taken.product_field(name)[:-1])
                for name in ("time", "flops", "bytes")
            ]
            size = machine.operands[taken.place].input_size
            repeated_part = repeated(machine.within_power(size, *again), layers)
        backward = total("backward", times)
    peak = gradient_peak = machine.peak(taken.place)
    if taken.place != HEAD and machine.gradient_form is not None:
        gradient_peak = machine.kernels.part(machine.gradient_form.peak)
    return operator._replace(
        compute_rate=peak,
        backward=backward,
        recompute_level=level,
        weight_time=times[1] if len(times) > 1 else None,
        repeated_part=repeated_part,
        backward_work=tuple(
            OperatorWork(flops, moved, gradient_peak)
            for way in (inputs, weights)
            for flops, moved in zip(way.flops, way.bytes, strict=True)
        ),
    )


def trained_stream(job: TrainingJob, machine: Machine, operator: Operator, level: int) -> Operator:
    """Return an operator that is no product with weights both ways."""
    name, forward = operator.name, operator.time
    if name == LAUNCHES:  # of each product two backward
        return operator._replace(backward=times_as_long(forward, 2), recompute_level=level)
    if name == GRADIENT_CASTS:
        return operator._replace(time=0.0, layers=1, backward=forward)
    if level and (name == SCORES or (name == ELEMENTWISE and job.software.fused)):
        level = SELECTIVE
    with scope(name):
        factor = 2 if name == EXPERT_BIAS else job.value(BACKWARD.get(name, "elementwise_backward"))
        backward = times_as_long(forward, factor)
    operator = operator._replace(backward=backward, recompute_level=level)
    if name != RECURRENCE:
        return operator._replace(layers=1)
    work = OperatorWork(operator.flops, operator.bytes, machine.peak(HEAD))
    return operator._replace(compute_rate=work.peak, backward_work=(work, work))


def trained_attention(
    job: TrainingJob, machine: Machine, operator: Operator, span: Quantity, level: int
) -> Operator:
    """Return the attention core both ways, at the rates of the kernel of the job."""
    forward, flops, peak = operator.time, operator.flops, machine.peak(HEAD)
    kernel = job.software.attention
    count = KEPT_SCORES if kernel == UNFUSED else ANEW
    with scope(CORE):
        work = OperatorWork(
            attention_backward_flops(flops, count),
            # what is read, and its gradients
            total("bytes", [operator.bytes, operator.bytes]),
            peak,
        )
        if kernel in (GENERIC, UNFUSED):
            backward = attention_pass_time(forward, count, job.value("attention_backward_share"))
        else:
            owner = f"performance.{kernel}"
            half_span = job.values[f"{owner}.attention_half_span"]
            forward_rate, backward_rate = (
                attention_rate(peak, job.values[f"{owner}.{share}"], span, half_span)
                for share in ("attention_forward_rate", "attention_backward_rate")
            )
            least = attention_pass_time(forward, count, 1.0)
            forward = attention_kernel_time(forward, flops, forward_rate, operator.layers)
            backward = attention_kernel_time(least, work.flops, backward_rate, operator.layers)
    return operator._replace(
        time=forward,
        compute_rate=peak,
        backward=backward,
        recompute_level=level if job.software.fused else min(level, SELECTIVE),
        backward_work=(work,),
    )


# ---------------------------------------------------------------- what software adds to the layer
def scores_in_memory(made: Pass, job: TrainingJob, a: Attention, layers: int) -> None:
    """Add the passes of attention that keeps its scores in memory."""
    shape, machine = made.shape, made.machine
    with scope(SCORES):
        moved = elementwise_bytes(
            attention_scores(shape.tokens, job.sequence, a.heads / shape.tensor_parallel),
            1.0,
            machine.counted("score_passes"),
            job.wide_size,
        )
        made.stream(SCORES, layers, moved, machine.bandwidth)


def scan_in_memory(made: Pass, job: TrainingJob, mixer: StateMixer, layers: int) -> None:
    """Add the passes of a recurrence whose scan keeps in memory what its gradients need."""
    with scope(SCAN):
        numbers = (mixer.inner + mixer.groups * mixer.state) / made.shape.tensor_parallel
        moved = elementwise_bytes(
            made.shape.tokens, numbers, job.value("scan_passes"), job.wide_size
        )
        made.stream(SCAN, layers, moved, made.machine.bandwidth)


def expert_kernels(made: Pass, job: TrainingJob, f: FeedForward, layers: int) -> None:
    """Add activations and casts of gradients of experts that no fused kernel covers."""
    shape, machine = made.shape, made.machine
    if job.software.fused_experts:
        return
    width, tensor = f.width, shape.tensor_parallel
    if f.bias:  # bias, clamp and probability of each expert
        with scope(EXPERT_BIAS):
            moved = elementwise_bytes(
                shape.tokens,
                f.active * width / tensor,
                job.value("biased_expert_passes"),
                job.wide_size,
            )
            made.stream(EXPERT_BIAS, layers, moved, machine.bandwidth)
    if machine.gradient_form is None or FORMATS[machine.gradient_form.stored].bits >= WIDE:
        return
    # of what experts give and of their gates and widths, for each expert of a token
    with scope(GRADIENT_CASTS):
        numbers = f.active * ((f.latent or job.model.hidden) + (f.matrices - 1) * width / tensor)
        size = quantising_size(1, machine.activation_size, machine.gradients[EXPERTS].input_size)
        moved = elementwise_bytes(shape.tokens, numbers, machine.elementwise, size)
        made.stream(GRADIENT_CASTS, layers, moved, machine.bandwidth)


def linked(
    name: str, size: Quantity, found: Exchange, runs: tuple[int, int], share: Quantity
) -> Operator:
    """Return a collective that takes `size` bytes, runs some times forward and backward and is
    exposed by a share.
    """
    with scope(name):
        forward, backward = (exposed_time(found.time, count, share) for count in runs)
    return Operator(
        name,
        forward,
        bytes=size,
        link=True,
        backward=backward,
        recompute_level=FULL,
        link_times=found.holds,
        exposed_share=share,
        runs=runs,
    )


def tensor_collectives(made: Pass, job: TrainingJob, shape: MicroBatchShape, parts: int) -> None:
    """Add all-gather and reduce-scatter before and after each part of a layer, the same bytes as
    two all-reduces a layer.
    """
    if np.all(np.asarray(shape.tensor) == 1):
        return
    name, links = "tensor-parallel collectives", made.machine.links
    with scope(name):
        size = message_bytes(made.shape.tokens, job.model.hidden, job.wide_size)
        share = exposed_share(shape.overlap, job.value("tensor_exposed"))
        found = all_gather(links, size, strided(links, 1, shape.tensor))
    made.operators.append(linked(name, size, found, (2 * parts, 2 * parts), share))


def context_ring(
    made: Pass, job: TrainingJob, shape: MicroBatchShape, a: Attention, layers: int
) -> None:
    """Add the exchange of keys and values around a context-parallel group: once forward, twice
    backward.
    """
    if np.all(np.asarray(shape.context) == 1):
        return
    name, links = "context-parallel ring", made.machine.links
    kept = a.cached if a.latent else keys_and_values(a, shape.tensor)
    with scope(name):
        size = message_bytes(rank_tokens(shape.micro_batch, job.sequence, 1.0), kept, job.wide_size)
        found = all_gather(links, size, strided(links, shape.tensor, shape.context))
    made.operators.append(
        linked(name, size, found, (layers, 2 * layers), job.value("context_exposed"))
    )


def expert_group(links: Links, shape: MicroBatchShape) -> RankGroup:
    """Return the group that shares the experts of a layer: ranks of tensor and context parallelism
    first, then of data parallelism.
    """
    inner = np.minimum(shape.expert, shape.tensor * shape.context)
    return group_product(
        strided(links, 1, inner), strided(links, shape.data_stride, shape.expert // inner)
    )


def expert_exchanges(
    work: Work,
    made: Pass,
    job: TrainingJob,
    shape: MicroBatchShape,
    f: FeedForward,
    layers: int,
) -> None:
    """Add dispatch and combine of experts, inside a domain and across domains."""
    if np.all(np.asarray(shape.expert) == 1):
        return
    links, width, runs = made.machine.links, f.latent or job.model.hidden, (2 * layers, 2 * layers)
    own = per_rank(work.tokens, shape.tensor)
    tokens = Tokens(own, message_bytes(1, width, job.wide_size), f.active)
    size = message_bytes(own, width, job.wide_size)
    name = "expert exchange in a domain"
    with scope(name):
        near = expert_exchange(links, tokens, RankGroup(shape.expert, 1, shape.expert, 1), "inside")
    made.operators.append(linked(name, size, near, runs, job.value("expert_exposed_inside")))
    name = "expert exchange across domains"
    with scope(name):
        far = expert_exchange(links, tokens, among(expert_group(links, shape)), "across")
    work.across.append(linked(name, 0.0, far, runs, job.value("expert_exposed_across")))
