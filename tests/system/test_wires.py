"""Wiring that lanes and ports do not allow is refused with the arithmetic; shipped systems pass."""

from __future__ import annotations

import pytest

from tco import DataError
from tco.system.scale_out_network import clos_endpoints_by_radices
from tco.system.wiring import unstated, used_lanes
from tests.catalogue import load_system, tiers_needed
from tests.cli import document, tco
from tests.scenario_helpers import bill_of, fabric_of, system_of

MOST_TIERS = 4
NOT_SCALE_UP = ("host", "nic")


def changed(own_data, name: str, *pairs: tuple[str, str]):
    """Write a shipped system with some text replaced; return its path and the catalogue."""
    text = own_data.catalogue().find("systems", name, "system").read_text(encoding="utf-8")
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return own_data.write(f"systems/{name}.toml", text), own_data.catalogue()


def every_variant(catalogue):
    """Every shipped system as it stands, and in each variant by itself."""
    for name in catalogue.ids("systems"):
        yield name, {}
        for key, branches in (
            catalogue.document("systems", name, "system")[1].get("variants", {}).items()
        ):
            yield from ((name, {key: option}) for option in branches if option != "default")


# ---------------------------------------------------------------- what ships
def test_every_shipped_system_passes_in_every_variant(catalogue):
    cases = list(every_variant(catalogue))
    assert len(cases) >= 50
    for name, variant in cases:
        system_of(name, variant, catalogue)  # refuses what its wires cannot do


def test_every_shipped_system_states_the_lanes_and_ports_of_its_wiring(catalogue):
    for name, variant in every_variant(catalogue):
        system = load_system(catalogue, name, variant)
        assert list(unstated(system, catalogue)) == []
        assert used_lanes(system)
        if system.fabric["kind"] not in ("torus", "mesh"):
            assert system.quantity[system.fabric["switch"]] > 0, (name, variant)


def test_a_whole_trainium2_is_used(catalogue):
    """Three dimensions, host and NIC: every one of its lanes."""
    system = load_system(catalogue, "trn2-nl32x2-3d")
    assert used_lanes(system) == {"x": 64, "y": 64, "z": 32, "host": 8, "nic": 8}
    assert (
        sum(used_lanes(system).values())
        == catalogue.part_input("trn2", "serdes_lanes", "2025-12").value
    )


@pytest.mark.parametrize(
    ("name", "lanes"),
    [
        ("trn2-4x4x2", 160),
        ("trn2-nl16", 128),
        ("mi300x-8", 112),
        ("trn3-nl72x2", 160),
        ("tpuv7-cube64", 6),
    ],
)
def test_scale_up_lanes_of_a_chip(catalogue, name, lanes):
    used = used_lanes(load_system(catalogue, name))
    assert sum(count for purpose, count in used.items() if purpose not in NOT_SCALE_UP) == lanes


