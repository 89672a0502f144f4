"""Fleets: an engine that begins under way is in its steady state, more engines are never worse, and quantiles know how sure they are."""

from itertools import pairwise

import numpy as np
import pytest

from tco.performance.service.fleet import Search, quantile_error, under_way
from tco.performance.service.simulation import serve
from tco.performance.service.traffic import load_traffic, promise_of
from tests.performance.servers import server
from tests.shipped import CATALOGUE


@pytest.fixture(scope="module")
def search():
    asked = server("gb200-nvl72", workload__input_tokens="1281", workload__output_tokens="176")
    return Search(asked.machine, asked.model, asked.request, load_traffic(CATALOGUE, "chat"), "random", 0, 30.0)


def test_an_engine_that_decodes_begins_as_it_goes_on(search):
    pool = max(search.decoders, key=lambda one: one.plan.sequences * one.chips)
    rate, traffic = pool.rate * 0.6, search.traffic
    before, requests = traffic._replace(values=traffic.values | {"requests_per_s": rate}).requests(1, "random", 40_000, 0, 30.0)
    engine = pool.build()
    asked = under_way(engine, rate, before, requests, 0)
    served = serve(engine, asked, read=False)
    own, each = slice(len(asked.arrived) - 40_000, None), (served.last - served.first) / served.answer
    early, late = (part[1000:].mean() for part in np.array_split(each[own][served.answer[own] > 20], 2))
    assert early == pytest.approx(late, rel=0.1)


def test_more_engines_are_never_worse(search):
    for pools, does in ((search.readers, "read"), (search.decoders, "decode"), (search.decoders, "both")):
        pool = pools[len(pools) // 2]
        least = 2 * pool.engines(search.rate)
        seen = [np.quantile(search.times(pool, least * more, does).first, 0.9) for more in (1, 2, 4, 8)]
        assert all(late <= soon * 1.02 for soon, late in pairwise(seen))


def test_the_cheapest_of_all_is_no_dearer_than_any_pair_that_keeps_the_promises(search):
    promises = [promise_of("ttft p90 <= 1 s"), promise_of("tpot p90 <= 30 ms")]
    best = search.cheapest(promises)
    assert best is not None
    assert all(np.quantile(best.times[one.metric], one.quantile) <= one.limit for one in promises)
    for pool in search.decoders[::7]:
        for reader in search.readers[::3]:
            found = search.with_readers(pool, pool.engines(search.rate) * 2, [reader], promises, None)
            assert found is None or found.chips >= best.chips


def test_the_error_of_a_quantile_is_that_of_draws_repeated():
    """Of a normal distribution's median the standard error is 1.2533 / sqrt(n)."""
    draws = np.random.default_rng(0)
    told = [quantile_error(draws.normal(size=4000), 0.5) for _ in range(200)]
    assert np.mean(told) == pytest.approx(1.2533 / np.sqrt(4000), rel=0.1)
