"""The simulation against queues whose waits are known, and against what must hold of any."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from tco.performance.service.engine import QUANTUM, SIZES, TOKENS, Engine, engine_for_plan
from tco.performance.service.simulation import Cache, Requests, simulate_requests
from tco.performance.service.traffic import LENGTHS, Traffic
from tco.performance.serving.plans import decode_plan_from_axes
from tests.performance.servers import PrefillPlan, server

COUNT = 60_000
STEP = 0.005  # seconds
BUDGET = 64.0


def engine(most=1e9, room=1e15, budget=BUDGET):
    """An engine whose steps and passes all take the same time, however much is in them."""
    flat, none = [STEP] * 4096, [0.0] * 4096
    return Engine(flat, none, flat, none, 1, budget, room, 1.0, most)


def requests(arrived, prompt, answer, slot=None, known_tokens=None, keeps=None):
    """Requests that share nothing, unless they are said to."""
    nothing = np.zeros(len(arrived))
    slots = np.arange(len(arrived)) if slot is None else slot
    return Requests(
        arrived,
        prompt,
        answer,
        slots,
        nothing if known_tokens is None else known_tokens,
        nothing if keeps is None else keeps,
    )


def poisson(rate, count=COUNT, seed=0):
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_prompts_wait_as_pollaczek_and_khinchine_say(load):
    """Waits of an M/G/1 queue are W = rate E[S^2] / (2 (1 - load)) (Pollaczek, Khinchine).

    Prompts of a geometric number of full passes are read one after another.
    """
    passes = np.random.default_rng(1).geometric(0.25, COUNT)
    service = passes * STEP
    rate = load / (4 * STEP)
    served = simulate_requests(engine(), requests(poisson(rate), passes * BUDGET, np.ones(COUNT)))
    wait = rate * (2 - 0.25) / 0.25**2 * STEP**2 / (2 * (1 - load))
    assert (served.first - service).mean() == pytest.approx(wait, rel=0.06)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (4, 0.8), (16, 0.9)])
def test_answers_wait_as_erlang_says(servers, load):
    """Waits of an M/M/c queue are those of Erlang: as many sequences at a time as servers.

    Answers have a geometric number of steps, many in each.
    """
    mean = 400
    answer = np.random.default_rng(2).geometric(1 / mean, COUNT).astype(float)
    rate = load * servers / (mean * STEP)
    served = simulate_requests(
        engine(most=servers), requests(poisson(rate), np.ones(COUNT), answer), read=False
    )
    offered = load * servers
    terms = np.cumprod([1.0, *(offered / k for k in range(1, servers + 1))])
    waits = terms[-1] / (1 - load) / (terms[:-1].sum() + terms[-1] / (1 - load))
    wait = waits * mean * STEP / (servers * (1 - load))
    assert (served.first - STEP).mean() == pytest.approx(wait, rel=0.12)


def test_share_of_equal_slots_found_is_the_share_with_room():
    """The share of slots found in the cache is the share that has room.

    Slots are equal and each is as likely next; the least recently used one goes.
    """
    draws = np.random.default_rng(3)
    slot, tokens = draws.integers(0, 40, COUNT), np.full(COUNT, 100.0)
    arrivals = requests(np.arange(COUNT) * 1.0, tokens + 1, np.ones(COUNT), slot, tokens, tokens)
    served = simulate_requests(engine(room=1000.0 + 2), arrivals)
    assert (served.cached_tokens[COUNT // 10 :] > 0).mean() == pytest.approx(10 / 40, rel=0.05)


def test_memory_is_never_given_twice_and_comes_back():
    draws, cache, under_way = np.random.default_rng(4), Cache(1000.0), []
    for _ in range(5000):
        slot, tokens = int(draws.integers(0, 9)), float(draws.integers(1, 300))
        if draws.uniform() < 0.5 and cache.take(slot, tokens, False):
            under_way.append((slot, tokens))
        elif under_way:
            slot, tokens = under_way.pop(int(draws.integers(0, len(under_way))))
            cache.leave(slot, tokens, float(draws.integers(0, int(tokens) + 1)))
        used_tokens = (
            sum(tokens for _, tokens in under_way)
            + sum(slot_tokens for slot_tokens, _ in cache.used.values())
            + sum(cache.idle.values())
        )
        assert cache.free + used_tokens == pytest.approx(1000.0)
        assert cache.free >= 0
        assert cache.kept == pytest.approx(sum(cache.idle.values()))


def test_every_request_is_answered_in_order_of_its_tokens():
    draws = np.random.default_rng(5)
    arrivals = requests(
        poisson(20, 500), draws.integers(1, 5000, 500) * 1.0, draws.integers(1, 300, 500) * 1.0
    )
    served = simulate_requests(engine(most=8, room=20_000.0), arrivals)
    assert (served.first > 0).all()
    assert (served.last >= served.first).all()
    # a token a step, and no more
    assert (served.last - served.first >= (arrivals.answer - 1) * STEP * (1 - 1e-9)).all()


@pytest.mark.parametrize("name", ["h200-hgx8", "gb200-nvl72"])
def test_tables_agree_with_the_step_model(name):
    """At a batch and a context between those that the tables were made of."""
    model_server = server(name)
    plan = decode_plan_from_axes(PrefillPlan(8.0, 8.0), 1.0)
    engine_model = engine_for_plan(model_server, plan)
    prompt, answer = float(model_server.request.prompt), float(model_server.request.answer)
    for sequences in (1, 6, 48):
        step = model_server.decode(plan._replace(sequences=float(sequences)))
        assert engine_model.step_time(
            sequences, sequences * (prompt + answer / 2)
        ) == pytest.approx(float(step.per_token), rel=0.1)
    assert engine_model.pass_time(prompt, prompt / 2, 0, 0.0) == pytest.approx(
        float(model_server.prefill(PrefillPlan(8.0, 8.0)).time), rel=0.1
    )
    assert len(engine_model.passes) * QUANTUM >= engine_model.budget


def test_no_iteration_lies_beyond_the_tables():
    """No iteration exceeds the sizes of the tables.

    Ranks that split prompts read a budget each, the most that any engine has; groups decode no
    more sequences than the step model is asked at.
    """
    model_server = server("gb200-nvl72")
    engine_model = engine_for_plan(
        model_server,
        decode_plan_from_axes(PrefillPlan(8.0, 1.0, 8.0), 1.0),
    )
    half, full = (
        engine_model.pass_time(share * engine_model.budget, 4000, 0, 0.0) for share in (0.5, 1.0)
    )
    assert full > 1.5 * half
    assert engine_model.most / engine_model.groups <= SIZES[-1]
    assert engine_model.budget <= TOKENS[-1]


@pytest.mark.parametrize("router", ["round-robin", "random"])
def test_gaps_at_one_engine_spread_as_a_renewal_process_split_up(router):
    cv, engines = 2.0, 4
    draws = np.random.default_rng(3)
    arrivals = np.cumsum(draws.gamma(cv**-2, cv**2, 2_000_000))
    of_engine = (
        arrivals[::engines]
        if router == "round-robin"
        else arrivals[draws.uniform(size=len(arrivals)) < 1 / engines]
    )
    gaps = np.diff(of_engine)
    split_cv = Traffic("bursts", {"arrival_cv": cv}, ()).gaps(engines, router)
    assert split_cv == pytest.approx(gaps.std() / gaps.mean(), rel=0.01)


def test_lengths_of_prompts_and_answers_have_the_rank_correlation_stated():
    quantiles = dict(zip(LENGTHS, (100.0, 1000.0, 10_000.0) * 2, strict=True))
    traffic = Traffic("long", {"correlation": 0.4, **quantiles}, ())
    prompts, answers = traffic.lengths(200_000, np.random.default_rng(5))
    assert spearmanr(prompts, answers).statistic == pytest.approx(0.4, abs=0.01)
    assert np.quantile(answers, (0.1, 0.5, 0.9)) == pytest.approx(
        np.quantile(prompts, (0.1, 0.5, 0.9)), rel=0.03
    )
