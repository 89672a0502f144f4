"""Break-evens: the answer of `tco solve`.

It finds where a metric reaches a target as one input moves, and over two inputs who wins where.
"""

from __future__ import annotations

from string import ascii_uppercase
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import axis_label, short_name
from tco.comparison.break_even import Solution
from tco.comparison.maps import NOBODY, Map, MapAxis
from tco.evaluation.varied_input import Moment
from tco.report.assumptions import shown_metric
from tco.report.ranges import base_case_words, figures
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, fixed_digits, headed, input_unit, significant
from tco.scenario.metrics import METRICS, MORE_IS_BETTER, PRICED, RATIOS

VALUE = float | str | None  # a number, or a date
OTHER_TURN = (
    " The pick of `tco compare` has the least mean regret over the draws, so it turns at another "
    "value."
)


class ReachedTarget(NamedTuple):
    """A value at which the target is reached; where the metric steps, it passes over the target."""

    value: float | str | None
    metric: float
    metric_before: float
    step: bool


class SolutionPoint(NamedTuple):
    """A value of the input, and the metric there."""

    value: float | str | None
    unit: str
    metric: float | None
    crossing: bool


def _reached_targets(solution: Solution) -> list[ReachedTarget]:
    return [
        ReachedTarget(
            solution.today.plain(crossing.value),
            crossing.metric,
            crossing.short,
            crossing.metric != crossing.short,
        )
        for crossing in solution.breaks
    ]


def _solution_points(solution: Solution) -> list[SolutionPoint]:
    """Return the metric over the range of the input, crossings among it."""
    points = [(input_value, metric, False) for input_value, metric in solution.points]
    points += [(crossing.value, crossing.metric, True) for crossing in solution.breaks]
    today = solution.today
    return [
        SolutionPoint(today.plain(input_value), today.unit, metric, crossing)
        for input_value, metric, crossing in sorted(points, key=lambda point: point[0])
    ]


def _setting(solution: Solution) -> str | None:
    """Return the value nearest to today's as `--set` takes it; None without a crossing."""
    if not solution.breaks:
        return None
    return f"{solution.path}={solution.today.text(solution.breaks[0].value)}"


def _rounded_setting(solution: Solution) -> str:
    # six digits, as a reader types it
    input_value = solution.breaks[0].value
    rounded = input_value if solution.today.stepwise else float(f"{input_value:.6g}")
    return f"{solution.path}={solution.today.text(rounded)}"


def _today_value(solution: Solution) -> float | str | None:
    today = solution.today
    return None if today.value is None else today.plain(today.value)


ROW = Record(SolutionPoint)
SOLVE = Document(
    "solve",
    "scenario",
    "metric",
    Member("metric_unit", read=lambda solution: METRICS[solution.metric].unit),
    Member("metric_today", float | None, "centre"),
    Member("range", Maybe(figures("p10", "p50", "p90")), "drawn"),
    Member("until", read="words"),
    Member("target", float | None),
    Member("input", read="path"),
    Member("unit", read="today.unit"),
    Member("today", VALUE, _today_value),
    Member("crossing", bool, lambda solution: bool(solution.breaks)),
    Member(
        "value",
        VALUE,
        lambda solution: next((reached.value for reached in _reached_targets(solution)), None),
    ),
    Member(
        "values",
        [VALUE],
        lambda solution: [reached.value for reached in _reached_targets(solution)],
    ),
    Member("set", str | None, _setting),
    Member("reached", [ReachedTarget], _reached_targets),
    "plan",
    Member("why", str | None, lambda solution: solution.reason or None),
    Member(
        "points",
        [ROW.only("value", "metric")],
        lambda solution: [point for point in _solution_points(solution) if not point.crossing],
    ),
    Member("notes", [str]),
)


