"""How far each figure of performance is from the bound that takes most of its phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.chain.metrics import METRICS
from tco.chain.result import Result
from tco.performance.profile import Line

PHASES = {  # the figures a phase decides; those that are a time fall with it, the others grow
    "step": ("step_s", "mfu", "train_tokens_per_s"),
    "decode": ("tpot_s", "tokens_per_s_per_user", "output_tokens_per_s_per_chip"),
    "prefill": ("ttft_s", "input_tokens_per_s_per_chip"),
}


def floor_of(lines: Sequence[Line], bound: str) -> float:
    """Return the time the operators a bound binds would take at its peak."""
    return sum(line.ideal for line in lines if line.bound == bound and line.ideal is not None)


def figures(result: Result) -> list[dict[str, Any]]:
    """Return every figure of performance with the bound that takes most of its phase, and the gap to that bound alone."""
    found = []
    for phase, made in result.report.phases.items():
        shares, lines = made.shares, made.lines
        bound = max(shares, key=lambda name: shares[name])
        floor, whole = floor_of(lines, bound), float(made.time)
        gap = whole / floor if floor else None
        for metric in PHASES.get(phase, ()):
            value = result.metrics.get(metric)
            if value is None:
                continue
            at_bound = None if gap is None else value / gap if METRICS[metric].unit == "s" else value * gap
            found.append(
                {"metric": metric, "value": value, "phase": phase, "bound": bound, "bound_share": shares[bound], "at_bound": at_bound, "gap": gap}
            )
    return found
