"""A measured curve is priced by what it states: publishers' own costs come out of their rates."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

from tco.core.files import data_directory
from tests.cli import document, tco

CHIPS = {"B200 SXM": "b200-hgx8", "MI355X": "mi355x-8"}


def published_rows():
    path = data_directory() / "measured" / "inference.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["usd_per_m_total_tokens"]]
    return [row for row in rows if row["accelerator"] in CHIPS]


@pytest.mark.parametrize("chip", CHIPS)
def test_published_costs_follow_from_published_rates(tmp_path, chip):
    """InferenceX's USD per million tokens are ours times its chip-hour over ours."""
    rows = [row for row in published_rows() if row["accelerator"] == chip]
    assert len(rows) >= 10
    path = tmp_path / "inferencex.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    system = CHIPS[chip]
    points = document("curve", path, "--system", system)["points"]
    assert len(points) == len(rows)
    median_hour = (
        points[0]["median_usd_per_million_output_tokens"]
        * 3600e-6
        * points[0]["output_tokens_per_s_per_chip"]
    )
    for point, row in zip(points, rows, strict=True):
        rate = float(row["tco_usd_per_gpu_hr"])
        cost = point["usd_per_million_tokens"] * rate / median_hour
        # both the cost and the rate are printed to a cent
        rounding = 0.005 + 0.005 * cost / rate
        assert cost == pytest.approx(float(row["usd_per_m_total_tokens"]), abs=rounding)


RUN = {
    "hw": "h200",
    "tp": 8,
    "isl": 4000,
    "osl": 1000,
    "conc": 64,
    "model": "x/y",
    "tput_per_gpu": 2000,
    "median_intvty": 40,
    "p90_tpot": 0.02,
    "p90_ttft": 0.5,
}


@pytest.fixture(name="write")
def write_curve(tmp_path):
    def write(*changes, name="curve.json"):
        path = tmp_path / name
        path.write_text(json.dumps([RUN | change for change in changes]))
        return path

    return write


def points_of(*arguments):
    return document("curve", *arguments, "--system", "h200-hgx8")["points"]


def test_the_range_is_that_of_the_chip_hour(write):
    (point,) = points_of(write({}))
    hour = document("uncertainty", "h200-hgx8", "--samples", "512")["metrics"]
    hour = hour["tco_usd_per_used_chip_hour"]
    assert point["output_tokens_per_s_per_chip"] == 400
    for name, quantile in (("p10", "p10"), ("median", "p50"), ("p90", "p90")):
        expected = hour[quantile] / (3600 * 400) * 1e6
        assert point[f"{name}_usd_per_million_output_tokens"] == pytest.approx(expected, rel=1e-9)


def test_a_rate_card_adds_up_to_a_request(write):
    path, split = write({}), ("--prefill-share", "0.4")
    (point,) = points_of(path, *split)
    assert point["rate_card_cached_input_usd_per_million"] is None
    request = 1000 * point["median_usd_per_million_output_tokens"]
    card = [point[f"rate_card_{side}_usd_per_million"] for side in ("input", "output")]
    assert 4000 * card[0] + 1000 * card[1] == pytest.approx(request, rel=1e-12)
    (point,) = points_of(path, *split, "--cached-price", "0.1", "--cache-hit", "0.75")
    sides = {"input": 1000, "cached_input": 3000, "output": 1000}
    card = sum(
        tokens * point[f"rate_card_{side}_usd_per_million"] for side, tokens in sides.items()
    )
    assert card == pytest.approx(request, rel=1e-12)


def test_pools_that_are_apart_split_the_cost(write):
    pools = {"disagg": True, "num_prefill_gpu": 4, "num_decode_gpu": 12}
    (point,) = points_of(write(pools))
    all_cost = point["median_usd_per_million_output_tokens"]
    assert point["rate_card_output_usd_per_million"] == pytest.approx(0.75 * all_cost)


def test_a_share_is_held_against_points_as_quick_or_quicker(write):
    slow, quick = {"median_intvty": 20, "tput_per_gpu": 4000}, {"median_intvty": 60}
    shares = [point["share_of_best"] for point in points_of(write(slow, quick))]
    assert shares == [1, 1]
    behind = points_of(write(quick | {"tput_per_gpu": 8000}, slow, name="two.json"))
    assert [point["share_of_best"] for point in behind] == pytest.approx([1, 0.5])
    unlike = points_of(write({"isl": 1000}, slow, name="apart.json"))
    assert [point["share_of_best"] for point in unlike] == [1, 1]


def test_endpoints_are_written_and_read_again(write, tmp_path):
    text = tco("curve", write({}), "--system", "h200-hgx8", "--format", "endpoints").stdout
    assert text.splitlines() == [
        "concurrency,system_tps,tps_per_user,tpot_p90_ms,ttft_p90_ms",
        "64,3200,50,20,500",
    ]
    path = tmp_path / "points.csv"
    path.write_text(text)
    (point,) = points_of(path, "--tp", "8")
    assert (point["output_tokens_per_s_per_chip"], point["tokens_per_s_per_user"]) == (400, 50)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"hw": "mi355x"}, (), "measured on mi355x, and h200-hgx8 has h200-sxm"),
        ({"hw": "gadget"}, (), "unknown-accelerator: 'gadget'; say it with --chip h200-sxm"),
        ({"median_intvty": None, "p90_tpot": None}, (), "row 1: states no speed per user"),
        ({}, ("--cache-hit", "0.5"), "add --cached-price"),
        ({}, ("--system", "gb200-nvl72"), "--system is given 2 times for 1 files"),
    ],
)
def test_curve_that_cannot_be_priced_is_refused(write, change, arguments, message):
    refused = tco("curve", write(change), "--system", "h200-hgx8", *arguments)
    assert refused.exit_code in (2, 3)
    assert message in refused.stderr


def test_rows_of_other_chips_are_counted(write):
    answer = tco("curve", write({}, {"hw": "b200"}), "--system", "h200-hgx8")
    assert "1 rows of other chips than h200-sxm are left out" in answer.stderr
