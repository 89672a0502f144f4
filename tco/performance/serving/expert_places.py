"""What serving decodes with the experts inside one domain of a world, such as a rack, or spread over all of them."""

from __future__ import annotations

from tco.models.architecture import Architecture
from tco.performance.layer.machine import Machine
from tco.performance.serving.phases import decode, decode_rate
from tco.performance.serving.plans import PrefillPlan, attention_chips, layout_of
from tco.performance.serving.requests import Request
from tco.performance.serving.search import choose_decode, decode_axes

PLACES = ("one-domain", "whole-world")


def decode_rate_with_experts(machine: Machine, model: Architecture, request: Request, interactivity: float, place: str) -> tuple[float, str]:
    """Return the decode rate of the best plan within a world whose experts lie in a place, or zero and why there is none."""
    links, axes = machine.links, decode_axes(machine, model, request)
    lies = layout_of(axes, links)
    inside = lies.stage / (lies.replicas * lies.copies) <= links.domain  # the chips that experts are spread over
    wanted = (inside if place == PLACES[0] else ~inside) & (axes.chips <= links.world)
    kept = PrefillPlan(*(axis[wanted][:, None] for axis in axes))
    if not kept.chips.size:
        return 0.0, "no plan lays its experts so"
    choice = choose_decode(machine, model, request, interactivity, kept)
    if choice.plan is None:
        return 0.0, f"no decode plan: {choice.reason}"
    made = decode(machine, model, choice.plan, request)
    return float(decode_rate(choice.plan.sequences, attention_chips(choice.plan), made.per_token)), ""
