"""The whole chain: what is added up, what is traced, and how one thing follows from another."""

from __future__ import annotations

import math

import pytest

from tco import evaluate
from tco.scenario.choices import WORKLOAD_KINDS
from tco.scenario.workload import KINDS
from tests.scenario_helpers import (
    HEADLINE,
    METRICS,
    again,
    fill_ratio_to_baseline,
    inputs_of,
    nodes_below,
    result,
    same,
)

DIRECTNESS = ("first-hand", "quoted", "second-hand", "analogy", "recalled", "estimate")

each_headline = pytest.mark.parametrize("name", HEADLINE)


def close(a, b, tolerance=1e-12):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=0)


@each_headline
def test_cost_lines_sum_to_the_total(name):
    scenario_result = result(name)
    assert len(scenario_result.lines) >= 20
    assert close(
        math.fsum(line.usd_per_chip_hour for line in scenario_result.lines),
        scenario_result.metrics["tco_usd_per_chip_hour"],
    )


@each_headline
def test_lines_without_rebates_sum_to_the_gross_cost(name):
    scenario_result = result(name)
    gross = math.fsum(
        line.usd_per_chip_hour for line in scenario_result.lines if line.asset != "rebate"
    )
    assert close(gross, scenario_result.metrics["tco_gross_usd_per_chip_hour"])
    assert all(
        line.usd_per_chip_hour <= 0 for line in scenario_result.lines if line.asset == "rebate"
    )


@each_headline
def test_bill_lines_sum_to_its_price_and_power(name):
    bill = result(name).bill
    assert close(
        math.fsum(line.extended for line in bill.lines if line.extended is not None), bill.price
    )
    assert close(math.fsum(line.power for line in bill.lines), bill.power)


@each_headline
def test_capital_lines_sum_to_the_capex(name):
    scenario_result = result(name)
    capital = math.fsum(
        line.usd
        for line in scenario_result.lines
        if line.asset in ("servers", "network", "storage")
    )
    assert close(capital, scenario_result.metrics["capex_usd"])
    assert close(
        scenario_result.metrics["capex_usd"] / scenario_result.metrics["chips"],
        scenario_result.metrics["capex_usd_per_chip"],
    )


@each_headline
def test_shares_of_the_cost_sum_to_one(name):
    """Shares of hardware, terms and directness each sum to one."""
    shares = result(name).shares
    assert list(shares) == ["hardware", "terms", "directness"]
    assert list(shares["directness"]) == list(DIRECTNESS)
    for name_of, kinds in shares.items():
        assert name_of == "directness" or list(kinds) == ["sourced", "estimate", "assumed"]
        assert close(sum(kinds.values()), 1)


@each_headline
def test_every_trace_equals_its_number(name):
    scenario_result = result(name)
    assert len(scenario_result.nodes) >= 25
    for metric, node in scenario_result.nodes.items():
        assert close(node.value, scenario_result.metrics[metric]), metric


@each_headline
def test_every_computed_metric_has_a_trace(name):
    scenario_result = result(name)
    untraced = [
        metric
        for metric, value in scenario_result.metrics.items()
        if value is not None and metric not in scenario_result.nodes
    ]
    assert set(untraced) <= {"chips", "racks", "perf_per_tco_vs_baseline"}


@each_headline
def test_every_leaf_says_where_it_comes_from(name):
    leaves = [node for node in nodes_below(*result(name).nodes.values()) if node.is_leaf]
    assert len(leaves) >= 60
    assert [node.name for node in leaves if not node.source or not node.kind] == []


@each_headline
def test_every_inner_node_is_one_call_with_its_equation(name):
    inner = [node for node in nodes_below(*result(name).nodes.values()) if not node.is_leaf]
    assert len(inner) >= 100
    for node in inner:
        assert (node.formula is None) != (node.operation is None), node.name
        if node.formula is not None:
            assert [key for key, _ in node.inputs] == list(node.formula.parameters)


@each_headline
def test_a_trace_recomputes_from_its_leaves(name):
    """Every node's value follows from the values of its inputs alone."""
    for node in nodes_below(*result(name).nodes.values()):
        values = [inner.value for _, inner in node.inputs]
        if node.formula is not None:
            assert close(float(node.formula.function(*values)), float(node.value)), node.name
        elif node.operation is not None:
            assert close(
                {"total": math.fsum, "least": min, "greatest": max}[node.operation](values),
                node.value,
            ), node.name


@each_headline
def test_leaves_with_a_path_are_the_inputs(name):
    scenario_result, resolved = result(name), inputs_of(name).values()
    for node in nodes_below(*scenario_result.nodes.values()):
        if node.is_leaf and node.path:
            # what rests on a zero is read by traces alone
            leaf_input = scenario_result.inputs.get(node.path) or resolved.input(node.path)
            assert (node.value, node.unit, node.source, node.kind) == (
                leaf_input.value,
                leaf_input.unit,
                leaf_input.source,
                leaf_input.kind,
            )


@each_headline
def test_metrics_are_finite_and_whole(name):
    scenario_result = result(name)
    assert list(scenario_result.metrics) == list(METRICS)
    assert [
        metric
        for metric, value in scenario_result.metrics.items()
        if value is not None and not (math.isfinite(value) and value >= 0)
    ] == []


