"""Each of many draws equals its own evaluation, with its batch, plan and structure.

Plan and structure are chosen again where the draw decides them.
"""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco import DataError
from tco.scenario import evaluate_samples, pilot_draws
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import DRAWS_PER_CALL

ROOM = {"site.rack_kw_max": "900 kW", "workload.draft_tokens": "0"}
TOKEN, USER, RATE = (
    "usd_per_million_output_tokens",
    "tokens_per_s_per_user",
    "output_tokens_per_s_per_chip",
)
TRN3, GB200, A100 = "trn3-nl72x2", "gb200-nvl72", "train-gpt3-175b-a100x64"
# a job whose plans are few
SMALL = {
    "workload.model": "llama-3.1-8b",
    "cluster.chips": "16",
    "workload.global_batch": "16",
}
SWITCH = "parts.scorpio-p-32.price"


def draws_of(name, count, share=0.5, seed=5, more=ROOM):
    """Draws of every input that has a range, a share of it wide in logarithm, around its value."""
    base, generator = tco.evaluate(name, more, catalogue=CATALOGUE), np.random.default_rng(seed)
    structural_paths = {
        path for path, reading in base.structure.readings.items() if not isinstance(reading, bool)
    }
    ranged = {
        path: ranged_input
        for path, ranged_input in base.inputs.items()
        if ranged_input.low is not None
        and ranged_input.low < ranged_input.high
        and path not in structural_paths
    }
    drawn = {}
    for (path, ranged_input), range_offsets in zip(
        ranged.items(), generator.uniform(-share, share, (len(ranged), count)), strict=True
    ):
        if ranged_input.low > 0:
            drawn_values = ranged_input.value * np.where(
                range_offsets < 0,
                ranged_input.low / ranged_input.value,
                ranged_input.high / ranged_input.value,
            ) ** np.abs(range_offsets)
        else:
            drawn_values = (
                ranged_input.value
                + np.where(
                    range_offsets < 0,
                    ranged_input.value - ranged_input.low,
                    ranged_input.high - ranged_input.value,
                )
                * range_offsets
            )
        drawn[path] = (drawn_values, ranged_input.unit)
    return base, drawn


def test_a_draw_has_the_network_it_has_by_itself_whatever_links_other_draws_have():
    """A module of longer reach is cheap, and a draw of short links does not take it."""
    lengths, cheap = [50.0, 600.0, 400.0], ROOM | {"parts.optic-800g-fr4.price": "1 USD"}
    drawn = evaluate_samples.evaluate_draws(
        TRN3, cheap | {"cluster.cable_length": (np.array(lengths), "m")}, catalogue=CATALOGUE
    )
    results = [
        tco.evaluate(TRN3, cheap | {"cluster.cable_length": f"{length} m"}, catalogue=CATALOGUE)
        for length in lengths
    ]
    network = [result.metrics["network_usd_per_chip"] for result in results]
    assert drawn.metrics["network_usd_per_chip"] == pytest.approx(network, rel=1e-9)
    assert network[0] > network[1]


def one_of(drawn, draw_index):
    return {
        path: (float(drawn_values[draw_index]), unit)
        for path, (drawn_values, unit) in drawn.items()
    }


@pytest.mark.parametrize(
    ("name", "software", "quick"), [(TRN3, "drawn", "50 token/s"), (GB200, "public", "150 token/s")]
)
def test_the_target_or_the_memory_binds_in_every_draw(name, software, quick):
    room = ROOM | {
        "workload.software": software,
        "workload.interactivity": quick,
        "workload.ttft": "0 s",
    }
    base, drawn = draws_of(name, 64, more=room)
    draw_results = tco.evaluate_draws(
        name, room | drawn, structure=base.structure, catalogue=CATALOGUE
    )
    per_user, target = draw_results.metrics[USER], base.inputs["workload.interactivity"].value
    assert 0.3 < draw_results.meets.mean() < 1  # draws of both kinds are held to what follows
    assert np.all(per_user[draw_results.meets] >= target * (1 - 1e-9))
    # steps in time and memory keep few above it
    assert np.mean(per_user[draw_results.meets] <= target * 1.005) > 0.8
    assert np.all(draw_results.sequences[~draw_results.meets] == 1)
    assert [*draw_results.structures] == [base.structure]


@pytest.mark.parametrize("name", [TRN3, GB200])
def test_where_the_search_for_a_batch_begins_does_not_matter(name):
    """The search for a batch ends alike from the centre, from one, or from far beyond memory.

    Draws on a step of tiles or waves may differ.
    """
    base, drawn = draws_of(name, 256)
    plan = base.structure.plan
    start_results = []
    for begin in (plan.decode.sequences, 1.0, 1e6):
        start_structure = base.structure._replace(
            plan=plan._replace(decode=plan.decode._replace(sequences=begin))
        )
        start_results.append(
            tco.evaluate_draws(name, ROOM | drawn, structure=start_structure, catalogue=CATALOGUE)
        )
    for start_result in start_results[1:]:
        assert np.array_equal(start_result.meets, start_results[0].meets)
        batch_differences = np.abs(start_result.sequences / start_results[0].sequences - 1)
        assert np.median(batch_differences) < 2e-4
        assert np.mean(batch_differences > 2e-3) < 0.02


