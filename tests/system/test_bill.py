"""The bill of materials: what is priced, what is included, and what the power shelves lose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco import DataError
from tests.scenario_helpers import HEADLINE, bill_of, result

each_headline = pytest.mark.parametrize("name", HEADLINE)


@each_headline
def test_a_line_is_quantity_times_price(name):
    for line in result(name).bill.lines:
        if line.extended is not None:
            assert line.extended == pytest.approx(line.quantity * line.unit_price, rel=1e-12), (
                line.path
            )


@each_headline
def test_line_has_a_price_or_is_included_in_another(name):
    priced = {line.path for line in result(name).bill.lines if line.extended is not None}
    for line in result(name).bill.lines:
        assert (line.extended is None) == (line.included_in is not None), line.path
        if line.included_in is not None:
            assert line.included_in in priced
            assert line.path.startswith(line.included_in + "/")


@each_headline
def test_every_line_names_kind_and_sources(name, catalogue):
    for line in result(name).bill.lines:
        assert line.kind
        assert line.sources
        if line.included_in is None:
            assert set(line.sources) <= catalogue.sources.keys(), line.path


@each_headline
def test_every_place_stands_once(name):
    paths = [line.path for line in result(name).bill.lines]
    assert len(paths) == len(set(paths))


@each_headline
def test_shelves_lose_what_their_efficiency_says(name, catalogue):
    """P_in = P_out / efficiency: the loss line is the only one that is no load."""
    evaluation = result(name)
    (shelf,) = {
        line.part
        for line in evaluation.bill.lines
        if catalogue.has_part_value(line.part, "efficiency")
    }
    load = sum(line.power for line in evaluation.bill.lines if line.part != shelf)
    assert evaluation.bill.power == pytest.approx(
        load / evaluation.inputs[f"parts.{shelf}.efficiency"].value, rel=1e-12
    )


def assembly_cost(bill, catalogue):
    (line,) = (line for line in bill.lines if catalogue.has_part_value(line.part, "labour_rate"))
    return line.extended


@each_headline
def test_assembly_costs_the_hours_of_every_tray_and_rack_at_one_rate(name, catalogue):
    evaluated = result(name)
    count = {}
    for line in evaluated.bill.lines:
        count[line.part] = count.get(line.part, 0) + line.quantity
    hours = {
        path.split(".")[1]: entry.value
        for path, entry in evaluated.inputs.items()
        if path.endswith(".assembly_time")
    }
    assert len(hours) >= 4  # a rack, its manifold or head node, and two kinds of trays
    total = sum(count[part] * hours_each for part, hours_each in hours.items())
    rate = evaluated.inputs["parts.assembly-test.labour_rate"].value
    assert assembly_cost(evaluated.bill, catalogue) == pytest.approx(rate * total, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("trn3-nl32x2", 2 * 110 + 32 * 2 + 4 * 3 + 8 * 1.5),
        ("gb200-nvl72", 160 + 18 * 6 + 9 * 2 + 2 * 6),
    ],
)
def test_hours_of_a_system_counted_by_hand(name, hours, catalogue):
    assert assembly_cost(result(name).bill, catalogue) == pytest.approx(60 * hours, rel=1e-12)


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_dearer_part_changes_no_assembly_line(data, catalogue):
    """Assembly takes the same hours whatever a part costs: memory, chips, switches, boards."""
    name = data.draw(st.sampled_from([*HEADLINE, "h100-hgx8", "gb300-nvl72"]))
    plain = bill_of(name, catalogue=catalogue)
    prices = {path for line in plain.bill.lines for path in line.inputs if path.endswith("price")}
    path = data.draw(st.sampled_from(sorted(prices)))
    part, attribute = path.split(".")[1:]
    price = catalogue.part_input(part, attribute, "2026-11").value * data.draw(st.floats(1.1, 20))
    dearer = bill_of(name, {path: f"{price!r} USD"}, catalogue=catalogue)
    assert dearer.bill.price > plain.bill.price
    assert assembly_cost(dearer.bill, catalogue) == assembly_cost(plain.bill, catalogue) > 0


def test_more_trays_cost_more_assembly_by_their_own_hours(catalogue):
    """A fifth switch tray in each of two racks: 1.5 hours each."""
    with_spare, without = (
        bill_of("trn3-nl32x2", {}, {"spare_switch_tray": spare}, catalogue=catalogue).bill
        for spare in ("yes", "no")
    )
    assert assembly_cost(with_spare, catalogue) - assembly_cost(
        without, catalogue
    ) == pytest.approx(2 * 1.5 * 60, rel=1e-9)


def test_a_tray_bought_whole_takes_no_assembly(catalogue):
    """The price of a whole tray includes its assembly, but not that of the rack around it."""
    assembled_bill, bought_bill = (
        bill_of("gb200-nvl72", changed, catalogue=catalogue).bill
        for changed in ({}, {"parts.gb200-compute-tray.price": "160000 USD"})
    )
    assert assembly_cost(assembled_bill, catalogue) - assembly_cost(
        bought_bill, catalogue
    ) == pytest.approx(18 * 6 * 60, rel=1e-9)


def test_finished_racks_have_no_assembly_line_and_racks_at_cost_do(catalogue):
    sold = bill_of("tpuv7-cube64", catalogue=catalogue).bill
    assert not [line for line in sold.lines if line.part == "assembly-test"]
    assert (
        assembly_cost(
            bill_of("tpuv7-cube64", {}, {"buyer": "google"}, catalogue=catalogue).bill, catalogue
        )
        > 0
    )


def test_tray_without_assembly_hours_is_refused(own_data):
    own_data.write(
        "systems/tiny.toml", TINY.replace("my-box = 1,", "my-box = 1, assembly-test = 1,")
    )
    rows = (
        "my-box,own_price,5,USD,,,2025-12,vendor,tco-model,,",
        "my-box,power,5,W,,,2025-12,vendor,tco-model,,",
    )
    own_data.parts(*rows)
    with pytest.raises(
        DataError,
        match=r"assembly-test prices hours of assembly, but nothing in the tree takes any; "
        r"give trays and racks an assembly_time",
    ):
        bill_of("tiny", catalogue=own_data.catalogue())
    own_data.write(
        "systems/tiny.toml",
        TINY.replace("my-box = 1,", "my-box = 1, assembly-test = 1,").replace(
            "[fabric]", "my-box = { trn3 = 1 }\n\n[fabric]"
        ),
    )
    with pytest.raises(
        DataError, match=r"parts.my-box.assembly_time is missing .* never taken as zero"
    ):
        bill_of("tiny", catalogue=own_data.catalogue())
    own_data.parts(*rows, "my-box,assembly_time,3,h,,,2025-12,vendor,tco-model,,")
    catalogue = own_data.catalogue()
    assert assembly_cost(bill_of("tiny", catalogue=catalogue).bill, catalogue) == pytest.approx(
        180, rel=1e-12
    )


def test_a_bill_needs_no_workload(catalogue):
    assert bill_of("gb200-nvl72", catalogue=catalogue).bill.price == pytest.approx(
        result("gb200-nvl72").bill.price, rel=1e-12
    )


def test_larger_switches_change_the_switches_only(catalogue):
    gen1_bill, two = (
        bill_of("trn3-nl72x2", {}, {"switch": generation}, catalogue=catalogue)
        for generation in ("gen1", "gen2")
    )
    parts = (
        {path.path: path.quantity for path in gen1_bill.bill.lines},
        {path.path: path.quantity for path in two.bill.lines},
    )
    changed_parts = {
        path.rpartition("/")[2]
        for path in parts[0].keys() | parts[1].keys()
        if parts[0].get(path) != parts[1].get(path)
    }
    assert changed_parts == {"scorpio-x-160", "scorpio-x-320"}


def test_a_setting_the_bill_does_not_rest_on_is_noted(catalogue):
    assert bill_of("gb200-nvl72", {"terms.rate": "0.2"}, catalogue=catalogue).notes == [
        "terms.rate is set, but this bill does not rest on it"
    ]


def test_a_missing_price_is_an_error(own_data):
    """A part without a price is never free."""
    own_data.write("systems/tiny.toml", TINY)
    own_data.parts("my-box,power,5,W,,,2025-12,vendor,tco-model,,")
    with pytest.raises(DataError, match=r"parts.my-box.price is missing .* never taken as zero"):
        bill_of("tiny", catalogue=own_data.catalogue())


def test_a_missing_power_is_an_error(own_data):
    own_data.write("systems/tiny.toml", TINY)
    own_data.parts("my-box,price,5,USD,,,2025-12,vendor,tco-model,,")
    with pytest.raises(DataError, match=r"parts.my-box.power is missing"):
        bill_of("tiny", catalogue=own_data.catalogue())


def test_a_tree_without_power_shelf_is_an_error(own_data):
    own_data.write("systems/tiny.toml", TINY.replace(", power-shelf-33kw = 1", ""))
    own_data.parts(
        "my-box,price,5,USD,,,2025-12,vendor,tco-model,,",
        "my-box,power,5,W,,,2025-12,vendor,tco-model,,",
    )
    with pytest.raises(DataError, match="the tree holds no power shelf"):
        bill_of("tiny", catalogue=own_data.catalogue())


TINY = """\
name = "Tiny"
chip = "trn3"
owner_pays = "built-up"
cooling = "air"
source = "tco-model"
racks = 1

[assemblies]
world = { trn3 = 4, my-box = 1, power-shelf-33kw = 1 }

[fabric]
kind = "star"
"""
