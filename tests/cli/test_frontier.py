"""`tco frontier`: its document, its rows, its table within 80 columns."""

from __future__ import annotations

import csv
import io

import pytest

from tco.cli import emit
from tco.outputs.frontiers import HEADER
from tests.cli import document, tco

TWO = ("frontier", "trn3-nl72x2", "gb200-nvl72")
PAIRS = ("frontier", "trn3-nl72x2", "--prefill", "gb200-nvl72", "--prefill", "b200-hgx8")


def test_document():
    found = document(*TWO)
    assert found["schema"] == "tco.frontier/1"
    assert [row["scenario"] for row in found["frontiers"]] == ["trn3-nl72x2", "gb200-nvl72"]
    for row in found["frontiers"]:
        assert row["scenario"] == row["prefill_scenario"]
        assert sum(point["chosen"] for point in row["points"]) == 1
        assert {point["hand_over_s"] for point in row["points"]} == {None}
        assert row["validated"]["text"]


def test_pairs():
    found = document(*PAIRS)
    assert [(row["prefill_scenario"], row["scenario"]) for row in found["frontiers"]] == [
        ("trn3-nl72x2", "trn3-nl72x2"),
        ("gb200-nvl72", "trn3-nl72x2"),
        ("b200-hgx8", "trn3-nl72x2"),
    ]
    own, *others = found["frontiers"]
    assert own["cost_against_own"] == 1
    costs = {row["prefill_scenario"]: next(p["usd_per_million_output_tokens"] for p in row["points"] if p["chosen"]) for row in found["frontiers"]}
    for row in others:
        assert row["cost_against_own"] == pytest.approx(costs[row["prefill_scenario"]] / costs["trn3-nl72x2"], rel=1e-12)
    assert found["best"]["prefill_scenario"] == min(costs, key=costs.get)


@pytest.mark.parametrize("arguments", [TWO, PAIRS], ids=["alone", "pairs"])
def test_csv_is_the_json(arguments):
    lines = list(csv.DictReader(io.StringIO(tco(*arguments, "--format", "csv").stdout)))
    points = [point for row in document(*arguments)["frontiers"] for point in row["points"]]
    assert list(lines[0]) == list(HEADER)
    assert len(lines) == len(points)
    for line, point in zip(lines, points, strict=True):
        for key, value in point.items():
            assert (line[key] or None) == (value if value is None or isinstance(value, str) else line[key])
            if isinstance(value, (int, float)):
                assert float(line[key]) == value


@pytest.mark.parametrize("arguments", [TWO, PAIRS], ids=["alone", "pairs"])
def test_eighty_columns(arguments, monkeypatch):
    monkeypatch.setattr(emit, "terminal_width", lambda: 80)
    text = tco(*arguments).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "Validated on 159 serving points of gb200-gpu" in text or arguments is PAIRS


def test_a_system_without_a_scenario_stands_on_the_headlines_terms():
    assert document("frontier", "b200-hgx8")["frontiers"][0]["system"] == "b200-hgx8"


@pytest.mark.parametrize(("name", "fragment"), [("gb200-nvl7", "did you mean 'gb200-nvl72'"), ("train-gpt3-175b-a100x64", "its workload trains")])
def test_bad_names(name, fragment):
    done = tco("frontier", name)
    assert (done.exit_code, done.stdout) == (3, "")
    assert fragment in done.stderr
