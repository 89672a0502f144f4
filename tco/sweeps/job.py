"""A study ready to run: its axes, the order of its cases and its data, to send to workers.

Cases are numbered by four loops, from the outermost to the innermost:

1. The scenarios.
2. The outer axes, whose inputs take one value at a time: texts, and numbers that may change the
   plan.
3. The inner axes, whose inputs are evaluated as arrays.
4. The draws.

Axes are in the order of the study's file. A setting is a scenario with a value of each outer axis.
The number of a partition alone decides its cases. The table of a partition has the cases that the
constraints allow, with the units of its columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.core.errors import DataError, library, refuse_unknown
from tco.core.numeric_environment import arithmetic
from tco.core.provenance import Given
from tco.core.types import AnyArray, JsonObject
from tco.core.units import convert
from tco.evaluation.evaluation import SAVED, catalogue_for
from tco.evaluation.scenario_function import ScenarioFunction
from tco.evaluation.workers import (
    Figures,
    StudyEnvironment,
    catalogue_on,
    environment_of,
    folders_of,
)
from tco.sampling.uncertainty import sample_of
from tco.scenario.beliefs import Range, beliefs_of, loadings
from tco.scenario.document import load_scenario
from tco.scenario.metrics import METRICS
from tco.sweeps.cases import (
    CaseDraws,
    CaseResults,
    FixedSettings,
    StudyScenario,
    dice_of,
    evaluate_setting,
    settle_case,
    split_plan_axes,
)
from tco.sweeps.study import Study, SweepAxis, parse_study_axis

if TYPE_CHECKING:
    import pyarrow

# Most settings of a partition. Each is a search of plans, and a run that is killed loses the
# partition that it computes.
SETTINGS_PER_PARTITION = 32
ROWS_PER_PARTITION = 2**18  # most rows of a partition
NUMBERS_PER_PARTITION = 2**24  # most numbers of a partition, in all columns
# Rows that a partition may have even if its columns then exceed `NUMBERS_PER_PARTITION`.
ROWS_OF_WIDE_PARTITION = 2**15
CASES_PER_PIECE = 2**16  # cases that are evaluated at once; their arrays fit in the CPU cache


class CaseSlice(NamedTuple):
    """Some cases of one setting."""

    scenario: int  # index of the scenario
    value_indices: tuple[int, ...]  # index of the setting's value on each outer axis
    start: int  # first case, counted within the setting
    stop: int  # case after the last one


class CaseLayout(NamedTuple):
    """Counts of scenarios, input values, draws and columns of a study."""

    scenarios: int
    outer: tuple[int, ...]  # number of values of each outer axis
    inner: tuple[int, ...]  # number of values of each inner axis
    draws: int
    columns: int

    @property
    def settings(self) -> int:
        """Number of settings of the study."""
        return self.scenarios * prod(self.outer)

    @property
    def cases_per_setting(self) -> int:
        """Number of cases of a setting."""
        return prod(self.inner) * self.draws

    @property
    def cases(self) -> int:
        """Number of cases of the study."""
        return self.settings * self.cases_per_setting

    @property
    def rows(self) -> int:
        """Largest number of cases in a partition."""
        rows_for_numbers = max(NUMBERS_PER_PARTITION // self.columns, ROWS_OF_WIDE_PARTITION)
        rows_for_settings = SETTINGS_PER_PARTITION * self.cases_per_setting
        return min(ROWS_PER_PARTITION, rows_for_numbers, rows_for_settings)

    @property
    def partitions(self) -> int:
        """Number of partitions of the study."""
        return -(-self.cases // self.rows)

    def cases_in(self, number: int) -> int:
        """Return the number of cases in the partition `number`."""
        return min(self.rows, self.cases - number * self.rows)

    def slices(self, number: int) -> Iterator[CaseSlice]:
        """Yield the cases of a partition, setting by setting."""
        first = number * self.rows
        last = first + self.cases_in(number)
        for setting in range(first // self.cases_per_setting, -(-last // self.cases_per_setting)):
            scenario, *value_indices = map(
                int, np.unravel_index(setting, (self.scenarios, *self.outer))
            )
            begin = setting * self.cases_per_setting
            yield CaseSlice(
                scenario,
                tuple(value_indices),
                max(first - begin, 0),
                min(last - begin, self.cases_per_setting),
            )

    def coordinates(self, cases: AnyArray) -> tuple[list[AnyArray], AnyArray]:
        """Return the indices of cases on each inner axis, and their draws."""
        *value_indices, draws = np.unravel_index(cases, (*self.inner, self.draws))
        return value_indices, draws


class SweepJob(NamedTuple):
    """Everything beside its number that decides the content of a partition."""

    study: Study
    scenarios: tuple[StudyScenario, ...]
    baseline: StudyScenario | None
    outer: tuple[SweepAxis, ...]  # axes whose inputs take one value at a time
    inner: tuple[SweepAxis, ...]  # axes whose inputs are evaluated as arrays
    drawn: tuple[tuple[str, str], ...]  # path and unit of each drawn input
    # names of the random streams: inputs whose draws others share, and causes
    stream_names: tuple[str, ...]
    environment: StudyEnvironment  # program and data of each scenario, then of the baseline

    @property
    def layout(self) -> CaseLayout:
        """Numbers of scenarios, axis values, draws and columns."""
        draws = self.study.draw.samples if self.study.draw else 1
        outer, inner = (tuple(axis.length for axis in axes) for axes in (self.outer, self.inner))
        return CaseLayout(len(self.scenarios), outer, inner, draws, len(self.columns))

    @property
    def axes(self) -> list[SweepAxis]:
        """The axes in the order of the study's file."""
        axes_by_path = {axis.path: axis for axis in (*self.outer, *self.inner)}
        return [axes_by_path[path] for path in self.study.grid]

    @property
    def columns(self) -> list[tuple[str, str | None]]:
        """Columns of the tables with their units; a column of texts has the unit None."""
        axes = [(axis.path, axis.unit) for axis in self.axes]
        return [
            ("scenario", None),
            *axes,
            *self.drawn,
            *((metric_name, METRICS[metric_name].unit) for metric_name in self.study.report),
        ]

    @property
    def inputs_hash(self) -> str:
        """A short hash of all that decides the cases: study, scenarios, data and program."""
        scenarios = [
            [scenario.name, *scenario.function.scenario._replace(where="")]
            for scenario in (*self.scenarios, *([self.baseline] if self.baseline else []))
        ]
        content = [
            self.study.content,
            sorted(self.study.settings.items()),
            scenarios,
            self.environment.data,
            self.environment.program,
        ]
        hashed_text = json.dumps(content, ensure_ascii=False)
        return hashlib.sha256(hashed_text.encode()).hexdigest()[:16]


