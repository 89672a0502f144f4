"""How much of a metric's variance each input is for: Sobol indices, and what knowing one input would take away.

Sobol indices are those of a function of independent inputs, by Saltelli's design: two samples A and B of all inputs, and for each input i the
sample A with its column taken from B. First order: S_i = mean(f(B) (f(AB_i) - f(A))) / V, with f centred; total: T_i = mean((f(A) -
f(AB_i))^2) / 2V, by Jansen (Saltelli et al. 2010, doi:10.1016/j.cpc.2009.09.018).

The expected value of finding an input out follows from draws of all inputs: the metric's logarithm is fitted by a polynomial in the place of
one input; what the fit explains is the first-order share of its variance, var(E[log y | x]) / var(log y). Once x is known the expected
variance is what is left of it (law of total variance), so that the standard deviation narrows by 1 - sqrt(1 - share). Inputs that share a
cause tell of each other, as they do in the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
DEGREE = 3  # of the polynomial
FEW = 100  # draws that have the metric; of fewer nothing is said


class Indices(NamedTuple):
    """The indices of every input, and the standard error of each."""

    first: Array
    total: Array
    first_error: Array
    total_error: Array


def design(count: int, inputs: int, seed: int) -> tuple[Array, Array]:
    """Return the two samples of the unit cube, rows by inputs, from one scrambled Sobol sequence; `count` is a power of two."""
    from scipy.stats import qmc  # takes longer to read in than the whole of an answer without it

    both = qmc.Sobol(2 * inputs, seed=seed).random(count)
    return both[:, :inputs], both[:, inputs:]


def indices(function: Callable[[Array], Array], a: Array, b: Array) -> Indices:
    """Return the indices of a function of rows of inputs, from two samples of them; one that is constant has none."""
    at_a, at_b = function(a), function(b)
    both = np.concatenate((at_a, at_b))
    middle, variance = both.mean(), both.var()
    first, total = np.empty((2, a.shape[1], len(a)))
    mixed = a.copy()
    for column in range(a.shape[1]):
        mixed[:, column] = b[:, column]
        at_mixed = function(mixed)
        mixed[:, column] = a[:, column]
        first[column] = (at_b - middle) * (at_mixed - at_a)
        total[column] = (at_a - at_mixed) ** 2 / 2
    scale = variance or 1.0
    first, total = first / scale, total / scale
    return Indices(*(terms.mean(axis=1) for terms in (first, total)), *(terms.std(axis=1) / len(a) ** 0.5 for terms in (first, total)))


# ---------------------------------------------------------------- knowing an input
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


def rank_share(values: Array, places: Sequence[Array]) -> float | None:
    """Return the share of the variance of some values' ranks that goes away once all of some inputs are known; values of no end have a rank too.

    Ranks, equal ones in the middle of their places, are fitted by polynomials in the places of the inputs, as above; none where too few have one.
    """
    kept = ~np.isnan(values)
    count, terms = int(kept.sum()), DEGREE * len(places)
    if count < FEW:
        return None
    _, which, many = np.unique(values[kept], return_inverse=True, return_counts=True)
    y = (np.cumsum(many) - many / 2)[which.ravel()]
    y -= y.mean()
    if not (whole := float(y @ y)):
        return None
    x = np.stack([place[kept] ** power for place in places for power in range(1, DEGREE + 1)], axis=1)
    x -= x.mean(axis=0)
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(np.clip(1 - float(left @ left) / whole * (count - 1) / (count - 1 - terms), 0.0, 1.0))
