"""Limits of a simulation, held against counts and queues whose answers are known."""

import numpy as np
import pytest

from tco import DataError
from tco.performance.service.samples import (
    STEADY,
    is_growing,
    promises_of_served,
    share_served,
    simulated_requests,
    within_context,
)
from tco.performance.service.simulation import simulate_requests
from tco.performance.service.traffic import Promise, load_traffic
from tests.catalogue import CATALOGUE
from tests.performance.service.test_simulation import BUDGET, STEP, engine, poisson, requests


@pytest.mark.parametrize(
    ("quantile", "count"), [(0.5, 3000), (0.99, 3000), (0.998, 6250), (0.999, 12_500)]
)
def test_ten_requests_lie_above_a_promised_quantile(quantile, count):
    assert simulated_requests([Promise("ttft", quantile, 1.0)]) == count
    assert round(count * STEADY) * (1 - quantile) >= 10 * (1 - 1e-9)


@pytest.mark.parametrize("quantile", [0.9991, 0.9995, 0.9999999999])
def test_a_quantile_that_few_requests_exceed_is_refused(quantile):
    with pytest.raises(DataError, match=r"is not measured: it needs .* expected p99\.9 or lower"):
        simulated_requests([Promise("ttft", quantile, 1.0)])


def test_rejected_requests_break_their_promise():
    """Where 2 % are rejected, p49 of all requests is the median of those that are served."""
    (judged,) = promises_of_served([Promise("ttft", 0.49, 1.0)], 0.98, "some are too long")
    assert judged.quantile == pytest.approx(0.5)
    with pytest.raises(DataError, match=r"p99 cannot be kept: .* below p98"):
        promises_of_served([Promise("ttft", 0.99, 1.0)], 0.98, "some are too long")


@pytest.mark.parametrize("name", ["chat", "long-documents"])
def test_the_share_served_is_that_of_the_lengths(name):
    traffic = load_traffic(CATALOGUE, name)
    drawn = traffic.requests(1, "random", 50_000, 9, 1.0)[1]
    context = float(np.quantile(drawn.prompt + drawn.answer, 0.97))
    assert share_served(traffic, context) == pytest.approx(0.97, abs=0.004)
    served = within_context(drawn, context)
    assert (served.prompt + served.answer).max() <= context
    assert np.isin(served.arrived, drawn.arrived).all()


@pytest.mark.parametrize(("load", "growing"), [(0.3, 0), (0.7, 0), (1.3, 20)])
def test_a_queue_grows_where_more_comes_than_is_served(load, growing):
    """Passes of one time: below a load of 1 a queue has a mean, above it has none."""
    count = 2400
    growing_queues = 0
    for seed in range(20):
        arrived = poisson(load / STEP, count, seed)
        prompts = requests(arrived, np.full(count, BUDGET), np.ones(count))
        growing_queues += is_growing(simulate_requests(engine(), prompts).first[count // 5 :])
    assert abs(growing_queues - growing) <= 1


@pytest.mark.parametrize(
    ("parts", "growing"),
    [
        ([1.0] * 8, False),
        ([1.0] * 4 + [1.24] * 4, False),  # longer by less than a quarter
        ([1.0] * 4 + [1.26] * 4, True),
        ([9.0] * 4 + [11.0] * 4, False),
        ([9.0] * 4 + [12.0] * 4, True),
        ([2.0] * 4 + [1.0] * 4, False),
        # twice as long, and three standard errors of it are 3 sqrt(4 / 3 / 4)
        ([1.0] * 4 + [1.0, 3.0] * 2, False),
        ([1.0] * 4 + [2.0, 4.0] * 2, True),
        ([1.0, 3.0] * 2 + [3.0] * 4, False),
    ],
)
def test_a_queue_grows_by_a_quarter_and_beyond_its_errors(parts, growing):
    assert is_growing(np.repeat(np.array(parts), 50)) is growing
