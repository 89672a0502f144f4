"""Evidence on inputs: measurements that would narrow a regime, and rows that constrain inputs.

A measurement of a kind, such as of collectives on one family's chips, pins the inputs that a fit of
that kind may move. Once they are known the standard deviation of the ranks of the leader's
performance per cost over its rival's narrows by 1 - sqrt(1 - share of the variance). Every row at
hand is predicted as it is when it is scored, with an input at its value, its P5 and its P95. What
moves no row is constrained by none: its range is what is believed of it, and nothing that was
measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tco.catalog import Catalogue
from tco.comparison.records import Measurement, Notice, Regime
from tco.comparison.regret import shares_of_best
from tco.comparison.value_of_information import gain, noisy_deviates, standardised_measurement_error
from tco.core.errors import DataError
from tco.core.files import data_directory, read_csv
from tco.core.inputs import as_number
from tco.core.provenance import Input
from tco.core.types import FloatArray
from tco.performance.deployment import EFFICIENCY
from tco.sampling.drivers import leading_drivers, narrowing, rank_share
from tco.sampling.scenario_quantity import ScenarioQuantity
from tco.scenario.beliefs import Range
from tco.scenario.resolve import plain_inputs
from tco.validation.free_parameters import COLUMNS
from tco.validation.measured import read_measured
from tco.validation.measured_rows import MeasuredRows
from tco.validation.run import PREDICTORS
from tco.validation.score import predictions_or_error

NAMED, DRIVERS = 3, 8  # measurements an answer names, and inputs that move a regime
KINDS = ("kernels", "collectives", "inference", "training")
# what no fit moves
FREE = {
    EFFICIENCY: "inference",
    "unexplained_serving": "inference",
    "unexplained_training": "training",
}


@cache
def _kind_of_rows() -> Mapping[str, str]:
    """Return by which kind of measurements each parameter of practice is fitted."""
    kinds_by_attribute = dict(FREE)
    for file in sorted((data_directory() / "fits").glob("*.csv")):
        kind = next((kind for kind in KINDS if file.stem.endswith(kind)), None)
        if kind is not None:
            kinds_by_attribute |= {
                fit_row["attribute"]: kind for _, fit_row in read_csv(file, COLUMNS)
            }
    return kinds_by_attribute


def regime_with_evidence(
    regime: Regime, ratio: ScenarioQuantity, costs: FloatArray, catalogue: Catalogue
) -> Regime:
    """Return a regime with the drivers of its leader's ratio, and measurements that narrow it.

    `costs` are those of every choice in every draw, by which a measurement is worth something to
    who chooses.
    """
    input_deviates = {
        path: ratio.dice.correlated_deviates(input_range)
        for path, input_range in ratio.ranges.items()
    }
    return regime._replace(
        drivers=leading_drivers(
            ratio.ranges, ratio.one_at_a_time_values(), ratio.together, DRIVERS
        ),
        measurements=_measurements_of(
            ratio.draws(), ratio.ranges, input_deviates, costs, catalogue
        ),
    )


def _measurements_of(
    ratio_draws: FloatArray,
    ranges: Mapping[str, Range],
    input_deviates: Mapping[str, FloatArray],
    costs: FloatArray,
    catalogue: Catalogue,
) -> list[Measurement]:
    """Return the measurements that narrow a ratio's draws most, with their share and worth."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path in ranges:
        group, *owner, attribute_name = path.split(".")
        if group == "performance" and attribute_name in _kind_of_rows():
            # a run of its own tells of both
            whose = owner[-1].removeprefix("configuration-").removeprefix("run-")
            groups.setdefault((_kind_of_rows()[attribute_name], whose), []).append(path)
    shares = [
        (rank_share(ratio_draws, [input_deviates[path] for path in paths]) or 0.0, *group_key)
        for group_key, paths in groups.items()
    ]
    most = sorted(shares, key=lambda group_share: (-group_share[0], group_share[1:]))[:NAMED]
    reached, best_shares = np.isfinite(costs).any(axis=0), shares_of_best(costs)
    measurements = []
    for share, kind, whose in most:
        observed_deviates = [input_deviates[path][reached] for path in groups[kind, whose]]
        errors = [
            standardised_measurement_error(catalogue, kind, ranges[path])
            for path in groups[kind, whose]
        ]
        if share > 0:
            measurements.append(
                Measurement(
                    kind,
                    whose,
                    narrowing(share),
                    gain(best_shares, observed_deviates),
                    gain(best_shares, noisy_deviates(observed_deviates, errors)),
                )
            )
    return measurements


STILL = 1e-9  # relative change of a prediction that is none


def evidence_of(catalogue: Catalogue, inputs: Mapping[str, Input]) -> list[Notice]:
    """Return the effect of each input on the predicted measured rows.

    Only rows that travel with the program count. An input without effect on any row is left out.

    Args:
        catalogue: Holds the documents, parts and rows.
        inputs: Inputs by path; only inputs of `performance` with a range are moved.

    Returns:
        A notice for each input and kind of rows. Its errors are the root mean square of
        log(predicted / measured) at the low end, the value and the high end of the input.

    """
    ranged_inputs = [
        ranged_input
        for ranged_input in inputs.values()
        if ranged_input.path.startswith("performance.")
        and ranged_input.low is not None
        and ranged_input.high is not None
    ]
    errors_by_input: dict[tuple[str, str], list[FloatArray]] = {}
    for file in sorted((data_directory() / "measured").glob("*.csv.gz")) if ranged_inputs else ():
        for kind, logs in _errors_in(catalogue, file, ranged_inputs):
            for input_index, ranged_input in enumerate(ranged_inputs):
                input_errors = logs[[1 + 2 * input_index, 0, 2 + 2 * input_index]]
                is_moved = (np.abs(input_errors - input_errors[1]) > STILL).any(axis=0)
                if is_moved.any():
                    errors_by_input.setdefault((ranged_input.path, kind), []).append(
                        input_errors[:, is_moved]
                    )
    notices = []
    for (path, kind), parts in errors_by_input.items():
        joined_errors = np.concatenate(parts, axis=1)
        notices.append(
            Notice(
                path,
                kind,
                joined_errors.shape[1],
                tuple(np.sqrt(np.mean(joined_errors**2, axis=1)).tolist()),
            )
        )
    return notices


def _errors_in(
    catalogue: Catalogue, file: Path, ranged_inputs: Sequence[Input]
) -> Iterator[tuple[str, FloatArray]]:
    """Yield a file's kind and the log errors of each chip's rows, for sets of the inputs.

    The first set has all inputs at their values, the next each input at both ends.
    """
    kind, table = read_measured(file)
    input_values = plain_inputs(catalogue, {}).values(as_number)
    measurements = MeasuredRows(table, catalogue, input_values)
    sets = 1 + 2 * len(ranged_inputs)
    for input_index, ranged_input in enumerate(ranged_inputs):
        column = np.full((sets, 1), ranged_input.value)
        column[1 + 2 * input_index :][:2, 0] = ranged_input.low, ranged_input.high
        input_values[ranged_input.path] = column
    for part in sorted({*measurements.parts} - {""}):
        part_mask = measurements.parts == part
        prediction = predictions_or_error(PREDICTORS[kind], measurements.chosen(part_mask))
        if not isinstance(prediction, DataError) and (scored := prediction.skip == "").any():
            yield (
                kind,
                np.log(
                    np.broadcast_to(prediction.predicted, (sets, int(part_mask.sum())))[:, scored]
                    / prediction.target[scored]
                ),
            )