# ---------------------------------------------------------------- refusals
REFUSED = [
    (  # 800G of NICs and the third dimension do not fit one chip
        "trn2-nl32x2-3d",
        ("nic = 8\n", "nic = 32\n"),
        "fabric.lanes: x 64 + y 64 + z 32 + host 8 + nic 32 = 200 lanes in all, a trn2 has 176",
    ),
    (
        "trn3-nl32x2",
        ("plane_spare = 16", "plane_spare = 24"),
        "tray 64 + plane 64 + plane_spare 24 + cross_rack 16 = 168 scale-up lanes, a trn3 has 160",
    ),
    (
        "mi300x-8",
        ("link = 16", "link = 18"),
        "fabric.lanes: link 126 = 126 scale-up lanes, a mi300x has 112",
    ),
    (  # one server a rack: the ring spans four racks, beyond copper
        "trn2-nl32x2-3d",
        ("z = 1.9", "z = 4.2"),
        "fabric.span.z: 4.2 m is beyond the reach of aec-pcie5-x16 (2 m)",
    ),
    (
        "trn3-nl72x2",
        ("cross_rack = 1.5", "cross_rack = 2.5"),
        "fabric.span.cross_rack: 2.5 m is beyond the reach of aec-pcie6-x16 (2 m)",
    ),
    (
        "trn3-nl32x2",
        ("planes = 2\n", "planes = 1\n"),
        "32 chips a plane by x8 are 256 lanes, a scorpio-x-160 has 160",
    ),
    (
        "trn3-nl32x2",
        ("switch-tray = 4,", "switch-tray = 3,"),
        "6 scorpio-x-160 a plane by x8 give a chip 48 lanes, fabric.lanes.plane is 64",
    ),
    (
        "gb200-nvl72",
        ("nvlink-switch-tray = 9", "nvlink-switch-tray = 8"),
        "72 chips by 36 lanes are 2592, 16 nvswitch-5 have 2304",
    ),
    (
        "gb200-nvl36x2",
        ("nvl36-switch-tray = 9", "nvl36-switch-tray = 8"),
        "72 chips by 36 lanes, 1 of them once more to the other rack, are 5184, 32 nvswitch-5 have "
        "4608",
    ),
    (
        "gb200-nvl72",
        ('switch = "nvswitch-5"', 'switch = "nvswitch-3"'),
        "fabric.switch names nvswitch-3, of which the tree holds none",
    ),
    (
        "trn3-nl72x2",
        ('cross_rack = "aec-pcie6-x16"', 'cross_rack = "aec-pcie5-x16"'),
        "fabric.cable.cross_rack names aec-pcie5-x16, of which the tree",
    ),
    (
        "trn3-nl72x2",
        ('[fabric.cable]\ncross_rack = "aec-pcie6-x16"\n', ""),
        "fabric.span.cross_rack states a length, fabric.cable.cross_rack no cable",
    ),
    (
        "gb200-nvl72",
        ('switch = "nvswitch-5"', 'switch = "nvswitch-55"'),
        "fabric.switch: unknown part 'nvswitch-55'; did you mean 'nvswitch-5'",
    ),
    (
        "trn3-nl72x2",
        ("[fabric.span]\ncross_rack = 1.5", '[fabric.span]\ncross_rack = "far"'),
        "fabric.span.cross_rack is 'far', expected a number of",
    ),
]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    REFUSED,
    ids=[f"{case[0]}: {case[1][1].strip()[:30]}" for case in REFUSED],
)
def test_impossible_wiring_is_refused_with_the_arithmetic(own_data, name, change, message):
    path, catalogue = changed(own_data, name, change)
    with pytest.raises(DataError) as caught:
        bill_of(name, catalogue=catalogue)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_fault_is_named(own_data):
    _, catalogue = changed(
        own_data,
        "trn3-nl32x2",
        ("planes = 2\n", "planes = 1\n"),
        ("plane_spare = 16", "plane_spare = 24"),
    )
    with pytest.raises(
        DataError, match=r"168 scale-up lanes.*; .*256 lanes, a scorpio-x-160 has 160"
    ):
        system_of("trn3-nl32x2", catalogue=catalogue)


@pytest.mark.parametrize(
    "words",
    [
        ("bom", "trn3-nl32x2"),
        ("fabric", "trn3-nl32x2"),
        ("price", "trn3-nl32x2"),
        ("systems", "show", "trn3-nl32x2"),
    ],
)
def test_every_command_refuses_impossible_wiring(own_data, words):
    changed(own_data, "trn3-nl32x2", ("plane_spare = 16", "plane_spare = 24"))
    done = tco(*words, "--data", str(own_data.folder))
    assert done.exit_code == 3
    assert "168 scale-up lanes, a trn3 has 160" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_of_systems_lists_impossible_wiring(own_data):
    changed(own_data, "trn3-nl32x2", ("plane_spare = 16", "plane_spare = 24"))
    done = tco("systems", "check", "--data", str(own_data.folder))
    assert done.exit_code == 1
    assert "168 scale-up lanes, a trn3 has 160" in done.stdout


