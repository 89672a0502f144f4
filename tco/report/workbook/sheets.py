"""The sheets of a workbook while it is written: the position and format of every cell.

Colours have a meaning, number formats follow the unit, and pages print.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
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
from tco.scenario.result import Result

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
def _sheet_class() -> Any:
    """Return a worksheet class that takes formulas as they are.

    The usual search for newer functions takes a third of the time.
    """
    from xlsxwriter.worksheet import Worksheet

    class Sheet(Worksheet):  # type: ignore[misc]
        def _prepare_formula(self, formula: str, *_: Any, **__: Any) -> str:
            return formula.removeprefix("=")

    return Sheet


class Workbook:
    """A workbook while it is written."""

    def __init__(
        self, workbook: Any, content: Content, catalogue: Catalogue, baseline: str, command: str
    ) -> None:
        self.workbook, self.content, self.catalogue = workbook, content, catalogue
        self.baseline, self.command = baseline, command
        # each made once
        self.looks = cache(
            lambda look, numbers="": workbook.add_format(
                LOOKS[look] | ({"num_format": numbers} if numbers else {})
            )
        )
        self.sheets = {
            sheet_name: workbook.add_worksheet(sheet_name, _sheet_class()) for sheet_name in SHEETS
        }
        # scenario and cell -> sheet, row, column
        self.where: dict[tuple[int, str], tuple[str, int, int]] = {}
        # sheet -> the row of its head, and what stands below
        self.grids: dict[str, tuple[int, Sequence[SheetRow]]] = {}
        self.footer = f"tco {__version__}, data {self.catalogue.hash()}"

    @property
    def results(self) -> Sequence[Result]:
        """The scenarios, in the order of their columns."""
        return self.content.results

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

    def text(
        self, sheet: str, cell_row: int, column: int, cell_text: Any, look: str = "text"
    ) -> None:
        """Write a text, which no spreadsheet takes for a formula."""
        self.sheets[sheet].write_string(
            cell_row, column, printable_line(str(cell_text)), self.looks(look)
        )

    def number(
        self,
        sheet: str,
        cell_row: int,
        column: int,
        cell_number: Any,
        look: str = "number",
        numbers: str = "",
    ) -> None:
        """Write a number as it is."""
        self.sheets[sheet].write_number(
            cell_row, column, float(cell_number), self.looks(look, numbers)
        )

    def live(
        self,
        sheet: str,
        cell_row: int,
        column: int,
        formula: str,
        current_value: Any,
        look: str = "number",
        numbers: str = "",
    ) -> None:
        """Write a formula, and beside it what it comes to now."""
        self.sheets[sheet].write_formula(
            cell_row, column, formula, self.looks(look, numbers), float(current_value)
        )

    def title(self, sheet: str, *lines: str) -> None:
        """Write the title of a sheet, and what is said below it."""
        for line_row, line in enumerate(lines):
            self.text(sheet, line_row, 0, line, "subtitle" if line_row else "title")

    def head(
        self,
        sheet: str,
        head_row: int,
        column_names: Iterable[str],
        numbers: Container[int] = (),
        widths: Sequence[int] = (),
    ) -> None:
        """Write a table's head, right-aligned over numbers, and set the column widths.

        A heading of texts that stands right of a number is indented as its texts are.
        """
        text_look = "head-text"
        for column, column_name in enumerate(column_names):
            if column in numbers:
                self.text(sheet, head_row, column, column_name, "head")
                text_look = "head-weak"
            else:
                self.text(sheet, head_row, column, column_name, text_look)
        for column, width in enumerate(widths):
            self.sheets[sheet].set_column(column, column, width)

    def fit_row(self, sheet: str, sheet_row: int, texts: Iterable[Any], width: int) -> None:
        """Set the height of a row to the lines of its longest text, folded to a column's width."""
        letters = int(LETTERS * width)
        lines = max((len(wrap(str(text), letters)) for text in texts), default=1)
        if lines > 1:
            self.sheets[sheet].set_row(sheet_row, LINE_HEIGHT * lines)

    def page(
        self,
        sheet_name: str,
        last_row: int,
        last_column: int,
        head: int,
        left: int,
        upright: bool = False,
    ) -> None:
        """Set a sheet up for reading and printing.

        Its head and first columns stay in view, it is one page wide, and every page has the head.
        """
        sheet = self.sheets[sheet_name]
        sheet.hide_gridlines(2)
        sheet.freeze_panes(head, left)
        if not upright:
            sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        sheet.print_area(0, 0, last_row, last_column)
        if head:
            sheet.repeat_rows(0, head - 1)
        sheet.set_footer(f"&L{self.footer}&C&A&R&P / &N")
