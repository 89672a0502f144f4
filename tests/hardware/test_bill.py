"""The bill of materials: what is priced, what is included, and what the power shelves lose."""

from __future__ import annotations

import pytest

from tco import DataError
from tests.chain import HEADLINE, bill_of, result

each = pytest.mark.parametrize("name", HEADLINE)


@each
def test_a_line_is_quantity_times_price(name):
    for line in result(name).bill.lines:
        if line.extended is not None:
            assert line.extended == pytest.approx(line.quantity * line.unit_price, rel=1e-12), line.path


@each
def test_a_line_is_priced_or_included(name):
    priced = {line.path for line in result(name).bill.lines if line.extended is not None}
    for line in result(name).bill.lines:
        assert (line.extended is None) == (line.included_in is not None), line.path
        if line.included_in is not None:
            assert line.included_in in priced
            assert line.path.startswith(line.included_in + "/")


@each
def test_every_line_names_kind_and_sources(name, catalogue):
    for line in result(name).bill.lines:
        assert line.kind
        assert line.sources
        if line.included_in is None:
            assert set(line.sources) <= catalogue.sources.keys(), line.path


@each
def test_every_place_stands_once(name):
    paths = [line.path for line in result(name).bill.lines]
    assert len(paths) == len(set(paths))


@each
def test_shelves_lose_what_their_efficiency_says(name, catalogue):
    """P_in = P_out / efficiency: the loss line is the only one that is no load."""
    found = result(name)
    (shelf,) = {line.part for line in found.bill.lines if catalogue.has_part_value(line.part, "efficiency")}
    load = sum(line.power for line in found.bill.lines if line.part != shelf)
    assert found.bill.power == pytest.approx(load / found.inputs[f"parts.{shelf}.efficiency"].value, rel=1e-12)


@each
def test_assembly_is_a_share_of_what_is_no_chip(name, catalogue):
    found = result(name)
    (line,) = (line for line in found.bill.lines if catalogue.has_part_value(line.part, "assembly_share"))
    chip = next(path.split(".")[1] for path in found.inputs if path.endswith(".hbm_capacity"))
    rest = sum(x.extended for x in found.bill.lines if x.extended is not None and x is not line and chip not in x.path.split("/"))
    assert line.extended == pytest.approx(rest * found.inputs[f"parts.{line.part}.assembly_share"].value, rel=1e-12)


def test_a_bill_needs_no_workload(catalogue):
    assert bill_of("gb200-nvl72", catalogue=catalogue).bill.price == pytest.approx(result("gb200-nvl72").bill.price, rel=1e-12)


def test_larger_switches_change_the_switches_only(catalogue):
    one, two = (bill_of("trn3-nl72x2", {}, {"switch": generation}, catalogue=catalogue) for generation in ("gen1", "gen2"))
    parts = {path.path: path.quantity for path in one.bill.lines}, {path.path: path.quantity for path in two.bill.lines}
    moved = {path.rpartition("/")[2] for path in parts[0].keys() | parts[1].keys() if parts[0].get(path) != parts[1].get(path)}
    assert moved == {"scorpio-x-160", "scorpio-x-320"}


def test_a_setting_the_bill_does_not_rest_on_is_noted(catalogue):
    assert bill_of("gb200-nvl72", {"terms.rate": "0.2"}, catalogue=catalogue).notes == ["terms.rate is set, but this bill does not rest on it"]


def test_a_missing_price_is_an_error(own):
    """A part without a price is never free."""
    own.write("systems/tiny.toml", TINY)
    own.parts("my-box,power,5,W,,,2025-12,vendor,tco-model,,")
    with pytest.raises(DataError, match=r"parts.my-box.price is missing .* never taken as zero"):
        bill_of("tiny", catalogue=own.catalogue())


def test_a_missing_power_is_an_error(own):
    own.write("systems/tiny.toml", TINY)
    own.parts("my-box,price,5,USD,,,2025-12,vendor,tco-model,,")
    with pytest.raises(DataError, match=r"parts.my-box.power is missing"):
        bill_of("tiny", catalogue=own.catalogue())


def test_a_tree_without_power_shelf_is_an_error(own):
    own.write("systems/tiny.toml", TINY.replace(", power-shelf-33kw = 1", ""))
    own.parts("my-box,price,5,USD,,,2025-12,vendor,tco-model,,", "my-box,power,5,W,,,2025-12,vendor,tco-model,,")
    with pytest.raises(DataError, match="the tree holds no power shelf"):
        bill_of("tiny", catalogue=own.catalogue())


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
