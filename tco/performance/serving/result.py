"""A serving workload on a machine: the plans chosen for both phases, and the rates they give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.fabric.links import Links
from tco.foundation.values import Values
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine, notes_on
from tco.performance.serving import phases
from tco.performance.serving.phases import PassResult
from tco.performance.serving.plans import CUTS, DecodePlan, PrefillPlan, attention_chips, borders_crossed, describe
from tco.performance.serving.requests import Request, notes_on_request, request_of
from tco.performance.serving.search import Choice, choose_decode, choose_prefill

if TYPE_CHECKING:
    from tco.performance.serving.axes import Axis


class ServingPlan(NamedTuple):
    """The plans of both phases."""

    decode: DecodePlan
    prefill: PrefillPlan


@dataclass(slots=True)
class ServingResult:
    """What the workload reaches, by metric name, and how."""

    plan: ServingPlan | None
    rates: dict[str, Any] = field(default_factory=dict)
    prefill_share: Any = None
    decode: PassResult | None = None
    prefill: PassResult | None = None
    choices: dict[str, Choice] = field(default_factory=dict)
    links: Links | None = None  # that the plans lie on
    reason: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def described(self) -> dict[str, Any]:
        """The decode plan in the names reports use."""
        return {} if self.plan is None or self.links is None else describe(self.plan.decode, self.links)

    @property
    def axes(self) -> list[Axis]:
        """Where the axes of the plans lie on the fabric."""
        from tco.performance.serving.axes import axes_of  # asked for by reports only

        if self.plan is None or self.links is None:
            return []
        plans = self.plan._asdict()
        return [axis for phase, made in self.phases().items() for axis in axes_of(phase, plans[phase], self.links, made)]

    @property
    def cuts(self) -> dict[str, float]:
        """Decode rate of the best plan by what lies across the domains of a world; empty where a world is one domain or nothing was searched."""
        found = self.choices.get("decode")
        if self.links is None or self.links.domain >= self.links.world or found is None or found.axes is None:
            return {}
        crossed = borders_crossed(found.axes, self.links)
        return {name: float(found.best[crossed == name].max(initial=0.0)) for name in ("nothing", *CUTS)}

    def phases(self) -> dict[str, PassResult]:
        """Return the phases that were evaluated."""
        return {name: made for name, made in (("decode", self.decode), ("prefill", self.prefill)) if made is not None}


def search_plans(machine: Machine, model: Architecture, request: Request, values: Values) -> dict[str, Choice]:
    """Search both phases' plans under the workload's targets."""
    return {
        "decode": choose_decode(machine, model, request, values["workload.interactivity"]),
        "prefill": choose_prefill(machine, model, request, values["workload.ttft"]),
    }


def serve(machine: Machine, model: Architecture, values: Values, plan: ServingPlan | None) -> ServingResult:
    """Evaluate a serving workload with a fixed plan, or with the best plan of a search."""
    if values.input("workload.concurrency").value > 0:
        return serve_together(machine, model, values, plan)
    request = request_of(values)
    notes = [*notes_on(machine), *notes_on_request(request)]
    prompt, answer = request.prompt, request.answer
    choices: dict[str, Choice] = {}
    if plan is None:
        choices = search_plans(machine, model, request, values)
        failed = {phase: choice.reason for phase, choice in choices.items() if choice.plan is None}
        if failed:
            reason = "; ".join(f"no {phase} plan: {why}" for phase, why in failed.items())
            return ServingResult(None, choices=choices, reason=reason, notes=notes)
        plan, decode, prefill = ServingPlan(choices["decode"].plan, choices["prefill"].plan), choices["decode"].made, choices["prefill"].made
    else:
        decode, prefill = phases.decode(machine, model, plan.decode, request), phases.prefill(machine, model, plan.prefill, request)
    made = phases.decode_rate(plan.decode.sequences, attention_chips(plan.decode), decode.per_token)
    read = phases.prefill_rate(prompt, attention_chips(plan.prefill), prefill.time)
    output = phases.output_rate(made, read, prompt, answer)
    rates = {
        "output_tokens_per_s_per_chip": output,
        "input_tokens_per_s_per_chip": phases.input_rate(output, prompt, answer),
        "tokens_per_s_per_user": phases.tokens_per_user(decode.per_token),
        "ttft_s": phases.time_to_first_token(prefill.time, decode.time),
        "tpot_s": decode.per_token,
    }
    share = phases.prefill_share(made, read, prompt, answer)
    return ServingResult(plan, rates, share, decode, prefill, choices, machine.links, notes=notes)


def serve_together(machine: Machine, model: Architecture, values: Values, plan: ServingPlan | None) -> ServingResult:
    """Evaluate a workload whose prompts and answers share the chips, at its requests in flight."""
    from tco.performance.serving import aggregated  # a workload on pools of their own starts without it

    request, choices = request_of(values), {}
    notes = [*notes_on(machine), *notes_on_request(request)]
    if plan is None:
        choices["decode"] = aggregated.choose(machine, model, request, values)
        chosen = choices["decode"].plan
        if chosen is None:
            return ServingResult(None, choices=choices, reason=f"no plan: {choices['decode'].reason}", notes=notes)
        plan = ServingPlan(chosen, aggregated.read_on(chosen))
    rates, decode, prefill = aggregated.evaluate(machine, model, plan.decode, request, values)
    share = rates.pop("prefill_share")
    return ServingResult(plan, rates, share, decode, prefill, choices, machine.links, notes=notes)