def fingerprint_metrics(job: SweepJob) -> Figures:
    """Return each scenario's metrics at the first value of every axis.

    They show whether two machines compute alike.
    """
    first = tuple((axis.path, axis.setting(0)) for axis in job.axes)
    fixed = (*job.study.settings.items(), *first)
    scenario_results = [settle_case(scenario, fixed).result for scenario in job.scenarios]
    metric_values = [
        scenario_result.metrics[metric_name]
        for scenario_result in scenario_results
        for metric_name in job.study.report
    ]
    return tuple(
        None if metric_value is None else float(metric_value) for metric_value in metric_values
    )


# ---------------------------------------------------------------- preparation
def prepare_sweep(study: Study, data_folder: Path | None) -> SweepJob:
    """Return a study that is ready to run, after a trial of every path and value that it names."""
    scenarios = tuple(
        _study_scenario(scenario_name, study, data_folder) for scenario_name in study.scenarios
    )
    named = {scenario.name: scenario for scenario in scenarios}
    baseline = (
        None
        if study.baseline is None
        else named.get(study.baseline) or _study_scenario(study.baseline, study, data_folder)
    )
    all_scenarios = [
        *scenarios,
        *([baseline] if baseline is not None and baseline.name not in named else []),
    ]
    axes = _study_axes(study, all_scenarios)
    outer = [axis for axis in axes if axis.unit is None]
    number_axes = [axis for axis in axes if axis.unit is not None]
    stated = tuple(study.settings.items())
    first = tuple((axis.path, axis.setting(0)) for axis in axes)
    ranges: dict[str, Range] = {}
    searched: set[str] = set()
    for scenario in all_scenarios:
        settled = settle_case(scenario, (*stated, *first))
        if study.plan == "best":
            searched |= settled.reads & {axis.path for axis in number_axes}
        ranges |= beliefs_of(settled.result)
        priced = scenario.function._replace(workload=False, refuse=False)
        for fixed in _settings_of_other_texts(axes, first):
            if study.draw is not None:
                ranges |= beliefs_of(settle_case(scenario, (*stated, *fixed)).result)
            else:
                priced.result(split_plan_axes((*stated, *fixed))[0])
    drawn = _sampled_paths(study, ranges)
    leaders = {ranges[path].leader for path in drawn}
    drawn_names = tuple(
        sorted(
            leaders
            | {
                f"cause {cause}"
                for leader in leaders
                for cause in loadings(scenarios[0].function.catalogue, leader)
            }
        )
    )
    outer = [axis for axis in axes if axis in outer or axis.path in searched]
    return SweepJob(
        study,
        scenarios,
        baseline,
        tuple(outer),
        tuple(axis for axis in axes if axis not in outer),
        tuple((path, ranges[path].unit) for path in drawn),
        drawn_names,
        environment_of(
            tuple(folders_of(scenario.function.catalogue) for scenario in all_scenarios)
        ),
    )


