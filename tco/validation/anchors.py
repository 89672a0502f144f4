"""Read your own measured serving runs as anchors; one unbelievable run refuses the whole file.

A run is unbelievable if `tco validate` does not score it, if no chip can be so fast, or if it lies
so far from the prediction that its units must be wrong.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.inputs import as_number
from tco.core.types import FloatArray
from tco.performance.chip.formats import FORMATS
from tco.performance.chip.roofline import flops_per_token
from tco.performance.serving_engines import serving_engine_id
from tco.scenario.anchors import Anchor
from tco.scenario.resolve import plain_inputs
from tco.validation import inference
from tco.validation.measured import read_measured
from tco.validation.measured_rows import MeasuredRows
from tco.validation.score import Prediction, predict_by_accelerator
from tco.validation.unexplained import residuals

PEAK_ATTRIBUTES = ("peak_bf16", "peak_fp8", "peak_fp4")
MAX_ERROR_FACTOR = 10.0  # between measured and predicted; beyond, something else was measured
MAX_SHOWN_FAULTS = 3  # rows that the error names
FIRST_LINE = 2  # of the file that holds a row: the first line holds the columns


class RowFault(NamedTuple):
    """Reason against a row, which refuses its file."""

    row_index: int
    reason: str


class ThroughputRates(NamedTuple):
    """Measured rates by row, nan where a row states none."""

    chip: FloatArray  # tokens/s per chip, of prompts and answers
    user: FloatArray  # tokens/s per user


def read_anchors(catalogue: Catalogue, path: Path) -> tuple[Anchor, ...]:
    """Return the measured serving runs of a file.

    Args:
        catalogue: Holds the chips, models and engines.
        path: CSV of serving runs, in the columns that `tco validate` reads.

    Returns:
        An anchor per row, with the logarithm of the measured over the predicted time.

    Raises:
        DataError: The file holds other measurements or no row, or any row is unbelievable; the
            error names lines and reasons.

    """
    kind, table = read_measured(path)
    if kind != "inference":
        raise DataError(
            f"--anchor {path}: holds {kind}, expected serving runs, in columns as `tco validate` "
            "reads them"
        )
    if table.empty:
        raise DataError(f"--anchor {path}: holds no row")
    input_values = plain_inputs(catalogue, {}).values(as_number)
    measurements = MeasuredRows(table, catalogue, input_values)
    prediction = predict_by_accelerator(inference.predict_serving_runs, measurements)
    serving_rows = inference.serving_rows_of(measurements)
    _refuse_faults(path, _row_faults(serving_rows, measurements, prediction))
    residual_rows = residuals(kind, measurements, prediction)
    return tuple(
        Anchor(
            where=f"{path}:{row_index + FIRST_LINE}",
            chip=residual_row.chip,
            engine=serving_engine_id(catalogue, residual_row.family, residual_row.engine),
            model=residual_row.model,
            formats=tuple(formats),
            beyond=residual_row.residual,
        )
        for row_index, (residual_row, formats) in enumerate(
            zip(residual_rows.itertuples(), serving_rows.formats, strict=True)
        )
    )


def _refuse_faults(path: Path, faults: list[RowFault]) -> None:
    if not faults:
        return
    lines = [
        f"{path}:{fault.row_index + FIRST_LINE}: {fault.reason}"
        for fault in faults[:MAX_SHOWN_FAULTS]
    ]
    more_count = len(faults) - len(lines)
    raise DataError("\n".join(lines) + (f" (and {more_count} more rows)" if more_count else ""))


def _row_faults(
    serving_rows: inference.ServingRows, measurements: MeasuredRows, prediction: Prediction
) -> list[RowFault]:
    """Return the unbelievable rows, each with the first reason against it."""
    rates = _measured_rates(measurements)
    faults = []
    for row_index in range(len(measurements)):
        if prediction.skip[row_index]:
            reason = f"{prediction.skip[row_index]}; expected a row that `tco validate` scores"
        else:
            reason = _reason_against_rates(serving_rows, row_index, rates)
            reason = reason or _reason_against_error(prediction, row_index)
        if reason:
            faults.append(RowFault(row_index, reason))
    return faults


def _measured_rates(measurements: MeasuredRows) -> ThroughputRates:
    # a row may state a rate in several columns: the greatest counts
    prompt_tokens, answer_tokens = measurements["isl_tokens"], measurements["osl_tokens"]
    answer_rate = np.fmax(
        measurements["output_tput_tok_s_per_gpu"],
        measurements["system_tput_tok_s"] / measurements["n_gpus"],
    )
    chip_rate = np.fmax(
        measurements["total_tput_tok_s_per_gpu"],
        answer_rate * (prompt_tokens + answer_tokens) / answer_tokens,
    )
    token_ms = np.fmin(measurements["tpot_ms_mean"], measurements["tpot_ms_median"])
    user_rate = np.fmax(measurements["interactivity_tok_s_per_user"], 1e3 / token_ms)
    return ThroughputRates(chip_rate, user_rate)


def _reason_against_rates(
    serving_rows: inference.ServingRows, row_index: int, rates: ThroughputRates
) -> str:
    """Return the reason against rates above the roofline; empty where there is none."""
    chip_rate, user_rate = rates.chip[row_index], rates.user[row_index]
    max_chip_rate = _max_chip_rate(serving_rows, row_index)
    if chip_rate > max_chip_rate:
        return (
            f"{chip_rate:,.6g} tokens/s per chip, in and out, are above the roofline: its peak "
            f"does {max_chip_rate:,.6g}"
        )
    max_user_rate = _max_user_rate(serving_rows, row_index)
    if user_rate > max_user_rate:
        return (
            f"{user_rate:,.6g} tokens/s per user are above the roofline: weights are read at "
            f"{max_user_rate:,.6g}"
        )
    return ""


def _reason_against_error(prediction: Prediction, row_index: int) -> str:
    """Return the reason against a row far from its prediction; empty for others."""
    measured, predicted = prediction.target[row_index], prediction.predicted[row_index]
    ratio = measured / predicted
    if 1 / MAX_ERROR_FACTOR < ratio < MAX_ERROR_FACTOR:
        return ""
    return (
        f"{prediction.target_name[row_index]} {measured:,.6g} is {ratio:,.3g} times the "
        f"{predicted:,.6g} predicted: expected the unit that its name ends in"
    )


def _max_chip_rate(serving_rows: inference.ServingRows, row_index: int) -> float:
    """Return the tokens per second of a row's chip at its peak, R = P / F.

    P is the peak of the chip, and F the work of a token's weights.
    """
    input_values = serving_rows.measurements.values
    chip = serving_rows.measurements.parts[row_index]
    model = serving_rows.model(serving_rows.models[row_index])
    peak = max(input_values[f"parts.{chip}.{attribute}"] for attribute in PEAK_ATTRIBUTES)
    return float(peak / float(flops_per_token(model, 1.0, training=False)))


def _max_user_rate(serving_rows: inference.ServingRows, row_index: int) -> float:
    """Return the tokens per second of a row's user by memory bandwidth, (1 + d) n B / W.

    d are the draft tokens of a step, n the chips of a worker, B the bandwidth of a chip and W the
    bytes of the weights that a step reads at least.
    """
    input_values = serving_rows.measurements.values
    chip = serving_rows.measurements.parts[row_index]
    model = serving_rows.model(serving_rows.models[row_index])
    least_bits = min(FORMATS[name].element for name in serving_rows.formats[row_index])
    weight_bytes = model.active_parameters * least_bits / 8
    draft_tokens = 0.0
    if serving_rows.speculative[row_index]:
        draft_tokens = input_values["performance.serving.draft_tokens"]
    worker_chips = serving_rows.decode["size"][row_index]
    bandwidth = worker_chips * input_values[f"parts.{chip}.hbm_bandwidth"]
    if not math.isfinite(bandwidth):  # the row does not state the chips of a worker
        return math.inf
    return float((1 + draft_tokens) * bandwidth / weight_bytes)
