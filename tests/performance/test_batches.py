"""The search for the largest batch in time: it finds what a curve's own inverse gives, in few looks, and begins where it is told to."""

from __future__ import annotations

import numpy as np
import pytest

from tco.performance.serving.batches import SOON, Bracket, largest_within
from tco.performance.serving.plans import DecodePlan
from tco.performance.serving.search import choose_best

LOW, HIGH = 1.0, 1000.0
WANTED = np.array([3.0, 20.0, 31.0])


class Curve:
    """A time that rises with the number, and how often it was looked at."""

    def __init__(self, time_of):
        self.time_of, self.looked = time_of, []

    def __call__(self, number, left):
        self.looked.append(np.array(number, dtype=float))
        return self.time_of(self.looked[-1])


@pytest.mark.parametrize(
    ("time_of", "number_of", "looks"),
    [
        (lambda x: 2 + 0.03 * x, lambda t: (t - 2) / 0.03, 4),  # a straight line
        (np.sqrt, lambda t: t**2, 4),  # the number is a parabola of the time
        (lambda x: x + 5 * np.sin(x / 50), None, 6),
    ],
    ids=["line", "parabola", "waves"],
)
def test_it_finds_the_inverse_of_a_curve_in_few_looks(time_of, number_of, looks):
    curve = Curve(time_of)
    found = largest_within(curve, WANTED, np.full(3, LOW), np.full(3, HIGH))
    assert np.all(time_of(found) <= WANTED * (1 + 1e-12))
    assert np.all(time_of(found) >= WANTED * (1 - SOON - 1e-12))
    if number_of is not None:
        assert time_of(number_of(WANTED)) == pytest.approx(WANTED, rel=1e-12)
        assert np.all(found <= number_of(WANTED) * (1 + 1e-12))
    assert len(curve.looked) <= looks


def test_steps_are_halved_and_the_side_in_time_is_taken():
    curve = Curve(lambda x: np.ceil(x / 64))
    found = largest_within(curve, np.array([5.5]), np.array([LOW]), np.array([HIGH]))
    assert 320 * (1 - 1e-2) <= found[0] <= 320
    assert len(curve.looked) <= 13


def test_what_never_comes_in_time_is_the_lowest_and_what_always_does_the_highest():
    wanted = np.array([0.5, 40.0, 20.0])
    found = largest_within(lambda x, _: 2 + 0.03 * np.asarray(x), wanted, np.full(3, LOW), np.full(3, HIGH))
    assert found[0] == LOW
    assert found[1] == HIGH
    assert found[2] == pytest.approx(600, rel=2 * SOON + 1e-3)


def test_the_number_that_is_expected_is_tried_first():
    curve = Curve(np.sqrt)
    known = Bracket(np.sqrt(np.full(3, LOW)), np.sqrt(np.full(3, HIGH)), WANTED**2)
    found = largest_within(curve, WANTED, np.full(3, LOW), np.full(3, HIGH), known)
    assert curve.looked[0] == pytest.approx(WANTED**2, rel=1e-12)
    assert np.sqrt(found) == pytest.approx(WANTED, rel=3 * SOON)
    assert len(curve.looked) <= 4


def test_the_runner_up_lies_behind_by_its_own_score():
    """Of 12, 10 and 6 that are feasible the best leads by a fifth, whatever else does not fit or is too slow."""
    score = np.array([[6.0, 50.0], [12.0, 10.0], [40.0, 0.1]])
    fits = np.array([[True, False], [True, True], [True, True]])
    meets = np.array([[True, True], [True, True], [False, True]])
    axes = DecodePlan(*(np.arange(3.0)[:, None] for _ in range(5)), np.array([[7.0, 9.0]]))
    found = choose_best(score, fits, meets, axes)
    assert (found.plan.chips, found.plan.sequences, found.place) == (1.0, 7.0, (1, 0))
    assert (found.plans, found.feasible, found.margin) == (6, 4, pytest.approx(0.2))
    assert found.best.tolist() == [6.0, 12.0, 0.1]
    alone = choose_best(score, fits & (score == 12), meets, axes)
    assert (alone.feasible, alone.margin) == (1, None)
    assert choose_best(score, fits & False, meets, axes).plan is None
