"""How right the ranges are: the table, rows and document of `tco validate --back-test`."""

from __future__ import annotations

from typing import Any

from tco.outputs.table import Table
from tco.studies.validation.back_test import DRAWS, BackTest, Tested

FIGURES = ("rows", "inside", "below", "above", "median_width", "inside_by_parameters_alone")
COLUMNS = ("chip", *FIGURES)
EVERY = "all"
EXPECTED = 0.8  # the share between P10 and P90 were belief and measurement of one distribution


def back_test_rows(found: BackTest) -> list[list[Any]]:
    """Return a row for each chip, and one for all."""
    return [[name, *one] for name, one in [*found.chips.items(), (EVERY, found.every)]]


def back_test_document(path: str, found: BackTest) -> dict[str, Any]:
    """Return the content of the JSON document."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in back_test_rows(found)]
    return {"file": path, "kind": found.kind, "draws": DRAWS, "expected_inside": EXPECTED, "chips": rows[:-1], "summary": rows[-1]}


def back_test_table(name: str, found: BackTest) -> Table:
    """Return a line for each chip, and one for all."""
    rows = [cells(chip, one) for chip, one in [*found.chips.items(), (EVERY, found.every)]]
    columns = ("chip taken as unmeasured", "rows", "inside P10-P90", "below", "above", "P90/P10", "by parameters alone")
    below = [
        f"Parameters of practice from refits without the chip, within their ranges, and how far single rows of other chips lie off; {DRAWS} draws.",
        f"{EXPECTED * 100:.0f} % inside would be exact. By parameters alone: had single rows no causes of their own.",
    ]
    return Table(columns, rows, f"{name}: are the ranges right?", [], below)


def cells(name: str, one: Tested) -> list[str]:
    """Return the line of some chips."""
    shares = [f"{share * 100:.0f} %" for share in (one.inside, one.below, one.above)]
    return [name, f"{one.rows:,}", *shares, f"{one.width:.2f}", f"{one.alone * 100:.0f} %"]
