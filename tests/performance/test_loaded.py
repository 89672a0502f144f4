"""Engines with requests in flight, many plans at once: each gets what it gets alone."""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco.performance.serving.closed_loop import loaded_engine_rates
from tco.performance.serving.plan_choice import offered_axes
from tco.performance.serving.plans import ServingPlan
from tests.catalogue import CATALOGUE
from tests.performance.servers import PrefillPlan, decode_plan_from_axes, plan_axes, server


@pytest.mark.parametrize("name", ["gb200-nvl72", "trn3-nl32x2"])
def test_plans_of_one_split_run_batches_of_their_own(name):
    """Plans that split attention alike but span more chips hold other batches of the requests in
    flight.
    """
    made = server(name, workload__concurrency="512")
    machine, model, request = made.machine, made.model, made.request
    axes = plan_axes(model, machine.links, 0)

    def rates(plan):
        engines = ServingPlan(
            decode_plan_from_axes(plan, 1.0), plan, np.maximum(machine.links.world / plan.chips, 1)
        )
        return loaded_engine_rates(machine, model, engines, request, machine.values).rates[
            "output_tokens_per_s_per_chip"
        ]

    many = np.broadcast_to(rates(axes), axes.chips.shape)
    for row, found in enumerate(many[:, 0]):
        assert found == pytest.approx(
            rates(PrefillPlan(*(float(axis[row, 0]) for axis in axes))), rel=1e-12
        ), row


@pytest.mark.parametrize("concurrency", [64, 512])
def test_engines_hold_the_requests_in_flight_in_whole_sequences(concurrency):
    """An attention group runs a whole number of sequences, and all groups of a world together no
    more than a sequence each too many.
    """
    found = tco.evaluate("gb200-nvl72", {"workload.concurrency": str(concurrency)})
    plan = found.plan.decode
    groups = found.plan.engines * plan.chips / (plan.tensor_parallel * plan.context_parallel)
    assert concurrency <= plan.sequences * groups < concurrency + groups


def test_of_plans_under_load_the_best_in_time_is_taken():
    """Each plan asked alone: of those that fit, are quick enough and answer soon enough, the one
    with the most tokens a chip.
    """
    made = server(
        "gb200-nvl72",
        workload__concurrency="512",
        workload__ttft="5 s",
        workload__interactivity="20 token/s",
    )
    machine, model, request = made.machine, made.model, made.request
    axes = offered_axes(machine, model, 0)
    alone = (PrefillPlan(*(float(axis[row, 0]) for axis in axes)) for row in range(len(axes.chips)))
    kept = [
        plan
        for plan in alone
        if machine.links.world % plan.chips == 0 or plan.chips > machine.links.world
    ]
    speed, soon = (
        made.machine.values["workload.interactivity"],
        made.machine.values["workload.ttft"],
    )
    rates = {}
    for plan in kept:
        engines = ServingPlan(
            decode_plan_from_axes(plan, 1.0), plan, np.maximum(machine.links.world / plan.chips, 1)
        )
        found = loaded_engine_rates(machine, model, engines, request, machine.values)
        in_time = found.rates["ttft_s"] <= soon and found.rates["tokens_per_s_per_user"] >= speed
        if found.fits and in_time:
            rates[plan] = float(found.rates["output_tokens_per_s_per_chip"])
    best = max(rates, key=rates.__getitem__)
    assert len(rates) > 3
    asked = {
        "workload.concurrency": "512",
        "workload.ttft": "5 s",
        "workload.interactivity": "20 token/s",
        "workload.draft_tokens": "0",
    }
    asked |= {"workload.software": "10000 months", "workload.as_deployed": "0"}
    chosen = tco.evaluate_draws("gb200-nvl72", asked | {"terms.rate": np.array([0.1, 0.2])})
    assert chosen.metrics["output_tokens_per_s_per_chip"] == pytest.approx(rates[best], rel=1e-9)


def test_the_widest_layer_says_how_far_attention_splits():
    """A model whose first layers have half the heads splits as far as the others do: chips beyond
    the narrower heads repeat them.
    """
    made = server("gb200-nvl72")
    first, *rest = made.model.blocks
    narrow = first._replace(attention=first.attention._replace(heads=first.attention.heads // 16))
    mixed = made.model._replace(blocks=(narrow, *rest))
    ways = [
        set(plan_axes(model, made.machine.links, 0).tensor_parallel[:, 0])
        for model in (made.model, mixed)
    ]
    assert ways[0] == ways[1]
    assert max(ways[1]) > narrow.attention.heads


EIGHT = {
    "workload.model": "llama-3.1-8b",
    "workload.concurrency": "64",
    "workload.input_tokens": "1024",
    "workload.output_tokens": "128",
}
ONE = {"chips": 1, "tp": 1, "pp": 1, "ep": 1}


@pytest.mark.parametrize(("engine", "moves"), [("sglang", True), ("trtllm", False)])
def test_requests_of_equal_lengths_keep_step_where_prompts_are_read_first(engine, moves):
    """All start together: of what the other prompts take, a request meets less between its tokens
    and more before the first of them.
    """
    asked = EIGHT | {
        "workload.engine": engine,
        "workload.as_deployed": "0",
        "workload.interactivity": "0.001 token/s",
    }
    apart, alike = (
        tco.evaluate(
            "h100-sxm", asked | {"workload.equal_lengths": flag}, ONE, catalogue=CATALOGUE
        ).metrics
        for flag in "01"
    )
    assert (alike["tpot_s"] < 0.9 * apart["tpot_s"]) is moves
    assert (alike["ttft_s"] > 1.2 * apart["ttft_s"]) is moves
