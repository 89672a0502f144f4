"""The sheet of the bill: the leaves of every scenario's tree of parts with quantity, unit price,
price and power.
"""

from __future__ import annotations

from typing import Any

from tco.core.trace import Node
from tco.report.workbook.sheets import Workbook, number_format
from tco.system.bill import BillLine

SHEET = "BOM"
HEADS = (
    "path",
    "part",
    "quantity",
    "unit price, USD",
    "price, USD",
    "power, W",
    "kind",
    "source",
    "price lies in",
)
WIDTHS = (52, 28, 12, 14, 14, 12, 11, 46, 40)
TOP = 2  # rows above the head
QUANTITY, UNIT_PRICE, PRICE, POWER = 2, 3, 4, 5  # columns


def _bill_blocks(book: Workbook) -> list[tuple[int, int, list[BillLine]]]:
    """Return for each scenario its number, the row of its title, and its lines."""
    bill_blocks, row = [], TOP + 1
    for scenario, result in enumerate(book.results):
        lines = result.bill.lines if result.bill else []
        bill_blocks.append((scenario, row, lines))
        row += len(lines) + 3  # the title before them, the sum and a free row after
    return bill_blocks


def assign_bill_cells(book: Workbook) -> None:
    """Give prices and powers their cells."""
    for scenario, top, lines in _bill_blocks(book):
        for row, line in enumerate(lines, top + 1):
            for name, column in (("extended_price", PRICE), ("extended_power", POWER)):
                if (scenario, f"bill/{line.path}/{name}") in book.content.computed:
                    book.where[scenario, f"bill/{line.path}/{name}"] = (SHEET, row, column)


def write_bill_sheet(book: Workbook) -> None:
    """Write the bill of every scenario, one below the other."""
    sheet_note = (
        "Of one whole scale-up domain. Quantities follow from the system's tree and are fixed; "
        "prices follow the inputs."
    )
    book.title(SHEET, "Bill of materials", sheet_note)
    book.head(SHEET, TOP, HEADS, range(QUANTITY, POWER + 1), WIDTHS)
    last = TOP
    for scenario, top, lines in _bill_blocks(book):
        result = book.results[scenario]
        book.text(SHEET, top, 0, f"{result.scenario}: {result.title}", "section")
        for row, line in enumerate(lines, top + 1):
            _write_line(book, scenario, row, line)
        last = top + len(lines) + 1
        if result.bill and lines:
            for column in range(POWER):
                book.text(SHEET, last, column, "" if column else "whole scale-up domain", "total")
            for column, value, unit in (
                (PRICE, result.bill.price, "USD"),
                (POWER, result.bill.power, "W"),
            ):
                letter = "ABCDEF"[column]
                formula = f"=SUM({letter}{top + 2}:{letter}{last})"
                book.live(
                    SHEET, last, column, formula, value, "total", number_format(unit, float(value))
                )
    book.page(SHEET, last, len(HEADS) - 1, TOP + 1, 2)


def _write_line(book: Workbook, scenario: int, row: int, line: BillLine) -> None:
    """Write one leaf: live where the trace has a cell for it, as a number that nothing moves where
    it has none.
    """
    book.text(SHEET, row, 0, line.path)
    book.text(SHEET, row, 1, line.part)
    below = f"bill/{line.path}"
    price = book.content.computed.get((scenario, f"{below}/extended_price"))
    unit_price = (
        next((inner.id for name, inner in price.inputs if name == "unit_price"), "")
        if price
        else ""
    )
    _write_value(book, scenario, (row, QUANTITY), f"{below}/quantity", line.quantity, "")
    _write_value(book, scenario, (row, UNIT_PRICE), unit_price, line.unit_price, "USD")
    _write_value(book, scenario, (row, PRICE), f"{below}/extended_price", line.extended, "USD")
    _write_value(
        book, scenario, (row, POWER), _power_of(book, scenario, below, line.power), line.power, "W"
    )
    kind = line.kind + (" (own)" if line.overlay else "")
    sources = ", ".join(book.catalogue.source_title(source) for source in line.sources)
    for column, text in (
        (6, "" if line.included_in else kind),
        (7, sources),
        (8, line.included_in or ""),
    ):
        if text:
            book.text(SHEET, row, column, text, "weak")


def _write_value(
    book: Workbook, scenario: int, cell: tuple[int, int], name: str, value: Any, unit: str
) -> None:
    """Write the cell of the trace that lies here, a reference to one that lies elsewhere, or a
    plain number.
    """
    if value is None:
        return
    numbers = number_format(unit, float(value))
    node: Node | None = book.content.computed.get((scenario, name))
    if node is not None and book.where[scenario, name] == (SHEET, *cell):
        book.live(SHEET, *cell, book.formula(scenario, node, SHEET), value, "number", numbers)
    elif book.has(scenario, name):
        book.live(
            SHEET, *cell, f"={book.reference(scenario, name, SHEET)}", value, "number", numbers
        )
    else:
        book.number(SHEET, *cell, value, "number", numbers)


def _power_of(book: Workbook, scenario: int, below: str, power: Any) -> str:
    """Return the name of the cell that is the power of a line: what it draws, or what is lost in
    it.
    """
    usual = f"{below}/extended_power"
    if (scenario, usual) in book.content.computed or not power:
        return usual
    power_nodes = (
        row.nodes[scenario]
        for row in book.content.derived
        if row.scope_path == below and scenario in row.nodes and row.node.unit == "W"
    )
    return next((node.id for node in power_nodes if node.value == power), usual)
