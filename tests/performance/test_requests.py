"""Each optional input of a workload has its effect, and zero has none."""

from __future__ import annotations

from functools import cache

import pytest

from tco import DataError, evaluate
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.scenario_helpers import result

NAME = "gb200-nvl72"
RATE, SPEED, FIRST = "output_tokens_per_s_per_chip", "tokens_per_s_per_user", "ttft_s"


@cache
def served(name=NAME, **settings):
    return evaluate(
        name, {f"workload.{key}": text for key, text in settings.items()}, catalogue=CATALOGUE
    )


def fixed(**settings):
    """On the plan of the headline."""
    return evaluate(
        NAME,
        {f"workload.{key}": text for key, text in settings.items()},
        result(NAME).plan,
        catalogue=CATALOGUE,
        trace=True,
    )


@pytest.mark.parametrize("key", ["cache_hit", "kv_offload"])
def test_zero_changes_nothing(key):
    without, usual = fixed(**{key: "0"}).metrics, result(NAME).metrics
    assert without.keys() == usual.keys()
    # a bit of rounding
    assert all(
        without[name] == (value if value is None else pytest.approx(value, rel=1e-12))
        for name, value in usual.items()
    )


@pytest.mark.parametrize(
    "settings",
    [{"cache_hit": "0.5"}, {"draft_tokens": "3"}, {"kv_offload": "0.3"}, {"concurrency": "4096"}],
    ids=lambda request_settings: next(iter(request_settings)),
)
def test_traced_metrics_equal_the_numbers(settings):
    evaluation = fixed(**settings)
    assert set(settings) == {
        path.partition(".")[2] for path in evaluation.inputs if path.partition(".")[2] in settings
    }
    for metric in (RATE, SPEED, FIRST, "usd_per_million_output_tokens"):
        assert evaluation.nodes[metric].value == pytest.approx(
            evaluation.metrics[metric], rel=1e-12
        )
    assert not [note for note in evaluation.notes if "nothing in this scenario rests on it" in note]


def test_a_prefix_found_is_not_computed():
    base, half, most = (served(cache_hit=text).metrics for text in ("0", "0.5", "1"))
    assert base[FIRST] > half[FIRST] > most[FIRST] > 0
    assert base[RATE] < half[RATE] < most[RATE]
    assert base[SPEED] == half[SPEED] == most[SPEED]
    # the half not found sees three quarters of the prompt on average, so it takes more than half
    # the attention of the whole
    core = {
        hit: next(
            o.time
            for o in fixed(cache_hit=hit).serving.prefill.operators
            if o.name == "attention core"
        )
        for hit in ("0", "0.5")
    }
    assert core["0.5"] / core["0"] == pytest.approx(0.75, rel=0.01)


def test_drafts_yield_tokens_and_cost_time():
    plain, drafted = (
        fixed(draft_tokens="0"),
        fixed(draft_tokens="1", spec_acceptance="0.7", draft_cost="0.1"),
    )
    assert drafted.serving.decode.time > 1.1 * plain.serving.decode.time
    assert drafted.metrics["tpot_s"] == pytest.approx(drafted.serving.decode.time / 1.7, rel=1e-12)


def test_drafts_help_where_latency_binds():
    """One sequence a group leaves the engines idle: verifying three drafts costs little."""
    slow = "110 token/s"
    assert (
        served(interactivity=slow, draft_tokens="3").metrics[RATE]
        > served(interactivity=slow, draft_tokens="0").metrics[RATE]
    )


def test_drafts_that_are_never_accepted_only_cost():
    assert (
        fixed(draft_tokens="2", spec_acceptance="0").metrics[SPEED]
        < fixed(draft_tokens="0").metrics[SPEED]
    )


@pytest.mark.parametrize(("model", "drafts"), [("deepseek-v3", True), ("gpt-oss-120b", False)])
def test_a_model_drafts_with_the_head_it_has(model, drafts):
    """DeepSeek-V3 was trained with one layer that predicts a further token; gpt-oss has none."""
    evaluation = served(model=model)
    assert (evaluation.plan.decode.drafts > 0) == drafts
    assert ("workload.spec_acceptance" in evaluation.inputs) == drafts


