"""Grids of quantities by scenario; the grid of counts begins with plan and choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tco.core.trace import STRUCTURE
from tco.core.types import JsonObject
from tco.report.explanation import STRUCTURE_TITLE, node_equation, structure_document
from tco.report.workbook.cells import SheetRow
from tco.report.workbook.sheets import Sheet, Workbook, number_format
from tco.scenario.result import Result
from tco.scenario.structure import plain_plan

TOP = 2  # rows above the head
VALUE_WIDTH = 20
VALUES = 3  # first column of values, after place, name and unit
TITLES = {
    "Cost": "Parts, networks, rebates, site, upkeep and finance, down to dollars per chip-hour.",
    "Performance": "Operators, collectives and phases on the plan of the Structure sheet, down to "
    "tokens per second.",
}
# by the first word of an id; what is none of these is a cost
SHEET_OF = {
    "serving": "Performance",
    "training": "Performance",
}


def assign_grid_cells(book: Workbook, sheet: str, top: int, grid_rows: Sequence[SheetRow]) -> None:
    """Give rows their cells below the head that stands at `top`."""
    book.grids[sheet] = (top, grid_rows)
    for row_index, sheet_row in enumerate(grid_rows, top + 1):
        for scenario in sheet_row.nodes:
            book.where.setdefault(
                (scenario, sheet_row.node.id), (sheet, row_index, VALUES + scenario)
            )


def place_derived(book: Workbook) -> None:
    """Give every derived quantity that has no cell yet one on the sheet it belongs to."""
    for sheet in TITLES:
        sheet_rows = [
            derived_row
            for derived_row in book.content.derived
            if SHEET_OF.get(derived_row.node.id.partition("/")[0], "Cost") == sheet
            and not {(scenario, derived_row.node.id) for scenario in derived_row.nodes}
            <= book.where.keys()
        ]
        assign_grid_cells(book, sheet, TOP, sheet_rows)


def write_grid_sheets(book: Workbook) -> None:
    """Write every grid at its place, and the titles of the sheets that hold nothing else."""
    for sheet, (top, grid_rows) in book.grids.items():
        if sheet in TITLES:
            book.sheets[sheet].title(sheet, TITLES[sheet])
        _write_grid(book, book.sheets[sheet], top, grid_rows)


def _write_grid(book: Workbook, sheet: Sheet, top: int, grid_rows: Sequence[SheetRow]) -> None:
    """Write the head and the rows of a grid."""
    columns = book.scenario_columns(VALUES)
    after = columns.stop
    heads = ("place", "quantity", "unit", *book.scenario_names, "equation", "source")
    sheet.head(top, heads, columns)
    sheet.widths(56, 30, 14, *(VALUE_WIDTH for _ in columns), 70, 60)
    place_before = ""
    for row_index, sheet_row in enumerate(grid_rows, top + 1):
        node = sheet_row.node
        is_first = sheet_row.scope_path != place_before
        sheet.text(row_index, 0, sheet_row.scope_path, "strong" if is_first else "weak")
        place_before = sheet_row.scope_path
        sheet.text(row_index, 1, sheet_row.name)
        sheet.text(row_index, 2, node.unit, "weak")
        numbers = number_format(
            node.unit, *(scenario_node.value for scenario_node in sheet_row.nodes.values())
        )
        for scenario, scenario_node in sheet_row.nodes.items():
            cell = (row_index, columns[scenario])
            if book.where[scenario, scenario_node.id] != (sheet.name, *cell):
                continue
            look, formula = "fixed", ""
            if not scenario_node.is_leaf:
                look, formula = "number", book.formula(scenario, scenario_node, sheet.name)
            sheet.number(*cell, scenario_node.value, look, numbers, formula)
        source = (
            STRUCTURE_TITLE
            if node.source == STRUCTURE
            else book.catalogue.source_title(node.source)
        )
        sheet.text(row_index, after, node_equation(node) or "", "weak")
        sheet.text(row_index, after + 1, source, "weak")
    sheet.page(top + len(grid_rows), after + 1, TOP + 1, VALUES)
    if top == TOP:
        sheet.worksheet.autofilter(top, 0, top + len(grid_rows), after + 1)


# ---------------------------------------------------------------- what was decided before anything
# was computed
STRUCTURE_SHEET = "Structure"
HELD = (
    "Locked: what is decided here stays while inputs move. Another plan, system, model or "
    "algorithm needs the program: run tco again "
    "(the command is on the sheet Read me)."
)
# in which what is decided is told
PARTS = (
    *("system", "variant", "documents", "texts", "plan"),
    *("alternatives", "choices", "decided by"),
)


def _flatten_tables(nested_value: Any, lead: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables with their joined names.

    A list becomes a single text. A value of None is left out.
    """
    if isinstance(nested_value, Mapping):
        for nested_name, inner in nested_value.items():
            yield from _flatten_tables(inner, f"{lead}/{nested_name}" if lead else str(nested_name))
    elif isinstance(nested_value, (list, tuple)):
        yield lead, ", ".join(map(str, nested_value))
    elif nested_value is not None:
        yield lead, nested_value


def _decisions_by_name(scenario_result: Result) -> JsonObject:
    """Return a result's decisions by name: documents, texts, plan, choices and their inputs."""
    document: JsonObject = structure_document(scenario_result.structure) or {}
    origin = scenario_result.origin
    variant, documents = (origin.variant, origin.documents) if origin else ({}, {})
    part_values = [
        scenario_result.system,
        variant,
        documents,
        scenario_result.texts,
        plain_plan(scenario_result.plan),
        *map(document.get, ("alternatives", "choices", "rests_on")),
    ]
    return dict(_flatten_tables(dict(zip(PARTS, part_values, strict=True))))


def write_choices(book: Workbook) -> int:
    """Write the plan and the choices, and return the row at which the head of the counts stands."""
    sheet, columns = book.sheets[STRUCTURE_SHEET], book.scenario_columns(VALUES)
    sheet.title(STRUCTURE_SHEET, HELD)
    sheet.head(2, ("decided", "", "", *book.scenario_names), columns)
    scenario_decisions = [_decisions_by_name(scenario_result) for scenario_result in book.results]
    names = dict.fromkeys(name for decisions in scenario_decisions for name in decisions)
    decision_row = 3
    for decision_name in sorted(names, key=lambda name: PARTS.index(name.partition("/")[0])):
        sheet.text(decision_row, 0, decision_name)
        for column, decisions in zip(columns, scenario_decisions, strict=True):
            decided_value = decisions.get(decision_name)
            if isinstance(decided_value, bool):
                decided_value = "yes" if decided_value else "no"
            if isinstance(decided_value, (int, float)):
                numbers = number_format("", decided_value)
                sheet.number(decision_row, column, decided_value, "fixed", numbers)
            elif decided_value is not None:
                sheet.text(decision_row, column, decided_value, "fixed-text")
        texts = [decisions.get(decision_name, "") for decisions in scenario_decisions]
        sheet.fit_row(decision_row, texts, VALUE_WIDTH)
        decision_row += 1
    sheet.text(decision_row + 1, 0, "Counts and constants", "section")
    return decision_row + 2
