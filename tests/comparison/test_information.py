"""Value of knowing an input before choosing, against closed forms of normal deviates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tco.comparison.value_of_information import gain, noisy_deviates, standardised_measurement_error
from tco.core.provenance import P95
from tco.scenario.beliefs import Range, beliefs_of
from tco.scenario.distributions import NORMAL as SUMS
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import result

DRAWS = 20_000
NORMAL = np.random.default_rng(7).normal(size=(3, DRAWS))


def test_knowing_the_better_of_two_gains_the_mean_of_the_better():
    """With x normal, s_1 = a x and s_2 = 0, the gain is E[max(a x, 0)] = a / sqrt(2 pi).

    Knowing another drawn input is worth nothing.
    """
    shares = np.array([0.2 * NORMAL[0], np.zeros(DRAWS)])
    assert gain(shares, [NORMAL[0]]) == pytest.approx(0.2 / math.sqrt(2 * math.pi), rel=0.03)
    assert gain(shares, [NORMAL[1]]) == pytest.approx(0, abs=0.003)


@pytest.mark.parametrize("error", [0.5, 1.0, 3.0])
def test_a_measurement_with_an_error_is_worth_less(error):
    """x seen with an error e has E[x | seen] as wide as 1 / sqrt(1 + e^2)."""
    shares = np.array([0.2 * NORMAL[0], np.zeros(DRAWS)])
    expected = 0.2 / math.sqrt(2 * math.pi * (1 + error**2))
    assert gain(shares, noisy_deviates([NORMAL[0]], [error])) == pytest.approx(expected, abs=0.004)


def test_two_causes_are_worth_what_their_sum_is():
    shares = np.array([0.1 * (NORMAL[0] + NORMAL[1]), np.zeros(DRAWS), -0.2 + 0.1 * NORMAL[2]])
    both, single_gain = gain(shares, list(NORMAL[:2])), gain(shares, [NORMAL[0]])
    assert both == pytest.approx(0.1 * math.sqrt(2) / math.sqrt(2 * math.pi), rel=0.05)
    assert single_gain == pytest.approx(0.1 / math.sqrt(2 * math.pi), rel=0.05)


def test_few_draws_gain_nothing_by_chance():
    shares = 0.8 + 0.1 * NORMAL[:2, :512]
    assert gain(shares, [*NORMAL[2:, :512], *np.random.default_rng(9).normal(size=(6, 512))]) < 0.01


def test_error_of_a_measurement_is_in_widths_of_the_belief():
    """Serving runs of a chip left out miss by a tenth at the median, about one width of the belief.

    The width is of what a run has by itself.
    """
    ranges = beliefs_of(result("trn3-nl32x2"))
    belief = ranges["performance.run-trn3-nl32x2.deployment_efficiency"]
    width = math.log(belief.high / belief.low) / (2 * P95)
    missed = next(
        float(row.split(",")[3])
        for row in (CATALOGUE.folders[0] / "accuracy/kinds.csv").read_text().splitlines()
        if row.startswith("inference,accelerator")
    )
    assert standardised_measurement_error(CATALOGUE, "inference", belief) == pytest.approx(
        math.log1p(missed) / 0.6745 / width
    )


def test_a_belief_of_a_share_is_as_wide_as_what_it_adds_to_one():
    """From a tenth less to three tenths more is as wide as log(1.3 / 0.9)."""
    share = Range("a.b", -0.1, 0.0, 0.3, "", -1.0, 1.0, False, None, "a.b", SUMS)
    factor = share._replace(low=0.9, value=1.0, high=1.3, belief="lognormal")
    errors = [
        standardised_measurement_error(CATALOGUE, "inference", belief) for belief in (share, factor)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-12)
    nothing = factor._replace(low=0.0)
    assert standardised_measurement_error(CATALOGUE, "inference", nothing) == 0
