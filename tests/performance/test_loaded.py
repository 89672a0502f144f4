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
    """Plans that split attention alike over more chips hold other batches of requests in flight."""
    model_server = server(name, workload__concurrency="512")
    machine, model = model_server.machine, model_server.model
    axes = plan_axes(model, machine.links, 0)

    def rates(plan):
        engines = ServingPlan(
            decode_plan_from_axes(plan, 1.0), plan, np.maximum(machine.links.world / plan.chips, 1)
        )
        return loaded_engine_rates(model_server, engines).rates["output_tokens_per_s_per_chip"]

    batched_rates = np.broadcast_to(rates(axes), axes.chips.shape)
    for row, batched_rate in enumerate(batched_rates[:, 0]):
        assert batched_rate == pytest.approx(
            rates(PrefillPlan(*(float(axis[row, 0]) for axis in axes))), rel=1e-12
        ), row


@pytest.mark.parametrize("concurrency", [64, 512])
def test_engines_hold_the_requests_in_flight_in_whole_sequences(concurrency):
    """An attention group runs a whole number of sequences.

    All groups of a domain together have no more than a sequence each too many.
    """
    evaluation = tco.evaluate("gb200-nvl72", {"workload.concurrency": str(concurrency)})
    plan = evaluation.plan.decode
    groups = evaluation.plan.engines * plan.chips / (plan.tensor_parallel * plan.context_parallel)
    assert concurrency <= plan.sequences * groups < concurrency + groups


def test_best_plan_under_load_that_is_in_time_is_chosen():
    """The chosen plan makes the most tokens per chip of those that fit and are in time.

    Each plan is evaluated by itself; it is in time if it is quick enough and answers soon
    enough.
    """
    model_server = server(
        "gb200-nvl72",
        workload__concurrency="512",
        workload__ttft="5 s",
        workload__interactivity="20 token/s",
    )
    machine, model = model_server.machine, model_server.model
    axes = offered_axes(machine, model, 0)
    single_plans = (
        PrefillPlan(*(float(axis[row, 0]) for axis in axes)) for row in range(len(axes.chips))
    )
    whole_world_plans = [
        plan
        for plan in single_plans
        if machine.links.world % plan.chips == 0 or plan.chips > machine.links.world
    ]
    speed, soon = (
        model_server.machine.values["workload.interactivity"],
        model_server.machine.values["workload.ttft"],
    )
    rates = {}
    for plan in whole_world_plans:
        engines = ServingPlan(
            decode_plan_from_axes(plan, 1.0), plan, np.maximum(machine.links.world / plan.chips, 1)
        )
        loaded_rates = loaded_engine_rates(model_server, engines)
        in_time = (
            loaded_rates.rates["ttft_s"] <= soon
            and loaded_rates.rates["tokens_per_s_per_user"] >= speed
        )
        if loaded_rates.fits and in_time:
            rates[plan] = float(loaded_rates.rates["output_tokens_per_s_per_chip"])
    best = max(rates, key=rates.__getitem__)
    assert len(rates) > 3
    settings = {
        "workload.concurrency": "512",
        "workload.ttft": "5 s",
        "workload.interactivity": "20 token/s",
        "workload.draft_tokens": "0",
    }
    settings |= {"workload.software": "10000 months", "workload.as_deployed": "0"}
    chosen = tco.evaluate_draws("gb200-nvl72", settings | {"terms.rate": np.array([0.1, 0.2])})
    assert chosen.metrics["output_tokens_per_s_per_chip"] == pytest.approx(rates[best], rel=1e-9)


def test_attention_splits_as_far_as_its_widest_layer():
    """A model whose first layers have half the heads splits as far as the other layers do.

    Chips beyond the narrower heads repeat them.
    """
    model_server = server("gb200-nvl72")
    first, *rest = model_server.model.blocks
    narrow = first._replace(attention=first.attention._replace(heads=first.attention.heads // 16))
    mixed = model_server.model._replace(blocks=(narrow, *rest))
    tensor_splits = [
        set(plan_axes(model, model_server.machine.links, 0).tensor_parallel[:, 0])
        for model in (model_server.model, mixed)
    ]
    assert tensor_splits[0] == tensor_splits[1]
    assert max(tensor_splits[1]) > narrow.attention.heads


EIGHT = {
    "workload.model": "llama-3.1-8b",
    "workload.concurrency": "64",
    "workload.input_tokens": "1024",
    "workload.output_tokens": "128",
}
ONE = {"chips": 1, "tp": 1, "pp": 1, "ep": 1}


@pytest.mark.parametrize(("engine", "moves"), [("sglang", True), ("trtllm", False)])
def test_requests_of_equal_lengths_keep_step_where_prompts_are_read_first(engine, moves):
    """Requests that start together wait less between tokens and more before the first one.

    They wait for the other prompts.
    """
    workload_settings = EIGHT | {
        "workload.engine": engine,
        "workload.as_deployed": "0",
        "workload.interactivity": "0.001 token/s",
    }
    unequal_metrics, alike = (
        tco.evaluate(
            "h100-sxm",
            workload_settings | {"workload.equal_lengths": flag},
            ONE,
            catalogue=CATALOGUE,
        ).metrics
        for flag in "01"
    )
    assert (alike["tpot_s"] < 0.9 * unequal_metrics["tpot_s"]) is moves
    assert (alike["ttft_s"] > 1.2 * unequal_metrics["ttft_s"]) is moves