@each_headline
def test_one_hour_used_is_dearer_than_one_installed(name):
    metrics = result(name).metrics
    expected = metrics["tco_usd_per_chip_hour"] / (
        metrics["goodput"] * result(name).inputs["terms.utilisation"].value
    )
    assert close(metrics["tco_usd_per_used_chip_hour"], expected)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("trn3-nl72x2", {}),
        ("gb200-nvl72", {"workload.cache_hit": "0.75"}),
        ("gb200-nvl72", {"workload.cache_hit": "1", "workload.input_tokens": "1000"}),
        ("mi450x-ualoe72", {"workload.input_tokens": "100000", "workload.cache_hit": "0.2"}),
        ("h200-hgx8", {"workload.concurrency": "64", "workload.model": "llama-3.1-70b"}),
    ],
)
def test_rate_card_sums_to_cost_of_a_request(name, settings):
    metrics, values = evaluate(name, settings).metrics, inputs_of(name, settings).values()
    prompt, answer, hit = (
        values[f"workload.{key}"] for key in ("input_tokens", "output_tokens", "cache_hit")
    )
    fresh = max(prompt * (1 - hit), 1)
    uncached, cached, output = (
        metrics[f"rate_card_{side}_usd_per_million"] for side in ("input", "cached_input", "output")
    )
    assert close(
        uncached * fresh + cached * (prompt - fresh) + output * answer,
        metrics["usd_per_million_output_tokens"] * answer,
        1e-9,
    )
    assert 0 < cached < uncached


def test_cached_tokens_cost_more_where_more_tokens_meet_them():
    """Reading a prompt ten times as long spends a larger share on attention."""
    shares = []
    for tokens in ("8000", "80000"):
        metrics = evaluate("gb200-nvl72", {"workload.input_tokens": tokens}).metrics
        shares.append(
            metrics["rate_card_cached_input_usd_per_million"]
            / metrics["rate_card_input_usd_per_million"]
        )
    assert shares[0] < shares[1] < 1


def test_rate_card_is_absent_of_training():
    metrics = result("train-gpt3-175b-a100x64").metrics
    assert metrics["rate_card_output_usd_per_million"] is None


@each_headline
def test_cost_of_a_million_tokens_by_the_contract(name):
    metrics = result(name).metrics
    used, out, into = (
        metrics[key]
        for key in (
            "tco_usd_per_used_chip_hour",
            "output_tokens_per_s_per_chip",
            "input_tokens_per_s_per_chip",
        )
    )
    assert close(metrics["usd_per_million_output_tokens"], used / (3600 * out) * 1e6)
    assert close(metrics["usd_per_million_tokens"], used / (3600 * (out + into)) * 1e6)
    assert close(
        metrics["tokens_per_s_per_facility_mw"], out / metrics["facility_power_w_per_chip"] * 1e6
    )


@each_headline
def test_input_and_output_tokens_keep_the_ratio_of_the_workload(name):
    scenario_result = result(name)
    ratio = (
        scenario_result.inputs["workload.input_tokens"].value
        / scenario_result.inputs["workload.output_tokens"].value
    )
    assert close(
        scenario_result.metrics["input_tokens_per_s_per_chip"],
        scenario_result.metrics["output_tokens_per_s_per_chip"] * ratio,
    )


@each_headline
def test_the_chosen_plan_meets_the_target(name):
    scenario_result = result(name)
    assert (
        scenario_result.metrics["tokens_per_s_per_user"]
        >= scenario_result.inputs["workload.interactivity"].value
    )


@each_headline
def test_fixed_plan_gives_the_same_metrics(name):
    assert same(again(name).metrics, result(name).metrics)


@each_headline
def test_two_runs_are_equal(name, catalogue):
    assert evaluate(name, catalogue=catalogue).metrics == result(name).metrics


@each_headline
def test_a_data_frame_of_the_metrics(name):
    frame = result(name).to_frame()
    assert (
        frame.loc["tco_usd_per_chip_hour", "value"] == result(name).metrics["tco_usd_per_chip_hour"]
    )
    assert frame.loc["hbm_bytes", "unit"] == "byte"


def test_performance_per_cost_against_the_baseline(catalogue):
    results = [evaluate(name, catalogue=catalogue) for name in HEADLINE]
    assert fill_ratio_to_baseline(results) == "gb200-nvl72"
    cost = {r.scenario: r.metrics["usd_per_million_output_tokens"] for r in results}
    for r in results:
        assert close(r.metrics["perf_per_tco_vs_baseline"], cost["gb200-nvl72"] / cost[r.scenario])


def test_the_baseline_is_the_first_where_gb200_is_not_compared(catalogue):
    results = [evaluate(name, catalogue=catalogue) for name in ("trn3-nl32x2", "trn3-nl72x2")]
    assert fill_ratio_to_baseline(results) == "trn3-nl32x2"
    assert results[0].metrics["perf_per_tco_vs_baseline"] == 1


def test_every_kind_of_workload_may_be_chosen():
    assert tuple(KINDS) == WORKLOAD_KINDS
