"""The price of a whole chip: given as one, or what the parts it is built up from come to, which a
price that is set stands for.
"""

from __future__ import annotations

from tco.catalog import Catalogue
from tco.core.inputs import DERIVED
from tco.core.provenance import Input
from tco.evaluation.evaluated_scenario import Evaluation
from tco.scenario.result import Result


def chip_of(catalogue: Catalogue, result: Result) -> str:
    """Return the id of a system's chip.

    Args:
        catalogue: Holds the systems.
        result: Result of the system, or of a chip alone, whose own id is returned.

    """
    return (
        str(catalogue.document("systems", result.system, "system")[1]["chip"])
        if result.bill
        else result.system
    )


def built_up(one: Evaluation) -> Input | None:
    """Return the price of a chip's parts as an input, in USD.

    The price is the difference per chip between the bill and a bill with parts that cost nothing.

    Args:
        one: Evaluation of a scenario, which is evaluated again with parts that cost nothing.

    Returns:
        Derived input; None where the chip has a price of its own, or without a bill.

    """
    path, bill = f"parts.{chip_of(one.catalogue, one.result)}.price", one.result.bill
    if bill is None or path in one.result.inputs:
        return None
    free = one.again({path: "0 USD"}, refuse=False, workload=False).bill
    count = next(
        (float(line.quantity) for line in bill.lines if f"parts.{line.part}.price" == path), 0.0
    )
    if free is None or not count:
        return None
    whole = float(f"{float(bill.price - free.price) / count:.6g}")
    own = any(
        given.overlay for name, given in one.result.inputs.items() if name.startswith("parts.")
    )
    return Input(path, whole, "USD", kind="derived", source=DERIVED, overlay=own)
