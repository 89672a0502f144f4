"""A site filled with one system: racks, chips, capex, output and yearly money of a grid power.

The grid power must carry the worst hour, so peak PUE decides how many racks fit. Energy is paid
for at the typical PUE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tco.core.errors import DataError, located
from tco.core.own_values import question_number_and_unit, question_quantity
from tco.core.types import JsonObject
from tco.cost.cash_flows import Flow, chips_cost
from tco.cost.ledger import WAITING
from tco.cost.revenue import rent_income, token_income
from tco.cost.site import sellable_power, sellable_share, worlds_in_power, yearly_margin
from tco.evaluation.scenario_function import Evaluation
from tco.scenario.pricing import POWER_LIMIT_INPUTS, SITE_POWER, worlds_in_a_rack
from tco.scenario.rack_holding import SIDECAR

if TYPE_CHECKING:
    from tco.scenario.result import Result
    from tco.system.bill import Bill

HOURS_PER_MONTH, WATTS_PER_MEGAWATT = 730.0, 1e6
PRICES = ("money.rent", "money.token_price")  # of what a site sells: an hour, a million tokens


def parse_power(power_text: str, where: str) -> float:
    """Return a power in watts.

    Args:
        power_text: Power with its unit, such as `500 MW`.
        where: Option or wave of the text, for errors.

    Raises:
        DataError: The text has no unit, is no power, or is not above zero.

    """
    with located(where):
        if (quantity := question_number_and_unit(power_text)) and not quantity[1]:
            raise DataError(
                f"{power_text!r} has no unit; expected a power such as '{power_text} MW'"
            )
        power_watts = question_quantity(power_text, "W")
    if power_watts <= 0:
        raise DataError(f"{where}: a power of {power_text} fills nothing")
    return power_watts


def filled_hall(evaluation: Evaluation) -> JsonObject:
    """Return the hall totals of a system at its site's power.

    Power too small for any of its racks raises `DataError` with the least power that suffices.
    """
    hall = hall_of(evaluation.result)
    if hall is None or not hall["chips"]:
        metrics = evaluation.result.metrics
        least_mw = metrics["peak_facility_power_w_per_chip"] * metrics["chips"] / 1e6
        site_power_mw = evaluation.result.inputs[SITE_POWER].value / 1e6
        raise DataError(
            f"{evaluation.name}: {site_power_mw:g} MW carry no scale-up domain of "
            f"{evaluation.result.system}, the least that do are {least_mw:.3g} MW"
        )
    return hall


def hall_of(scenario_result: Result) -> dict[str, float | None] | None:
    """Return the hall totals of a system at its site's power.

    The network is a share of the scenario's cluster. Tokens are counted in the hours that are
    available and used. A margin needs the price of an hour or of a million tokens (`money.rent`,
    `money.token_price`), and counts the same hours.

    Args:
        scenario_result: Result of the scenario, whose inputs hold the site's power.

    Returns:
        Totals by name: power in W, cost in USD, output in tokens/s, margin in USD per MW and year,
        and counts. A total is None where the result does not know its terms. The value is None for
        a system without bill or cost lines (the racks do not fit), and where the power is not
        stated.

    """
    if (
        scenario_result.bill is None
        or not scenario_result.lines
        or SITE_POWER not in scenario_result.inputs
    ):
        return None
    inputs, metrics = scenario_result.inputs, scenario_result.metrics
    power, chips_per_world = inputs[SITE_POWER].value, metrics["chips"]
    world_power = metrics["it_power_w_per_chip"] * chips_per_world
    sidecar_share = inputs.get(f"parts.{SIDECAR}.hall_share")
    rack_share = 1.0 if sidecar_share is None else sidecar_share.value
    sold = sellable_share(*(inputs[path].value for path in POWER_LIMIT_INPUTS))
    worlds = float(worlds_in_power(sellable_power(power, sold) * rack_share, world_power))
    chips = worlds * chips_per_world
    rate = metrics["output_tokens_per_s_per_chip"]
    building = next(
        (line.usd for line in scenario_result.lines if line.path == "site/building"), None
    )
    return {
        "site_power_w": power,
        "worlds": worlds,
        "racks": _racks_of(scenario_result, scenario_result.bill, worlds),
        "chips": chips,
        "it_power_w": worlds * world_power,
        "capex_usd": worlds * metrics["capex_usd"],
        "building_usd": None if building is None else worlds * float(building),
        "output_tokens_per_s": None
        if rate is None
        else chips * rate * _used_share(scenario_result),
        "margin_usd_per_mw_year": _yearly_margin_per_megawatt(scenario_result, chips, power),
    }


def purchases(scenario_result: Result) -> list[Flow]:
    """Return the cost lines that are bought, less rebates, USD per scale-up domain."""
    return [
        line
        for line in scenario_result.lines
        if not line.recurs and line.asset != WAITING  # nothing is bought by waiting
    ]


def yearly_money(scenario_result: Result, chips: float) -> dict[str, float | None]:
    """Return the cost, revenue and gross margin of chips, USD per year.

    The revenue is that of the hours that are available and used, at the stated price. A figure is
    None where the cost is unknown, or where nothing is rented out or sold.
    """
    hour, income = scenario_result.metrics["tco_usd_per_chip_hour"], hourly_income(scenario_result)
    cost = None if hour is None else float(chips_cost(chips, hour))
    revenue = None if income is None else float(chips_cost(chips, income))
    return {
        "cost_usd_per_year": cost,
        "revenue_usd_per_year": revenue,
        "margin_usd_per_year": None if cost is None or revenue is None else revenue - cost,
    }


def hourly_income(scenario_result: Result) -> float | None:
    """Return the income of rented hours and sold tokens, USD per chip and calendar hour.

    The income is None where nothing is rented out or sold.
    """
    rate = scenario_result.metrics["output_tokens_per_s_per_chip"]
    rent, token_price = (
        scenario_result.inputs[path].value if path in scenario_result.inputs else 0.0
        for path in PRICES
    )
    if not rent and not (token_price and rate):
        return None
    used = _used_share(scenario_result)
    income = float(rent_income(rent, 1.0, used))
    if rate:
        income += float(token_income(token_price, rate, 1.0, used))
    return income / HOURS_PER_MONTH


def _racks_of(scenario_result: Result, bill: Bill, worlds: float) -> float:
    """Return the racks of scale-up domains; small domains share a rack."""
    racks_per_world: float = scenario_result.metrics["racks"]
    rack_limit = scenario_result.inputs["site.rack_kw_max"].value
    worlds_per_rack = (
        worlds_in_a_rack(rack_limit, float(bill.power), racks_per_world) or 1 / racks_per_world
    )
    if worlds_per_rack >= 1:
        return float(-(-worlds // worlds_per_rack))
    return worlds * racks_per_world


def _used_share(scenario_result: Result) -> float:
    utilisation = scenario_result.inputs["terms.utilisation"].value
    return float(scenario_result.metrics["goodput"] * utilisation)


def _yearly_margin_per_megawatt(
    scenario_result: Result, chips: float, power: float
) -> float | None:
    """Return the yearly margin over chip cost, USD per megawatt of site.

    The margin is None where nothing is rented or sold.
    """
    income = hourly_income(scenario_result)
    if income is None:
        return None
    cost = scenario_result.metrics["tco_usd_per_chip_hour"]
    return float(yearly_margin(income, cost, chips, power)) * WATTS_PER_MEGAWATT
