"""Drivers of a metric: Sobol indices, variance shares and ranking reversals.

Sobol indices. The inputs are independent. Saltelli's design has two samples A and B of all inputs,
and for each input i the sample AB_i: A with the column of i from B. f is the centred metric.

    first order  S_i = mean(f(B) (f(AB_i) - f(A))) / V
    total        T_i = mean((f(A) - f(AB_i))^2) / 2V

The total index is by Jansen (Saltelli et al. 2010, doi:10.1016/j.cpc.2009.09.018).

Variance shares. A polynomial in the deviates of one input x is fitted to the logarithm of the
metric y over draws of all inputs. The fit explains the first-order share of the variance,
var(E[log y | x]) / var(log y). If x were known, the rest of the variance would remain (law of
total variance), and the standard deviation would narrow by 1 - sqrt(1 - share). An input that
shares a cause with others has their effect in its share too.

Ranking reversals. A single input or a pair of inputs may reverse the ranking of two scenarios.
A hundred inputs have thousands of pairs, so only some pairs are evaluated. If the logarithm of the
ratio were a sum over inputs, a pair would reverse the ranking where the sum of both effects
suffices. Pairs near that limit are evaluated, the strongest first. Only pairs whose evaluation
reverses the ranking are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tco.core.types import FloatArray
from tco.evaluation.side_by_side import Driver
from tco.sampling.scenario_quantity import CENTRE, three_point_deviates
from tco.scenario.beliefs import Range
from tco.scenario.distributions import STEPS

POLYNOMIAL_DEGREE = 3
LEAST_DRAWS = 100  # with fewer draws of the metric no variance share is estimated
DRIVERS_NAMED = 3  # leading drivers of an answer
# Points from an input's value to an end, evaluated to find where the ranking turns in between.
BREAK_EVEN_POINTS = 17
# A pair is evaluated if both inputs alone have this share of the effect that a reversal needs:
# together they may have twice the effect.
PAIR_EFFECT_SHARE = 0.5
LEAST_GAIN = 1e-9  # change of the log ratio below which an input has no effect
MOST_PAIRS = 1536  # pairs that are evaluated
# Takes standard normal deviates of inputs that move together, and returns the ratio at each point.
RatioAtDeviates = Callable[[Mapping[str, FloatArray]], FloatArray]


class Indices(NamedTuple):
    """Sobol indices with their standard errors: numbers of one input, or arrays of all inputs."""

    first: Any  # first order
    total: Any
    first_error: Any
    total_error: Any


def design(count: int, inputs: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return two samples of the unit cube from a scrambled Sobol sequence, shape (count, inputs).

    `count` is a power of two.
    """
    from scipy.stats import qmc  # its import takes longer than an answer without it

    both = qmc.Sobol(2 * inputs, seed=seed).random(count)
    return both[:, :inputs], both[:, inputs:]


def indices(function: Callable[[FloatArray], FloatArray], a: FloatArray, b: FloatArray) -> Indices:
    """Return the Sobol indices of a function of input rows, from two samples.

    A constant function has zero indices.
    """
    values_a, values_b = function(a), function(b)
    values = np.concatenate((values_a, values_b))
    mean = values.mean()
    variance = values.var() or 1.0
    first_terms, total_terms = np.empty((2, a.shape[1], len(a)))
    mixed = a.copy()
    for column in range(a.shape[1]):
        mixed[:, column] = b[:, column]
        values_mixed = function(mixed)
        mixed[:, column] = a[:, column]
        first_terms[column] = (values_b - mean) * (values_mixed - values_a)
        total_terms[column] = (values_a - values_mixed) ** 2 / 2
    first_terms = first_terms / variance
    total_terms = total_terms / variance
    return Indices(
        first=first_terms.mean(axis=1),
        total=total_terms.mean(axis=1),
        first_error=first_terms.std(axis=1) / len(a) ** 0.5,
        total_error=total_terms.std(axis=1) / len(a) ** 0.5,
    )


