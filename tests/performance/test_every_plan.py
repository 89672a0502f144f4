"""Each of many plans computed at once gives the values that it gives by itself."""

from __future__ import annotations

import numpy as np
import pytest

from tco.performance.serving.passes import evaluate_prefill
from tco.performance.serving.plans import quantity_at_plan
from tests.performance.servers import (
    PrefillPlan,
    decode_axes,
    decode_pass,
    decode_plan_from_axes,
    plan_axes,
)
from tests.scenario_helpers import inputs_of, serving_workload

# a switch, tiles in waves, and large arrays on two racks
SCENARIOS = (
    "gb200-nvl72",
    "mi450x-ualoe72",
    "trn3-nl72x2",
)
# an indexer; sequences split over ranks
SETTINGS = (
    {},
    {"workload.model": "deepseek-v3.2"},
    {"workload.input_tokens": "60000"},
)
SIZES = np.array([[1.0, 6.0, 48.0]])  # sequences of a group


@pytest.fixture(
    params=[(name, number) for name in SCENARIOS for number in range(len(SETTINGS))],
    ids=lambda scenario_case: f"{scenario_case[0]}-{scenario_case[1]}",
)
def server(request, catalogue):
    name, number = request.param
    inputs = inputs_of(name, SETTINGS[number])
    return serving_workload(inputs, inputs.values())


def every_fifth_plan(axes):
    """Every fifth plan of a search, with its row."""
    return [
        (row, PrefillPlan(*(float(axis[row, 0]) for axis in axes)))
        for row in range(0, len(axes.chips), 5)
    ]


def same(batched_pass, single_pass, plan_index):
    """Compare time, memory and every operator of a plan of many with those it has alone."""
    assert quantity_at_plan(batched_pass.time, plan_index) == pytest.approx(
        single_pass.time, rel=1e-12
    )
    assert quantity_at_plan(batched_pass.memory, plan_index) == pytest.approx(
        single_pass.memory, rel=1e-12
    )
    names = [operator.name for operator in single_pass.operators]
    # exchanges that no part of this plan makes
    wider = [operator for operator in batched_pass.operators if operator.name in names]
    assert [operator.name for operator in wider] == names
    for batched_operator, single_operator in zip(wider, single_pass.operators, strict=True):
        assert quantity_at_plan(batched_operator.time, plan_index) == pytest.approx(
            single_operator.time, rel=1e-12
        )


def test_decode_of_many_plans_equals_that_of_each(server):
    axes = decode_axes(server)
    batched_pass = decode_pass(server, decode_plan_from_axes(axes, SIZES))
    for row, plan in every_fifth_plan(axes):
        for column, size in enumerate(SIZES[0]):
            same(
                batched_pass,
                decode_pass(server, decode_plan_from_axes(plan, float(size))),
                (row, column),
            )


def test_prefill_of_many_plans_equals_that_of_each(server):
    machine, model, request = server
    axes = plan_axes(model, machine.links, request.prompt)
    batched_pass = evaluate_prefill(server, axes)
    for row, plan in every_fifth_plan(axes):
        same(batched_pass, evaluate_prefill(server, plan), (row, 0))


def test_decode_of_plans_with_own_batches_equals_that_of_each(server):
    axes = decode_axes(server)
    sizes = 1.0 + np.arange(len(axes.chips), dtype=float)[:, None]
    batched_pass = decode_pass(server, decode_plan_from_axes(axes, sizes))
    for row, plan in every_fifth_plan(axes):
        same(
            batched_pass,
            decode_pass(server, decode_plan_from_axes(plan, float(sizes[row, 0]))),
            (row, 0),
        )
