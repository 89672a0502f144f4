"""Storage of a cluster by tier: flash that is bought, and objects that are rented by the month, each as the share of one world."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import Byte, MonthPerYear, Pure, USDPerByte, USDPerByteMonth


@formula(unit="byte", source="tco-model")
def world_bytes(capacity: Byte, world_chips: Pure, cluster_chips: Pure) -> Any:
    """Share of one world in what a cluster stores: B = S x world chips / cluster chips."""
    return capacity * world_chips / cluster_chips


@formula(unit="USD", source="tco-model")
def stored_price(capacity: Byte, price: USDPerByte) -> Any:
    """Price of storage that is bought: C = B x price."""
    return capacity * price


@formula(unit="USD/year", source="tco-model")
def yearly_stored(capacity: Byte, rent: USDPerByteMonth, months_per_year: MonthPerYear = 12) -> Any:
    """Rent of storage: R = B x rent x 12."""
    return capacity * rent * months_per_year