UNSAID = [
    (
        "gb200-nvl72",
        'switch = "nvswitch-5"\n',
        "",
        "fabric.switch is missing; it names the part of the tree that the chips' lanes end on",
    ),
    (
        "gb200-nvl72",
        "nvlink = 36\n",
        "",
        "fabric.lanes is missing: the lanes of one chip by purpose",
    ),
    (
        "h100-hgx8",
        "nvlink = 36\n",
        "nvlink = 36\nhost = 0\n",
        "parts.h100-sxm.serdes_lanes is missing, by which fabric.lanes are judged",
    ),
]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"), UNSAID, ids=[case[3].partition(" ")[0] for case in UNSAID]
)
def test_the_check_names_what_is_left_unsaid(own_data, name, old, new, message):
    """Such a system has a price, but nobody can judge its wires."""
    path, catalogue = changed(own_data, name, (old, new))
    assert list(unstated(load_system(catalogue, name), catalogue)) == [f"{path}: {message}"]
    assert bill_of(name, catalogue=catalogue).bill.price > 0
    done = tco("systems", "check", "--data", str(own_data.folder))
    assert done.exit_code == 1
    assert done.stdout.count(message) == 1


def test_what_if_with_impossible_wiring_is_refused(catalogue):
    with pytest.raises(DataError, match="160 scale-up lanes, a trn3 has 128"):
        bill_of("trn3-nl72x2", {"parts.trn3.lanes": "128 count"}, catalogue=catalogue)
    with pytest.raises(DataError, match=r"1.5 m is beyond the reach of aec-pcie6-x16 \(1 m\)"):
        bill_of("trn3-nl72x2", {"parts.aec-pcie6-x16.reach": "1 m"}, catalogue=catalogue)


def test_setting_that_only_the_wiring_check_reads_has_an_effect(catalogue):
    bill = bill_of("trn3-nl32x2", {"parts.trn3.lanes": "200 count"}, catalogue=catalogue)
    assert bill.notes == []


# ---------------------------------------------------------------- fabrics that are no fabrics
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "trn3-nl32x2",
            ("planes = 2\n", "planes = 0\n"),
            "fabric.planes is 0, expected a whole number of 1 or more",
        ),
        (
            "trn3-nl32x2",
            ("planes = 2\n", "planes = 1.5\n"),
            "fabric.planes is 1.5, expected a whole number of 1 or more",
        ),
        (
            "trn3-nl32x2",
            ("chips_per_tray = 2", "chips_per_tray = 3"),
            "32 chips a rack do not divide into trays of 3 over 2 planes",
        ),
        (
            "trn3-nl32x2",
            ("racks = 2\n", "racks = 3\n"),
            "joins one rack or two equal ones, here are 64 chips in 3 racks",
        ),
        (
            "trn2-nl16",
            ("dims = [4, 4]", "dims = [4, 5]"),
            "a torus of 4 x 5 holds 20 chips, the tree holds 16",
        ),
        ("trn2-nl16", ("dims = [4, 4]", "dims = 16"), "fabric.dims is 16, expected the sizes"),
        (
            "trn2-nl16",
            ("dims = [4, 4]", "dims = [2, 2, 2, 2, 1]"),
            "expected the sizes of at most 4 dimensions",
        ),
        (
            "gb200-nvl72",
            ('kind = "star"', 'kind = "stair"'),
            "unknown fabric.kind 'stair'; did you mean 'star'",
        ),
        ("mi300x-8", ("mi300x = 8,", "mi300x = 0.5,"), "a mesh joins two chips or more"),
    ],
)
def test_impossible_fabric_is_refused(own_data, name, change, message):
    _, catalogue = changed(own_data, name, change)
    with pytest.raises(DataError) as caught:
        scopes_in(catalogue, name)
    assert message in str(caught.value)


