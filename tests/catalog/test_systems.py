"""Systems: counts follow from the tree, variants replace a branch, and a bad tree is refused."""

from __future__ import annotations

import pytest

from tco import DataError
from tco.catalog.system_tree import expand
from tests.catalogue import checks, load_system, read_toml

WORLDS = {"trn3-nl32x2": 64, "trn3-nl72x2": 144, "gb200-nvl72": 72, "mi450x-ualoe72": 72}


@pytest.mark.parametrize(("name", "chips"), WORLDS.items())
def test_chips_of_the_headline_worlds(catalogue, name, chips):
    assert load_system(catalogue, name).chips == chips


@pytest.mark.parametrize(
    ("name", "variant", "counts"),
    [
        (
            "trn3-nl72x2",
            {},
            {
                "trn3": 144,
                "graviton4": 36,
                "retimer-pcie6-x16": 216,
                "scorpio-x-160": 80,
                "scorpio-p-32": 288,
                "pcie-gearbox": 72,
                "backplane-cable": 11520,
                "aec-pcie6-x16": 72,
                "ddr5-dimm": 432,
                "nvme-8tb": 72,
                "nitro-v6-400g": 108,
                "switch-tray": 20,
                "compute-tray": 36,
            },
        ),
        ("trn3-nl72x2", {"switch": "gen2"}, {"scorpio-x-320": 40, "scorpio-x-160": 0, "trn3": 144}),
        ("trn3-nl72x2", {"switch": "gen3"}, {"scorpio-x-160": 0, "trn3": 144}),
        ("trn3-nl72x2", {"nic": "400g"}, {"nitro-v6-400g": 180}),
        (
            "trn3-nl32x2",
            {},
            {
                "trn3": 64,
                "retimer-pcie6-x16": 128,
                "scorpio-x-160": 32,
                "backplane-cable": 5120,
                "aec-pcie6-x16": 32,
                "dac-pcie6-x16": 32,
                "jbog-tray": 32,
                "cpu-tray": 4,
                "switch-tray": 8,
                "nitro-v6-400g": 36,
            },
        ),
        ("trn3-nl32x2", {"switch": "gen2"}, {"scorpio-x-320": 16, "scorpio-x-160": 0}),
        (
            "gb200-nvl72",
            {},
            {"gb200-gpu": 72, "grace-cpu": 36, "nvswitch-5": 18, "nvlink-cable": 5184},
        ),
    ],
)
def test_counts_follow_from_the_published_racks(catalogue, name, variant, counts):
    quantity = load_system(catalogue, name, variant).quantity
    assert {part: quantity.get(part, 0) for part in counts} == counts


def test_place_in_a_tree_lies_below_its_parents(catalogue):
    """The quantity of a place is that of its parent times what one parent contains."""
    system = load_system(catalogue, "trn3-nl72x2")
    quantity_by_path = {leaf.path: leaf.quantity for leaf in system.leaves}
    inner = [leaf for leaf in system.leaves if leaf.parent]
    assert len(inner) >= 10
    for leaf in inner:
        holder = leaf.parent.rpartition("/")[2]
        assert leaf.quantity == quantity_by_path[leaf.parent] * system.contains[holder][leaf.part]


def test_unknown_variant_is_refused(catalogue):
    with pytest.raises(
        DataError, match="unknown variant switch of trn3-nl72x2 'gen9'; did you mean 'gen"
    ):
        load_system(catalogue, "trn3-nl72x2", {"switch": "gen9"})


def test_unknown_kind_of_variant_is_refused(catalogue):
    with pytest.raises(
        DataError, match="unknown variant of trn3-nl72x2 'swich'; did you mean 'switch'"
    ):
        load_system(catalogue, "trn3-nl72x2", {"swich": "gen1"})


def test_unknown_system_is_refused(catalogue):
    with pytest.raises(DataError, match="unknown system 'gb200-nvl27'; did you mean 'gb200-nvl72'"):
        load_system(catalogue, "gb200-nvl27")


def paths(contains):
    return {leaf.path: leaf.quantity for leaf in expand(contains, "x.toml")}


def test_expanding_a_tree():
    tree = {"world": {"rack": 2, "cable": 3}, "rack": {"tray": 4, "empty": 0}, "tray": {"chip": 2}}
    assert paths(tree) == {"rack": 2, "rack/tray": 8, "rack/tray/chip": 16, "cable": 3}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"rack": {"tray": 1}}, "the assembly 'world' is missing"),
        ({"world": {"a": 1}, "a": {"b": 1}, "b": {"a": 1}}, "a contains itself: world > a > b > a"),
        ({"world": {"a": -1}}, "world contains -1 of a, expected a count"),
        ({"world": {"a": "two"}}, "world contains 'two' of a, expected a count"),
        ({"world": {"a": True}}, "world contains True of a, expected a count"),
    ],
)
def test_bad_tree_is_refused(tree, message):
    with pytest.raises(DataError) as caught:
        paths(tree)
    assert str(caught.value) == f"x.toml: {message}" or str(caught.value).startswith(
        f"x.toml: {message}"
    )


TINY = """\
name = "Tiny"
chip = "trn3"
owner_pays = "built-up"
cooling = "air"
source = "tco-model"
racks = 1

[assemblies]
world = { trn3 = 4, nitro-v6-400g = 2 }

[fabric]
kind = "star"

[variants.nic]
default = "200g"
200g = {}
400g.assemblies.world = { nitro-v6-400g = 4 }
"""


