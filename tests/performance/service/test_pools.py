"""Pools of engines by hand: how many are tried, which promises they keep, what begins under way."""

import numpy as np
import pytest

from tco.performance.service.fleet import (
    PoolPlan,
    Search,
    ServingFleet,
    Times,
    chips_with_spares,
    under_way,
)
from tco.performance.service.simulation import Requests
from tco.performance.service.traffic import Promise
from tests.performance.service.test_simulation import STEP, engine


def search_of(rate=9.7, start=0.0, goodput=1.0, domain_chips=8):
    search = Search.__new__(Search)
    search.rate, search.start, search.seed = rate, start, 0
    search.goodput, search.domain_chips = goodput, domain_chips
    return search


def pool_of(rate=1.0, chips=4.0):
    """Return a pool of engines that could hold a rate each; its plan is none."""
    return PoolPlan(None, chips, rate, 0.01, engine)


@pytest.mark.parametrize(
    ("rate", "engines"), [(9.79, 10), (9.81, 11), (0.98, 1), (0.99, 2), (0.0, 1), (1e-9, 1)]
)
def test_engines_hold_98_percent_of_their_rate(rate, engines):
    assert pool_of().engines(rate) == engines


@pytest.mark.parametrize("enough", [1, 10, 11, 12, 19, 20, 21, 39, 40, 57, 80])
def test_the_least_engines_that_are_good_are_found(enough):
    tried = []

    def good(engines):
        tried.append(engines)
        return engines >= enough

    assert search_of().least(pool_of(), good, 80) == max(enough, 10)
    assert all(10 <= engines <= 80 for engines in tried)
    assert len(tried) <= 1 + 3 + 6  # doubled three times, then halved


def test_no_engines_are_good_beyond_the_most():
    assert search_of().least(pool_of(), lambda engines: engines > 80, 80) is None
    assert search_of().least(pool_of(), lambda _: True, 9) is None
    assert search_of().least(pool_of(), lambda _: True, 10) == 10


def test_many_engines_are_found_to_one_part_in_a_thousand():
    search = search_of(rate=0.98 * 60_000)
    engines = search.least(pool_of(), lambda engines: engines >= 123_456, 400_000)
    assert 123_456 <= engines <= 123_456 * 1.0011


def test_engines_are_tried_within_the_room_and_eight_times_what_is_needed():
    search = search_of()
    assert search.most(pool_of(chips=4.0), 100.0) == 25
    assert search.most(pool_of(chips=4.0), np.inf) == 8 * (10 + 1)


def times_of(first, last, answer, growing=False):
    return Times(*(np.array(column, float) for column in (first, last, answer)), 0.0, growing)


def test_times_of_two_pools_add_up():
    decoding = times_of([1.0, 2.0, 3.0], [3.0, 6.0, 3.5], [3, 1, 2])
    reading = times_of([0.5] * 4, [0.5] * 4, [1] * 4)
    times = search_of(start=0.25).joined(decoding, reading)
    assert times["ttft"].tolist() == [1.75, 2.75, 3.75]
    assert times["e2e"].tolist() == [3.75, 6.75, 4.25]
    assert times["tpot"].tolist() == [1.0, 4.0, 0.5]
    without_reader = search_of(start=0.25).joined(decoding, None)
    assert without_reader["ttft"].tolist() == [1.25, 2.25, 3.25]


def test_a_promise_is_kept_up_to_its_limit():
    times = times_of(np.arange(1, 102), np.arange(2, 103), [2] * 101)
    search = search_of()
    assert search.keeps([Promise("ttft", 0.5, 51.0)], times)
    assert not search.keeps([Promise("ttft", 0.5, 50.9)], times)
    assert search.keeps([Promise("ttft", 0.5, 51.0), Promise("tpot", 0.9, 1.0)], times)
    assert not search.keeps([Promise("ttft", 0.5, 51.0), Promise("tpot", 0.9, 0.9)], times)
    assert search.keeps([], times)


def test_a_queue_that_grows_keeps_no_promise_of_a_wait():
    steady, growing = (times_of([1.0] * 9, [2.0] * 9, [2] * 9, grows) for grows in (False, True))
    search = search_of()
    for metric in ("ttft", "e2e"):
        promises = [Promise(metric, 0.9, 100.0)]
        assert search.keeps(promises, steady, steady)
        assert not search.keeps(promises, growing, steady)
        assert not search.keeps(promises, steady, growing)
        assert not search.keeps(promises, growing)
    # the time of a token waits for nobody
    assert search.keeps([Promise("tpot", 0.9, 100.0)], growing, growing)


def test_answers_under_way_are_as_many_as_littles_law_says_and_the_longer_the_likelier():
    draws = np.random.default_rng(2)
    count, rate = 50_000, 400.0
    answer = draws.integers(1, 1000, count).astype(float)
    column = np.zeros(count)
    requests = Requests(
        np.arange(count) / rate, np.full(count, 70.0), answer, np.arange(count), column, column
    )
    engine_model = engine(most=4000)
    all_requests = under_way(engine_model, rate, requests, requests, 0)
    begun = len(all_requests.arrived) - count
    assert begun == pytest.approx(rate * answer.mean() * STEP, rel=0.002)
    prompt, left = all_requests.prompt[:begun], all_requests.answer[:begun]
    done = prompt - 70
    assert (all_requests.arrived[:begun] == 0).all()
    assert done.min() >= 0
    assert left.min() > 0
    # an answer that is met under way is longer by E[a^2] / E[a], and half done
    assert (done + left).mean() == pytest.approx((answer**2).mean() / answer.mean(), rel=0.05)
    assert done.mean() == pytest.approx((done + left).mean() / 2, rel=0.06)
    assert (all_requests.answer[begun:] == answer).all()


def test_no_more_answers_are_under_way_than_an_engine_takes_in():
    column = np.zeros(100)
    requests = Requests(column, column + 5, column + 1000, np.arange(100), column, column)
    all_requests = under_way(engine(most=7), 1e6, requests, requests, 0)
    assert len(all_requests.arrived) == 7 + 100


def test_chips_of_a_fleet_are_those_of_both_pools():
    decoder, reader = pool_of(chips=4.0), pool_of(chips=6.0)
    both = ServingFleet(decoder, 3, reader, 2, {}, 1.0, 0.0, 0.5, 3)
    decoders = ServingFleet(decoder, 3, None, 0, {}, 1.0, 0.0, 0.5, 3)
    assert (both.chips, decoders.chips) == (24, 12)
    assert not decoders.is_cheaper_than(decoders)


def test_spare_chips_make_up_for_the_hours_that_failures_take():
    assert chips_with_spares(100, 0.5) == 200
    assert chips_with_spares(99, 0.99) == 100
    assert chips_with_spares(100, 0.99) == 102
    # 3 chips over 0.3 are 10.000000000000002 in binary, and no eleventh chip
    assert chips_with_spares(3, 0.3) == 10


def test_a_fleet_with_fewer_domains_may_have_more_chips():
    search = search_of(goodput=0.8, domain_chips=10)
    assert search.most_chips(None) == np.inf
    fleet = ServingFleet(pool_of(chips=30.0), 1, None, 0, {}, 1.0, 0.0, 0.5, 5)
    # four domains have 40 chips, 32 of which are up
    assert search.most_chips(fleet) == 33
    assert search.most_chips(fleet._replace(decoders=2)) == 60
    assert search.domains_of([(30.0, 1)]) == 4
    assert search.domains_of([(8.0, 3)]) == 3
    assert search.domains_of([(8.0, 4)]) == 4
