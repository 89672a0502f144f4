"""A place that lists alternatives takes the part of least cost over its life; the bill says so."""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco import DataError
from tco.scenario.document import load_scenario
from tco.scenario.draw_groups import decisions
from tco.scenario.resolve import resolve_scenario
from tests.catalogue import checks, load_system
from tests.scenario_helpers import bill_of
from tests.system.test_wires import changed

NAME = "trn3-nl72x2"
SMALL = {"scorpio-p-32": 8, "scorpio-p-64": 4, "scorpio-p-128": 2}
OPTIONS = {"8x32": "scorpio-p-32", "4x64": "scorpio-p-64", "2x128": "scorpio-p-128"}
TRAYS = 36


def switches_in_bill(system_bill) -> dict[str, float]:
    """The small switches of a bill."""
    return {
        part: system_bill.system.quantity[part]
        for part in SMALL
        if system_bill.system.quantity.get(part)
    }


def used_hour(catalogue, option: str, **settings: str) -> float:
    """Cost of a used chip-hour with one of the parts, named by its variant."""
    paths = {path.replace("__", "."): text for path, text in settings.items()}
    answer = tco.evaluate(
        NAME, paths, catalogue=catalogue, variant={"tray_switch": option}, workload=False
    )
    return answer.metrics["tco_usd_per_used_chip_hour"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"parts__scorpio-p-32__price": "262 USD"},
        {"site__electricity_price": "0.25 USD/kWh"},
        {"terms__life": "12 year", "site__pue": "1.6"},
        {"parts__scorpio-p-32__failure_rate": "0.2 1/year"},
        {"parts__scorpio-p-64__power": "1 W"},
    ],
    ids=str,
)
def test_part_of_the_cheapest_used_hour_takes_the_place(catalogue, settings):
    """Held against the three variants that name a part each."""
    costs = {option: used_hour(catalogue, option, **settings) for option in OPTIONS}
    best = min(costs, key=lambda option: costs[option])
    paths = {path.replace("__", "."): text for path, text in settings.items()}
    result = tco.evaluate(NAME, paths, catalogue=catalogue, workload=False)
    assert result.structure.alternatives == {"tray-switch": OPTIONS[best]}
    assert result.metrics["tco_usd_per_used_chip_hour"] == pytest.approx(costs[best], rel=1e-12)


def test_dear_power_chooses_a_part_that_is_dearer_to_buy(catalogue):
    bill = bill_of(NAME, {"site.electricity_price": "0.4 USD/kWh"}, catalogue=catalogue)
    assert switches_in_bill(bill) == {"scorpio-p-128": 2 * TRAYS}


def test_renter_gets_the_part_that_is_cheapest_to_buy(catalogue):
    """His hour costs the same whatever stands in the tray."""
    terms = {"terms.perspective": "renter", "terms.date": "2026-11"}
    settings = {"parts.trn3.rent": "2 USD/chip/h", "site.electricity_price": "0.4 USD/kWh"}
    result = tco.evaluate(NAME, terms | settings, catalogue=catalogue, refuse=False, workload=False)
    assert result.structure.alternatives == {"tray-switch": "scorpio-p-32"}


@pytest.mark.parametrize("seed", [3, 4])
def test_each_draw_takes_the_part_whose_used_hour_is_the_cheapest(catalogue, seed):
    draws = np.random.default_rng(seed)
    prices = draws.uniform(150, 380, 12)
    powers = draws.uniform(0.05, 0.5, 12)
    arrays = {
        "parts.scorpio-p-32.price": (prices, "USD"),
        "site.electricity_price": (powers, "USD/kWh"),
    }
    base = tco.evaluate(NAME, catalogue=catalogue, workload=False)
    function = resolve_scenario(
        catalogue, load_scenario(catalogue, NAME), arrays, {}, base.structure
    )
    chosen = decisions(function, function.values(), base.structure)["tray-switch"]
    for draw, index in enumerate(chosen):
        settings = {path: (numbers[draw], unit) for path, (numbers, unit) in arrays.items()}
        single = tco.evaluate(NAME, settings, catalogue=catalogue, workload=False)
        assert single.structure.alternatives["tray-switch"] == list(SMALL)[index]


