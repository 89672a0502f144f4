"""What tests of several files ask inside the outputs."""

from __future__ import annotations

from tco.outputs.figures.style import vendor_colours
from tco.outputs.figures.svg import width_of
from tco.outputs.record import DOCUMENTS, number, published_schema
from tco.outputs.table import Table, significant, to_csv
from tco.outputs.workbook.book import workbook_of

__all__ = [  # what tests of several files ask for
    "DEEPEST",
    "DOCUMENTS",
    "LONGEST",
    "WIDE",
    "Table",
    "number",
    "published_schema",
    "significant",
    "to_csv",
    "vendor_colours",
    "width_of",
    "workbook_of",
]

WIDE = 760
DEEPEST = 64
LONGEST = 8192
