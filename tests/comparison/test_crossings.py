"""Zeros of functions of one number, against another library's and by properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from tco.comparison.break_even import crossings

FUNCTIONS = {
    "cubic": lambda x: x**3 - 2,
    "exponential": lambda x: math.exp(3 * x) - 9,
    "steep": lambda x: math.atan(40 * (x - 0.7)),
}


@given(st.lists(st.integers(-2, 2), min_size=2, max_size=12))
def test_a_stepwise_function_crosses_between_neighbours_of_another_sign_and_where_it_is_zero(
    values,
):
    sign_changes = list(
        crossings(
            lambda position: float(values[int(position)]),
            [float(position) for position in range(len(values))],
            stepwise=True,
        )
    )
    zeros = [(index, index) for index, value in enumerate(values) if value == 0]
    changes = [
        (index, index + 1)
        for index in range(len(values) - 1)
        if values[index] * values[index + 1] < 0
    ]
    assert sign_changes == sorted(zeros + changes)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_zero_is_that_of_another_method_in_fewer_calls_than_halving(name):
    calls = []

    def counted(x):
        calls.append(x)
        return FUNCTIONS[name](x)

    (zero_crossing,) = crossings(counted, [0.0, 2.0])
    assert zero_crossing.before == pytest.approx(
        brentq(FUNCTIONS[name], 0, 2, xtol=1e-14), rel=1e-12
    )
    assert zero_crossing.beyond == pytest.approx(zero_crossing.before, rel=1e-15)
    assert len(calls) < 40


def test_every_zero_that_the_grid_parts_is_found_in_order():
    zero_crossings = list(crossings(math.sin, list(np.linspace(0.5, 10, 20))))
    assert [crossing.before for crossing in zero_crossings] == pytest.approx(
        [math.pi, 2 * math.pi, 3 * math.pi], rel=1e-12
    )


@given(jump_position=st.floats(0.01, 0.99), low=st.floats(-1e6, -1e-6), high=st.floats(1e-6, 1e6))
def test_a_jump_over_zero_is_found_with_both_its_sides(jump_position, low, high):
    (zero_crossing,) = crossings(lambda x: low if x < jump_position else high, [0.0, 1.0])
    assert zero_crossing.before < jump_position <= zero_crossing.beyond
    assert zero_crossing.beyond - zero_crossing.before <= 1e-15


def test_a_zero_on_the_grid_is_found_once():
    assert [tuple(crossing) for crossing in crossings(lambda x: x - 1, [0.0, 1.0, 2.0])] == [
        (1.0, 1.0)
    ]


def test_function_without_values_has_no_zero():
    assert list(crossings(lambda x: None if 0.4 < x < 0.6 else x - 0.5, [0.0, 1.0])) == []
    assert list(crossings(lambda x: None if x > 1 else -1.0, [0.0, 1.0, 2.0])) == []
