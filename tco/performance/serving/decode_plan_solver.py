"""Best decode plan of each draw, with the largest batch that meets the speed per user.

A plan is better than another if it is still in time at the batch that gives it the other's rate.
So a likely plan is solved first, every plan is tried once at the batch it would need to be better,
and the few that are in time there are solved too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.compile.inverse import largest_within
from tco.core.types import AnyArray
from tco.performance.serving.draw_results import BatchResponse, DrawBlock, allowed_token_time
from tco.performance.serving.plans import SEQUENCES

# share by which a plan's rate may lie below the best at the batch that is just in time: a smaller
# batch, before a step of tiles, may make more
STEP_MARGIN = 0.015
SMALLER_BATCHES = np.array([[0.996], [0.986], [0.977], [0.941]])  # shares of the batch in time
HALVINGS = 8  # of the interval between a smaller batch and the step above it


class Hints(NamedTuple):
    """Batch, growth exponent and rate of decode plans in the base case.

    Arrays have shape (speeds, plans).
    """

    batch: AnyArray  # largest in time, sequences of an attention group
    power: AnyArray  # exponent by which the time of a token grows with the batch
    rate: AnyArray  # tokens/s per chip


class DecodeChoice(NamedTuple):
    """Decode plan of each draw at a speed, of shape (draws,)."""

    plan_rows: AnyArray
    batch: AnyArray  # sequences of an attention group
    in_time: AnyArray  # whether the plan meets the speed


class DecodePlanSolver:
    """Solves for the best decode plan of each case. A case is a draw at a speed.

    The cases of all speeds are solved together. Arrays have shape (cases,), or (plans, cases).

    Args:
        block: Draws of the inputs.
        chips: Chips that share the attention of a sequence, by plan.
        hints: Batches, exponents and rates in the base case.
        speeds: Speeds in tokens/s per user; None for the workload's own in each draw.
        draws: Indices of the draws that are solved, at each speed; at the first, all draws.

    """

    def __init__(
        self,
        block: DrawBlock,
        chips: AnyArray,
        hints: Hints,
        speeds: Sequence[float | None],
        draws: Sequence[AnyArray],
    ) -> None:
        self.block, self.chips, self.hints, self.draws = block, chips, hints, draws
        sizes = [len(speed_draws) for speed_draws in draws]
        self.borders = np.cumsum(sizes)[:-1]  # between the cases of one speed and the next
        self.draw = np.concatenate(draws)  # of each case
        self.speed = np.repeat(np.arange(len(speeds)), sizes)  # row of the hints, of each case
        self.all_cases = np.arange(len(self.draw))
        self.allowed = np.concatenate(
            [
                allowed_token_time(block, speed)[speed_draws]
                for speed, speed_draws in zip(speeds, draws, strict=True)
            ]
        )
        sequence_room = room(block, len(chips))
        fits = sequence_room >= 1
        largest = np.minimum(np.maximum(sequence_room, 1.0), float(SEQUENCES[-1]))
        if len(speeds) > 1:
            fits, largest = fits[:, self.draw], largest[:, self.draw]
        self.fits, self.largest = fits, largest  # whether a sequence fits; the largest batch
        self.plan_rows = np.zeros(len(self.draw), dtype=int)
        self.batch = np.ones(len(self.draw))
        self.rate = np.zeros(len(self.draw))  # tokens/s per chip; zero where no plan is in time

    def solve(self, likely_rows: AnyArray, spare: float = 0.0) -> list[DecodeChoice]:
        """Return the choice at each speed.

        Where no plan meets the speed, the quickest plan that fits decodes a single sequence.

        Args:
            likely_rows: Plans of which one is solved first.
            spare: Share by which a plan may miss the best rate and is solved nevertheless.

        """
        if len(self.chips) == 1:
            first_batch = np.minimum(self.hints.batch[self.speed, self.plan_rows], self.largest[0])
            self._solve_plans(self.plan_rows, self.all_cases, first_batch)
        else:
            first_rows = self._solve_likely_plans(likely_rows[likely_rows < len(self.chips)])
            self._solve_rivals(first_rows, max(spare, STEP_MARGIN))
            self._take_quickest_plans()
        columns = map(self._by_speed, (self.plan_rows, self.batch, self.rate > 0))
        return [DecodeChoice(*choice) for choice in zip(*columns, strict=True)]

    def _by_speed(self, case_values: AnyArray, axis: int = 0) -> list[AnyArray]:
        return np.split(case_values, self.borders, axis=axis)

    def _solve_likely_plans(self, likely_rows: AnyArray) -> AnyArray:
        """Solve in each case the likely plan that is expected to be best, and return it."""
        power = self.hints.power[:, likely_rows].T[:, self.speed]
        hint = self.hints.batch[:, likely_rows].T[:, self.speed]
        largest = self.largest[likely_rows]
        tried = np.minimum(hint, largest)
        time = self._token_times(likely_rows[:, None], tried)
        expected = _expected_batch(power, tried, time, self.allowed, largest)
        rates = np.where(self.fits[likely_rows], expected / self.chips[likely_rows, None], 0.0)
        best = rates.argmax(axis=0)
        first_rows: AnyArray = likely_rows[best]
        self._solve_plans(first_rows, self.all_cases, expected[best, self.all_cases])
        return first_rows

    def _solve_rivals(self, first_rows: AnyArray, spare: float) -> None:
        """Solve the plans that are in time with the batch that makes them as good."""
        least_rate = self.rate * (1 - spare)
        needed = np.clip(least_rate * self.chips[:, None] * self.allowed, 1.0, self.largest)
        time = self._token_times(slice(None), needed)
        is_good_enough = needed / self.chips[:, None] / time > least_rate
        is_rival = self.fits & (time <= self.allowed) & ((needed < self.largest) | is_good_enough)
        is_rival[first_rows, self.all_cases] = False
        if not is_rival.any():
            return
        plan_rows, cases = np.nonzero(is_rival)
        expected = _expected_batch(
            self.hints.power[self.speed[cases], plan_rows],
            needed[is_rival],
            time[is_rival],
            self.allowed[cases],
            self.largest[is_rival],
        )
        self._solve_plans(plan_rows, cases, expected)

    def _take_quickest_plans(self) -> None:
        """Give the quickest plan that fits, with one sequence, to cases that no plan serves."""
        missed = np.flatnonzero(self.rate == 0)
        if not len(missed):
            return
        # a single sequence takes the same time at every speed
        draws, draw_indices = np.unique(self.draw[missed], return_inverse=True)
        plans = np.arange(len(self.chips))
        plan_rows, pair_draws = (
            pairs.ravel() for pairs in np.broadcast_arrays(plans[:, None], draws[None])
        )
        token = BatchResponse(self.block, "token", plan_rows, pair_draws)
        time = token(np.ones(len(plan_rows))).reshape(len(plans), -1)
        fits = self.fits[:, draws]  # the cases of the first speed, which are all draws
        quickest = np.where(fits, time, np.inf).argmin(axis=0)
        self.plan_rows[missed] = quickest[draw_indices]

    def _token_times(self, plan_rows: Any, batches: AnyArray) -> AnyArray:
        """Return the time of a token, s, of some plans with a batch in every case."""
        token = BatchResponse(self.block, "token", plan_rows)
        times = [
            token(speed_batches, speed_draws)
            for speed_batches, speed_draws in zip(
                self._by_speed(batches, axis=1), self.draws, strict=True
            )
        ]
        return np.concatenate(times, axis=1)

    def _solve_plans(self, plan_rows: AnyArray, cases: AnyArray, first_batch: AnyArray) -> None:
        """Solve the largest batch in time of plans in cases, and keep those that are better.

        Args:
            plan_rows: Plan of each pair of a plan and a case.
            cases: Case of each pair.
            first_batch: Batch of each pair that is tried first.

        """
        is_all = cases is self.all_cases
        pair_draws = None if is_all and not len(self.borders) else self.draw[cases]
        token = BatchResponse(self.block, "token", plan_rows, pair_draws)
        allowed, chips = self.allowed[cases], self.chips[plan_rows]
        batch, time = largest_within(
            token,
            allowed,
            np.ones(len(cases)),
            self.largest[plan_rows, cases],
            first_batch,
            self.hints.power[self.speed[cases], plan_rows],
        )
        is_in_time = self.fits[plan_rows, cases] & (time <= allowed)
        rate = np.where(is_in_time, batch / chips / time, 0.0)
        near_best = np.flatnonzero(rate > self.rate[cases] * (1 - STEP_MARGIN))
        _back_off_from_tile_step(token, chips, batch, rate, near_best)
        better = np.flatnonzero(rate > self.rate[cases])
        if not is_all:
            # of several plans of a case the best comes last, and stays
            better = better[np.argsort(rate[better], kind="stable")]
        improved = cases[better]
        self.plan_rows[improved] = plan_rows[better]
        self.batch[improved] = batch[better]
        self.rate[improved] = rate[better]


def room(block: DrawBlock, plans: int) -> AnyArray:
    """Return the sequences that fit in memory beside the weights, of shape (plans, draws)."""
    memory_used = BatchResponse(block, "held", slice(None))
    no_sequence = np.zeros((plans, block.count))
    (memory,) = block[("memory",)]
    empty = memory_used(no_sequence)
    per_sequence = memory_used(no_sequence + 1) - empty
    sequence_room: AnyArray = np.maximum(memory - empty, 0) / per_sequence
    return sequence_room


def _expected_batch(
    power: AnyArray, tried: AnyArray, time: AnyArray, allowed: AnyArray, largest: AnyArray
) -> AnyArray:
    """Return the batch that is expected to be just in time, from the time of one that was tried."""
    expected: AnyArray = np.clip(tried * (1 + (allowed / time - 1) / power), 1.0, largest)
    return expected


def _back_off_from_tile_step(
    token: BatchResponse, chips: AnyArray, batch: AnyArray, rate: AnyArray, pairs: AnyArray
) -> None:
    """Put a smaller batch, before a step of tiles or waves, where it makes a higher rate.

    Args:
        token: Time of a token by batch, of pairs of a plan and a draw.
        chips: Chips of each pair.
        batch: Largest batch in time of each pair, which is replaced.
        rate: Rate of each pair, which is replaced.
        pairs: Pairs near the best rate, which are looked at.

    """
    above = batch[pairs]
    smaller = np.maximum(above * SMALLER_BATCHES, 1.0)
    smaller_rates = smaller / chips[pairs] / token(smaller, pairs) if len(pairs) else smaller
    for smaller_batch, smaller_rate in zip(smaller, smaller_rates, strict=True):
        is_more = smaller_rate > rate[pairs]
        batch[pairs[is_more]], rate[pairs[is_more]] = smaller_batch[is_more], smaller_rate[is_more]
    is_before_step = batch[pairs] < above
    pairs, above = pairs[is_before_step], above[is_before_step]
    # the rate rises up to the step and falls across it
    for _ in range(HALVINGS if len(pairs) else 0):
        middle = (batch[pairs] + above) / 2
        middle_rate = middle / chips[pairs] / token(middle, pairs)
        is_more = middle_rate > rate[pairs]
        batch[pairs] = np.where(is_more, middle, batch[pairs])
        rate[pairs] = np.where(is_more, middle_rate, rate[pairs])
        above = np.where(is_more, above, middle)
