"""Work of a micro-batch through all layers on one chip, forward and backward.

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
from tco.fabric.links import Links, RankGroup, among, group_product, strided_group
from tco.models.architecture import Architecture
from tco.models.layers import Attention, FeedForward, keys_and_values
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
# products of attention backward over forward: five for two if scores are computed again, else four
ANEW, KEPT_SCORES = 2.5, 2.0
# operators whose last product, the down projection, no gradient needs: recomputation may skip it
DOWN = ("feed-forward", "shared expert", "experts")


@formula("")
def rank_tokens(micro_batch: Pure, sequence: Pure, context_parallel: Pure) -> Quantity:
    """Tokens of a micro-batch on one chip of a context-parallel group: T = b s / cp."""
    return micro_batch * sequence / context_parallel


@formula("")
def exposed_share(overlapped: Pure, exposed: Pure) -> Quantity:
    """Share of a collective's time that lengthens the step: 1 - o (1 - x).

    It is all of it, or x where the collective runs in pieces beside compute (o = 1).
    """
    return 1 - overlapped * (1 - exposed)


@formula("byte", source="scaling-book")
def weight_gradient_bytes(
    tokens: Pure, inner: Pure, outer: Pure, groups: Pure, input_size: Byte, accumulator_size: Byte
) -> Quantity:
    """Traffic of g products of weight gradients: Q = g (b_in m (k + n) + 2 b_acc k n).

    Sums are read and written.
    """
    return groups * (input_size * tokens * (inner + outer) + 2 * accumulator_size * inner * outer)


@formula("byte", source="narayanan2021")
def gradient_sum_bytes(weights: Pure, gradient_size: Byte, accumulator_size: Byte) -> Quantity:
    """Traffic of a separate kernel that adds a product's gradients: Q = W (b_g + 2 b_acc)."""
    return weights * (gradient_size + 2 * accumulator_size)


@formula("")
def attention_span(keys: Pure, sequence: Pure, context_parallel: Pure) -> Quantity:
    """Tokens of a causal sequence in one kernel whose queries meet k keys.

    s = min(2 k, s_job / cp).
    """
    return elementwise_minimum(2 * keys, sequence / context_parallel)


@formula("FLOP/s", source="cudnn-sdpa-training")
def attention_rate(peak: FLOPPerSecond, share: Pure, span: Pure, half_span: Pure) -> Quantity:
    """Rate of a fused attention kernel: x P s / (s + s_half).

    It is half of x P at sequences of s_half tokens.
    """
    return share * peak * span / (span + half_span)


@formula("FLOP", source="flashattention3")
def attention_backward_flops(flops: FLOP, products: Pure) -> Quantity:
    """Work of attention backward, n the products over the two forward: F = n F_forward."""
    return products * flops


@formula("s", source="flashattention3")
def attention_pass_time(core: Second, products: Pure, share: Pure) -> Quantity:
    """Time of n times the forward products at a share x of their rate: t = n t_core / x."""
    return products * core / share


@formula("s")
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
    joined = reach(links, group)
    inner = ring_bytes(size, group.ranks, 1)
    outer = outer_share(size, group.domains, group.per_domain, 1)
    time = only_if_shared(fastest_algorithm_time(joined, "all-gather", size), group.ranks)
    inside, across = stream_time(inner, joined.links.inside), stream_time(outer, joined.rate)
    return Exchange(time, {"inside": inside, "across": across})


def expert_exchange(links: Links, tokens: Tokens, group: RankGroup, tier: str) -> Exchange:
    """Return a dispatch or combine of tokens to the experts of a group."""
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
            link_times = operator.link_times or {}
            if tier not in link_times:
                continue
            time, (forward, backward) = link_times[tier], operator.runs
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
    model = _with_predictions(job.model)
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
    layer_pass = Pass(machine, model, lies, exchanges=False)
    parts = layer.hidden_state_part_count(model.blocks)
    layer.layers_of(layer_pass)
    if job.software.dropout:
        layer_pass.elementwise(
            passed_numbers(layer_pass.hidden, machine.counted("mask_passes"), parts / 2)
        )
    if ahead:  # each joins the hidden state with the embedding of the token that follows
        side = 2 * model.hidden, model.hidden / shape.tensor
        layer_pass.products("predicted token in", ahead, (side,), tokens, DENSE)
    layer_pass.finish()
    with scope(CORE):
        query_keys = [layer.keys_attended(attention, lies.keys) for attention in model.attentions]
        spans = [attention_span(attended, job.sequence, shape.context) for attended in query_keys]
    for attention, layers in model.attentions.items():
        if not job.software.fused:
            _scores_in_memory(layer_pass, job, attention, layers)
        _context_ring(layer_pass, job, shape, attention, layers)
    for mixer, layers in model.mixers.items():
        with scope(SCAN):
            numbers = (mixer.inner + mixer.groups * mixer.state) / layer_pass.shape.tensor_parallel
            traffic = elementwise_bytes(
                layer_pass.shape.tokens, numbers, job.value("scan_passes"), job.wide_size
            )
            layer_pass.stream(SCAN, layers, traffic, layer_pass.machine.bandwidth)
    for part, layers in model.feed_forwards.items():
        if part.experts:
            expert_kernels(layer_pass, job, part, layers)
            _expert_exchanges(work, layer_pass, job, shape, part, layers)
    _tensor_collectives(layer_pass, job, shape, parts)
    work.operators = _both_ways(job, machine, layer_pass.operators, FULL, spans)
    with scope("head"):
        last = Pass(machine, model, lies, exchanges=False)
        layer.head(last, tokens, 1 + ahead)
        logits = model.vocabulary / shape.tensor
        last.elementwise(passed_numbers(logits, machine.counted("logit_passes"), 1 + ahead))
        last.finish("softmax and loss")
        work.head = _both_ways(job, machine, last.operators, NEVER)
    return work


