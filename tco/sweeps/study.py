"""A study as its file states it, checked for form: scenarios, values, metrics and outputs.

The values of an input that a study goes through are a list, or so many steps from one value to
another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from tco.core.errors import DataError, located, refuse_unknown, unknown
from tco.core.files import is_there, read_toml, scenario_directory
from tco.core.own_values import question_number_and_unit, question_quantity
from tco.core.types import AnyArray, JsonMapping, JsonObject, is_finite_number
from tco.core.units import convert
from tco.scenario.choices import DOCUMENTS, TEXTS
from tco.scenario.metrics import METRICS, RATIOS
from tco.sweeps.answer import ExpectedFigure, parse_expected_figures

RANGE = ("from", "to", "steps", "scale")
SCALES = ("linear", "log")
PLAN = "plan."  # begins the path of an axis of the plan


class SweepAxis(NamedTuple):
    """An input and its texts or numbers, each computed by its index, without an array."""

    path: str
    unit: str | None  # None for an axis of texts
    listed: tuple[Any, ...] = ()
    start: float = 0.0
    stop: float = 0.0
    steps: int = 0
    log: bool = False

    @property
    def length(self) -> int:
        """Number of values on the axis."""
        return len(self.listed) or self.steps

    def numbers_at(self, value_indices: AnyArray) -> AnyArray:
        """Return the numbers at some places."""
        if self.listed:
            return np.asarray(self.listed, dtype=float)[value_indices]
        share = value_indices / (self.steps - 1)
        axis_numbers = (
            self.start * (self.stop / self.start) ** share
            if self.log
            else self.start + (self.stop - self.start) * share
        )
        return np.where(value_indices == self.steps - 1, self.stop, axis_numbers)

    def setting(self, value_index: int) -> Any:
        """Return one value as an evaluation takes it."""
        return (
            self.listed[value_index]
            if self.unit is None
            else (float(self.numbers_at(np.array([value_index]))[0]), self.unit)
        )


def parse_study_axis(
    path: str, axis_values: Any, where: str, unit_of: Callable[[str], str]
) -> SweepAxis:
    """Return a path's values in a study's file; faulty values raise `DataError`."""
    if isinstance(axis_values, dict):
        return _parse_range_axis(path, axis_values, where, unit_of)
    if not isinstance(axis_values, list) or not axis_values:
        raise DataError(
            f"{where}: expected a list of values with one value or more, or {{ from, to, steps, "
            "scale }"
        )
    if twice := _first_repeated(axis_values):
        raise DataError(f"{where}: {twice!r} is listed twice")
    if path in TEXTS or path in DOCUMENTS or path.startswith(PLAN):
        return SweepAxis(path, None, tuple(str(axis_value) for axis_value in axis_values))
    numbers, unit_name = _in_one_unit(axis_values, path, where, unit_of)
    return SweepAxis(path, unit_name, tuple(numbers))


def _first_repeated(stated: list[Any]) -> Any:
    repeated = (entry for index, entry in enumerate(stated) if entry in stated[:index])
    return next(repeated, None)


def _parse_range_axis(
    path: str, range_table: JsonObject, where: str, unit_of: Callable[[str], str]
) -> SweepAxis:
    """Return so many steps from one value to another."""
    if path in TEXTS or path in DOCUMENTS or path.startswith(PLAN):
        raise DataError(f"{where}: takes names, expected a list of them")
    refuse_unknown("key", range_table, RANGE, where)
    if missing := [range_key for range_key in RANGE[:3] if range_key not in range_table]:
        raise DataError(
            f"{where}: {missing[0]} is missing, expected {{ from, to, steps }} and perhaps scale"
        )
    (start, stop), unit_name = _in_one_unit(
        [range_table["from"], range_table["to"]], path, where, unit_of
    )
    steps, scale = range_table["steps"], range_table.get("scale", "linear")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 2:
        raise DataError(f"{where}: steps is {steps!r}, expected a whole number of 2 or more")
    refuse_unknown("scale", [str(scale)], SCALES, where)
    if start >= stop:
        hint = "the range is reversed" if start > stop else "both ends are the same"
        raise DataError(
            f"{where}: from {range_table['from']} to {range_table['to']}: {hint}, expected the "
            "lower value first"
        )
    if scale == "log" and start <= 0:
        raise DataError(
            f"{where}: from {range_table['from']} on a log scale, expected a value above zero"
        )
    return SweepAxis(path, unit_name, (), start, stop, steps, scale == "log")


def _in_one_unit(
    written_values: list[Any], path: str, where: str, unit_of: Callable[[str], str]
) -> tuple[list[float], str]:
    """Return values as numbers of their common unit, or else of the input's own."""
    input_unit = unit_of(path)
    with located(where):
        read = [quantity(written_value, input_unit) for written_value in written_values]
    unit_names = {unit_name for _, unit_name in read}
    if len(unit_names) == 1:
        return [number for number, _ in read], unit_names.pop()
    return [float(convert(number, unit_name, input_unit)) for number, unit_name in read], input_unit


