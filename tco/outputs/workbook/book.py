"""The workbook as a whole: its sheets in their order, and where every cell of the trace lies in them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from tco.catalog import Catalogue
from tco.chain.result import Result
from tco.foundation.streams import plain
from tco.foundation.trace import Node
from tco.outputs.workbook import excel
from tco.outputs.workbook.cells import Content, Row, content_of
from tco.outputs.workbook.looks import Looks

SHEETS = ("Summary", "Inputs", "BOM", "Cost", "Performance", "Structure", "Sources", "Read me")
MADE = datetime(2000, 1, 1)  # of every workbook, so that equal inputs give equal bytes


@cache
def sheet_class() -> Any:
    """Return the class of sheets: one that takes formulas as they are, since a search of each for newer functions is a third of the time."""
    from xlsxwriter.worksheet import Worksheet

    class Sheet(Worksheet):  # type: ignore[misc]
        def _prepare_formula(self, formula: str, *_: Any, **__: Any) -> str:
            return formula.removeprefix("=")

    return Sheet


class Book:
    """A workbook while it is written."""

    def __init__(self, workbook: Any, content: Content, catalogue: Catalogue, baseline: str, command: str) -> None:
        self.workbook, self.content, self.catalogue = workbook, content, catalogue
        self.baseline, self.command = baseline, command
        self.looks = Looks(workbook)
        self.sheets = {name: workbook.add_worksheet(name, sheet_class()) for name in SHEETS}
        self.where: dict[tuple[int, str], tuple[str, int, int]] = {}  # scenario and cell -> sheet, row, column
        self.grids: dict[str, tuple[int, Sequence[Row]]] = {}  # sheet -> the row of its head, and what stands below
        self.footer = f"tco {self.version}, data {self.catalogue.hash()}"

    @property
    def version(self) -> str:
        """The version of the program."""
        from tco import __version__

        return __version__

    @property
    def results(self) -> Sequence[Result]:
        """The scenarios, in the order of their columns."""
        return self.content.results

    def reference(self, scenario: int, name: str, sheet: str) -> str:
        """Return what a formula on some sheet calls a cell of a scenario: a defined name for an input, else its address."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        if (scenario, name) in self.content.named:
            return self.content.named[scenario, name]
        there, row, column = self.where[scenario, name]
        address: str = xl_rowcol_to_cell(row, column)
        return address if there == sheet else f"{there}!{address}"

    def has(self, scenario: int, name: str) -> bool:
        """Say whether a cell of a scenario stands somewhere."""
        return (scenario, name) in self.content.named or (scenario, name) in self.where

    def formula(self, scenario: int, node: Node, sheet: str) -> str:
        """Return the formula of a node: one call of a formula, or one gathering."""
        cells = [(name, self.reference(scenario, inner.id, sheet)) for name, inner in node.inputs]
        if node.formula is not None:
            return excel.call(node.formula, dict(cells))
        return excel.gathered(str(node.operation), [cell for _, cell in cells])

    def text(self, sheet: str, row: int, column: int, text: Any, look: str = "text") -> None:
        """Write a text, which no spreadsheet takes for a formula."""
        self.sheets[sheet].write_string(row, column, plain(str(text)), self.looks(look))

    def number(self, sheet: str, row: int, column: int, value: Any, look: str = "number", numbers: str = "") -> None:
        """Write a number as it is."""
        self.sheets[sheet].write_number(row, column, float(value), self.looks(look, numbers))

    def live(self, sheet: str, row: int, column: int, formula: str, value: Any, look: str = "number", numbers: str = "") -> None:
        """Write a formula, and beside it what it comes to now."""
        self.sheets[sheet].write_formula(row, column, formula, self.looks(look, numbers), float(value))


def workbook_of(results: Sequence[Result], catalogue: Catalogue, baseline: str, command: str) -> bytes:
    """Return the workbook of some traced results, side by side."""
    import xlsxwriter

    from tco.outputs.workbook import bill, front, grids, inputs, structure, summary

    stream = io.BytesIO()
    workbook = xlsxwriter.Workbook(stream, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    workbook.set_properties({"title": "Total cost of ownership", "comments": command, "created": MADE})
    workbook.set_calc_mode("auto")
    book = Book(workbook, content_of(results), catalogue, baseline, command)
    below = structure.write_choices(book)
    grids.place(book, "Structure", below, book.content.fixed)
    bill.place(book)
    grids.place_derived(book)
    inputs.write(book)
    bill.write(book)
    grids.write(book)
    structure.lock(book)
    summary.write(book)
    front.write_sources(book)
    front.write_read_me(book)
    book.sheets["Summary"].activate()
    workbook.close()
    return stream.getvalue()
