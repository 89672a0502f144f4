"""JSON answers are one document with a named schema, the keys of the contract and stable bytes."""

from __future__ import annotations

import json
import math

import pytest

from tests.cli import HEADLINE, document, tco

DOCUMENTS = {
    **{"sites": "us-hyperscale", "terms": "hyperscaler-2025-12", "workloads": "chat"},
    **{"clusters": "tor-100g-16k", "perspectives": "hyperscaler"},
}
COMMANDS = {
    ("compare",): ("tco.compare/1", {"baseline", "rows"}),
    ("price", "trn3-nl72x2"): ("tco.price/1", {"lines", "metrics"}),
    ("bom", "trn3-nl72x2"): ("tco.bom/1", {"lines", "quantity_by_part", "totals"}),
    ("explain", "trn3-nl72x2", "tco_usd_per_chip_hour"): ("tco.explain/1", {"metric", "tree"}),
    ("diff", "trn3-nl32x2", "trn3-nl72x2"): ("tco.diff/1", {"a", "b", "metrics", "why"}),
    ("fabric", "trn3-nl72x2"): ("tco.fabric/1", {"scopes"}),
    ("network", "--switch", "12.8T", "--port", "100G", "--tiers", "3"): (
        "tco.network/1",
        {
            "tiers",
            "max_endpoints",
            "switches",
            "links",
            "transceivers",
            "cables",
            "price_usd",
            "power_w",
        },
    ),
    ("kernel", "h100-sxm", "--m", "4096", "--n", "8192", "--k", "8192", "--precision", "fp8"): (
        "tco.kernel/1",
        {
            "time_us",
            "bound",
            "parts_us",
            "tile",
            "tiles",
            "waves",
            "computed_as",
            "tflops",
            "gb_per_s",
            "share_of_peak",
        },
    ),
    ("parts", "list"): ("tco.parts-list/1", {"items"}),
    ("parts", "show", "trn3"): ("tco.parts-show/1", {"part", "rows"}),
    ("parts", "check"): ("tco.parts-check/1", {"ok", "findings"}),
    ("systems", "list"): ("tco.systems-list/1", {"items"}),
    ("systems", "show", "trn3-nl72x2"): ("tco.systems-show/1", {"system", "tree"}),
    ("systems", "check"): ("tco.systems-check/1", {"ok", "findings"}),
    ("models", "list"): ("tco.models-list/1", {"items"}),
    ("models", "show", "deepseek-v3"): ("tco.models-show/1", {"model", "blocks"}),
    ("models", "check"): ("tco.models-check/1", {"ok", "findings"}),
    ("scenarios", "list"): ("tco.scenarios-list/1", {"items"}),
    ("scenarios", "show", "trn3-nl72x2"): ("tco.scenarios-show/1", {"scenario", "inputs"}),
    ("scenarios", "check"): ("tco.scenarios-check/1", {"ok", "findings", "published"}),
    ("sources", "list"): ("tco.sources-list/1", {"items"}),
    ("sources", "show", "tco-model"): ("tco.sources-show/1", {"id", "values"}),
    **{(kind, "list"): (f"tco.{kind}-list/1", {"items"}) for kind in DOCUMENTS},
    **{
        (kind, "show", name): (f"tco.{kind}-show/1", {"id", "texts", "values"})
        for kind, name in DOCUMENTS.items()
    },
    **{(kind, "check"): (f"tco.{kind}-check/1", {"ok", "findings"}) for kind in DOCUMENTS},
    ("sources", "check"): ("tco.sources-check/1", {"ok", "findings"}),
}


@pytest.mark.parametrize(
    ("arguments", "schema", "keys"),
    [(words, *schema_and_keys) for words, schema_and_keys in COMMANDS.items()],
    ids=[" ".join(c) for c in COMMANDS],
)
def test_a_document_names_its_schema(arguments, schema, keys, catalogue):
    answer_document = document(*arguments)
    assert list(answer_document)[:3] == ["schema", "tco_version", "data_hash"]
    assert (answer_document["schema"], answer_document["data_hash"]) == (schema, catalogue.hash())
    assert keys <= answer_document.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare",),
        ("price", "gb200-nvl72"),
        ("bom", "gb200-nvl72"),
        ("explain", "gb200-nvl72", "capex_usd"),
    ],
    ids=" ".join,
)
def test_two_runs_are_the_same_bytes(arguments):
    assert tco(*arguments, "--format", "json").stdout == tco(*arguments, "--format", "json").stdout


