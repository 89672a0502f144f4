"""Choice of a part for each place of the system tree that lists alternatives.

A buyer takes the part that gives the least cost per used chip-hour. The cost covers purchase,
power and housing over its life, and lost output from failures. For a renter, the price decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tco.catalog.system_tree import load_system
from tco.core.errors import DataError
from tco.core.trace import paused
from tco.core.types import AnyArray, FloatArray
from tco.scenario.network_choice import clos_parts
from tco.scenario.pricing import owner_cost
from tco.system.bill import Offer, offers

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario


def choose_parts(inputs: ResolvedScenario) -> None:
    """Choose the part that is cheapest over its life for each place with alternatives.

    A note says what each part would cost.

    Raises:
        DataError: A part has several prices, or its price is missing.

    """
    input_values = inputs.values()
    for slot, candidates in offers(inputs.system, input_values, inputs.catalogue).items():
        inputs.alternatives[slot] = candidates[0].part
        for offer in candidates:
            if np.ndim(offer.price):
                raise DataError(
                    f"{slot}: {offer.part} has {np.size(offer.price)} prices and the cheapest "
                    "stands there: give the structure"
                )
            inputs.compared += offer.inputs
        if len(candidates) == 1:
            continue
        chosen = int(cheapest_offers(inputs, slot, candidates))
        inputs.alternatives[slot] = candidates[chosen].part
        inputs.notes.append(_choice_note(slot, candidates, chosen, inputs.date))
    inputs.judged |= set(input_values.inputs)


def cheapest_offers(inputs: ResolvedScenario, slot: str, candidates: list[Offer]) -> Any:
    """Return the index of the cheapest part over its life, an array where inputs are arrays.

    Args:
        inputs: Resolved scenario; the other places of its system keep their parts.
        slot: Place in the system tree.
        candidates: Alternatives of the place.

    """
    prices: AnyArray = np.stack(np.broadcast_arrays(*(offer.price for offer in candidates)))
    if inputs.perspective.rents:
        return np.argmin(prices, axis=0)
    costs_or_inf = [_used_hour_cost(inputs, slot, offer.part) for offer in candidates]
    hour_costs: AnyArray = np.stack(np.broadcast_arrays(*costs_or_inf))
    if inputs.structure is None and hour_costs.ndim > 1:
        # Inputs that are arrays share one structure, which their mean decides.
        hour_costs = hour_costs.reshape(len(candidates), -1).mean(axis=1)
    if not np.isfinite(hour_costs).any():
        return np.argmin(prices, axis=0)
    return np.argmin(hour_costs, axis=0)


def _used_hour_cost(inputs: ResolvedScenario, slot: str, part: str) -> FloatArray:
    """Return the cost of a used chip-hour with a part in a place, USD; infinite without a cost."""
    parts = {**inputs.alternatives, slot: part}
    variants = {**inputs.scenario.variant, **inputs.variant}
    trial = inputs.trial_of(load_system(inputs.catalogue, inputs.system.id, variants, parts))
    input_values = trial.values()
    with paused():
        clos_parts(trial)  # before any stage, since every stage depends on these parts
        cost = owner_cost(trial, input_values).cost
    inputs.judged |= set(input_values.inputs)
    if cost is None:
        return np.asarray(np.inf)
    with np.errstate(divide="ignore"):
        cost_per_used_hour: FloatArray = np.divide(
            np.asarray(cost.per_chip_hour, dtype=float), np.asarray(cost.goodput, dtype=float)
        )
    return cost_per_used_hour


def _choice_note(slot: str, candidates: list[Offer], chosen: int, date: str) -> str:
    best = candidates[chosen]
    rest = ", ".join(
        f"{offer.quantity:g} {offer.part} {offer.price:,.0f}"
        for offer in candidates
        if offer is not best
    )
    return (
        f"{slot}: {best.quantity:g} {best.part}, {best.price:,.0f} USD in all, cost least over "
        f"their life at {date}; {rest}"
    )
