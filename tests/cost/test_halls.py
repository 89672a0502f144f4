"""A site is a place with halls: each rack stands in the one that its cooling asks for."""

from __future__ import annotations

import pytest

from tco import DataError, compare, evaluate
from tco.catalog.halls import document_in_hall, hall_cooling
from tests.cli import document, tco

AIR_RACK, LIQUID_RACK = "trn3-nl32x2", "gb200-nvl72"
STATED = {"workload": "stated"}  # what a rack costs rests on no model


def cost_per_chip_hour(name: str, **settings: str) -> float:
    return evaluate(
        name, STATED | {path.replace("__", "."): value for path, value in settings.items()}
    ).metrics["tco_usd_per_chip_hour"]


@pytest.mark.parametrize(
    ("name", "cooling", "pue", "pue_peak"),
    [(AIR_RACK, "air", 1.2, 1.2), (LIQUID_RACK, "liquid", 1.15, 1.4)],
)
def test_rack_on_a_site_with_halls_stands_in_the_hall_of_its_cooling(name, cooling, pue, pue_peak):
    result = evaluate(name, STATED)
    assert result.hall_cooling == cooling
    assert result.inputs["site.pue"].where.endswith(f"us-hyperscale.toml:halls.{cooling}.pue")
    assert (result.inputs["site.pue"].value, result.inputs["site.pue_peak"].value) == (
        pue,
        pue_peak,
    )


@pytest.mark.parametrize(
    ("name", "site"), [(AIR_RACK, "us-air-hall"), (LIQUID_RACK, "us-liquid-hall")]
)
def test_hall_by_its_own_name_costs_what_it_costs_on_the_campus(name, site):
    assert cost_per_chip_hour(name, site=site) == cost_per_chip_hour(name)


def test_air_cooled_rack_in_a_liquid_hall_costs_more_and_says_why():
    elsewhere = evaluate(AIR_RACK, STATED | {"site": "us-liquid-hall"})
    assert elsewhere.hall_cooling == "liquid"
    assert elsewhere.metrics["tco_usd_per_chip_hour"] > 1.03 * cost_per_chip_hour(AIR_RACK)
    (note,) = (note for note in elsewhere.notes if "hall" in note)
    market, premium, discount = 12.9, 0.085, 0.186
    dear, cheap = market * (1 + premium), market * (1 - discount)
    assert note.startswith(
        f"us-liquid-hall: {AIR_RACK} is air-cooled and stands in a hall built for liquid"
    )
    assert note.endswith(f" at {dear:.3g} USD per watt; a hall for air costs {cheap:.3g}")


def test_cooling_that_is_set_puts_all_racks_into_one_hall():
    results = compare([AIR_RACK, LIQUID_RACK], set=STATED | {"site.cooling": "liquid"}).results
    assert [result.hall_cooling for result in results] == ["liquid", "liquid"]


def test_liquid_cooled_rack_on_a_site_without_liquid_hall_has_no_cost_and_names_a_hall():
    rows = document(
        "compare", AIR_RACK, LIQUID_RACK, "--set", "site=us-indiana-rainier", "--no-range"
    )["rows"]
    assert [row["hall_cooling"] for row in rows] == ["air", "air"]
    assert rows[0]["metrics"]["tco_usd_per_chip_hour"] > 0
    assert rows[1]["metrics"]["tco_usd_per_chip_hour"] is None
    assert rows[1]["metrics"]["output_tokens_per_s_per_chip"] > 0
    assert any(
        "us-indiana-rainier: a rack position takes 50 kW" in note and "the liquid hall of " in note
        for note in rows[1]["notes"]
    )


def test_site_shows_the_values_of_each_hall_with_its_name():
    values = document("sites", "show", "us-hyperscale")["values"]
    peaks = {value["hall"]: value["value"] for value in values if value["path"] == "site.pue_peak"}
    assert peaks == {"air": 1.2, "liquid": 1.4}
    one_hall = document("sites", "show", "us-air-hall")["values"]
    assert [value["value"] for value in one_hall if value["path"] == "site.pue_peak"] == [1.2]


def test_country_states_one_cooling_overhead_for_both_halls():
    peaks = {
        evaluate(name, STATED | {"site": "germany"}).inputs["site.pue_peak"].value
        for name in (AIR_RACK, LIQUID_RACK)
    }
    assert peaks == {1.35}


@pytest.mark.parametrize(
    "command",
    [
        ("price", AIR_RACK),
        ("gigawatt", AIR_RACK, "--power", "1 GW"),
        ("fleet", f"{AIR_RACK}:500 MW"),
    ],
)
def test_command_says_which_hall_is_filled(command):
    answer = document(*command)
    row = answer if "hall_cooling" in answer else (answer.get("rows") or answer["waves"])[0]
    assert row["hall_cooling"] == "air"
    assert "air" in tco(*command).stdout


def test_hall_of_an_unknown_cooling_is_refused_with_the_known_ones(own_data):
    own_data.write("sites/mine.toml", 'base = "us-hyperscale"\nname = "mine"\n\n[halls.ice]\n')
    with pytest.raises(DataError, match=r"mine\.toml: halls: unknown hall 'ice'.*air, liquid"):
        evaluate(LIQUID_RACK, {"site": "mine"}, catalogue=own_data.catalogue())


def test_hall_stated_without_a_table_is_refused(own_data):
    own_data.write("sites/mine.toml", 'base = "us-hyperscale"\nname = "mine"\nhalls = "air"\n')
    with pytest.raises(
        DataError,
        match=r"mine\.toml: halls: expected a table for each hall, such as \[halls\.air\.pue\]",
    ):
        evaluate(LIQUID_RACK, {"site": "mine"}, catalogue=own_data.catalogue())


SITE = {"name": "x", "halls": {"air": {"pue": 1.2}, "liquid": {"pue": 1.1}}}


@pytest.mark.parametrize(
    ("documents", "rack", "stated", "expected"),
    [
        ([SITE], "air", None, "air"),
        ([SITE], "liquid", None, "liquid"),
        ([SITE], "liquid", "air", "air"),
        ([SITE, {"cooling": "liquid"}], "air", None, "liquid"),
        ([{"halls": {"air": {}}}], "liquid", None, "air"),
        ([{"cooling": "air"}], "liquid", None, "air"),
        ([{"name": "no halls"}], "liquid", None, None),
    ],
)
def test_hall_follows_what_is_set_then_the_site_then_the_rack(documents, rack, stated, expected):
    assert hall_cooling(documents, rack, stated) == expected


def test_document_in_a_hall_reads_the_values_of_that_hall():
    assert document_in_hall(SITE, "air") == {"name": "x", "pue": 1.2}
    assert document_in_hall(SITE, None) == {"name": "x"}
