"""Headers that publishers use, and what their columns are called here.

A row of `data/headers.csv` says how a column is read in files that have the header's mark: from others by name (`{batch_size}`), as a
calculation of two of them (`= isl + step`), or as a text that holds for the whole file, and where only for some rows, which of them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from tco.foundation.errors import DataError
from tco.foundation.files import data_directory, read_csv

COLUMNS = ("header", "mark", "column", "reads", "where")
CALCULATIONS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
NAMED = re.compile(r"{(\w+)}")


def translated(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of texts with the columns that its header means."""
    made: dict[str, pd.Series[str]] = {}
    for _, row in read_csv(data_directory() / "headers.csv", COLUMNS):
        if row["mark"] in table:
            read = reading(table, row["reads"])
            chosen = pd.Series(True, index=table.index)
            for name, _, text in (one.partition("=") for one in row["where"].split()):
                chosen &= stated(table, name) == text
            before = made.get(row["column"], table.get(row["column"], pd.Series("", index=table.index)))
            made[row["column"]] = read.where(chosen, before)
    return table.assign(**made)


def stated(table: pd.DataFrame, name: str) -> pd.Series[str]:
    """Return a column that a header must have beside its mark."""
    if name not in table:
        raise DataError(f"the header lacks the column {name!r}; there are {', '.join(table.columns[:12])}")
    return table[name]


def reading(table: pd.DataFrame, reads: str) -> pd.Series[str]:
    """Return what a column reads, as texts; blank where a number of a calculation is."""
    if reads.startswith("= "):
        one, sign, other = reads.removeprefix("= ").split()
        numbers = (pd.to_numeric(stated(table, name), errors="coerce") for name in (one, other))
        return CALCULATIONS[sign](*numbers).map(lambda value: "" if pd.isna(value) else repr(float(value)))
    names, texts = NAMED.findall(reads), NAMED.split(reads)[::2]
    found = pd.Series(texts[0], index=table.index)
    for name, text in zip(names, texts[1:], strict=True):
        found = found + stated(table, name) + text
    return found
