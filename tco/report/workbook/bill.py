"""The bill's sheet: each scenario's parts with quantity, unit price, price and power."""

from __future__ import annotations

from typing import Any

from tco.report.workbook.sheets import Workbook, number_format
from tco.system.bill import BillLine

SHEET = "BOM"
HEADS = (
    *("path", "part", "quantity", "unit price, USD", "price, USD", "power, W"),
    *("kind", "source", "price lies in"),
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
                cell = (scenario, f"bill/{line.path}/{figure_name}")
                if cell in book.content.computed:
                    book.where[cell] = (SHEET, line_row, column)


def write_bill_sheet(book: Workbook) -> None:
    """Write the bill of every scenario, one below the other."""
    sheet_note = (
        "Of one whole scale-up domain. Quantities follow from the system's tree and are fixed; "
        "prices follow the inputs."
    )
    sheet = book.sheets[SHEET]
    sheet.title("Bill of materials", sheet_note)
    sheet.head(TOP, HEADS, range(QUANTITY, POWER + 1))
    sheet.widths(*WIDTHS)
    last = TOP
    for scenario, top, lines in _bill_blocks(book):
        scenario_result = book.results[scenario]
        sheet.text(top, 0, f"{scenario_result.scenario}: {scenario_result.title}", "section")
        for line_row, line in enumerate(lines, top + 1):
            _write_line(book, scenario, line_row, line)
        last = top + len(lines) + 1
        if scenario_result.bill and lines:
            for column, label in enumerate(("whole scale-up domain", "", "", "", "")):
                sheet.text(last, column, label, "total")
            for column, total_value, unit in (
                (PRICE, scenario_result.bill.price, "USD"),
                (POWER, scenario_result.bill.power, "W"),
            ):
                letter = "ABCDEF"[column]
                formula = f"=SUM({letter}{top + 2}:{letter}{last})"
                numbers = number_format(unit, float(total_value))
                sheet.number(last, column, total_value, "total", numbers, formula)
    sheet.page(last, len(HEADS) - 1, TOP + 1, 2)


def _write_line(book: Workbook, scenario: int, line_row: int, line: BillLine) -> None:
    """Write a leaf of the bill, live where the trace has a cell for it, otherwise as a number."""
    below = f"bill/{line.path}"
    price = book.content.computed.get((scenario, f"{below}/extended_price"))
    unit_price = (
        next((inner.id for input_name, inner in price.inputs if input_name == "unit_price"), "")
        if price
        else ""
    )
    power = _power_of(book, scenario, below, line.power)
    for column, cell_name, cell_value, unit in (
        (QUANTITY, f"{below}/quantity", line.quantity, ""),
        (UNIT_PRICE, unit_price, line.unit_price, "USD"),
        (PRICE, f"{below}/extended_price", line.extended, "USD"),
        (POWER, power, line.power, "W"),
    ):
        if cell_value is not None:
            node = book.content.computed.get((scenario, cell_name))
            formula = ""
            if node is not None and book.where[scenario, cell_name] == (SHEET, line_row, column):
                formula = book.formula(scenario, node, SHEET)
            elif book.has(scenario, cell_name):
                formula = f"={book.reference(scenario, cell_name, SHEET)}"
            numbers = number_format(unit, float(cell_value))
            book.sheets[SHEET].number(line_row, column, cell_value, "number", numbers, formula)
    kind = "" if line.included_in else line.kind + " (own)" * line.overlay
    sources = ", ".join(book.catalogue.source_title(source) for source in line.sources)
    book.sheets[SHEET].text(line_row, 0, line.path)
    book.sheets[SHEET].text(line_row, 1, line.part)
    book.sheets[SHEET].texts(line_row, POWER + 1, (kind, sources, line.included_in), "weak")


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
