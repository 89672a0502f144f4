"""Where the axes of a training plan lie on the fabric: chips, domains, devices on the way, and what a step moves along each."""

from __future__ import annotations

from tco.fabric.links import Group, Links
from tco.performance.profile import Line
from tco.performance.serving.axes import Axis
from tco.performance.training.items import Work
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.micro_batch import data_stride
from tco.performance.training.pipe import Pipe, slots
from tco.performance.training.plans import Plan
from tco.performance.training.step import shards
from tco.performance.training.traffic import hidden_bytes, joined, parameter_bytes, strided

LINES = {  # of a step that an axis takes, and the items whose bytes it moves in every micro-batch
    "tensor": ("tensor-parallel collectives",),
    "context": ("context-parallel ring",),
    "experts": ("expert exchange in a domain", "expert exchange across domains"),
    "pipeline": ("pipeline transfers",),
    "data": ("sharded weights and gradients", "gradients and weights at the end"),
}


def groups_of(links: Links, plan: Plan) -> dict[str, Group]:
    """Return how the group of every axis lies on domains."""
    inner = plan.tensor * plan.context
    near = min(plan.expert, inner)
    return {
        "tensor": strided(links, 1, plan.tensor),
        "context": strided(links, plan.tensor, plan.context),
        "experts": joined(strided(links, 1, near), strided(links, data_stride(plan), plan.expert // near)),
        "pipeline": strided(links, inner * (1 + (plan.data - 1) * (1 - plan.order)), plan.pipeline),
        "data": strided(links, data_stride(plan), plan.data),
    }


def axes_of(job: Job, practice: Practice, plan: Plan, pipe: Pipe, work: Work, lines: list[Line]) -> list[Axis]:
    """Return the axes of a plan along which chips exchange anything; hops are those inside a domain, none where it is left."""
    links, held = practice.links, float(slots(plan, job.model))
    count = float(pipe.micro_batches)
    parameters = sum(float(parameter_bytes(shard.parameters, job.wide_size)) for shard in shards(job, links, plan))
    moved = {
        "pipeline": float(hidden_bytes(work.tokens, job.model.hidden, plan.tensor, job.wide_size)) * 2 * plan.interleave * count,
        "data": parameters * {3: (2 if job.software.adapters else 3) * count, 2: count + 1}.get(plan.zero, 2),
    }
    found = []
    for name, place in groups_of(links, plan).items():
        time = sum(line.time for line in lines if line.name in LINES[name])
        if not time:
            continue
        items = [item for item in (*work.items, *work.across) if item.name in LINES[name]]
        each = sum(float(item.size) * sum(item.counts) for item in items) * count * held / job.model.layers
        hops = float(links.hops) if place.domains == 1 else None
        found.append(Axis("step", name, int(place.ranks), int(place.domains), hops, moved.get(name, each), time))
    return found
