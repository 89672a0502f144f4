"""The values of an input, how cases are numbered, and draws found from their number alone."""

from __future__ import annotations

import os
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, qmc

from tco import DataError, sweep
from tco.sweeps import cases
from tco.sweeps.job import CaseLayout
from tco.sweeps.study import Draw
from tests.catalogue import CATALOGUE
from tests.study_helpers import Dice, Range, job

PRICE = "site.electricity_price"


@pytest.fixture
def axis(tmp_path):
    """The values of an axis as a sweep goes through them, and their unit."""

    def values(stated_values, path=PRICE):
        axis_sweep = sweep(
            {
                "scenarios": ["gb200-nvl72"],
                "report": ["energy_usd_per_chip_hour"],
                "grid": {path: stated_values},
            },
            tmp_path / f"{len(os.listdir(tmp_path))}",
        )
        return axis_sweep.to_frame()[path].to_numpy(), dict(axis_sweep.job.columns)[path]

    return values


def test_steps_are_those_of_numpy(axis):
    ends = {"from": "0.03 USD/kWh", "to": "0.2 USD/kWh", "steps": 37}
    (even, unit), (log, _) = axis(ends), axis(ends | {"scale": "log"})
    assert unit == "USD/kWh"
    np.testing.assert_allclose(even, np.linspace(0.03, 0.2, 37), rtol=1e-14)
    np.testing.assert_allclose(log, np.geomspace(0.03, 0.2, 37), rtol=1e-13)
    assert even[[0, -1]].tolist() == [0.03, 0.2]


def test_values_of_several_units_are_in_the_inputs_own(axis):
    mixed, mixed_unit = axis(["50 USD/MWh", "0.1 USD/kWh"])
    uniform_prices, unit = axis(["50 USD/MWh", "80 USD/MWh"])
    assert mixed[1] == pytest.approx(2 * mixed[0], rel=1e-12)
    assert mixed_unit not in ("USD/MWh", "USD/kWh")
    assert (uniform_prices.tolist(), unit) == ([50, 80], "USD/MWh")


def test_money_is_read_as_people_write_it(axis):
    prices, unit = axis(["9k USD", "9,500 USD"], "parts.gb200-gpu.price")
    assert (prices.tolist(), unit) == ([9000, 9500], "USD")


def test_per_cent_are_a_unit(axis):
    rates, unit = axis(["8%", "12 %"], "terms.rate")
    assert (rates.tolist(), unit) == ([8, 12], "%")


@pytest.mark.parametrize(
    ("stated_values", "message"),
    [
        ({"from": "0.2 USD/kWh", "to": "0.03 USD/kWh", "steps": 4}, "reversed"),
        ({"from": "0.2 USD/kWh", "to": "0.2 USD/kWh", "steps": 4}, "the same"),
        ({"from": "0 USD/kWh", "to": "0.2 USD/kWh", "steps": 4, "scale": "log"}, "above zero"),
        ({"from": "0.1 USD/kWh", "to": "0.2 USD/kWh", "steps": 1}, "2 or more"),
        ({"from": "0.1 USD/kWh", "to": "0.2 USD/kWh", "steps": 2.5}, "whole number"),
        ({"from": "0.1 USD/kWh", "to": "0.2 USD/kWh"}, "steps is missing"),
        ({"from": "0.1 USD/kWh", "to": "0.2 USD/kWh", "step": 3}, "did you mean 'steps'"),
        (
            {"from": "0.1 USD/kWh", "to": "0.2 USD/kWh", "steps": 3, "scale": "logs"},
            "did you mean 'log'",
        ),
        (["0.1 USD/kWh", "0.1 USD/kWh"], "twice"),
        ([], "one value or more"),
        (["0.1 USD"], "expected 'USD/Wh'"),
        ([0.1], "expected 'USD/Wh'"),
        (["cheap USD/kWh"], "does not begin with a number"),
        (["nan USD/kWh"], "not a finite"),
        ([True], "number"),
    ],
)
def test_bad_values_say_what_was_expected(axis, stated_values, message):
    with pytest.raises(DataError, match=message) as error:
        axis(stated_values)
    assert str(error.value).startswith(f"study: [grid] {PRICE}")


