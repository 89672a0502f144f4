"""Rents of one statistic and one publisher for all renters of a comparison.

A statistic is what a rent is of, such as contracts of one year. Rents of different statistics or
publishers do not compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.cost.ledger import CIRCULAR, COMMITMENTS, COMMITTED, RENTS
from tco.evaluation.chip_prices import chip_of
from tco.scenario.pricing import PUBLISHER

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import Evaluation

RENT_BOUND = "rent_bound"  # an upper bound, which is no rent to compare
# rent attribute of a chip -> commitment of a renter that asks for this rent alone
COMMITMENT_OF_RENT = {
    rent_attributes[0]: commitment
    for commitment, rent_attributes in COMMITMENTS.items()
    if commitment != COMMITTED
}


class RentStatistic(NamedTuple):
    """Statistic of a rent, and who publishes it."""

    rent_attribute: str  # of a chip, a key of `RENTS`
    publisher: str


def with_one_rent_statistic(
    evaluations: Sequence[Evaluation], refuse: bool = False, workload: bool = True
) -> list[Evaluation]:
    """Return evaluations in which all renters pay rents of one statistic and publisher.

    A chip without such a rent gets no cost, and its result says so. A rent that is set stays.

    Args:
        evaluations: Evaluations of renters and owners.
        refuse: Whether racks that do not fit their site are refused.
        workload: Whether a plan is searched; False asks for the cost of the chips only.

    Returns:
        Evaluations in the same order, the renters evaluated again where their rent differs.

    """
    common_statistic = _most_common_statistic(evaluations)
    if common_statistic is None:
        return list(evaluations)
    terms = {
        "terms.commitment": COMMITMENT_OF_RENT[common_statistic.rent_attribute],
        PUBLISHER: common_statistic.publisher,
    }
    return [
        evaluation
        if evaluation.result.rent in (None, common_statistic) or evaluation.saved
        else evaluation.with_settings(terms, refuse, workload)
        for evaluation in evaluations
    ]


def _most_common_statistic(evaluations: Sequence[Evaluation]) -> RentStatistic | None:
    """Return the statistic that most renters have a rent of; None where there is no rent.

    Of several such statistics the nearest to a contract counts, as `RENTS` orders them. Of several
    publishers of it the first by name counts, so that the order of the scenarios does not matter.
    """
    renter_counts = Counter(
        statistic for evaluation in evaluations for statistic in _rent_statistics(evaluation)
    )
    nearest_to_contract = list(RENTS)

    def preference(statistic: RentStatistic) -> tuple[int, int, str]:
        rank = nearest_to_contract.index(statistic.rent_attribute)
        return -renter_counts[statistic], rank, statistic.publisher

    return min(renter_counts, key=preference, default=None)


def _rent_statistics(evaluation: Evaluation) -> set[RentStatistic]:
    """Return the statistics of a renter's chip that his commitment allows."""
    scenario_result, catalogue = evaluation.result, evaluation.catalogue
    if scenario_result.rent is None:
        return set()
    chip = chip_of(catalogue, scenario_result)
    date = scenario_result.texts["terms.date"]
    statistics = set()
    for rent_attribute in COMMITMENTS[scenario_result.texts["terms.commitment"]]:
        if rent_attribute != RENT_BOUND and catalogue.has_part_value(chip, rent_attribute):
            rent = catalogue.part_input(chip, rent_attribute, date)
            if rent.source != CIRCULAR:
                statistics.add(RentStatistic(rent_attribute, rent.publisher))
    return statistics
