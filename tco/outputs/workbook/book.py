"""The workbook as a whole: its sheets in their order."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime

from tco.catalog import Catalogue
from tco.chain.result import Result
from tco.outputs.workbook import bill, front, grids, inputs, structure, summary
from tco.outputs.workbook.cells import content_of
from tco.outputs.workbook.sheets import Workbook

MADE = datetime(2000, 1, 1)  # of every workbook, so that equal inputs give equal bytes


def workbook_of(results: Sequence[Result], catalogue: Catalogue, baseline: str, command: str) -> bytes:
    """Return the workbook of some traced results, side by side."""
    import xlsxwriter

    stream = io.BytesIO()
    workbook = xlsxwriter.Workbook(stream, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    workbook.set_properties({"title": "Total cost of ownership", "comments": command, "created": MADE})
    workbook.set_calc_mode("auto")
    book = Workbook(workbook, content_of(results), catalogue, baseline, command)
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
