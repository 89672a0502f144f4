"""The bandwidth of a chip into the networks follows from the cards of the tree alone."""

from __future__ import annotations

import numpy as np
import pytest

from tco import DataError, evaluate
from tco.catalog.rows import to_input
from tco.system.scale_out_network import NETWORKS, cards_of
from tests.catalogue import attribute as attribute_of
from tests.catalogue import load_system
from tests.cli import document
from tests.scenario_helpers import as_traced, recording, system_of
from tests.system.test_wires import changed, every_variant

GBIT = 1e9 / 8
VENDOR = {"nic": "400g"}  # of GB200


def bandwidth(catalogue, name, attribute="scale_out_bandwidth", settings=None, **variant):
    inputs = system_of(name, variant, catalogue, **(settings or {}))
    return inputs.values()[f"parts.{inputs.system.chip}.{attribute}"]


# ---------------------------------------------------------------- counts by hand
@pytest.mark.parametrize(
    ("name", "variant", "gbit"),
    [
        ("trn3-nl72x2", {}, 200),
        ("trn3-nl72x2", {"nic": "400g"}, 400),
        ("trn3-nl32x2", {}, 200),
        ("trn3-nl32x2", {"nic": "400g"}, 400),
        ("gb200-nvl72", {}, 400),
        ("gb300-nvl72", {}, 800),
        ("gb300-nvl72", {"nic": "cx7"}, 400),
        ("gb300-nvl72", {"nic": "cx8"}, 800),
        ("mi450x-ualoe72", {}, 800),
        ("mi450x-ualoe72", {"nic": "efa"}, 400),
        ("mi450x-ualoe72", {"nic": "2x"}, 1600),
        ("mi450x-ualoe72", {"nic": "3x"}, 2400),
        ("trn1-16", {}, 50),
        ("trn1-16", {"nic": "100g"}, 100),
        ("trn2-nl16", {}, 800),
        ("trn2-nl16", {"nic": "200g"}, 200),
        ("a100-hgx8", {}, 200),
    ],
)
def test_cards_by_ports_by_rate_over_chips(catalogue, name, variant, gbit):
    assert bandwidth(catalogue, name, **variant) == pytest.approx(gbit * GBIT, rel=1e-12)


def test_hosts_have_cards_of_their_own(catalogue):
    """Of three cards per tray one belongs to the CPU.

    The CPU card of another tray does not count either.
    """
    assert cards_of(load_system(catalogue, "trn3-nl72x2"), "scale_out") == ("nitro-v6-400g", 72)
    assert cards_of(load_system(catalogue, "trn3-nl32x2"), "scale_out") == ("nitro-v6-400g", 32)
    assert load_system(catalogue, "trn3-nl72x2").quantity["nitro-v6-400g"] == 108


def test_bandwidths_of_trees_agree_with_published_ones_of_their_chips(catalogue):
    """Every shipped bandwidth is stated by a row of its chip, or is a half or third of it.

    A third is one card of three.
    """
    for name in catalogue.ids("systems"):
        system = load_system(catalogue, name)
        for network, attribute in NETWORKS.items():
            if cards_of(system, network) is not None:
                rows = catalogue.part_rows[system.chip, attribute]
                stated = [
                    to_input(row, name, attribute_of("parts", attribute, name)).value
                    for row in rows
                ]
                parts = [
                    value / bandwidth(catalogue, name, attribute, **system.variant)
                    for value in stated
                ]
                assert any(
                    1 <= round(part) <= 3 and part == pytest.approx(round(part), rel=1e-12)
                    for part in parts
                ), (name, attribute)


def test_no_system_sets_a_rate_beside_its_cards(catalogue):
    for name, variant in every_variant(catalogue):
        system = load_system(catalogue, name, variant)
        assert not any(path.endswith(tuple(NETWORKS.values())) for path in system.settings), (
            name,
            variant,
        )


# ---------------------------------------------------------------- what moves with them
def test_faster_cards_in_a_tray_move_network_and_tokens(own_data):
    before = bandwidth(own_data.catalogue(), "gb200-nvl72", **VENDOR)
    _, catalogue = changed(
        own_data,
        "gb200-nvl72",
        ("connectx-7 = 4", "connectx-8 = 4"),
        ('nic = "connectx-7"', 'nic = "connectx-8"'),
    )
    assert bandwidth(catalogue, "gb200-nvl72", **VENDOR) == 2 * before
    cost = [
        evaluate("gb200-nvl72", catalogue=priced_catalogue, variant=VENDOR).metrics[
            "network_usd_per_chip"
        ]
        for priced_catalogue in (own_data.catalogue(), catalogue)
    ]
    assert cost[0] == cost[1]  # both read the changed file
    assert cost[1] > evaluate("gb200-nvl72", variant=VENDOR).metrics["network_usd_per_chip"]


