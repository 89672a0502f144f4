"""Efficiency of long training runs relative to the best plan.

A search weighs millions of plans under a model of the cluster. Operators take plans that their
framework offers and their cluster has run. The efficiency applies to a plan that the program chose.
A plan stated by a user, or of a measured row, is taken as stated. Failures, restarts and flaps are
no part of the efficiency: goodput counts them. Stragglers in measured steps are part of every step.
"""

from __future__ import annotations

from tco.core.elementwise import elementwise_minimum, log2
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import Pure, Second
from tco.performance.training.job import TrainingJob
from tco.performance.training.plans import TrainingPlan


@formula("", source="tco-calibration")
def long_run_efficiency(rate: Pure, decline: Pure, chips: Pure, reference: Pure = 1024) -> Quantity:
    """Rate of plans in long runs relative to the best plan: e = min(x (1 - d)^log2(n / 1024), 1).

    Args:
        rate: The same at 1,024 chips.
        decline: Share of it that each doubling of the chips takes.
        chips: Chips of the job.
        reference: Chips at which `rate` holds.

    Returns:
        A share of the best plan's rate, fitted to runs of 512 to 16,384 chips
        (`tco.validation.long_runs`); beyond them it is extrapolated.

    """
    return elementwise_minimum(rate * (1 - decline) ** log2(chips / reference), 1.0)


@formula("s")
def deployed_step(step: Second, efficiency: Pure) -> Quantity:
    """Time of a step on a plan that operators run in place of the best one: t = t_best / e."""
    return step / efficiency


def deployed_time(job: TrainingJob, plan: TrainingPlan, step: Quantity) -> Quantity:
    """Return the time of a step, longer for a deployed job whose plan the program chose."""
    if not (plan.chosen and job.deployed):
        return step
    return deployed_step(
        step,
        long_run_efficiency(job.value("long_run_rate"), job.value("long_run_decline"), job.chips),
    )
