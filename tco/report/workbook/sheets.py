"""The sheets of a workbook while it is written: the position and format of every cell.

Colours have a meaning, number formats follow the unit, and pages print.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import cache
from textwrap import wrap
from typing import Any

from tco import __version__
from tco.catalog import Catalogue
from tco.core.streams import printable_line
from tco.core.trace import Node
from tco.core.types import JsonObject
from tco.report.workbook import excel
from tco.report.workbook.cells import Content, SheetRow

SHEETS = ("Summary", "Inputs", "BOM", "Cost", "Performance", "Structure", "Sources", "Read me")
INK, PAPER, LINE, GREY = "#1F2A44", "#FFFFFF", "#C9CED8", "#6B7280"
LINE_HEIGHT = 15  # points
LETTERS = 1.1  # of a text, on average, in a unit of width
INPUT, OWN, FIXED = "#FFF9DB", "#FFD9B3", "#EEF0F4"
HEAD: JsonObject = {
    "bold": True,
    "font_color": PAPER,
    "bg_color": INK,
    "text_wrap": True,
    "valign": "vcenter",
}
EDITABLE: JsonObject = {
    "font_color": "#0000C0",
    "border": 1,
    "border_color": LINE,
    "locked": False,
}
LOOKS: dict[str, JsonObject] = {
    "title": {"bold": True, "font_size": 16, "font_color": INK},
    "subtitle": {"font_color": GREY, "italic": True},
    "section": {"bold": True, "font_size": 12, "font_color": INK, "bottom": 2, "bottom_color": INK},
    "head": {**HEAD, "align": "right"},
    "head-text": {**HEAD, "align": "left"},
    "head-weak": {**HEAD, "align": "left", "indent": 1},
    "text": {"valign": "top"},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "strong": {"bold": True, "valign": "top"},
    "weak": {"font_color": GREY, "indent": 1},
    "number": {},
    "weak-number": {"font_color": GREY},
    "total": {"bold": True, "top": 1},
    "input": {**EDITABLE, "bg_color": INPUT},
    "own": {**EDITABLE, "bg_color": OWN, "bold": True},
    "fixed": {"bg_color": FIXED},
    "fixed-text": {"bg_color": FIXED, "align": "right", "valign": "top", "text_wrap": True},
}


def number_format(unit: str, *cell_values: float) -> str:
    """Return the spreadsheet number format that `cell_values` of a unit share.

    Money has cents or whole dollars, and counts are whole. Other numbers follow the size of the
    largest value.
    """
    size = max((abs(float(cell_value)) for cell_value in cell_values), default=0.0)
    money = unit.startswith("USD")
    if size and (size < 1e-3 or (size >= 1e7 and not money)):
        return "0.000E+00"
    if money:
        return "#,##0" if size >= 1000 else "#,##0.00" if size >= 10 else "0.0000"
    if all(float(cell_value).is_integer() for cell_value in cell_values):
        return "#,##0"
    return "#,##0.0" if size >= 100 else "0.00" if size >= 10 else "0.0000"


@cache
def _worksheet_class() -> Any:
    """Return a worksheet class that takes formulas as they are.

    The usual search for newer functions takes a third of the time.
    """
    from xlsxwriter.worksheet import Worksheet

    class PlainWorksheet(Worksheet):  # type: ignore[misc]
        def _prepare_formula(self, formula: str, *_: Any, **__: Any) -> str:
            return formula.removeprefix("=")

    return PlainWorksheet


class Sheet:
    """A sheet while it is written.

    Args:
        name: Name of the sheet.
        workbook: Workbook of xlsxwriter that the sheet is added to.
        looks: Function from a look and a number format to a format of the workbook.
        footer: Words at the foot of every page.

    """

    def __init__(self, name: str, workbook: Any, looks: Callable[..., Any], footer: str) -> None:
        self.name, self.looks, self.footer = name, looks, footer
        self.worksheet = workbook.add_worksheet(name, _worksheet_class())

    def text(self, cell_row: int, column: int, cell_text: Any, look: str = "text") -> None:
        """Write a text, which no spreadsheet takes for a formula."""
        line = printable_line(str(cell_text))
        self.worksheet.write_string(cell_row, column, line, self.looks(look))

    def texts(
        self, cell_row: int, column: int, cell_texts: Iterable[Any], look: str = "text"
    ) -> None:
        """Write texts beside each other, the first one at `column`; empty ones are left out."""
        for text_column, cell_text in enumerate(cell_texts, column):
            if cell_text:
                self.text(cell_row, text_column, cell_text, look)

    def number(
        self,
        cell_row: int,
        column: int,
        cell_number: Any,
        look: str = "number",
        numbers: str = "",
        formula: str = "",
    ) -> None:
        """Write a number, or a formula that comes to this number now."""
        cell = (cell_row, column)
        if formula:
            self.worksheet.write_formula(
                *cell, formula, self.looks(look, numbers), float(cell_number)
            )
        else:
            self.worksheet.write_number(*cell, float(cell_number), self.looks(look, numbers))

    def title(self, *lines: str) -> None:
        """Write the title of the sheet, and what is said below it."""
        for line_row, line in enumerate(lines):
            self.text(line_row, 0, line, "subtitle" if line_row else "title")

    def head(
        self, head_row: int, column_names: Iterable[str], numbers: Container[int] = ()
    ) -> None:
        """Write a table's head, right-aligned over numbers.

        A heading of texts that stands right of a number is indented as its texts are.
        """
        text_look = "head-text"
        for column, column_name in enumerate(column_names):
            if column in numbers:
                self.text(head_row, column, column_name, "head")
                text_look = "head-weak"
            else:
                self.text(head_row, column, column_name, text_look)

    def widths(self, *column_widths: int) -> None:
        """Set the widths of the columns, in characters."""
        for column, width in enumerate(column_widths):
            self.worksheet.set_column(column, column, width)

    def fit_row(self, sheet_row: int, texts: Iterable[Any], width: int) -> None:
        """Set the height of a row to the lines of its longest text, folded to a column's width."""
        letters = int(LETTERS * width)
        lines = max((len(wrap(str(text), letters)) for text in texts), default=1)
        if lines > 1:
            self.worksheet.set_row(sheet_row, LINE_HEIGHT * lines)

    def page(
        self, last_row: int, last_column: int, head: int, left: int, upright: bool = False
    ) -> None:
        """Set the sheet up for reading and printing.

        Its head and first columns stay in view, it is one page wide, and every page has the head.
        """
        worksheet = self.worksheet
        worksheet.hide_gridlines(2)
        worksheet.freeze_panes(head, left)
        if not upright:
            worksheet.set_landscape()
        worksheet.set_paper(9)
        worksheet.fit_to_pages(1, 0)
        worksheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        worksheet.print_area(0, 0, last_row, last_column)
        if head:
            worksheet.repeat_rows(0, head - 1)
        worksheet.set_footer(f"&L{self.footer}&C&A&R&P / &N")