def _study_scenario(scenario_name: str, study: Study, data_folder: Path | None) -> StudyScenario:
    """Return a scenario that a study names; a file may lie beside the study's."""
    if scenario_name.endswith(SAVED):
        raise DataError(
            f"{study.where}: {scenario_name}: a saved result cannot be evaluated again; name its "
            "scenario"
        )
    neighbour_path = Path(study.where).parent / scenario_name
    scenario_source = (
        str(neighbour_path)
        if scenario_name.endswith(".toml")
        and not isfile(scenario_name)
        and neighbour_path.is_file()
        else scenario_name
    )
    catalogue = catalogue_on(folders_of(catalogue_for(scenario_source, data_folder)), ())
    function = ScenarioFunction(load_scenario(catalogue, scenario_source), catalogue, {})
    return StudyScenario(scenario_name, function, study.plan)


def _study_axes(study: Study, scenarios: list[StudyScenario]) -> list[SweepAxis]:
    """Return the axes of a study, each value within the bounds of its input."""
    inputs = scenarios[0].function.inputs(study.settings)
    input_values = inputs.values()
    parsed_axes = []
    for path, axis_values in study.grid.items():
        where = f"{study.where}: [grid] {path}"
        axis = parse_study_axis(path, axis_values, where, inputs.unit_of)
        if axis.unit is not None:
            ends = np.arange(axis.length) if axis.listed else np.array([0, axis.length - 1])
            unit = inputs.unit_of(path)
            input_values.override(
                path,
                unit,
                Given("", array=convert(axis.numbers_at(ends), axis.unit, unit), where=where),
            )
        parsed_axes.append(axis)
    return parsed_axes


def _settings_of_other_texts(
    axes: list[SweepAxis], first: FixedSettings
) -> Iterator[FixedSettings]:
    """Yield the first settings with one text replaced, for each other text of an axis."""
    for axis in axes:
        if axis.unit is None:
            for value_index in range(1, axis.length):
                yield tuple(
                    (path, axis.setting(value_index) if path == axis.path else setting_value)
                    for path, setting_value in first
                )


def _sampled_paths(study: Study, ranges: Mapping[str, Range]) -> list[str]:
    """Return the inputs that a study draws."""
    if study.draw is None:
        return []
    if study.draw.paths is None:
        if not ranges:
            raise DataError(
                f"{study.where}: [draw]: no input of these scenarios has a range to draw from"
            )
        return sorted(path for path in ranges if path not in study.grid)
    refuse_unknown(
        "input with a range (a low and a high)",
        study.draw.paths,
        ranges,
        f"{study.where}: [draw] paths",
    )
    return list(study.draw.paths)


def partition_table(job: SweepJob, number: int) -> tuple[pyarrow.Table, int]:
    """Return the table of a partition, and its number of cases before the constraints."""
    pa = library("pyarrow", "Parquet", "sweep")

    schema = _partition_schema(job, number)
    tables = []
    case_count = 0
    for setting_slice in job.layout.slices(number):
        for case_slice in _cache_sized_slices(setting_slice, job.layout.draws):
            case_count += case_slice.stop - case_slice.start
            count, columns = _evaluate_slice(job, case_slice)
            tables.append(
                pa.Table.from_arrays(
                    [_arrow_column(columns.get(field.name), count, field) for field in schema],
                    schema=schema,
                )
            )
    return pa.concat_tables(tables), case_count


