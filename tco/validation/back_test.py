"""Back-test of the ranges: rows of each chip against the range that other chips alone give it.

The parameters of practice are those of the refits without the chip, of every kind of measurements
that has one, each with the range that the catalogue gives it; what no parameter explains is what
the rows of the other chips leave on the same refit, split by what runs share. All are drawn
together, as they are for an answer; what vendors state of the chip is held.

And are ratios right? Pairs of two chips that serve one workload at one speed: how often the model
puts them in the right order, and their predicted ratio and its range against the measured one. Each
row of a pair is predicted by the refit that never saw its chip, both in the same draws, so that
what the two share cancels, as it does between the columns of a comparison.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import accuracy_rows as accuracy
from tco.core.errors import DataError, UsageError
from tco.core.inputs import Values, as_number
from tco.core.types import AnyArray
from tco.scenario.beliefs import Dice, Range, belief_of
from tco.scenario.resolve import plain_inputs
from tco.validation.measured import read_measured
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import part_ids
from tco.validation.run import PREDICTORS
from tco.validation.score import Prediction
from tco.validation.unexplained import (
    PARAMETERS,
    effect_width,
    fit_variance_components,
    level_of,
    lognormal_interval,
    residuals,
)

CLOSE = 1.1  # interactivities within this ratio are one
EVEN = 1.1  # rates within this ratio have no order
WORKLOAD = ("model", "isl_tokens", "osl_tokens", "precision")


class Pairs(NamedTuple):
    """Rows of two chips each that serve one workload at one interactivity, by their places."""

    first_rows: AnyArray
    second_rows: AnyArray


def _comparable_row_pairs(
    workload: pd.DataFrame, chips: AnyArray, speed: AnyArray, usable: AnyArray
) -> Pairs:
    """Return pairs of rows of one workload and two chips, at speeds within a tenth."""
    workload_pairs = []
    for _, group in workload[usable].groupby(list(workload.columns)):
        row_indices = group.index.to_numpy()
        first_rows, second_rows = (
            row_indices[row_positions] for row_positions in np.triu_indices(len(row_indices), 1)
        )
        is_comparable = (chips[first_rows] != chips[second_rows]) & (
            np.abs(np.log(speed[first_rows] / speed[second_rows])) <= np.log(CLOSE)
        )
        workload_pairs.append((first_rows[is_comparable], second_rows[is_comparable]))
    return (
        Pairs(
            *(
                np.concatenate([np.empty(0, dtype=int), *side])
                for side in zip(*workload_pairs, strict=True)
            )
        )
        if workload_pairs
        else Pairs(*np.empty((2, 0), int))
    )


def _scored_row_pairs(measurements: MeasuredRows, prediction: Prediction) -> Pairs:
    """Return the pairs of scored serving rows of two accelerators on one workload."""
    speed = measurements["interactivity_tok_s_per_user"]
    usable = (prediction.skip == "") & (prediction.target_name != "tpot_ms_mean") & (speed > 0)
    workload = pd.DataFrame({column_name: measurements[column_name] for column_name in WORKLOAD})
    return _comparable_row_pairs(
        workload.assign(target=prediction.target_name), measurements["accelerator"], speed, usable
    )


def pair_order_accuracy(measurements: MeasuredRows, prediction: Prediction) -> dict[str, float]:
    """Return the number of pairs of accelerators, the share in the right order, and their error.

    The error is the median error of their ratio. Without pairs the result is empty.

    Two that were measured within a tenth of each other have no order to be right about: one
    configuration differs as much from day to day.
    """
    first_rows, second_rows = _scored_row_pairs(measurements, prediction)
    if not len(first_rows):
        return {}
    truth, guess = (
        rate_values[first_rows] / rate_values[second_rows]
        for rate_values in (prediction.target, prediction.predicted)
    )
    differ = np.abs(np.log(truth)) > np.log(EVEN)
    return {
        "pairs": len(truth),
        "right": float(np.mean(((truth > 1) == (guess > 1))[differ])) if differ.any() else 1.0,
        "ratio_error": float(np.median(np.abs(guess / truth - 1))),
    }


DRAWS, SEED = 256, 0
P10, P90 = 0.1, 0.9


class Tested(NamedTuple):
    """The rows of some chips against the ranges they would have been given."""

    rows: int
    inside: float  # share of the rows between P10 and P90
    below: float  # share of the rows whose measured value is less than the P10
    above: float
    width: float  # P90 over P10, the median of the rows
    inside_by_parameters: float  # share inside were the parameters all that is uncertain


class BackTest(NamedTuple):
    """Coverage of a file's rows or pairs of rows by their predicted ranges, per chip and in all."""

    kind: str
    chips: dict[str, Tested]
    all_rows: Tested
    order: float = 0.0  # of pairs: share in the right order, of those that differ
    median_off: float = 0.0  # of pairs: how far the point of their ratio lies off


