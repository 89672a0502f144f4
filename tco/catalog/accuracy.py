"""How well the model does on published measurements: the figures of the last calibration, shown beside every answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tco.catalog.catalogue import Catalogue
from tco.foundation.files import read_csv

ERRORS = ("kind", "left_out", "n", "median_ape", "p90_ape", "spearman", "date")
CHIPS = ("kind", "part", "n", "median_ape", "p90_ape", "left_out", "date")
ORDERS = ("kind", "pairs", "right", "ratio_error", "date")
LEFT_OUT = ("kind", "left_out", "member", "path", "value")
FILES = {"kinds": ERRORS, "chips": CHIPS, "orders": ORDERS, "left_out": LEFT_OUT}
WORDS = {"inference": "serving points", "training": "training runs", "collectives": "collectives", "kernels": "kernels"}


class Standing(NamedTuple):
    """How an answer stands: the rows of its kind it was held against, of its own chip or of the chips it is anchored on, or none."""

    rows: int
    median: float | None
    left_out: float | None
    text: str
    path: str = ""  # of the engine that the answer took
    unmeasured: str = "prior"  # what an answer without rows rests on
    anchors: tuple[str, ...] = ()  # chips of the same family that were measured where this one was not

    @property
    def validated_rows(self) -> int:
        """Rows of this very chip."""
        return 0 if self.anchors else self.rows

    @property
    def anchored_rows(self) -> int:
        """Rows of relatives, where this chip has none."""
        return self.rows if self.anchors else 0

    @property
    def short(self) -> str:
        """The standing in a table cell."""
        if self.anchors:
            return f"{self.rows} rows of {self.anchors[0]}" + (f" +{len(self.anchors) - 1}" if self.anchors[1:] else "")
        return f"{self.rows} rows, {self.median * 100:.0f} %" if self.median is not None else self.unmeasured


STATED = Standing(0, None, None, "not computed: no model is run, rates are stated", unmeasured="stated")


def table(catalogue: Catalogue, name: str) -> list[dict[str, str]]:
    """Return the rows of one file of accuracies, the shipped one and any overlay's."""
    rows: list[dict[str, str]] = []
    for folder in catalogue.folders:
        path = folder / "accuracy" / f"{name}.csv"
        if path.is_file():
            rows += [row for _, row in read_csv(path, FILES[name])]
    return rows


def errors_of(catalogue: Catalogue, kind: str) -> dict[str, dict[str, float]]:
    """Return the errors of a kind by what was left out of the fit: nothing, accelerator, model, source."""
    rows = table(catalogue, "kinds")
    names = ("n", "median_ape", "p90_ape", "spearman")
    return {row["left_out"]: {name: float(row[name]) for name in names} for row in rows if row["kind"] == kind}


def standing(catalogue: Catalogue, kind: str, chip: str, relatives: Collection[str], path: str) -> Standing:
    """Return how an answer of a kind on a chip stands against measurements: its own, or those of the `relatives` it shares its practice with.

    `path` is the one through the engine that the answer took. An answer of no kind runs no model.
    """
    if not kind:
        return STATED
    found = of_chip(catalogue, kind, chip, relatives)
    return found._replace(path=path, text=f"{found.text}; this answer: {path}")


def of_chip(catalogue: Catalogue, kind: str, chip: str, relatives: Collection[str]) -> Standing:
    """Return how answers of a kind on a chip stand, whichever path they took."""
    measured = {row["part"]: row for row in table(catalogue, "chips") if row["kind"] == kind or row["kind"].endswith(f"_{kind}")}
    found = measured.get(chip)
    if found is None:
        anchors = tuple(sorted((part for part in measured if part in relatives), key=lambda part: -int(measured[part]["n"])))
        none = f"not validated: no published {WORDS[kind]} on {chip}"
        if not anchors:
            return Standing(0, None, None, f"{none.replace(':', ' (prior):', 1)}")
        rows = sum(int(measured[part]["n"]) for part in anchors)
        return Standing(rows, None, None, f"{none}; anchored on {rows:,} of {', '.join(anchors)}", anchors=anchors)
    rows, median = int(found["n"]), float(found["median_ape"])
    apart = float(found["left_out"]) if found["left_out"] else None  # too few rows to say
    rest = "" if apart is None else f", leave-one-chip-out {apart * 100:.0f} %"
    return Standing(rows, median, apart, f"validated on {rows:,} {WORDS[kind]} of {chip}, median error {median * 100:.0f} %{rest}")


def order_of(catalogue: Catalogue, kind: str) -> str:
    """Return how often two systems came out in the right order; nothing where it was never measured."""
    for row in table(catalogue, "orders"):
        if row["kind"] == kind:
            share, error = float(row["right"]) * 100, float(row["ratio_error"]) * 100
            return (
                f"Between measured systems at one interactivity, each predicted without rows of its chip, "
                f"the order was right in {share:.0f} % of {int(row['pairs']):,} pairs, "
                f"the ratio off by {error:.0f} % at the median."
            )
    return ""