@given(
    st.lists(st.integers(1, 4), max_size=3),
    st.lists(st.integers(1, 9), max_size=2),
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(1, 50),
)
@settings(max_examples=60)
def test_every_case_lies_in_one_partition(outer, inner, draws, scenarios, most):
    before = job.ROWS_PER_PARTITION
    job.ROWS_PER_PARTITION = most
    try:
        layout = CaseLayout(scenarios, tuple(outer), tuple(inner), draws, 4)
        met = [
            (case_slice.scenario, *case_slice.value_indices, case)
            for number in range(layout.partitions)
            for case_slice in layout.slices(number)
            for case in range(case_slice.start, case_slice.stop)
        ]
        assert (
            max((layout.cases_in(number) for number in range(layout.partitions)), default=0) <= most
        )
    finally:
        job.ROWS_PER_PARTITION = before
    assert met == list(
        product(range(scenarios), *map(range, outer), range(layout.cases_per_setting))
    )
    axis_positions, drawn = layout.coordinates(np.arange(layout.cases_per_setting))
    assert list(zip(*axis_positions, drawn, strict=True)) == list(
        product(*map(range, inner), range(draws))
    )


@given(st.integers(1, 5000), st.integers(0, 2**63))
@settings(max_examples=60)
def test_a_permutation_meets_every_place_once(count, key):
    permutation = cases.permuted(
        np.arange(count, dtype=np.uint64), count, np.array([key], dtype=np.uint64)
    )
    assert sorted(permutation.tolist()) == list(range(count))


RANGE = Range("parts.x.price", 1.0, 2.0, 3.0, "USD", 0.0, 10.0, False, None, "parts.x.price")


@pytest.mark.parametrize("method", ["random", "latin-hypercube", "sobol"])
def test_draws_rest_on_their_number_alone(method):
    draw = Draw(1000, 7, method, None)
    names = ("a", "parts.x.price", "z")
    all_deviates = cases.dice_of(CATALOGUE, draw, names, 0, 1000).correlated_deviates(RANGE)
    parts = [
        cases.dice_of(CATALOGUE, draw, names, *ends).correlated_deviates(RANGE)
        for ends in ((640, 1000), (0, 333), (333, 640))
    ]
    assert np.concatenate([parts[1], parts[2], parts[0]]).tolist() == all_deviates.tolist()
    assert (
        cases.dice_of(CATALOGUE, draw._replace(seed=8), names, 0, 1000)
        .correlated_deviates(RANGE)
        .tolist()
        != all_deviates.tolist()
    )


def test_a_hypercube_has_one_draw_in_each_stratum():
    strata = cases.Strata(CATALOGUE, 3, 0, 977, 977)
    draw_quantiles = {name: norm.cdf(strata.throw(name)) for name in ("a", "b")}
    for quantiles in draw_quantiles.values():
        assert sorted(np.floor(quantiles * 977).astype(int).tolist()) == list(range(977))
    assert abs(np.corrcoef(*draw_quantiles.values())[0, 1]) < 0.1


def test_a_sequence_is_that_of_scipy():
    sobol_sequence = cases.Sequence(CATALOGUE, 5, 64, 256, ("a", "b", "c"))
    seed = np.random.default_rng(5)
    points = qmc.Sobol(3, scramble=True, bits=cases.SOBOL_BITS, seed=seed).random(256)
    np.testing.assert_allclose(norm.cdf(sobol_sequence.throw("b")), points[64:, 1], rtol=1e-9)


def test_random_draws_are_those_of_uncertainty():
    assert (
        cases.dice_of(CATALOGUE, Draw(9, 4, "random", None), (), 2, 9).throw("x").tolist()
        == Dice(CATALOGUE, 4, 2, 9).throw("x").tolist()
    )
