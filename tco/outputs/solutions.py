"""Break-even: the table, rows and document of `tco solve`."""

from __future__ import annotations

from typing import Any

from tco.chain.metrics import METRICS
from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.solve import Break, Solution
from tco.studies.variable import Moment

HEADER = ("value", "unit", "metric", "crossing")


def setting(found: Solution, one: Break) -> str:
    """Return a value as `--set` takes it."""
    return f"{found.path}={found.today.text(one.value)}"


def solution_document(found: Solution) -> dict[str, Any]:
    """Return the content of the JSON document."""
    first = found.breaks[0] if found.breaks else None
    return {
        "scenario": found.scenario,
        "metric": found.metric,
        "metric_unit": METRICS[found.metric].unit,
        "metric_today": number(found.centre),
        "until": found.words,
        "target": number(found.target),
        "input": found.path,
        "unit": found.today.unit,
        "today": plain(found, found.today.value),
        "crossing": first is not None,
        "value": plain(found, first.value) if first else None,
        "values": [plain(found, one.value) for one in found.breaks],
        "set": setting(found, first) if first else None,
        "reached": [
            {"value": plain(found, one.value), "metric": one.metric, "metric_before": one.short, "step": one.metric != one.short}
            for one in found.breaks
        ],
        "plan": found.plan,
        "why": found.reason or None,
        "points": [{"value": plain(found, value), "metric": metric} for value, metric in found.points],
        "notes": found.notes,
    }


def solution_rows(found: Solution) -> list[list[Any]]:
    """Return the CSV rows: the metric over the range, crossings among it."""
    rows = [(value, metric, 0) for value, metric in found.points]
    rows += [(one.value, one.metric, 1) for one in found.breaks]
    return [[plain(found, value), found.today.unit, metric, crossing] for value, metric, crossing in sorted(rows, key=lambda row: row[0])]


def plain(found: Solution, value: float | None) -> float | str | None:
    """Return a value of the input as documents carry it: a number, or a date."""
    return None if value is None else number(one) if isinstance(one := found.today.plain(value), float) else one


def shown(found: Solution, value: float | None, digits: int = 6) -> str:
    """Return a value of the input as tables show it."""
    return "" if value is None else found.today.text(value) if found.today.stepwise else significant(value, digits)


def change(found: Solution, value: float) -> str:
    """Return how far a value lies from today's."""
    if isinstance(found.today, Moment):
        months = found.today.months_to(value)
        return f"{months:+d} month{'' if abs(months) == 1 else 's'}"
    return f"{(value / found.today.value - 1) * 100:+.3g} %" if found.today.value else ""


def solution_table(found: Solution) -> Table:
    """Return the answer as a table: today, and every value at which the target is reached."""
    unit = METRICS[found.metric].unit
    title = f"{found.scenario}: {found.path} at which {found.metric} {target_words(found)}"
    ends = [f"{shown(found, value, 3)} {unit_words(found)}".rstrip() for value, _ in (found.points[0], found.points[-1])]
    above = [f"search range {ends[0]} to {ends[1]}, plan {found.plan}"]
    rows = [["today", shown(found, found.today.value), "", significant(found.centre, 6)]]
    step = "the month it is reached" if found.today.stepwise else "a step over the target"
    for one in found.breaks:
        words = step if one.metric != one.short else "target"
        rows.append([words, shown(found, one.value), change(found, one.value), significant(one.metric, 6)])
    below = [f"--set '{setting(found, found.breaks[0])}'"] if found.breaks else [f"No crossing: {found.reason}."]
    named = f"{found.path}, {unit_words(found)}".rstrip(", ")
    moved = "change" if found.today.value else ""
    return Table(("", named, moved, f"{found.metric}, {unit}".rstrip(", ")), rows, title, above, below)


def unit_words(found: Solution) -> str:
    """Return the unit that stands beside values of the input; a date needs none."""
    return "" if found.today.stepwise else found.today.unit


def target_words(found: Solution) -> str:
    """Return the target in words."""
    if found.target is None:
        return f"equals that of {found.words}"
    return f"is {significant(found.target, 6)} {METRICS[found.metric].unit}".rstrip() + (f" ({found.words})" if found.words.endswith("%") else "")
