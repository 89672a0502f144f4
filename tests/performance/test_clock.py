"""A power-limited chip sustains a clock that follows its load; a faster chip is never slower."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import evaluate
from tests.registry import FORMULA
from tests.scenario_helpers import result


@given(
    st.floats(1e-6, 1),
    st.floats(1, 10),
    st.floats(1e9, 1e15),
    st.floats(0, 1e12),
    st.floats(50, 3000),
    st.floats(1, 4),
)
def test_less_time_or_more_watts_are_never_slower(time, quicker, flops, bytes_moved, power, more):
    """Neither a higher peak nor more watts makes work slower, nor quicker than its energy allows.

    A peak makes the time at the boost clock shorter.
    """
    rest = {
        "flops": flops,
        "bytes_moved": bytes_moved,
        "size": 1.0,
        "wide": 2.0,
        "flop_energy": 6.5e-13,
        "byte_flops": 70.0,
    }
    slow = FORMULA.power_limited_time(time, **rest, power=power)
    assert FORMULA.power_limited_time(time / quicker, **rest, power=power) <= slow * (1 + 1e-12)
    assert FORMULA.power_limited_time(time, **rest, power=power * more) <= slow * (1 + 1e-12)
    assert slow >= max(time, 6.5e-13 * (0.5 * flops + 70 * bytes_moved) / power) * (1 - 1e-12)


TRAINING = "llama-3.1-405b-training-gb200-nvl72"
MORE = (
    "peak_bf16",
    "peak_fp8",
    "peak_fp4",
    "peak_vector",
    "hbm_bandwidth",
    "hbm_capacity",
    "tdp",
    "lane_bandwidth",
    "scale_out_bandwidth",
    "clock",
)
MORE += ("exponentials_per_clock", "dma_bandwidth")  # attributes of a chip of which more is better
ANY_HALL = {"site.rack_kw_max": "10000 kW"}  # more watts want more cooling
FACTORS = (1.1, 1.5, 2.0, 4.0)


def answers(name, path, factors):
    """Return the speed of training or the rate of serving as an input grows; more is better."""
    base = result(name)
    base_value = base.inputs[path]
    metrics = [
        base.metrics,
        *(
            evaluate(
                name, {path: f"{base_value.value * factor!r} {base_value.unit}", **ANY_HALL}
            ).metrics
            for factor in factors
        ),
    ]
    return [
        1 / metric_values["step_s"]
        if metric_values["step_s"] is not None
        else metric_values["output_tokens_per_s_per_chip"] or 0.0
        for metric_values in metrics
    ]


def paths_of(name):
    inputs = result(name).inputs
    return [
        path
        for path in inputs
        if path.startswith("parts.") and path.rpartition(".")[2] in MORE and inputs[path].value > 0
    ]


def refuse_worse(name, paths, factors):
    answers_by_path = {path: answers(name, path, factors) for path in paths}
    assert not {
        path: path_answers
        for path, path_answers in answers_by_path.items()
        if any(more < less * (1 - 1e-6) for less, more in pairwise(path_answers))
    }


@pytest.mark.parametrize("name", [TRAINING, "gb200-nvl72"])
def test_a_faster_peak_is_never_slower(name):
    refuse_worse(name, [path for path in paths_of(name) if "peak" in path], (2.0,))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        TRAINING,
        "llama-3.1-405b-training-trn3-nl72x2",
        "gb200-nvl72",
        "trn3-nl32x2",
        "trn3-nl72x2",
        "mi450x-ualoe72",
    ],
)
def test_more_of_anything_is_never_slower(name):
    paths = paths_of(name)
    assert len(paths) >= 6
    refuse_worse(name, paths, FACTORS)
