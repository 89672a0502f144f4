"""Presentation of the fields of a result class: heading, digits, unit and key.

A result class carries this beside the type of each field:

    class Rent(NamedTuple):
        chip: Annotated[str, Column("chip")]
        usd_per_chip_hour: Annotated[float, Column("rent", unit="USD/chip/h")]
        low: float | None

`tco/report/record.py` makes tables, CSV, JSON and its schema from it. A field without a `Column` is
printed under its own name in JSON and CSV, and has no column in tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar


class Column(NamedTuple):
    """Presentation of one field of a result class."""

    # heading in tables; a field without one has no column there
    label: str | None = None
    # significant digits, a format string, or a function of the whole record
    show: Callable[[Any], str] | int | str = 4
    # unit of the exported column
    unit: str | None = None
    # whether the field is a column of the CSV
    csv: bool = True
    # whether the key is left out of JSON where the value is missing
    optional: bool = False
    # key in JSON and CSV; None takes the name of the field
    key: str | None = None
    # whether the field is of the program alone and printed nowhere
    hidden: bool = False


Value = TypeVar("Value")
# type of a field of the program alone
Hidden = Annotated[Value, Column(hidden=True)]
