"""Iterations of an engine against timelines that are computed by hand."""

import numpy as np
import pytest

from tco.performance.service.engine import Engine
from tco.performance.service.ladder import (
    Prompts,
    RateStage,
    RoutedFleet,
    Router,
    first_tokens,
    first_tokens_of_ladder,
)
from tco.performance.service.simulation import Arrival, EngineRun
from tests.performance.service.test_simulation import STEP, engine

BUDGET = 64.0
PASS, KEY = 1.0, 1e-3  # seconds of a pass, and for a key before each of its tokens
TOKEN, CACHED = 0.01, 1e-5  # seconds of a step, and for a cached token of each sequence


def slow_engine(groups=1, most=1e9, room=1e9, mixed=True):
    """Return an engine whose passes and steps take longer with the keys that they attend to."""
    steps, slopes = [TOKEN] * 99, [CACHED] * 99
    passes, keys = [PASS] * 999, [KEY] * 999
    return Engine(steps, slopes, passes, keys, groups, BUDGET, room, 1.0, most, mixed)


def run_of(engine_model, *arrivals, **does):
    run = EngineRun(engine_model, **does)
    for arrival in arrivals:
        run.submit(arrival)
    run.advance()
    return run


def prompt_of(tokens, slot=0, arrived=0.0, answer=1.0, cached=0.0, keeps=0.0):
    return Arrival(arrived, tokens, answer, slot, cached, keeps)


def test_a_token_of_a_chunk_attends_to_all_that_was_read_before():
    """Chunks of 64, 64 and 32 tokens attend to 32, 64 + 32 and 128 + 16 keys on average."""
    run = run_of(slow_engine(), prompt_of(160.0))
    assert run.first[0] == pytest.approx(3 * PASS + KEY * (32 + 96 + 144), rel=1e-12)


def test_prompts_of_a_pass_count_by_their_tokens():
    """16 tokens that attend to 8 keys, 32 to 16, and 16 of the third prompt to 8."""
    run = run_of(
        slow_engine(), *(prompt_of(tokens, slot) for slot, tokens in enumerate((16, 32, 48)))
    )
    keys = (16 * 8 + 32 * 16 + 16 * 8) / 64
    assert run.first[0] == run.first[1] == pytest.approx(PASS + KEY * keys, rel=1e-12)
    # and the other 32 to the 16 before them
    assert run.first[2] - run.first[0] == pytest.approx(PASS + KEY * (16 + 16), rel=1e-12)


def test_a_prefix_that_is_found_is_not_read_but_attended_to():
    arrivals = [
        prompt_of(64.0, cached=0.0, keeps=48.0),
        prompt_of(64.0, arrived=100.0, cached=48.0, keeps=48.0),
    ]
    run = run_of(slow_engine(), *arrivals)
    assert run.found == [0.0, 48.0]
    assert run.first[1] - 100 == pytest.approx(PASS + KEY * (48 + 8), rel=1e-12)


def test_groups_read_side_by_side():
    """Two groups read the budget of two prompts at once, and the third prompt after them."""
    run = run_of(slow_engine(groups=2), *(prompt_of(64.0, slot) for slot in range(3)))
    assert run.first == pytest.approx([PASS + KEY * 32] * 2 + [2 * (PASS + KEY * 32)], rel=1e-12)


def test_steps_take_longer_as_caches_grow():
    """Steps that decode 40 tokens after a prompt of 1,000 attend to 1,000 to 1,039 tokens."""
    run = run_of(slow_engine(), prompt_of(1000.0, answer=40.0), read=False)
    assert run.last[0] == pytest.approx(40 * TOKEN + CACHED * sum(range(1000, 1040)), rel=1e-12)


def test_sequences_of_an_engine_share_its_steps():
    """Two sequences step together with the mean of their caches, then the longer one."""
    arrivals = [prompt_of(100.0, 0, answer=10.0), prompt_of(300.0, 1, answer=20.0)]
    run = run_of(slow_engine(), *arrivals, read=False)
    together = 10 * TOKEN + CACHED * sum(range(200, 210))
    longer = 10 * TOKEN + CACHED * sum(range(310, 320))
    assert run.last == pytest.approx([together, together + longer], rel=1e-12)