def quantity(written_value: Any, input_unit: str) -> tuple[float, str]:
    """Return a value and the unit it is written in; a bare number is pure, as it is everywhere."""
    quantity_text = written_value.strip() if isinstance(written_value, str) else repr(written_value)
    input_number = question_quantity(quantity_text, input_unit)
    number, unit = question_number_and_unit(quantity_text) or (input_number, input_unit)
    return (number, unit) if unit else (input_number, input_unit)


# keys for people and tests, which do not change the cases
WORDS = (
    "title",
    "question",
    "answer",
    "expect",
)
TABLES = ("set", "grid", "draw", "constraints")
KEYS = (*WORDS, "scenarios", "report", "baseline", "plan", *TABLES)
PLANS = ("best", "near", "held")
METHODS = ("random", "latin-hypercube", "sobol")
DRAW = ("samples", "seed", "method", "paths")
LIMITS = ("min", "max")
MOST_SOBOL_POINTS = 2**30  # longest Sobol sequence that the generator can make
MOST_CASES = 2**53  # beyond this count a float cannot number the cases


class Draw(NamedTuple):
    """Sampling settings of a study: draws per grid point, seed and method."""

    samples: int
    seed: int
    method: str
    paths: tuple[str, ...] | None  # drawn inputs; None for every input with a range


class Study(NamedTuple):
    """Parsed study document: scenarios, grid, draws, constraints and reported metrics."""

    name: str
    where: str
    document: JsonMapping  # content of the file
    scenarios: tuple[str, ...]
    report: tuple[str, ...]
    baseline: str | None  # baseline of the reported ratios; None without one
    plan: str
    settings: Mapping[str, str]
    grid: JsonMapping
    draw: Draw | None
    constraints: Mapping[str, tuple[float, float]]
    expect: tuple[ExpectedFigure, ...] = ()  # figures of the answer

    @property
    def content(self) -> str:
        """JSON text of all document fields that change the cases."""
        return json.dumps(
            {
                document_key: document_value
                for document_key, document_value in self.document.items()
                if document_key not in WORDS
            },
            ensure_ascii=False,
            default=str,
        )


@cache
def shipped_studies() -> dict[str, Path]:
    """Return the studies that come with the program, by name.

    Returns:
        Path of the TOML file of each study.

    """
    return {path.stem: path for path in sorted((scenario_directory() / "studies").glob("*.toml"))}


def read_study(study: str | Path | JsonMapping) -> Study:
    """Return a study that is shipped, in a file, or a table.

    Args:
        study: Name of a shipped study, path of a TOML file, or the document as a table.

    Raises:
        DataError: The study is unknown or wrong.

    """
    if isinstance(study, Mapping):
        return _study_of("study", "study", study)
    path = shipped_studies().get(str(study), Path(study))
    if not path.suffix and not is_there(path):
        raise unknown("study", str(study), shipped_studies())
    return _study_of(path.stem, str(path), read_toml(path))


def _study_of(study_name: str, where: str, document: JsonMapping) -> Study:
    """Return a study that a table states."""
    refuse_unknown("key", document, KEYS, where)
    tables = {table_key: _study_table(document, table_key, where) for table_key in TABLES}
    settings = {path: str(setting_value) for path, setting_value in tables["set"].items()}
    report = tuple(
        _metric_of(metric_name, f"{where}: report")
        for metric_name in _names_of(document, "report", where)
    )
    limits = f"{where}: [constraints]"
    constraints = {
        _metric_of(metric, limits): _limits_of(metric_limits, f"{limits} {metric}")
        for metric, metric_limits in tables["constraints"].items()
    }
    if repeated_path := next((path for path in tables["grid"] if path in settings), None):
        raise DataError(
            f"{where}: {repeated_path} is in [grid] and in [set], expected it in one of them"
        )
    scenarios = _names_of(document, "scenarios", where)
    plan = document.get("plan", PLANS[0])
    refuse_unknown("plan", [str(plan)], PLANS, where)
    draw = (
        _parse_draw_section(tables["draw"], f"{where}: [draw]", tables["grid"])
        if tables["draw"]
        else None
    )
    baseline = _baseline_of(document, scenarios, {*report, *constraints} & RATIOS, where)
    expect = parse_expected_figures(document, where)
    return Study(
        study_name,
        where,
        document,
        scenarios,
        report,
        baseline,
        plan,
        settings,
        tables["grid"],
        draw,
        constraints,
        expect,
    )