def test_offloading_frees_memory_and_takes_the_host_link():
    plain, half = (
        fixed(kv_offload=share, as_deployed="0").serving.decode for share in ("0", "0.5")
    )
    plan = result(NAME).plan.decode
    offloadable_cache = 2 * (plain.memory - half.memory)
    # TensorRT-LLM gives caches so much of what is free
    assert offloadable_cache == pytest.approx(
        plan.sequences * (8192 + 1024) * 576 * 61 / 0.9, rel=1e-9
    )
    host = next(operator for operator in half.operators if operator.name == "cache from host")
    assert host.bytes == pytest.approx(0.5 * plan.sequences * (8192 + 512) * 576 * 61, rel=1e-9)
    assert half.time == pytest.approx(max(host.bytes / 25e9, plain.time), rel=1e-9)


def test_more_in_flight_is_more_throughput_and_less_speed():
    metrics_by_load = [
        served(concurrency=str(count), interactivity="1 token/s", ttft="0 s").metrics
        for count in (64, 512, 4096)
    ]
    assert metrics_by_load[0][RATE] < metrics_by_load[1][RATE] < metrics_by_load[2][RATE]
    assert metrics_by_load[0][SPEED] > metrics_by_load[1][SPEED] > metrics_by_load[2][SPEED]
    assert metrics_by_load[0][FIRST] < metrics_by_load[2][FIRST]


def test_requests_in_flight_by_the_law_of_little():
    """Requests in flight are their rate times the time each stays (Little's law).

    The exception is an engine that prompts alone fill.
    """
    evaluation = served(concurrency="64", interactivity="1 token/s")
    metrics, plan = evaluation.metrics, evaluation.plan.decode
    stays = metrics[FIRST] + 1023 * metrics["tpot_s"]
    steady = evaluation.inputs["performance.serving.steady_share"].value
    rate = metrics[RATE] * plan.chips / 1024 / steady
    assert rate * stays == pytest.approx(64 * plan.chips / 72, rel=0.02)


def test_requests_beyond_memory_wait_before_the_engine():
    evaluations = [
        served(concurrency=count, interactivity="1 token/s", ttft="0 s")
        for count in ("20000", "100000")
    ]
    light_load, heavy_load = (evaluation.metrics for evaluation in evaluations)
    assert heavy_load[FIRST] > 3 * light_load[FIRST]
    stays = heavy_load[FIRST] + 1023 * heavy_load["tpot_s"]
    steady = evaluations[1].inputs["performance.serving.steady_share"].value
    chips = max(72, evaluations[1].plan.decode.chips)  # engines fill a world, or one spans several
    assert heavy_load[RATE] * chips / 1024 / steady * stays == pytest.approx(100000, rel=0.05)


@pytest.mark.parametrize(
    ("workload_settings", "words"),
    [
        ({"ttft": "10 s", "interactivity": "1 token/s"}, "first token within 10 s"),
        ({"interactivity": "200 token/s"}, "get at most"),
    ],
)
def test_too_many_requests_in_flight_get_a_note(workload_settings, words):
    assert any(words in note for note in served(concurrency="100000", **workload_settings).notes)


@pytest.mark.parametrize("system", ["trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72"])
def test_every_headline_rack_decodes_the_large_model(system):
    evaluation = served(f"moe-3t-decode-{system}")
    assert evaluation.texts["workload.model"] == "moe-3t"
    assert evaluation.metrics[SPEED] >= 20
    assert evaluation.serving.prefill_share < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concurrency": "0"}, "workload.concurrency is 0: no requests in flight"),
        (
            {"input_tokens": "163000"},
            "is 164,024 tokens, more than the context of deepseek-v3, 163,840 tokens",
        ),
    ],
)
def test_workload_that_nothing_can_serve_is_refused(settings, message):
    with pytest.raises(DataError, match=message):
        served(**settings)


def test_stated_axes_give_the_number_of_chips_of_an_engine():
    plan_document = document("perf", "gb200-nvl72", "--plan", "tp=2,dp=4")["plan"]
    assert (plan_document["tp"], plan_document["dp"], plan_document["decode"]["chips"]) == (2, 4, 8)
