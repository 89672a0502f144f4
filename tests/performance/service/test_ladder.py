"""Ladders of rates: caches shared while in use, room that answers outgrow, and llm-d's router."""

import numpy as np
import pytest

from tco.performance.service.ladder import Prompts, RateStage, RoutedFleet, Router, first_tokens
from tco.performance.service.routing import AffinityRouter, AffinityRules
from tco.performance.service.simulation import Arrival, EngineRun
from tests.performance.service.test_simulation import STEP, engine

PEAK = 15_928.0  # tokens/s, the router's default
LIMIT = 18.0  # seconds
BY_LOT, AFFINITY = Router(0.0, 0.0), Router(0.8, LIMIT)


def run_of(engine_model, *arrivals):
    """Return an engine that has answered some requests."""
    run = EngineRun(engine_model)
    for arrival in arrivals:
        run.submit(arrival)
    run.advance()
    return run


def test_a_prefix_is_found_while_its_first_reader_still_decodes():
    arrivals = [Arrival(instant, 200.0, 100.0, 0, 150.0, 150.0) for instant in (0.0, 50 * STEP)]
    run = run_of(engine(), *arrivals)
    assert run.arrived[1] < run.last[0]
    assert run.found == [0.0, 150.0]


def test_a_prompt_that_comes_back_is_found_whole():
    arrivals = [Arrival(instant, 200.0, 10.0, 0, 150.0, 150.0, 7) for instant in (0.0, 1.0)]
    run = run_of(engine(), *arrivals)
    assert run.found == [0.0, 200.0]
    assert run.first[1] - 1.0 == pytest.approx(STEP)


@pytest.mark.parametrize(("foreseen", "pauses"), [(0.0, True), (1.0, False)])
def test_answers_that_outgrow_the_room_pause_only_what_was_not_foreseen(foreseen, pauses):
    arrivals = [Arrival(0.0, 40.0, 100.0, number, 0.0, 0.0) for number in range(6)]
    run = run_of(engine(room=300.0)._replace(foreseen=foreseen), *arrivals)
    assert (max(run.prompt) > 40.0) == pauses  # a paused request reads its own tokens again
    assert run.cache.free == pytest.approx(300.0)
    assert all(0 < first <= last for first, last in zip(run.first, run.last, strict=True))
    tokens = [prompt + answer for prompt, answer in zip(run.prompt, run.answer, strict=True)]
    assert tokens == [140.0] * 6


def test_tokens_stand_still_while_an_engine_reads_prompts_alone():
    arrivals = [Arrival(0.0, 1.0, 50.0, 0, 0.0, 0.0), Arrival(10 * STEP, 640.0, 1.0, 1, 0.0, 0.0)]
    mixed, unmixed = (run_of(engine()._replace(mixed=mixed), *arrivals) for mixed in (True, False))
    # ten passes of 64 tokens, and one for what the sequence beside takes of the first ten
    assert unmixed.last[0] - mixed.last[0] == pytest.approx(10 * STEP)


def engine_chosen_by_affinity(cached, queue):
    """Return the engine chosen for 160 tokens, of two engines.

    One of them was sent a part of the prompt and has a queue.
    """
    rules = AffinityRules(0.8, LIMIT * PEAK)
    router = AffinityRouter(np.random.default_rng(0), rules, 2, 1e9)
    runs = [EngineRun(engine()) for _ in range(2)]
    router.indexes[1].record(Arrival(0.0, 160.0, 1.0, 0, cached, cached))
    router.unread[1].append((0, queue))
    runs[1].submit(Arrival(0.0, queue, 1.0, 1, 0.0, 0.0))
    return router.choose(Arrival(0.0, 160.0, 1.0, 0, 160.0, 160.0), runs)


@pytest.mark.parametrize(
    ("cached", "queue", "chosen"),
    [(144.0, 10_000.0, 1), (144.0, 300_000.0, 0), (80.0, 1_000.0, 0)],
)
def test_llmd_router_chooses_as_the_tests_of_its_dynamo_port_say(cached, queue, chosen):
    """Nine tenths cached stick despite a queue, not beyond 18 s of it, and half does not stick."""
    assert engine_chosen_by_affinity(cached, queue) == chosen


def test_ties_between_idle_engines_are_broken_by_lot():
    router = AffinityRouter(np.random.default_rng(0), AffinityRules(0.8, 1e9), 4, 1e9)
    runs = [EngineRun(engine()) for _ in range(4)]
    chosen = []
    for group in range(200):
        chosen.append(router.choose(Arrival(group * 1.0, 10.0, 1.0, group, 10.0, 10.0), runs))
        runs[chosen[-1]].submit(Arrival(group * 1.0, 10.0, 1.0, group, 10.0, 10.0))
    assert np.bincount(chosen, minlength=4).min() > 25


def test_an_index_forgets_the_least_recent_prompts():
    router = AffinityRouter(np.random.default_rng(0), AffinityRules(0.8, 1e9), 1, 250.0)
    index = router.indexes[0]
    prompts = [Arrival(0.0, 100.0, 1.0, group, 100.0, 100.0) for group in range(3)]
    for prompt in prompts:
        index.record(prompt)
    assert [index.matched(prompt) for prompt in prompts] == [0.0, 100.0, 100.0]


def test_a_stage_sends_its_requests_and_routed_prefixes_are_read_once():
    prompts = Prompts(prefix=6400.0, groups=40, question=64.0, per_group=3, answer=20.0)
    engine_model = engine(room=80_000.0)
    stages = [RateStage(8.0, 10.0), RateStage(4.0, 20.0)]
    by_lot, routed = (
        first_tokens(RoutedFleet(engine_model, 4, router), prompts, stages, 0)
        for router in (BY_LOT, AFFINITY)
    )
    assert [len(times) for times in by_lot] == [80, 80]
    # a prefix takes a hundred passes where it is not found
    assert np.median(by_lot[0]) > 100 * STEP
    assert np.median(routed[0]) < 5 * STEP


def test_requests_that_clients_give_up_are_not_counted():
    prompts = Prompts(prefix=0.0, groups=1, question=64.0, per_group=0, answer=20_000.0)
    stages = [RateStage(1.0, 20.0)]
    patient = first_tokens(RoutedFleet(engine(), 1, BY_LOT), prompts, stages, 0)
    queued = first_tokens(RoutedFleet(engine(most=1), 1, BY_LOT), prompts, stages, 0)
    assert (len(patient[0]), len(queued[0])) == (20, 2 + 1)


def test_first_tokens_of_an_idle_fleet_come_after_one_pass():
    prompts = Prompts(prefix=0.0, groups=1, question=32.0, per_group=0, answer=1.0)
    (times,) = first_tokens(RoutedFleet(engine(), 1, BY_LOT), prompts, [RateStage(0.5, 40.0)], 0)
    assert times == pytest.approx(STEP, rel=0.01)
