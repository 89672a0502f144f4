"""Nothing beats a point of the frontier, and it goes through the plan of `tco perf`.

Pools of two systems follow from each system's own pool.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tco import DataError, frontier
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import HEADLINE
from tests.study_helpers import evaluate_plan_grid

TRN3, GB200 = "trn3-nl72x2", "gb200-nvl72"


@cache
def alone(name, *settings):
    (system_frontier,) = frontier([name], set=dict(settings))
    return system_frontier


@cache
def pair(decode, prefill, *settings):
    """Pools of their own, handing caches over."""
    return frontier([decode], [prefill], set=dict(settings))[-1]


def result(name, *settings):
    return alone(name, *settings).decode.result


@pytest.mark.parametrize("name", HEADLINE)
def test_less_speed_costs_less(name):
    points = alone(name).points
    assert len(points) >= 10
    assert np.all(np.diff([point.tokens_per_s_per_user for point in points]) < 0)
    assert np.all(np.diff([point.usd_per_million_output_tokens for point in points]) < 0)


@pytest.mark.parametrize("name", HEADLINE)
def test_no_pair_of_plans_beats_a_point(name):
    """Against the whole grid, by brute force."""
    grid = evaluate_plan_grid(alone(name).decode, alone(name).prefill, separate=False)
    speed = np.broadcast_to(1 / grid.step.per_token, grid.cost.shape)
    for point in alone(name).points:
        quicker = speed >= point.tokens_per_s_per_user * (1 - 1e-12)
        assert grid.cost[quicker].min() == pytest.approx(
            point.usd_per_million_output_tokens, rel=1e-12
        )


@pytest.mark.parametrize("name", HEADLINE)
def test_the_chosen_point_is_the_plan_of_the_scenario(name):
    chosen_point, metrics = alone(name).chosen, result(name).metrics
    assert chosen_point is not None
    for field in (
        "tokens_per_s_per_user",
        "output_tokens_per_s_per_chip",
        "input_tokens_per_s_per_chip",
        "usd_per_million_output_tokens",
        "usd_per_million_tokens",
        "tokens_per_s_per_facility_mw",
        "tpot_s",
        "ttft_s",
    ):
        assert getattr(chosen_point, field) == pytest.approx(metrics[field], rel=1e-9), field
    plan = result(name).plan
    assert (chosen_point.chips, chosen_point.tp, chosen_point.prefill_chips) == (
        plan.decode.chips,
        plan.decode.tensor_parallel,
        plan.prefill.chips,
    )


def test_interactivity_moves_only_the_mark_and_the_batch_solved_for_it():
    slow = alone(TRN3, ("workload.interactivity", "20 token/s"))
    solved = {
        system_frontier.decode.result.plan.decode.sequences
        for system_frontier in (alone(TRN3), slow)
    }

    def of_the_grid(system_frontier):
        return {
            point._replace(chosen=False)
            for point in system_frontier.points
            if point.batch * point.tp * point.cp / point.chips not in solved
        }

    slow_points, usual_points = of_the_grid(slow), of_the_grid(alone(TRN3))
    # a solved batch beats a neighbour here and there
    assert len(slow_points & usual_points) >= 0.85 * len(slow_points | usual_points)
    assert slow.chosen.tokens_per_s_per_user < alone(TRN3).chosen.tokens_per_s_per_user


@pytest.mark.parametrize(("decode", "prefill"), [(TRN3, GB200), (GB200, TRN3)])
def test_pair_of_pools_has_the_cheapest_split_of_its_chips(decode, prefill):
    """No other split of the chips costs less than the answer's.

    A share x of chips that decode and 1 - x that read make ((x D)^-p + ((1 - x) P)^-p)^(-1/p).
    """
    # as deployed prompts take as long as the speed of what decodes makes them
    tuned = (
        "workload.as_deployed",
        "0",
    )
    mixed, decode_point, prefill_point = (
        pair(*both, tuned).chosen
        for both in ((decode, prefill), (decode, decode), (prefill, prefill))
    )
    hours = {name: result(name).metrics["tco_usd_per_used_chip_hour"] for name in (decode, prefill)}
    sharpness = result(decode).inputs["performance.serving.pool_sharpness"].value
    # of one system the best split is known in closed form, and with it what each pool makes alone
    q = 1 / (1 + 1 / sharpness)
    decode_rate = decode_point.output_tokens_per_s_per_chip / (1 - decode_point.prefill_share) ** (
        1 / q
    )
    read = prefill_point.output_tokens_per_s_per_chip / prefill_point.prefill_share ** (1 / q)
    share = np.linspace(0.01, 0.99, 100_001)
    rate = ((share * decode_rate) ** -sharpness + ((1 - share) * read) ** -sharpness) ** (
        -1 / sharpness
    )
    costs = (hours[decode] * share + hours[prefill] * (1 - share)) / rate / 3600 * 1e6
    best = share[costs.argmin()]
    assert mixed.usd_per_million_output_tokens == pytest.approx(costs.min(), rel=1e-8)
    assert mixed.prefill_chips_per_decode_chip == pytest.approx((1 - best) / best, rel=1e-3)


def test_a_hand_over_takes_the_cache_through_the_slower_network():
    """A hand-over moves 576 numbers of one byte in each of 61 layers for 8,192 tokens.

    The first token waits for it.
    """
    point, inside = pair(TRN3, TRN3).chosen, alone(TRN3).chosen
    assert point.hand_over_bytes == 576 * 61 * 8192
    assert inside.hand_over_s is None
    # a tenth is left when the prompt ends
    assert point.ttft_s == pytest.approx(inside.ttft_s + 0.1 * point.hand_over_s, rel=1e-12)
    assert point.usd_per_million_output_tokens == pytest.approx(
        inside.usd_per_million_output_tokens, rel=1e-12
    )


def test_a_thin_network_starves_the_pools():
    rates = [
        pair(TRN3, TRN3, ("parts.trn3.scale_out_bandwidth", text), ("workload.ttft", "0 s")).points
        for text in ("25 GB/s", "1 MB/s")
    ]
    assert (
        rates[1][-1].output_tokens_per_s_per_chip < 0.1 * rates[0][-1].output_tokens_per_s_per_chip
    )
    assert rates[1][-1].ttft_s > 10 * rates[0][-1].ttft_s


def test_the_prefill_pool_takes_on_the_workload(tmp_path):
    usual = CATALOGUE.scenarios[TRN3].read_text(encoding="utf-8")
    (tmp_path / "short.toml").write_text(
        f'{usual}\n[set]\n"workload.output_tokens" = "256"\n', encoding="utf-8"
    )
    assert (
        frontier([str(tmp_path / "short.toml")], [GB200])[-1].prefill.values[
            "workload.output_tokens"
        ]
        == 256
    )


def test_the_cheapest_points_of_several_systems():
    points = [
        point for system_frontier in frontier([TRN3, GB200]) for point in system_frontier.points
    ]
    for point in points:
        beaten = any(
            rival_point.tokens_per_s_per_user >= point.tokens_per_s_per_user
            and rival_point.usd_per_million_output_tokens < point.usd_per_million_output_tokens
            for rival_point in points
        )
        assert point.cheapest != beaten


def test_model_that_does_not_fit_has_a_reason():
    system_frontier = alone("trn1-16", ("workload.model", "moe-5t"))
    assert (system_frontier.points, system_frontier.chosen) == ([], None)
    assert "the model does not fit" in system_frontier.reason


def test_limit_that_no_prompt_meets_leaves_no_points():
    assert "first token within 0.001 s" in alone(TRN3, ("workload.ttft", "1 ms")).reason


def test_training_has_no_frontier():
    with pytest.raises(DataError, match="its workload trains"):
        alone("train-gpt3-175b-a100x64")
