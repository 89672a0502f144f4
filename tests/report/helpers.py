"""Names that tests of several files use inside the outputs."""

from __future__ import annotations

from tco.report.figures.drawing import text_width
from tco.report.figures.style import vendor_colours
from tco.report.record import DOCUMENTS, json_number_or_none
from tco.report.table import Table, significant, to_csv
from tco.report.workbook.book import workbook_of

__all__ = [  # what tests of several files ask for
    "DEEPEST",
    "DOCUMENTS",
    "LONGEST",
    "WIDE",
    "Table",
    "json_number_or_none",
    "significant",
    "text_width",
    "to_csv",
    "vendor_colours",
    "workbook_of",
]

WIDE = 760
DEEPEST = 64
LONGEST = 8192
