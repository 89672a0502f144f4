"""Fit corrections of kernels by engine, release and chip, by ridge regression.

Measured over predicted time is fitted, with the chips drawn towards what they share.

    ln(t / t_physics) = X (c + d_chip) + e,   c ~ N(0, S),   d_chip ~ N(0, S_chip)

X are the pieces of `tco.performance.chip.engine_corrections`. For each kernel, release and format,
c is fitted first to all its chips, then the rest of each chip. Rows that lie far off are weighed by
one over their distance (Huber 1964), so that a few shapes for which a kernel was not made do not
distort the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.errors import UsageError
from tco.core.inputs import Values
from tco.core.types import AnyArray, JsonObject
from tco.performance.chip.engine_corrections import ANY, BENDS, COLUMNS, correction_design_matrix
from tco.validation import collectives, kernels
from tco.validation.measured_rows import MeasuredRows
from tco.validation.score import OfEngine

NAME = "engine-kernels"  # as a fit is asked for
# standard deviations of the level and of the slopes of a kernel
KERNEL = np.array([1.0, *[0.5] * len(BENDS)])
CHIP = np.array([0.5, *[0.2] * len(BENDS)])  # and of how a chip differs from the others
SCATTER = 0.3  # of single shapes, against which both weigh
ROUNDS = 10
MIDDLE = 1.4826  # standard deviations of a normal distribution in its median absolute one


def _ridge(has: AnyArray, left: AnyArray, widths: AnyArray) -> AnyArray:
    """Return the most likely coefficients under their priors, with outlying rows weighed down."""
    weights: AnyArray = np.ones(len(left))
    coefficients: AnyArray = np.zeros(has.shape[1])
    for _ in range(ROUNDS):
        weighed = has * weights[:, None]
        coefficients = np.linalg.solve(
            weighed.T @ has + np.diag((SCATTER / widths) ** 2), weighed.T @ left
        )
        off = np.abs(left - has @ coefficients)
        weights = (
            np.minimum(1, MIDDLE * np.median(off) / np.maximum(off, 1e-12))
            if off.any()
            else weights
        )
    return coefficients


def fit_engine_kernel_rows(
    kind: str, table: pd.DataFrame, catalogue: Catalogue, input_values: Values, date: str
) -> Iterator[JsonObject]:
    """Yield the catalogue's rows of an engine kernel table, per chip and for unlisted chips."""
    measurements = MeasuredRows(table, catalogue, input_values)
    readers = {
        "kernels": kernels.engine_kernel_rows,
        "collectives": collectives.engine_collective_rows,
    }
    if kind not in readers or "engine_kernel" not in table:
        raise UsageError(
            f"--fit {NAME}: found {kind} without the column engine_kernel, expected tables of "
            "engines' kernels, such as engine_gemm"
        )
    measured, timed = readers[kind](measurements)
    groups: dict[tuple[str, str, str], list[OfEngine]] = {}
    for timed_kernel in timed:
        groups.setdefault(
            (timed_kernel.operation, timed_kernel.kernel, timed_kernel.format), []
        ).append(timed_kernel)
    for named, timed_kernels in sorted(groups.items()):
        row_indices = np.concatenate([timed_kernel.rows for timed_kernel in timed_kernels])
        has = np.concatenate(
            [
                correction_design_matrix(
                    timed_kernel.operation,
                    timed_kernel.time,
                    timed_kernel.sides,
                    len(timed_kernel.rows),
                )
                for timed_kernel in timed_kernels
            ]
        )
        left = np.log(
            measured[row_indices]
            / np.concatenate([timed_kernel.time for timed_kernel in timed_kernels])
        )
        common = _ridge(has, left, KERNEL)
        of_chip = {ANY: np.ones(len(row_indices), dtype=bool)} | {
            chip: measurements.parts[row_indices] == chip
            for chip in sorted(set(measurements.parts[row_indices]))
        }
        for chip, is_of_chip in of_chip.items():
            chip_design, chip_left = has[is_of_chip], left[is_of_chip]
            coefficients = common
            if chip != ANY:
                coefficients = common + _ridge(chip_design, chip_left - chip_design @ common, CHIP)
            spread = MIDDLE * float(np.median(np.abs(chip_left - chip_design @ coefficients)))
            cells = (
                *named,
                chip,
                int(is_of_chip.sum()),
                *(float(f"{number:.4g}") for number in (*coefficients, spread)),
                date,
                "aiconfigurator-0.12",
            )
            yield dict(zip(COLUMNS, cells, strict=True))
