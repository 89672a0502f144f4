"""Dies: counted on a wafer, and their yield against the distribution it comes from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom

from tco.hardware.silicon import chip_cost, die_cost, die_yield, gross_dies_per_wafer


def counted(side: float, diameter: float) -> float:
    """Whole squares on a disc, as a mean over a hundred placements of the grid."""
    steps = np.arange(-int(diameter / side) - 2, int(diameter / side) + 2) * side
    places = np.arange(10) / 10 * side
    left, low = np.meshgrid(places, places)
    x = np.abs(np.stack([left[..., None] + steps, left[..., None] + steps + side])).max(0)  # the farther edge of each square
    y = np.abs(np.stack([low[..., None] + steps, low[..., None] + steps + side])).max(0)
    return float((np.hypot(x[..., :, None], y[..., None, :]) <= diameter / 2).sum((-2, -1)).mean())


def test_the_count_itself():
    """A square as wide as the disc never fits; small ones fill it."""
    assert counted(2.0, 2.0) == 0
    assert counted(0.05, 2.0) == pytest.approx(math.pi * 400, rel=0.08)


@pytest.mark.parametrize("area", [25, 49, 100])
def test_dies_of_a_wafer_as_counted(area):
    assert gross_dies_per_wafer(area, 300) == pytest.approx(counted(math.sqrt(area), 300), rel=0.012)


@given(st.floats(10, 900), st.floats(0.0001, 0.01), st.floats(0.5, 20))
def test_yield_is_the_chance_of_no_defect(area, density, clustering):
    """Defects of a die follow a negative binomial law with mean D0 S."""
    none = nbinom.pmf(0, clustering, clustering / (clustering + density * area))
    assert die_yield(area, density, clustering, 0.0) == pytest.approx(none, rel=1e-9)


@given(st.floats(10, 900), st.floats(0.0001, 0.01))
def test_without_clustering_it_is_poisson(area, density):
    assert die_yield(area, density, 1e9, 0.0) == pytest.approx(math.exp(-density * area), rel=1e-5)


@given(st.floats(10, 900), st.floats(0.0001, 0.01), st.floats(0, 1))
def test_recovery_mends_a_share_of_the_bad(area, density, share):
    bare = die_yield(area, density, 3.0, 0.0)
    assert bare <= die_yield(area, density, 3.0, share) <= 1 + 1e-12
    assert die_yield(area, density, 3.0, 1.0) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("area", "wafer", "density", "recovered", "gross", "usable", "two"),
    [(600, 15_000, 0.09, 0.20, 91, 0.69, 500), (680, 21_000, 0.12, 0.25, 78, 0.61, 905), (540, 13_500, 0.08, 0.25, 102, 0.75, 350)],
    ids=["trainium2", "trainium3", "trainium2 low"],
)
def test_the_published_build(area, wafer, density, recovered, gross, usable, two):
    """The build's own table, rounded to two digits there: dies a wafer, usable share, cost of two dies (5 % of sorting on top)."""
    dies, share = gross_dies_per_wafer(area, 300), die_yield(area, density / 100, 3.0, recovered)
    assert dies == pytest.approx(gross, rel=0.01)
    assert share == pytest.approx(usable, abs=0.011)
    assert 2 * die_cost(wafer, dies, share) == pytest.approx(two, rel=0.06)


def test_margin_is_charged_on_everything():
    assert chip_cost(100, 2, 30, 20, 10, 40, 0.5) == 450
