"""Bills of the four headline worlds agree with a build by hand from teardowns, filings, analysts.

Low and high are root-sum-square ranges of that build (lines independent), in USD of December 2025
for one whole scale-up world.
"""

from __future__ import annotations

import pytest

from tests.scenario_helpers import CATALOGUE, evaluate, in_december, result

WORLDS = {  # world: low, base, high; and what it means
    "trn3-nl32x2": (
        663e3,
        727e3,
        839e3,
    ),  # 64 chips in two air-cooled racks, first-generation switches, at built-up cost
    "trn3-nl72x2": (
        1.70e6,
        1.86e6,
        2.12e6,
    ),  # 144 chips in two liquid-cooled racks, first-generation switches, at built-up cost
    "gb200-nvl72": (2.85e6, 3.15e6, 3.54e6),  # 72 GPUs in one rack at the price an assembler asks
    # 72 GPUs in one double-wide rack at the price an assembler asks; the build has them at 45,000,
    # the bill at 66,700
    "mi450x-ualoe72": (4.40e6, 5.17e6 + 72 * 21_700, 6.16e6 + 72 * 21_700),
}
CARDS = {"mi450x-ualoe72": {"nic": "3x"}}  # of the build, where it has others than the usual ones


@pytest.mark.parametrize(
    ("name", "low", "base", "high"), [(name, *figures) for name, figures in WORLDS.items()]
)
def test_bill_of_a_world_lies_within_the_build(name, low, base, high):
    price = in_december(name, **CARDS.get(name, {})).bill.price
    assert low <= price <= high
    assert price == pytest.approx(base, rel=0.06)


def test_cost_of_a_trainium3_lies_within_the_build():
    """3,715 USD with its HBM at contract prices of early 2026; 3,130 to 5,060 if its lines move."""
    bill = evaluate("trn3-nl72x2", {"terms.date": "2026-03"}, catalogue=CATALOGUE).bill
    chip = sum(line.extended for line in bill.lines if "trn3" in line.path.split("/")) / 144
    assert 3_130 <= chip <= 5_060
    assert chip == pytest.approx(3_715, rel=0.02)


@pytest.mark.parametrize(
    ("name", "price", "rel"),
    [("gb200-nvl72", 3.1e6, 0.05), ("gb200-nvl72", 3.33e6, 0.05), ("gb200-nvl72", 3.4e6, 0.07)],
    ids=["SemiAnalysis", "Morgan Stanley", "Bernstein"],
)
def test_published_rack_prices(name, price, rel):
    assert in_december(name).bill.price == pytest.approx(price, rel=rel)


def test_helios_costs_what_amd_states_per_gigawatt_and_more_than_rumoured():
    """The bill is 20 to 30 % above the rumour of 5.25 million USD.

    A list of its parts gives 4.2 million, with the accelerators at 40,000, which is called a
    lower bound.
    """
    bill = in_december("mi450x-ualoe72", nic="3x").bill.price
    assert 1.2 < bill / 5.25e6 < 1.3
    assert bill - 72 * 26_700 == pytest.approx(4.2e6, rel=0.10)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("gb200-nvl72", 112e3, 138e3), ("mi450x-ualoe72", 190e3, 260e3)],
)
def test_power_of_a_rack_as_published(name, low, high):
    evaluation = result(name)
    assert low <= evaluation.bill.power / evaluation.metrics["racks"] <= high
