"""A serving workload on a machine: the plans chosen for both phases, and the rates they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tco.fabric.links import Links
from tco.foundation.errors import DataError
from tco.foundation.values import Readable
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine, notes_on
from tco.performance.serving import phases
from tco.performance.serving.phases import PassResult
from tco.performance.serving.plans import CUTS, ServingPlan, attention_chips, borders_crossed, describe, plan_axes
from tco.performance.serving.requests import Request, notes_on_request, request_of
from tco.performance.serving.search import Choice, choose_decode, choose_prefill, choose_under_load

if TYPE_CHECKING:
    from tco.performance.serving.axes import Axis
    from tco.performance.serving.given import AxesGiven


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
    fits: Any = None  # whether the plan of every row fits memory, where rows are asked for
    notes: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Which way through the engine the answer took: the closed loop that measured points go through, or its limit."""
        if self.plan is not None and self.plan.engines is None:
            return "two pools in balance, the limit of the closed loop without queueing"
        return "the closed loop of requests in flight"

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
        plan, links = self.plan, self.links
        return [axis for phase, made in self.phases().items() for axis in axes_of(phase, getattr(plan, phase), links, made)]

    @property
    def cuts(self) -> dict[str, float]:
        """Decode rate of the best plan by what lies across the domains of a world; empty where a world is one domain or nothing was searched."""
        found = self.choices.get("decode")
        if self.links is None or self.links.domain >= self.links.world or found is None or found.axes is None:
            return {}
        crossed = borders_crossed(found.axes, self.links)
        return {name: float(found.best[crossed == name].max(initial=0.0)) for name in ("nothing", *CUTS)}

    @property
    def operators(self) -> dict[str, list[str]]:
        """The operators of each phase."""
        return {phase: list(dict.fromkeys(one.name for one in made.operators)) for phase, made in self.phases().items()}

    def phases(self) -> dict[str, PassResult]:
        """Return the phases that were evaluated."""
        return {name: made for name, made in (("decode", self.decode), ("prefill", self.prefill)) if made is not None}


def serve(machine: Machine, model: Architecture, values: Readable, plan: ServingPlan | Mapping[str, str] | None) -> ServingResult:
    """Evaluate a serving workload with a plan as an evaluation found it, with the axes of one that a user gives, or with the best of a search."""
    if isinstance(plan, ServingPlan):
        return evaluated(machine, model, values, plan)
    request, axes = request_of(values), None
    if plan is not None:
        from tco.performance.serving.given import axes_given  # most answers give no axes

        axes = axes_given(model, machine.links, plan)
    found = searched(machine, model, request, values, axes)
    if found.plan is None and plan is not None:
        raise DataError(f"--plan {','.join(f'{key}={text}' for key, text in plan.items())}: {found.reason}")
    found.notes = [*notes_on(machine), *notes_on_request(request)]
    return found


def searched(machine: Machine, model: Architecture, request: Request, values: Readable, axes: AxesGiven | None) -> ServingResult:
    """Search the plans of some axes, or all, under the workload's targets."""
    if values.exists("workload.concurrency"):
        every = plan_axes(model, machine.links, 0) if axes is None or axes.decode is None else axes.decode
        before, counts = None, (None, None) if axes is None else (axes.engines, axes.readers)
        if axes is not None and axes.readers is not None:
            ready = choose_prefill(machine, model, request, values["workload.ttft"], axes.prefill)
            if ready.plan is None:
                return ServingResult(None, choices={"prefill": ready}, reason=f"no prefill plan: {ready.reason}")
            before = ready.plan
        choice, found, made = choose_under_load(machine, model, request, values, every, before, counts)
        if found is None or made is None:
            return ServingResult(None, choices={"decode": choice}, reason=f"no plan: {choice.reason}")
        return ServingResult(found, made.rates, made.prefill_share, made.decode, made.prefill, {"decode": choice}, machine.links)
    decode_axes, prefill_axes, sequences = (None, None, None) if axes is None else (axes.decode, axes.prefill, axes.sequences)
    target = values["workload.interactivity"] if sequences is None else 0.0  # of a batch that is given, whatever it gives is the answer
    choices = {
        "decode": choose_decode(machine, model, request, target, decode_axes, sequences),
        "prefill": choose_prefill(machine, model, request, values["workload.ttft"], prefill_axes),
    }
    failed = {phase: choice.reason for phase, choice in choices.items() if choice.plan is None}
    if failed:
        return ServingResult(None, choices=choices, reason="; ".join(f"no {phase} plan: {why}" for phase, why in failed.items()))
    plan = ServingPlan(choices["decode"].plan, choices["prefill"].plan)
    return pooled(machine, plan, request, choices["decode"].made, choices["prefill"].made, choices)


def evaluated(machine: Machine, model: Architecture, values: Readable, plan: ServingPlan) -> ServingResult:
    """Evaluate a serving workload with a plan."""
    request = request_of(values)
    notes = [*notes_on(machine), *notes_on_request(request)]
    if plan.engines is not None:
        from tco.performance.serving.loaded import under_load  # pools in balance start without it

        made = under_load(machine, model, plan, request, values)
        found = ServingResult(plan, made.rates, made.prefill_share, made.decode, made.prefill, {}, machine.links, fits=made.fits)
    else:
        decode, prefill = phases.decode(machine, model, plan.decode, request), phases.prefill(machine, model, plan.prefill, request)
        found = pooled(machine, plan, request, decode, prefill, {})
    found.notes = notes
    return found


def pooled(
    machine: Machine, plan: ServingPlan, request: Request, decode: PassResult, prefill: PassResult, choices: dict[str, Choice]
) -> ServingResult:
    """Return what two pools give in the proportion the workload asks for: the limit of the closed loop in which none waits for the other."""
    prompt, answer = request.prompt, request.answer
    made = phases.decode_rate(plan.decode.sequences, attention_chips(plan.decode), decode.per_token)
    read = phases.prefill_rate(prompt, attention_chips(plan.prefill), prefill.per_prompt)
    output = phases.output_rate(made, read, prompt, answer)
    rates = {
        "output_tokens_per_s_per_chip": output,
        "input_tokens_per_s_per_chip": phases.input_rate(output, prompt, answer),
        "tokens_per_s_per_user": phases.tokens_per_user(decode.per_token),
        "ttft_s": phases.time_to_first_token(phases.reading_time(prefill.time, prefill.per_prompt), decode.time),
        "tpot_s": decode.per_token,
    }
    return ServingResult(plan, rates, phases.prefill_share(made, read, prompt, answer), decode, prefill, choices, machine.links)
