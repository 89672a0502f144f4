"""`tco frontier`: its document, its rows, its table within 80 columns."""

from __future__ import annotations

import csv
import io

import pytest

from tco.evaluation.evaluation import HEADLINE
from tests.cli import document, output, tco

NAMES = ("scenario", "system", "prefill_scenario", "prefill_system")
TWO = ("frontier", "trn3-nl72x2", "gb200-nvl72")
PAIRS = ("frontier", "trn3-nl72x2", "--prefill", "gb200-nvl72", "--prefill", "b200-hgx8")


def test_document():
    frontier_document = document(*TWO)
    assert frontier_document["schema"] == "tco.frontier/1"
    assert [row["scenario"] for row in frontier_document["frontiers"]] == [
        "trn3-nl72x2",
        "gb200-nvl72",
    ]
    for row in frontier_document["frontiers"]:
        assert row["scenario"] == row["prefill_scenario"]
        assert sum(point["chosen"] for point in row["points"]) == 1
        assert {point["hand_over_s"] for point in row["points"]} == {None}
        assert row["validated"]["text"]


def test_pairs():
    frontier_document = document(*PAIRS)
    assert [
        (row["prefill_scenario"], row["scenario"]) for row in frontier_document["frontiers"]
    ] == [
        ("trn3-nl72x2", "trn3-nl72x2"),
        ("gb200-nvl72", "trn3-nl72x2"),
        ("b200-hgx8", "trn3-nl72x2"),
    ]
    own_frontier, *mixed_frontiers = frontier_document["frontiers"]
    assert own_frontier["cost_against_own"] == 1
    costs = {
        row["prefill_scenario"]: next(
            p["usd_per_million_output_tokens"] for p in row["points"] if p["chosen"]
        )
        for row in frontier_document["frontiers"]
    }
    for row in mixed_frontiers:
        assert row["cost_against_own"] == pytest.approx(
            costs[row["prefill_scenario"]] / costs["trn3-nl72x2"], rel=1e-12
        )
    assert frontier_document["best"]["prefill_scenario"] == min(costs, key=costs.get)


@pytest.mark.parametrize("arguments", [TWO, PAIRS], ids=["alone", "pairs"])
def test_csv_is_the_json(arguments):
    lines = list(csv.DictReader(io.StringIO(tco(*arguments, "--format", "csv").stdout)))
    points = [point for row in document(*arguments)["frontiers"] for point in row["points"]]
    assert list(lines[0]) == [*NAMES, *points[0], "date", "site", "set"]
    assert len(lines) == len(points)
    for line, point in zip(lines, points, strict=True):
        for key, value in point.items():
            assert (line[key] or None) == (
                value if value is None or isinstance(value, str) else line[key]
            )
            if isinstance(value, (int, float)):
                assert float(line[key]) == value


@pytest.mark.parametrize(
    "arguments",
    [
        TWO,
        PAIRS,
        pytest.param((*TWO, "--range"), marks=pytest.mark.thorough),
        (*TWO, "mi450x-ualoe72", "--pareto"),
        pytest.param((*TWO, "--pareto", "--range"), marks=pytest.mark.thorough),
    ],
    ids=["alone", "pairs", "ranges", "designs", "both"],
)
def test_eighty_columns(arguments, monkeypatch):
    monkeypatch.setattr(output, "screen_width", lambda: 80)
    text = tco(*arguments).stdout
    assert max(map(len, text.splitlines())) <= 80
    evidence = "checked on 159 published serving runs of gb200-gpu"
    assert evidence in " ".join(text.lower().split()) or arguments is PAIRS


def test_the_target_speed_is_that_of_the_starred_row_and_a_common_line_stands_once():
    text = tco(*TWO).stdout
    assert "at least 50 tokens/s" not in text
    assert "* the cheapest plan at the target speed of the workload: 50 tokens/s per user." in text
    for common in ("A row is the best plan at one speed.", "tok/s: output tokens/s;", "Buyer "):
        assert text.count(common) == 1
    assert text.count("A prefill instance has") == 2
    starred = [line.split() for line in text.splitlines() if line.rstrip("+ ").endswith(" *")]
    assert [cells[0] for cells in starred] == ["50.0", "50.0"]


PARETO = (*TWO, "h200-hgx8", "--pareto")


