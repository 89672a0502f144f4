"""Validations: the tables, the rows and the document of `tco validate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tco.outputs.table import Table

SCORES = ("n", "median_ape", "mean_ape", "p90_ape", "bias", "spearman")
SCORE_COLUMNS = ("group", "member", *SCORES)
MOST_GROUPS = 12


def percent(value: float | None) -> str:
    """Return a fraction as a percentage."""
    return "-" if value is None else f"{value * 100:.1f}"


def score_cells(label: str, found: dict[str, Any], count: str = "n") -> list[str]:
    """Return one line of scores."""
    rank = found.get("spearman")
    return [label, f"{int(found[count]):,}", *(percent(found.get(name)) for name in SCORES[1:5]), "-" if rank is None else f"{rank:.3f}"]


def validation_tables(name: str, kind: str, card: dict[str, Any]) -> list[Table]:
    """Return the overall score, what was skipped and why, and the errors by group, the largest groups first."""
    columns = ("", "rows", "median %", "mean %", "P90 %", "bias %", "rank corr.")
    rows = [score_cells("all scored rows", card, "scored")]
    rows += [
        score_cells(f"leave-one-{what}-out", {"mean_ape": None, "bias": None, **found})
        for what, found in card["left_out"].items()
        if what != "nothing"
    ]
    inside = {"n": card["curves"]["n"], "median_ape": None, "mean_ape": None, "bias": None, **card["curves"]}
    rows += [score_cells("inside one curve (curves)", inside)] if inside["n"] else []
    rows += [score_cells("offline", card["offline"])] if card["offline"]["n"] else []
    skipped = [f"skipped {count:,}: {reason}" for reason, count in sorted(card["skipped"].items(), key=lambda item: -item[1])]
    tables = [Table(columns, rows, f"{name}: {card['scored']:,} of {card['n']:,} {kind} scored", [], [*ranges_in_words(card["ranges"]), *skipped])]
    for group, parts in card["by"].items():
        largest = sorted(parts.items(), key=lambda item: -item[1]["n"])[:MOST_GROUPS]
        if len(parts) > 1:
            more = [f"and {len(parts) - MOST_GROUPS} more; --format json has all"] if len(parts) > MOST_GROUPS else []
            tables.append(Table((group, *columns[1:]), [score_cells(key, found) for key, found in largest], "", [], more))
    return tables


def ranges_in_words(ranges: Mapping[str, Any]) -> list[str]:
    """Return what is said of rows that leave something unstated, nothing where none does."""
    if not ranges["n"]:
        return []
    return [
        f"something is unstated in {ranges['n']:,}, of which {ranges['inside']:,} were measured inside the range of what it may have been, "
        f"a factor {ranges['median_width']:.2f} at the median (--rows: low, high, unstated)"
    ]


def score_rows(card: dict[str, Any]) -> list[list[Any]]:
    """Return every score of a file as rows: over all, on what was left out of the fit, inside one curve, and by group."""
    groups = {"all": {"": {**card, "n": card["scored"]}}, "left_out": card["left_out"], "inside": {"curve": card["curves"]}, **card["by"]}
    return [[group, member, *(one.get(name) for name in SCORES)] for group, members in groups.items() for member, one in members.items()]


def row_cells(rows: pd.DataFrame) -> Sequence[Sequence[Any]]:
    """Return the rows of a validation as raw cells, empty where nothing was predicted."""
    return [[None if isinstance(cell, float) and cell != cell else cell for cell in row] for row in rows.itertuples(index=False)]  # noqa: PLR0124 - NaN


def validation_document(path: str, kind: str, card: dict[str, Any], rows: pd.DataFrame | None) -> dict[str, Any]:
    """Return the content of the JSON document."""
    found = {"file": path, "kind": kind, **card}
    if rows is not None:
        found["rows"] = [dict(zip(rows.columns, cells, strict=True)) for cells in row_cells(rows)]
        for row in found["rows"]:
            if "unstated" in row:
                row["unstated"] = row["unstated"].split()
    return found