@pytest.mark.parametrize("name", ["parts", "systems", "models", "scenarios", "sources"])
def test_ids_stand_once(name):
    ids = [item["id"] for item in document(name, "list")["items"]]
    assert ids
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["parts", "systems", "models", "scenarios", "sources"])
def test_shipped_data_is_in_order(name):
    check_document = document(name, "check")
    assert (check_document["ok"], check_document["findings"]) == (True, [])


def test_compare_has_the_four_racks():
    rows = document("compare")["rows"]
    assert [row["scenario"] for row in rows] == list(HEADLINE)
    for row in rows:
        assert row["metrics"]["chips"] == row["chips"]
        numbers = [value for value in row["metrics"].values() if value is not None]
        assert len(numbers) >= 25
        assert all(math.isfinite(value) for value in numbers)
        missing = [metric for metric, value in row["metrics"].items() if value is None]
        assert not missing or any(
            all(metric in note for metric in missing) for note in row["notes"]
        )


@pytest.mark.parametrize("name", HEADLINE)
def test_price_lines_sum_to_the_metric(name):
    price_document = document("price", name)
    assert math.fsum(
        line["usd_per_chip_hour"] for line in price_document["lines"]
    ) == pytest.approx(price_document["metrics"]["tco_usd_per_chip_hour"], rel=1e-12)


@pytest.mark.parametrize("name", HEADLINE)
def test_bom_lines_sum_to_the_totals(name):
    bom_document = document("bom", name)
    totals = bom_document["totals"]
    assert math.fsum(line["extended_usd"] or 0 for line in bom_document["lines"]) == pytest.approx(
        totals["price_usd"], rel=1e-12
    )
    assert math.fsum(line["power_w"] or 0 for line in bom_document["lines"]) == pytest.approx(
        totals["power_w"], rel=1e-12
    )
    assert totals["net_usd"] == pytest.approx(totals["price_usd"] - totals["rebate_usd"], rel=1e-12)
    by_part = {}
    for line in bom_document["lines"]:
        by_part[line["part"]] = by_part.get(line["part"], 0) + line["quantity"]
    assert by_part.items() <= bom_document["quantity_by_part"].items()


def test_a_metric_of_price_is_that_of_compare():
    compared = {row["scenario"]: row["metrics"] for row in document("compare")["rows"]}
    for name in HEADLINE:
        metrics = document("price", name)["metrics"]
        cost_metrics = {
            metric: value
            for metric, value in metrics.items()
            if not metric.startswith("perf_per_tco")
        }
        assert cost_metrics.items() <= compared[name].items()


def test_a_saved_price_can_be_compared(tmp_path):
    path = tmp_path / "kept.json"
    assert tco("price", "gb200-nvl72", "--format", "json", "--output", path).exit_code == 0
    assert json.loads(path.read_text())["schema"] == "tco.price/1"
    assert document("diff", str(path), "gb200-nvl72")["metrics"] == []


def test_a_cell_can_be_explained_by_its_name():
    metric_tree = document("explain", "gb200-nvl72", "tco_usd_per_chip_hour", "--depth", "1")[
        "tree"
    ]
    cell = metric_tree["inputs"][0]
    cell_document = document("explain", "gb200-nvl72", cell["id"], "--all")
    assert (
        cell_document["metric"]
        == cell_document["tree"]["name"]
        == cell_document["tree"]["id"]
        == cell["id"]
    )
    assert cell_document["tree"]["value"] == cell["value"]
    assert len(cell_document["tree"]["inputs"]) == cell["more"]
    leaf = document("explain", "gb200-nvl72", "parts.gb200-gpu.price")["tree"]
    assert (leaf["value"], leaf["unit"]) == (30059, "USD")
    done = tco("explain", "gb200-nvl72", "cost/site/bilding/per_chip_hour")
    assert done.exit_code == 3
    assert (
        "unknown metric or cell 'cost/site/bilding/per_chip_hour'; did you mean "
        "'cost/site/building/per_chip_hour'?" in done.stderr
    )


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("chip price", "parts.trn3.wafer_price"),
        ("electricity", "site.electricity_price"),
        ("depreciation", "terms.life"),
        ("interest", "terms.rate"),
        ("speed", "workload.interactivity"),
        ("memory", "parts.trn3.hbm_bandwidth"),
        ("network", "cluster.network"),
    ],
)
def test_everyday_words_find_inputs(word, path):
    assert path in [row["path"] for row in document("inputs", "trn3-nl72x2", word)["inputs"]]
