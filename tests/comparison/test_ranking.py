"""`tco compare --all` ranks every system by the cost that it has in a comparison by itself."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import tco
from tests.cli import document
from tests.cli import tco as command

ROOT = Path(__file__).parents[2]
COST = "usd_per_million_output_tokens"


def test_every_system_has_a_place_or_a_reason():
    rows = document("compare", "--all")["rows"]
    assert sorted(row["system"] for row in rows) == sorted(
        listed_system["id"] for listed_system in document("systems", "list")["items"]
    )
    ranked = [row for row in rows if row["rank"] is not None]
    medians = [row[f"median_{COST}"] for row in ranked]
    assert medians == sorted(medians)
    assert [row["rank"] for row in rows[: len(ranked)]] == [*range(1, len(ranked) + 1)]
    # no cost, or none in half of the draws
    assert all(row["reason"] for row in rows[len(ranked) :])
    for row in ranked[::8]:
        assert row["metrics"][COST] == pytest.approx(
            tco.evaluate(row["system"]).metrics[COST], rel=1e-12
        )
        assert row["metrics"]["perf_per_tco_vs_baseline"] == pytest.approx(
            tco.evaluate("gb200-nvl72").metrics[COST] / row["metrics"][COST]
        )


def test_median_of_a_system_is_that_of_its_comparison():
    """With fewer speeds the plans that are looked at differ a little."""
    curve = {
        (curve_point["scenario"], curve_point["tokens_per_s_per_user"]): curve_point
        for curve_point in document("compare")["curve"]
    }
    rows = {row["system"]: row for row in document("compare", "--all")["rows"]}
    for name in ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72"):
        assert rows[name][f"median_{COST}"] == pytest.approx(
            curve[name, 50][f"median_{COST}"], rel=0.01
        )


def test_shipped_ranking_is_the_one_computed_today():
    """`python -m tco.comparison.ranking` writes it anew."""
    shipped = csv.DictReader((ROOT / "data/ranking.csv").read_text().splitlines())
    today = sorted(
        (row for row in document("compare", "--all")["rows"] if row["rank"] is not None),
        key=lambda row: row["rank"],
    )
    assert [(row["system"], float(row[COST])) for row in shipped] == [
        (row["system"], float(f"{row[f'median_{COST}']:.3g}")) for row in today
    ]


def test_the_cheapest_of_all_is_named_below_the_shipped_comparison_alone():
    assert "Cheaper at 50, but compared only if named: trn4-preview" in command("compare").stdout
    assert "compared only if named" not in command("compare", "--set", "site.pue=1.2").stdout


def test_each_system_takes_one_line():
    lines = command("compare", "--all").stdout.splitlines()
    systems = [listed_system["id"] for listed_system in document("systems", "list")["items"]]
    assert len(lines) <= len(systems) + 6
    assert all(
        sum(f" {system} " in line or f" {system}:" in line for line in lines) == 1
        for system in systems
    )


def test_ranking_can_be_limited_to_a_vendor_cooling_and_date():
    rows = document("compare", "--all", "--vendor", "amd", "--air", "--date", "2026-06")["rows"]
    assert {row["system"] for row in rows} == {"mi300x-8", "mi325x-8"}
    direct_cost = tco.evaluate("mi300x-8", {"terms.date": "2026-06"}).metrics[COST]
    assert next(
        row["metrics"][COST] for row in rows if row["system"] == "mi300x-8"
    ) == pytest.approx(direct_cost, rel=1e-12)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--vendor", "AMD"), 2, "go with --all"),
        (("--all", "gb200-nvl72"), 2, "takes no scenario"),
        (("--all", "--vendor", "ADM"), 3, "did you mean 'AMD'?"),
    ],
    ids=["vendor", "scenario", "typo"],
)
def test_wrong_arguments_are_refused(words, code, message):
    done = command("compare", *words)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