def solution_answer(catalogue: Catalogue, solution: Solution) -> Answer:
    """Answer with the values at which the target is reached.

    Args:
        catalogue: The catalogue that the solution rests on.
        solution: Crossings of the target, and the metric over the range of the input.

    Returns:
        The answer of `tco solve` in all formats; rows of CSV are in the order of the values.

    """
    return SOLVE.answer(
        catalogue,
        solution,
        lambda: [_solution_table(solution)],
        (ROW, _solution_points(solution)),
        solution.notes,
        of=solution.base_case_result.context
        | {"input": solution.path, "metric_name": solution.metric},
    )


def _input_value_text(solution: Solution, input_value: float | None, digits: int = 4) -> str:
    # as tables show it
    if input_value is None:
        return ""
    today = solution.today
    return today.text(input_value) if today.stepwise else fixed_digits(input_value, digits)


def _input_change_text(solution: Solution, input_value: float) -> str:
    """Print the change from today's value, in months or per cent; empty where that is zero."""
    today = solution.today
    if isinstance(today, Moment):
        months = today.months_to(input_value)
        return f"{months:+d} month{'' if abs(months) == 1 else 's'}"
    return f"{(input_value / today.value - 1) * 100:+.3g} %" if today.value else ""


def _plan_words(solution: Solution) -> str:
    """Return the sentence on the plan along the search; empty without a plan."""
    if solution.base_case_result.plan is None:
        return ""
    if solution.hold:
        return " The plan is fixed."
    if solution.plan == "held":
        return " The best plan stays that of the base case: its search does not read this input."
    return " The plan is re-optimised at every value."


def _solution_table(solution: Solution) -> Table:
    """Tabulate today's value, and every value at which the target is reached."""
    today = solution.today
    label, metric_unit, size = shown_metric(solution.metric)
    unit = "" if today.stepwise else input_unit(solution.path, today.unit)  # a date needs none
    if solution.metric in RATIOS:
        label = f"{label} over that of {solution.movers[1].side.scenario.name}"
    input_words = (
        "month at whose prices" if today.stepwise else f"{short_name(solution.path)} at which"
    )
    title = f"{solution.scenario}: {input_words} the {label} {_target_words(solution)}"
    low, high = (
        f"{_input_value_text(solution, input_value, 3)} {unit}".rstrip()
        for input_value, _ in (solution.points[0], solution.points[-1])
    )
    above = [
        f"Searched from {low} to {high}.{_plan_words(solution)} All else as in the base case."
        + OTHER_TURN * (solution.target is None and solution.metric in PRICED),
        base_case_words(solution.base_case_result, solution.metric, solution.drawn),
    ]
    centre = fixed_digits(solution.centre / size, 4)
    crossing_rows = [["base case", _input_value_text(solution, today.value), "", centre]]
    step = "first month past the target" if today.stepwise else "steps past the target"
    crossing_rows += [
        [
            step if crossing.metric != crossing.short else "at the target",
            _input_value_text(solution, crossing.value),
            _input_change_text(solution, crossing.value),
            fixed_digits(crossing.metric / size, 4),
        ]
        for crossing in solution.breaks
    ]
    values_word = "month" if today.stepwise else "value of it"
    below = [f"No {values_word} reaches the target: {solution.reason}."]
    if solution.breaks:
        command = f"tco explain {solution.scenario} {solution.metric}"
        if solution.metric in RATIOS:
            command = f"tco compare {solution.scenario}"
        below = [f"Try it: {command} --set '{_rounded_setting(solution)}'"]
    columns = (
        "",
        axis_label(solution.path, unit),
        "change" if today.value else "",
        headed(label, metric_unit),
    )
    return Table(columns, crossing_rows, title, above, below)


def _target_words(solution: Solution) -> str:
    if solution.target is None:
        return f"equals that of {solution.words}"
    _, metric_unit, size = shown_metric(solution.metric)
    unit = "" if metric_unit == "x" else metric_unit  # of a ratio, which needs none
    share = ""
    if solution.words.endswith("%"):
        share = f" ({solution.words.removesuffix('%').rstrip()} %)"
    verb = "reaches" if solution.today.stepwise else "is"
    return f"{verb} {fixed_digits(solution.target / size, 4)} {unit}".rstrip() + share


