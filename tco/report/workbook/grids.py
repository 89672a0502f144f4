"""Grids: a row for each quantity of the trace, a column for each scenario; above that of counts
what was decided: plan and choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tco.core.trace import STRUCTURE
from tco.core.types import JsonObject
from tco.report.explanation import STRUCTURE_TITLE, node_equation, structure_document
from tco.report.workbook.cells import SheetRow
from tco.report.workbook.sheets import Workbook, number_format
from tco.scenario.result import Result
from tco.scenario.structure import plain_plan

TOP = 2  # rows above the head
VALUES = 3  # first column of values, after place, name and unit
TITLES = {
    "Cost": "Parts, networks, rebates, site, upkeep and finance, down to dollars a chip-hour.",
    "Performance": "Operators, collectives and phases on the plan of the Structure sheet, down to "
    "tokens a second.",
}
# by the first word of an id; what is none of these is a cost
SHEET_OF = {
    "serving": "Performance",
    "training": "Performance",
}


def assign_grid_cells(book: Workbook, sheet: str, top: int, rows: Sequence[SheetRow]) -> None:
    """Give rows their cells below the head that stands at `top`."""
    book.grids[sheet] = (top, rows)
    for row_index, row in enumerate(rows, top + 1):
        for scenario in row.nodes:
            book.where.setdefault((scenario, row.node.id), (sheet, row_index, VALUES + scenario))


def place_derived(book: Workbook) -> None:
    """Give every derived quantity that has no cell yet one on the sheet it belongs to."""
    for sheet in TITLES:
        sheet_rows = [
            row
            for row in book.content.derived
            if SHEET_OF.get(row.node.id.partition("/")[0], "Cost") == sheet
        ]
        assign_grid_cells(
            book,
            sheet,
            TOP,
            [
                row
                for row in sheet_rows
                if any(
                    (scenario_index, row.node.id) not in book.where for scenario_index in row.nodes
                )
            ],
        )


def write_grid_sheets(book: Workbook) -> None:
    """Write every grid at its place, and the titles of the sheets that hold nothing else."""
    for sheet, (top, rows) in book.grids.items():
        if sheet in TITLES:
            book.title(sheet, sheet, TITLES[sheet])
        _write_grid(book, sheet, top, rows)


def _write_grid(book: Workbook, sheet: str, top: int, rows: Sequence[SheetRow]) -> None:
    """Write the head and the rows of a grid."""
    names = [result.scenario for result in book.results]
    after = VALUES + len(names)
    widths = (46, 30, 14, *(20 for _ in names), 70, 46)
    book.head(
        sheet,
        top,
        ("place", "quantity", "unit", *names, "equation", "source"),
        range(VALUES, after),
        widths,
    )
    place_before = ""
    for row_index, row in enumerate(rows, top + 1):
        node = row.node
        book.text(
            sheet,
            row_index,
            0,
            row.scope_path,
            "strong" if row.scope_path != place_before else "weak",
        )
        place_before = row.scope_path
        book.text(sheet, row_index, 1, row.name)
        book.text(sheet, row_index, 2, node.unit, "weak")
        numbers = number_format(
            node.unit, *(scenario_node.value for scenario_node in row.nodes.values())
        )
        for scenario, scenario_node in row.nodes.items():
            if book.where[scenario, scenario_node.id] != (sheet, row_index, VALUES + scenario):
                continue
            if scenario_node.is_leaf:
                book.number(
                    sheet, row_index, VALUES + scenario, scenario_node.value, "fixed", numbers
                )
            else:
                book.live(
                    sheet,
                    row_index,
                    VALUES + scenario,
                    book.formula(scenario, scenario_node, sheet),
                    scenario_node.value,
                    "number",
                    numbers,
                )
        book.text(sheet, row_index, after, node_equation(node) or "", "weak")
        book.text(
            sheet,
            row_index,
            after + 1,
            STRUCTURE_TITLE
            if node.source == STRUCTURE
            else book.catalogue.source_title(node.source),
            "weak",
        )
    book.page(sheet, top + len(rows), after + 1, TOP + 1, VALUES)
    if top == TOP:
        book.sheets[sheet].autofilter(top, 0, top + len(rows), after + 1)


# ---------------------------------------------------------------- what was decided before anything
# was computed
STRUCTURE_SHEET = "Structure"
HELD = (
    "Locked: what is decided here is held while inputs move. Another plan, system, model or "
    "algorithm needs the program: run tco again "
    "(the command is on the sheet Read me)."
)
# in which what is decided is told
PARTS = (
    "system",
    "variant",
    "documents",
    "texts",
    "plan",
    "alternatives",
    "choices",
    "decided by",
)


def _flatten_tables(nested_value: Any, lead: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables with their joined names.

    A list becomes a single text. A value of None is left out.
    """
    if isinstance(nested_value, Mapping):
        for name, inner in nested_value.items():
            yield from _flatten_tables(inner, f"{lead}/{name}" if lead else str(name))
    elif isinstance(nested_value, (list, tuple)):
        yield lead, ", ".join(map(str, nested_value))
    elif nested_value is not None:
        yield lead, nested_value


def _decisions_by_name(result: Result) -> JsonObject:
    """Return all that is decided of a result, by name: its documents and texts, its plan, its
    choices, and what they were decided by.
    """
    document: JsonObject = structure_document(result.structure) or {}
    origin = result.origin
    variant, documents = (origin.variant, origin.documents) if origin else ({}, {})
    part_values = [
        result.system,
        variant,
        documents,
        result.texts,
        plain_plan(result.plan),
        *map(document.get, ("alternatives", "choices", "rests_on")),
    ]
    return dict(_flatten_tables(dict(zip(PARTS, part_values, strict=True))))


def write_choices(book: Workbook) -> int:
    """Write the plan and the choices, and return the row at which the head of the counts stands."""
    book.title(STRUCTURE_SHEET, STRUCTURE_SHEET, HELD)
    scenario_decisions = [_decisions_by_name(result) for result in book.results]
    book.head(
        STRUCTURE_SHEET,
        2,
        ("decided", "", "", *(result.scenario for result in book.results)),
        range(VALUES, VALUES + len(scenario_decisions)),
    )
    row = 3
    for name in sorted(
        dict.fromkeys(name for decisions in scenario_decisions for name in decisions),
        key=lambda name: PARTS.index(name.partition("/")[0]),
    ):
        book.text(STRUCTURE_SHEET, row, 0, name)
        for scenario, decisions in enumerate(scenario_decisions):
            value = decisions.get(name)
            if isinstance(value, bool):
                book.text(
                    STRUCTURE_SHEET, row, VALUES + scenario, "yes" if value else "no", "fixed-text"
                )
            elif isinstance(value, (int, float)):
                book.number(
                    STRUCTURE_SHEET,
                    row,
                    VALUES + scenario,
                    value,
                    "fixed",
                    number_format("", value),
                )
            elif value is not None:
                book.text(STRUCTURE_SHEET, row, VALUES + scenario, value, "fixed-text")
        row += 1
    book.text(STRUCTURE_SHEET, row + 1, 0, "Counts and constants", "section")
    return row + 2
