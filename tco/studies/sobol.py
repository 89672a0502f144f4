"""Sobol indices: how much of a function's variance each of its inputs is for, alone and together with the others.

Saltelli's design: two samples A and B of all inputs, and for each input i the sample A with its column taken from B. First order:
S_i = mean(f(B) (f(AB_i) - f(A))) / V, with f centred; total: T_i = mean((f(A) - f(AB_i))^2) / 2V, by Jansen (Saltelli et al. 2010,
doi:10.1016/j.cpc.2009.09.018). Inputs are taken as independent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


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
