"""Places of the tree that list alternatives: the cheapest part at the scenario's date stands there,
and the bill says so.
"""

from __future__ import annotations

import pytest

from tco import DataError
from tests.catalogue import checks, load_system
from tests.scenario_helpers import bill_of
from tests.system.test_wires import changed

NAME = "trn3-nl72x2"
SMALL = {"scorpio-p-32": 8, "scorpio-p-64": 4, "scorpio-p-128": 2}
TRAYS = 36


def standing(found) -> dict[str, float]:
    """The small switches of a bill."""
    return {part: found.system.quantity[part] for part in SMALL if found.system.quantity.get(part)}


def cost(catalogue, part: str, date: str) -> float:
    return SMALL[part] * catalogue.part_input(part, "price", date).value


@pytest.mark.parametrize("date", ["2025-12", "2026-03", "2026-09", "2027"])
def test_the_cheapest_at_the_date_stands_there(catalogue, date):
    best = min(SMALL, key=lambda part: cost(catalogue, part, date))
    found = bill_of(NAME, {"terms.date": date}, catalogue=catalogue)
    assert standing(found) == {best: SMALL[best] * TRAYS}
    line = next(line for line in found.bill.lines if line.part == best)
    assert line.path == f"rack/compute-tray/{best}"
    assert line.extended == TRAYS * cost(catalogue, best, date)


def test_as_built_in_december_2025(catalogue):
    """The article of the launch has eight 32-lane switches a tray."""
    assert standing(bill_of(NAME, catalogue=catalogue)) == {"scorpio-p-32": 288}


def test_the_note_names_the_choice_and_the_others(catalogue):
    (note,) = bill_of(NAME, catalogue=catalogue).notes
    assert note.startswith("tray-switch: 8 scorpio-p-32 at 2,000 USD, the cheapest at 2026-11; ")
    assert "4 scorpio-p-64" in note
    assert "2 scorpio-p-128" in note


def test_a_price_of_ones_own_moves_the_choice(catalogue):
    found = bill_of(NAME, {"parts.scorpio-p-64.price": "100 USD"}, catalogue=catalogue)
    assert standing(found) == {"scorpio-p-64": 4 * TRAYS}
    assert found.notes[0].startswith("tray-switch: 4 scorpio-p-64 at 400 USD")


def test_a_price_that_moves_nothing_is_no_setting_without_effect(catalogue):
    """The choice rests on it, though the bill does not."""
    found = bill_of(NAME, {"parts.scorpio-p-64.price": "900 USD"}, catalogue=catalogue)
    assert standing(found) == {"scorpio-p-32": 288}
    assert [note for note in found.notes if "is set" in note] == []


@pytest.mark.parametrize(
    ("option", "part"),
    [("8x32", "scorpio-p-32"), ("4x64", "scorpio-p-64"), ("2x128", "scorpio-p-128")],
)
def test_a_variant_names_the_part(catalogue, option, part):
    found = bill_of(NAME, {"terms.date": "2026-09"}, {"tray_switch": option}, catalogue=catalogue)
    assert standing(found) == {part: SMALL[part] * TRAYS}
    assert found.notes == []


def test_every_alternative_has_the_same_lanes(catalogue):
    assert {
        count * catalogue.part_input(part, "lanes", "2025-12").value
        for part, count in SMALL.items()
    } == {256}


def test_without_a_date_it_is_the_first_one(catalogue):
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
def test_bad_alternatives(own, old, new, message):
    path, catalogue = changed(own, NAME, (old, new))
    with pytest.raises(DataError) as caught:
        bill_of(NAME, catalogue=catalogue)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_a_place_joins_what_already_stands_there(own):
    _, catalogue = changed(own, NAME, ("tray-switch = 1, ", "scorpio-p-32 = 1, tray-switch = 1, "))
    assert load_system(catalogue, NAME).quantity["scorpio-p-32"] == 9 * TRAYS


def test_the_schema_knows_them(own):
    changed(
        own,
        NAME,
        ("scorpio-p-32 = 8, scorpio-p-64 = 4,", 'scorpio-p-32 = "8", scorpio-p-64 = "four",'),
    )
    found = checks.check_systems(own.catalogue())
    assert any("alternatives.tray-switch.scorpio-p-64" in finding for finding in found)
