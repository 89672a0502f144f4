"""What drives a metric: the tornado, rows and document of `tco sensitivity`."""

from __future__ import annotations

from typing import Any

from tco.chain.metrics import METRICS
from tco.foundation.provenance import SOURCED, Input
from tco.foundation.units import convert
from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.sensitivity import Sensitivity, Swing

FIELDS = ("path", "value", "low", "high", "unit", "metric_low", "metric_high", "swing", "meets_low", "meets_high", "kind", "source")
INDICES = ("first_order", "total", "first_order_error", "total_error")
HEADER = (*FIELDS, *INDICES)
SHOWN = 15  # inputs of the table; all are in CSV and JSON
HALF = 5  # marks of a bar on either side of the middle
MISSED = "!"  # at an end where the target is not met


def part_of(given: Input) -> str:
    """Return what an input belongs to: a part, a family's practice, the terms."""
    return given.path.rpartition(".")[0].removeprefix("parts.")


GROUPS = {"part": part_of, "kind": lambda given: given.kind, "source": lambda given: given.source}


def in_shown_unit(given: Input) -> tuple[float, float, float, str]:
    """Return value, low and high of an input and their unit, as the catalogue writes it."""
    value, unit = given.shown or (given.value, given.unit)
    return value, convert(given.low or 0.0, given.unit, unit), convert(given.high or 0.0, given.unit, unit), unit


def entries(found: Sensitivity) -> list[dict[str, Any]]:
    """Return an entry for every input."""
    rows = []
    for one in found.swings:
        given, driver = one.given, found.drivers.get(one.given.path)
        cells = (given.path, *in_shown_unit(given), one.at_low, one.at_high, one.swing, one.meets_low, one.meets_high, given.kind, given.source)
        row = dict(zip(FIELDS, cells, strict=True))
        rows.append(row | (dict(zip(INDICES, driver, strict=True)) if driver else {}))
    return rows


def sensitivity_rows(found: Sensitivity) -> list[list[Any]]:
    """Return the CSV rows, a flag as 1 or 0."""
    return [[int(cell) if isinstance(cell := row.get(name), bool) else cell for name in HEADER] for row in entries(found)]


def sensitivity_document(found: Sensitivity) -> dict[str, Any]:
    """Return the content of the JSON document."""
    return {
        "scenario": found.sides[0].scenario.name,
        "metric": found.metric,
        "metric_value": number(found.centre),
        "metric_unit": METRICS[found.metric].unit,
        "baseline": found.sides[1].scenario.name if found.sides[1:] else None,
        "plan": plan_words(found),
        "inputs": entries(found),
        "worth_finding_out": [worth_entry(found, one) for one in found.worth],
        "groups": {group: [{"name": key, "share": share} for key, share in found.groups(name).items()] for group, name in GROUPS.items()},
        "notes": sensitivity_notes(found),
    }


def worth_entry(found: Sensitivity, one: Swing) -> dict[str, Any]:
    """Return an estimate that is worth finding out, with what knowing it does to the range."""
    return {"path": one.given.path, "kind": one.given.kind, "swing": one.swing, "share": found.share(one), "narrows_by": found.narrows(one)}


def plan_words(found: Sensitivity) -> str:
    """Say how plans were found."""
    return "chosen anew" if found.replan else "held"


def sensitivity_notes(found: Sensitivity) -> list[str]:
    """Return what is to be said beside: ends at which the target is not met."""
    ends = [
        f"{one.given.path} at its {end}"
        for one in found.swings
        if one.swing != 0
        for end, met in (("low", one.meets_low), ("high", one.meets_high))
        if not met
    ]
    if not ends:
        return []
    if found.replan:
        return [f"no plan meets the workload's targets with {', '.join(ends)}"]
    return [f"no batch of the plan meets the workload's targets with {', '.join(ends)}; --replan chooses the plan anew"]


def sensitivity_table(found: Sensitivity) -> Table:
    """Return the tornado as a table."""
    moving = [one for one in found.swings if one.swing != 0]
    farthest = max((abs(end - found.centre) for one in moving for end in (one.at_low, one.at_high) if end is not None), default=0.0)
    columns = ["input", "from P5 to P95", "at low", "at high", "low ░ high █", *(["first", "total"] if found.drivers else [])]
    rows = []
    for one in moving[:SHOWN]:
        ends = [end_words(one.at_low, one.meets_low), end_words(one.at_high, one.meets_high)]
        row = [one.given.path, range_words(one.given), *ends, bar(one, found.centre, farthest)]
        if found.drivers:
            driver = found.drivers.get(one.given.path)
            row += [share_words(driver.first), share_words(driver.total)] if driver else ["", ""]
        rows.append(row)
    unit = METRICS[found.metric].unit
    title = f"{found.sides[0].centre.title}: what drives {METRICS[found.metric].label}"
    now = f"{found.metric} = {significant(found.centre, 6)} {unit}".rstrip()
    above = [f"{now}; each input alone at its P5 and P95, the plan {plan_words(found)}"]
    return Table(columns, rows, title, above, remarks(found, len(moving)), align="lrrrlrr")


def remarks(found: Sensitivity, moving: int) -> list[str]:
    """Return the lines below the table."""
    lines = [f"{moving - SHOWN} more inputs move it less: --format csv lists all."] if moving > SHOWN else []
    lines += [f"{len(found.swings) - moving} of {len(found.swings)} inputs with a range do not move it."] if moving < len(found.swings) else []
    shares = [f"{key} {share_words(share)}" for key, share in found.groups(part_of).items() if share >= 0.01]
    lines += [f"Squares of the swings: {', '.join(shares)}."] if shares else []
    if found.worth:
        named = [f"{one.given.path} ({narrowing(found, one)})" for one in found.worth]
        lines.append(f"Worth finding out, being estimates or assumptions (~): {', '.join(named)}.")
    if not all(one.meets_low and one.meets_high for one in found.swings if one.swing != 0):
        lines.append(f"{MISSED} the workload's targets are not met there.")
    return lines


def narrowing(found: Sensitivity, one: Swing) -> str:
    """Say what knowing an input does to the range."""
    share = found.narrows(one)
    return "decides whether any plan meets the target" if share is None else f"narrows the range by {share_words(share)}"


def range_words(given: Input) -> str:
    """Return the range of an input, marked where nobody states it."""
    _, low, high, unit = in_shown_unit(given)
    return f"{'' if given.kind in SOURCED else '~'}{significant(low)} to {significant(high)} {unit}".rstrip()


def share_words(share: float) -> str:
    """Return a share in percent."""
    return f"{share * 100:.0f} %" if abs(share) >= 0.1 else f"{share * 100:.1f} %"


def end_words(value: float | None, meets: bool) -> str:
    """Return the metric at an end, marked where the target is not met."""
    return ("-" if value is None else significant(value)) + ("" if meets else f" {MISSED}")


def bar(one: Swing, centre: float, farthest: float) -> str:
    """Return the bar of an input: how far either end lies from the middle, to the left if below."""
    marks = [" "] * HALF + ["│"] + [" "] * HALF
    ends = [(end - centre, mark) for end, mark in ((one.at_low, "░"), (one.at_high, "█")) if end is not None]
    for away, mark in sorted(ends, key=lambda end: -abs(end[0])):
        for step in range(1, round(abs(away) / (farthest or 1.0) * HALF) + 1):
            marks[HALF + (step if away > 0 else -step)] = mark
    return "".join(marks)
