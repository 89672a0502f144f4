"""No plan fixed by hand beats the answer, at speeds from slow to quick.

The axes are those of both pools, pipelines, and the drafts of a step.
"""

import random
import re

import pytest

from tco.core.errors import DataError
from tco.performance.chip.families import family_of
from tco.performance.serving_engines import served_by
from tests.scenario_helpers import ALIKE, CATALOGUE, evaluate

SPEEDS = (20, 30, 50, 75, 100, 120, 150)
RATE = "output_tokens_per_s_per_chip"


def plans_by_hand(count, seed):
    """Draw a number of systems with a speed, axes of a plan and a depth of drafts.

    The axes may include a pool that reads prompts.
    """
    dice = random.Random(seed)
    for _ in range(count):
        axes = {"tp": dice.choice((1, 2, 4, 8, 16))} | (
            {"pp": dice.choice((1, 2, 4, 8))} if dice.random() < 0.3 else {}
        )
        if dice.random() < 0.5:
            axes |= (
                {"prefill_tp": dice.choice((1, 2, 4, 8))}
                if dice.random() < 0.5
                else {"prefill_chips": dice.choice((2, 4, 8, 16))}
            )
            axes |= {"prefill_pp": dice.choice((1, 2, 4, 8))} if dice.random() < 0.5 else {}
        yield (
            dice.choice(CATALOGUE.ids("systems")),
            dice.choice(SPEEDS),
            axes,
            dice.choice((0, 1, 2, 3, None)),
        )


def plans_that_beat_the_best(count, seed, settings=None):
    """Return the number of plans by hand that answered, and those that beat the best plan."""
    answers, answered_count, least = {}, 0, []
    for system, speed, axes, drafts in plans_by_hand(count, seed):
        speed_settings = ALIKE | {"workload.interactivity": f"{speed} token/s"} | (settings or {})
        if (system, speed) not in answers:
            answers[system, speed] = evaluate(
                system, speed_settings, catalogue=CATALOGUE, refuse=False
            ).metrics[RATE]
        fixed = (
            speed_settings
            if drafts is None
            else speed_settings | {"workload.draft_tokens": str(drafts)}
        )
        try:
            by_hand = evaluate(
                system,
                fixed,
                {name: str(axis_value) for name, axis_value in axes.items()},
                catalogue=CATALOGUE,
                refuse=False,
            )
            hand_rate = by_hand.metrics[RATE]
        except DataError:  # no plan has these axes, or none is quick enough
            continue
        if by_hand.plan is None or not is_offered(by_hand):
            continue
        answered_count += 1
        if hand_rate is not None and hand_rate > (answers[system, speed] or 0.0) * (1 + 1e-4):
            least.append((system, speed, axes, drafts, hand_rate, answers[system, speed]))
    return answered_count, least


def is_offered(result):
    """Tell whether the engine offers a plan: its attention and its speculative decoding.

    TensorRT-LLM splits the attention of a sequence over one chip or over all of a worker.
    """
    family = served_by(
        CATALOGUE,
        family_of(CATALOGUE, CATALOGUE.document("systems", result.system, "system")[1]["chip"]),
    )
    if result.plan.decode.drafts and family["engine"] not in family.get("drafting", ()):
        return False
    pools = result.plan.decode, result.plan.prefill
    groups = (
        (pool.tensor_parallel * pool.context_parallel, pool.chips / pool.pipeline_parallel)
        for pool in pools
    )
    return family["engine"] != "trtllm" or all(group in (1, stage) for group, stage in groups)


FREE = {"workload.ttft": "0 s"}  # no first token is promised


@pytest.mark.parametrize(
    ("count", "settings"),
    [
        (48, {}),
        *(
            pytest.param(200, extra_settings, marks=pytest.mark.thorough)
            for extra_settings in ({}, FREE)
        ),
    ],
)
def test_no_plan_fixed_by_hand_beats_the_answer(count, settings):
    answered_count, least = plans_that_beat_the_best(count, count, settings)
    assert answered_count > count / 4
    assert not least


def test_best_depth_of_drafts_grows_with_the_speed():
    """The best depth of drafts grows with the speed.

    At a slow speed large batches fill the matrix units, and drafts cost what they would save;
    at a quick one few sequences leave them idle.
    """
    speed_settings = [{"workload.interactivity": f"{speed} token/s"} for speed in (1, 50, 100, 200)]
    depths = [
        evaluate("gb200-nvl72", ALIKE | speed_setting, catalogue=CATALOGUE).plan.decode.drafts
        for speed_setting in speed_settings
    ]
    assert depths == sorted(depths)
    assert depths[0] == 0
    assert depths[-1] > depths[1] > 0


def test_a_depth_beyond_the_head_is_refused_and_names_the_most():
    with pytest.raises(
        DataError,
        match=r"workload.draft_tokens is 9, a head drafts at most 3 tokens a step "
        r"\(workload.draft_limit\)",
    ):
        evaluate("gb200-nvl72", {"workload.draft_tokens": "9"}, catalogue=CATALOGUE)
    deeper = evaluate(
        "gb200-nvl72",
        {"workload.draft_tokens": "5", "workload.draft_limit": "5"},
        catalogue=CATALOGUE,
    )
    assert deeper.plan.decode.drafts == 5


def test_a_promised_first_token_is_kept_or_refused_with_the_least():
    """A promised time to the first token is kept, or refused with the least possible one.

    It covers the reading of the prompt and the step after it; the least is a prompt's own time.
    """
    free = evaluate("trn3-nl72x2", {"workload.ttft": "0 s"}, catalogue=CATALOGUE).metrics
    for limit in (2.0, 0.8, 0.3):
        promised_metrics = evaluate(
            "trn3-nl72x2", {"workload.ttft": f"{limit} s"}, catalogue=CATALOGUE
        ).metrics
        assert promised_metrics["ttft_s"] <= limit * (1 + 1e-9)
        assert promised_metrics[RATE] <= free[RATE] * (1 + 1e-9)
    refusal = evaluate("trn3-nl72x2", {"workload.ttft": "1 ms"}, catalogue=CATALOGUE)
    assert refusal.metrics[RATE] is None
    least = float(re.search(r"the quickest prefill takes ([0-9.]+) s", refusal.serving.reason)[1])
    soonest = evaluate(
        "trn3-nl72x2", {"workload.ttft": f"{least * 1.01 + 0.2} s"}, catalogue=CATALOGUE
    )
    assert least <= soonest.metrics["ttft_s"] <= least * 1.01 + 0.2