class Workbook:
    """A workbook while it is written."""

    def __init__(
        self, workbook: Any, content: Content, catalogue: Catalogue, baseline: str, command: str
    ) -> None:
        self.workbook, self.content, self.catalogue = workbook, content, catalogue
        self.results, self.baseline, self.command = content.results, baseline, command
        self.scenario_names = [scenario_result.scenario for scenario_result in self.results]
        # each made once
        looks = cache(
            lambda look, numbers="": workbook.add_format(
                LOOKS[look] | ({"num_format": numbers} if numbers else {})
            )
        )
        footer = f"tco {__version__}, data {self.catalogue.hash()}"
        self.sheets = {name: Sheet(name, workbook, looks, footer) for name in SHEETS}
        # scenario and cell -> sheet, row, column
        self.where: dict[tuple[int, str], tuple[str, int, int]] = {}
        # sheet -> the row of its head, and what stands below
        self.grids: dict[str, tuple[int, Sequence[SheetRow]]] = {}

    def scenario_columns(self, first: int) -> range:
        """Return the columns of the scenarios in a table whose values begin at a column."""
        return range(first, first + len(self.results))

    def reference(self, scenario: int, cell_name: str, sheet: str) -> str:
        """Return the name or address of a cell for formulas on `sheet`.

        An input has a defined name. Every other cell has its address.
        """
        from xlsxwriter.utility import xl_rowcol_to_cell

        if (scenario, cell_name) in self.content.named:
            return self.content.named[scenario, cell_name]
        there, cell_row, column = self.where[scenario, cell_name]
        address: str = xl_rowcol_to_cell(cell_row, column)
        return address if there == sheet else f"{there}!{address}"

    def has(self, scenario: int, cell_name: str) -> bool:
        """Say whether a cell of a scenario stands somewhere."""
        return (scenario, cell_name) in self.content.named or (scenario, cell_name) in self.where

    def formula(self, scenario: int, node: Node, sheet: str) -> str:
        """Return the formula of a node: one call of a formula, or one gathering."""
        cells = [
            (input_name, self.reference(scenario, inner.id, sheet))
            for input_name, inner in node.inputs
        ]
        if node.formula is not None:
            return excel.formula_call(node.formula, dict(cells))
        return f"={excel.GATHERED[str(node.operation)]}({','.join(cell for _, cell in cells)})"