def test_as_built_in_december_2025(catalogue):
    """The article of the launch has eight 32-lane switches a tray."""
    assert switches_in_bill(bill_of(NAME, catalogue=catalogue)) == {"scorpio-p-32": 288}


def test_the_note_names_the_choice_and_the_others(catalogue):
    (note,) = bill_of(NAME, catalogue=catalogue).notes
    assert note.startswith("tray-switch: 8 scorpio-p-32, 2,000 USD in all, cost least over ")
    assert "4 scorpio-p-64" in note
    assert "2 scorpio-p-128" in note


def test_own_price_changes_the_choice(catalogue):
    bill = bill_of(NAME, {"parts.scorpio-p-64.price": "100 USD"}, catalogue=catalogue)
    assert switches_in_bill(bill) == {"scorpio-p-64": 4 * TRAYS}
    assert bill.notes[0].startswith("tray-switch: 4 scorpio-p-64, 400 USD in all")


def test_price_of_an_unchosen_alternative_is_no_setting_without_effect(catalogue):
    """The choice rests on it, though the bill does not."""
    bill = bill_of(NAME, {"parts.scorpio-p-64.price": "900 USD"}, catalogue=catalogue)
    assert switches_in_bill(bill) == {"scorpio-p-32": 288}
    assert [note for note in bill.notes if "is set" in note] == []


@pytest.mark.parametrize(("option", "part"), OPTIONS.items())
def test_a_variant_names_the_part(catalogue, option, part):
    bill = bill_of(NAME, {"terms.date": "2026-09"}, {"tray_switch": option}, catalogue=catalogue)
    assert switches_in_bill(bill) == {part: SMALL[part] * TRAYS}
    assert bill.notes == []


def test_every_alternative_has_the_same_lanes(catalogue):
    assert {
        count * catalogue.part_input(part, "lanes", "2025-12").value
        for part, count in SMALL.items()
    } == {256}


def test_part_without_a_date_is_the_first_alternative(catalogue):
    assert load_system(catalogue, NAME).quantity["scorpio-p-32"] == 288
    assert (
        load_system(catalogue, NAME, {}, {"tray-switch": "scorpio-p-128"}).quantity["scorpio-p-128"]
        == 72
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tray-switch = 1, ", "", "alternatives.tray-switch stands nowhere in the tree"),
        (
            "tray-switch = { scorpio-p-32 = 8, scorpio-p-64 = 4, scorpio-p-128 = 2 }",
            "tray-switch = 8",
            "alternatives.tray-switch is 8, expected parts",
        ),
        (
            "tray-switch = { scorpio-p-32 = 8, scorpio-p-64 = 4, scorpio-p-128 = 2 }",
            "tray-switch = {}",
            "alternatives.tray-switch is {}, expected parts",
        ),
        (
            "scorpio-p-32 = 8, scorpio-p-64 = 4,",
            "scorpio-p-32 = -8, scorpio-p-64 = 4,",
            "expected parts and how many of each",
        ),
        (
            "scorpio-p-64 = 4, scorpio-p-128 = 2 }\n\n",
            "scorpio-p-46 = 4 }\n\n",
            "unknown part 'scorpio-p-46'; did you mean 'scorpio-p-",
        ),
    ],
)
def test_bad_alternatives_are_refused(own_data, old, new, message):
    path, catalogue = changed(own_data, NAME, (old, new))
    with pytest.raises(DataError) as caught:
        bill_of(NAME, catalogue=catalogue)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_alternative_adds_to_the_same_part_in_its_tray(own_data):
    _, catalogue = changed(
        own_data, NAME, ("tray-switch = 1, ", "scorpio-p-32 = 1, tray-switch = 1, ")
    )
    assert load_system(catalogue, NAME).quantity["scorpio-p-32"] == 9 * TRAYS


def test_check_of_systems_names_bad_counts_of_alternatives(own_data):
    changed(
        own_data,
        NAME,
        ("scorpio-p-32 = 8, scorpio-p-64 = 4,", 'scorpio-p-32 = "8", scorpio-p-64 = "four",'),
    )
    findings = checks.check_systems(own_data.catalogue())
    assert any("alternatives.tray-switch.scorpio-p-64" in finding for finding in findings)
