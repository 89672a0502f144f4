"""Value of information: regret saved by knowing an input before choosing.

It is the mean rise in the share of the best that a choice keeps, on the draws of a comparison.

    perfect information: E[max_i E[s_i | x]] - max_i E[s_i]          sample information: the same
    with x + e seen, e the error of a measurement

s_i is the share of the best that choice i keeps in a draw. What is expected of each choice once x
is seen is a polynomial in the places of the inputs, fitted to the draws (Strong, Oakley, Brennan
and Breeze 2015). A draw is decided by the fit to the others and counts as what its choice did keep,
so that chance gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tco.catalog.accuracy import errors_of
from tco.catalog.catalogue import Catalogue
from tco.core.provenance import P95
from tco.core.types import FloatArray
from tco.scenario.beliefs import NORMAL, Range

DEGREE, FOLDS = 3, 8
MEDIAN = 0.6745  # of the size of a standard normal deviate


def gain(shares: FloatArray, observed_deviates: Sequence[FloatArray]) -> float:
    """Return the mean share of the best gained by knowing `observed_deviates`.

    The gain is over the best choice without `observed_deviates`, and never negative. `shares` has
    a row per choice; `shares` and `observed_deviates` have a column per draw.
    """
    draws = shares.shape[1]
    design_matrix = np.stack(
        [
            np.ones(draws),
            *(deviates**power for deviates in observed_deviates for power in range(1, DEGREE + 1)),
        ],
        axis=1,
    )
    chosen_shares = np.empty(draws)
    for fold in range(FOLDS):
        is_held_out = np.arange(draws) // 2 % FOLDS == fold  # a draw and its opposite together
        law = np.linalg.lstsq(design_matrix[~is_held_out], shares[:, ~is_held_out].T, rcond=None)[0]
        chosen_shares[is_held_out] = shares[
            (design_matrix[is_held_out] @ law).argmax(axis=1), np.flatnonzero(is_held_out)
        ]
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
    missed = errors_of(catalogue, kind).get("accelerator", {}).get("median_ape", 0.0)
    low, high = (
        (1 + input_range.low, 1 + input_range.high)
        if input_range.belief == NORMAL
        else (input_range.low, input_range.high)
    )
    width = math.log(high / low) / (2 * P95) if low > 0 else math.inf
    return math.log1p(missed) / MEDIAN / width
