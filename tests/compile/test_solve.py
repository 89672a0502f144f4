"""The search for the largest number within a time agrees with a curve's inverse in few evaluations.

It starts at the number that it is given.
"""

from __future__ import annotations

import numpy as np
import pytest

from tco.compile.inverse import SOON, largest_within

LOW, HIGH = np.ones(3), np.full(3, 1000.0)
WANTED = np.array([3.0, 20.0, 31.0])


class Curve:
    """A time that rises with the number, and how often it was looked at."""

    def __init__(self, time_of):
        self.time_of, self.looked = time_of, []

    def __call__(self, number, _):
        self.looked.append(np.array(number))
        return self.time_of(self.looked[-1])


@pytest.mark.parametrize(
    ("time_of", "number_of", "looks"),
    [
        (lambda x: 2 + 0.03 * x, lambda t: (t - 2) / 0.03, 5),  # a straight line
        (np.sqrt, lambda t: t**2, 6),  # the number is a parabola of the time
        (lambda x: x + 5 * np.sin(x / 50), None, 7),
    ],
    ids=["line", "parabola", "waves"],
)
def test_search_finds_the_inverse_of_a_curve_in_few_evaluations(time_of, number_of, looks):
    curve = Curve(time_of)
    largest_numbers, time = largest_within(
        curve, WANTED, LOW, HIGH, np.full(3, 16.0), np.full(3, 0.5)
    )
    assert time == pytest.approx(time_of(largest_numbers), rel=1e-15)
    assert np.all(time <= WANTED)
    assert np.all(time >= WANTED * (1 - SOON))
    if number_of is not None:
        assert largest_numbers == pytest.approx(number_of(WANTED), rel=4 * SOON)
    assert len(curve.looked) <= looks


def test_expected_number_is_tried_first_and_kept_if_it_is_right():
    curve = Curve(np.sqrt)
    largest_numbers, _ = largest_within(
        curve, WANTED, LOW, HIGH, (WANTED * (1 - SOON / 4)) ** 2, np.full(3, 0.5)
    )
    assert len(curve.looked) == 1
    assert curve.looked[0] == pytest.approx(largest_numbers, rel=1e-15)


def test_largest_number_within_a_time_is_that_of_known_curves():
    """A line, a curve and a stair, against what is known of them."""
    time_limits = np.array([2.0, 5.0, 0.5, 100.0])
    low, high = np.ones(4), np.full(4, 64.0)
    middle = np.full(4, 9.0)

    def largest(time):
        largest_numbers, its_time = largest_within(
            lambda x, _: time(x), time_limits, low, high, middle, np.ones(4)
        )
        assert its_time == pytest.approx(time(largest_numbers), rel=1e-12)
        assert np.all((its_time <= time_limits) | (largest_numbers == low))
        return largest_numbers

    assert largest(lambda x: 1 + x / 8) == pytest.approx([8, 32, 1, 64], rel=1e-5)
    assert largest(lambda x: np.sqrt(1 + (x / 8) ** 2)) == pytest.approx(
        [8 * np.sqrt(3), 8 * np.sqrt(24), 1, 64], rel=1e-5
    )
    assert largest(lambda x: 0.1 + np.ceil(x / 16)) == pytest.approx([16, 64, 1, 64], rel=2e-5)


def test_step_of_a_curve_is_found_by_halving():
    """A step needs no more evaluations than halvings and those before the search suspects it.

    From 1 to 1,000 within 1e-5 a step lies in one of 2^26.6 parts.
    """
    curve = Curve(lambda x: 1 + np.ceil(x / 7) + x / 1e3)
    largest_numbers, time = largest_within(
        curve, np.array([9.5, 3.2, 40.9]), LOW, HIGH, np.full(3, 16.0), np.full(3, 0.5)
    )
    assert largest_numbers == pytest.approx([56, 14, 273], rel=1e-5)
    assert np.all((time <= [9.5, 3.2, 40.9]) & (largest_numbers <= [56, 14, 273]))
    assert len(curve.looked) <= 27 + 6
