"""Variance components of a linear mixed model, by expectation and maximisation.

    y = Z u + e,   u_k ~ N(0, v_level),   e ~ N(0, D)

Z says which owner of each level an observation has. The effects u and the variances v follow from
one another, and are iterated until the variances stand still (Dempster, Laird and Rubin 1977):

    S = (G^-1 + Z'D^-1 Z)^-1,   m = S Z'D^-1 y,   v_level = mean of m_k^2 + S_kk

The variance of the noise follows from the expected squares of e, by a rule of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from tco.core.types import FloatArray

FREEDOM = 3.0  # degrees of freedom of Student's t
ROUNDS = 5000


class Noise(NamedTuple):
    """Noise of the observations of a mixed model."""

    variance: float  # that is estimated
    variances: FloatArray  # of each observation


# noise, expected squares of the residuals -> the noise that is likeliest for them
NoiseUpdate: TypeAlias = Callable[[Noise, FloatArray], Noise]


def student_noise(noise: Noise, squares: FloatArray) -> Noise:
    """Return noise of Student's t, in which outliers weigh little.

    The weights are those of Lange, Little and Taylor (1989).

    Args:
        noise: Noise of the round before.
        squares: Expected squares of the residuals.

    """
    variance = float(np.mean(noise.variance / noise.variances * squares))
    return Noise(variance, (FREEDOM * variance + squares) / (FREEDOM + 1))


def configuration_noise(noise: Noise, squares: FloatArray) -> Noise:
    """Return noise of configurations, beside the known scatter of their runs.

    Args:
        noise: Noise of the round before.
        squares: Expected squares of the residuals.

    """
    scatter = noise.variances - noise.variance
    # share of a residual that is the configuration's, and not the scatter of its runs
    shares = noise.variance / noise.variances
    variance = float(np.mean(shares**2 * squares + noise.variance * (1 - shares)))
    return Noise(variance, variance + scatter)


class Effects(NamedTuple):
    """Effects of the owners of a mixed model, and its variances."""

    # mean and standard deviation, by level and owner
    by_owner: dict[tuple[str, str], tuple[float, float]]
    variances: dict[str, float]  # by level
    noise: Noise

    def of(self, level: str, owner: str) -> tuple[float, float]:
        """Return mean and standard deviation of an effect.

        An owner without observations has those of its level.
        """
        return self.by_owner.get((level, owner), (0.0, math.sqrt(self.variances[level])))


def fit_effects(
    labels: pd.DataFrame,
    responses: FloatArray,
    variances: Mapping[str, float],
    noise: Noise,
    update_noise: NoiseUpdate,
    tolerance: float,
    fixed_levels: Collection[str] = (),
) -> Effects:
    """Return the likeliest effects and variances of a mixed model.

    Args:
        labels: Owner of each observation, a column for each level.
        responses: Observations, shape (rows,).
        variances: Variance by level, before the first round.
        noise: Noise before the first round.
        update_noise: Function that makes the noise of the next round.
        tolerance: Relative change by which variances stand still.
        fixed_levels: Levels whose variance stays as it is.

    """
    levels = list(variances)
    owners = [(level, owner) for level in levels for owner in sorted(set(labels[level]))]
    design = np.array([labels[level] == owner for level, owner in owners], dtype=float).T
    level_of_owner = np.array([levels.index(level) for level, _ in owners])
    fixed = np.isin(levels, list(fixed_levels))
    level_variances = np.array(list(variances.values()))
    for _ in range(ROUNDS):
        weighted = design / noise.variances[:, None]
        precision = np.diag(1 / level_variances[level_of_owner]) + design.T @ weighted
        covariance = np.linalg.inv(precision)
        means = covariance @ (weighted.T @ responses)
        effect_squares = means**2 + np.diag(covariance)
        fitted_variances = ((design @ covariance) * design).sum(axis=1)
        residual_squares = (responses - design @ means) ** 2 + fitted_variances
        before = np.append(level_variances, noise.variance)
        mean_squares = np.bincount(level_of_owner, effect_squares) / np.bincount(level_of_owner)
        level_variances = np.where(fixed, level_variances, mean_squares)
        noise = update_noise(noise, residual_squares)
        after = np.append(level_variances, noise.variance)
        if np.allclose(before, after, rtol=tolerance, atol=0):
            break
    deviations = np.sqrt(np.diag(covariance))
    effects = zip(means.tolist(), deviations.tolist(), strict=True)
    return Effects(
        dict(zip(owners, effects, strict=True)),
        dict(zip(levels, level_variances.tolist(), strict=True)),
        noise,
    )
