"""The sheet of the structure, which is locked: the plan, the choices, and the counts that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tco.chain.result import Result
from tco.chain.structure import plain_plan
from tco.outputs.explanation import structure_document
from tco.outputs.workbook.grids import VALUES
from tco.outputs.workbook.sheets import Workbook, number_format

SHEET = "Structure"
HELD = (
    "Locked: what is decided here is held while inputs move. Another plan, system, model or algorithm needs the program: run tco again "
    "(the command is on the sheet Read me)."
)


PARTS = ("system", "variant", "documents", "texts", "plan", "alternatives", "choices", "decided by")  # in which what is decided is told


def flat(found: Any, lead: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what lies in nested tables under joined names; a list as one text."""
    if isinstance(found, Mapping):
        for name, inner in found.items():
            yield from flat(inner, f"{lead}/{name}" if lead else str(name))
    elif isinstance(found, (list, tuple)):
        yield lead, ", ".join(map(str, found))
    elif found is not None:
        yield lead, found


def decided(result: Result) -> dict[str, Any]:
    """Return all that is decided of a result, by name: its documents and texts, its plan, its choices, and what they were decided by."""
    document: dict[str, Any] = structure_document(result.structure) or {}
    origin = result.origin
    variant, documents = (origin.variant, origin.documents) if origin else ({}, {})
    told = [result.system, variant, documents, result.texts, plain_plan(result.plan), *map(document.get, ("alternatives", "choices", "rests_on"))]
    return dict(flat(dict(zip(PARTS, told, strict=True))))


def write_choices(book: Workbook) -> int:
    """Write the plan and the choices, and return the row at which the head of the counts stands."""
    book.text(SHEET, 0, 0, "Structure", "title")
    book.text(SHEET, 1, 0, HELD, "subtitle")
    for column, head in enumerate(("decided", "", "", *(result.scenario for result in book.results))):
        book.text(SHEET, 2, column, head, "head" if column >= VALUES else "head-text")
    found = [decided(result) for result in book.results]
    row = 3
    for name in sorted(dict.fromkeys(name for one in found for name in one), key=lambda name: PARTS.index(name.partition("/")[0])):
        book.text(SHEET, row, 0, name)
        for scenario, one in enumerate(found):
            value = one.get(name)
            if isinstance(value, bool):
                book.text(SHEET, row, VALUES + scenario, "yes" if value else "no", "fixed-text")
            elif isinstance(value, (int, float)):
                book.number(SHEET, row, VALUES + scenario, value, "fixed", number_format("", value))
            elif value is not None:
                book.text(SHEET, row, VALUES + scenario, value, "fixed-text")
        row += 1
    book.text(SHEET, row + 1, 0, "Counts and constants", "section")
    return row + 2


def lock(book: Workbook) -> None:
    """Lock the sheet, without a password: against slips, not against anybody."""
    book.sheets[SHEET].protect("", {"format_columns": True, "format_rows": True, "select_locked_cells": True})
