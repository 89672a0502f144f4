"""Value of information: regret saved by knowing an input before choosing.

It is the mean rise in the share of best of the choice, over the draws of a comparison.

    perfect information: E[max_i E[s_i | x]] - max_i E[s_i]
    sample information: the same with x + e in place of x, e the error of a measurement

s_i is the share of best of choice i in a draw. E[s_i | x] is a polynomial in the deviates of the
inputs, fitted to the draws (Strong, Oakley, Brennan and Breeze 2015). The fit to the other folds
makes the choice in a draw, and the draw counts the share of best of this choice. Chance therefore
gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tco.catalog.accuracy import errors_of
from tco.catalog.catalogue import Catalogue
from tco.core.provenance import P95
from tco.core.types import FloatArray
from tco.scenario.beliefs import Range
from tco.scenario.distributions import NORMAL

DEGREE, FOLDS = 3, 8
MEDIAN = 0.6745  # median of the absolute value of a standard normal deviate


def gain(shares: FloatArray, observed_deviates: Sequence[FloatArray]) -> float:
    """Return the mean share of the best gained by knowing `observed_deviates`.

    The gain is over the best choice without `observed_deviates`, and never negative. `shares` has
    a row per choice; `shares` and `observed_deviates` have a column per draw.
    """
    draws = shares.shape[1]
    columns = [np.ones(draws)]
    for deviates in observed_deviates:
        columns += [deviates**power for power in range(1, DEGREE + 1)]
    design_matrix = np.stack(columns, axis=1)
    folds = np.arange(draws) // 2 % FOLDS  # a draw and its opposite are in one fold
    chosen_shares = np.empty(draws)
    for fold in range(FOLDS):
        is_held_out = folds == fold
        fitted_matrix, fitted_shares = design_matrix[~is_held_out], shares[:, ~is_held_out]
        coefficients = np.linalg.lstsq(fitted_matrix, fitted_shares.T, rcond=None)[0]
        choices = (design_matrix[is_held_out] @ coefficients).argmax(axis=1)
        chosen_shares[is_held_out] = shares[choices, np.flatnonzero(is_held_out)]
    return max(float(chosen_shares.mean() - shares.mean(axis=1).max()), 0.0)


def noisy_deviates(
    input_deviates: Sequence[FloatArray], errors: Sequence[float]
) -> list[FloatArray]:
    """Return the deviates of inputs as a measurement sees them, each with its relative error."""
    random = np.random.default_rng(0)
    return [
        deviates + error * random.normal(size=len(deviates))
        for deviates, error in zip(input_deviates, errors, strict=True)
    ]


def standardised_measurement_error(catalogue: Catalogue, kind: str, input_range: Range) -> float:
    """Return a kind's measurement error of an input over the input's spread, both in logarithms."""
    error = errors_of(catalogue, kind).get("accelerator", {}).get("median_ape", 0.0)
    low, high = input_range.low, input_range.high
    if input_range.belief == NORMAL:
        low, high = 1 + low, 1 + high
    spread = math.log(high / low) / (2 * P95) if low > 0 else math.inf
    return math.log1p(error) / MEDIAN / spread
