"""Efficiency of long training runs against the best plan, and its decline with their size.

The efficiency is the best plan's step time over that of the published run. Both are of the same
model, chips, batch and software, so errors of kernels cancel. The fit covers runs on 512 chips or
more of the sources in `training/long_runs.csv`:

    ln(efficiency) = level + slope x log2(chips / 1024)

It is a fit by least squares. The runs of a publisher on one chip form a group, and all groups weigh
the same. The ranges of level and slope are jackknife errors: each group is left out in turn. The
range of the level also holds the spread between the groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.inputs import Values
from tco.core.provenance import P95
from tco.core.types import AnyArray
from tco.scenario.evaluate import evaluate
from tco.validation.command_lines import command_line_text
from tco.validation.fitted_rows import FittedRow, fitted_row
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import read_pattern_table
from tco.validation.training import configured_runs, job_settings

NAME = "long-runs"  # of the fit, on the command line
FILE = "training/long_runs.csv"
LEAST_CHIPS = 512
REFERENCE = 1024  # chips at which the level is the efficiency
TUNED = {"workload.as_deployed": "0"}  # the best plan, without production overhead


class LongRun(NamedTuple):
    """A published run on many chips, and its efficiency against the best plan."""

    publisher: str
    chip: str  # part id
    model: str
    chips: int
    efficiency: float  # the best plan's step time over the run's


class Decline(NamedTuple):
    """Line of ln(efficiency) over doublings of the chips, with standard deviations."""

    level: float  # ln(efficiency) at `REFERENCE` chips
    slope: float  # change of ln(efficiency) per doubling of the chips
    level_spread: float
    slope_spread: float


def long_runs(table: pd.DataFrame, catalogue: Catalogue, input_values: Values) -> list[LongRun]:
    """Return the long runs of a table of training runs, one for each job.

    Args:
        table: Published training runs; the last row of a job counts.
        catalogue: Holds the publishers of the sources.
        input_values: Values by input path.

    """
    publishers = {
        publisher_row["source_id"]: publisher_row["publisher"]
        for publisher_row in read_pattern_table(catalogue, FILE, ("source_id", "publisher", "note"))
    }
    measurements = MeasuredRows(table, catalogue, input_values)
    large = measurements["n_accelerators"] >= LEAST_CHIPS
    runs = measurements.chosen(np.isin(measurements["source_id"], list(publishers)) & large)
    sources = runs["source_id"]
    runs_by_job: dict[tuple[Any, ...], LongRun] = {}
    for run in configured_runs(runs):
        row = run.training_row
        source = sources[row.row]
        row_settings = job_settings(row, run.batch, input_values)
        settings = {path: command_line_text(setting) for path, setting in row_settings.items()}
        best_step = evaluate(row.part, settings | TUNED, catalogue=catalogue).metrics["step_s"]
        if best_step is None:
            continue
        efficiency = float(best_step) / run.step
        job_key = (source, row.part, row.model, row.chips, row.sequence, run.batch)
        runs_by_job[job_key] = LongRun(
            publishers[source], row.part, row.model, row.chips, efficiency
        )
    return list(runs_by_job.values())


def fit_decline(runs: list[LongRun]) -> Decline:
    """Return level and decline of the efficiency of some runs, of at least two groups."""
    groups = np.array([f"{run.publisher} {run.chip}" for run in runs])
    doublings = np.log2([run.chips / REFERENCE for run in runs])
    logs = np.log([run.efficiency for run in runs])
    level, slope = _weighted_line(doublings, logs, groups)
    residuals = logs - level - slope * doublings
    group_names = np.unique(groups)
    lines_without_group = []  # level and slope without each group
    group_residuals = []
    for group_name in group_names:
        in_group = groups == group_name
        lines_without_group.append(
            _weighted_line(doublings[~in_group], logs[~in_group], groups[~in_group])
        )
        group_residuals.append(residuals[in_group].mean())
    level_error, slope_error = _jackknife_errors(np.array(lines_without_group))
    between_groups = float(np.std(group_residuals, ddof=1))
    return Decline(level, slope, math.hypot(level_error, between_groups), slope_error)


def _jackknife_errors(estimates: AnyArray) -> list[float]:
    """Return the standard error of each column of estimates, each row of which lacks a group."""
    count = len(estimates)
    squares = ((estimates - estimates.mean(axis=0)) ** 2).sum(axis=0)
    errors: list[float] = np.sqrt((count - 1) / count * squares).tolist()
    return errors


def _weighted_line(doublings: AnyArray, logs: AnyArray, groups: AnyArray) -> tuple[float, float]:
    """Return level and slope of the line in which each group weighs the same."""
    _, group_of_run, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights = np.sqrt(1 / sizes[group_of_run])
    design = np.column_stack([np.ones_like(doublings), doublings])
    (level, slope), *_ = np.linalg.lstsq(design * weights[:, None], logs * weights, rcond=None)
    return float(level), float(slope)


def long_run_rows(runs: list[LongRun], date: str) -> Iterator[FittedRow]:
    """Yield the catalogue rows of the level and decline of long runs.

    Args:
        runs: Long runs, of at least two publishers or chips.
        date: Date of the rows.

    """
    fit = fit_decline(runs)
    groups = {(run.publisher, run.chip) for run in runs}
    note = f"{len(runs)} runs of {len(groups)} publishers and chips, {LEAST_CHIPS} chips or more"
    deviations = (0, -P95, P95)  # of the value, its low and its high
    rates = [math.exp(fit.level + deviation * fit.level_spread) for deviation in deviations]
    declines = [
        max(1 - math.exp(fit.slope - deviation * fit.slope_spread), 0.0) for deviation in deviations
    ]
    for attribute_name, ends in (("long_run_rate", rates), ("long_run_decline", declines)):
        yield fitted_row("training", attribute_name, ends, note, date)
