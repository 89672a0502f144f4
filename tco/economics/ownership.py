"""What an owner pays beside the bill: his chip's design, the seller's margin and tax; and what decides that he does."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.foundation.formula import formula
from tco.foundation.units import USD, Pure


@formula(unit="USD", source="tco-model")
def design_share(chips: Pure, design_cost: USD, software_cost: USD, design_volume: Pure) -> Any:
    """Share of a world in what a chip and its software cost to design once: C = n (D + S) / chips ever made."""
    return chips * (design_cost + software_cost) / design_volume


@formula(unit="USD", source="tco-model")
def seller_margin(bill: USD, margin: Pure) -> Any:
    """What the seller of the servers adds on their bill: M = C m."""
    return bill * margin


@formula(unit="USD", source="tco-model")
def tax_on_purchase(purchases: USD, rate: Pure) -> Any:
    """Tax on what is bought: T = C t."""
    return purchases * rate


class Holding(NamedTuple):
    """What of owner, racks and site decides which lines a cost has."""

    design: str | None = None  # the chip whose design the owner pays for; none where its price holds it
    network: frozenset[str] = frozenset()  # parts of the tree that belong to the scale-out network
    liquid_premium: bool = False  # the hall cools with liquid, and states what that adds
    backup_in_racks: bool = False  # batteries stand in the racks, and the site states what its building saves
    demand_charge: bool = False  # the site's utility charges for its highest draw apart from its energy
    quoted_peak: float | None = None  # the peak PUE of the hall whose rent the site states
    tiers: tuple[bool, bool] = (False, False)  # whether the cluster states its flash, and its objects
    own_rates: frozenset[str] = frozenset()  # classes of assets whose rate is stated apart