# ---------------------------------------------------------------- two inputs
DIGITS = 3
NONE = "·"  # where no scenario has a value
MAP = Document(
    "solve-map",
    Member("scenarios", [str]),
    "metric",
    Member("metric_unit", read=lambda regions: METRICS[regions.metric].unit),
    Member("inputs", [MapAxis], lambda regions: [regions.x, regions.y]),
    Member("best", [[str | None]], lambda regions: regions.to_frame().to_numpy().tolist()),
    Member(
        "values",
        {str: [[float | None]]},
        lambda regions: dict(zip(regions.scenarios, regions.values, strict=True)),
    ),
    Member("share_best", {str: float}, "leaders"),
)


def map_answer(catalogue: Catalogue, regions: Map) -> Answer:
    """Answer with the map of best scenarios over two inputs.

    Args:
        catalogue: The catalogue that the map rests on.
        regions: The metric; `regions.values` has the shape scenarios x rows (y) x columns (x).

    """
    x, y = regions.x, regions.y
    column_names = (
        x.path,
        y.path,
        *(f"{regions.metric} {scenario_name}" for scenario_name in regions.scenarios),
    )
    map_record = Record(
        *(
            Member(column_name, float | None, str(column))
            for column, column_name in enumerate(column_names)
        ),
        Member("best", str | None, str(len(column_names))),
    )
    points = [
        (x_value, y_value, *regions.values[:, down, right], best)
        for down, (y_value, winners) in enumerate(
            zip(y.values, regions.to_frame().to_numpy().tolist(), strict=True)
        )
        for right, (x_value, best) in enumerate(zip(x.values, winners, strict=True))
    ]
    context = regions.results[0].context | {
        "scenario": ";".join(regions.scenarios),
        "system": ";".join(scenario_result.system for scenario_result in regions.results),
    }
    return MAP.answer(
        catalogue, regions, lambda: [_map_table(regions)], (map_record, points), of=context
    )


def _map_table(regions: Map) -> Table:
    """Tabulate a letter for the best scenario at each point of two inputs."""
    count = len(ascii_uppercase)
    signs = [
        ascii_uppercase[scenario_index % count] for scenario_index in range(len(regions.scenarios))
    ]
    best_word = "highest" if regions.metric in MORE_IS_BETTER else "lowest"
    title = f"Which scenario has the {best_word} {shown_metric(regions.metric)[0]}"
    shares = regions.leaders
    legend = ", ".join(
        f"{sign} {scenario_name} ({shares[scenario_name] * 100:.0f} %)"
        for sign, scenario_name in zip(signs, regions.scenarios, strict=True)
    )
    best = regions.best
    map_rows = [
        [
            fixed_digits(float(y_value), DIGITS),
            *(
                NONE if scenario_index == NOBODY else signs[scenario_index]
                for scenario_index in best_row
            ),
        ]
        for y_value, best_row in zip(regions.y.values, best.tolist(), strict=True)
    ]
    winners = [scenario_name for scenario_name, share in shares.items() if share]
    spans = [
        f"{short_name(axis.path)} from {significant(float(axis.values[0]), DIGITS)} to "
        f"{significant(float(axis.values[-1]), DIGITS)} {input_unit(axis.path, axis.unit)}".rstrip()
        for axis in (regions.x, regions.y)
    ]
    below = [
        "The plan is chosen again at every point. --format csv has every value.",
    ]
    if (best == NOBODY).any():
        below.insert(0, f"{NONE} no scenario meets the target of its workload.")
    elif len(winners) == 1:
        sentence = f"{winners[0]} has it everywhere: {' and '.join(spans)}."
        return Table((), [], title, [sentence], below)
    legend = f"{legend} of the points. To the right: {regions.x.words}. Down: {regions.y.words}."
    columns = ("", *(significant(float(x_value), DIGITS) for x_value in regions.x.values))
    return Table(columns, map_rows, title, [legend], below)