def test_a_batch_that_is_solved_is_evaluated_as_any_other():
    base, drawn = draws_of(TRN3, 6)
    draw_results = tco.evaluate_draws(
        TRN3, ROOM | drawn, structure=base.structure, catalogue=CATALOGUE
    )
    for draw_index in range(6):
        plan = base.plan._replace(
            decode=base.plan.decode._replace(sequences=float(draw_results.sequences[draw_index]))
        )
        single_result = tco.evaluate(
            TRN3,
            ROOM | one_of(drawn, draw_index),
            plan,
            structure=base.structure,
            catalogue=CATALOGUE,
        )
        for metric, value in single_result.metrics.items():
            assert value is None or value == pytest.approx(
                draw_results.metrics[metric][draw_index], rel=1e-12
            ), metric


@pytest.mark.parametrize("name", [TRN3, GB200])
def test_a_chosen_plan_is_at_least_the_one_held_and_the_one_a_search_finds(name):
    """A plan chosen in a draw is no worse than the held plan and the plan of a search.

    A batch is solved where the search takes one from a grid, so only a plan far from the best
    at the centre could be better.
    """
    _, drawn = draws_of(name, 8)
    held_results, free = (
        tco.evaluate_draws(name, ROOM | drawn, hold=hold, catalogue=CATALOGUE)
        for hold in (True, False)
    )
    assert np.all(
        free.metrics[TOKEN][held_results.meets]
        <= held_results.metrics[TOKEN][held_results.meets] * (1 + 2e-3)
    )
    for draw_index in range(8):
        single_result = tco.evaluate(name, ROOM | one_of(drawn, draw_index), catalogue=CATALOGUE)
        # with its own switches
        assert single_result.metrics["capex_usd"] == pytest.approx(
            free.metrics["capex_usd"][draw_index], rel=1e-12
        )
        assert bool(free.meets[draw_index]) == (single_result.plan is not None)
        if single_result.plan is not None:
            # before a step of tiles, which a draw may lie beyond
            quicker = (
                single_result.metrics[USER] / single_result.inputs["workload.interactivity"].value
            )
            assert free.metrics[RATE][draw_index] >= single_result.metrics[RATE] / quicker * (
                1 - 2e-3
            )
            assert free.metrics[RATE][draw_index] <= single_result.metrics[RATE] * 1.3


@pytest.mark.parametrize("name", [TRN3, GB200])
def test_plans_that_are_the_best_in_some_draws_are_enough_for_the_others(name, monkeypatch):
    """Plans that are best in pilot draws suffice for all draws.

    Each draw of the hundredth that is weighed whole stands for a hundred; every plan in every
    draw is the reference.
    """
    _, drawn = draws_of(name, 800, share=1.0)
    full_results = tco.evaluate_draws(name, ROOM | drawn, catalogue=CATALOGUE)
    monkeypatch.setattr(pilot_draws, "PILOTS", 80)
    pilot_results = tco.evaluate_draws(name, ROOM | drawn, catalogue=CATALOGUE)
    assert (pilot_results.meets == full_results.meets).mean() > 0.99
    both = pilot_results.meets & full_results.meets
    assert (
        np.mean(pilot_results.metrics[TOKEN][both] > full_results.metrics[TOKEN][both] * (1 + 1e-3))
        < 0.05
    )


def test_a_point_that_misses_its_target_has_draws_that_meet_it():
    """No plan meets the target at the centre; one does in draws of quick launches and links."""
    fast = ROOM | {"workload.interactivity": "80 token/s"}
    base, drawn = draws_of(TRN3, 24, share=1.0, more=fast)
    assert base.plan is None
    draw_results = tco.evaluate_draws(TRN3, fast | drawn, catalogue=CATALOGUE)
    for draw_index in range(24):
        single_result = tco.evaluate(TRN3, fast | one_of(drawn, draw_index), catalogue=CATALOGUE)
        assert bool(draw_results.meets[draw_index]) == (single_result.plan is not None)
    assert draw_results.meets.any()


def test_training_takes_the_quickest_plan_that_fits():
    base, drawn = draws_of(A100, 4, more=SMALL)
    held_results, free = (
        tco.evaluate_draws(A100, SMALL | drawn, hold=hold, catalogue=CATALOGUE)
        for hold in (True, False)
    )
    assert held_results.sequences is None
    assert np.all(
        free.metrics["step_s"][held_results.meets]
        <= held_results.metrics["step_s"][held_results.meets]
    )
    for draw_index in range(4):
        searched_step_time = tco.evaluate(
            A100, SMALL | one_of(drawn, draw_index), catalogue=CATALOGUE
        ).metrics["step_s"]
        assert free.meets[draw_index]
        assert (
            searched_step_time
            <= free.metrics["step_s"][draw_index] * (1 + 1e-12)
            <= searched_step_time * 1.05
        )
        held_step_time = tco.evaluate(
            A100, SMALL | one_of(drawn, draw_index), structure=base.structure, catalogue=CATALOGUE
        ).metrics["step_s"]
        assert held_results.metrics["step_s"][draw_index] == pytest.approx(
            held_step_time, rel=1e-12
        )


