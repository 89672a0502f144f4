"""One micro-batch through all layers: its times by what is computed again, and the activations it keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.foundation.formula import formula, total
from tco.foundation.units import Byte, Pure, Second
from tco.performance.chip.roofline import added_beside
from tco.performance.layer.layers import parts_of
from tco.performance.layer.machine import Machine
from tco.performance.layer.operators import DENSE
from tco.performance.training.job import Job
from tco.performance.training.plans import Plan
from tco.performance.training.work import TIERS, Shape, Work, work_of

AGAIN = {"none": 0.0, "selective": 0.25, "full": 1.0}  # share of a forward pass's launches done again


@formula(unit="byte", source="korthikanti2022")
def layer_activations(
    tokens: Pure,
    wide: Pure,
    masked: Pure,
    wide_split: Pure,
    narrow: Pure,
    tensor_parallel: Pure,
    element_size: Byte,
    mask_size: Byte = 1,
    wide_inputs: Pure = 0,
    narrow_inputs: Pure = 0,
    input_size: Byte = 2,
) -> Any:
    """Activations layers keep of a micro-batch: T ((wide b + inputs b_in + masked b_mask) / sp + (narrow b + inputs b_in) / tp).

    Inputs of products are kept in the format these compute in. For a GPT layer in 16 bits wide = 4 h, masked = 2 h, narrow = 12 h:
    s b h (10 + 24/t), or 34 s b h / t with sequence parallelism.
    """
    whole = (wide * element_size + wide_inputs * input_size + masked * mask_size) / wide_split
    return tokens * (whole + (narrow * element_size + narrow_inputs * input_size) / tensor_parallel)


@formula(unit="byte", source="korthikanti2022")
def score_activations(
    tokens: Pure, sequence: Pure, heads: Pure, tensor_parallel: Pure, copies: Pure, masks: Pure, element_size: Byte, mask_size: Byte = 1
) -> Any:
    """Scores that unfused attention keeps: T s H / tp (copies b + masks b_mask); with dropout 5 a s^2 b / t bytes."""
    return tokens * sequence * heads / tensor_parallel * (copies * element_size + masks * mask_size)


@formula(unit="byte", source="korthikanti2022")
def held_activations(model_activations: Byte, slots: Pure, layers: Pure, in_flight: Pure) -> Any:
    """Activations the first stage holds: A slots / L x micro-batches in flight."""
    return model_activations * slots / layers * in_flight


@formula(unit="byte", source="tco-model")
def logits_bytes(tokens: Pure, vocabulary: Pure, logit_size: Byte = 4) -> Any:
    """Logits of a micro-batch in FP32: T V b."""
    return tokens * vocabulary * logit_size


@formula(unit="s", source="tco-model")
def host_time(
    blocks: Pure, block_time: Second, expert_blocks: Pure, expert_block_time: Second, experts: Pure, expert_time: Second, again: Pure, factor: Pure
) -> Any:
    """Time the host needs to launch a micro-batch through all layers: t = f (n t_b + n_e t_e + m t_1) (1 + r/3).

    m experts have kernels of their own, r is the share computed again.
    """
    return factor * (blocks * block_time + expert_blocks * expert_block_time + experts * expert_time) * (1 + again / 3)


class Way(NamedTuple):
    """Times of a micro-batch where exchanges between domains follow its compute, or hide behind another micro-batch."""

    exchange: Any  # what those exchanges add to the rest
    launches: Any  # what the host's floor adds to both
    time: Any  # with both


class MicroBatch(NamedTuple):
    """Times of one micro-batch through all layers, and what it keeps in memory; shared by all plans of a shape."""

    tokens: Any
    forward: Any
    backward: Any
    weights: Any
    head: Any
    added: dict[str, Way]  # by recomputation, exchanges following what is computed
    hidden: dict[str, Way]  # exchanges behind another micro-batch
    kept: dict[str, Any]  # activations of all layers
    logits: Any
    links: dict[str, dict[str, Any]]  # by recomputation and tier: how long collectives hold the links
    waits: dict[str, dict[str, Any]]  # for how long of that the chip waits


def shape_of(plan: Plan) -> Shape:
    """Return what the work of a micro-batch depends on."""
    return Shape(plan.tensor, plan.context, plan.expert, plan.micro_batch, data_stride(plan), plan.sequence_parallel, plan.overlap)


def data_stride(plan: Plan) -> Any:
    """Return the chips between neighbours of a data-parallel group: pipeline stages lie inside it in the second order."""
    return plan.tensor * plan.context * (1 + (plan.pipeline - 1) * plan.order)


def micro_batch(job: Job, machine: Machine, shape: Shape, work: Work | None = None) -> MicroBatch:
    """Return the times of a micro-batch."""
    work = work or work_of(job, machine, shape)
    sharpness = job.value("overlap_sharpness")
    forward, backward = work.forward(), work.backward()
    added, hidden, kept = {}, {}, {}
    links: dict[str, dict[str, Any]] = {}
    waits: dict[str, dict[str, Any]] = {}
    for level, (name, host) in enumerate(host_times(job, machine, shape).items()):
        alone = total("micro_batch", [forward, backward, *work.again(level)])
        added[name] = hidden[name] = way(alone, work.crossing(level) if work.across else None, host, sharpness)
        if work.across:
            hidden[name] = way(alone, added_beside(alone, added[name].exchange, sharpness), host, sharpness)
        kept[name] = kept_activations(job, machine, shape, work.tokens, name)
        by_tier = {tier: work.links(level, tier) for tier in TIERS}
        links[name] = {tier: held for tier, (held, _) in by_tier.items()}
        waits[name] = {tier: waited for tier, (_, waited) in by_tier.items()}
    logits = logits_bytes(work.tokens, job.model.vocabulary / shape.tensor)
    times = work.tokens, forward, backward, work.weights(), work.output()
    return MicroBatch(*times, added, hidden, kept, logits, links, waits)


def way(alone: Any, exchange: Any, host: Any, sharpness: Any) -> Way:
    """Return the times of a micro-batch to whose own an exchange, if any, adds so much."""
    time = alone if exchange is None else total("micro_batch_and_exchange", [alone, exchange])
    launches = added_beside(time, host, sharpness)
    return Way(0.0 if exchange is None else exchange, launches, total("micro_batch_and_launches", [time, launches]))


def kept_activations(job: Job, machine: Machine, shape: Shape, tokens: Any, recompute: str) -> Any:
    """Return the activations all layers keep of a micro-batch; what is computed again is held for one layer at a time."""
    hidden, split = job.model.hidden, shape.split
    masks = 1 if job.software.dropout else 0
    terms, layer = [], []
    for block in job.model.blocks:
        a, f = block.attention, block.feed_forward
        parts = parts_of([block._replace(layers=1)])
        width = f.active * f.width + f.shared_width if f.experts else f.width
        saved = a.q_rank + a.cached if a.latent else 0
        projected = 0 if a.latent else a.heads * a.qk_dim + a.kv_heads * (a.qk_dim + a.v_dim)
        outer = (f.matrices - 1) * width + (2 * block.mixer.projected if block.mixer else 0)
        wide, inner = parts * hidden + saved, width
        if recompute == "selective" and job.software.fused:  # norms and activation functions: their results are products' inputs
            inputs, inner = 0, 0
        else:
            inputs = parts * hidden
        inner += a.heads * a.v_dim + (f.active * hidden if f.experts else 0)
        kept = {"wide_inputs": inputs, "narrow_inputs": inner, "input_size": machine.operands[DENSE].input_size}
        whole = layer_activations(tokens, wide, parts * hidden * masks, split, projected + outer, shape.tensor, job.wide_size, **kept)
        scores = [score_activations(tokens, job.sequence, a.heads, shape.tensor, 1 + masks, masks, job.wide_size)]
        full = total("layer_activations", [whole, *([] if job.software.fused or not a.heads else scores)])
        if recompute == "full":
            layer.append(full)
            full = layer_activations(tokens, hidden, 0, split, 0, shape.tensor, job.wide_size)
        elif recompute == "selective" and not job.software.fused:
            layer.extend(scores)
            full = whole
        terms.append(held_activations(full, block.layers, 1, 1))
    return total("kept_activations", [*terms, *layer[:1]])


def host_times(job: Job, machine: Machine, shape: Shape) -> dict[str, Any]:
    """Return the time the host needs for a micro-batch through all layers, by recomputation."""
    if job.software.compiled:
        return dict.fromkeys(AGAIN, 0.0)
    sparse = sum(block.layers for block in job.model.blocks if block.feed_forward.experts)
    parts, block, routed = parts_of(job.model.blocks), job.value("host_block_time"), job.value("host_expert_block_time")
    own = sum(block.layers * block.feed_forward.experts for block in job.model.blocks) / shape.expert if job.software.separate_experts else 0
    times = (parts - sparse, block, sparse, block if job.software.fused_experts else routed, own, job.value("host_expert_time"))
    return {name: host_time(*times, again, machine.kernels.practice("host_factor")) for name, again in AGAIN.items()}