def scopes_in(catalogue, name: str):
    return fabric_of(system_of(name, catalogue=catalogue))


def test_cycle_in_the_tree_is_refused(own_data):
    path, catalogue = changed(
        own_data, "trn3-nl32x2", ("switch-board-nl32x2 = 1", "switch-board-nl32x2 = 1, rack = 1")
    )
    with pytest.raises(DataError) as caught:
        bill_of("trn3-nl32x2", catalogue=catalogue)
    assert str(caught.value) == f"{path}: rack contains itself: world > rack > switch-tray > rack"


def test_unknown_part_is_refused(own_data):
    path, catalogue = changed(
        own_data, "trn3-nl32x2", ("switch-board-nl32x2 = 1", "switch-bored-nl32x2 = 1")
    )
    with pytest.raises(DataError) as caught:
        bill_of("trn3-nl32x2", catalogue=catalogue)
    assert (
        str(caught.value)
        == f"{path}: unknown part 'switch-bored-nl32x2'; did you mean 'switch-board-nl32x2'?"
    )


def test_variant_that_fits_no_branch_is_refused(catalogue):
    with pytest.raises(
        DataError, match="unknown variant switch of trn3-nl32x2 'gen4'; did you mean 'gen"
    ):
        bill_of("trn3-nl32x2", {}, {"switch": "gen4"}, catalogue=catalogue)
    with pytest.raises(DataError, match="unknown variant of gb200-nvl72 'switch'"):
        bill_of("gb200-nvl72", {}, {"switch": "gen1"}, catalogue=catalogue)


# ---------------------------------------------------------------- the network beyond the racks
def test_clos_that_is_too_small_is_refused():
    radix = 4.0
    most = clos_endpoints_by_radices([radix] * MOST_TIERS, 1.0)
    assert most == 32
    assert tiers_needed(most, radix) == MOST_TIERS
    with pytest.raises(
        DataError,
        match=r"33 endpoints do not fit a Clos of 4 tiers of 4-port switches: it reaches 32",
    ):
        tiers_needed(most + 1, radix)


def test_tiers_that_do_not_hold_the_chips_name_those_that_may():
    done = tco("network", "--switch", "12.8T", "--port", "400G", "--tiers", "3", "--chips", "8193")
    assert (done.exit_code, done.stdout) == (3, "")
    assert (
        "8,193 chips do not fit 3 tiers of 32-port switches, which reach 8,192; `--tiers 4` or "
        "slower ports" in done.stderr
    )


def test_fat_tree_has_the_published_number_of_switches():
    """A tree of k-port switches joins k^3 / 4 hosts by 5 k^2 / 4 switches.

    Source: Al-Fares et al. 2008.
    """
    network_document = document("network", "--switch", "12.8T", "--port", "400G", "--tiers", "3")
    assert network_document["max_endpoints"] == 32**3 / 4
    assert (
        sum(line["quantity"] for line in network_document["lines"] if line["part"] == "tor-12t8")
        == 5 * 32**2 / 4
    )


def test_cluster_larger_than_its_switches_reach_is_refused():
    done = tco(
        "price",
        "gb200-nvl72",
        "--set",
        "cluster.chips=9000000 count",
        "--set",
        "cluster.port=6400G",
    )
    assert done.exit_code == 3
    assert "endpoints do not fit a Clos of" in done.stderr


@pytest.mark.parametrize(("port", "shuffled"), [("400G", True), ("800G", False)])
def test_ports_narrower_than_a_module_are_shuffled(port, shuffled):
    parts = {
        line["part"]
        for line in document("network", "--switch", "51.2T", "--port", port, "--tiers", "2")[
            "lines"
        ]
    }
    assert ("shuffle-panel" in parts) == shuffled
    assert "optic-800g-dr8" in parts
