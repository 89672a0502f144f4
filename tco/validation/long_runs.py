"""Efficiency of configured plans against searched plans in long training runs.

Both plans are of one model, on the same chips, batch and software of the month. So errors of
kernels cancel, and the choice of a plan is left. The fit covers runs on 512 chips or more of the
sources in `training/long_runs.csv`:

    ln e = a - k log2(n / 1024) + e,

The fit is by least squares. Every publisher's runs on one chip form a group, and all groups weigh
the same. Ranges hold the effect of leaving out a group. The range of the level also holds the
distance between the groups.
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
from tco.validation.training import as_configured, asked_again

NAME = "long-runs"  # as a fit is asked for
FILE = "training/long_runs.csv"
LEAST_CHIPS = 512
REFERENCE = 1024  # chips of the level
TUNED = {"workload.as_deployed": "0"}


class LongRun(NamedTuple):
    """A run at scale: its publisher, chip and size, and its rate relative to the best plan."""

    publisher: str
    chip: str
    model: str
    chips: int
    efficiency: float


class Decline(NamedTuple):
    """Efficiency at 1,024 chips, its decline per doubling, and both standard deviations."""

    level: float  # logarithm
    slope: float  # of the logarithm, for each doubling
    level_spread: float
    slope_spread: float


def long_runs(table: pd.DataFrame, catalogue: Catalogue, input_values: Values) -> list[LongRun]:
    """Return the runs at scale of a file of training runs, one for each job."""
    publishers = {
        publisher_row["source_id"]: publisher_row["publisher"]
        for publisher_row in read_pattern_table(catalogue, FILE, ("source_id", "publisher", "note"))
    }
    measurements = MeasuredRows(table, catalogue, input_values)
    large = measurements["n_accelerators"] >= LEAST_CHIPS
    runs = measurements.chosen(np.isin(measurements["source_id"], list(publishers)) & large)
    sources = runs["source_id"]
    efficiencies: dict[tuple[Any, ...], LongRun] = {}
    for run in as_configured(runs):
        job = {
            path: command_line_text(setting_value)
            for path, setting_value in asked_again(
                run.training_row, run.batch, input_values
            ).items()
        }
        best = evaluate(run.training_row.part, job | TUNED, catalogue=catalogue).metrics["step_s"]
        if best is None:
            continue
        publisher = publishers[sources[run.row]]
        efficiency = float(best) / run.step
        run_key = (
            sources[run.row],
            run.training_row.part,
            run.training_row.model,
            run.training_row.chips,
            run.training_row.sequence,
            run.batch,
        )
        efficiencies[run_key] = LongRun(
            publisher,
            run.training_row.part,
            run.training_row.model,
            run.training_row.chips,
            efficiency,
        )
    return list(efficiencies.values())


def fit_decline(runs: list[LongRun]) -> Decline:
    """Return level and decline of the efficiency of some runs."""
    groups = np.array([f"{run.publisher} {run.chip}" for run in runs])
    doublings = np.log2([run.chips / REFERENCE for run in runs])
    logs = np.log([run.efficiency for run in runs])
    level, slope = _weighted_line(doublings, logs, groups)
    group_names = np.unique(groups)
    without = np.array(
        [
            _weighted_line(*(part[groups != group_name] for part in (doublings, logs, groups)))
            for group_name in group_names
        ]
    )
    spreads = np.sqrt(
        (len(group_names) - 1)
        / len(group_names)
        * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    )
    residuals = logs - level - slope * doublings
    between = float(
        np.std([residuals[groups == group_name].mean() for group_name in group_names], ddof=1)
    )
    return Decline(level, slope, math.hypot(float(spreads[0]), between), float(spreads[1]))


def _weighted_line(doublings: AnyArray, logs: AnyArray, groups: AnyArray) -> tuple[float, float]:
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights = np.sqrt(1 / sizes[group])
    design = np.column_stack([np.ones_like(doublings), doublings])
    (level, slope), *_ = np.linalg.lstsq(design * weights[:, None], logs * weights, rcond=None)
    return float(level), float(slope)


def long_run_rows(runs: list[LongRun], date: str) -> Iterator[FittedRow]:
    """Yield the catalogue rows of the level and decline of long runs."""
    line = fit_decline(runs)
    groups = {(run.publisher, run.chip) for run in runs}
    note = f"{len(runs)} runs of {len(groups)} publishers and chips, {LEAST_CHIPS} chips or more"
    rates = [math.exp(line.level + side * P95 * line.level_spread) for side in (0, -1, 1)]
    declines = [
        max(1 - math.exp(line.slope - side * P95 * line.slope_spread), 0.0) for side in (0, -1, 1)
    ]
    for attribute_name, ends in (("long_run_rate", rates), ("long_run_decline", declines)):
        yield fitted_row("training", attribute_name, ends, note, date)
