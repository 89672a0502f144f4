"""All micro-batches of a step through the pipeline: its stages, what they pass on, and when they idle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.models.architecture import Architecture
from tco.performance.chip.messages import exposed_time
from tco.performance.training import schedule
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.micro_batch import MicroBatch, Way
from tco.performance.training.plans import Plan, slots_of
from tco.performance.training.traffic import hidden_bytes, hidden_traffic, sent, strided


class Pipe(NamedTuple):
    """All micro-batches through the pipeline."""

    time: Any
    micro_batches: Any
    stage: Any  # one micro-batch on an inner stage
    longest: Any  # on the stage with the output head
    transfer: Any
    bubble: Any
    links: dict[str, Any]  # by tier, over all micro-batches
    waits: dict[str, Any]


def hides(plan: Plan) -> bool:
    """Say whether a schedule has another micro-batch at hand to compute while one exchanges tokens between domains."""
    return plan.schedule in ("interleaved", "dual-pipe")


def way_of(plan: Plan, micro: MicroBatch) -> Way:
    """Return the times of a micro-batch in the schedule of a plan."""
    return (micro.hidden if hides(plan) else micro.added)[plan.recompute]


def slots(plan: Plan, model: Architecture) -> Any:
    """Layers a stage holds, over all its model parts."""
    return slots_of(model.layers, plan.pipeline * plan.interleave) * plan.interleave


def pipeline(job: Job, practice: Practice, plan: Plan, micro: MicroBatch) -> Pipe:
    """Return the time of all micro-batches through the pipeline."""
    model, layers = job.model, slots(plan, job.model)
    count = schedule.micro_batches(job.sequences, plan.data, plan.micro_batch)
    busy = way_of(plan, micro).time
    stage = schedule.stage_time(busy, layers, model.layers)
    spared = np.minimum(layers * plan.pipeline - model.layers, 1)
    longest = schedule.longest_stage(stage, micro.head, schedule.stage_time(busy, 1, model.layers), spared)
    if plan.schedule == "zero-bubble":
        bubble = schedule.zero_bubble(plan.pipeline, longest, schedule.stage_time(micro.weights, layers, model.layers))
    elif plan.schedule == "dual-pipe":
        backward, weights = (schedule.stage_time(time, layers, model.layers) for time in (micro.backward, micro.weights))
        bubble = schedule.dual_pipe_bubble(plan.pipeline, longest, backward, weights)
    else:
        bubble = schedule.pipeline_bubble(plan.pipeline, plan.interleave, longest)
    size = hidden_bytes(micro.tokens, model.hidden, plan.tensor, job.wide_size)
    stages = strided(practice.links, plan.tensor * plan.context * (1 + (plan.data - 1) * (1 - plan.order)), plan.pipeline)
    boundaries = 2 * plan.interleave * np.minimum(plan.pipeline - 1, 1)
    share = job.value("pipeline_exposed") if job.software.overlaps else 1.0  # older software waits for its transfers
    transfer = exposed_time(sent(practice.links, size, stages), boundaries, share)
    links, waits = (
        {tier: hidden_traffic(schedule.stage_time(time, layers, model.layers), count, 1) for tier, time in times[plan.recompute].items()}
        for times in (micro.links, micro.waits)
    )
    return Pipe(schedule.pipeline_time(count, longest, transfer, bubble), count, stage, longest, transfer, bubble, links, waits)