# ---------------------------------------------------------------- variance shares
def _r_squared_adjusted(y: FloatArray, input_deviates: Sequence[FloatArray]) -> float:
    """Return the share of variance that polynomials in the inputs' deviates explain together.

    Polynomials also explain some chance variance. Its expected share is subtracted (adjusted R
    squared).
    """
    y = y - y.mean()
    powers = range(1, POLYNOMIAL_DEGREE + 1)
    x = np.stack([deviates**power for deviates in input_deviates for power in powers], axis=1)
    x -= x.mean(axis=0)
    residuals = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    freedom = len(y) - 1
    unexplained = float(residuals @ residuals) / float(y @ y) * freedom / (freedom - x.shape[1])
    return float(np.clip(1 - unexplained, 0, 1))


def first_order(
    metric_draws: FloatArray, input_deviates: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return each input's share of the variance of the log metric over finite draws.

    No input has a share where fewer than `LEAST_DRAWS` draws are finite, a draw is not positive, or
    all draws are equal.

    Args:
        metric_draws: Metric of shape (draws,).
        input_deviates: Standard normal deviates of each input by path, of shape (draws,).

    """
    is_finite = np.isfinite(metric_draws)
    finite_draws = metric_draws[is_finite]
    if len(finite_draws) < LEAST_DRAWS or (finite_draws <= 0).any() or np.ptp(finite_draws) == 0:
        return {}
    y = np.log(finite_draws)
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
    """Return the share of some inputs together in the variance of the ranks of a metric.

    An infinite draw has a rank, nan has none. Equal draws all have their mean rank.

    Args:
        metric_draws: Metric of shape (draws,).
        input_deviates: Standard normal deviates of each input, of shape (draws,).

    Returns:
        Share from 0 to 1; None for fewer than `LEAST_DRAWS` ranks or for draws that are all equal.

    """
    is_ranked = ~np.isnan(metric_draws)
    _, tie_of_draw, tie_counts = np.unique(
        metric_draws[is_ranked], return_inverse=True, return_counts=True
    )
    if is_ranked.sum() < LEAST_DRAWS or len(tie_counts) < 2:
        return None
    mean_ranks = np.cumsum(tie_counts) - tie_counts / 2
    return _r_squared_adjusted(
        mean_ranks[tie_of_draw.ravel()], [deviates[is_ranked] for deviates in input_deviates]
    )


# ---------------------------------------------------------------- single inputs
def leading_drivers(
    ranges: Mapping[str, Range],
    ratios: Mapping[str, FloatArray],
    together: RatioAtDeviates,
    count: int = DRIVERS_NAMED,
) -> list[Driver]:
    """Return the inputs that move a ratio of performance per cost most.

    An input comes first if only one scenario meets the target at an end of the range. An input
    that does not move the ratio is left out.

    Args:
        ranges: Range of each input by path.
        ratios: Ratio at the low, the value and the high of each input, of shape (3,), by path.
        together: Function of the deviates of inputs that move together, which gives the ratio.
        count: Greatest number of inputs to return.

    """
    swings = {path: _ratio_swing(input_ratios) for path, input_ratios in ratios.items()}
    moving_paths = [path for path, swing in swings.items() if swing]
    leading_paths = sorted(moving_paths, key=lambda path: (-abs(swings[path]), path))[:count]
    flips = flips_of(ranges, {path: ratios[path] for path in leading_paths}, together)
    return [
        Driver(
            path,
            swings[path] if np.isfinite(swings[path]) else None,
            flips.get(path),
            ranges[path].unit,
            ranges[path].value,
            ranges[path].stated_quantity,
        )
        for path in leading_paths
    ]


def _ratio_swing(ratios: FloatArray) -> float:
    low, high = ratios[[0, -1]]
    if low == high or (np.isnan(low) and np.isnan(high)):
        return 0.0
    return float(high - low) if np.isfinite(high) and np.isfinite(low) else np.inf


def flips_of(
    ranges: Mapping[str, Range], ratios: Mapping[str, FloatArray], together: RatioAtDeviates
) -> dict[str, float]:
    """Return the break-even values of inputs that reverse the ranking, by path.

    Only inputs that reverse the ranking at their low or high have a break-even value. It is the one
    nearest to the base case. An input that decides a count has it at the end of its range.

    Args:
        ranges: Range of each input by path.
        ratios: Ratio at the low, the value and the high of each input, of shape (3,), by path.
        together: Function of the deviates of inputs that move together, which gives the ratio.

    """
    continuous: list[tuple[str, float]] = []  # path, and deviate of the end that reverses
    flip_deviates: list[tuple[str, float]] = []  # path, and deviate of the break-even value
    for path, input_ratios in ratios.items():
        for end in (0, -1):
            if (input_ratios[end] > 1) != (input_ratios[CENTRE] > 1):
                end_deviate = float(three_point_deviates(ranges[path])[end])
                is_count = ranges[path].shape == STEPS
                (flip_deviates if is_count else continuous).append((path, end_deviate))
    if continuous:
        shape = len(continuous), BREAK_EVEN_POINTS
        deviates_by_path = {path: np.full(shape, ranges[path].home) for path, _ in continuous}
        for row, (path, end_deviate) in enumerate(continuous):
            deviates_by_path[path][row] = np.linspace(
                ranges[path].home, end_deviate, BREAK_EVEN_POINTS
            )
        # One evaluation has the points of all inputs.
        all_ratios = together(
            {path: deviates.ravel() for path, deviates in deviates_by_path.items()}
        ).reshape(shape)
        for row, (path, _) in enumerate(continuous):
            flip_deviate = _crossing_deviate(deviates_by_path[path][row], all_ratios[row])
            flip_deviates.append((path, flip_deviate))

    def distance_from_value(path: str, deviate: float) -> float:
        return abs(deviate - ranges[path].home)

    # Of two break-even values of an input the nearer one comes last, and so replaces the other.
    nearest_last = sorted(flip_deviates, key=lambda flip: -distance_from_value(*flip))
    return {path: float(ranges[path].quantile(np.array(deviate))) for path, deviate in nearest_last}


def _crossing_deviate(deviates: FloatArray, ratios: FloatArray) -> float:
    """Return the first deviate at which a ratio passes 1, by interpolation of its logarithm."""
    is_crossed = (ratios > 1) != (ratios[0] > 1)
    if not is_crossed.any():
        return float(deviates[-1])
    first = int(np.argmax(is_crossed))
    start, end = deviates[[first - 1, first]]
    ratios_around = ratios[[first - 1, first]]
    if not (np.isfinite(ratios_around) & (ratios_around > 0)).all():
        return float((start + end) / 2)
    log_at_start, log_at_end = np.log(ratios_around)
    return float(start + log_at_start / (log_at_start - log_at_end) * (end - start))


# ---------------------------------------------------------------- pairs
class Pair(NamedTuple):
    """Two inputs that reverse the ranking together."""

    paths: tuple[str, str]
    values: tuple[float, float]  # values of both inputs, in their units
    ratio: float  # ratio at these values


def pairs_that_flip(
    ranges: Mapping[str, Range],
    ratios: Mapping[str, FloatArray],
    together: RatioAtDeviates,
    plan_inputs: frozenset[str],
) -> list[Pair]:
    """Return the pairs that reverse the ranking, those with the greatest effect first.

    An input that decides a count is left out, since it changes the structure. So are pairs of
    inputs that share their draws, since they cannot move apart.

    Args:
        ranges: Range of each input by path.
        ratios: Ratio at P5, value and P95 of each input alone, of shape (3,), by path.
        together: Function of the deviates of inputs that move together, which gives the ratio.
        plan_inputs: Inputs that the choice of plans depends on.

    """
    centre = next(iter(ratios.values()))[CENTRE]
    if not np.isfinite(centre) or centre in (0, 1):
        return []
    sign = 1.0 if centre > 1 else -1.0
    gains, gain_deviates = _gains_of_inputs(ranges, ratios, centre, sign)
    paths_by_gain = sorted(gains, key=lambda path: (-gains[path], path))
    sorted_gains = np.array([gains[path] for path in paths_by_gain])
    needed_gain = sign * float(np.log(centre))
    pairs = _pairs_to_evaluate(ranges, paths_by_gain, sorted_gains, needed_gain)
    if not pairs:
        return []
    # The cache holds plans by the points at which they are chosen. The points of the plan inputs
    # come first, so that they are the same whichever pairs follow under another price.
    plan_paths = sorted(gain_deviates.keys() & plan_inputs)
    plan_points = [(), *((path,) for path in plan_paths), *combinations(plan_paths, 2)]
    points = [*plan_points, *pairs]
    moved_deviates = {
        path: np.full(len(points), ranges[path].home)
        for path in dict.fromkeys(path for point in points for path in point)
    }
    for index, point in enumerate(points):
        for path in point:
            moved_deviates[path][index] = gain_deviates[path]

    def moved_value(path: str) -> float:
        return float(ranges[path].quantile(np.array(gain_deviates[path])))

    pair_ratios = together(moved_deviates)[len(plan_points) :]
    flipping_pairs = []
    for (first_path, second_path), ratio in zip(pairs, pair_ratios, strict=True):
        if np.isfinite(ratio) and (ratio > 1) != (centre > 1):
            moved_values = moved_value(first_path), moved_value(second_path)
            flipping_pairs.append(Pair((first_path, second_path), moved_values, float(ratio)))
    return sorted(flipping_pairs, key=lambda pair: (sign * pair.ratio, pair.paths))


def _gains_of_inputs(
    ranges: Mapping[str, Range], ratios: Mapping[str, FloatArray], centre: float, sign: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the gains of inputs towards a reversal, and the deviate of each input's largest gain.

    A gain is how far an input moves the logarithm of the ratio towards zero. Inputs that reverse
    the ranking alone have no gain. `sign` is that of the logarithm of the ratio at the centre.
    """
    gains, gain_deviates = {}, {}
    for path, input_ratios in ratios.items():
        is_positive = np.isfinite(input_ratios) & (input_ratios > 0)
        gain = np.where(
            is_positive,
            sign * np.log(centre / np.where(is_positive, input_ratios, centre)),
            -np.inf,
        )
        if ranges[path].steps or gain.max() <= LEAST_GAIN:
            continue
        gain_deviates[path] = float(three_point_deviates(ranges[path])[gain.argmax()])
        reverses_alone = ((input_ratios[[0, -1]] > 1) != (centre > 1)).any()
        if not reverses_alone:
            gains[path] = float(gain.max())
    return gains, gain_deviates


def _pairs_to_evaluate(
    ranges: Mapping[str, Range], paths: list[str], gains: FloatArray, needed_gain: float
) -> list[tuple[str, str]]:
    """Return the pairs whose gains are near the needed gain, those with the largest gain first."""
    first_indices, second_indices = np.triu_indices(len(paths), 1)
    pair_gains = gains[first_indices] + gains[second_indices]
    order = np.argsort(-pair_gains, kind="stable")
    order = order[pair_gains[order] >= PAIR_EFFECT_SHARE * needed_gain]
    pairs = []
    for pair_index in order:
        first_path, second_path = (
            paths[first_indices[pair_index]],
            paths[second_indices[pair_index]],
        )
        if ranges[first_path].leader != ranges[second_path].leader:
            pairs.append((first_path, second_path))
    return pairs[:MOST_PAIRS]