def _cache_sized_slices(case_slice: CaseSlice, draws: int) -> Iterator[CaseSlice]:
    """Yield a slice in pieces that fit the cache.

    A piece has each draw at most once, unless all draws fit in it several times.
    """
    start = case_slice.start
    while start < case_slice.stop:
        stop = min(start + CASES_PER_PIECE, case_slice.stop)
        if draws > CASES_PER_PIECE:
            stop = min(stop, (start // draws + 1) * draws)
        yield case_slice._replace(start=start, stop=stop)
        start = stop


def _evaluate_slice(job: SweepJob, case_slice: CaseSlice) -> tuple[int, JsonObject]:
    """Return the number of allowed cases of a slice, and their columns by name.

    A column of one text or number is the same for all rows.
    """
    cases = np.arange(case_slice.start, case_slice.stop)
    value_indices, draws = job.layout.coordinates(cases)
    fixed = tuple(
        (axis.path, axis.setting(value_index))
        for axis, value_index in zip(job.outer, case_slice.value_indices, strict=True)
    )
    axes = {
        axis.path: axis.numbers_at(case_indices)
        for axis, case_indices in zip(job.inner, value_indices, strict=True)
    }
    scenario = job.scenarios[case_slice.scenario]
    scenario_results = _evaluate_cases(job, scenario, fixed, axes, draws)
    baseline_results = None
    if job.baseline is not None:
        same = job.baseline.name == scenario.name
        baseline_results = (
            scenario_results if same else _evaluate_cases(job, job.baseline, fixed, axes, draws)
        )
    sample = sample_of(
        scenario_results.draws, None if baseline_results is None else baseline_results.draws
    )
    metrics = sample.metrics
    columns: JsonObject = {
        "scenario": scenario.name,
        **{
            path: setting_value if isinstance(setting_value, str) else setting_value[0]
            for path, setting_value in fixed
        },
        **axes,
        **scenario_results.inputs,
    }
    columns |= {
        metric_name: metrics[metric_name]
        for metric_name in job.study.report
        if metric_name in metrics
    }
    is_allowed = np.ones(len(cases), dtype=bool)
    for metric, (low, high) in job.study.constraints.items():
        metric_values = metrics.get(metric)
        is_allowed &= (
            False if metric_values is None else (metric_values >= low) & (metric_values <= high)
        )
    if not is_allowed.all():
        columns = {
            column_name: column[is_allowed] if isinstance(column, np.ndarray) else column
            for column_name, column in columns.items()
        }
    return int(is_allowed.sum()), columns


# A scenario and its baseline share their draws, and so do pieces if the draws are few.
cached_dice = lru_cache(maxsize=2)(dice_of)


def _evaluate_cases(
    job: SweepJob,
    scenario: StudyScenario,
    fixed: FixedSettings,
    axes: dict[str, AnyArray],
    draws: AnyArray,
) -> CaseResults:
    """Evaluate a scenario in some cases."""
    drawing = None
    draw = job.study.draw
    if draw is not None:
        start, stop = int(draws.min()), int(draws.max()) + 1
        if draw.samples <= CASES_PER_PIECE:
            start, stop = 0, draw.samples
        dice = cached_dice(scenario.function.catalogue, draw, job.stream_names, start, stop)
        drawing = CaseDraws(frozenset(path for path, _ in job.drawn), dice, draws - start)
    units = {axis.path: str(axis.unit) for axis in job.inner}
    centre = {axis.path: axis.setting(0) for axis in job.inner} if job.study.plan == "best" else {}
    axis_quantities = {path: (numbers, units[path]) for path, numbers in axes.items()}
    settings = (*job.study.settings.items(), *fixed)
    return evaluate_setting(scenario, settings, centre, axis_quantities, drawing, len(draws))


def _partition_schema(job: SweepJob, number: int) -> pyarrow.Schema:
    """Return the schema of a partition: columns with units, and the program and data behind it."""
    pa = library("pyarrow", "Parquet", "sweep")

    fields = [
        pa.field(column_name, pa.string())
        if unit is None
        else pa.field(column_name, pa.float64(), metadata={"unit": unit or "1"})
        for column_name, unit in job.columns
    ]
    program, data_hashes, _ = job.environment
    schema_metadata = {
        "tco.version": program,
        "tco.inputs": job.inputs_hash,
        "tco.data": " ".join(dict.fromkeys(data_hashes)),
        "tco.partition": str(number),
    }
    schema_metadata["tco.arithmetic"] = arithmetic()
    return pa.schema(fields, metadata=schema_metadata)


def _arrow_column(column_value: Any, count: int, field: pyarrow.Field) -> pyarrow.Array:
    """Return a column of a partition, with null for a missing value."""
    pa = library("pyarrow", "Parquet", "sweep")

    if column_value is None:
        return pa.nulls(count, field.type)
    if isinstance(column_value, str):
        return pa.repeat(column_value, count)
    column_numbers = np.broadcast_to(column_value, count).astype(float)
    return pa.array(column_numbers, mask=~np.isfinite(column_numbers))
