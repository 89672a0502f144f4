"""Grids: a row for each quantity of the trace, a column for each scenario, its equation and source beside it."""

from __future__ import annotations

from collections.abc import Sequence

from tco.foundation.trace import STRUCTURE
from tco.outputs.explanation import STRUCTURE_TITLE, node_equation
from tco.outputs.workbook.cells import SheetRow
from tco.outputs.workbook.sheets import Workbook, number_format, page

TOP = 2  # rows above the head
VALUES = 3  # first column of values, after place, name and unit
TITLES = {
    "Cost": ("Cost", "Parts, networks, rebates, site, upkeep and finance, down to dollars a chip-hour."),
    "Performance": ("Performance", "Operators, collectives and phases on the plan of the Structure sheet, down to tokens a second."),
}
SHEET_OF = {"serving": "Performance", "training": "Performance"}  # by the first word of an id; what is none of these is a cost


def place(book: Workbook, sheet: str, top: int, rows: Sequence[SheetRow]) -> None:
    """Give rows their cells below the head that stands at `top`."""
    book.grids[sheet] = (top, rows)
    for at, row in enumerate(rows, top + 1):
        for scenario in row.nodes:
            book.where.setdefault((scenario, row.node.id), (sheet, at, VALUES + scenario))


def place_derived(book: Workbook) -> None:
    """Give every derived quantity that has no cell yet one on the sheet it belongs to."""
    for sheet in TITLES:
        mine = [row for row in book.content.derived if SHEET_OF.get(row.node.id.partition("/")[0], "Cost") == sheet]
        place(book, sheet, TOP, [row for row in mine if any((at, row.node.id) not in book.where for at in row.nodes)])


def write(book: Workbook) -> None:
    """Write every grid at its place, and the titles of the sheets that hold nothing else."""
    for sheet, (top, rows) in book.grids.items():
        if sheet in TITLES:
            title, subtitle = TITLES[sheet]
            book.text(sheet, 0, 0, title, "title")
            book.text(sheet, 1, 0, subtitle, "subtitle")
        write_grid(book, sheet, top, rows)


def write_grid(book: Workbook, sheet: str, top: int, rows: Sequence[SheetRow]) -> None:
    """Write the head and the rows of a grid."""
    names = [result.scenario for result in book.results]
    after = VALUES + len(names)
    for column, head in enumerate(("place", "quantity", "unit", *names, "equation", "source")):
        book.text(sheet, top, column, head, "head" if VALUES <= column < after else "head-text")
    place_before = ""
    for at, row in enumerate(rows, top + 1):
        node = row.node
        book.text(sheet, at, 0, row.place, "strong" if row.place != place_before else "weak")
        place_before = row.place
        book.text(sheet, at, 1, row.name)
        book.text(sheet, at, 2, node.unit, "weak")
        numbers = number_format(node.unit, *(one.value for one in row.nodes.values()))
        for scenario, one in row.nodes.items():
            if book.where[scenario, one.id] != (sheet, at, VALUES + scenario):
                continue
            if one.is_leaf:
                book.number(sheet, at, VALUES + scenario, one.value, "fixed", numbers)
            else:
                book.live(sheet, at, VALUES + scenario, book.formula(scenario, one, sheet), one.value, "number", numbers)
        book.text(sheet, at, after, node_equation(node) or "", "weak")
        book.text(sheet, at, after + 1, STRUCTURE_TITLE if node.source == STRUCTURE else book.catalogue.source_title(node.source), "weak")
    own = book.sheets[sheet]
    for first, last, width in ((0, 0, 46), (1, 1, 30), (2, 2, 14), (VALUES, after - 1, 20), (after, after, 70), (after + 1, after + 1, 46)):
        own.set_column(first, last, width)
    page(own, top + len(rows), after + 1, TOP + 1, VALUES, book.footer)
    if top == TOP:
        own.autofilter(top, 0, top + len(rows), after + 1)
