"""The operating point gives users the target speed or fills the memory, without cliffs.

Small changes of inputs change the answer a little.
"""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

from tco import DataError, evaluate
from tco.performance.serving.plans import SEQUENCES
from tests.performance.servers import (
    attention_chips,
    decode_axes,
    decode_pass,
    decode_plan_from_axes,
)
from tests.registry import FORMULA
from tests.scenario_helpers import ALIKE, inputs_of, serving_workload

RATE = "output_tokens_per_s_per_chip"


@pytest.mark.parametrize("system", ["gb200-nvl72", "trn3-nl32x2", "trn3-nl72x2", "mi450x-ualoe72"])
@pytest.mark.parametrize("speed", [30, 47.3])
def test_users_get_the_target_speed(system, speed):
    """Users get the target speed, or more where the next batch is a step of tiles.

    A larger batch then misses the speed, or makes less.
    """
    assert_speed(
        system, evaluate(system, {"workload.interactivity": f"{speed} token/s"}), speed, 1e-3
    )


def assert_speed(system, evaluation, speed, over):
    """Assert that an answer has the target speed, within a share `over` it.

    More is allowed where the next batch is a step of tiles.
    """
    assert speed <= evaluation.metrics["tokens_per_s_per_user"]
    if evaluation.metrics["tokens_per_s_per_user"] > speed * (1 + over):
        decode = evaluation.plan.decode
        larger = evaluate(
            system,
            plan=evaluation.plan._replace(
                decode=decode._replace(sequences=decode.sequences * 1.003)
            ),
        ).metrics
        assert larger["tokens_per_s_per_user"] < speed or larger[RATE] < evaluation.metrics[RATE]


@pytest.mark.parametrize(
    "system", ["gb200-nvl72", "trn3-nl32x2", "trn3-nl72x2", "mi450x-ualoe72", "h200-hgx8"]
)
def test_target_is_met_exactly_and_the_stated_plan_gives_the_same_metrics(system):
    """The speed is the target to a few hundred-thousandths, or at a step.

    The search computes on arrays what the stated plan computes on numbers.
    """
    evaluation = evaluate(system)
    assert_speed(system, evaluation, 50, 3e-5)
    stated_plan_result = evaluate(system, plan=evaluation.plan)
    for metric, value in evaluation.metrics.items():
        assert value is None or stated_plan_result.metrics[metric] == pytest.approx(
            value, rel=1e-12
        ), metric


@pytest.mark.parametrize("system", ["gb200-nvl72", "trn3-nl72x2", "mi450x-ualoe72"])
@pytest.mark.parametrize("speed", [25, 60])
def test_no_batch_of_a_group_makes_more_at_the_target_speed(system, speed):
    """No plan at any batch of a fine grid that is as quick makes more than the solved one."""
    speed_setting = {"workload.interactivity": f"{speed} token/s"}
    evaluation = evaluate(system, speed_setting)
    inputs = inputs_of(system, speed_setting)
    workload = serving_workload(inputs, inputs.values())
    plan = decode_plan_from_axes(decode_axes(workload), np.geomspace(1, SEQUENCES[-1], 700)[None])
    batched_pass = decode_pass(workload, plan)
    rate = FORMULA.decode_rate(plan.sequences, attention_chips(plan), batched_pass.per_token)
    best = rate[
        (batched_pass.per_token <= 1 / speed) & (batched_pass.memory <= workload.machine.memory)
    ].max()
    chosen = evaluation.plan.decode
    assert FORMULA.decode_rate(
        chosen.sequences, attention_chips(chosen), evaluation.serving.decode.per_token
    ) >= best * (1 - 1e-4)


@pytest.mark.parametrize("system", ["gb200-nvl72", "trn3-nl72x2", "mi450x-ualoe72", "h200-hgx8"])
@pytest.mark.parametrize("speed", [1e-3, 30, 50])
def test_no_plan_of_one_size_makes_more(system, speed):
    """The best plan of one size never makes more than the best of all plans.

    This holds whether memory binds, the speed or a step.
    """
    settings = ALIKE | {"workload.interactivity": f"{speed} token/s"}
    evaluation = evaluate(system, settings)
    best = 0.0
    for size in (2**power for power in range(8)):
        with contextlib.suppress(DataError):
            best = max(best, evaluate(system, settings, plan={"tp": str(size)}).metrics[RATE])
    assert evaluation.metrics[RATE] >= best * (1 - 1e-6) > 0


@pytest.mark.parametrize("deployed", ["0", "1"])
def test_a_faster_speed_never_makes_more(deployed):
    settings = {"workload.as_deployed": deployed}
    rates = [
        evaluate("gb200-nvl72", settings | {"workload.interactivity": f"{speed} token/s"}).metrics[
            RATE
        ]
        for speed in (20, 35, 35.5, 36, 50, 80)
    ]
    assert all(faster <= slower * (1 + 1e-7) for slower, faster in itertools.pairwise(rates))


@pytest.mark.parametrize(
    ("path", "value", "unit"),
    [("performance.nvidia.launch_time", 2.0, "us"), ("parts.gb200-gpu.hbm_bandwidth", 8.0, "TB/s")],
)
def test_small_changes_of_an_input_change_the_answer_little(path, value, unit):
    rates = [
        evaluate("gb200-nvl72", {path: f"{value * share:.6g} {unit}"}).metrics[RATE]
        for share in (1, 1.001, 1.002, 1.003)
    ]
    for rate_before, rate_after in itertools.pairwise(rates):
        assert abs(rate_after / rate_before - 1) < 0.01


def test_batch_of_an_answer_can_be_stated_again():
    evaluation = evaluate("gb200-nvl72", ALIKE)
    plan = evaluation.report.plan
    again = evaluate(
        "gb200-nvl72",
        ALIKE,
        plan={
            "chips": str(plan["decode"]["chips"]),
            "tp": str(plan["tp"]),
            "batch": repr(plan["batch"]),
        },
    )
    assert again.metrics["tokens_per_s_per_user"] == pytest.approx(
        evaluation.metrics["tokens_per_s_per_user"], rel=1e-9
    )


def test_a_target_that_no_plan_meets_names_the_nearest():
    notes = " ".join(evaluate("trn2-nl16", {"workload.interactivity": "500 token/s"}).notes)
    assert "500 are asked for" in notes
    assert "the nearest is tp" in notes
