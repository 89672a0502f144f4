"""The work of one micro-batch through all layers on one chip: the operators of a layer, each
forward and backward, and collectives.

Forward is the list of operators that serving goes through as well; backward is the same list with
other counts. Nothing here depends on pipeline, data parallelism or schedule, so a search computes
it for the few hundred distinct shapes only and gathers. Each item keeps its forward and backward
time, and when recomputation does its forward part again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import elementwise_maximum, elementwise_minimum
from tco.core.formula import formula, total
from tco.core.trace import scope
from tco.core.types import JsonMapping, JsonObject, Quantity
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
from tco.performance.layer.operators import DENSE, EXPERTS, HEAD, Operator, Pass, experts_products
from tco.performance.layer.operators import PassShape as LayerShape
from tco.performance.training.job import GENERIC, UNFUSED, TrainingJob

NEVER, SELECTIVE, FULL = 0, 1, 2  # the least recomputation that does an item's forward part again
TIERS = ("inside", "across")  # of the fabric: inside a scale-up domain, across domains
ELEMENTWISE, CORE, RECURRENCE, LAUNCHES = "elementwise", "attention core", "recurrence", "launches"
# else elementwise
BACKWARD = {
    RECURRENCE: "recurrence_backward",
    "permute and gate": "permute_backward",
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


class OperatorWork(NamedTuple):
    """Work in FLOP, traffic in bytes and peak rate per layer.

    The time of an item follows from these quantities.
    """

    flops: Quantity
    moved: Quantity
    peak: Quantity


class Item(NamedTuple):
    """One operator of a micro-batch over all layers that have it; its parts are those of one
    layer.
    """

    name: str
    bound: str  # "product", "memory", "link" or "latency"
    forward: Quantity
    backward: Quantity
    again: int
    layers: float = 1
    weight: Quantity | None = None  # of the backward time, that of weight gradients
    # of the forward time, what recomputation does again where it leaves a part out
    partly: Any = None
    forward_parts: tuple[OperatorWork, ...] = ()
    backward_parts: tuple[OperatorWork, ...] = ()
    bandwidth: Any = None  # of passes through memory
    # how long a collective holds the links of each tier, exposed or not
    holds: JsonMapping = MappingProxyType({})
    share: Any = 0.0  # of a collective that the chip waits for
    size: Quantity = 0.0  # bytes a chip hands to it each time
    counts: tuple[int, int] = (0, 0)  # times it runs forward and backward

    @property
    def redone(self) -> Quantity:
        """Time of the forward part where it is computed again."""
        return self.forward if self.partly is None else self.partly


class Exchange(NamedTuple):
    """One collective of a group: its time, and how long it holds the links of each tier."""

    time: Quantity
    holds: JsonObject


def all_gather(links: Links, size: Quantity, group: RankGroup) -> Exchange:
    """Return an all-gather or a reduce-scatter of `size` bytes, the gathered size."""
    at = reach(links, group)
    inner, outer = (
        ring_bytes(size, group.ranks, 1),
        outer_share(size, group.domains, group.per_domain, 1),
    )
    time = only_if_shared(fastest_algorithm_time(at, "all-gather", size), group.ranks)
    return Exchange(
        time, {"inside": stream_time(inner, at.links.inside), "across": stream_time(outer, at.rate)}
    )


def expert_exchange(
    links: Links, tokens: Any, token: Any, active: Any, group: RankGroup, tier: str
) -> Exchange:
    """Return a dispatch or combine of tokens to the experts of a group, each token once to each
    place.
    """
    time = only_if_shared(
        fastest_algorithm_time(reach(links, group), "dispatch", Tokens(tokens, token, active)),
        np.minimum(group.ranks, 2),
    )
    return Exchange(time, {tier: time})


@dataclass(slots=True)
class Work:
    """All items of a micro-batch, and their sums."""

    tokens: Quantity
    items: list[Item] = field(default_factory=list)
    # exchanges between domains, which some schedules hide
    across: list[Item] = field(default_factory=list)
    head: list[Item] = field(default_factory=list)

    def forward(self) -> Quantity:
        """Return the time of the forward pass, exchanges between domains left out."""
        return total("forward", [item.forward for item in self.items])

    def backward(self) -> Quantity:
        """Return the time of the backward pass without recomputation."""
        return total("backward", [item.backward for item in self.items])

    def weights(self) -> Quantity:
        """Return the time of the weight gradients, part of the backward pass."""
        terms = [item.weight for item in self.items if item.weight is not None]
        return total("weight_gradients", terms) if terms else 0.0

    def again(self, level: int) -> list[Quantity]:
        """Return the forward times that recomputation of a level repeats."""
        return [item.redone for item in self.items if NEVER < item.again <= level]

    def crossing(self, level: int) -> Quantity:
        """Return the time of exchanges between domains, recomputation included."""
        return total(
            "crossing",
            [
                time
                for item in self.across
                for time in (item.forward, item.backward, *([item.forward] * (level == FULL)))
            ],
        )

    def links(self, level: int, tier: str) -> tuple[Any, Any]:
        """Return busy time of a tier's links and waiting time of chips.

        Both times are in seconds, belong to collectives and include recomputation. Both are zero
        where no collective uses `tier`.
        """
        found = [
            (item, (2 if level == FULL else 1) * item.counts[0] + item.counts[1])
            for item in (*self.items, *self.across)
            if tier in item.holds
        ]
        if not found:
            return 0.0, 0.0
        held = [exposed_time(item.holds[tier], runs, 1.0) for item, runs in found]
        waited = [exposed_time(item.holds[tier], runs, item.share) for item, runs in found]
        return total(f"links_{tier}", held), total(f"waits_{tier}", waited)

    def output(self) -> Quantity:
        """Return the time of the output head, both ways."""
        return total(
            "output_head", [time for item in self.head for time in (item.forward, item.backward)]
        )


# ---------------------------------------------------------------- operators forward, and what they
# are backward
def work_of(job: TrainingJob, machine: Machine, shape: MicroBatchShape) -> Work:
    """Return the whole work of a micro-batch."""
    model, tokens = (
        with_predictions(job.model),
        rank_tokens(shape.micro_batch, job.sequence, shape.context),
    )
    work, ahead = Work(tokens), model.prediction_layers
    lies = LayerShape(
        *(
            shape.expert,
            shape.tensor,
            shape.expert,
            tokens,
            causal_keys(job.sequence),
            shape.micro_batch,
        ),
        decode=False,
        read=job.sequence,
        split=shape.split,
    )
    made = Pass(machine, model, lies, exchanges=False)
    layer.layers_of(made)
    if job.software.dropout:
        made.elementwise(
            passed_numbers(
                made.hidden,
                machine.counted("mask_passes"),
                layer.hidden_state_part_count(model.blocks) / 2,
            )
        )
    if ahead:  # each joins the hidden state with the embedding of the token that follows
        made.products(
            "predicted token in",
            ahead,
            ((2 * model.hidden, model.hidden / shape.tensor),),
            tokens,
            DENSE,
        )
    made.finish()
    with scope(CORE):
        keys = [layer.keys_attended(attention, lies.keys) for attention in model.attentions]
        spans = [attention_span(attended, job.sequence, shape.context) for attended in keys]
    work.items += both_ways(job, machine, made.operators, FULL, spans)
    for attention, layers in model.attentions.items():
        if not job.software.fused:
            work.items.append(scores_in_memory(job, machine, shape, tokens, attention, layers))
        context_ring(work, job, machine, shape, attention, layers)
    for mixer, layers in model.mixers.items():
        work.items.append(scan_in_memory(job, machine, shape, tokens, mixer, layers))
    for part, layers in model.feed_forwards.items():
        if part.experts:
            experts_apart(work, job, machine, shape, part, layers)
    tensor_collectives(work, job, machine, shape, layer.hidden_state_part_count(model.blocks))
    with scope("head"):
        last = Pass(machine, model, lies, exchanges=False)
        layer.head(last, tokens, 1 + ahead)
        last.elementwise(
            passed_numbers(
                model.vocabulary / shape.tensor, machine.counted("logit_passes"), 1 + ahead
            )
        )
        last.finish("softmax and loss")
        work.head += both_ways(job, machine, last.operators, NEVER)
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


def both_ways(
    job: TrainingJob,
    machine: Machine,
    operators: list[Operator],
    again: int,
    spans: Sequence[Quantity] = (),
) -> list[Item]:
    """Return operators with what they are backward; `spans` are those of the attention cores, in
    order.
    """
    backward, cores = gradients(job, machine, operators), iter(spans)
    items = []
    for at, operator in enumerate(operators):
        if operator.products is not None:
            items.append(product_item(job, machine, operator, *backward[at], again))
        elif operator.name == CORE:
            items.append(attention_item(job, machine, operator, next(cores), again))
        else:
            items.append(other_item(job, machine, operator, again))
    return items


class Gradient(NamedTuple):
    """Products backward, an entry of every field for each product forward."""

    time: Sequence[Any] = ()
    computing: Sequence[Quantity] = ()
    flops: Sequence[Any] = ()
    bytes: Sequence[Any] = ()


def gradients(
    job: TrainingJob, machine: Machine, operators: list[Operator]
) -> dict[int, tuple[Gradient, Gradient]]:
    """Return input and weight gradient products, keyed by operator index.

    Only operators with products have an entry. Operators with identical gradients are computed
    together.
    """
    found: dict[int, tuple[Gradient, Gradient]] = {}
    alike: dict[int, list[tuple[int, Sides]]] = {}
    for at, operator in enumerate(operators):
        if (own := operator.products) is None:
            continue
        if own.groups is None:
            alike.setdefault(id(machine.gradients[own.place]), []).extend(
                (at, one) for one in own.sides
            )
        else:
            with scope(operator.name):
                found[at] = backward_of(
                    job, machine, machine.gradients[own.place], own.sides, own.groups
                )
    for made in {id(made): made for made in machine.gradients}.values():
        members = alike.get(id(made), [])
        with scope("gradients"):
            every = (
                backward_of(job, machine, made, [one for _, one in members], None)
                if members
                else (Gradient(), Gradient())
            )
        for at in dict.fromkeys(at for at, _ in members):
            chosen = [entry for entry, (own_at, _) in enumerate(members) if own_at == at]
            inputs, weights = (
                Gradient(
                    *([column[entry] for entry in chosen if entry < len(column)] for column in way)
                )
                for way in every
            )
            found[at] = inputs, weights
    return dict(sorted(found.items()))


def backward_of(
    job: TrainingJob, machine: Machine, made: Operands, forward: Sequence[Sides], groups: Any
) -> tuple[Gradient, Gradient]:
    """Return the products that make the gradients of inputs and of weights: two for each, one where
    adapters leave the weights as they are.
    """
    turned = [Sides(one.rows, one.inner, one.columns) for one in forward]
    if not job.software.adapters:
        turned += [Sides(one.columns, one.inner, one.rows) for one in forward]
    found = (
        products([made] * len(turned), turned)
        if groups is None
        else experts_products(machine, turned, groups, made)
    )
    ways = [
        Gradient(
            *(field[part] for field in (found.time, found.computing, found.flops, found.bytes))
        )
        for part in halves(len(forward), len(turned))
    ]
    return ways[0], with_sums(job, made, forward, groups, ways[1]) if len(ways) > 1 else Gradient()


def halves(count: int, every: int) -> list[slice]:
    """Return some entries after each other in parts of so many."""
    return [slice(start, start + count) for start in range(0, every, count)]


def with_sums(
    job: TrainingJob, made: Operands, forward: Sequence[Sides], groups: Quantity, found: Gradient
) -> Gradient:
    """Return the products that make weight gradients, which add to the sums themselves, or leave
    that to a kernel of its own.
    """
    size, times, moved = job.values["workload.accumulator_size"], [], []
    for at, one in enumerate(forward):
        many = 1 if groups is None else groups
        if job.software.adds_in_product:
            moved.append(
                weight_gradient_bytes(one.rows, one.inner, one.columns, many, made.input_size, size)
            )
            times.append(
                smooth_maximum(
                    found.computing[at], stream_time(moved[-1], made.stream), made.overlap
                )
            )
        else:
            sums = gradient_sum_bytes(
                products_weights(one.columns, one.inner, many), job.wide_size, size
            )
            moved.append(total("bytes", [found.bytes[at], sums]))
            times.append(total("product and sum", [found.time[at], stream_time(sums, made.stream)]))
    return found._replace(time=times, bytes=moved)


def product_item(
    job: TrainingJob,
    machine: Machine,
    operator: Operator,
    inputs: Gradient,
    weights: Gradient,
    again: int,
) -> Item:
    """Return products with weights both ways."""
    own, layers, name, partly = operator.products, operator.layers, operator.name, None
    assert own is not None
    with scope(name):
        size = machine.gradients[own.place].input_size
        ways = [
            [total("gradients", field) for field in (way.time, way.flops, way.bytes)]
            for way in (inputs, weights)
            if len(way.time)
        ]
        times = [repeated(machine.within_power(size, *way), layers) for way in ways]
        # compilers see that no gradient needs what the way out gives
        if job.software.compiled and name in DOWN:
            again_of = (
                total("again", own.product_field(field)[:-1])
                for field in ("time", "flops", "bytes")
            )
            partly = repeated(
                machine.within_power(machine.operands[own.place].input_size, *again_of), layers
            )
        backward = total("backward", times)
    peak = machine.peak(own.place)
    back = (
        peak
        if own.place == HEAD or machine.gradient_form is None
        else machine.kernels.part(machine.gradient_form.peak)
    )
    parts = tuple(
        OperatorWork(flops, moved, back)
        for way in (inputs, weights)
        for flops, moved in zip(way.flops, way.bytes, strict=True)
    )
    weight = times[1] if len(times) > 1 else None
    return Item(
        name,
        "product",
        operator.time,
        backward,
        again,
        layers,
        weight,
        partly,
        (OperatorWork(operator.flops, operator.bytes, peak),),
        parts,
    )


def other_item(job: TrainingJob, machine: Machine, operator: Operator, again: int) -> Item:
    """Return an operator that is no product with weights both ways."""
    name, layers, forward = operator.name, operator.layers, operator.time
    if name == LAUNCHES:  # of each product two backward
        return Item(name, "latency", forward, times_as_long(forward, 2), again)
    if again and name == ELEMENTWISE and job.software.fused:
        again = SELECTIVE
    with scope(name):
        backward = times_as_long(forward, job.value(BACKWARD.get(name, "elementwise_backward")))
    if name != RECURRENCE:
        return Item(name, "memory", forward, backward, again, bandwidth=operator.bandwidth)
    part = OperatorWork(operator.flops, operator.bytes, machine.peak(HEAD))
    return Item(
        name,
        "product",
        forward,
        backward,
        again,
        layers,
        forward_parts=(part,),
        backward_parts=(part, part),
    )


def attention_item(
    job: TrainingJob, machine: Machine, operator: Operator, span: Quantity, again: int
) -> Item:
    """Return the attention core both ways, at the rates of the kernel of the job."""
    layers, flops, peak, kernel = (
        operator.layers,
        operator.flops,
        machine.peak(HEAD),
        job.software.attention,
    )
    products = KEPT_SCORES if kernel == UNFUSED else ANEW
    if again and not job.software.fused:
        again = SELECTIVE
    with scope(CORE):
        back = attention_backward_flops(flops, products)
        moved = total("bytes", [operator.bytes, operator.bytes])  # what is read, and its gradients
        if kernel in (GENERIC, UNFUSED):
            forward, backward = (
                operator.time,
                attention_pass_time(operator.time, products, job.value("attention_backward_share")),
            )
        else:
            owner = f"performance.{kernel}"
            half_span, shares = (
                job.values[f"{owner}.attention_half_span"],
                ("attention_forward_rate", "attention_backward_rate"),
            )
            rates = [
                attention_rate(peak, job.values[f"{owner}.{share}"], span, half_span)
                for share in shares
            ]
            least = operator.time, attention_pass_time(operator.time, products, 1.0)
            forward, backward = (
                attention_kernel_time(*terms, layers)
                for terms in zip(least, (flops, back), rates, strict=True)
            )
    parts = OperatorWork(flops, operator.bytes, peak), OperatorWork(back, moved, peak)
    return Item(
        CORE,
        "product",
        forward,
        backward,
        again,
        layers,
        forward_parts=parts[:1],
        backward_parts=parts[1:],
    )


def scores_in_memory(
    job: TrainingJob,
    machine: Machine,
    shape: MicroBatchShape,
    tokens: Quantity,
    a: Attention,
    layers: int,
) -> Item:
    """Return the passes of attention that keeps its scores in memory."""
    with scope("attention scores in memory"):
        moved = elementwise_bytes(
            attention_scores(tokens, job.sequence, a.heads / shape.tensor),
            1.0,
            machine.counted("score_passes"),
            job.wide_size,
        )
        return passes(
            "attention scores in memory",
            machine,
            moved,
            layers,
            job.value("score_backward"),
            SELECTIVE,
        )


def scan_in_memory(
    job: TrainingJob,
    machine: Machine,
    shape: MicroBatchShape,
    tokens: Quantity,
    m: StateMixer,
    layers: int,
) -> Item:
    """Return the passes of a recurrence whose scan keeps in memory what its gradients need."""
    with scope("recurrence in memory"):
        moved = elementwise_bytes(
            tokens,
            (m.inner + m.groups * m.state) / shape.tensor,
            job.value("scan_passes"),
            job.wide_size,
        )
        return passes(
            "recurrence in memory", machine, moved, layers, job.value("recurrence_backward"), FULL
        )


def passes(name: str, machine: Machine, moved: Any, layers: int, backward: Any, again: int) -> Item:
    """Return passes through memory of some bytes a layer, which take some times as long
    backward.
    """
    forward = repeated(stream_time(moved, machine.bandwidth), layers)
    return Item(
        name,
        "memory",
        forward,
        times_as_long(forward, backward),
        again,
        bandwidth=machine.bandwidth,
    )


# ---------------------------------------------------------------- what chips and software add to
# the layer
def linked(
    name: str, size: Quantity, found: Exchange, counts: tuple[int, int], share: Quantity
) -> Item:
    """Return a collective that takes `size` bytes, runs some times forward and backward and is
    exposed by a share.
    """
    with scope(name):
        forward, backward = (exposed_time(found.time, count, share) for count in counts)
    return Item(
        name,
        "link",
        forward,
        backward,
        FULL,
        holds=found.holds,
        share=share,
        size=size,
        counts=counts,
    )


def tensor_collectives(
    work: Work, job: TrainingJob, machine: Machine, shape: MicroBatchShape, parts: int
) -> None:
    """Add all-gather and reduce-scatter before and after each part of a layer, the same bytes as
    two all-reduces a layer.
    """
    if np.all(np.asarray(shape.tensor) == 1):
        return
    with scope("tensor-parallel collectives"):
        size = message_bytes(work.tokens, job.model.hidden, job.wide_size)
        share = exposed_share(shape.overlap, job.value("tensor_exposed"))
        found = all_gather(machine.links, size, strided(machine.links, 1, shape.tensor))
    work.items.append(
        linked("tensor-parallel collectives", size, found, (2 * parts, 2 * parts), share)
    )


def context_ring(
    work: Work,
    job: TrainingJob,
    machine: Machine,
    shape: MicroBatchShape,
    a: Attention,
    layers: int,
) -> None:
    """Add the exchange of keys and values around a context-parallel group: once forward, twice
    backward.
    """
    if np.all(np.asarray(shape.context) == 1):
        return
    kept = a.cached if a.latent else keys_and_values(a, shape.tensor)
    with scope("context-parallel ring"):
        size = message_bytes(rank_tokens(shape.micro_batch, job.sequence, 1.0), kept, job.wide_size)
        found = all_gather(machine.links, size, strided(machine.links, shape.tensor, shape.context))
    work.items.append(
        linked(
            "context-parallel ring", size, found, (layers, 2 * layers), job.value("context_exposed")
        )
    )


def expert_group(links: Links, shape: MicroBatchShape) -> RankGroup:
    """Return the group that shares the experts of a layer: ranks of tensor and context parallelism
    first, then of data parallelism.
    """
    inner = np.minimum(shape.expert, shape.tensor * shape.context)
    return group_product(
        strided(links, 1, inner), strided(links, shape.data_stride, shape.expert // inner)
    )


def experts_apart(
    work: Work,
    job: TrainingJob,
    machine: Machine,
    shape: MicroBatchShape,
    f: FeedForward,
    layers: int,
) -> None:
    """Add what experts exchange inside a domain and across domains, and activations and casts of
    gradients that no fused kernel covers.
    """
    width, links, own = (
        f.latent or job.model.hidden,
        machine.links,
        per_rank(work.tokens, shape.tensor),
    )
    if f.bias and not job.software.fused_experts:  # bias, clamp and probability of each expert
        with scope("activations of experts with bias"):
            moved = elementwise_bytes(
                work.tokens,
                f.active * f.width / shape.tensor,
                job.value("biased_expert_passes"),
                job.wide_size,
            )
            work.items.append(
                passes("activations of experts with bias", machine, moved, layers, 2, FULL)
            )
    if (
        machine.gradient_form is not None
        and FORMATS[machine.gradient_form.stored].bits < WIDE
        and not job.software.fused_experts
    ):
        # of what experts give and of their gates and widths, for each expert of a token
        with scope("casts of experts' gradients"):
            numbers = f.active * (width + (f.matrices - 1) * f.width / shape.tensor)
            size = quantising_size(
                1, machine.activation_size, machine.gradients[EXPERTS].input_size
            )
            cast = repeated(
                stream_time(
                    elementwise_bytes(work.tokens, numbers, machine.elementwise, size),
                    machine.bandwidth,
                ),
                layers,
            )
            work.items.append(
                Item(
                    "casts of experts' gradients",
                    "memory",
                    0.0,
                    cast,
                    NEVER,
                    bandwidth=machine.bandwidth,
                )
            )
    if np.all(np.asarray(shape.expert) == 1):
        return
    # dispatch and combine
    token, both = (
        message_bytes(1, width, job.wide_size),
        (2 * layers, 2 * layers),
    )
    size = message_bytes(own, width, job.wide_size)
    with scope("expert exchange in a domain"):
        near = expert_exchange(
            links, own, token, f.active, RankGroup(shape.expert, 1, shape.expert, 1), "inside"
        )
    work.items.append(
        linked("expert exchange in a domain", size, near, both, job.value("expert_exposed_inside"))
    )
    with scope("expert exchange across domains"):
        far = expert_exchange(
            links, own, token, f.active, among(expert_group(links, shape)), "across"
        )
    work.across.append(
        linked("expert exchange across domains", 0.0, far, both, job.value("expert_exposed_across"))
    )