def test_designs():
    frontier_document = document(*PARETO)
    designs = frontier_document["pareto"]["designs"]
    assert len(designs) == sum(len(row["points"]) for row in frontier_document["frontiers"])
    assert [axis["better"] for axis in frontier_document["pareto"]["axes"]] == [
        "less",
        "more",
        "more",
        "more",
    ]
    free = [design for design in designs if design["beaten_by"] is None]
    assert free
    assert {design["scenario"] for design in free} <= {"trn3-nl72x2", "gb200-nvl72"}
    axes = [
        (axis["metric"], -1 if axis["better"] == "less" else 1)
        for axis in frontier_document["pareto"]["axes"]
    ]
    for design, rival_design in (
        (free_design, two) for free_design in free for two in free if free_design is not two
    ):
        assert any(sign * design[name] > sign * rival_design[name] for name, sign in axes)
    for design in designs:
        if by := design["beaten_by"]:
            for axis in frontier_document["pareto"]["axes"]:
                name = axis["metric"]
                assert by["change"][name] == pytest.approx(by[name] / design[name] - 1)
                assert (
                    (by["change"][name] <= 1e-3)
                    if axis["better"] == "less"
                    else (by["change"][name] >= -1e-3)
                )


@pytest.mark.thorough
def test_ranges():
    frontier_document = document(*TWO, "--pareto", "--range")
    for row in frontier_document["frontiers"]:
        for point in row["points"]:
            range_ = point["range"]["usd_per_million_output_tokens"]
            # a miss lies beyond the worse end
            ends = [end for end in (range_["p10"], range_["p50"], range_["p90"]) if end is not None]
            assert ends
            assert ends == sorted(ends)
            assert (len(ends) == 3) or point["share_of_draws_that_meet_the_target"] < 0.9
            assert 0 < point["share_of_draws_that_meet_the_target"] <= 1
    shares = [
        by["share_of_draws_in_which_it_is_beaten"]
        for design in frontier_document["pareto"]["designs"]
        if (by := design["beaten_by"])
    ]
    assert 0 < min(shares) < max(shares) <= 1
    # what is beaten at the point mostly is so in most draws
    assert sum(beaten_share > 0.5 for beaten_share in shares) > 0.9 * len(shares)
    points = [point for row in frontier_document["frontiers"] for point in row["points"]]
    lines = list(csv.DictReader(io.StringIO(tco(*TWO, "--range", "--format", "csv").stdout)))
    for line, point in zip(lines, points, strict=True):
        assert (
            float(line["output_tokens_per_s_per_chip_p90"])
            == point["range"]["output_tokens_per_s_per_chip"]["p90"]
        )
        assert (
            float(line["share_of_draws_that_meet_the_target"])
            == point["share_of_draws_that_meet_the_target"]
        )


def test_csv_of_designs():
    lines = list(csv.DictReader(io.StringIO(tco(*PARETO, "--format", "csv").stdout)))
    for line, design in zip(lines, document(*PARETO)["pareto"]["designs"], strict=True):
        by = design["beaten_by"]
        assert (line["scenario"], float(line["tokens_per_s_per_user"])) == (
            design["scenario"],
            design["tokens_per_s_per_user"],
        )
        assert line["beaten_by_scenario"] == (by["scenario"] if by else "")
        assert line["beaten_by_batch"] == (str(by["batch"]) if by else "")
        assert line["change_of_usd_per_million_output_tokens"] == (
            repr(by["change"]["usd_per_million_output_tokens"]) if by else ""
        )


def test_designs_where_no_rack_fits_say_why():
    done = tco("frontier", "gb200-nvl72", "--pareto", "--range", "--set", "site=us-air-hall")
    assert done.exit_code == 0
    assert "gb200-nvl72: does not fit" in done.stdout


def test_designs_of_several_workloads_are_told_apart():
    text = tco("frontier", "gb200-nvl72", "moe-3t-decode-gb200-nvl72", "--pareto").stdout
    assert "compared with those of its own workload" in text
    assert "compared with those of its own workload" not in tco(*PARETO).stdout


def test_a_system_without_a_scenario_stands_on_the_headlines_terms():
    assert document("frontier", "b200-hgx8")["frontiers"][0]["system"] == "b200-hgx8"


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        ("gb200-nvl7", "did you mean 'gb200-nvl72'"),
        ("train-gpt3-175b-a100x64", "its workload trains"),
    ],
)
def test_bad_names(name, fragment):
    done = tco("frontier", name)
    assert (done.exit_code, done.stdout) == (3, "")
    assert fragment in done.stderr


def test_points_are_marked_cheapest_among_several_systems_alone():
    lone, several = (
        tco("frontier", *systems).stdout
        for systems in (("gb200-nvl72",), ("gb200-nvl72", "trn3-nl32x2"))
    )
    assert "cheapest: no other system" not in lone
    assert not [line for line in lone.splitlines() if line.endswith("+")]
    assert [line for line in several.splitlines() if line.endswith("+")]


@pytest.mark.thorough
def test_frontier_of_no_named_system_is_that_of_the_headline():
    assert [frontier["scenario"] for frontier in document("frontier")["frontiers"]] == [*HEADLINE]
