"""Result record of a serving workload: metrics, plans and phases.

The functions that fill it are in `tco.performance.serving.result`, which takes long to import.
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

    plan: ServingPlan | None  # None where no plan meets the targets
    rates: JsonObject = field(default_factory=dict)
    prefill_share: Any = None  # of the chips; of the time, where the same chips prefill and decode
    decode: PassResult | None = None
    prefill: PassResult | None = None
    choices: dict[str, PlanChoice] = field(default_factory=dict)  # by phase, if plans were searched
    links: Links | None = None  # of the chips
    waits: JsonMapping = field(default_factory=dict)  # s by parameter, as in `Machine`
    reason: str = ""  # why there is no plan
    # for engines in a closed loop, else None:
    fits: Any = None  # whether the plan fits memory; an array for many plans
    needed: Quantity | None = None  # bytes of a chip with one sequence per attention group
    notes: list[str] = field(default_factory=list)
    balance: PoolBalance | None = None  # of a prefill and a decode pool in the best proportion
    deployed: Quantity | None = None  # deployment efficiency of a chosen plan

    @property
    def path(self) -> str:
        """Name the model's path: the closed loop that measured points take, or the steady state."""
        if self.plan is not None and self.plan.engines is None:
            return "steady state, prefill and decode on separate chips in the best proportion"
        return "a stated number of requests in flight"

    @property
    def described(self) -> JsonObject:
        """Decode plan by the names that reports use; empty without a plan."""
        if self.plan is None or self.links is None:
            return {}
        return decode_plan_document(self.plan.decode, self.links)

    @property
    def axes(self) -> list[PlanAxis]:
        """Axes of the plans that communicate, with the part of the fabric that each spans."""
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
        """Best decode rate by the axis that crosses domains.

        It is empty if the whole scale-up domain is one domain, or if no plans were searched.
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
        """Best engines of both pools on one scale-up domain.

        None if no plans were searched, or no two engines fit.
        """
        return None if self.links is None else self.on(int(self.links.world))

    def on(self, chips: int) -> WholeEngines | None:
        """Return the best numbers of engines of both pools on `chips`.

        None if no plans were searched, or no two engines fit.
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
