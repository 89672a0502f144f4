"""Prices of a whole chip: built up from its parts, and rents by one statistic of one publisher.

Renters side by side pay by one statistic, so that their costs compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.system_tree import load_system
from tco.core.inputs import DERIVED
from tco.core.provenance import Input
from tco.cost.ledger import CIRCULAR, COMMITMENTS, COMMITTED, RENTS
from tco.cost.ownership import load_perspective
from tco.evaluation.side_by_side import rated_by, speed_of
from tco.scenario.metrics import CHIP_HOUR
from tco.scenario.pricing import PUBLISHER

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.evaluation.scenario_function import Evaluation
    from tco.scenario.result import Result

RENTER = "renter"  # perspective of whoever pays for hours
BOUND = "rent_bound"  # an upper bound, which no rent is compared with
# commitment that asks for a rent, by the name of the rent
COMMITMENT_OF_RENT = {
    rent_names[0]: commitment
    for commitment, rent_names in COMMITMENTS.items()
    if commitment != COMMITTED
}


def chip_of(catalogue: Catalogue, scenario_result: Result) -> str:
    """Return the id of the chip of a result's system, or of a chip alone."""
    return load_system(catalogue, scenario_result.system).chip


def chip_parts_price(evaluation: Evaluation) -> Input | None:
    """Return the price of a chip's parts as an input, in USD.

    The price is the difference per chip between the bill and a bill with parts that cost nothing.

    Args:
        evaluation: Evaluation of a scenario, which is evaluated again with parts that cost nothing.

    Returns:
        Derived input; None where the chip has a price of its own, or without a bill.

    """
    scenario_result = evaluation.result
    path = f"parts.{chip_of(evaluation.catalogue, scenario_result)}.price"
    bill = scenario_result.bill
    if bill is None or path in scenario_result.inputs:
        return None
    free = evaluation.function(refuse=False, workload=False).result({path: "0 USD"}).bill
    counts = (float(line.quantity) for line in bill.lines if f"parts.{line.part}.price" == path)
    count = next(counts, 0.0)
    if free is None or not count:
        return None
    price = float(f"{float(bill.price - free.price) / count:.6g}")
    is_overlaid = any(
        stated.overlay
        for input_path, stated in scenario_result.inputs.items()
        if input_path.startswith("parts.")
    )
    return Input(path, price, "USD", kind="derived", source=DERIVED, overlay=is_overlaid)


# ---------------------------------------------------------------- rents
def with_one_rent_statistic(
    evaluations: Sequence[Evaluation], refuse: bool = False, workload: bool = True
) -> list[Evaluation]:
    """Return renters that pay by one statistic of one publisher.

    The statistic is the rent that most chips have, and of several such rents the nearest to a
    contract. A chip without a rent by the statistic gets no cost, and its result says so. A rent
    that is set stands.

    Args:
        evaluations: Evaluations of renters and owners.
        refuse: Whether racks that do not fit their site are refused.
        workload: Whether a plan is searched; False asks for the cost of the chips only.

    Returns:
        Evaluations in the same order, the renters evaluated again where their rent differs.

    """
    counts = Counter(pair for evaluation in evaluations for pair in {*_rent_statistics(evaluation)})
    if not counts:
        return list(evaluations)
    ranks = list(RENTS)
    rent_name, publisher = max(counts, key=lambda pair: (counts[pair], -ranks.index(pair[0])))
    terms = {"terms.commitment": COMMITMENT_OF_RENT[rent_name], PUBLISHER: publisher}
    return [
        evaluation
        if evaluation.result.rent in (None, (rent_name, publisher)) or evaluation.saved
        else evaluation.with_settings(terms, refuse, workload)
        for evaluation in evaluations
    ]


def _rent_statistics(evaluation: Evaluation) -> list[tuple[str, str]]:
    """List statistic and publisher of each rent of a renter's chips, at his commitment."""
    scenario_result, catalogue = evaluation.result, evaluation.catalogue
    if scenario_result.rent is None:
        return []
    chip = next(iter(scenario_result.lines)).inputs[0].split(".")[1]
    date = scenario_result.texts["terms.date"]
    rents = [
        (rent_name, catalogue.part_input(chip, rent_name, date))
        for rent_name in COMMITMENTS[scenario_result.texts["terms.commitment"]]
        if rent_name != BOUND and catalogue.has_part_value(chip, rent_name)
    ]
    return [(rent_name, rent.publisher) for rent_name, rent in rents if rent.source != CIRCULAR]


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


def break_even_rents(evaluations: Sequence[Evaluation]) -> list[BreakEvenRent]:
    """Return the break-even rents of racks without a rent.

    Such a rack has no rent of the comparison's statistic, or its buyer cannot own it. Its work is
    priced at a trial rent of one dollar per chip-hour, because a renter's payment is in proportion
    to the rent.

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
    return [
        BreakEvenRent(
            evaluation.result.scenario,
            cheapest.result.scenario,
            speed_of(evaluation.result),
            cheapest.metric(metric) / cost,
            cheapest.metric(CHIP_HOUR),
            _rent_bound(evaluation),
            cheapest.result.basis,
        )
        for evaluation in evaluations
        if (cost := _trial_cost(evaluation, metric)) is not None
    ]


def _trial_cost(evaluation: Evaluation, metric: str) -> float | None:
    """Evaluate a metric of an unpriced rack at a rent of 1 USD per chip-hour.

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
    rent = COMMITMENTS[scenario_result.texts.get("terms.commitment", COMMITTED)][0]
    settings = {f"parts.{system.chip}.{rent}": "1 USD/chip/h", "terms.perspective": RENTER}
    cost: float | None = evaluation.function(refuse=False).result(settings).metrics[metric]
    return cost


def _rent_bound(evaluation: Evaluation) -> float | None:
    """Return the known upper bound of a renter's rent, USD per chip-hour."""
    catalogue, scenario_result = evaluation.catalogue, evaluation.result
    chip = chip_of(catalogue, scenario_result)
    if not catalogue.has_part_value(chip, BOUND):
        return None
    return float(catalogue.part_input(chip, BOUND, scenario_result.texts["terms.date"]).value)
