"""What a scenario rests on, by path: the table and the rows of `tco inputs` and `tco scenarios show`, in the units people write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.chain.result import Result
from tco.foundation.provenance import SOURCED, Input
from tco.outputs.table import Table, significant

HEADER = ("path", "value", "unit", "low", "high", "as_of", "kind", "source", "own")


def given_rows(result: Result) -> list[list[Any]]:
    """Return the inputs as rows: texts first, then numbers as `--set` takes them."""
    texts = [[path, text, "", None, None, "", "", "", 0] for path, text in sorted(result.texts.items())]
    return texts + [cells_of(given) for _, given in sorted(result.inputs.items())]


def cells_of(given: Input) -> list[Any]:
    """Return an input in the unit it is written in."""
    value, unit = given.shown or (given.value, given.unit)
    scale = value / given.value if given.value else 1.0
    low, high = (None if end is None else end * scale for end in (given.low, given.high))
    return [given.path, value, unit, low, high, given.as_of, given.kind, given.source, int(given.overlay)]


def rows_with(rows: Sequence[list[Any]], words: Sequence[str]) -> list[list[Any]]:
    """Return the rows whose path has all of some words."""
    return [row for row in rows if all(word.lower() in str(row[0]).lower() for word in words)]


def given_table(result: Result, rows: Sequence[list[Any]]) -> Table:
    """Return the rows as a table: an estimate is marked, and a value of one's own named."""
    shown = [given_cells(row) for row in rows]
    below = [f"{len(rows)} inputs; ~ an estimate or an assumption. Replace one: tco compare --set 'PATH=VALUE UNIT'."]
    return Table(HEADER[:-1], shown, result.title, [], below, "lrlrrlll")


def given_cells(row: Sequence[Any]) -> list[str]:
    """Return the cells of one input as texts."""
    path, value, unit, low, high, as_of, kind, source, own = row
    weak = "~" if kind and kind not in SOURCED else ""
    number = value if isinstance(value, str) else weak + significant(value, 6)
    ends = [end if isinstance(end, str) else significant(end, 6) for end in (low, high)]
    return [path, number, unit, *ends, as_of, f"{kind} (own)" if own else kind, source]
