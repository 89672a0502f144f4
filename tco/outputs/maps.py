"""Who wins where over two inputs: the table, rows and document of `tco solve` with two `--vary`."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any

import numpy as np

from tco.chain.metrics import METRICS
from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.maps import NOBODY, Map

DIGITS = 3
NONE = "·"  # where no scenario has a value


def letters(found: Map) -> list[str]:
    """Return the sign of each scenario."""
    return [ascii_uppercase[place % len(ascii_uppercase)] for place in range(len(found.scenarios))]


def header(found: Map) -> tuple[str, ...]:
    """Return the columns of the CSV."""
    return (found.x.path, found.y.path, *(f"{found.metric} {name}" for name in found.scenarios), "best")


def best_at(found: Map, row: int, column: int) -> str | None:
    """Return the scenario that has the best value at a point."""
    place = int(found.best[row, column])
    return None if place == NOBODY else found.scenarios[place]


def map_rows(found: Map) -> list[list[Any]]:
    """Return a CSV row for each point."""
    return [
        [float(x), float(y), *(number(float(one)) for one in found.values[:, row, column]), best_at(found, row, column)]
        for row, y in enumerate(found.y.values)
        for column, x in enumerate(found.x.values)
    ]


def map_document(found: Map) -> dict[str, Any]:
    """Return the content of the JSON document."""
    inputs = [{"path": one.path, "unit": one.unit, "today": number(one.today), "values": list(one.values)} for one in (found.x, found.y)]
    shape = range(len(found.y.values)), range(len(found.x.values))
    return {
        "scenarios": found.scenarios,
        "metric": found.metric,
        "metric_unit": METRICS[found.metric].unit,
        "inputs": inputs,
        "best": [[best_at(found, row, column) for column in shape[1]] for row in shape[0]],
        "values": {
            name: [[number(float(one)) for one in row] for row in np.asarray(many)] for name, many in zip(found.scenarios, found.values, strict=True)
        },
        "share_best": found.leaders,
    }


def map_table(found: Map) -> Table:
    """Return the map as a table: the first input from left to right, the second from the top down, a letter for the best at each point."""
    signs = letters(found)
    title = f"Where {METRICS[found.metric].label} is best: {found.x.words} to the right, {found.y.words} down"
    legend = ", ".join(f"{sign} {name} ({found.leaders[name] * 100:.0f} %)" for sign, name in zip(signs, found.scenarios, strict=True))
    rows = [
        [significant(float(y), DIGITS), *(NONE if found.best[row, at] == NOBODY else signs[found.best[row, at]] for at in range(len(found.x.values)))]
        for row, y in enumerate(found.y.values)
    ]
    below = [] if (found.best != NOBODY).all() else [f"{NONE} no scenario meets the target of its workload."]
    if len(winners := {name for name, share in found.leaders.items() if share}) == 1 and not below:
        below.append(f"{next(iter(winners))} is best everywhere: no border lies within these values.")
    below.append("Plans, batches and structure are re-optimised at every point; --format csv has every value.")
    return Table(("", *(significant(float(x), DIGITS) for x in found.x.values)), rows, title, [legend], below)