def _with_predictions(model: Architecture) -> Architecture:
    """Return a model whose last layers include those that predict further tokens."""
    if not model.prediction_layers:
        return model
    if model.prediction_block is not None:
        ahead = model.prediction_block._replace(layers=model.prediction_layers)
        return model._replace(blocks=(*model.blocks, ahead))
    last = model.blocks[-1]
    return model._replace(
        blocks=(*model.blocks[:-1], last._replace(layers=last.layers + model.prediction_layers))
    )


# ---------------------------------------------------------------- what operators are backward
def _both_ways(
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
    for index, operator in enumerate(operators):
        if operator.link:
            trained.append(operator)
        elif operator.products is not None:
            trained.append(_trained_products(job, machine, operator, *backward[index], level))
        elif operator.name == CORE:
            trained.append(_trained_attention(job, machine, operator, next(cores), level))
        else:
            trained.append(_trained_stream(job, machine, operator, level))
    return trained


class Gradient(NamedTuple):
    """Products backward, an entry of every field for each product forward."""

    time: Sequence[Any] = ()
    computing: Sequence[Quantity] = ()
    flops: Sequence[Any] = ()
    bytes: Sequence[Any] = ()

    def products_at(self, entries: Sequence[int]) -> Gradient:
        """Return the products at some indices, none where there are none."""
        return Gradient(*([column[entry] for entry in entries] for column in self if len(column)))


def gradients(
    job: TrainingJob, machine: Machine, operators: list[Operator]
) -> dict[int, tuple[Gradient, Gradient]]:
    """Return input and weight gradient products, keyed by operator index.

    Only operators with products have an entry. Operators with identical gradients are computed
    together.
    """
    gradients_by_index: dict[int, tuple[Gradient, Gradient]] = {}
    alike: dict[int, list[tuple[int, Sides]]] = {}
    for index, operator in enumerate(operators):
        if (products_forward := operator.products) is None:
            continue
        operands = machine.gradients[products_forward.operand_index]
        if products_forward.groups is None:
            members = alike.setdefault(id(operands), [])
            members += [(index, sides) for sides in products_forward.sides]
        else:
            with scope(operator.name):
                gradients_by_index[index] = _backward_of(
                    job, machine, operands, products_forward.sides, products_forward.groups
                )
    for operands in {id(operands): operands for operands in machine.gradients}.values():
        members = alike.get(id(operands), [])
        if not members:
            continue
        with scope("gradients"):
            inputs, weights = _backward_of(
                job, machine, operands, [sides for _, sides in members], None
            )
        for index in dict.fromkeys(index for index, _ in members):
            entries = [entry for entry, (owner, _) in enumerate(members) if owner == index]
            gradients_by_index[index] = inputs.products_at(entries), weights.products_at(entries)
    return gradients_by_index


def _backward_of(
    job: TrainingJob,
    machine: Machine,
    operands: Operands,
    forward: Sequence[Sides],
    groups: Quantity | None,
) -> tuple[Gradient, Gradient]:
    """Return the products that make the gradients of inputs and of weights.

    The second are none where adapters leave the weights as they are.
    """
    turned = [Sides(sides.rows, sides.inner, sides.columns) for sides in forward]
    if not job.software.adapters:
        turned += [Sides(sides.columns, sides.inner, sides.rows) for sides in forward]
    gradient = (
        products([operands] * len(turned), turned)
        if groups is None
        else experts_products(machine, turned, groups, operands)
    )
    columns = gradient.time, gradient.computing, gradient.flops, gradient.bytes
    count = len(forward)
    inputs = Gradient(*(column[:count] for column in columns))
    if job.software.adapters:
        return inputs, Gradient()
    weights = Gradient(*(column[count:] for column in columns))
    return inputs, _with_sums(job, operands, forward, groups, weights)


def _with_sums(
    job: TrainingJob,
    operands: Operands,
    forward: Sequence[Sides],
    groups: Quantity | None,
    gradient: Gradient,
) -> Gradient:
    """Return the products that make weight gradients, with the sums they are added to.

    The products add to the sums themselves, or leave that to a kernel of its own.
    """
    size, times, traffic = job.values["workload.accumulator_size"], [], []
    count = 1 if groups is None else groups
    for entry, sides in enumerate(forward):
        output_rows, columns, inner = sides
        if job.software.adds_in_product:
            traffic.append(
                weight_gradient_bytes(output_rows, inner, columns, count, operands.input_size, size)
            )
            times.append(
                smooth_maximum(
                    gradient.computing[entry],
                    stream_time(traffic[-1], operands.stream),
                    operands.overlap,
                )
            )
        else:
            weights = products_weights(columns, inner, count)
            sums = gradient_sum_bytes(weights, job.wide_size, size)
            traffic.append(total("bytes", [gradient.bytes[entry], sums]))
            times.append(
                total("product and sum", [gradient.time[entry], stream_time(sums, operands.stream)])
            )
    return gradient._replace(time=times, bytes=traffic)


def _trained_products(
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
        size = machine.gradients[taken.operand_index].input_size
        sums = [
            [
                total("gradients", column)
                for column in (gradient.time, gradient.flops, gradient.bytes)
            ]
            for gradient in (inputs, weights)
            if len(gradient.time)
        ]
        times = [repeated(machine.within_power(size, *terms), layers) for terms in sums]
        # compilers see that no gradient needs the result of the down projection
        if job.software.compiled and operator.name in DOWN:
            again = [
                total("again", taken.product_field(work_field)[:-1])
                for work_field in ("time", "flops", "bytes")
            ]
            size = machine.operands[taken.operand_index].input_size
            repeated_part = repeated(machine.within_power(size, *again), layers)
        backward = total("backward", times)
    peak = gradient_peak = machine.peak(taken.operand_index)
    if taken.operand_index != HEAD and machine.gradient_form is not None:
        gradient_peak = machine.kernels.part(machine.gradient_form.peak)
    return operator._replace(
        compute_rate=peak,
        backward=backward,
        recompute_level=level,
        weight_time=times[1] if len(times) > 1 else None,
        repeated_part=repeated_part,
        backward_work=tuple(
            OperatorWork(flops, traffic, gradient_peak)
            for gradient in (inputs, weights)
            for flops, traffic in zip(gradient.flops, gradient.bytes, strict=True)
        ),
    )


def _trained_stream(job: TrainingJob, machine: Machine, operator: Operator, level: int) -> Operator:
    """Return an operator without weights, with its backward time."""
    operator_name, forward = operator.name, operator.time
    if operator_name == LAUNCHES:  # each product has two backward
        return operator._replace(backward=times_as_long(forward, 2), recompute_level=level)
    if operator_name == GRADIENT_CASTS:
        return operator._replace(time=0.0, layers=1, backward=forward)
    if level and (operator_name == SCORES or (operator_name == ELEMENTWISE and job.software.fused)):
        level = SELECTIVE
    with scope(operator_name):
        factor = (
            2
            if operator_name == EXPERT_BIAS
            else job.value(BACKWARD.get(operator_name, "elementwise_backward"))
        )
        backward = times_as_long(forward, factor)
    operator = operator._replace(backward=backward, recompute_level=level)
    if operator_name != RECURRENCE:
        return operator._replace(layers=1)
    work = OperatorWork(operator.flops, operator.bytes, machine.peak(HEAD))
    return operator._replace(compute_rate=work.peak, backward_work=(work, work))


def _trained_attention(
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
def _scores_in_memory(layer_pass: Pass, job: TrainingJob, a: Attention, layers: int) -> None:
    """Add the passes of attention that keeps its scores in memory."""
    shape, machine = layer_pass.shape, layer_pass.machine
    with scope(SCORES):
        traffic = elementwise_bytes(
            attention_scores(shape.tokens, job.sequence, a.heads / shape.tensor_parallel),
            1.0,
            machine.counted("score_passes"),
            job.wide_size,
        )
        layer_pass.stream(SCORES, layers, traffic, machine.bandwidth)


def expert_kernels(layer_pass: Pass, job: TrainingJob, f: FeedForward, layers: int) -> None:
    """Add activations and casts of gradients of experts that no fused kernel covers."""
    shape, machine = layer_pass.shape, layer_pass.machine
    if job.software.fused_experts:
        return
    width, tensor = f.width, shape.tensor_parallel
    if f.bias:  # bias, clamp and probability of each expert
        with scope(EXPERT_BIAS):
            traffic = elementwise_bytes(
                shape.tokens,
                f.active * width / tensor,
                job.value("biased_expert_passes"),
                job.wide_size,
            )
            layer_pass.stream(EXPERT_BIAS, layers, traffic, machine.bandwidth)
    if machine.gradient_form is None or FORMATS[machine.gradient_form.stored].bits >= WIDE:
        return
    # of what experts give and of their gates and widths, for each expert of a token
    with scope(GRADIENT_CASTS):
        numbers = f.active * ((f.latent or job.model.hidden) + (f.matrices - 1) * width / tensor)
        size = quantising_size(1, machine.activation_size, machine.gradients[EXPERTS].input_size)
        traffic = elementwise_bytes(shape.tokens, numbers, machine.elementwise, size)
        layer_pass.stream(GRADIENT_CASTS, layers, traffic, machine.bandwidth)


def collective_operator(
    collective_name: str, size: Quantity, exchange: Exchange, runs: tuple[int, int], share: Quantity
) -> Operator:
    """Return a collective of `size` bytes that the chip waits for by a share of its time."""
    with scope(collective_name):
        forward, backward = (exposed_time(exchange.time, count, share) for count in runs)
    return Operator(
        collective_name,
        forward,
        bytes=size,
        link=True,
        backward=backward,
        recompute_level=FULL,
        link_times=exchange.holds,
        exposed_share=share,
        runs=runs,
    )


def _tensor_collectives(
    layer_pass: Pass, job: TrainingJob, shape: MicroBatchShape, parts: int
) -> None:
    """Add all-gather and reduce-scatter before and after each part of a layer.

    They move the same bytes as two all-reduces a layer.
    """
    if np.all(np.asarray(shape.tensor) == 1):
        return
    collective_name, links = "tensor-parallel collectives", layer_pass.machine.links
    with scope(collective_name):
        size = message_bytes(layer_pass.shape.tokens, job.model.hidden, job.wide_size)
        share = exposed_share(shape.overlap, job.value("tensor_exposed"))
        exchange = all_gather(links, size, strided_group(links, 1, shape.tensor))
    layer_pass.operators.append(
        collective_operator(collective_name, size, exchange, (2 * parts, 2 * parts), share)
    )


def _context_ring(
    layer_pass: Pass, job: TrainingJob, shape: MicroBatchShape, a: Attention, layers: int
) -> None:
    """Add the exchange of keys and values around a group: once forward, twice backward."""
    if np.all(np.asarray(shape.context) == 1):
        return
    ring_name, links = "context-parallel ring", layer_pass.machine.links
    cached = a.cached if a.latent else keys_and_values(a, shape.tensor)
    with scope(ring_name):
        size = message_bytes(
            rank_tokens(shape.micro_batch, job.sequence, 1.0), cached, job.wide_size
        )
        exchange = all_gather(links, size, strided_group(links, shape.tensor, shape.context))
    layer_pass.operators.append(
        collective_operator(
            ring_name, size, exchange, (layers, 2 * layers), job.value("context_exposed")
        )
    )


def expert_group(links: Links, shape: MicroBatchShape) -> RankGroup:
    """Return the group that shares the experts of a layer.

    Ranks of tensor and context parallelism come first, then those of data parallelism.
    """
    inner = np.minimum(shape.expert, shape.tensor * shape.context)
    return group_product(
        strided_group(links, 1, inner),
        strided_group(links, shape.data_stride, shape.expert // inner),
    )


def _expert_exchanges(
    work: Work,
    layer_pass: Pass,
    job: TrainingJob,
    shape: MicroBatchShape,
    f: FeedForward,
    layers: int,
) -> None:
    """Add dispatch and combine of experts, inside a domain and across domains."""
    if np.all(np.asarray(shape.expert) == 1):
        return
    links = layer_pass.machine.links
    width = f.latent or job.model.hidden
    runs = (2 * layers, 2 * layers)
    rank_share = per_rank(work.tokens, shape.tensor)
    tokens = Tokens(rank_share, message_bytes(1, width, job.wide_size), f.active)
    size = message_bytes(rank_share, width, job.wide_size)
    exchange_name = "expert exchange in a domain"
    with scope(exchange_name):
        near = expert_exchange(links, tokens, RankGroup(shape.expert, 1, shape.expert, 1), "inside")
    layer_pass.operators.append(
        collective_operator(exchange_name, size, near, runs, job.value("expert_exposed_inside"))
    )
    exchange_name = "expert exchange across domains"
    with scope(exchange_name):
        far = expert_exchange(links, tokens, among(expert_group(links, shape)), "across")
    work.across.append(
        collective_operator(exchange_name, 0.0, far, runs, job.value("expert_exposed_across"))
    )
