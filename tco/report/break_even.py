"""Break-evens: where a metric reaches a target as one input moves, and over two inputs who wins
where (`tco solve`).
"""

from __future__ import annotations

from string import ascii_uppercase

from tco.catalog import Catalogue
from tco.catalog.labels import axis_label, short_name
from tco.comparison.break_even import Break, Solution
from tco.comparison.maps import NOBODY, Map
from tco.evaluation.varied_input import Moment
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant
from tco.scenario.metrics import METRICS

VALUE = float | str | None  # a number, or a date


def solution_input_value(found: Solution, value: float | None) -> float | str | None:
    """Return a value of the input as documents carry it: a number, or a date."""
    return None if value is None else found.today.plain(value)


def setting(found: Solution, one: Break) -> str:
    """Return a value as `--set` takes it."""
    return f"{found.path}={found.today.text(one.value)}"


REACHED = Record(
    Member("value", VALUE, lambda one: solution_input_value(*one[:2])),
    Member("metric", float, "2.metric"),
    Member("metric_before", float, "2.short"),
    Member("step", bool, lambda one: one[2].metric != one[2].short),
)
POINT = Record(
    Member("value", VALUE, lambda one: solution_input_value(*one[:2])),
    Member("metric", float | None, "2"),
)
SOLVE = Document(
    "solve",
    "scenario",
    "metric",
    Member("metric_unit", read=lambda found: METRICS[found.metric].unit),
    Member("metric_today", float | None, "centre"),
    Member("until", read="words"),
    Member("target", float | None),
    Member("input", read="path"),
    Member("unit", read="today.unit"),
    Member("today", VALUE, lambda found: solution_input_value(found, found.today.value)),
    Member("crossing", bool, lambda found: bool(found.breaks)),
    Member(
        "value",
        VALUE,
        lambda found: solution_input_value(found, found.breaks[0].value if found.breaks else None),
    ),
    Member(
        "values",
        [VALUE],
        lambda found: [solution_input_value(found, one.value) for one in found.breaks],
    ),
    Member(
        "set", str | None, lambda found: setting(found, found.breaks[0]) if found.breaks else None
    ),
    Member("reached", [REACHED], lambda found: [(found, one.value, one) for one in found.breaks]),
    "plan",
    Member("why", str | None, lambda found: found.reason or None),
    Member("points", [POINT], lambda found: [(found, *point) for point in found.points]),
    Member("notes", [str]),
)
ROW = Record(  # of a CSV: the metric over the range, crossings among it
    *POINT.members[:1],
    Member("unit", read="0.today.unit"),
    *POINT.members[1:],
    Member("crossing", bool, "3"),
)


def solution_answer(catalogue: Catalogue, found: Solution) -> Answer:
    """Return the values at which the target is reached.

    Args:
        catalogue: The catalogue that the solution rests on.
        found: Crossings of the target, and the metric over the range of the input.

    Returns:
        The answer of `tco solve` in all formats; rows of CSV are in the order of the values.

    """
    rows = [(value, metric, False) for value, metric in found.points] + [
        (one.value, one.metric, True) for one in found.breaks
    ]
    ordered = [(found, *row) for row in sorted(rows, key=lambda row: row[0])]
    return SOLVE.answer(
        catalogue,
        found,
        lambda: [solution_table(found)],
        (ROW, ordered),
        found.notes,
        of=found.base_case_result.context | {"input": found.path, "metric_name": found.metric},
    )


def input_value_text(found: Solution, value: float | None, digits: int = 6) -> str:
    """Return a value of the input as tables show it."""
    return (
        ""
        if value is None
        else found.today.text(value)
        if found.today.stepwise
        else significant(value, digits)
    )


def change(found: Solution, value: float) -> str:
    """Return the change from today's value to `value`, in months or percent.

    The text is empty where today's value is zero.
    """
    if isinstance(found.today, Moment):
        months = found.today.months_to(value)
        return f"{months:+d} month{'' if abs(months) == 1 else 's'}"
    return f"{(value / found.today.value - 1) * 100:+.3g} %" if found.today.value else ""


