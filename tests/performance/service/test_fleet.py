"""Fleets: an engine started under way is in its steady state, and more engines are never worse.

Quantiles state their error.
"""

from copy import copy
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest

from tco.performance.service.engine import engine_for_plan
from tco.performance.service.fleet import (
    Search,
    ServingFleet,
    chips_with_spares,
    domains_holding,
    under_way,
)
from tco.performance.service.samples import quantile_error
from tco.performance.service.simulation import simulate_requests
from tco.performance.service.traffic import load_traffic, promise_of
from tco.performance.serving.passes import prefill_pool
from tco.performance.serving.plan_choice import offered_axes
from tco.performance.serving.plans import decode_plan_from_axes, plan_at
from tests.catalogue import CATALOGUE
from tests.performance.servers import server
from tests.performance.service.test_simulation import requests


def search_server():
    return server("gb200-nvl72", workload__input_tokens="1281", workload__output_tokens="176")


@pytest.fixture(scope="module")
def search():
    return Search(
        search_server(),
        load_traffic(CATALOGUE, "chat"),
        "random",
        0,
        30.0,
        1.0,
    )


def test_decoding_engine_starts_in_its_steady_state(search):
    pool = max(search.decoders, key=lambda decoder: decoder.plan.sequences * decoder.chips)
    rate, traffic = pool.rate * 0.6, search.traffic
    before, requests = traffic._replace(values=traffic.values | {"requests_per_s": rate}).requests(
        1, "random", 40_000, 0, 30.0
    )
    engine = pool.build()
    warm_requests = under_way(engine, rate, before, requests, 0)
    served = simulate_requests(engine, warm_requests, read=False)
    measured_slice, token_times = (
        slice(len(warm_requests.arrived) - 40_000, None),
        (served.last - served.first) / served.answer,
    )
    early, late = (
        part[1000:].mean()
        for part in np.array_split(
            token_times[measured_slice][served.answer[measured_slice] > 20], 2
        )
    )
    assert early == pytest.approx(late, rel=0.1)


def throughput(pool, count, **does):
    """Return the requests a second of an engine that is given all of some at once."""
    lengths = np.full(count, 1281.0), np.full(count, 176.0)
    served = simulate_requests(pool.build(), requests(np.zeros(count), *lengths), **does)
    return count / served.last.max()


def test_an_engine_that_is_never_idle_serves_the_rate_that_its_plan_could_hold(search):
    for reader in search.readers[::4]:
        assert throughput(reader, 300, decode=False) == pytest.approx(reader.rate, rel=0.04)
    small = [decoder for decoder in search.decoders if decoder.build().most < 1000]
    assert len(small) > 5
    for decoder in small[::3]:
        # the last sequences decode alone
        rate = throughput(decoder, int(6 * decoder.build().most), read=False)
        assert 0.9 < rate / decoder.rate < 1.05


def test_no_plan_of_eight_chips_reads_more_prompts_than_the_reader_of_eight(search):
    model_server = search_server()
    machine, model, request = model_server
    axes = offered_axes(machine, model, request.prompt)
    memory = prefill_pool(model_server, axes).memory
    eight_chips = np.flatnonzero((axes.chips == 8) & (memory <= machine.memory))
    plans = [decode_plan_from_axes(plan_at(axes, (int(row), 0)), 1.0) for row in eight_chips]
    readers = [reader for reader in search.readers if reader.chips == 8]
    assert len(plans) > len(readers) > 0
    engines = [partial(engine_for_plan, model_server, plan) for plan in plans]
    rates = [throughput(readers[0]._replace(build=engine), 300, decode=False) for engine in engines]
    best = max(throughput(reader, 300, decode=False) for reader in readers)
    assert best == max(rates) > 1.1 * min(rates)


