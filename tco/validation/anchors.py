"""Read your own measured runs as serving rows; unusable rows are refused with a reason.

A row is refused that `tco validate` would not score, one that no chip could do, and one so far off
that its units must be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.inputs import as_number
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

PEAKS = ("peak_bf16", "peak_fp8", "peak_fp4")
FARTHEST = 10.0  # times slower or quicker than predicted: beyond, something else was measured
SHOWN = 3  # refused rows that a message tells of


def read_anchors(catalogue: Catalogue, path: Path) -> tuple[Anchor, ...]:
    """Return the measured serving runs of a file.

    Args:
        catalogue: Holds the chips, models and engines.
        path: CSV of serving runs, in the columns that `tco validate` reads.

    Returns:
        An anchor per row, with the logarithm of the measured over the predicted time.

    Raises:
        DataError: The file holds other measurements or no row, or rows cannot be believed; the
            error names line and reason.

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
    faults = list(_faults_of(serving_rows, measurements, prediction))
    if faults:
        more = f" (and {len(faults) - SHOWN} more rows)" if len(faults) > SHOWN else ""
        raise DataError(
            "\n".join(f"{path}:{row_index + 2}: {why}" for row_index, why in faults[:SHOWN]) + more
        )
    residual_rows = residuals(kind, measurements, prediction)
    engines = [
        serving_engine_id(catalogue, family, engine)
        for family, engine in zip(residual_rows.family, residual_rows.engine, strict=True)
    ]
    columns = (
        residual_rows.chip,
        engines,
        residual_rows.model,
        map(tuple, serving_rows.formats),
        residual_rows.residual,
    )
    return tuple(
        Anchor(f"{path}:{row_index + 2}", *anchor_fields)
        for row_index, anchor_fields in enumerate(zip(*columns, strict=True))
    )


def _faults_of(
    points: inference.ServingRows, measurements: MeasuredRows, prediction: Prediction
) -> Iterator[tuple[int, str]]:
    """Yield the rows that cannot be believed, each with the first reason."""
    prompt, answer = measurements["isl_tokens"], measurements["osl_tokens"]
    output = np.fmax(
        measurements["output_tput_tok_s_per_gpu"],
        measurements["system_tput_tok_s"] / measurements["n_gpus"],
    )
    # of a chip, prompts and answers
    rates = np.fmax(measurements["total_tput_tok_s_per_gpu"], output * (prompt + answer) / answer)
    times = np.fmin(measurements["tpot_ms_mean"], measurements["tpot_ms_median"])
    speeds = np.fmax(measurements["interactivity_tok_s_per_user"], 1e3 / times)
    for row_index in range(len(measurements)):
        if prediction.skip[row_index]:
            yield (
                row_index,
                f"{prediction.skip[row_index]}; expected a row that `tco validate` scores",
            )
            continue
        most, quickest = _bounds_of(points, row_index)
        ratio = prediction.target[row_index] / prediction.predicted[row_index]
        if rates[row_index] > most:
            yield (
                row_index,
                f"{rates[row_index]:,.6g} tokens/s per chip, in and out, are above the roofline: "
                f"its peak does {most:,.6g}",
            )
        elif speeds[row_index] > quickest:
            yield (
                row_index,
                f"{speeds[row_index]:,.6g} tokens/s per user are above the roofline: weights are "
                "read at "
                f"{quickest:,.6g}",
            )
        elif not 1 / FARTHEST < ratio < FARTHEST:
            measured = f"{prediction.target_name[row_index]} {prediction.target[row_index]:,.6g}"
            predicted_text = f"{prediction.predicted[row_index]:,.6g}"
            yield (
                row_index,
                f"{measured} is {ratio:,.3g} times the {predicted_text} predicted: expected the "
                "unit that its name ends in",
            )


def _bounds_of(points: inference.ServingRows, row_index: int) -> tuple[float, float]:
    """Return the most tokens per second by the peak of a row's chip, and per user by its bandwidth.

    R <= P / F with the work F of a token's weights; 1/t <= (1 + d) n B / W with d tokens ahead, n
    chips of a worker and the weights W read.
    """
    input_values, part = points.measurements.values, points.measurements.parts[row_index]
    model = points.model(points.models[row_index])
    peak = max(input_values[f"parts.{part}.{peak_attribute}"] for peak_attribute in PEAKS)
    read = (
        model.active_parameters
        * min(FORMATS[format_name].element for format_name in points.formats[row_index])
        / 8
    )
    ahead = 1 + (
        input_values["performance.serving.draft_tokens"] if points.speculative[row_index] else 0.0
    )
    bandwidth = points.decode["size"][row_index] * input_values[f"parts.{part}.hbm_bandwidth"]
    return peak / float(
        flops_per_token(model, 1.0, training=False)
    ), ahead * bandwidth / read if math.isfinite(bandwidth) else math.inf
