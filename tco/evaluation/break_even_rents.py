"""Break-even rents: below which rent an unpriced rack beats the cheapest priced rack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.system_tree import load_system
from tco.cost.ledger import COMMITMENTS, COMMITTED
from tco.cost.ownership import load_perspective
from tco.evaluation.chip_prices import chip_of
from tco.evaluation.rent_statistics import RENT_BOUND
from tco.evaluation.side_by_side import rated_by, speed_of
from tco.scenario.metrics import CHIP_HOUR

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import Evaluation
    from tco.scenario.result import Result

RENTER = "renter"  # perspective of whoever pays for hours
TRIAL_RENT = "1 USD/chip/h"
UTILISATION = "terms.utilisation"


class BreakEvenRent(NamedTuple):
    """Rent below which an unpriced rack does the work for less than the cheapest priced rack."""

    scenario: str
    against: str  # the rack whose work costs least
    tokens_per_s_per_user: float | None  # speed that the workload asks for
    usd_per_chip_hour: float  # below which its work costs less
    against_usd_per_chip_hour: float  # what the cheapest costs its owner, or its rent
    # more than its rent can be; none where nobody knows one
    upper_bound_usd_per_chip_hour: float | None
    against_basis: str | None  # what the cheapest is priced by
    lower_bound_usd_per_chip_hour: float | None  # less than its rent can be, or none
    utilisation: float  # share of the rented hours that the buyer uses, as of hours owned


def break_even_rents(evaluations: Sequence[Evaluation]) -> list[BreakEvenRent]:
    """Return the break-even rents of racks without a rent.

    Such a rack has no rent of the comparison's statistic, or its buyer cannot own it. A renter's
    payment is in proportion to the rent. At a trial rent of 1 USD per chip-hour the work of the
    rack costs `trial_cost`, so that at `cheapest_cost / trial_cost` it costs `cheapest_cost`.

    Args:
        evaluations: Evaluations of owners, or of renters under one statistic.

    Returns:
        Rents in USD per chip-hour against the rack of the cheapest work; empty where no rack has
        a cost of work.

    """
    metric = rated_by([evaluation.result for evaluation in evaluations])
    if metric is None:
        return []
    priced = [
        evaluation for evaluation in evaluations if evaluation.result.metrics[metric] is not None
    ]
    if not priced:
        return []
    cheapest = min(priced, key=lambda evaluation: evaluation.metric(metric))
    cheapest_cost = cheapest.metric(metric)
    rents = []
    for evaluation in evaluations:
        trial = _trial_result(evaluation)
        if trial is None or (trial_cost := trial.metrics[metric]) is None:
            continue
        lower_bound, upper_bound = _rent_bounds(evaluation)
        rents.append(
            BreakEvenRent(
                scenario=evaluation.result.scenario,
                against=cheapest.result.scenario,
                tokens_per_s_per_user=speed_of(evaluation.result),
                usd_per_chip_hour=cheapest_cost / trial_cost,
                against_usd_per_chip_hour=cheapest.metric(CHIP_HOUR),
                upper_bound_usd_per_chip_hour=upper_bound,
                against_basis=cheapest.result.basis,
                lower_bound_usd_per_chip_hour=lower_bound,
                utilisation=float(trial.inputs[UTILISATION].value),
            )
        )
    return rents


def _trial_result(evaluation: Evaluation) -> Result | None:
    """Evaluate an unpriced rack at the trial rent.

    The buyer uses the same share of hours, rented or owned.

    Returns:
        None for a rack with a price, and for one that its buyer may own.

    """
    scenario_result, catalogue = evaluation.result, evaluation.catalogue
    if not scenario_result.costless or evaluation.saved:
        return None
    perspective = load_perspective(catalogue, scenario_result.perspective)
    system = load_system(catalogue, scenario_result.system)
    if not perspective.rents and system.owner_pays in perspective.pays:
        return None
    commitment = scenario_result.texts.get("terms.commitment", COMMITTED)
    rent_attribute = COMMITMENTS[commitment][0]
    own_function = evaluation.function(refuse=False)
    utilisation = own_function.inputs({}).values().number(UTILISATION)
    settings = {
        f"parts.{system.chip}.{rent_attribute}": TRIAL_RENT,
        "terms.perspective": RENTER,
        UTILISATION: f"{utilisation!r}",
    }
    return own_function.result(settings)


def _rent_bounds(evaluation: Evaluation) -> tuple[float | None, float | None]:
    """Return the known lower and upper bound of a chip's rent, USD per chip-hour."""
    catalogue, scenario_result = evaluation.catalogue, evaluation.result
    chip = chip_of(catalogue, scenario_result)
    if not catalogue.has_part_value(chip, RENT_BOUND):
        return None, None
    bound = catalogue.part_input(chip, RENT_BOUND, scenario_result.texts["terms.date"])
    return bound.low, float(bound.value)