def test_an_engine_takes_in_no_more_than_its_most():
    """The third of three answers begins where the first of them ends."""
    arrivals = [prompt_of(0.0, slot, answer=10.0 + 5 * slot) for slot in range(3)]
    run = run_of(engine(most=2), *arrivals, read=False)
    assert run.last == pytest.approx([10 * STEP, 15 * STEP, 30 * STEP], rel=1e-12)


def test_a_sequence_that_decodes_beside_a_prompt_adds_its_cache():
    """A chunk of a later prompt and a token of the first sequence take one iteration."""
    arrivals = [prompt_of(16.0, 0, answer=30.0), prompt_of(48.0, 1, arrived=PASS + 0.02)]
    run = run_of(slow_engine(), *arrivals)
    begin = PASS + KEY * 8
    steps = 2  # of the first sequence until the second prompt comes
    begin += steps * TOKEN + CACHED * (16 + 17)
    assert run.first[1] == pytest.approx(begin + PASS + KEY * 24 + CACHED * 18, rel=1e-9)


def test_prompts_of_a_group_begin_alike_and_come_back_whole():
    """Four groups of three prompts fit the room; as eight groups they would not."""
    prompts = Prompts(prefix=640.0, groups=4, question=64.0, per_group=3, answer=1.0)
    engine_model = engine(room=4 * 640.0 + 12 * 64.0 + 200.0)
    fleet = RoutedFleet(engine_model, 1, Router(0.0, 0.0))
    (times,) = first_tokens(fleet, prompts, [RateStage(1.0, 60.0)], 0)
    assert len(times) == 60
    assert times.max() < 3 * STEP


def test_new_questions_to_one_prefix_are_read_and_the_prefix_is_not():
    prompts = Prompts(prefix=640.0, groups=4, question=128.0, per_group=0, answer=1.0)
    fleet = RoutedFleet(engine(), 1, Router(0.0, 0.0))
    (times,) = first_tokens(fleet, prompts, [RateStage(0.5, 60.0)], 0)
    assert np.median(times) == pytest.approx(2 * STEP, rel=0.3)


def test_a_ladder_in_plain_numbers_is_the_ladder_of_its_records():
    load = {
        "servers": 2,
        "sticky_share": 0.8,
        "queue_limit_s": 18.0,
        "prefix_tokens": 640.0,
        "prefix_groups": 4,
        "question_tokens": 64.0,
        "prompts_per_group": 3,
        "output_tokens": 5.0,
    }
    prompts = Prompts(prefix=640.0, groups=4, question=64.0, per_group=3, answer=5.0)
    fleet = RoutedFleet(engine(), 2, Router(0.8, 18.0))
    stages = [(2.0, 20.0), (4.0, 10.0)]
    plain = first_tokens_of_ladder(engine(), load, stages, 3)
    records = first_tokens(fleet, prompts, [RateStage(*stage) for stage in stages], 3)
    assert [times.tolist() for times in plain] == [times.tolist() for times in records]


def test_times_are_looked_up_by_tokens_and_sequences_of_a_group():
    """Two groups share five sequences of ten cached tokens: three are in the larger one.

    Tables go by sequences, and by 16 tokens of a pass.
    """
    by_size = [float(size) for size in range(10)]
    engine_model = Engine(
        [100 * size for size in by_size], by_size, by_size, by_size, 2, BUDGET, 1e9, 1.0, 1e9
    )
    assert engine_model.step_time(5, 50.0) == 300 + 3 * 10
    assert engine_model.step_time(4, 40.0) == 200 + 2 * 10
    # 29 tokens of prompts and 3 that are decoded fill two entries, 30 and 3 a part of the third
    assert engine_model.pass_time(29.0, 7.0, 5, 50.0) == 2 + 2 * 7 + 3 * 10
    assert engine_model.pass_time(30.0, 7.0, 5, 50.0) == 3 + 3 * 7 + 3 * 10
    assert engine_model.pass_time(32.0, 7.0, 0, 0.0) == 2 + 2 * 7
    # a pass beyond the table takes what the last entry says
    assert engine_model.pass_time(1e6, 0.0, 0, 0.0) == 9