def tiny(own_data, old="", new="", variant=None):
    assert old in TINY
    path = own_data.write("systems/tiny.toml", TINY.replace(old, new, 1))
    return path, lambda: load_system(own_data.catalogue(), "tiny", variant)


def test_own_system_is_read(own_data):
    _, load = tiny(own_data)
    assert (load().chips, load().quantity["nitro-v6-400g"], load().variant) == (
        4,
        2,
        {"nic": "200g"},
    )


def test_a_variant_replaces_a_branch(own_data):
    _, load = tiny(own_data, variant={"nic": "400g"})
    assert (load().chips, load().quantity["nitro-v6-400g"]) == (4, 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("chip =", "chop =", "unknown key 'chop'; did you mean 'chip'?"),
        ('cooling = "air"\n', "", "the key 'cooling' is missing"),
        ("racks = 1\n", "", "the key 'racks' is missing"),
        ('chip = "trn3"', 'chip = "trn9"', "the tree holds no 'trn9', which `chip` names"),
        ("trn3 = 4", "trn3 = 0", "the tree holds no 'trn3', which `chip` names"),
        (
            "nitro-v6-400g = 2",
            "nitro-v6-40g = 2",
            "unknown part 'nitro-v6-40g'; did you mean 'nitro-v6-400g'?",
        ),
        (
            "nitro-v6-400g = 2",
            "nitro-v6-400g = -2",
            "world contains -2 of nitro-v6-400g, expected a count",
        ),
        ("world =", "word =", "the assembly 'world' is missing"),
        ('default = "200g"', 'default = "100g"', "unknown variant nic of tiny '100g'"),
        ("200g = {}", '200g = "as it is"', "variants.nic.200g: "),
        ("400g.assemblies.world", "400g.assembly.world", "variants.nic.400g.assembly: "),
        ('source = "tco-model"', "source =", "broken TOML"),
    ],
)
def test_a_bad_file_names_the_key(own_data, old, new, message):
    path, load = tiny(own_data, old, new)
    with pytest.raises(DataError) as caught:
        load()
    assert str(caught.value).startswith(f"{path}: {message}")


def test_variant_of_a_missing_assembly_is_refused(own_data):
    path, load = tiny(own_data, "400g.assemblies.world", "400g.assemblies.rack", {"nic": "400g"})
    with pytest.raises(DataError) as caught:
        load()
    assert (
        str(caught.value)
        == f"{path}: variant nic=400g changes 'rack', which is no assembly of tiny"
    )


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ('cooling = "air"', 'cooling = "water"', "cooling: "),
        ('owner_pays = "built-up"', 'owner_pays = "nothing"', "owner_pays: "),
        ("racks = 1", "racks = -1", "racks: "),
        ("racks = 1", 'racks = "one"', "racks: "),
        ("trn3 = 4", 'trn3 = "four"', "assemblies.world.trn3: "),
        ("racks = 1", "racks = 1\nrack = 2", "rack: "),
        ('source = "tco-model"', 'source = "hearsay"', "source 'hearsay' is not in sources.csv"),
    ],
)
def test_the_check_finds_what_the_schema_forbids(own_data, old, new, finding):
    path, _ = tiny(own_data, old, new)
    (schema_finding,) = checks.check_systems(own_data.catalogue())
    assert schema_finding.startswith(f"{path}: {finding}")


def test_the_shipped_files_are_toml(catalogue):
    for name in catalogue.ids("systems"):
        assert read_toml(catalogue.find("systems", name, "system"))["name"]


def test_a_tree_too_deep_or_too_wide_is_refused():
    chain = {"world": {"a0": 1}} | {f"a{level}": {f"a{level + 1}": 1} for level in range(2000)}
    with pytest.raises(DataError, match="more than 40 assemblies deep"):
        paths(chain)
    fan = {"world": {"a0": 1, "b0": 1}} | {
        f"{side}{level}": {f"a{level + 1}": 1, f"b{level + 1}": 1}
        for level in range(30)
        for side in "ab"
    }
    with pytest.raises(DataError, match="more than 20,000 places"):
        paths(fan)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("racks = 1", 'racks = "two"', "racks"),
        ('chip = "trn3"', 'chip = ["trn3"]', "chip"),
        ("racks = 1", "racks = 1\nrebates = 5", "rebates"),
        ('name = "Tiny"', "name = 5", "name"),
        ('kind = "star"', 'kind = "star"\n[network]\n[alternatives]\nx = 5', "alternatives.x"),
        ("world = { trn3 = 4, nitro-v6-400g = 2 }", "world = 4", "assemblies.world"),
    ],
)
def test_own_system_is_checked_when_it_is_read(own_data, old, new, key):
    assert old in TINY
    path = own_data.write("systems/tiny.toml", TINY.replace(old, new))
    with pytest.raises(DataError) as caught:
        load_system(own_data.catalogue(), "tiny")
    assert str(caught.value).startswith((f"{path}: {key}: ", f"{path}: {key} is "))


def test_an_assembly_that_is_no_table_is_refused(own_data):
    path = own_data.write("assemblies.toml", "trn3 = 5\n")
    with pytest.raises(DataError) as caught:
        load_system(own_data.catalogue(), "trn3-nl72x2")
    assert str(caught.value).startswith(f"{path}: trn3 is 5, expected the parts it contains")


@pytest.mark.parametrize("name", ["../systems/gb200-nvl72", "a/b", "..", "", "x" * 300, "a\0b"])
def test_an_id_is_a_name_and_no_path(catalogue, name):
    with pytest.raises(DataError, match="unknown system"):
        load_system(catalogue, name)