def test_rate_of_a_port_is_an_input_and_a_stated_bandwidth_precedes_it(catalogue):
    port = {"parts.connectx-7.port_bandwidth": "200 Gb/s"}
    evaluation = evaluate("gb200-nvl72", port, catalogue=catalogue, variant=VENDOR)
    assert evaluation.metrics["scale_out_byte_per_s"] == 200 * GBIT
    assert not any("nothing in this scenario rests on it" in note for note in evaluation.notes)
    both = evaluate(
        "gb200-nvl72",
        port | {"parts.gb200-gpu.scale_out_bandwidth": "100 GB/s"},
        catalogue=catalogue,
        variant=VENDOR,
    )
    assert both.metrics["scale_out_byte_per_s"] == 100e9
    assert (
        "parts.connectx-7.port_bandwidth is set, but nothing in this scenario rests on it"
        in both.notes
    )


def test_the_front_end_follows_its_card(catalogue):
    assert bandwidth(catalogue, "gb200-nvl72", "frontend_bandwidth") == 100 * GBIT
    assert bandwidth(catalogue, "h100-hgx8", "frontend_bandwidth") == 50 * GBIT
    assert bandwidth(catalogue, "trn2-nl16", "frontend_bandwidth") == 11.25 * GBIT
    slow = {"parts.bluefield-3.port_bandwidth": "200 Gb/s"}
    slower, usual = (
        evaluate("gb200-nvl72", port_settings, catalogue=catalogue, variant=VENDOR).metrics[
            "network_usd_per_chip"
        ]
        for port_settings in (slow, {})
    )
    assert slower < usual


def test_a_chip_alone_has_what_it_states(catalogue):
    assert (
        bandwidth(catalogue, "h100-sxm")
        == catalogue.part_input("h100-sxm", "scale_out_bandwidth", "2025-12").value
    )


# ---------------------------------------------------------------- readings
def test_every_reading_gives_the_same_bandwidth(catalogue):
    inputs = system_of("trn3-nl72x2", catalogue=catalogue)
    path, number = "parts.trn3.scale_out_bandwidth", bandwidth(catalogue, "trn3-nl72x2")
    values = inputs.values(lambda input_value: np.array([input_value.value, 2 * input_value.value]))
    assert values[path].tolist() == [number, 4 * number]  # twice the ports of twice the rate
    assert values.structure(path) == number
    with recording() as trace:
        traced = inputs.values(as_traced(trace))
        assert traced.structure(path) == number
        assert traced[path].value == number
        assert traced[path].node.path == path
        assert {node.path for _, node in traced[path].node.inputs} >= {
            "parts.nitro-v6-400g.ports",
            "parts.nitro-v6-400g.port_bandwidth",
        }
    bandwidth_input = inputs.values().input(path)
    assert (bandwidth_input.value, bandwidth_input.kind) == (number, "derived")


def test_explain_opens_the_card():
    explanation = document("explain", "gb200-nvl72@nic=400g", "network_usd_per_chip")
    todo, tree_labels = [explanation["tree"]], set()
    while todo:
        node = todo.pop()
        tree_labels |= {node.get("name"), node.get("path")}
        todo += node.get("inputs") or []
    assert {
        "parts.gb200-gpu.scale_out_bandwidth",
        "parts.gb200-gpu.frontend_bandwidth",
        "parts.connectx-7.port_bandwidth",
        "parts.bluefield-3.port_bandwidth",
    } <= tree_labels


# ---------------------------------------------------------------- files that are wrong
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            'nic = "connectx-9"',
            "network.scale_out names connectx-9, of which the tree holds none for the chips",
        ),
        (
            'card = "connectx-7"',
            "network.scale_out is {'card': 'connectx-7'}, expected a table such as",
        ),
        (
            'nic = "connectx-7", under = "gb200-compute-tray"',
            "network.scale_out: unknown key 'under'; there are below, converged, hosts, nic",
        ),
        (
            'nic = "connectx-7", below = "gb200-tray"',
            "network.scale_out.below: unknown part of the tree 'gb200-tray'; did you mean "
            "'gb200-tray-cooling'",
        ),
        (
            'nic = "connectx-7", hosts = 1',
            "network.scale_out.hosts is 1, expected how many of the cards in each assembly that "
            "`below` names",
        ),
        (
            'nic = "connectx-7", below = "gb200-compute-tray", hosts = 4',
            "network.scale_out names connectx-7, of which the tree holds none for the chips",
        ),
    ],
)
def test_impossible_card_is_refused(own_data, change, message):
    path, catalogue = changed(own_data, "gb200-nvl72", ('nic = "connectx-7"', change))
    refused(path, catalogue, message)


def test_unknown_network_is_refused(own_data):
    path, catalogue = changed(
        own_data,
        "gb200-nvl72",
        ('scale_out = { nic = "connectx-7"', 'scale_up = { nic = "connectx-7"'),
    )
    refused(path, catalogue, "unknown key 'network.scale_up'; did you mean 'network.scale_out'?")


def refused(path, catalogue, message):
    with pytest.raises(DataError) as caught:
        system_of("gb200-nvl72", VENDOR, catalogue)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
