"""Renters side by side: one statistic of one publisher for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.system_tree import load_system
from tco.comparison.records import rated_by, speed_of
from tco.core.types import JsonMapping
from tco.cost.ledger import CIRCULAR, COMMITMENTS, COMMITTED, RENTS
from tco.cost.ownership import load_perspective
from tco.scenario.pricing import PUBLISHER

if TYPE_CHECKING:
    from tco.evaluation.evaluated_scenario import Evaluation

BOUND = "rent_bound"  # no statistic: nothing is held against it
# what a rent is called -> the commitment that asks for it
WORDS = {names[0]: words for words, names in COMMITMENTS.items() if words != COMMITTED}


def of_one_statistic(evaluations: Sequence[Evaluation], how: JsonMapping) -> list[Evaluation]:
    """Return renters that pay by one statistic of one publisher.

    The statistic is the rent that most chips have, and of several such rents the nearest to a
    contract. A chip without a rent by the statistic gets no cost, and its result says so. A rent
    that is set stands.

    Args:
        evaluations: Evaluations of renters and owners.
        how: Further keywords of `Evaluation.again`.

    Returns:
        Evaluations in the same order, the renters evaluated again where their rent differs.

    """
    known = Counter(
        pair for evaluation in evaluations for pair in {*rent_statistic_publishers(evaluation)}
    )
    if not known:
        return list(evaluations)
    ranks = list(RENTS)
    name, publisher = max(known, key=lambda pair: (known[pair], -ranks.index(pair[0])))
    said = {"terms.commitment": WORDS[name], PUBLISHER: publisher}
    renters = []
    for evaluation in evaluations:
        if evaluation.result.rent in (None, (name, publisher)) or evaluation.saved:
            renters.append(evaluation)
        else:
            renters.append(
                evaluation._replace(
                    settings={**evaluation.settings, **said}, result=evaluation.again(said, **how)
                )
            )
    return renters


def rent_statistic_publishers(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return every statistic and publisher by which the chips of a renter might be paid for, at the
    commitment he asks for.
    """
    rent, result = evaluation.result.rent, evaluation.result
    if rent is None:
        return []
    chip, date = next(iter(result.lines)).inputs[0].split(".")[1], result.texts["terms.date"]
    names = [
        name
        for name in COMMITMENTS[result.texts["terms.commitment"]]
        if name != BOUND and evaluation.catalogue.has_part_value(chip, name)
    ]
    rents = [(name, evaluation.catalogue.part_input(chip, name, date)) for name in names]
    return [
        (name, rent_input.publisher) for name, rent_input in rents if rent_input.source != CIRCULAR
    ]


class BreakEvenRent(NamedTuple):
    """The rent below which a rack that has none does the work for less than the cheapest
    renter's.
    """

    scenario: str
    against: str  # the renter whose work costs least
    tokens_per_s_per_user: float | None  # speed that the workload asks for
    usd_per_chip_hour: float  # below which its work costs less
    against_usd_per_chip_hour: float  # rent of the cheapest
    # more than its rent can be; none where nobody knows one
    upper_bound_usd_per_chip_hour: float | None


def break_even_rents(evaluations: Sequence[Evaluation]) -> list[BreakEvenRent]:
    """Return the break-even rents of racks without a rent.

    Such a rack has no rent of the comparison's statistic. Its work is priced at a trial rent of one
    dollar per chip-hour, because a renter's payment is in proportion to the rent.

    Args:
        evaluations: Evaluations of renters under one statistic.

    Returns:
        Rents in USD per chip-hour against the renter of the cheapest work; empty where no renter
        has a cost of work.

    """
    metric = rated_by([evaluation.result for evaluation in evaluations])
    priced = [
        evaluation
        for evaluation in evaluations
        if metric is not None
        and evaluation.result.rent is not None
        and evaluation.result.metrics[metric] is not None
    ]
    if not priced or metric is None:
        return []
    cheapest = min(priced, key=lambda evaluation: evaluation.metric(metric))
    rent = cheapest.result.inputs[cheapest.result.lines[0].inputs[0]].value
    rents = []
    for evaluation in evaluations:
        cost = trial_cost(evaluation, metric)
        if cost is not None:
            break_even = cheapest.metric(metric) / cost
            names = evaluation.result.scenario, cheapest.result.scenario
            rents.append(
                BreakEvenRent(
                    *names, speed_of(evaluation.result), break_even, rent, rent_bound_of(evaluation)
                )
            )
    return rents


def trial_cost(evaluation: Evaluation, metric: str) -> float | None:
    """Return the metric for an unpriced renter at 1 USD per chip-hour.

    None where the result has a cost, where the evaluation is saved, or where the
    perspective does not rent.
    """
    result = evaluation.result
    if (
        not result.costless
        or evaluation.saved
        or not load_perspective(evaluation.catalogue, result.perspective).rents
    ):
        return None
    chip = load_system(evaluation.catalogue, result.system).chip
    path = f"parts.{chip}.{COMMITMENTS[result.texts['terms.commitment']][0]}"
    cost: float | None = evaluation.again({path: "1 USD/chip/h"}, refuse=False).metrics[metric]
    return cost


def rent_bound_of(evaluation: Evaluation) -> float | None:
    """Return the known upper bound of the rent of a renter's chips, USD per chip-hour."""
    chip = load_system(evaluation.catalogue, evaluation.result.system).chip
    if not evaluation.catalogue.has_part_value(chip, BOUND):
        return None
    return float(
        evaluation.catalogue.part_input(chip, BOUND, evaluation.result.texts["terms.date"]).value
    )
