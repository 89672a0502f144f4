"""One micro-batch through all layers: its times by what is computed again, and the activations it keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.foundation.formula import total
from tco.performance.chip.roofline import added_beside
from tco.performance.training import memory
from tco.performance.training.items import TIERS, Shape, Work
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.plans import Plan
from tco.performance.training.work import host_times, parts_of, work_of


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


def micro_batch(job: Job, practice: Practice, shape: Shape, work: Work | None = None) -> MicroBatch:
    """Return the times of a micro-batch."""
    work = work or work_of(job, practice, shape)
    sharpness = job.value("overlap_sharpness")
    forward, backward = work.forward(), work.backward()
    added, hidden, kept = {}, {}, {}
    links: dict[str, dict[str, Any]] = {}
    waits: dict[str, dict[str, Any]] = {}
    for level, (name, host) in enumerate(host_times(job, practice, shape).items()):
        alone = total("micro_batch", [forward, backward, *work.again(level)])
        added[name] = hidden[name] = way(alone, work.crossing(level) if work.across else None, host, sharpness)
        if work.across:
            hidden[name] = way(alone, added_beside(alone, added[name].exchange, sharpness), host, sharpness)
        kept[name] = kept_activations(job, practice, shape, work.tokens, name)
        by_tier = {tier: work.links(level, tier) for tier in TIERS}
        links[name] = {tier: held for tier, (held, _) in by_tier.items()}
        waits[name] = {tier: waited for tier, (_, waited) in by_tier.items()}
    logits = memory.logits_bytes(work.tokens, job.model.vocabulary / shape.tensor)
    times = work.tokens, forward, backward, work.weights(), work.output()
    return MicroBatch(*times, added, hidden, kept, logits, links, waits)


def way(alone: Any, exchange: Any, host: Any, sharpness: Any) -> Way:
    """Return the times of a micro-batch to whose own an exchange, if any, adds so much."""
    time = alone if exchange is None else total("micro_batch_and_exchange", [alone, exchange])
    launches = added_beside(time, host, sharpness)
    return Way(0.0 if exchange is None else exchange, launches, total("micro_batch_and_launches", [time, launches]))


def kept_activations(job: Job, practice: Practice, shape: Shape, tokens: Any, recompute: str) -> Any:
    """Return the activations all layers keep of a micro-batch; what is computed again is held for one layer at a time."""
    hidden, split = job.model.hidden, 1 + (shape.tensor - 1) * shape.sequence_parallel
    masks = 1 if job.software.dropout else 0
    terms, layer = [], []
    for block in job.model.blocks:
        a, f = block.attention, block.feed_forward
        parts = parts_of(block)
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
        kept = {"wide_inputs": inputs, "narrow_inputs": inner, "input_size": practice.forward.made.input_size}
        whole = memory.layer_activations(tokens, wide, parts * hidden * masks, split, projected + outer, shape.tensor, job.wide_size, **kept)
        scores = [memory.score_activations(tokens, job.sequence, a.heads, shape.tensor, 1 + masks, masks, job.wide_size)]
        full = total("layer_activations", [whole, *([] if job.software.fused or not a.heads else scores)])
        if recompute == "full":
            layer.append(full)
            full = memory.layer_activations(tokens, hidden, 0, split, 0, shape.tensor, job.wide_size)
        elif recompute == "selective" and not job.software.fused:
            layer.extend(scores)
            full = whole
        terms.append(memory.held_activations(full, block.layers, 1, 1))
    return total("kept_activations", [*terms, *layer[:1]])
