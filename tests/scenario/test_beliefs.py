"""Distributions of inputs agree with scipy: P5, P95, the value and all between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from tests.catalogue import input_attributes
from tests.scenario_helpers import HEADLINE
from tests.study_helpers import (
    LOGNORMAL,
    NORMAL,
    P95,
    PERT,
    TRIANGULAR,
    Range,
    belief_of,
    beliefs_of,
    evaluate_each,
)

BELIEFS = ("lognormal", "normal", "pert", "triangular", "steps")
STEPS = "steps"

PLACES = np.linspace(-4.5, 4.5, 1001)
ENDS = np.array([-P95, P95])
SCIPY = {PERT: lambda mode: stats.beta(1 + 4 * mode, 5 - 4 * mode), TRIANGULAR: stats.triang}
# of the way from low to high at which the value lies
SHARES = (
    0,
    0.003,
    0.01,
    0.05,
    0.1,
    0.28,
    0.37,
    0.5,
    0.7,
    0.9,
    0.97,
    1,
)


def range_like(kind, low, value, high):
    return Range("any", low, value, high, "", -np.inf, np.inf, kind == STEPS, None, "any", kind)


def values_at(kind, low, value, high, deviates):
    return range_like(kind, low, value, high).quantile(deviates)


def by_scipy(kind, share):
    """Return the distribution with its mode at a share of the way from P5 to P95, and both ends."""
    ends = lambda mode: SCIPY[kind](mode).ppf([0.05, 0.95])  # noqa: E731
    mode = optimize.brentq(
        lambda mode: (mode - ends(mode)[0]) / np.diff(ends(mode))[0] - share, 0, 1, xtol=1e-13
    )
    return SCIPY[kind](mode), *ends(mode)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", [PERT, TRIANGULAR])
def test_quantiles_are_those_of_scipy_with_the_mode_at_the_value(kind, share):
    """Quantiles agree to a two-thousandth of the range, except in a draw of 100,000.

    The distribution may be lopsided or have its value at one end.
    """
    scipy_distribution, low, high = by_scipy(kind, share)
    value = 2 + 3 * share
    assert values_at(kind, 2, value, 5, PLACES) == pytest.approx(
        2 + 3 * (scipy_distribution.ppf(stats.norm.cdf(PLACES)) - low) / (high - low), abs=1.5e-3
    )


@given(
    st.sampled_from(BELIEFS),
    st.just(0.0) | st.floats(1e-9, 10),
    st.floats(0, 1),
    st.floats(0.01, 5),
)
def test_low_and_high_are_the_5th_and_95th_percentile_and_the_value_has_its_place(
    kind, low, share, width
):
    value, high = low + share * width, low + width
    home = range_like(kind, low, value, high).home
    belief_quantiles = values_at(kind, low, value, high, np.array([-P95, home, P95]))
    assert belief_quantiles == pytest.approx([low, value, high], rel=1e-9, abs=1e-9)
    assert np.all(np.diff(values_at(kind, low, value, high, PLACES)) >= -1e-12)


@pytest.mark.parametrize("kind", [LOGNORMAL, NORMAL])
@pytest.mark.parametrize("share", SHARES)
def test_what_is_measured_has_its_value_as_the_median(kind, share):
    value = 2 + 3 * share
    assert values_at(kind, 2, value, 5, np.zeros(1)) == value
    assert range_like(kind, 2, value, 5).home == 0


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("kind", [PERT, TRIANGULAR])
def test_draws_crowd_about_the_value(kind, share):
    """Of equal bins the fullest holds the value, or lies beside it: by count, without the table."""
    drawn_values = values_at(
        kind, 2, 2 + 3 * share, 5, np.random.default_rng(1).standard_normal(400_000)
    )
    counts, edges = np.histogram(drawn_values, bins=25)
    fullest = counts.argmax()
    assert edges[max(fullest - 1, 0)] <= 2 + 3 * share <= edges[min(fullest + 2, 25)]


def test_a_factor_that_may_be_nought_is_triangular():
    assert np.array_equal(
        values_at(LOGNORMAL, 0, 1, 3, PLACES), values_at(TRIANGULAR, 0, 1, 3, PLACES)
    )


def test_every_attribute_names_a_distribution_that_its_bounds_allow():
    """Money is log-normal, a share between two bounds is not, and a flag is drawn in steps."""
    for (group, name), input_attribute in input_attributes().items():
        assert input_attribute.belief in BELIEFS, (group, name)
        assert (input_attribute.belief == LOGNORMAL) >= ("USD" in input_attribute.unit), (
            group,
            name,
        )
        assert (input_attribute.belief == NORMAL) == (input_attribute.minimum < 0), (group, name)
        if input_attribute.belief == STEPS:
            assert (input_attribute.minimum, input_attribute.maximum) == (0, 1), (group, name)
        if input_attribute.unit == "ratio" and input_attribute.maximum <= 1:
            assert input_attribute.belief in (PERT, STEPS), (group, name)


@pytest.mark.parametrize(
    "evaluation", evaluate_each(HEADLINE, None, {}), ids=lambda evaluation: evaluation.name
)
def test_ranges_of_the_headline_have_their_percentiles_and_their_value(evaluation):
    """Every drawn input has the P5, P95 and value of its row, within its attribute's bounds."""
    ranges = beliefs_of(evaluation.result)
    # what nothing explains of a tuned run, and of training
    assert {input_range.shape for input_range in ranges.values()} >= {*BELIEFS} - {NORMAL}
    for path, input_range in ranges.items():
        assert input_range.quantile(np.array([-P95, input_range.home, P95])) == pytest.approx(
            [input_range.low, input_range.value, input_range.high], rel=1e-9
        ), path
        assert input_range.shape == (
            STEPS if input_range.steps else belief_of(evaluation.result.inputs[path]).belief
        )
