"""The worked examples of CONTRIBUTING.md run as the page prints them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tco.evidence.check import check_claim
from tco.evidence.ledger import read_ledger
from tco.evidence.questions import Context
from tests.catalogue import DATA, checks
from tests.cli import tco
from tests.scenario_helpers import bill_of, fabric_of, system_of

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def blocks(heading: str) -> list[str]:
    """The indented blocks of one section of the page, without their indentation."""
    section = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert section, f"CONTRIBUTING.md has no section {heading!r}"
    indented_blocks = re.findall(r"(?:^(?:    .*)?\n)+", section[1], re.MULTILINE)
    return [
        re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") + "\n"
        for block in indented_blocks
        if block.strip()
    ]


@pytest.fixture
def example(own_data):
    """Write the system and the parts of the page into a user's data folder."""
    tree, rows = blocks("Add a system")
    own_data.write("systems/toy-rack.toml", tree)
    own_data.write("parts/toy.csv", rows)
    return own_data


def test_example_system_loads_and_has_a_price(example):
    rack_bill = bill_of("toy-rack", catalogue=example.catalogue())
    assert rack_bill.system.quantity["b200-sxm"] == 8
    assert rack_bill.system.quantity["toy-tray"] == 4
    lines = {line.part: line for line in rack_bill.bill.lines}
    assert lines["toy-tray"].extended == 4 * 3000
    assert rack_bill.bill.price > lines["b200-sxm"].extended > 0
    assert rack_bill.bill.power > 8 * 1000
    assert rack_bill.notes == []


def test_fabric_of_the_example_is_a_star(example):
    inputs = system_of("toy-rack", catalogue=example.catalogue())
    _, world = fabric_of(inputs)
    assert (world.chips, world.hops_mean) == (8, 1)
    assert world.all_to_all == world.injection


def test_example_passes_the_checks(example):
    catalogue = example.catalogue()
    assert checks.check_systems(catalogue) == []
    assert checks.check_parts(catalogue) == []


def test_example_passes_on_the_command_line(example):
    for words in (
        ("systems", "check"),
        ("parts", "check"),
        ("systems", "show", "toy-rack"),
        ("bom", "toy-rack"),
        ("fabric", "toy-rack"),
    ):
        done = tco(*words, "--data", str(example.folder))
        assert done.exit_code == 0, done.stderr
    assert "toy-rack" in tco("systems", "list", "--data", str(example.folder)).stdout


def test_example_part_passes_the_checks_and_has_its_values(own_data):
    (rows,) = blocks("Add a part")
    own_data.write("parts/mine.csv", rows.replace("some-article", "tco-model"))
    catalogue = own_data.catalogue()
    assert checks.check_parts(catalogue) == []
    assert {
        name: catalogue.part_input("my-nic-800g", name, "2026-06").value
        for name in catalogue.parts["my-nic-800g"]
    } == {
        "price": 1500,
        "power": 38,
    }


def test_paths_of_the_page_exist():
    """Every path of the page in backticks exists in the checkout.

    KIND stands for each kind of measured rows.
    """
    root = DATA.parent
    text = PAGE.read_text(encoding="utf-8")
    paths = [
        path for path in re.findall(r"`((?:tco|data|tests)/[\w/.-]+)`", text) if "*" not in path
    ]
    assert len(paths) >= 5
    files = [
        path.replace("KIND", kind)
        for path in paths
        for kind in ("kernels", "collectives", "training", "inference")
    ]
    assert [path for path in files if not (root / path).exists()] == []


def test_example_claim_gets_its_verdict(own_data):
    """The example row replaces the claim of its id and gets the verdict it expects.

    It has the columns of the ledger.
    """
    (row,) = blocks("Add a claim")
    header = (DATA / "claims" / "ledger.csv").read_text(encoding="utf-8").splitlines()[0]
    own_data.write("claims/ledger.csv", f"{header}\n{row}")
    catalogue = own_data.catalogue()
    ledger = read_ledger(catalogue)
    finding = check_claim(Context(catalogue, {}, ledger, ledger["C042"]))
    assert (finding.computed, finding.verdict, finding.claim.verdict) == (
        pytest.approx(36 * 4 * 4.9),
        "holds",
        "holds",
    )