def solution_table(found: Solution) -> Table:
    """Return the answer as a table: today, and every value at which the target is reached."""
    unit = METRICS[found.metric].unit
    title = (
        f"{found.scenario}: {short_name(found.path)} at which {found.metric} {target_words(found)}"
    )
    ends = [
        f"{input_value_text(found, value, 3)} {unit_words(found)}".rstrip()
        for value, _ in (found.points[0], found.points[-1])
    ]
    above = [f"search range {ends[0]} to {ends[1]}, plan {found.plan}"]
    rows = [["today", input_value_text(found, found.today.value), "", significant(found.centre, 6)]]
    step = "the month it is reached" if found.today.stepwise else "a step over the target"
    for one in found.breaks:
        words = step if one.metric != one.short else "target"
        rows.append(
            [
                words,
                input_value_text(found, one.value),
                change(found, one.value),
                significant(one.metric, 6),
            ]
        )
    below = (
        [f"--set '{setting(found, found.breaks[0])}'"]
        if found.breaks
        else [f"No crossing: {found.reason}."]
    )
    named = axis_label(found.path, unit_words(found))
    moved = "change" if found.today.value else ""
    return Table(
        ("", named, moved, f"{found.metric}, {unit}".rstrip(", ")), rows, title, above, below
    )


def unit_words(found: Solution) -> str:
    """Return the unit that stands beside values of the input; a date needs none."""
    return "" if found.today.stepwise else found.today.unit


def target_words(found: Solution) -> str:
    """Return the target in words."""
    if found.target is None:
        return f"equals that of {found.words}"
    return f"is {significant(found.target, 6)} {METRICS[found.metric].unit}".rstrip() + (
        f" ({found.words})" if found.words.endswith("%") else ""
    )


# ---------------------------------------------------------------- two inputs
DIGITS = 3
NONE = "·"  # where no scenario has a value


VARIED = Record(
    "path",
    "unit",
    Member("today", float | None),
    Member("values", [float], lambda axis: list(axis.values)),
)
MAP = Document(
    "solve-map",
    Member("scenarios", [str]),
    "metric",
    Member("metric_unit", read=lambda found: METRICS[found.metric].unit),
    Member("inputs", [VARIED], lambda found: [found.x, found.y]),
    Member("best", [[str | None]], lambda found: found.to_frame().to_numpy().tolist()),
    Member(
        "values",
        {str: [[float | None]]},
        lambda found: dict(zip(found.scenarios, found.values, strict=True)),
    ),
    Member("share_best", {str: float}, "leaders"),
)


def map_answer(catalogue: Catalogue, found: Map) -> Answer:
    """Return the map of best scenarios over two inputs as an answer.

    Args:
        catalogue: The catalogue that the map rests on.
        found: The metric; `found.values` has the shape scenarios x rows (y) x columns (x).

    """
    names = (found.x.path, found.y.path, *(f"{found.metric} {name}" for name in found.scenarios))
    row = Record(
        *(Member(name, float | None, str(at)) for at, name in enumerate(names)),
        Member("best", str | None, str(len(names))),
    )
    points = [
        (x, y, *found.values[:, down, right], who)
        for down, (y, winners) in enumerate(
            zip(found.y.values, found.to_frame().to_numpy().tolist(), strict=True)
        )
        for right, (x, who) in enumerate(zip(found.x.values, winners, strict=True))
    ]
    of = found.results[0].context | {
        "scenario": ";".join(found.scenarios),
        "system": ";".join(one.system for one in found.results),
    }
    return MAP.answer(catalogue, found, lambda: [map_table(found)], (row, points), of=of)


def map_table(found: Map) -> Table:
    """Return the map as a table: the first input from left to right, the second from the top down,
    a letter for the best at each point.
    """
    signs = [ascii_uppercase[place % len(ascii_uppercase)] for place in range(len(found.scenarios))]
    title = (
        f"Where {METRICS[found.metric].label} is best: {found.x.words} to the right, "
        f"{found.y.words} down"
    )
    legend = ", ".join(
        f"{sign} {name} ({found.leaders[name] * 100:.0f} %)"
        for sign, name in zip(signs, found.scenarios, strict=True)
    )
    best = found.best
    rows = [
        [
            significant(float(y), DIGITS),
            *(NONE if place == NOBODY else signs[place] for place in row),
        ]
        for y, row in zip(found.y.values, best.tolist(), strict=True)
    ]
    below = (
        [] if (best != NOBODY).all() else [f"{NONE} no scenario meets the target of its workload."]
    )
    if len(winners := {name for name, share in found.leaders.items() if share}) == 1 and not below:
        below.append(
            f"{next(iter(winners))} is best everywhere: no border lies within these values."
        )
    below.append(
        "Plans, batches and structure are re-optimised at every point; --format csv has every "
        "value."
    )
    return Table(
        ("", *(significant(float(x), DIGITS) for x in found.x.values)), rows, title, [legend], below
    )
