"""A site filled with one system: how many racks its power carries, what they cost, give and earn.

What the grid gives must carry the worst hour, so peak PUE decides how many racks stand; energy is paid for at the typical one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tco.chain.placement import SIDECAR, SITE_POWER, worlds_in_a_rack
from tco.economics.income import rent_income, token_income
from tco.economics.site import building_price, sellable_power, worlds_in_power, yearly_margin

if TYPE_CHECKING:
    from tco.chain.result import Result

HOURS_PER_MONTH, WATTS_PER_MEGAWATT = 730.0, 1e6


def hall_of(result: Result) -> dict[str, float | None] | None:
    """Return what a system makes of its site's power; None where its racks do not fit, or nobody states the power.

    The network is a share of the scenario's cluster. Tokens are those of the hours that are available and used. A margin needs what an hour
    or a million tokens fetches (`money.rent`, `money.token_price`), and counts the same hours.
    """
    if result.bill is None or not result.lines or SITE_POWER not in result.inputs:
        return None
    inputs, metrics = result.inputs, result.metrics
    power, chips = inputs[SITE_POWER].value, float(metrics["chips"] or 0)
    world = float(metrics["it_power_w_per_chip"] or 0) * chips
    crowded = inputs.get(f"parts.{SIDECAR}.hall_share")
    share = 1.0 if crowded is None else crowded.value
    worlds = float(worlds_in_power(sellable_power(power, inputs["site.pue_peak"].value) * share, world))
    racks = float(metrics["racks"] or 0)
    together = worlds_in_a_rack(inputs["site.rack_kw_max"].value, float(result.bill.power), racks) or 1 / racks
    rate = metrics["output_tokens_per_s_per_chip"]
    price = building_price(world, inputs["site.usd_per_mw"].value) / share if "site.usd_per_mw" in inputs else None
    return {
        "site_power_w": power,
        "worlds": worlds,
        "racks": float(-(-worlds // together)) if together >= 1 else worlds * racks,
        "chips": worlds * chips,
        "it_power_w": worlds * world,
        "capex_usd": worlds * float(metrics["capex_usd"] or 0),
        "building_usd": None if price is None else worlds * float(price),
        "output_tokens_per_s": None if rate is None else worlds * chips * rate * used_share(result),
        "margin_usd_per_mw_year": margin(result, worlds * chips, power),
    }


def used_share(result: Result) -> float:
    """Return the share of the hours in which chips are up and used."""
    return float(result.metrics["goodput"] or 0) * float(result.inputs["terms.utilisation"].value)


def margin(result: Result, chips: float, power: float) -> float | None:
    """Return what a megawatt of the site earns in a year beyond the cost of its chips; None where nothing is let or sold."""
    inputs, rate = result.inputs, result.metrics["output_tokens_per_s_per_chip"]
    rent, price = (inputs[path].value if path in inputs else 0.0 for path in ("money.rent", "money.token_price"))
    if not rent and not (price and rate):
        return None
    used = used_share(result)
    month = float(rent_income(rent, 1.0, used)) + (float(token_income(price, rate, 1.0, used)) if rate else 0.0)
    cost = float(result.metrics["tco_usd_per_chip_hour"] or 0)
    return float(yearly_margin(month / HOURS_PER_MONTH, cost, chips, power)) * WATTS_PER_MEGAWATT
