"""What knowing an input would do to the range of a metric: the expected value of finding it out.

Over many draws of all inputs the metric's logarithm is fitted by a polynomial in the place of one input; what the fit explains is the
first-order share of its variance, var(E[log y | x]) / var(log y). Once x is known the expected variance is what is left of it (law of total
variance), so that the standard deviation narrows by 1 - sqrt(1 - share). Inputs that share a cause tell of each other, as they do in the draws.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tco.studies.ranges import Array

DEGREE = 3  # of the polynomial
FEW = 100  # draws that have the metric; of fewer nothing is said


def first_order(values: Array, places: Mapping[str, Array]) -> dict[str, float]:
    """Return the share of each input in the variance of the logarithm of some values, of those there are; nothing where they are too few.

    A polynomial explains some of what is but chance: what it is expected to is taken off (adjusted R squared).
    """
    kept = np.isfinite(values)
    count = int(kept.sum())
    if count < FEW or (values[kept] <= 0).any():
        return {}
    y = np.log(values[kept])
    y -= y.mean()
    whole = float(y @ y)
    if whole <= 0:
        return {}
    x = np.stack(list(places.values()))[:, kept]
    powers = np.stack([x**power for power in range(1, DEGREE + 1)], axis=1)  # inputs, powers, draws
    powers -= powers.mean(axis=2, keepdims=True)
    within, across = powers @ powers.transpose(0, 2, 1), powers @ y
    explained = np.einsum("ij,ij->i", across, np.linalg.solve(within, across[:, :, None])[:, :, 0]) / whole
    shares = 1 - (1 - explained) * (count - 1) / (count - 1 - DEGREE)
    return {path: min(max(float(share), 0.0), 1.0) for path, share in zip(places, shares, strict=True)}


def narrowing(share: float) -> float:
    """Return by which share the standard deviation narrows once an input of some share of the variance is known."""
    return float(1 - (1 - share) ** 0.5)
