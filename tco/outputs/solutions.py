"""Break-even: the table, rows and document of `tco solve`."""

from __future__ import annotations

from typing import Any

from tco.chain.metrics import METRICS
from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.solve import Break, Solution

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
        "today": number(found.today.value),
        "crossing": first is not None,
        "value": number(first.value) if first else None,
        "values": [one.value for one in found.breaks],
        "set": setting(found, first) if first else None,
        "reached": [{"value": one.value, "metric": one.metric, "metric_before": one.short, "step": one.metric != one.short} for one in found.breaks],
        "plan": found.plan,
        "why": found.reason or None,
        "points": [{"value": value, "metric": metric} for value, metric in found.points],
        "notes": found.notes,
    }


def solution_rows(found: Solution) -> list[list[Any]]:
    """Return the CSV rows: the metric over the range, crossings among it."""
    rows = [[value, found.today.unit, metric, 0] for value, metric in found.points]
    rows += [[one.value, found.today.unit, one.metric, 1] for one in found.breaks]
    return sorted(rows, key=lambda row: row[0])


def solution_table(found: Solution) -> Table:
    """Return the answer as a table: today, and every value at which the target is reached."""
    unit = METRICS[found.metric].unit
    title = f"{found.scenario}: {found.path} at which {found.metric} {target_words(found)}"
    ends = [f"{significant(value, 3)} {found.today.unit}".rstrip() for value, _ in (found.points[0], found.points[-1])]
    above = [f"looked for from {ends[0]} to {ends[1]}, the plan {found.plan}"]
    today = "" if found.today.value is None else significant(found.today.value, 6)
    change = "" if not found.today.value else "change"
    rows = [["today", today, "", significant(found.centre, 6)]]
    for one in found.breaks:
        moved = f"{(one.value / found.today.value - 1) * 100:+.3g} %" if found.today.value else ""
        rows.append(["a step over the target" if one.metric != one.short else "target", significant(one.value, 6), moved, significant(one.metric, 6)])
    below = [f"--set '{setting(found, found.breaks[0])}'"] if found.breaks else [f"No crossing: {found.reason}."]
    return Table(("", f"{found.path}, {found.today.unit}".rstrip(", "), change, f"{found.metric}, {unit}".rstrip(", ")), rows, title, above, below)


def target_words(found: Solution) -> str:
    """Return the target in words."""
    if found.target is None:
        return f"equals that of {found.words}"
    return f"is {significant(found.target, 6)} {METRICS[found.metric].unit}".rstrip() + (f" ({found.words})" if found.words.endswith("%") else "")
