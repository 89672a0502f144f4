"""Draws of a scenario whose rates are stated: its metrics as arithmetic, cached by structure."""

from __future__ import annotations

from collections.abc import Sequence

from tco.compile.lower import ArithmeticKernel
from tco.scenario.compiled import METRIC
from tco.scenario.metrics import METRICS
from tco.scenario.served_draws import MetricArithmetic, Trace


def stated_arithmetic(trace: Trace, drawn: Sequence[str]) -> MetricArithmetic:
    """Return the arithmetic of groups of draws that choose no plan.

    Args:
        trace: Gives the program of each group, and the places of its results there.
        drawn: Paths of the inputs that stay leaves.

    """
    traced = trace()
    program = traced[0][0].program
    steps = [
        {metric: step_names[METRIC + metric] for metric in METRICS if METRIC + metric in step_names}
        for _, step_names in traced
    ]
    requested = {step for metric_steps in steps for step in metric_steps.values()}
    full = ArithmeticKernel(program, drawn, {}, (), requested)
    kernel, place_of = full.pruned([full.made[step] for step in requested])
    metrics = [
        {metric: place_of[full.made[step]] for metric, step in metric_steps.items()}
        for metric_steps in steps
    ]
    return MetricArithmetic([*range(len(traced))], 0, [], [], [], [], metrics, kernel)
