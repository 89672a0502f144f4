"""Settings: any named value may be replaced; a derived one cuts off what lay below it."""

from __future__ import annotations

import pytest

from tco import DataError, evaluate
from tests.scenario_helpers import METRICS, again, nodes_below, result

NAME = "trn3-nl72x2"


def test_an_input_is_replaced_with_its_range_and_source():
    price_input = again(NAME, site__electricity_price="0.09 USD/kWh").inputs[
        "site.electricity_price"
    ]
    assert price_input.value == pytest.approx(0.09 / 1000, rel=1e-15)
    assert price_input.low == price_input.high == price_input.value
    assert (price_input.kind, price_input.source, price_input.stated_quantity) == (
        "assumed",
        "set by the user",
        (0.09, "USD/kWh"),
    )


def test_energy_follows_its_price_linearly():
    base, double = (
        again(NAME, site__electricity_price=f"{cents} USD/kWh").metrics["energy_usd_per_chip_hour"]
        for cents in (0.05, 0.1)
    )
    assert double == pytest.approx(2 * base, rel=1e-12)


def test_a_price_moves_the_bill_by_quantity():
    """A price of 9,000 USD replaces the built-up cost of 144 chips with four HBM stacks each.

    Assembly follows no price.
    """
    before = result(NAME).bill
    built = sum(line.extended for line in before.lines if "trn3" in line.path.split("/"))
    after = again(NAME, parts__trn3__price="9000 USD").bill
    assert after.price - before.price == pytest.approx(144 * 9000 - built, rel=1e-9)
    stack_lines = [line for line in after.lines if line.path.endswith("trn3/hbm3e-12hi-36gb")]
    assert [(line.unit_price, line.extended, line.included_in) for line in stack_lines] == [
        (None, None, stack_lines[0].path.removesuffix("/hbm3e-12hi-36gb"))
    ]


DERIVED = [  # path, value, an input that lies below it and below nothing else
    ("parts.trn3.own_price", "2000 USD", "parts.trn3.wafer_price"),
    ("parts.trn3.die_cost", "400 USD", "parts.trn3.defect_density"),
    ("metrics.tco_usd_per_chip_hour", "1 USD/chip/h", "terms.rate"),
    ("metrics.output_tokens_per_s_per_chip", "1000 token/s/chip", "parts.trn3.hbm_bandwidth"),
    ("metrics.tco_usd_per_used_chip_hour", "1 USD/chip/h", "terms.utilisation"),
]


@pytest.mark.parametrize(("path", "value", "below"), DERIVED, ids=[row[0] for row in DERIVED])
def test_a_derived_value_cuts_what_lay_below(path, value, below, catalogue):
    metric = "usd_per_million_output_tokens"
    full_node = result(NAME).nodes[metric]
    cut = evaluate(NAME, {path: value}, result(NAME).plan, catalogue=catalogue, trace=True).nodes[
        metric
    ]
    assert below in {node.path for node in nodes_below(full_node)}
    leaves = {node.path: node for node in nodes_below(cut) if node.is_leaf}
    assert (leaves[path].source, leaves[path].stated_quantity) == (
        "set by the user",
        (float(value.split()[0]), value.split()[1]),
    )
    assert below not in leaves


def test_a_price_set_below_a_derived_one_still_moves_it():
    base = result(NAME).metrics["capex_usd_per_chip"]
    assert again(NAME, parts__trn3__wafer_price="30000 USD").metrics["capex_usd_per_chip"] > base


def test_a_cut_price_is_what_was_set():
    assert again(NAME, system__price="2 MUSD").bill.price == 2e6
    assert (
        again(NAME, metrics__tco_usd_per_chip_hour="1 USD/chip/h").metrics["tco_usd_per_chip_hour"]
        == 1
    )


def test_inputs_below_a_cut_have_no_effect():
    cut = {"metrics__tco_usd_per_chip_hour": "1 USD/chip/h"}
    before, after = again(NAME, **cut), again(NAME, **cut, terms__rate="0.3")
    assert (
        before.metrics["usd_per_million_output_tokens"]
        == after.metrics["usd_per_million_output_tokens"]
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("site.puee", "1.2", "unknown input path 'site.puee'; did you mean 'site.pue'"),
        ("terms.utilization", 0.6, "did you mean 'terms.utilisation'"),
        ("parts.trn33.tdp", "1 W", "unknown"),
        ("nonsense.path", "1", "unknown input path"),
        ("pue", "1.2", "unknown input path"),
        ("site.pue", "0.5", "site.pue: value 0.5 ratio is outside 1 to"),
        ("site.pue", "abc", "does not begin with a number"),
        ("site.pue", "1.2 W", "expected"),
        ("site.pue", "nan", "not a finite number"),
        ("parts.trn3.hbm_bandwidth", "4.9 TB", "expected 'byte/s'"),
        ("parts.trn3.hbm_bandwidth", "-1 TB/s", "is outside"),
        ("parts.trn3.price", "9000", "expected 'USD'"),
        ("terms.life", "0 year", "is outside"),
        ("system.price", "-5 USD", "is outside"),
        ("workload.model", "gpt-9", "unknown model 'gpt-9'"),
        ("workload.precision", "fp7", "unknown precision 'fp7'; did you mean"),
        ("site.tenure", "rented", "unknown tenure 'rented'"),
        ("cluster.chips", "1e9", "is outside"),
    ],
)
def test_bad_setting_is_refused(path, value, message, catalogue):
    with pytest.raises(DataError) as caught:
        evaluate(NAME, {path: value}, catalogue=catalogue)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_without_effect_is_noted():
    notes = evaluate(NAME, {"parts.gb200-gpu.tdp": "1 W"}).notes
    assert "parts.gb200-gpu.tdp is set, but nothing in this scenario rests on it" in notes


def test_rent_replaces_building_in_colocation():
    rented = again(NAME, site__tenure="colocation", site__colo_usd_per_kw_month="150 USD/kW/month")
    paths = {line.path for line in rented.lines}
    assert "site/colocation" in paths
    assert not paths & {"site/building", "site/building-upkeep", "site/staff"}
    line = next(line for line in rented.lines if line.path == "site/colocation")
    assert line.usd_per_chip_hour == pytest.approx(
        rented.metrics["it_power_w_per_chip"] / 1000 * 150 * 12 / 8760, rel=1e-12
    )


def test_the_date_moves_the_memory_deck():
    """Host memory is the swing: the bill of autumn 2026 is dearer."""
    assert (
        again(NAME, terms__date="2026-09").bill.price
        > again(NAME, terms__date="2025-12").bill.price
    )


def test_every_metric_has_unit_and_label():
    assert all(metric.label for metric in METRICS.values())


def test_another_document_by_its_id(catalogue):
    chosen = evaluate("trn3-nl72x2", {"workload": "moe-3t-decode"}, catalogue=catalogue)
    assert chosen.metrics == evaluate("moe-3t-decode-trn3-nl72x2", catalogue=catalogue).metrics
    assert chosen.notes == evaluate("trn3-nl72x2", catalogue=catalogue).notes
    with pytest.raises(DataError, match=r"unknown workload 'resoning'; did you mean 'reasoning'\?"):
        evaluate(NAME, {"workload": "resoning"}, catalogue=catalogue)