class HeldOutChip(NamedTuple):
    """Measured results of a chip and its predictions without its own rows."""

    rows: AnyArray  # places in the file
    target: AnyArray
    point: AnyArray
    draws: AnyArray  # rows by draws
    parameter_draws: AnyArray  # the same were the parameters all that is uncertain


def _left_out_draws(
    kind: str,
    table: pd.DataFrame,
    catalogue: Catalogue,
    settings: dict[str, str],
    is_selected: AnyArray,
    path: Path,
) -> dict[str, HeldOutChip]:
    """Return predictions of each chip's `is_selected` rows from refits without that chip.

    All chips share the same draws. A file without a scored row of such a chip raises `DataError`.
    """
    refits: dict[str, dict[str, float]] = {}
    refitted = set()  # chips whose rows of this kind some refit never saw
    for accuracy_row in accuracy(catalogue, "left_out"):
        if accuracy_row["left_out"] == "accelerator":
            refits.setdefault(accuracy_row["member"], {})[accuracy_row["path"]] = float(
                accuracy_row["value"]
            )
            if accuracy_row["kind"] == kind:
                refitted.add(accuracy_row["member"])
    parts = part_ids(catalogue, table["accelerator"])
    tried = {}
    for chip in sorted(refitted & set(parts[is_selected])):
        other_chip_rows, held_out = (
            _measurements(table, catalogue, settings, np.flatnonzero(row_mask))
            for row_mask in ((parts != chip) & (parts != ""), (parts == chip) & is_selected)
        )
        tried[chip] = _predict_held_out_chip(kind, other_chip_rows, held_out, refits[chip])
    held_out_chips = {chip: drawn for chip, drawn in tried.items() if drawn is not None}
    if not held_out_chips:
        raise DataError(
            f"{path}: holds no scored row of a chip that a refit was made without; there are "
            f"{', '.join(sorted(refitted))}"
        )
    return held_out_chips


def back_test(path: Path, catalogue: Catalogue, settings: dict[str, str]) -> BackTest:
    """Return the coverage of P10 to P90 ranges for held-out chips.

    Coverage is the share of a file's rows inside the range that their chip would have had as an
    unmeasured chip.
    """
    kind, table = read_measured(path)
    if kind not in PARAMETERS:
        raise UsageError(
            f"--back-test: {path} holds {kind}, expected {' or '.join(PARAMETERS)}: only their "
            "answers have ranges"
        )
    held_out_chips = _left_out_draws(
        kind, table, catalogue, settings, np.ones(len(table), dtype=bool), path
    )
    chip_coverages = []
    for drawn in held_out_chips.values():
        # a row whose plan fits in no draw has no range
        fits = np.isfinite(drawn.draws).any(axis=1) & np.isfinite(drawn.parameter_draws).any(axis=1)
        chip_coverages.append(
            range_coverage(drawn.target[fits], drawn.draws[fits], drawn.parameter_draws[fits])
        )
    return BackTest(
        kind,
        {
            chip: coverage_statistics([chip_coverage])
            for chip, chip_coverage in zip(held_out_chips, chip_coverages, strict=True)
        },
        coverage_statistics(chip_coverages),
    )


def _measurements(
    table: pd.DataFrame,
    catalogue: Catalogue,
    settings: dict[str, str],
    indices: AnyArray | None = None,
) -> MeasuredRows:
    input_values = plain_inputs(catalogue, settings).values(as_number)
    return MeasuredRows(table, catalogue, input_values, indices=indices)


def _predict_held_out_chip(
    kind: str, other_chip_rows: MeasuredRows, held_out: MeasuredRows, refit: dict[str, float]
) -> HeldOutChip | None:
    """Return measured and predicted values of a chip, taken as unmeasured.

    Args:
        kind: Kind of the measurements.
        other_chip_rows: Rows of all other chips.
        held_out: Rows of the chip.
        refit: Parameters of the refit without the chip, by path.

    Returns:
        The values, or None where no row is scored.

    """
    predict, catalogue = PREDICTORS[kind], held_out.catalogue
    other_chip_rows.say(refit)
    effects = fit_variance_components(residuals(kind, other_chip_rows, predict(other_chip_rows)))
    held_out.say(refit)
    prediction = predict(held_out)
    scored = prediction.skip == ""
    if not scored.any():
        return None
    ranges = {
        path: rescaled_range(belief, refit[path]) if path in refit else belief
        for path, belief in _practice_ranges(held_out.values).items()
    }
    unexplained = [path for path in ranges if path.endswith(f".{PARAMETERS[kind]}")]
    for path in unexplained:
        owner = path.removeprefix("performance.").rpartition(".")[0]
        low, high = lognormal_interval(effect_width(effects, level_of(catalogue, path), owner))
        ranges[path] = ranges[path]._replace(low=low, high=high)
    dice = Dice(catalogue, SEED, 0, DRAWS)
    drawn_values = {
        path: parameter_range.quantile(dice.correlated_deviates(parameter_range)).reshape(-1, 1)
        for path, parameter_range in ranges.items()
    }
    draws = []
    for settings in (drawn_values, drawn_values | dict.fromkeys(unexplained, 0.0)):
        held_out.say(settings)
        draws.append(predict(held_out).predicted[:, scored].T)
    assert held_out.indices is not None
    return HeldOutChip(
        held_out.indices[scored], prediction.target[scored], prediction.predicted[scored], *draws
    )