def _study_table(document: JsonMapping, table_key: str, where: str) -> JsonObject:
    """Return a table of a study, empty where it has none."""
    stated_table = document.get(table_key, {})
    if not isinstance(stated_table, Mapping):
        raise DataError(
            f"{where}: {table_key} is no table, expected [{table_key}] with a line for each path "
            "or metric"
        )
    return dict(stated_table)


def _names_of(document: JsonMapping, list_key: str, where: str) -> tuple[str, ...]:
    """Return a list of names that must not be empty."""
    stated_names = document.get(list_key)
    if not _is_list_of_texts(stated_names):
        fault = (
            "missing"
            if stated_names is None
            else "empty"
            if stated_names == []
            else "no list of names"
        )
        raise DataError(
            f"{where}: {list_key} is {fault}; expected {list_key} = [...] with one name or more"
        )
    if twice := _first_repeated(stated_names):
        raise DataError(f"{where}: {list_key} names {twice} twice")
    return tuple(stated_names)


def _is_list_of_texts(stated: Any) -> TypeGuard[list[str]]:
    return (
        isinstance(stated, list) and bool(stated) and all(isinstance(text, str) for text in stated)
    )


def _metric_of(metric_name: str, where: str) -> str:
    refuse_unknown("metric", [metric_name], METRICS, where)
    return metric_name


def _baseline_of(
    document: JsonMapping,
    scenarios: tuple[str, ...],
    ratios: set[str] | frozenset[str],
    where: str,
) -> str | None:
    """Return the scenario that ratios are held against, none where none is asked for."""
    from tco.scenario.baseline_ratio import usual_baseline

    stated_baseline = document.get("baseline")
    if stated_baseline is not None and not isinstance(stated_baseline, str):
        raise DataError(
            f"{where}: baseline is {stated_baseline!r}, expected the name of a scenario"
        )
    return None if not ratios else stated_baseline or usual_baseline(scenarios)


def _limits_of(metric_limits: Any, where: str) -> tuple[float, float]:
    """Return the lowest and the highest value that a metric may have."""
    if not isinstance(metric_limits, Mapping) or not metric_limits:
        raise DataError(
            f"{where}: expected {{ min, max }} or one of them, in the unit of the metric's name"
        )
    for limit_key, limit_value in metric_limits.items():
        refuse_unknown("key", [limit_key], LIMITS, where)
        if not is_finite_number(limit_value):
            raise DataError(
                f"{where}: {limit_key} is {limit_value!r}, expected a number in the unit of the "
                "metric's name"
            )
    low = float(metric_limits.get("min", -math.inf))
    high = float(metric_limits.get("max", math.inf))
    if low > high:
        raise DataError(f"{where}: min {low:g} is above max {high:g}: the range is reversed")
    return low, high


def _parse_draw_section(draw_table: JsonMapping, where: str, grid: JsonMapping) -> Draw:
    """Return the sampling settings from the `[draw]` section of a study.

    A setting that is not valid raises `DataError`.
    """
    refuse_unknown("key", draw_table, DRAW, where)
    samples = _parse_study_integer(draw_table, "samples", None, 1, where)
    seed = _parse_study_integer(draw_table, "seed", 0, 0, where)
    method, paths = draw_table.get("method", METHODS[0]), draw_table.get("paths")
    refuse_unknown("method", [str(method)], METHODS, where)
    if method == "sobol" and samples > MOST_SOBOL_POINTS:
        raise DataError(
            f"{where}: samples is {samples:,}, expected {MOST_SOBOL_POINTS:,} or fewer of a Sobol "
            "sequence"
        )
    if paths is not None:
        if not _is_list_of_texts(paths):
            raise DataError(
                f"{where}: paths is {paths!r}, expected a list of input paths; without it every "
                "input with a range is drawn"
            )
        if both := next((path for path in paths if path in grid), None):
            raise DataError(f"{where}: {both} is in [grid] too, expected it in one of them")
    return Draw(samples, seed, method, None if paths is None else tuple(dict.fromkeys(paths)))


def _parse_study_integer(
    draw_table: JsonMapping, draw_key: str, usual: int | None, least: int, where: str
) -> int:
    """Return a whole number of a table."""
    draw_value = draw_table.get(draw_key, usual)
    if (
        isinstance(draw_value, bool)
        or not isinstance(draw_value, int)
        or not least <= draw_value <= MOST_CASES
    ):
        raise DataError(
            f"{where}: {draw_key} is {'missing' if draw_value is None else draw_value}, expected a "
            f"whole number from {least} on"
        )
    return draw_value