def test_more_engines_are_never_worse(search):
    for pools, does in (
        (search.readers, "read"),
        (search.decoders, "decode"),
        (search.decoders, "both"),
    ):
        pool = pools[len(pools) // 2]
        least = 2 * pool.engines(search.rate)
        ttft_quantiles = [
            np.quantile(search.times(pool, least * more, does).first, 0.9) for more in (1, 2, 4, 8)
        ]
        assert all(late <= soon * 1.02 for soon, late in pairwise(ttft_quantiles))


def test_engines_that_read_hand_over_the_prompt_and_those_that_decode_its_answer(search):
    reader = search.readers[0]
    reading = search.times(reader, 8 * reader.engines(search.rate), "read")
    assert (reading.last == reading.first).all()
    # nobody waits, and a prompt is read about as long as one of the mean length
    assert reader.quickest / 4 < np.median(reading.first) < 2 * reader.quickest
    decoder = search.decoders[0]
    decoding = search.times(decoder, 8 * decoder.engines(search.rate), "decode")
    assert decoding.cached_share == 0
    both = search.times(decoder, 8 * decoder.engines(search.rate), "both")
    for times in (decoding, both):
        # a request decodes at the pace of the plan, or above it among fewer sequences
        pace = ((times.last - times.first) / (times.answer - 1))[times.answer > 20]
        assert pace.min() > 0.1 * decoder.quickest
        assert np.median(decoding.first) < np.median(both.first)


def test_the_cheapest_of_all_is_no_dearer_than_any_pair_that_keeps_the_promises(search):
    promises = [promise_of("ttft p90 <= 1 s"), promise_of("tpot p90 <= 30 ms")]
    best = search.cheapest(promises)
    assert best is not None
    assert all(
        np.quantile(best.times[promise.metric], promise.quantile) <= promise.limit
        for promise in promises
    )
    for pool in search.decoders[::7]:
        for reader in search.readers[::3]:
            candidate = search.with_readers(
                pool, pool.engines(search.rate) * 2, [reader], promises, None
            )
            assert candidate is None or not candidate.is_cheaper_than(best)


def test_engines_that_read_beside_decoding_are_taken_where_they_are_cheaper(search):
    promises = [promise_of("ttft p90 <= 2 s"), promise_of("tpot p90 <= 60 ms")]
    narrow_search = copy(search)
    narrow_search.decoders = search.decoders[2::12]
    fleet = narrow_search.together(promises, None)
    assert fleet.reader is None
    assert fleet.chips == fleet.decoders * fleet.decoder.chips > 0
    assert all(
        np.quantile(fleet.times[promise.metric], promise.quantile) <= promise.limit
        for promise in promises
    )
    # one engine fewer keeps the promises no more, or holds less than its requests
    fewer = fleet.decoders - 1
    assert fewer < fleet.decoder.engines(search.rate) or not search.keeps(
        promises, search.times(fleet.decoder, fewer, "both")
    )
    assert 0 < fleet.utilisation <= 1
    dearer = fleet._replace(domains=fleet.domains + 1)
    assert narrow_search.together(promises, dearer).is_cheaper_than(dearer)
    free = fleet._replace(domains=1, decoder=fleet.decoder._replace(chips=0.0))
    assert narrow_search.together(promises, free) is free


# ---------------------------------------------------------------- whole scale-up domains
def fewest_bins(sizes: list[int], capacity: int) -> int:
    """Return the fewest bins that hold some sizes, by trying every assignment."""
    for bins in range(1, len(sizes) + 1):
        for assignment in product(range(bins), repeat=len(sizes)):
            loads = np.bincount(assignment, weights=sizes, minlength=bins)
            if loads.max() <= capacity:
                return bins
    return 0


@pytest.mark.parametrize("domain_chips", [8, 64, 72])
@pytest.mark.parametrize("large", [6, 8, 16, 24, 32, 64])
@pytest.mark.parametrize("small", [2, 4, 8])
def test_engines_are_held_by_the_fewest_domains(domain_chips, large, small):
    for large_count, small_count in ((1, 0), (2, 1), (3, 2), (1, 4), (4, 1)):
        if large > domain_chips:
            continue
        fewest = fewest_bins([large] * large_count + [small] * small_count, domain_chips)
        engines = [(float(large), large_count), (float(small), small_count)]
        assert domains_holding(engines, domain_chips) == fewest


@pytest.mark.parametrize(
    ("engines", "domain_chips", "domains"),
    [
        ([(64.0, 9)], 72, 9),  # 8 domains have as many chips, and hold 8 such engines
        ([(64.0, 9), (8.0, 9)], 72, 9),  # the small ones take what is left
        ([(64.0, 9), (8.0, 10)], 72, 10),
        ([(16.0, 3)], 8, 6),  # an engine over two servers
        ([(144.0, 1), (48.0, 1), (16.0, 1), (8.0, 1)], 72, 3),
        ([(2.0, 5000)], 72, 139),
    ],
)
def test_engine_lies_within_one_domain_or_fills_whole_ones(engines, domain_chips, domains):
    assert domains_holding(engines, domain_chips) == domains


def test_spare_chips_are_bought_too(search):
    assert chips_with_spares(72, 0.98) == 74
    assert chips_with_spares(72, 1.0) == 72
    with_failures = Search.__new__(Search)
    with_failures.goodput, with_failures.domain_chips = 0.98, 72
    assert search.domains_of([(72.0, 1)]) == 1
    assert with_failures.domains_of([(72.0, 1)]) == 2


def test_fewer_domains_are_cheaper_than_fewer_chips(search):
    pool = search.decoders[0]
    fleets = [
        ServingFleet(pool._replace(chips=float(chips)), 1, None, 0, {}, 1.0, 0.0, 0.5, domains)
        for chips, domains in ((70, 1), (60, 2), (60, 1))
    ]
    one_domain, two_domains, fewest_chips = fleets
    assert one_domain.is_cheaper_than(two_domains)
    assert not two_domains.is_cheaper_than(one_domain)
    assert fewest_chips.is_cheaper_than(one_domain)
    assert two_domains.is_cheaper_than(None)
    # A fleet of more chips may be cheaper than the 60 in two domains, as long as it fits one.
    assert search.most_chips(two_domains) == 73
    assert search.most_chips(one_domain) == 70


def test_the_error_of_a_quantile_is_that_of_draws_repeated():
    """Of a normal distribution's median the standard error is 1.2533 / sqrt(n)."""
    draws = np.random.default_rng(0)
    error_estimates = [quantile_error(draws.normal(size=4000), 0.5) for _ in range(200)]
    assert np.mean(error_estimates) == pytest.approx(1.2533 / np.sqrt(4000), rel=0.1)
