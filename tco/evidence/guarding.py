"""Which published figures check the prices in force: `data/guards.csv`, written anew.

`python -m tco.evidence.guarding` changes each price of a headline bill alone, only the row in force
at the headline's date, and counts the published figures that fail. A figure that is older than the
evidence of the row does not count: it cannot check a price of today.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tco.catalog import Catalogue, load_catalogue
from tco.core.errors import DataError
from tco.core.files import data_directory
from tco.core.mappings import lists_by_key
from tco.core.provenance import Input, period
from tco.cost.guards import COLUMNS, GUARDS
from tco.cost.price_dates import BILL, is_dated_price
from tco.evaluation.evaluation import HEADLINE
from tco.evidence.published import (
    INDEPENDENT,
    PublishedRow,
    evaluate_published_figure,
    priced_amounts,
    read_published,
)
from tco.scenario.evaluate import evaluate

DEARER, CHEAPER = 1.5, 0.67  # what a price in force is multiplied by, alone
LEAST_SHARE = 0.02  # of a figure, from which a price is tried


class Guard(NamedTuple):
    """A price in force, and the published figures that fail where it alone changes."""

    price: Input
    dearer: tuple[str, ...]  # figures that fail where it costs half as much again
    cheaper: tuple[str, ...]  # figures that fail where it costs a third less

    @property
    def figures(self) -> tuple[str, ...]:
        """Every figure that fails in either case, once."""
        return tuple(dict.fromkeys((*self.dearer, *self.cheaper)))


def _prices_in_force(catalogue: Catalogue) -> dict[str, Input]:
    """Return the dated prices that the headline bills rest on, by path."""
    prices: dict[str, Input] = {}
    for scenario_name in HEADLINE:
        scenario_result = evaluate(scenario_name, catalogue=catalogue)
        for line in scenario_result.lines:
            if line.asset in BILL and not line.recurs:
                prices |= {path: scenario_result.inputs[path] for path in line.inputs}
    return {path: price for path, price in sorted(prices.items()) if is_dated_price(price)}


def measure_guards(catalogue: Catalogue) -> list[Guard]:
    """Return each price in force with the published figures that check it."""
    prices = _prices_in_force(catalogue)
    failures = lists_by_key(
        (change, f"{publication_name}/{published_row.cells['source']}")
        for publication_name in catalogue.published
        for published_row in read_published(catalogue, publication_name)
        if published_row.cells["kind"] == INDEPENDENT
        for change in failing_changes(published_row, prices)
    )
    return [
        Guard(price, *(tuple(failures.get((path, factor), ())) for factor in (DEARER, CHEAPER)))
        for path, price in prices.items()
    ]


def failing_changes(
    published_row: PublishedRow, prices: dict[str, Input]
) -> Iterator[tuple[str, float]]:
    """Yield the changes of a price in force, as path and factor, that make a figure fail.

    Args:
        published_row: Row of a published file.
        prices: Prices in force by path.

    """
    figure = evaluate_published_figure(published_row)
    if figure.kind != INDEPENDENT or not figure.ok:
        return
    scenario_result = published_row.result()
    amounts = priced_amounts(scenario_result, published_row)
    total = sum(amount for amount, _ in amounts)
    for path, price in prices.items():
        used_price = scenario_result.inputs.get(path)
        share = sum(amount for amount, paths in amounts if path in paths) / total
        if (
            used_price is None
            or used_price.as_of != price.as_of
            or share < LEAST_SHARE
            or not _is_new_enough(published_row, price)
        ):
            continue
        for factor in (DEARER, CHEAPER):
            change = {path: f"{price.value * factor!r} {price.unit}"}
            if not _holds_with(published_row, change):
                yield path, factor


def _holds_with(published_row: PublishedRow, change: dict[str, str]) -> bool:
    cells = published_row.cells | {"set": published_row.cells.get("set", {}) | change}
    try:
        return evaluate_published_figure(published_row._replace(cells=cells)).ok
    except DataError:
        # its line is gone, since another part is the cheaper now
        return False


def _is_new_enough(published_row: PublishedRow, price: Input) -> bool:
    """Return whether a figure is of the date of a price's evidence or later."""
    source = published_row.catalogue.sources.get(published_row.cells["source"])
    date = published_row.cells.get("as_of") or (source.date if source else "")
    return bool(date) and period(date).last >= period(price.evidence_date).first


def write_guards(guards: list[Guard], path: Path) -> None:
    """Write the table of guards."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for guard in guards:
            counts = len(guard.dearer), len(guard.cheaper)
            writer.writerow((guard.price.path, guard.price.as_of, *counts, ";".join(guard.figures)))


def _rewrite_guards() -> None:
    catalogue = load_catalogue()
    path = data_directory() / GUARDS
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected the header {','.join(COLUMNS)}")
    write_guards(measure_guards(catalogue), path)


if __name__ == "__main__":
    _rewrite_guards()
