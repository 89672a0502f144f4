"""Price of a whole chip that is priced from its parts, by the difference of two bills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tco.catalog.system_tree import load_system
from tco.core.inputs import DERIVED
from tco.core.provenance import Input

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.evaluation.scenario_function import Evaluation
    from tco.scenario.result import Result

PRICE_DIGITS = 6  # significant digits of a derived price, beyond which a difference is rounding


def chip_of(catalogue: Catalogue, scenario_result: Result) -> str:
    """Return the id of the chip of a result's system, or of a chip alone."""
    return load_system(catalogue, scenario_result.system).chip


def chip_parts_price(evaluation: Evaluation) -> Input | None:
    """Return the price of a chip's parts as an input, in USD.

    The price is the bill less a bill in which the chip costs nothing, over the number of chips.

    Args:
        evaluation: Evaluation of a scenario, which is evaluated again with a chip at 0 USD.

    Returns:
        Derived input; None where the chip has a price of its own, or without a bill.

    """
    scenario_result = evaluation.result
    path = f"parts.{chip_of(evaluation.catalogue, scenario_result)}.price"
    bill = scenario_result.bill
    if bill is None or path in scenario_result.inputs:
        return None
    bill_with_free_chips = (
        evaluation.function(refuse=False, workload=False).result({path: "0 USD"}).bill
    )
    chip_count = next(
        (float(line.quantity) for line in bill.lines if f"parts.{line.part}.price" == path), 0.0
    )
    if bill_with_free_chips is None or not chip_count:
        return None
    difference = float(bill.price - bill_with_free_chips.price)
    has_own_parts = any(
        part_input.overlay
        for input_path, part_input in scenario_result.inputs.items()
        if input_path.startswith("parts.")
    )
    return Input(
        path,
        float(f"{difference / chip_count:.{PRICE_DIGITS}g}"),
        "USD",
        kind="derived",
        source=DERIVED,
        overlay=has_own_parts,
    )
