"""What stands where the tree of a system lists several parts: the cheapest at the scenario's date."""

from __future__ import annotations

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.systems import System
from tco.foundation.errors import DataError
from tco.foundation.values import Values
from tco.hardware.bill import offers


def chosen_among(system: System, catalogue: Catalogue, values: Values, date: str) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the cheapest part for each place, the inputs by which it is that, and notes on what it was chosen among."""
    chosen, compared, notes = {}, list[str](), list[str]()
    for place, found in offers(system, values, catalogue).items():
        for offer in found:
            if np.ndim(offer.price):
                raise DataError(f"{place}: {offer.part} has {np.size(offer.price)} prices and the cheapest stands there: give the structure")
            compared += offer.rests_on
        best, *others = sorted(found, key=lambda offer: float(offer.price))
        chosen[place] = best.part
        if others:
            rest = ", ".join(f"{other.quantity:g} {other.part} {other.price:,.0f}" for other in others)
            notes.append(f"{place}: {best.quantity:g} {best.part} at {best.price:,.0f} USD, the cheapest at {date}; {rest}")
    return chosen, compared, notes
