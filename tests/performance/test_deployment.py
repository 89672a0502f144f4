"""Rates that deployments reach with chosen plans, by class, and none of it for stated plans."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tco
from tco.catalog import Catalogue
from tco.core.files import data_directory
from tco.performance.serving import classes
from tco.performance.serving.loaded_plans import LoadedPlans, near_frontier
from tco.scenario import candidate_plans
from tests.cli import tco as command
from tests.scenario_helpers import ALIKE, CATALOGUE, evaluate

RATE, SPEED, FIRST = "output_tokens_per_s_per_chip", "tokens_per_s_per_user", "ttft_s"
SYSTEMS = [name for name in CATALOGUE.ids("systems") if name != "trn4-preview"]
IN_EVERY_RUN = ("gb200-nvl72", "mi355x-8", "trn3-nl72x2", "tpuv7-cube64")
OPERATORS = ("fleet", "server", "apart", "benchmark")
NEWER = (
    ("gb200-nvl72", "gb300-nvl72"),
    ("b200-hgx8", "b300-hgx8"),
    ("h100-hgx8", "h200-hgx8"),
    ("mi300x-8", "mi325x-8"),
)


@cache
def evaluate_with(system, *settings):
    """Return the result of a system with settings written as `path=text`.

    A path stands below `workload` unless it names its group.
    """
    pairs = (text.partition("=")[::2] for text in settings)
    paths = {
        path if path.startswith(("parts.", "performance.")) else f"workload.{path}": text
        for path, text in pairs
    }
    return evaluate(system, paths, catalogue=CATALOGUE, refuse=False)


def rate(system, *settings):
    return evaluate_with(system, *settings).metrics[RATE] or 0.0


# ---------------------------------------------------------------- a factor on the rate of plans
# that are chosen
@pytest.mark.parametrize(
    ("system", "family", "chip"),
    [("gb200-nvl72", "nvidia", "gb200-gpu"), ("mi450x-ualoe72", "amd", "chip")],
)
def test_a_fleet_reaches_its_share_of_the_rate_at_the_speed_of_the_plan(system, family, chip):
    public = ("software=public", "interactivity=30 token/s")
    plain, deployed = (
        evaluate_with(system, *public, "as_deployed=0"),
        evaluate_with(system, *public),
    )
    share = np.prod(
        [
            CATALOGUE.practice(owner, "deployment_efficiency").value
            for owner in ("fleet", family, chip, "run")
        ]
    )
    assert deployed.metrics[RATE] == pytest.approx(plain.metrics[RATE] * share, rel=1e-12)
    assert (deployed.metrics[SPEED], deployed.metrics[FIRST]) == (
        plain.metrics[SPEED],
        plain.metrics[FIRST],
    )
    assert deployed.plan == plain.plan


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_engine_counts_for_all_but_a_fleet(operator):
    settings = (f"operated_by={operator}", "software=public", "interactivity=30 token/s")
    before, after = (
        rate("gb200-nvl72", *settings),
        rate("gb200-nvl72", *settings, "performance.trtllm.deployment_efficiency=0.61"),
    )
    assert after / before == pytest.approx(
        1
        if operator == "fleet"
        else 0.61 / CATALOGUE.practice("trtllm", "deployment_efficiency").value,
        rel=1e-12,
    )


@pytest.mark.parametrize("system", ["gb200-nvl72", "trn3-nl72x2", "mi355x-8", "tpuv7-cube64"])
def test_the_quickest_speed_of_a_plan_stays_what_it_is(system):
    impossible = ("interactivity=5000 token/s", "ttft=0 s")
    reasons = [
        evaluate_with(system, *impossible, f"as_deployed={flag}").serving.reason for flag in "01"
    ]
    assert "5000 are asked for" in reasons[0]
    assert reasons[0] == reasons[1]


@pytest.mark.parametrize("stated", ["plan", "load", "offline"])
def test_a_stated_plan_or_load_has_no_deployment_efficiency(stated):
    plan = {"tp": "8", "ep": "8"} if stated == "plan" else None
    settings = {
        "plan": {},
        "load": {"workload.concurrency": "256"},
        "offline": {"workload.offline": "1"},
    }[stated] | {"workload.interactivity": "1 token/s"}
    owners = ("fleet", "nvidia", "b200-sxm", "trtllm", "run-b200-hgx8")
    half = {f"performance.{owner}.deployment_efficiency": "0.5" for owner in owners}
    before, after, model = (
        evaluate("b200-hgx8", settings | more, plan, catalogue=CATALOGUE).metrics
        for more in ({}, half, {"workload.as_deployed": "0"})
    )
    assert before == after == model


@pytest.mark.parametrize("operator", OPERATORS)
def test_chosen_plan_gives_the_same_answer_again(operator, tmp_path):
    """A chosen plan answers the same when stated, held in its structure, or saved.

    The requests in flight that were chosen with it are part of it.
    """
    settings = {"workload.operated_by": operator}
    evaluation = evaluate("gb200-nvl72", settings, catalogue=CATALOGUE)
    assert evaluation.plan.stated is False
    assert (evaluation.plan.flight is None) == (operator == "fleet")
    evaluation.save(tmp_path / "kept.json")
    again = (
        evaluate("gb200-nvl72", settings, evaluation.plan, catalogue=CATALOGUE),
        evaluate("gb200-nvl72", settings, structure=evaluation.structure, catalogue=CATALOGUE),
    )
    saved = evaluate(
        "gb200-nvl72",
        settings,
        structure=tco.load_result(tmp_path / "kept.json").structure,
        catalogue=CATALOGUE,
    )
    for repeat in (*again, saved):
        assert repeat.metrics[RATE] == pytest.approx(evaluation.metrics[RATE], rel=1e-12)
        assert repeat.metrics[SPEED] == pytest.approx(evaluation.metrics[SPEED], rel=1e-12)


# ---------------------------------------------------------------- the best software, and better
# silicon
@pytest.mark.parametrize(
    "system",
    [
        pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.thorough)
        for name in SYSTEMS
    ],
)
def test_nothing_passes_the_best_software(system):
    for speed in (20, 50):
        speed_setting = f"interactivity={speed} token/s"
        best = rate(system, speed_setting, "software=best")
        assert rate(system, speed_setting, "software=best", "as_deployed=0") == pytest.approx(
            best, rel=1e-12
        )
        assert all(
            rate(system, speed_setting, f"software={text}") <= best * (1 + 1e-9)
            for text in ("public", "drawn")
        )


@pytest.mark.parametrize(
    ("speed", "form"),
    [
        (20, "precision=fp8"),
        pytest.param(30, "precision=fp8", marks=pytest.mark.thorough),
        pytest.param(20, "formats=native", marks=pytest.mark.thorough),
        pytest.param(30, "formats=native", marks=pytest.mark.thorough),
    ],
)
# a benchmark is the better of a server and of pools apart, as the test of that says
@pytest.mark.parametrize("operator", [name for name in OPERATORS if name != "benchmark"])
@pytest.mark.parametrize(("older", "newer"), NEWER)
def test_better_silicon_of_a_family_never_answers_worse(older, newer, operator, form, speed):
    workload_settings = (f"operated_by={operator}", form, f"interactivity={speed} token/s")
    assert rate(newer, *workload_settings) >= rate(older, *workload_settings)
    assert rate(newer, *workload_settings) > 0


ATTRIBUTES = ("hbm_bandwidth", "hbm_capacity", "peak_fp8")


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("speed", [20, 50])
@pytest.mark.parametrize(
    ("system", "chip"),
    [("gb200-nvl72", "gb200-gpu"), ("mi355x-8", "mi355x"), ("trn3-nl72x2", "trn3")],
)
def test_more_of_an_attribute_never_answers_worse(system, chip, speed, attribute):
    workload_settings = (f"interactivity={speed} token/s", "ttft=0 s")
    value = evaluate_with(system, *workload_settings).inputs[f"parts.{chip}.{attribute}"]
    before, after = (
        rate(system, *workload_settings),
        rate(
            system,
            *workload_settings,
            f"parts.{chip}.{attribute}={value.value * 1.2!r} {value.unit}",
        ),
    )
    assert after >= before * (1 - 1e-6) > 0


# ---------------------------------------------------------------- speculative decoding
@pytest.mark.parametrize("system", SYSTEMS)
def test_plans_draft_only_where_deployments_of_family_and_engine_do(system):
    """Speculative decoding pays at a quick speed, if deployments of the family and engine run it.

    Others take none, whether axes are fixed or not.
    """
    quick = ("interactivity=60 token/s", "ttft=0 s")
    drafts = {
        name: evaluate_with(system, *quick, *more)
        for name, more in {"own": (), "vllm": ("engine=vllm",)}.items()
    }
    runs_them = system.startswith(("a100", "b", "g", "h", "mi", "trn2", "trn3", "vr"))
    if drafts["own"].plan is not None and not runs_them:
        assert drafts["own"].plan.decode.drafts == 0
    if drafts["vllm"].plan is not None and not system.startswith(("trn2", "trn3")):
        assert drafts["vllm"].plan.decode.drafts == 0
    if system in ("gb200-nvl72", "trn3-nl72x2", "mi355x-8"):
        assert drafts["own"].plan.decode.drafts > 0


# ---------------------------------------------------------------- classes of operators
def test_a_server_holds_whole_engines_and_pools_are_of_published_sizes():
    server, split_pools = (
        evaluate_with("gb200-nvl72", f"operated_by={name}").plan for name in ("server", "apart")
    )
    assert server.decode.chips <= 8
    assert server.readers is None
    assert server.prefill[:4] == server.decode[:4]
    sizes = {
        tuple(map(float, row.split(",")[:4]))
        for row in (CATALOGUE.folders[0] / "performance/pools.csv").read_text().splitlines()[1:]
    }
    assert (
        split_pools.decode.chips,
        split_pools.engines,
        split_pools.prefill.chips,
        split_pools.readers,
    ) in sizes


def test_a_larger_server_is_no_worse():
    rates = [
        rate("gb200-nvl72", "operated_by=server", f"server_chips={chips}") for chips in (8, 16, 72)
    ]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


def test_quicker_products_never_slow_pools_of_published_sizes():
    """Plans that read prompts are chosen with those that decode: the quickest may not fit."""
    long_prompts = (
        *("model=llama-3.1-405b", "precision=nvfp4", "cache_format=fp8", "software=best"),
        *("input_tokens=9429", "output_tokens=685", "interactivity=9.43 token/s"),
        *("operated_by=apart", "as_deployed=0", "draft_tokens=0"),
    )
    rates = [
        evaluate_with(
            "b200-hgx8", *long_prompts, f"performance.best.fp4_inner_latency={latency} ns"
        ).metrics[RATE]
        for latency in (1.79, 1.3, 0.85)
    ]
    assert rates == sorted(rates)


def test_a_benchmark_is_the_better_of_a_server_and_of_pools():
    same = tuple(
        f"performance.{name}.deployment_efficiency=1" for name in ("server", "apart", "benchmark")
    )
    for system in ("gb200-nvl72", "mi300x-8", "h200-hgx8"):
        rates = {
            name: rate(system, f"operated_by={name}", *same)
            for name in ("server", "apart", "benchmark")
        }
        assert rates["benchmark"] == pytest.approx(max(rates["server"], rates["apart"]), rel=1e-12)


@pytest.mark.parametrize("system", ["gb200-nvl72", "mi355x-8", "trn3-nl72x2"])
@pytest.mark.parametrize("speed", [20, pytest.param(50, marks=pytest.mark.thorough)])
def test_free_pools_make_no_less_than_pools_of_published_sizes(system, speed):
    """Pools of published sizes make at most a tenth more than pools of free sizes.

    The excess is the sharpness with which pools meet: a closed loop fills what it leaves idle
    with requests in flight.
    """
    workload_settings = (
        *(f"{path.removeprefix('workload.')}={text}" for path, text in ALIKE.items()),
        f"interactivity={speed} token/s",
        "ttft=0 s",
    )
    fleet, *pooled_rates = (
        rate(system, *workload_settings, f"operated_by={name}")
        for name in ("fleet", "server", "apart")
    )
    assert all(pooled_rate <= fleet * 1.1 for pooled_rate in pooled_rates)


@pytest.mark.parametrize("operator", ["server", "apart"])
def test_no_load_near_the_chosen_one_makes_more_and_keeps_the_promises(operator):
    """No load within a sixth of the chosen requests in flight makes more and keeps the promises.

    The plan is the same; the search may stop short by a hundredth.
    """
    settings = {"workload.operated_by": operator, "workload.interactivity": "30 token/s"}
    evaluation = evaluate("gb200-nvl72", settings, catalogue=CATALOGUE)
    assert evaluation.metrics[SPEED] >= 30 * (1 - 1e-9)
    assert evaluation.metrics[FIRST] <= evaluation.inputs["workload.ttft"].value * (1 + 1e-9)
    for share in np.geomspace(0.86, 1.16, 13):
        nearby_metrics = evaluate(
            "gb200-nvl72",
            settings,
            evaluation.plan._replace(flight=evaluation.plan.flight * float(share)),
            catalogue=CATALOGUE,
        ).metrics
        keeps = (
            nearby_metrics[SPEED] >= 30
            and nearby_metrics[FIRST] <= evaluation.inputs["workload.ttft"].value
        )
        assert not keeps or nearby_metrics[RATE] <= evaluation.metrics[RATE] * 1.01


@pytest.mark.parametrize(
    ("system", "model", "speed"),
    [
        ("h200-hgx8", "deepseek-v3", 50),
        ("b200-hgx8", "llama-3.1-405b", 50),
        ("mi355x-8", "gpt-oss-120b", 50),
        ("gb200-nvl72", "gpt-oss-120b", 10),
    ],
)
def test_plans_tried_at_some_loads_first_lose_none_that_is_the_best(
    system, model, speed, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "likely"))
    settings = {
        "workload.model": model,
        "workload.operated_by": "benchmark",
        "workload.interactivity": f"{speed} token/s",
    }
    likely = evaluate(system, settings, catalogue=Catalogue([data_directory()]), refuse=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "all"))
    monkeypatch.setattr(classes, "TILE_STEP", 1e9)
    all_plans = evaluate(system, settings, catalogue=Catalogue([data_directory()]), refuse=False)
    assert likely.metrics == all_plans.metrics
    assert likely.metrics[RATE] > 0


def test_pools_without_a_plan_have_a_reason():
    evaluation = evaluate_with("gb200-nvl72", "operated_by=apart", "interactivity=5000 token/s")
    assert evaluation.plan is None
    assert "5000 are asked for" in evaluation.serving.reason


def test_unknown_operator_is_refused_with_the_known_ones():
    done = command("perf", "gb200-nvl72", "--set", "workload.operated_by=nobody")
    assert done.exit_code == 3
    assert all(name in done.stderr for name in OPERATORS)


# ---------------------------------------------------------------- deployments that were published
# output tokens/s of a chip that decodes and input tokens/s of one that reads prompts; system; how
# it was run
PUBLISHED = {
    "SGLang on 96 H100, 2025-05": (
        *(2787, 6537, "h100-hgx8"),
        {
            "input_tokens": "2000",
            "output_tokens": "100",
            "interactivity": "10.9 token/s",
            "ttft": "10 s",
            "draft_tokens": "0",
            "software": "2025-05",
        },
    ),
    "DeepSeek's own fleet, 2025-02": (
        *(1850, 9212, "h100-hgx8"),
        {
            "input_tokens": "4384",
            "output_tokens": "1211",
            "cache_hit": "0.563",
            "interactivity": "21 token/s",
            "ttft": "5 s",
        }
        | {"draft_tokens": "1", "software": "2025-02"},
    ),
    "SGLang on GB200, 2025-09": (
        *(13386, 26156, "gb200-nvl72"),
        {
            "input_tokens": "2000",
            "output_tokens": "2000",
            "interactivity": "10 token/s",
            "ttft": "10 s",
            "draft_tokens": "0",
        }
        | {"software": "2025-09", "expert_format": "nvfp4"},
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_fleet_reaches_published_deployments_of_deepseek_v3(name):
    decode, prefill, system, run = PUBLISHED[name]
    evaluation = evaluate_with(
        system, "model=deepseek-v3", *(f"{key}={text}" for key, text in run.items())
    )
    share = float(evaluation.serving.prefill_share)
    pool_rates = (
        evaluation.metrics[RATE] / (1 - share),
        evaluation.metrics["input_tokens_per_s_per_chip"] / share,
    )
    assert all(
        1 / 1.4 <= ours / theirs <= 1.4
        for ours, theirs in zip(pool_rates, (decode, prefill), strict=True)
    ), pool_rates


# ---------------------------------------------------------------- many draws
@pytest.mark.parametrize(
    ("operator", "gaps"),
    [
        ("server", [1.7, 1.9, 2.1, 2.3]),
        # a search of pools apart takes twenty seconds
        pytest.param("apart", [1.7, 2.3], marks=pytest.mark.thorough),
    ],
)
def test_each_draw_of_a_class_equals_its_own_evaluation(operator, gaps):
    """Plan and requests in flight are chosen again in every draw, on the grid of the search."""
    settings = {"workload.operated_by": operator, "workload.interactivity": "30 token/s"}
    drawn = tco.evaluate_draws(
        "b200-hgx8",
        settings | {"performance.nvidia.launch_time": (np.array(gaps), "us")},
        hold=False,
        catalogue=CATALOGUE,
    )
    for draw_index, gap in enumerate(gaps):
        single_draw = evaluate(
            "b200-hgx8",
            settings | {"performance.nvidia.launch_time": f"{gap} us"},
            catalogue=CATALOGUE,
        )
        assert bool(drawn.meets[draw_index]) == (single_draw.plan is not None)
        assert drawn.metrics[RATE][draw_index] <= single_draw.metrics[RATE] * (1 + 1e-9)
        # a step of the grid is a fifth more requests
        assert drawn.metrics[RATE][draw_index] >= single_draw.metrics[RATE] * 0.85
    assert drawn.metrics[RATE][0] > drawn.metrics[RATE][-1]


def test_plans_near_the_frontier_are_as_good_as_those_that_are_as_quick_and_ready():
    """A plan is dropped only if another makes more tokens, for no slower user and as ready."""
    rate, user, first, needed = np.array(
        [
            [10.0, 10.0, 1.0, 50.0],  # makes the most
            [9.0, 20.0, 1.0, 50.0],
            [7.0, 20.0, 1.0, 50.0],  # a fifth behind the last, which is as quick
            [5.0, 30.0, 1.0, 50.0],  # the quickest for a user
            [4.0, 10.0, 0.1, 50.0],  # reads within a quarter of the wait
            [4.0, 10.0, 1.0, 85.0],  # needs more memory than its betters
            [20.0, 40.0, 9.0, 50.0],  # reads far too late
            [20.0, 40.0, 1.0, 200.0],  # does not fit
        ]
    ).T[..., None]
    limits = np.full_like(rate, 100.0), np.full_like(rate, 2.0)
    figures = LoadedPlans(rate, user, first, needed, *limits)
    halves = [LoadedPlans(*(column[half] for column in figures)) for half in (np.s_[:4], np.s_[4:])]
    assert near_frontier([figures], 0.2).tolist() == [0, 1, 3, 4]
    assert near_frontier(halves, 0.2).tolist() == [0, 1, 3, 4]
    assert near_frontier([figures], 0.3).tolist() == [0, 1, 2, 3, 4]


def test_draws_of_plans_near_the_frontier_are_those_of_all_plans(monkeypatch, tmp_path):
    drawn_rates = []
    # another price and an empty cache have the programs made anew
    for most, price in ((2**30, "0.08 USD/kWh"), (2**8, "0.09 USD/kWh")):
        monkeypatch.setattr(candidate_plans, "MAX_LOADED_PLANS", most)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(most)))
        drawn = tco.evaluate_draws(
            "h200-hgx8",
            {
                "workload.operated_by": "server",
                "site.electricity_price": price,
                "performance.nvidia.launch_time": (np.linspace(1.0, 4.0, 12), "us"),
                "workload.interactivity": (np.linspace(15.0, 45.0, 12), "token/s"),
            },
            hold=False,
            catalogue=CATALOGUE,
        )
        assert drawn.meets.sum() > 6
        drawn_rates.append(drawn.metrics[RATE])
    assert drawn_rates[1] == pytest.approx(drawn_rates[0], rel=1e-12, nan_ok=True)
