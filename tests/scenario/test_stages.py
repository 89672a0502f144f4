"""Cached stages of the chain give the answer of a fresh trace, to the last digit and order."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco import DataError, evaluate, load_catalogue
from tco.core.redaction_values import Making, made_with
from tco.scenario import memo
from tco.scenario.result import in_json, saved_document
from tests.scenario_helpers import plain_values

CATALOGUE = load_catalogue()  # of its own: what is kept here must not depend on other tests
SCENARIOS = ("gb200-nvl72", "trn3-nl72x2", "h100-sxm", "train-gpt3-175b-a100x64")
SETTINGS = {
    "site": ("us-colocation", "us-ohio"),
    "workload": ("reasoning",),
    "site.electricity_price": ("0.05 USD/kWh", "0.1 USD/kWh"),
    "site.tenure": ("colocation", "own"),
    "site.cooling": ("air",),
    "terms.rate": ("8%", "12%"),
    "terms.owner": ("aws", "x"),
    "terms.date": ("2026-06", "2026-09"),
    "terms.rate_building": ("6%",),
    "terms.availability": ("0.95",),
    "terms.repairs": ("0.5",),
    "system.price": ("3e6 USD",),
    "metrics.goodput": ("0.9",),
    "failures.repair_time": ("8 h",),
    "parts.gb200-gpu.hbm_bandwidth": ("7 TB/s",),
    "parts.trn3.scale_out_bandwidth": ("100 GB/s",),
    "parts.trn3.price": ("9000 USD",),
    "cluster.chips": ("4096", "65536"),
    "cluster.oversubscription": ("2",),
    "workload.interactivity": ("20 token/s", "60 token/s"),
    "workload.output_tokens": ("512", "2048"),
    "workload.global_batch": ("512", "2048"),
    "workload.precision": ("fp8", "bf16"),
    "performance.layer.expert_imbalance": ("0.2",),
    "parts.connectx-7.failure_rate": ("0.2",),
    "parts.tor-25t6.price": ("1000 USD", "9e5 USD"),
    "parts.gb200-compute-tray.price": ("1e5 USD",),
}
ELSEWHERE = {
    "train-gpt3-175b-a100x64": ("workload.global_batch", "workload.precision"),
    "trn3-nl72x2": ("parts.trn3.scale_out_bandwidth", "parts.trn3.price"),
}


def forget() -> None:
    """Drop what is known of all stages."""
    for cached_value in CATALOGUE.cache.values():
        if hasattr(cached_value, "leaves"):
            cached_value.cached_results.pop("stages", None)


@cache
def first(name):
    """The answer with nothing set."""
    return evaluate(name, catalogue=CATALOGUE)


def answer_text(name, settings, plan=None, structure=None) -> str:
    """Return all that an answer holds, in its order, or the error."""
    try:
        scenario_result = evaluate(name, settings, plan, structure=structure, catalogue=CATALOGUE)
    except DataError as error:
        return str(error)
    # a trace tells them, which is always walked
    scenario_result.origin = scenario_result.origin._replace(formulas=dict)
    unsaved_fields = [
        list(scenario_result.inputs),
        list(scenario_result.texts.items()),
        scenario_result.structure.readings,
        scenario_result.structure.choices,
    ]
    return json.dumps([saved_document(scenario_result), unsaved_fields], default=in_json)


def assert_same_as_fresh(name, settings, **held_choices) -> None:
    """Assert that the cached answer is the one without a cache."""
    known_answer = answer_text(name, settings, **held_choices)
    forget()
    assert known_answer == answer_text(name, settings, **held_choices)


@pytest.mark.parametrize("path", SETTINGS)
def test_answer_to_a_setting_is_that_without_a_cache(path):
    name = next((name for name, paths in ELSEWHERE.items() if path in paths), "gb200-nvl72")
    # a search of training takes half a second
    plan = first(name).plan if name.startswith("train") else None
    for value in SETTINGS[path]:
        for before, after in (({}, {path: value}), ({path: value}, {})):
            answer_text(name, before, plan=plan)
            assert_same_as_fresh(name, after, plan=plan)


@pytest.mark.parametrize(
    "settings",
    [
        {"parts.tor-12t8.price": "-5 USD"},
        {"cluster.chips": "1e9"},
        {"cluster.oversubscription": "0.01"},
    ],
    ids=str,
)
def test_a_setting_that_is_refused_leaves_nothing_behind(settings):
    forget()
    assert "outside" in answer_text("gb200-nvl72", settings)
    assert_same_as_fresh("gb200-nvl72", {})


@settings(max_examples=4, deadline=None)
@given(st.data())
def test_answers_to_consecutive_settings_are_those_without_a_cache(data):
    name = data.draw(st.sampled_from(SCENARIOS))
    usual, setting_values = first(name), dict[str, str]()
    for path in data.draw(
        st.lists(st.sampled_from(list(SETTINGS)), min_size=2, max_size=4, unique=True)
    ):
        setting_values[path] = data.draw(st.sampled_from(SETTINGS[path]))
        assert_same_as_fresh(
            name,
            setting_values,
            **data.draw(st.sampled_from(({"plan": usual.plan}, {"structure": usual.structure}))),
        )


@pytest.fixture
def walks(monkeypatch):
    """The stages that are computed."""
    computed_stages, run_stage = [], memo.run_stage
    monkeypatch.setattr(
        memo,
        "run_stage",
        lambda inputs, values, compute, dependencies: (
            computed_stages.append(compute) or run_stage(inputs, values, compute, dependencies)
        ),
    )
    forget()
    return computed_stages


@pytest.mark.parametrize(
    ("name", "of_switches", "of_switches_again"),
    [
        (SCENARIOS[0], 0, 0),
        (SCENARIOS[1], 24 - 3, 6 - 1),  # what a used hour costs with each of three switches
    ],
)
def test_a_price_leaves_the_plan_and_a_plan_leaves_the_price(
    name, of_switches, of_switches_again, walks
):
    usual = evaluate(name, catalogue=CATALOGUE)
    # what wires allow, which switch is the cheapest by networks of each and their cost without
    # energy, what racks cost by bill, network, failures and cost without energy, what joins the
    # chips, what they do
    walk_count = 11 + of_switches
    assert len(walks) == walk_count
    dearer = evaluate(name, {"site.electricity_price": "0.2 USD/kWh"}, catalogue=CATALOGUE)
    walk_count += 2 + of_switches_again  # wires, networks and what is no energy are those they were
    assert len(walks) == walk_count
    assert dearer.metrics["tco_usd_per_chip_hour"] > usual.metrics["tco_usd_per_chip_hour"]
    slower = evaluate(name, {"workload.interactivity": "10 token/s"}, catalogue=CATALOGUE)
    assert len(walks) == walk_count + 1
    assert (
        slower.metrics["output_tokens_per_s_per_chip"]
        > usual.metrics["output_tokens_per_s_per_chip"]
    )
    assert slower.bill is usual.bill
    evaluate(name, plan=usual.plan, catalogue=CATALOGUE)
    assert len(walks) == walk_count + 2


def test_cache_has_a_limit(walks):
    for price in np.linspace(0.03, 0.2, 3 * memo.RESULTS_PER_STAGE):
        evaluate(
            "gb200-nvl72",
            {"site.electricity_price": f"{price} USD/kWh"},
            workload=False,
            catalogue=CATALOGUE,
        )
    stage_counts = [
        len(last)
        for cached_value in CATALOGUE.cache.values()
        if hasattr(cached_value, "leaves")
        for last in cached_value.cached_results.get("stages", {}).values()
    ]
    assert stage_counts
    assert max(stage_counts) <= memo.RESULTS_PER_STAGE
    evaluate(
        "gb200-nvl72",
        {"site.electricity_price": f"{price} USD/kWh"},
        workload=False,
        catalogue=CATALOGUE,
    )
    # the switch and the cost of each price; wires, networks, bill, failures and both costs without
    # energy once
    assert len(walks) == 2 * 3 * memo.RESULTS_PER_STAGE + 7


def test_withheld_values_are_evaluated_separately(walks):
    """An answer with withheld values shares no cache with the answer of the true values.

    Other values stand for the user's own in it.
    """
    private_settings = {"parts.gb200-gpu.price": "30000 USD"}
    plain_result = evaluate("gb200-nvl72", private_settings, catalogue=CATALOGUE)
    making = Making(0, set())
    making.typed_settings.update(private_settings.items())
    with made_with(making):
        withheld_result = evaluate("gb200-nvl72", private_settings, catalogue=CATALOGUE)
    assert withheld_result.metrics["capex_usd"] != plain_result.metrics["capex_usd"]


def test_withheld_values_change_together_and_against_each_other():
    """Stand-ins are high, low, high again, and then half of them high and half low, both ways.

    No quotient of two stays as it is.
    """
    shipped, raised_prices = plain_values(), []
    private_settings = {
        f"parts.{part}.price": f"{shipped[f'parts.{part}.price']!r} USD"
        for part in ("gb200-gpu", "mi450x", "ddr5-dimm", "nvme-8tb")
    }
    for number in range(5):
        making = Making(number, set())
        making.typed_settings.update(private_settings.items())
        with made_with(making):
            redacted_values = plain_values(**private_settings)
            raised_prices.append(
                [redacted_values[path] > shipped[path] for path in private_settings]
            )
    assert raised_prices[:3] == [[True] * 4, [False] * 4, [True] * 4]
    assert raised_prices[3] == [not up for up in raised_prices[4]]
    assert len(set(raised_prices[3])) == 2


def test_arrays_and_traces_are_always_evaluated(walks):
    held_structure = evaluate("gb200-nvl72", catalogue=CATALOGUE).structure
    array_result = evaluate(
        "gb200-nvl72",
        {"site.pue": np.array([1.1, 1.2])},
        structure=held_structure,
        catalogue=CATALOGUE,
    )
    assert array_result.metrics["tco_usd_per_chip_hour"].shape == (2,)
    assert len(walks) == 11
    traced = evaluate("gb200-nvl72", structure=held_structure, catalogue=CATALOGUE, trace=True)
    assert traced.nodes["tco_usd_per_chip_hour"].value == traced.metrics["tco_usd_per_chip_hour"]


def test_each_training_result_has_a_report_of_its_own():
    """A report is made once of a result, which it then releases; a second answer has its own."""
    first_result = first("train-gpt3-175b-a100x64")
    second_result, another = (
        evaluate(first_result.scenario, plan=first_result.plan, catalogue=CATALOGUE)
        for _ in range(2)
    )
    assert (
        first_result.report.phases["step"].lines
        == second_result.report.phases["step"].lines
        == another.report.phases["step"].lines
    )
    assert (
        first_result.structure.choices
        == second_result.structure.choices
        == another.structure.choices
    )


def test_answers_of_two_held_structures_are_cached_separately():
    """A held structure still decides, whatever its inputs are now."""
    larger = evaluate("gb200-nvl72", {"cluster.chips": "262144"}, catalogue=CATALOGUE).structure
    usual_answer, larger_answer = (
        answer_text("gb200-nvl72", {}, structure=structure)
        for structure in (first("gb200-nvl72").structure, larger)
    )
    assert usual_answer != larger_answer
    assert_same_as_fresh("gb200-nvl72", {}, structure=larger)
