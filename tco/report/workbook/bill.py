"""The bill's sheet: each scenario's parts with quantity, unit price, price and power."""

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
WIDTHS = (52, 28, 12, 14, 14, 12, 11, 90, 40)
TOP = 2  # rows above the head
QUANTITY, UNIT_PRICE, PRICE, POWER = 2, 3, 4, 5  # columns


def _bill_blocks(book: Workbook) -> list[tuple[int, int, list[BillLine]]]:
    """Return for each scenario its number, the row of its title, and its lines."""
    bill_blocks, title_row = [], TOP + 1
    for scenario, scenario_result in enumerate(book.results):
        lines = scenario_result.bill.lines if scenario_result.bill else []
        bill_blocks.append((scenario, title_row, lines))
        title_row += len(lines) + 3  # the title before them, the sum and a free row after
    return bill_blocks


def assign_bill_cells(book: Workbook) -> None:
    """Give prices and powers their cells."""
    for scenario, top, lines in _bill_blocks(book):
        for line_row, line in enumerate(lines, top + 1):
            for figure_name, column in (("extended_price", PRICE), ("extended_power", POWER)):
                if (scenario, f"bill/{line.path}/{figure_name}") in book.content.computed:
                    book.where[scenario, f"bill/{line.path}/{figure_name}"] = (
                        SHEET,
                        line_row,
                        column,
                    )


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
        scenario_result = book.results[scenario]
        book.text(SHEET, top, 0, f"{scenario_result.scenario}: {scenario_result.title}", "section")
        for line_row, line in enumerate(lines, top + 1):
            _write_line(book, scenario, line_row, line)
        last = top + len(lines) + 1
        if scenario_result.bill and lines:
            for column in range(POWER):
                book.text(SHEET, last, column, "" if column else "whole scale-up domain", "total")
            for column, total_value, unit in (
                (PRICE, scenario_result.bill.price, "USD"),
                (POWER, scenario_result.bill.power, "W"),
            ):
                letter = "ABCDEF"[column]
                formula = f"=SUM({letter}{top + 2}:{letter}{last})"
                book.live(
                    SHEET,
                    last,
                    column,
                    formula,
                    total_value,
                    "total",
                    number_format(unit, float(total_value)),
                )
    book.page(SHEET, last, len(HEADS) - 1, TOP + 1, 2)


def _write_line(book: Workbook, scenario: int, line_row: int, line: BillLine) -> None:
    """Write a leaf of the bill, live where the trace has a cell for it, otherwise as a number."""
    book.text(SHEET, line_row, 0, line.path)
    book.text(SHEET, line_row, 1, line.part)
    below = f"bill/{line.path}"
    price = book.content.computed.get((scenario, f"{below}/extended_price"))
    unit_price = (
        next((inner.id for input_name, inner in price.inputs if input_name == "unit_price"), "")
        if price
        else ""
    )
    _write_value(book, scenario, (line_row, QUANTITY), f"{below}/quantity", line.quantity, "")
    _write_value(book, scenario, (line_row, UNIT_PRICE), unit_price, line.unit_price, "USD")
    _write_value(book, scenario, (line_row, PRICE), f"{below}/extended_price", line.extended, "USD")
    _write_value(
        book,
        scenario,
        (line_row, POWER),
        _power_of(book, scenario, below, line.power),
        line.power,
        "W",
    )
    kind = line.kind + (" (own)" if line.overlay else "")
    sources = ", ".join(book.catalogue.source_title(source) for source in line.sources)
    for column, cell_text in (
        (6, "" if line.included_in else kind),
        (7, sources),
        (8, line.included_in or ""),
    ):
        if cell_text:
            book.text(SHEET, line_row, column, cell_text, "weak")


def _write_value(
    book: Workbook, scenario: int, cell: tuple[int, int], cell_name: str, cell_value: Any, unit: str
) -> None:
    """Write the trace's cell of this position, a reference to its other position, or a number."""
    if cell_value is None:
        return
    numbers = number_format(unit, float(cell_value))
    node: Node | None = book.content.computed.get((scenario, cell_name))
    if node is not None and book.where[scenario, cell_name] == (SHEET, *cell):
        book.live(SHEET, *cell, book.formula(scenario, node, SHEET), cell_value, "number", numbers)
    elif book.has(scenario, cell_name):
        book.live(
            SHEET,
            *cell,
            f"={book.reference(scenario, cell_name, SHEET)}",
            cell_value,
            "number",
            numbers,
        )
    else:
        book.number(SHEET, *cell, cell_value, "number", numbers)


def _power_of(book: Workbook, scenario: int, below: str, power: Any) -> str:
    """Return the name of the cell of a line's power, which it draws or loses."""
    usual = f"{below}/extended_power"
    if (scenario, usual) in book.content.computed or not power:
        return usual
    power_nodes = (
        derived_row.nodes[scenario]
        for derived_row in book.content.derived
        if derived_row.scope_path == below
        and scenario in derived_row.nodes
        and derived_row.node.unit == "W"
    )
    return next((node.id for node in power_nodes if node.value == power), usual)
