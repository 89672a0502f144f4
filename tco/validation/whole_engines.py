"""Whole engines, as a run may have had them that states no plan: each reads prompts and answers.

Engines lie inside one scale-up domain, without pipelines, and divide the chips of the run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tco.core.types import AnyArray
from tco.models.architecture import Architecture
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plan_choice import offered_axes
from tco.performance.serving.plans import DecodePlan, ServingPlan, as_prefill_plan


class Engines(NamedTuple):
    """Candidate engines, a value each."""

    size: AnyArray  # chips of an engine
    tensor: AnyArray  # chips that share a sequence's attention
    experts: AnyArray  # groups that the experts are spread over

    def plan(self, chips: AnyArray) -> ServingPlan:
        """Return the plans of runs on some chips, each all of its engines."""
        decode = DecodePlan(self.size, self.tensor, 1.0, 1.0, 0.0, 1.0, self.experts)
        return ServingPlan(decode, as_prefill_plan(decode), chips / self.size)


def engines_inside_domain(machine: Machine, model: Architecture) -> Engines:
    """Return the engines that a machine's serving software can lay inside one scale-up domain."""
    axes = offered_axes(machine, model, 0)
    size, tensor, stages, cut, experts = (
        np.ravel(axis)
        for axis in (
            axes.chips,
            axes.tensor_parallel,
            axes.pipeline_parallel,
            axes.cut,
            axes.expert_parallel,
        )
    )
    inside = (size <= machine.links.world) & (stages == 1) & (cut == 0)
    spread = np.where(experts > 0, experts, size)
    groups = spread if model.has_experts else np.ones_like(spread)
    return Engines(size[inside], tensor[inside], groups[inside])
