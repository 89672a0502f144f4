"""CSV: snake_case headers, raw numbers, the same figures as JSON."""

from __future__ import annotations

import csv
import io
import re

import pytest

from tests.cli import document, tco
from tests.scenario_helpers import METRICS

CONTEXT = (  # what a row rests on, after its metrics
    *(
        "date",
        "site",
        "terms",
        "perspective",
        "workload",
        "cluster",
        "model",
        "engine",
        "practice",
        "software",
        "formats",
        "plan",
        "set",
    ),
    *(
        "hardware_sourced_share",
        "validated_rows",
        "anchored_rows",
        "delivered",
        "price_date",
        "basis",
    ),
)
NAMES = ("scenario", "system", "date", "site", "set")  # what every row is of


def table(*arguments):
    done = tco(*arguments, "--format", "csv")
    assert done.exit_code == 0, done.stderr
    assert "\r" not in done.stdout
    return list(csv.DictReader(io.StringIO(done.stdout)))


def cell(text):
    return None if text == "" else float(text)


def test_csv_of_compare_has_the_figures_of_its_json():
    rows = document("compare")["rows"]
    lines = table("compare")
    ranges = {
        f"perf_per_tco_vs_baseline_{percentile}": percentile for percentile in ("p10", "p50", "p90")
    }
    cost = "usd_per_million_output_tokens"
    spread = {f"median_{cost}": "p50", f"{cost}_p10": "p10", f"{cost}_p90": "p90"}
    assert list(lines[0]) == [
        "scenario",
        "system",
        *METRICS,
        *CONTEXT,
        *ranges,
        "probability_better_than_baseline",
        *spread,
    ]
    assert [line["scenario"] for line in lines] == [row["scenario"] for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert {name: cell(line[name]) for name in METRICS} == row["metrics"]
        assert {percentile: cell(line[name]) for name, percentile in ranges.items()} == row[
            "range"
        ]["perf_per_tco_vs_baseline"]
        assert (
            cell(line["probability_better_than_baseline"])
            == row["probability_better_than_baseline"]
        )
        assert {percentile: cell(line[name]) for name, percentile in spread.items()} == {
            percentile: row["range"][cost][percentile] for percentile in spread.values()
        }
        assert (line["delivered"], line["price_date"], line["basis"]) == (
            row["delivered"],
            row["price_date"],
            row["basis"],
        )


@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72"])
def test_csv_of_price_has_the_figures_of_its_json(name):
    lines, rows = table("price", name), document("price", name)["lines"]
    assert [line["path"] for line in lines] == [row["path"] for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert cell(line["usd"]) == row["usd"]
        assert cell(line["usd_per_chip_hour"]) == row["usd_per_chip_hour"]
        assert line["sources"].split(";") == row["sources"]


@pytest.mark.parametrize(
    "arguments", [("gb200-nvl72",), ("train-gpt3-175b-a100x64",)], ids=" ".join
)
def test_rows_of_perf_state_plan_and_metrics(arguments):
    """Each row states the plan in the form that `--plan` takes, and what it reached."""
    lines, perf_document = table("perf", *arguments), document("perf", *arguments)
    assert [(line["phase"], line["name"], float(line["time_us"])) for line in lines] == [
        (row["phase"], row["name"], row["time_us"]) for row in perf_document["operators"]
    ]
    for line in lines:
        assert (line["scenario"], line["system"]) == (
            perf_document["scenario"],
            perf_document["system"],
        )
        for name in ("output_tokens_per_s_per_chip", "step_s", "mfu"):
            assert cell(line[name]) == perf_document["metrics"][name]
    axes = dict(axis.split("=") for axis in lines[0]["plan"].split(","))
    assert len(axes) >= 5
    assert {name: float(value) for name, value in axes.items()} == {
        name: pytest.approx(perf_document["plan"][name], rel=1e-5) for name in axes
    }


def test_the_range_of_an_input_of_zero_is_in_its_written_unit():
    (line,) = table("inputs", "gb200-nvl72", "performance.nvidia.reduction_latency")
    assert (line["unit"], cell(line["value"])) == ("us", 0)
    assert cell(line["high"]) == pytest.approx(0.06, rel=1e-12)


def test_a_list_of_parts_prices_them():
    lines = {line["id"]: line for line in table("parts", "list")}
    items = {item["id"]: item for item in document("parts", "list")["items"]}
    assert {part: cell(line["price_usd"]) for part, line in lines.items()} == {
        part: item["price_usd"] for part, item in items.items()
    }
    # built up
    assert (lines["trn3"]["name"], lines["trn3"]["shelf"], lines["trn3"]["price_usd"]) == (
        "Trainium3",
        "accelerators",
        "",
    )
    assert (lines["hgx-rack"]["priced_as"], lines["ddr5-dimm"]["priced_as"]) == (
        "own_price",
        "price",
    )
    latest = [
        row
        for row in document("parts", "show", "ddr5-dimm")["rows"]
        if row["attribute"] == "price" and row["use"] != "alternative"
    ]
    assert (
        cell(lines["ddr5-dimm"]["price_usd"]) == max(latest, key=lambda row: row["as_of"])["value"]
    )


@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72"])
def test_csv_of_bom_has_the_figures_of_its_json(name):
    lines, rows = table("bom", name), document("bom", name)["lines"]
    # whose a value is says its kind in words
    assert [*(name for name in lines[0] if name not in NAMES), "own"] == list(rows[0])
    for line, row in zip(lines, rows, strict=True):
        assert line["path"] == row["path"]
        for key in ("quantity", "unit_price_usd", "extended_usd", "power_w"):
            assert cell(line[key]) == row[key], (row["path"], key)
        assert line["included_in"] == (row["included_in"] or "")


def test_csv_of_explain_has_the_figures_of_its_json():
    lines = table("explain", "gb200-nvl72", "energy_usd_per_chip_hour")
    tree = document("explain", "gb200-nvl72", "energy_usd_per_chip_hour")["tree"]
    assert (lines[0]["id"], float(lines[0]["value"])) == (tree["id"], tree["value"])


COMMANDS = [
    ("compare",),
    ("price", "gb200-nvl72"),
    ("bom", "gb200-nvl72"),
    ("explain", "gb200-nvl72", "capex_usd"),
    ("diff", "trn3-nl32x2", "trn3-nl72x2"),
    ("fabric", "trn3-nl72x2"),
    ("parts", "list"),
    ("parts", "show", "trn3"),
    ("systems", "show", "gb200-nvl72"),
    ("scenarios", "show", "gb200-nvl72"),
    ("sources", "list"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_headers_are_snake_case_and_rows_are_whole(arguments):
    rows = list(csv.reader(io.StringIO(tco(*arguments, "--format", "csv").stdout)))
    assert [name for name in rows[0] if not re.fullmatch(r"[a-z][a-z0-9_]*", name)] == []
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_cell_is_a_formula(arguments):
    """A text that a spreadsheet would run is made harmless; negative numbers stay numbers."""
    for row in csv.reader(io.StringIO(tco(*arguments, "--format", "csv").stdout)):
        for text in row:
            if text[:1] in ("=", "+", "-", "@") and text != "":
                float(text)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_two_runs_are_the_same_bytes(arguments):
    assert tco(*arguments, "--format", "csv").stdout == tco(*arguments, "--format", "csv").stdout


def test_row_states_date_documents_and_settings():
    """Two files of different dates can be told apart, and the plan is one that `--plan` takes."""
    (row,) = table("compare", "gb200-nvl72", "--set", "terms.date=2026-09", "--set", "site.pue=1.2")
    assert (row["date"], row["site"], row["model"], row["perspective"]) == (
        "2026-09",
        "us-hyperscale",
        "deepseek-v3",
        "hyperscaler",
    )
    assert row["set"] == "terms.date=2026-09;site.pue=1.2"
    assert 0.5 < float(row["hardware_sourced_share"]) <= 1
    assert "tp=" in row["plan"]
    assert document("compare", "gb200-nvl72", "--set", "site.pue=1.2")["set"] == {"site.pue": "1.2"}


@pytest.mark.parametrize(
    "arguments",
    [
        "compare gb200-nvl72 --no-range",
        pytest.param("compare --all --vendor AMD", marks=pytest.mark.thorough),
        "price gb200-nvl72",
        "price gb200-nvl72 --cash-flow",
        "perf gb200-nvl72",
        "frontier gb200-nvl72",
        "uncertainty gb200-nvl72 --samples 100",
        "sensitivity gb200-nvl72",
        "solve gb200-nvl72 --vary terms.life --until tco_usd_per_chip_hour=+10%",
        "explain gb200-nvl72 tco_usd_per_chip_hour",
        "fleet gb200-nvl72:20MW",
        "bom gb200-nvl72",
        "fabric gb200-nvl72",
        "collective gb200-nvl72 --op all-reduce --size 1MiB --ranks 8",
    ],
)
def test_row_of_every_command_states_scenario_and_settings(arguments):
    lines = table(*arguments.split(), "--set", "terms.date=2026-03")
    assert lines
    for line in lines:
        assert [line["date"], line["site"]] == ["2026-03", "us-hyperscale"]
        assert line["scenario"]
        assert line["system"]
        assert "terms.date=2026-03" in line["set"]
    assert len(lines[0]) == len({*lines[0]})  # no column stands twice


def test_frame_states_scenario_and_settings():
    import tco as api

    frame = api.evaluate("gb200-nvl72", {"site.pue": "1.2"}).to_frame()
    assert [set(frame[name]) for name in NAMES] == [
        {"gb200-nvl72"},
        {"gb200-nvl72"},
        {"2026-11"},
        {"us-hyperscale"},
        {"site.pue=1.2"},
    ]
