"""Drivers of a metric: Sobol indices, variance shares and ranking reversals.

A ranking of two scenarios is reversed by an input alone or by a pair of inputs.

Sobol indices are those of a function of independent inputs, by Saltelli's design: two samples A and
B of all inputs, and for each input i the sample A with its column taken from B. First order: S_i =
mean(f(B) (f(AB_i) - f(A))) / V, with f centred; total: T_i = mean((f(A) - f(AB_i))^2) / 2V, by
Jansen (Saltelli et al. 2010, doi:10.1016/j.cpc.2009.09.018).

The expected value of finding an input out follows from draws of all inputs: the metric's logarithm
is fitted by a polynomial in the place of one input; what the fit explains is the first-order share
of its variance, var(E[log y | x]) / var(log y). Once x is known the expected variance is what is
left of it (law of total variance), so that the standard deviation narrows by 1 - sqrt(1 - share).
Inputs that share a cause tell of each other, as they do in the draws.

Of some hundred inputs there are ten thousands of pairs. Were the logarithm of a ratio a sum over
inputs, a pair would flip the order if what both do alone comes to enough; those near enough are
looked at, the strongest first, and only what the chain says of them is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tco.core.types import FloatArray
from tco.evaluation.side_by_side import Driver
from tco.sampling.scenario_quantity import CENTRE, three_point_deviates
from tco.scenario.beliefs import STEPS, Range

DEGREE = 3  # of the polynomial
FEW = 100  # draws that have the metric; of fewer nothing is said


class Indices(NamedTuple):
    """The indices of an input, or of every one, and the standard error of each."""

    first: Any
    total: Any
    first_error: Any
    total_error: Any


def design(count: int, inputs: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return two samples of the unit cube from a scrambled Sobol sequence, rows by inputs.

    `count` is a power of two.
    """
    from scipy.stats import qmc  # takes longer to read in than the whole of an answer without it

    both = qmc.Sobol(2 * inputs, seed=seed).random(count)
    return both[:, :inputs], both[:, inputs:]


def indices(function: Callable[[FloatArray], FloatArray], a: FloatArray, b: FloatArray) -> Indices:
    """Return the Sobol indices of a function of input rows, from two samples.

    A constant function has zero indices.
    """
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
    return Indices(
        *(terms.mean(axis=1) for terms in (first, total)),
        *(terms.std(axis=1) / len(a) ** 0.5 for terms in (first, total)),
    )


# ---------------------------------------------------------------- knowing an input
def _r_squared_adjusted(y: FloatArray, input_deviates: Sequence[FloatArray]) -> float:
    """Return the share of variance that polynomials in the inputs' deviates explain together.

    They explain some of what is but chance: what they are expected to is taken off (adjusted R
    squared).
    """
    y = y - y.mean()
    x = np.stack(
        [deviates**power for deviates in input_deviates for power in range(1, DEGREE + 1)], axis=1
    )
    x -= x.mean(axis=0)
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    share = 1 - float(left @ left) / float(y @ y) * (len(y) - 1) / (len(y) - 1 - x.shape[1])
    return float(np.clip(share, 0, 1))


