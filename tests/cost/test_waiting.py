"""When systems are there, and what it costs to want them sooner."""

from __future__ import annotations

import math
import re

import pytest

from tco import compare, evaluate
from tco.core.provenance import Input
from tco.cost.waiting import available_of
from tests.catalogue import load_system
from tests.cli import document, tco
from tests.scenario_helpers import DECEMBER

MONTH = 730  # hours
WANTED = 2026  # the end of 2025-12


def test_every_system_and_variant_is_there_some_day(catalogue):
    for name in catalogue.ids("systems"):
        system = load_system(catalogue, name, {})
        for attribute in ("general_availability", "first_volume", "bring_up"):
            date_input = catalogue.part_input(system.chip, attribute, "2026")
            assert None not in (date_input.low, date_input.high), (name, attribute)
            assert date_input.low <= date_input.value <= date_input.high
            assert date_input.source in catalogue.sources
        general, volume = (
            catalogue.part_input(system.chip, attribute, "2026").value
            for attribute in ("general_availability", "first_volume")
        )
        assert general <= volume, name


def test_waiting_is_the_sum_of_what_it_takes(catalogue):
    """A hall stands empty, half of the work is rented, the margin of the other half is lost."""
    result = evaluate("mi450x-ualoe72", DECEMBER, catalogue=catalogue)
    months = 12 * (result.inputs["parts.mi450x.first_volume"].value - WANTED)
    hall = sum(line.usd_per_chip_hour for line in result.lines if line.asset == "building")
    share, premium, margin = (
        result.inputs[f"money.{name}"].value
        for name in ("stopgap_share", "stopgap_premium", "lost_margin")
    )
    hour = result.metrics["tco_usd_per_chip_hour"]
    expected = months * MONTH * (hall + hour * (share * premium + (1 - share) * margin))
    assert result.metrics["waiting_usd_per_chip"] == pytest.approx(expected, rel=1e-9)


def test_a_deposit_earns_nothing_meanwhile(catalogue):
    without, paid = (
        evaluate("mi450x-ualoe72", DECEMBER | {"money.deposit": text}, catalogue=catalogue)
        for text in ("0", "0.3")
    )
    months = 12 * (without.inputs["parts.mi450x.first_volume"].value - WANTED)
    interest = math.pow(1 + without.inputs["terms.rate"].value, months / 12) - 1
    more = paid.metrics["waiting_usd_per_chip"] - without.metrics["waiting_usd_per_chip"]
    assert more == pytest.approx(0.3 * without.metrics["capex_usd_per_chip"] * interest, rel=1e-9)


def test_what_is_there_costs_no_waiting_and_a_later_date_less(catalogue):
    costs = [
        evaluate("mi450x-ualoe72", {"terms.date": date}, catalogue=catalogue).metrics[
            "waiting_usd_per_chip"
        ]
        for date in ("2025-12", "2026-12", "2027-12")
    ]
    assert costs[0] > costs[1] > costs[2] == 0
    assert evaluate("gb200-nvl72", catalogue=catalogue).metrics["waiting_usd_per_chip"] == 0


def test_a_variant_is_there_when_the_last_of_its_parts_is(catalogue):
    switch = catalogue.part_input("ualink-switch", "first_volume", "2026").value
    dates = [
        row["available"]
        for row in document("compare", "trn3-nl72x2", "trn3-nl72x2@switch=gen3", "--no-range")[
            "rows"
        ]
    ]
    assert dates[0]["volume"] < dates[1]["volume"] == f"{int(switch)}-01"
    assert all(
        date_range["low"] <= date_range["volume"] <= date_range["high"] for date_range in dates
    )


def test_waiting_changes_no_other_figure(catalogue):
    usual, soon = (
        compare(["gb200-nvl72", "mi450x-ualoe72"], set=date_settings).results[1].metrics
        for date_settings in ({}, {"parts.mi450x.first_volume": "2025.5"})
    )
    assert {name for name, value in usual.items() if value != soon[name]} == {
        "waiting_usd_per_chip"
    }
    assert soon["waiting_usd_per_chip"] == 0


def test_a_date_before_a_system_is_said():
    for words in (
        ("price", "mi450x-ualoe72"),
        ("perf", "mi450x-ualoe72"),
        ("compare", "mi450x-ualoe72", "--no-range"),
    ):
        assert re.search(
            r"not yet there in 2025-12: generally available in 2026-\d\d",
            tco(*words, "--date", "2025-12").stderr,
        )
        assert re.search(r"in volume", tco(*words).stdout)
    assert "not yet there" not in tco("price", "mi450x-ualoe72", "--set", "terms.date=2028").stderr


def test_a_hall_of_what_is_not_there_stands_empty_until_then():
    done = tco(
        "compare",
        "trn3-nl72x2",
        "gb200-nvl72",
        "--hall",
        "20 MW",
        "--no-range",
        "--date",
        "2025-12",
    )
    assert re.findall(
        r"note: ([\w-]+): not in volume in 2025-12, but from (\d{4}-\d\d)", done.stderr
    ) == [("trn3-nl72x2", "2026-07")]


@pytest.mark.parametrize(
    ("order", "months", "first"),
    [
        # ordered at the end of 2025, in volume from June, half a year until it runs
        ("2025-12", 12 * 0.46, "2026-12"),
        # in volume when it is ordered
        ("2027-06", 0.0, "2027-12"),
    ],
)
def test_the_last_part_says_when_a_system_is_there_and_runs_after_its_bring_up(
    order, months, first
):
    def stated(part, attribute, value, low=None, high=None):
        path = f"parts.{part}.{attribute}"
        return path, Input(path, value, "", low, high)

    inputs = dict(
        [
            stated("chip", "first_volume", 2026.46, 2026.3, 2026.96),
            stated("switch", "first_volume", 2025.1),
            stated("chip", "bring_up", 6.0),
            stated("switch", "bring_up", 2.0),
            stated("chip", "general_availability", 2026.04),
        ]
    )
    available = available_of(inputs, order)
    assert available.months == pytest.approx(months, abs=1e-9)
    assert (available.general, available.volume, available.first_token) == (
        "2026-01",
        "2026-06",
        first,
    )
    assert (available.low, available.high) == ("2026-04", "2026-12")
    assert available_of({}, order) is None
