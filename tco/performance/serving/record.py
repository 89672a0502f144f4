"""Result record of a serving workload: metrics, plans and phases.

It is apart from the engine that computes it, because the engine takes long to import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tco.core.trace import untraced_value
from tco.core.types import JsonMapping, JsonObject, Quantity
from tco.performance.deployment import deployed_rate
from tco.performance.profile import Report
from tco.performance.serving.plans import CUTS, ServingPlan, borders_crossed, decode_plan_document

if TYPE_CHECKING:
    from tco.fabric.links import Links
    from tco.performance.serving.axes import PlanAxis
    from tco.performance.serving.disaggregation import PoolBalance, WholeEngines
    from tco.performance.serving.passes import PassResult
    from tco.performance.serving.plan_choice import PlanChoice


@dataclass(slots=True)
class ServingResult:
    """Result of a serving workload: rates by metric name, plan and phases."""

    plan: ServingPlan | None
    rates: JsonObject = field(default_factory=dict)
    prefill_share: Any = None
    decode: PassResult | None = None
    prefill: PassResult | None = None
    choices: dict[str, PlanChoice] = field(default_factory=dict)
    links: Links | None = None  # that the plans lie on
    # of the ranks of their collectives for each other
    waits: JsonMapping = field(default_factory=dict)
    reason: str = ""
    fits: Any = None  # whether the plan of every row fits memory, where rows are asked for
    # memory that engines need with one sequence a group, where requests in flight are given
    needed: Quantity | None = None
    notes: list[str] = field(default_factory=list)
    balance: PoolBalance | None = None  # of a prefill and a decode pool in the best proportion
    # deployment efficiency of a plan that was chosen; none of a stated one
    deployed: Quantity | None = None

    @property
    def path(self) -> str:
        """Name the model's path: the closed loop that measured points take, or the steady state."""
        if self.plan is not None and self.plan.engines is None:
            return "steady state, prefill and decode on separate chips in the best proportion"
        return "a stated number of requests in flight"

    @property
    def described(self) -> JsonObject:
        """The decode plan in the names reports use."""
        return (
            {}
            if self.plan is None or self.links is None
            else decode_plan_document(self.plan.decode, self.links)
        )

    @property
    def axes(self) -> list[PlanAxis]:
        """Where the axes of the plans lie on the fabric."""
        from tco.performance.serving.axes import pass_communication_axes

        if self.plan is None or self.links is None:
            return []
        plan, links = self.plan, self.links
        return [
            axis
            for phase, phase_pass in self.phases().items()
            for axis in pass_communication_axes(
                phase, getattr(plan, phase), links, phase_pass, self.waits
            )
        ]

    @property
    def cuts(self) -> dict[str, float]:
        """Return the best decode rate by the axis that crosses domains.

        It is empty where the scale-up domain is one domain, or where nothing was searched.
        """
        decode_choice = self.choices.get("decode")
        if (
            self.links is None
            or self.links.domain >= self.links.world
            or decode_choice is None
            or decode_choice.axes is None
        ):
            return {}
        crossed = borders_crossed(decode_choice.axes, self.links)
        return {
            cut_name: float(decode_choice.best[crossed == cut_name].max(initial=0.0))
            for cut_name in ("nothing", *CUTS)
        }

    @property
    def standalone_engines(self) -> WholeEngines | None:
        """Return the best engines of both pools on one scale-up domain.

        It is None where nothing was searched or no two engines fit.
        """
        return None if self.links is None else self.on(int(self.links.world))

    def on(self, chips: int) -> WholeEngines | None:
        """Return the best numbers of engines of both pools on `chips`.

        It is None where nothing was searched or no two engines fit.
        """
        from tco.performance.serving.disaggregation import whole_engines  # only reports need it

        if self.balance is None or not self.choices:
            return None
        pools = whole_engines(self.choices["decode"], self.choices["prefill"], chips, self.balance)
        if pools is None or self.deployed is None:
            return pools
        reached = deployed_rate(
            pools.output_tokens_per_s_per_chip, float(untraced_value(self.deployed))
        )
        return pools._replace(output_tokens_per_s_per_chip=float(reached))

    @property
    def operators(self) -> dict[str, list[str]]:
        """The operators of each phase."""
        return {
            phase: list(dict.fromkeys(operator.name for operator in phase_pass.operators))
            for phase, phase_pass in self.phases().items()
        }

    def report(self, seconds: float, is_vectorised: bool) -> Report:
        """Return the report of the plan search and of the phase times.

        `seconds` is the time of the search. Where values were asked together (`is_vectorised`),
        phase times are left out: no phase has a single time.
        """
        choices = self.choices.values()
        search = {
            "plans": sum(choice.plans for choice in choices),
            "feasible": sum(choice.feasible for choice in choices),
            "seconds": seconds,
        }
        margin = self.choices["decode"].margin if "decode" in self.choices else None
        plan: JsonObject = dict(self.described)
        for phase in ("decode", "prefill") if self.plan is not None else ():
            axes = getattr(self.plan, phase)._asdict()
            plan[phase] = {
                axis_name: int(axis_value) if float(axis_value).is_integer() else float(axis_value)
                for axis_name, axis_value in axes.items()
            }
        return Report(plan, search, None, margin, {}, {} if is_vectorised else self.phases())

    def phases(self) -> dict[str, PassResult]:
        """Return the phases that were evaluated."""
        return {
            phase_name: phase_pass
            for phase_name, phase_pass in (("decode", self.decode), ("prefill", self.prefill))
            if phase_pass is not None
        }