def test_draws_get_the_switch_that_is_cheapest_for_them():
    prices = np.linspace(100, 1000, 7)
    draw_results = tco.evaluate_draws(TRN3, {SWITCH: (prices, "USD")}, catalogue=CATALOGUE)
    assert len(draw_results.structures) == 2
    for draw_index, price in enumerate(prices):
        single_result = tco.evaluate(TRN3, {SWITCH: (price, "USD")}, catalogue=CATALOGUE)
        assert (
            draw_results.structures[draw_results.structure_of[draw_index]].alternatives
            == single_result.structure.alternatives
        )
        assert draw_results.metrics["capex_usd"][draw_index] == pytest.approx(
            single_result.metrics["capex_usd"], rel=1e-12
        )
    held_capex = tco.evaluate_draws(
        TRN3, {SWITCH: (prices, "USD")}, hold=True, catalogue=CATALOGUE
    ).metrics["capex_usd"]
    assert np.diff(held_capex) == pytest.approx(np.full(6, held_capex[1] - held_capex[0]), rel=1e-9)
    assert held_capex[-1] > draw_results.metrics["capex_usd"][-1]


def test_another_size_of_cluster_has_tiers_and_plans_of_its_own():
    chips = np.array([16.0, 16.0, 32.0])
    draw_results = tco.evaluate_draws(
        A100,
        SMALL | {"cluster.chips": chips, "terms.rate": np.array([0.1, 0.2, 0.1])},
        catalogue=CATALOGUE,
    )
    assert list(draw_results.structure_of) == [0, 0, 1]
    single_step_time = tco.evaluate(
        A100, SMALL | {"cluster.chips": "32"}, catalogue=CATALOGUE
    ).metrics["step_s"]
    assert draw_results.metrics["step_s"][2] == pytest.approx(single_step_time, rel=1e-12)


def test_sizes_that_decide_the_same_are_of_one_structure():
    sizes = {
        "cluster.chips": np.array([4096.0, 131072.0, 16384.0, 8192.0]),
        "performance.neuron.prompt_bucket": np.array([128.0, 512.0, 512.0, 2048.0]),
    }
    draw_results = tco.evaluate_draws(
        TRN3, {"cluster.switch": "51.2T"} | sizes, catalogue=CATALOGUE
    )
    assert (
        draw_results.structure_of[0]
        == draw_results.structure_of[2]
        == draw_results.structure_of[3]
        != draw_results.structure_of[1]
    )
    for draw_index in range(4):
        single_result = tco.evaluate(
            TRN3,
            {"cluster.switch": "51.2T"}
            | {path: size_values[draw_index] for path, size_values in sizes.items()},
            catalogue=CATALOGUE,
        )
        assert {
            name: draw_results.metrics[name][draw_index]
            for name in (TOKEN, "ttft_s", "network_usd_per_chip")
        } == pytest.approx(
            {
                name: single_result.metrics[name]
                for name in (TOKEN, "ttft_s", "network_usd_per_chip")
            },
            rel=1e-9,
        )


def test_requests_in_flight_have_no_batch_to_solve():
    settings = ROOM | {
        "workload.concurrency": "512",
        "parts.gb200-gpu.hbm_bandwidth": (np.array([6.0, 8.0]), "TB/s"),
    }
    draw_results = tco.evaluate_draws(GB200, settings, catalogue=CATALOGUE)
    for draw_index, rate in enumerate((6.0, 8.0)):
        single_result = tco.evaluate(
            GB200, settings | {"parts.gb200-gpu.hbm_bandwidth": (rate, "TB/s")}, catalogue=CATALOGUE
        )
        assert draw_results.metrics[RATE][draw_index] == pytest.approx(
            single_result.metrics[RATE], rel=1e-9
        )


def test_number_of_draws_per_piece_changes_no_value():
    base, drawn = draws_of(GB200, DRAWS_PER_CALL + 10)
    full_results = tco.evaluate_draws(
        GB200, ROOM | drawn, structure=base.structure, catalogue=CATALOGUE
    )
    last = {path: (drawn_values[-20:], unit) for path, (drawn_values, unit) in drawn.items()}
    part = tco.evaluate_draws(GB200, ROOM | last, structure=base.structure, catalogue=CATALOGUE)
    assert full_results.metrics[TOKEN][-20:] == pytest.approx(part.metrics[TOKEN], rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "nothing is drawn"),
        ({"terms.rate": "0.1"}, "nothing is drawn"),
        (
            {"terms.rate": np.ones(3) / 10, "site.pue": np.full(2, 1.2)},
            r"all of one length: terms\.rate has 3, site\.pue has 2",
        ),
        ({"terms.rate": np.ones((2, 2)) / 10}, r"terms\.rate has 2x2"),
    ],
    ids=str,
)
def test_impossible_draws_are_refused(settings, words):
    with pytest.raises(DataError, match=words):
        tco.evaluate_draws(TRN3, settings, catalogue=CATALOGUE)
