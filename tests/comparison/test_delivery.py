"""Dates of delivery in a comparison: late racks, later picks, and the cost of waiting."""

from __future__ import annotations

import pytest

from tests.cli import document
from tests.cli import tco as command

GB200, MI450X = "gb200-nvl72", "mi450x-ualoe72"
SPEEDS = ("--speeds", "20,50")


def picks_at(verdict, speed):
    """Return the picks of a verdict at a speed."""
    return next(set(regime["picks"]) for regime in verdict if speed in regime["speeds"])


def test_every_row_says_when_it_is_delivered_and_of_when_its_prices_are():
    rows = document("compare", GB200, MI450X, "--no-range")["rows"]
    assert [row["delivered"] for row in rows] == [row["available"]["volume"] for row in rows]
    assert {row["price_date"] for row in rows} == {"2026-11"}
    lines = command("compare", GB200, MI450X, "--no-range", "--format", "csv").stdout.splitlines()
    assert {"delivered", "price_date", "basis"} <= {*lines[0].split(",")}


@pytest.mark.thorough
def test_the_later_picks_are_those_of_a_comparison_at_that_date():
    compare_document = document("compare", GB200, MI450X, *SPEEDS)
    later = compare_document["later"]
    assert later["date"] == next(
        row["delivered"] for row in compare_document["rows"] if row["scenario"] == MI450X
    )
    then = document("compare", GB200, MI450X, *SPEEDS, "--date", later["date"])
    assert "later" not in then
    for speed in (20, 50):
        assert picks_at(later["verdict"], speed) == picks_at(then["verdict"], speed)
    assert later["differs"] == any(
        picks_at(later["verdict"], speed) != picks_at(compare_document["verdict"], speed)
        for speed in (20, 50)
    )


def test_rack_available_within_three_months_has_no_later_pick():
    compare_document = document("compare", GB200, MI450X, *SPEEDS, "--date", "2027-03")
    assert "later" not in compare_document
    assert all(regime["late"] == {} for regime in compare_document["verdict"])


@pytest.mark.parametrize("option", ["--hold", "--no-range"])
def test_without_new_plans_or_draws_there_is_no_later_comparison(option):
    assert "later" not in document("compare", GB200, MI450X, *SPEEDS, option)


def test_waiting_is_a_line_of_the_cost_if_requested():
    """Spread as a loan over five years at 9 % a year, paid every month."""
    plain, waits = (
        document("price", MI450X, *more) for more in ((), ("--set", "terms.waiting=yes"))
    )
    (line,) = [line for line in waits["lines"] if line["path"] == "waiting"]
    assert not [line for line in plain["lines"] if line["path"] == "waiting"]
    month = 0.09 / 12
    hour = plain["waiting_usd_per_chip"] * 12 * month / (1 - (1 + month) ** -60) / 8760
    assert line["usd_per_chip_hour"] == pytest.approx(hour, rel=1e-9)
    cost = "tco_usd_per_chip_hour"
    assert waits["metrics"][cost] == pytest.approx(plain["metrics"][cost] + hour, rel=1e-9)
    assert sum(line["usd_per_chip_hour"] for line in waits["lines"]) == pytest.approx(
        waits["metrics"][cost], rel=1e-9
    )
    assert waits["waiting_usd_per_chip"] == pytest.approx(plain["waiting_usd_per_chip"], rel=1e-12)


def test_waiting_buys_nothing():
    plain, waits = (
        document("gigawatt", MI450X, *more)["rows"][0]
        for more in ((), ("--set", "terms.waiting=yes"))
    )
    assert waits["usd_per_grid_w"] == plain["usd_per_grid_w"]


def test_an_unknown_answer_to_waiting_is_refused():
    done = command("price", GB200, "--set", "terms.waiting=banana")
    assert done.exit_code == 3
    assert "terms.waiting" in done.stderr
    assert "there are no, yes" in done.stderr


def test_renter_pays_no_cost_of_waiting():
    done = command(
        "price", GB200, "--set", "terms.waiting=yes", "--set", "terms.perspective=renter"
    )
    assert done.exit_code == 3
    assert "set terms.waiting=no" in done.stderr