def first_order(
    metric_draws: FloatArray, input_deviates: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return each input's share of the variance of the log metric over finite draws.

    It is empty where such draws are too few.
    """
    is_finite = np.isfinite(metric_draws)
    if (
        is_finite.sum() < FEW
        or (metric_draws[is_finite] <= 0).any()
        or np.ptp(metric_draws[is_finite]) == 0
    ):
        return {}
    y = np.log(metric_draws[is_finite])
    return {
        path: _r_squared_adjusted(y, [deviates[is_finite]])
        for path, deviates in input_deviates.items()
    }


def narrowing(share: float) -> float:
    """Return the share by which a known input narrows the standard deviation.

    Args:
        share: Share of the input in the variance, from 0 to 1.

    Returns:
        1 - sqrt(1 - share), from 0 to 1.

    """
    return float(1 - (1 - share) ** 0.5)


def rank_share(metric_draws: FloatArray, input_deviates: Sequence[FloatArray]) -> float | None:
    """Return the share of inputs in the variance of ranks of values.

    The share is of the variance that goes away once all inputs of `input_deviates` are known. An
    infinite
    value has a rank too; nan has none. Equal values have the rank in the middle of their places.

    Args:
        metric_draws: Values of shape (draws,).
        input_deviates: Standard normal deviates of each input, of shape (draws,).

    Returns:
        Share from 0 to 1; None for fewer than `FEW` ranked values or for values that are all equal.

    """
    is_ranked = ~np.isnan(metric_draws)
    _, which, tie_counts = np.unique(
        metric_draws[is_ranked], return_inverse=True, return_counts=True
    )
    if is_ranked.sum() < FEW or len(tie_counts) < 2:
        return None
    return _r_squared_adjusted(
        (np.cumsum(tie_counts) - tie_counts / 2)[which.ravel()],
        [deviates[is_ranked] for deviates in input_deviates],
    )


NAMED = 3  # inputs an answer names
FINE = 17  # places from the value to an end, once the order is known to turn between them
NEAR = 0.5  # of what is needed, that both of a pair do alone: together they may do twice as much
STILL = 1e-9  # relative change that is none
MOST = 1536  # pairs that are evaluated
# places of some inputs, moved together -> the ratio there
Together = Callable[[Mapping[str, FloatArray]], FloatArray]


def leading_drivers(
    ranges: Mapping[str, Range],
    ratios: Mapping[str, FloatArray],
    together: Together,
    count: int = NAMED,
) -> list[Driver]:
    """Return the inputs that move the performance per cost most.

    An input comes first if only a single side meets the target at an end of the range. An input
    that moves nothing is left out.

    Args:
        ranges: Range of each input by path.
        ratios: Ratio of performance per cost between both sides, at low, value and high of each
            input, of shape (3,).
        together: Gives the ratio at places of inputs that move together.
        count: Greatest number of inputs.

    """
    swings = {path: _ratio_swing(input_ratios) for path, input_ratios in ratios.items()}
    most = sorted(
        (path for path, swing in swings.items() if swing),
        key=lambda path: (-abs(swings[path]), path),
    )[:count]
    flips = flips_of(ranges, {path: ratios[path] for path in most}, together)
    return [
        Driver(
            path,
            swings[path] if np.isfinite(swings[path]) else None,
            flips.get(path),
            ranges[path].unit,
            ranges[path].value,
            ranges[path].stated_quantity,
        )
        for path in most
    ]


def _ratio_swing(ratios: FloatArray) -> float:
    low, high = ratios[[0, -1]]
    if low == high or (np.isnan(low) and np.isnan(high)):
        return 0.0
    return float(high - low) if np.isfinite(high) and np.isfinite(low) else np.inf


def flips_of(
    ranges: Mapping[str, Range], ratios: Mapping[str, FloatArray], together: Together
) -> dict[str, float]:
    """Return the break-even values of inputs that reverse the ranking.

    Only inputs that reverse the ranking at their low or high have a break-even value. The
    value is the break-even nearest to the base case.

    All are looked at closely between value and end, in one pass. For an input that decides a count,
    the ranking turns at the end.
    """
    turned = [
        (path, far)
        for path, input_ratios in ratios.items()
        for far in (0, -1)
        if (input_ratios[far] > 1) != (input_ratios[CENTRE] > 1)
    ]
    smooth = [(path, far) for path, far in turned if ranges[path].shape != STEPS]
    flip_deviates = [
        (path, float(three_point_deviates(ranges[path])[far]))
        for path, far in turned
        if ranges[path].shape == STEPS
    ]
    if smooth:
        moved_deviates = {
            path: np.full((len(smooth), FINE), ranges[path].home) for path, _ in smooth
        }
        for input_index, (path, far) in enumerate(smooth):
            moved_deviates[path][input_index] = np.linspace(
                ranges[path].home, three_point_deviates(ranges[path])[far], FINE
            )
        looked = together(
            {path: deviates.ravel() for path, deviates in moved_deviates.items()}
        ).reshape(len(smooth), FINE)
        flip_deviates += [
            (path, _crossing_deviate(moved_deviates[path][input_index], looked[input_index]))
            for input_index, (path, _) in enumerate(smooth)
        ]
    nearest = sorted(
        flip_deviates, key=lambda flip_deviate: -abs(flip_deviate[1] - ranges[flip_deviate[0]].home)
    )
    return {path: float(ranges[path].quantile(np.array(deviate))) for path, deviate in nearest}


def _crossing_deviate(deviates: FloatArray, ratios: FloatArray) -> float:
    """Return the first deviate at which a ratio passes 1, with its logarithm interpolated."""
    crossed = (ratios > 1) != (ratios[0] > 1)
    if not crossed.any():
        return float(deviates[-1])
    first = int(np.argmax(crossed))
    (low, high), here = deviates[[first - 1, first]], ratios[[first - 1, first]]
    if not (np.isfinite(here) & (here > 0)).all():
        return float((low + high) / 2)
    above, below = np.log(here)
    return float(low + above / (above - below) * (high - low))


# ---------------------------------------------------------------- pairs
class Pair(NamedTuple):
    """Two inputs that flip the order together."""

    paths: tuple[str, str]
    values: tuple[float, float]  # of both, in their units
    ratio: float  # there


def pairs_that_flip(
    ranges: Mapping[str, Range],
    ratios: Mapping[str, FloatArray],
    together: Together,
    plan_inputs: frozenset[str],
) -> list[Pair]:
    """Return the pairs that flip the order, the farthest across first.

    An input that decides how many of something there are is left out, since it changes what is
    held; so are pairs of inputs whose draws are the same, which cannot move apart.

    Args:
        ranges: Range of each input by path.
        ratios: Ratio at P5, value and P95 of each input alone, of shape (3,).
        together: Gives the ratio at places of inputs that move together.
        plan_inputs: Inputs that plans rest on.

    """
    centre = next(iter(ratios.values()))[CENTRE]
    if not np.isfinite(centre) or centre in (0, 1):
        return []
    side = 1.0 if centre > 1 else -1.0
    gains, far = _gains_of_inputs(ranges, ratios, centre, side)
    gaining_paths = sorted(gains, key=lambda path: (-gains[path], path))
    pairs = _near_enough(
        ranges,
        gaining_paths,
        np.array([gains[path] for path in gaining_paths]),
        side * float(np.log(centre)),
    )
    if not pairs:
        return []
    # plans are cached by the points at which they are chosen: these come first, and are the same
    # whichever pairs a price brings near
    shared = sorted(far.keys() & plan_inputs)
    corners = [(), *((path,) for path in shared), *combinations(shared, 2)]
    points = [*corners, *pairs]
    moved_deviates = {
        path: np.full(len(points), ranges[path].home)
        for path in dict.fromkeys(path for point in points for path in point)
    }
    for index, point in enumerate(points):
        for path in point:
            moved_deviates[path][index] = far[path]
    flipping_pairs = [
        Pair(
            pair,
            (
                float(ranges[pair[0]].quantile(np.array(far[pair[0]]))),
                float(ranges[pair[1]].quantile(np.array(far[pair[1]]))),
            ),
            float(ratio),
        )
        for pair, ratio in zip(pairs, together(moved_deviates)[len(corners) :], strict=True)
        if np.isfinite(ratio) and (ratio > 1) != (centre > 1)
    ]
    return sorted(
        flipping_pairs, key=lambda flipping_pair: (side * flipping_pair.ratio, flipping_pair.paths)
    )


def _gains_of_inputs(
    ranges: Mapping[str, Range], ratios: Mapping[str, FloatArray], centre: float, side: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the gains of inputs towards a flip, and the deviate of each input's largest gain.

    A gain is how far an input moves the logarithm of the ratio towards zero. Inputs that flip the
    order alone have no gain.
    """
    gains, far = {}, {}
    for path, input_ratios in ratios.items():
        is_positive = np.isfinite(input_ratios) & (input_ratios > 0)
        gain = np.where(
            is_positive,
            side * np.log(centre / np.where(is_positive, input_ratios, centre)),
            -np.inf,
        )
        if ranges[path].steps or gain.max() <= STILL:
            continue
        far[path] = float(three_point_deviates(ranges[path])[gain.argmax()])
        if not ((input_ratios[[0, -1]] > 1) != (centre > 1)).any():
            gains[path] = float(gain.max())
    return gains, far


def _near_enough(
    ranges: Mapping[str, Range], gaining_paths: list[str], gains: FloatArray, needed: float
) -> list[tuple[str, str]]:
    """Return the pairs whose gains come near to what is needed, those that gain most first."""
    first_indices, second_indices = np.triu_indices(len(gaining_paths), 1)
    both = gains[first_indices] + gains[second_indices]
    order = np.argsort(-both, kind="stable")
    order = order[both[order] >= NEAR * needed]
    pairs = (
        (gaining_paths[first_indices[pair_index]], gaining_paths[second_indices[pair_index]])
        for pair_index in order
    )
    return [pair for pair in pairs if ranges[pair[0]].leader != ranges[pair[1]].leader][:MOST]
