"""Which published figures check the prices in force: `data/guards.csv`, written anew.

`python -m tco.comparison.guarding` changes each price of a headline bill alone, only the row in force
at the headline's date, and counts the published figures that fail. A figure that is older than the
evidence of the row does not count: it cannot check a price of today.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog import Catalogue, load_catalogue
from tco.core.errors import DataError
from tco.core.files import data_directory
from tco.core.provenance import Input, period
from tco.core.types import JsonObject
from tco.cost.guards import COLUMNS, GUARDS
from tco.cost.price_dates import BILL, is_dated_price
from tco.evidence.published import (
    INDEPENDENT,
    evaluate_published_figure,
    evaluate_published_row,
    moving,
)
from tco.scenario.document import HEADLINE_SYSTEM, Scenario, load_scenario
from tco.scenario.evaluate import evaluate

if TYPE_CHECKING:
    from tco.scenario.result import Result

DEARER, CHEAPER = 1.5, 0.67  # what a price in force is multiplied by, alone
LEAST_MOVE = 0.02  # share of a figure from which a price is tried
HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", HEADLINE_SYSTEM, "mi450x-ualoe72")


class Guard(NamedTuple):
    """A price in force, and the published figures that fail where it alone changes."""

    given: Input
    dearer: tuple[str, ...]  # figures that fail where it costs half as much again
    cheaper: tuple[str, ...]  # figures that fail where it costs a third less

    @property
    def figures(self) -> tuple[str, ...]:
        """Every figure that fails in either case, once."""
        return tuple(dict.fromkeys((*self.dearer, *self.cheaper)))


def prices_in_force(catalogue: Catalogue) -> dict[str, Input]:
    """Return the dated prices that the headline bills rest on, by path."""
    found: dict[str, Input] = {}
    for name in HEADLINE:
        result = evaluate(name, catalogue=catalogue)
        paths = [
            path
            for line in result.lines
            if line.asset in BILL and not line.recurs
            for path in line.inputs
        ]
        found |= {
            path: result.inputs[path] for path in paths if is_dated_price(result.inputs[path])
        }
    return dict(sorted(found.items()))


def measure_guards(catalogue: Catalogue) -> list[Guard]:
    """Return each price in force with the published figures that check it."""
    prices = prices_in_force(catalogue)
    failures: dict[tuple[str, float], list[str]] = {}
    for name in catalogue.published:
        scenario = load_scenario(catalogue, f"published/{name}")
        for position, row in enumerate(
            catalogue.toml(catalogue.published[name]).get("published", []), start=1
        ):
            if row["kind"] == INDEPENDENT:
                for path, factor in failing_changes(
                    catalogue, scenario, row, f"{name}:{position}", prices
                ):
                    failures.setdefault((path, factor), []).append(f"{name}/{row['source']}")
    return [
        Guard(given, *(tuple(failures.get((path, factor), ())) for factor in (DEARER, CHEAPER)))
        for path, given in prices.items()
    ]


def failing_changes(
    catalogue: Catalogue,
    scenario: Scenario,
    row: JsonObject,
    where: str,
    prices: dict[str, Input],
) -> Iterator[tuple[str, float]]:
    """Yield the changes of a price in force, as path and factor, that make a figure fail."""
    ask = partial(evaluate_published_row, catalogue, scenario)
    base = evaluate_published_figure(row, where, ask, catalogue)
    if base.kind != INDEPENDENT or not base.ok:
        return
    result = ask(row)
    amounts = moving(result, row, where)
    total_usd = sum(amount for amount, _ in amounts)
    for path, given in prices.items():
        held = result.inputs.get(path)
        share = sum(amount for amount, paths in amounts if path in paths) / total_usd
        if (
            held is None
            or held.as_of != given.as_of
            or share < LEAST_MOVE
            or not _is_new_enough(catalogue, row, given)
        ):
            continue
        for factor in (DEARER, CHEAPER):
            changed = row | {
                "set": row.get("set", {}) | {path: f"{given.value * factor!r} {given.unit}"}
            }
            if not _holds(changed, where, ask, catalogue):
                yield path, factor


def _holds(
    row: JsonObject, where: str, ask: Callable[[JsonObject], Result], catalogue: Catalogue
) -> bool:
    """Say whether a figure holds; one whose line is gone, since another part is the cheaper now,
    does not.
    """
    try:
        return evaluate_published_figure(row, where, ask, catalogue).ok
    except DataError:
        return False


def _is_new_enough(catalogue: Catalogue, row: JsonObject, given: Input) -> bool:
    """Say whether a figure is of the date of a price's evidence or later."""
    source = catalogue.sources.get(row["source"])
    date = str(row.get("as_of") or (source.date if source else ""))
    return bool(date) and period(date).last >= period(given.evidence_date).first


def write_guards(guards: list[Guard], path: Path) -> None:
    """Write the table of guards."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for guard in guards:
            counts = len(guard.dearer), len(guard.cheaper)
            writer.writerow((guard.given.path, guard.given.as_of, *counts, ";".join(guard.figures)))


def rewrite_guards() -> None:
    """Measure the shipped catalogue and write `data/guards.csv`."""
    catalogue = load_catalogue()
    path = data_directory() / GUARDS
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected the header {','.join(COLUMNS)}")
    write_guards(measure_guards(catalogue), path)


if __name__ == "__main__":
    rewrite_guards()
