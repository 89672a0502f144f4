"""The axes of a chosen plan on the fabric: chips, domains, hops, and bytes of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tco.core.types import JsonMapping
from tco.fabric.links import Links, RankGroup, hops_between, rank_group
from tco.performance.layer.operators import waited_for
from tco.performance.serving.passes import STAGE_TRANSFER, PassResult
from tco.performance.serving.plans import DecodePlan, PrefillPlan, layout_of

COLLECTIVES = {  # operators that serve an axis
    "tensor": ("all-reduce",),
    "context": ("context sums", "context gather"),
    "experts": ("dispatch", "combine"),
    "expert parts": ("expert all-reduce",),
    "stages": (STAGE_TRANSFER,),
}


class PlanAxis(NamedTuple):
    """An axis of a plan: its ranks, domains and mean hops, and a step's bytes and time per chip."""

    phase: str
    name: str
    ranks: int
    domains: int
    hops: float | None  # none through the scale-out network
    bytes: float
    time_s: float
    wait_s: float = 0.0  # of it, until the last rank of each collective has come


WAITS = {
    "experts": "exchange_wait",
    "tensor": "collective_wait",
    "context": "collective_wait",
    "expert parts": "collective_wait",
}


def _serving_axis_groups(plan: DecodePlan | PrefillPlan, links: Links) -> dict[str, RankGroup]:
    """Return the group of every axis of a plan."""
    lies = layout_of(plan, links)
    tensor = float(plan.tensor_parallel)
    context = float(plan.context_parallel)
    # in decode the chips that split a sequence join its all-reduce
    joint = tensor * (context if isinstance(plan, DecodePlan) else 1.0)
    near = rank_group(links, joint)
    across = float(lies.domains) if lies.crossing else float(near.domains)
    context_domains = (
        float(lies.domains)
        if lies.crossing
        else min(float(rank_group(links, tensor * context).domains), context)
    )
    experts = float(lies.stage / (lies.replicas * lies.copies))
    return {
        "tensor": RankGroup(joint, across, joint / across),
        "context": RankGroup(context, context_domains, context / context_domains),
        "experts": rank_group(links, experts),
        "expert parts": RankGroup(float(lies.copies), float(lies.copies), 1.0),
        "stages": _stage_group(links, float(plan.chips), float(plan.pipeline_parallel)),
    }


def _stage_group(links: Links, chips: float, stages: float) -> RankGroup:
    domains = min(float(np.ceil(chips / links.domain)), stages)
    return RankGroup(stages, domains, stages / domains, float(np.ceil(chips / links.world)))


def pass_communication_axes(
    phase: str,
    plan: DecodePlan | PrefillPlan,
    links: Links,
    pass_result: PassResult,
    waits: JsonMapping | None = None,
) -> list[PlanAxis]:
    """Return the axes of a pass along which chips communicate.

    `waits` say how long their ranks wait for each other.
    """
    plan_axes = []
    for axis_name, group in _serving_axis_groups(plan, links).items():
        parts = [
            operator
            for operator in pass_result.operators
            if operator.name in COLLECTIVES[axis_name] and float(operator.time) > 0
        ]
        if not parts:
            continue
        bytes_moved = sum(float(operator.bytes) * float(operator.layers) for operator in parts)
        hops = hops_between(links, group)
        time = sum(float(operator.time) for operator in parts)
        waiting = 0.0
        if waits and axis_name in WAITS:
            once = float(waited_for(0.0, waits, WAITS[axis_name], group.ranks, links.world))
            waiting = min(once * sum(float(operator.layers) for operator in parts), time)
        plan_axes.append(
            PlanAxis(
                phase,
                axis_name,
                int(group.ranks),
                int(group.domains),
                hops,
                bytes_moved,
                time,
                waiting,
            )
        )
    return plan_axes
