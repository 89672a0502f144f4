"""Presentation of the fields of a result class: heading, digits, unit and key.

A result class states the presentation beside the type of each field:

    class Rent(NamedTuple):
        chip: Annotated[str, Column("chip")]
        usd_per_chip_hour: Annotated[float, Column("rent", unit="USD/chip/h")]
        low: float | None

`tco/report/record.py` makes tables, CSV, JSON and its schema from these classes. A field without a
`Column` has its own name in JSON and CSV, and no column in tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar


class Column(NamedTuple):
    """Presentation of one field of a result class."""

    label: str | None = None  # heading in tables; None for no column in tables
    # Significant digits, a format string, or a function of the whole record.
    show: Callable[[Any], str] | int | str = 4
    unit: str | None = None  # unit of the exported column
    csv: bool = True  # whether the field is a column of the CSV
    optional: bool = False  # whether JSON leaves out the key where the value is missing
    key: str | None = None  # key in JSON and CSV; None takes the name of the field
    hidden: bool = False  # whether the field is never printed


Value = TypeVar("Value")
# Type of a field that is never printed.
Hidden = Annotated[Value, Column(hidden=True)]