def rescaled_range(parameter_range: Range, centre_value: float) -> Range:
    """Return a range about another value, as wide in proportion."""
    scale = centre_value / parameter_range.value
    return parameter_range._replace(
        low=parameter_range.low * scale, value=centre_value, high=parameter_range.high * scale
    )


def _practice_ranges(input_values: Values) -> dict[str, Range]:
    """Return the ranges of the parameters of practice that a prediction has read.

    Parameters that decide structure have none.
    """
    return {
        path: belief_of(parameter)
        for path, parameter in sorted(input_values.inputs.items())
        if path.startswith("performance.")
        and path not in input_values.readings
        and parameter.low is not None
        and parameter.high != parameter.low
    }


def range_coverage(target: AnyArray, draws: AnyArray, parameter_draws: AnyArray) -> AnyArray:
    """Return whether each row lies inside, below and above its range, and the range's width.

    The last flag says whether it lies inside by parameters alone. A draw whose plan does not fit
    memory is left out.
    """
    low, high = np.nanquantile(draws, (P10, P90), axis=1)
    narrow = np.nanquantile(parameter_draws, (P10, P90), axis=1)
    flags = [
        (low <= target) & (target <= high),
        target < low,
        target > high,
        high / low,
        (narrow[0] <= target) & (target <= narrow[1]),
    ]
    return np.array(flags, dtype=float)


def coverage_statistics(parts: list[AnyArray]) -> Tested:
    """Return the coverage statistics of the rows in `parts`."""
    inside, below, above, width, inside_parameter_range = np.concatenate(parts, axis=1)
    return Tested(
        len(inside),
        float(inside.mean()),
        float(below.mean()),
        float(above.mean()),
        float(np.nanmedian(width)),
        float(inside_parameter_range.mean()),
    )


LEAST = 20  # pairs of a chip that say something of it


def back_test_ratios(path: Path, catalogue: Catalogue, settings: dict[str, str]) -> BackTest:
    """Return the coverage of predicted ratios between pairs of chips.

    The ratios are of serving points in a file. Each side is predicted without the rows of its chip.
    """
    kind, table = read_measured(path)
    if kind != "inference":
        raise UsageError(f"--ratios: {path} holds {kind}, expected serving runs")
    measurements = _measurements(table, catalogue, settings)
    prediction = PREDICTORS[kind](measurements)
    paired = _scored_row_pairs(measurements, prediction)
    if not len(paired.first_rows):
        raise DataError(
            f"{path}: no two chips serve one model with the same formats and lengths at one speed, "
            "so there is no ratio"
        )
    is_paired = np.zeros(len(table), dtype=bool)
    is_paired[np.concatenate(paired)] = True
    point, draws = np.full(len(table), np.nan), np.full((len(table), DRAWS), np.nan)
    for drawn in _left_out_draws(kind, table, catalogue, settings, is_paired, path).values():
        point[drawn.rows], draws[drawn.rows] = drawn.point, drawn.draws
    blind = replace(
        prediction,
        predicted=point,
        skip=np.where(np.isnan(point), "unstated left-out prediction", prediction.skip),
    )
    first_rows, second_rows = _scored_row_pairs(measurements, blind)
    if not len(first_rows):
        raise DataError(f"{path}: no pair of chips of which refits were made without each")
    flags = range_coverage(
        prediction.target[first_rows] / prediction.target[second_rows],
        draws[first_rows] / draws[second_rows],
        draws[first_rows] / draws[second_rows],
    )
    parts = np.stack([measurements.parts[first_rows], measurements.parts[second_rows]])
    of_chip = {chip: (parts == chip).any(axis=0) for chip in sorted(set(parts.ravel()))}
    by = {
        chip: coverage_statistics([flags[:, chip_pairs]])
        for chip, chip_pairs in of_chip.items()
        if chip_pairs.sum() >= LEAST
    }
    order_accuracy = pair_order_accuracy(measurements, blind)
    return BackTest(
        kind,
        by,
        coverage_statistics([flags]),
        order_accuracy["right"],
        order_accuracy["ratio_error"],
    )
