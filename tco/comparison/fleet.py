"""A site filled with one system, and a fleet bought in waves for one power, with totals.

The grid power must carry the worst hour, so peak PUE decides how many racks fit. Energy is paid
for at the typical PUE. A wave of a fleet is a scenario, the grid power that it takes, and the date
whose prices it pays. Each wave fills a site of its own. A system that is not in volume at its date
arrives when it is, and counts from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.core.errors import DataError, UsageError, located
from tco.core.own_values import question_number_and_unit, question_quantity
from tco.core.provenance import MONTHS
from tco.core.types import JsonObject
from tco.cost.cash_flows import chips_cost
from tco.cost.price_dates import year_of
from tco.cost.revenue import rent_income, token_income
from tco.cost.site import sellable_power, sellable_share, worlds_in_power, yearly_margin
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.scenario_function import Evaluation
from tco.scenario.pricing import FENCE, SITE_POWER, worlds_in_a_rack
from tco.scenario.rack_holding import SIDECAR

if TYPE_CHECKING:
    from tco.scenario.result import Result
    from tco.system.bill import Bill

HOURS_PER_MONTH, WATTS_PER_MEGAWATT = 730.0, 1e6
SUMMED = ("site_power_w", "racks", "chips", "it_power_w", "capex_usd", "output_tokens_per_s")


class Wave(NamedTuple):
    """One purchase as the user states it."""

    scenario: str
    power: str
    date: str  # empty: that of the scenario


class Stage(NamedTuple):
    """A wave in the order of arrival: its totals, and the sums of all waves up to it."""

    scenario: str
    date: str
    arrives: str  # month in which its system is in volume, not before the date
    wave_totals: dict[str, float | None]
    so_far: dict[str, float | None]
    hall_cooling: str | None  # of the hall that its racks fill


class FleetRollout(NamedTuple):
    """All waves of a fleet in the order of arrival."""

    stages: list[Stage]
    power: float | None  # W that all waves share; None sets no limit
    evaluations: list[Evaluation]
    late: list[str]  # notes on waves whose system arrives after their date


def wave_of(wave_text: str) -> Wave:
    """Return the wave that a text names.

    Args:
        wave_text: `SCENARIO:POWER` or `SCENARIO:POWER:DATE`, such as `trn3-nl72x2:500 MW:2026-06`.

    Returns:
        Wave with its texts unchecked; the date is empty where the text has none.

    Raises:
        UsageError: The text has another form.

    """
    parts = [part.strip() for part in wave_text.split(":")]
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(
            f"{wave_text}: expected SCENARIO:POWER or SCENARIO:POWER:DATE, such as "
            "'trn3-nl72x2:500 MW:2026-06'"
        )
    return Wave(parts[0], parts[1], parts[2] if len(parts) == 3 else "")


def fleet_of(
    waves: Sequence[Wave], budget: str | None, data_folder: Path | None, settings: Mapping[str, str]
) -> FleetRollout:
    """Return the rollout of `waves`: stages, power limit and late systems.

    Args:
        waves: Purchases in any order.
        budget: Power that all waves share, with its unit, such as `500 MW`; None sets no limit.
        data_folder: Folder of own data; None takes no further data.
        settings: Values of inputs by path for every wave; date and power of a wave win.

    Returns:
        Stages in the order of arrival, each with its own totals and the sums so far.

    Raises:
        DataError: The waves take more than the budget, or a power is not above 0 or too small for
            the racks.

    """
    limit = None if budget is None else parse_power(budget, "--power")
    total_power = sum(parse_power(wave.power, wave.scenario) for wave in waves)
    if limit is not None and total_power > limit * (1 + 1e-9):
        raise DataError(
            f"the waves take {total_power / 1e6:,.0f} MW, --power has {limit / 1e6:,.0f} MW"
        )
    evaluations = []
    for wave in waves:
        dated = {**settings, "terms.date": wave.date} if wave.date else settings
        implied = {SITE_POWER: wave.power}
        evaluations += evaluate_each([wave.scenario], data_folder, dated, implied=implied)
    evaluations.sort(key=_year_of_arrival)
    stages: list[Stage] = []
    late = []
    for evaluation in evaluations:
        late += late_notes(evaluation.name, evaluation.result)
        stages.append(_stage_after(stages, evaluation))
    return FleetRollout(stages, limit, evaluations, late)


def _stage_after(stages: Sequence[Stage], evaluation: Evaluation) -> Stage:
    """Return the stage of a wave that arrives after `stages`."""
    wave_totals = _wave_totals(evaluation)
    earlier_sums = stages[-1].so_far if stages else dict.fromkeys(wave_totals, 0.0)
    # a sum is unknown as soon as one of its terms is
    so_far: dict[str, float | None] = {}
    for total_name, total in wave_totals.items():
        earlier = earlier_sums[total_name]
        so_far[total_name] = None if earlier is None or total is None else earlier + total
    scenario_result = evaluation.result
    date, availability = scenario_result.texts["terms.date"], scenario_result.available
    arrives = availability.volume if availability is not None and availability.months else date
    return Stage(evaluation.name, date, arrives, wave_totals, so_far, scenario_result.hall_cooling)


def _year_of_arrival(evaluation: Evaluation) -> float:
    wait = evaluation.result.available.months if evaluation.result.available else 0.0
    return year_of(evaluation.result.texts["terms.date"]) + wait / MONTHS


def purchase_notes(evaluation: Evaluation) -> list[str]:
    """Return the notes on a purchase, those on old prices counted in one.

    Notes on the power are left out, as the command sets it. So are notes on chosen parts.
    """
    scenario_result = evaluation.result
    notes = [
        f"{evaluation.name}: {note}"
        for note in scenario_result.notes
        if note not in scenario_result.chosen and not note.startswith(f"{SITE_POWER} is")
    ]
    count = len(scenario_result.ages.notes)
    if count:
        word = "note" if count == 1 else "notes"
        notes.append(
            f"{evaluation.name}: {count} {word} on old or unchecked prices; tco price "
            f"{evaluation.name} lists them"
        )
    return notes


def late_notes(scenario_name: str, scenario_result: Result) -> list[str]:
    """Return a note on a system that arrives in volume too late.

    The power for the system stands empty until then.

    Args:
        scenario_name: Name of the wave or scenario, which opens the note.
        scenario_result: Result at the date of its prices.

    Returns:
        A single note, or an empty list for a system that is there in time.

    """
    availability, date = scenario_result.available, scenario_result.texts["terms.date"]
    if availability is None or not availability.months:
        return []
    return [
        f"{scenario_name}: not in volume in {date}, but from {availability.words}; "
        f"its prices are those of {date}"
    ]


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


def _wave_totals(evaluation: Evaluation) -> dict[str, float | None]:
    """Return a wave's hall totals with its yearly and waiting cost, USD.

    A cost is None where its metric is unknown.
    """
    hall, metrics = filled_hall(evaluation), evaluation.result.metrics
    cost, waiting = metrics["tco_usd_per_chip_hour"], metrics["waiting_usd_per_chip"]
    return {total_name: hall[total_name] for total_name in SUMMED} | {
        "cost_usd_per_year": None if cost is None else float(chips_cost(hall["chips"], cost)),
        "waiting_usd": None if waiting is None else float(waiting * hall["chips"]),
    }


# ---------------------------------------------------------------- a site filled with one system
def filled_hall(evaluation: Evaluation) -> JsonObject:
    """Return the hall totals of a system at its site's power.

    Power too small for any of its racks raises `DataError` with the least power that suffices.
    """
    hall = hall_of(evaluation.result)
    if hall is None or not hall["chips"]:
        metrics = evaluation.result.metrics
        least_mw = (
            float(metrics["peak_facility_power_w_per_chip"] or 0)
            * float(metrics["chips"] or 0)
            / 1e6
        )
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
    power, chips_per_world = inputs[SITE_POWER].value, float(metrics["chips"] or 0)
    world_power = float(metrics["it_power_w_per_chip"] or 0) * chips_per_world
    sidecar_share = inputs.get(f"parts.{SIDECAR}.hall_share")
    rack_share = 1.0 if sidecar_share is None else sidecar_share.value
    sold = sellable_share(*(inputs[path].value for path in FENCE))
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
        "capex_usd": worlds * float(metrics["capex_usd"] or 0),
        "building_usd": None if building is None else worlds * float(building),
        "output_tokens_per_s": None
        if rate is None
        else chips * rate * _used_share(scenario_result),
        "margin_usd_per_mw_year": _yearly_margin_per_megawatt(scenario_result, chips, power),
    }


def _racks_of(scenario_result: Result, bill: Bill, worlds: float) -> float:
    """Return the racks of scale-up domains; small domains share a rack."""
    racks_per_world = float(scenario_result.metrics["racks"] or 0)
    rack_limit = scenario_result.inputs["site.rack_kw_max"].value
    worlds_per_rack = (
        worlds_in_a_rack(rack_limit, float(bill.power), racks_per_world) or 1 / racks_per_world
    )
    if worlds_per_rack >= 1:
        return float(-(-worlds // worlds_per_rack))
    return worlds * racks_per_world


def _used_share(scenario_result: Result) -> float:
    return float(scenario_result.metrics["goodput"] or 0) * float(
        scenario_result.inputs["terms.utilisation"].value
    )


def _yearly_margin_per_megawatt(
    scenario_result: Result, chips: float, power: float
) -> float | None:
    """Return the yearly margin over chip cost, USD per megawatt of site.

    The margin is None where nothing is rented or sold.
    """
    inputs, metrics = scenario_result.inputs, scenario_result.metrics
    rate = metrics["output_tokens_per_s_per_chip"]
    rent, token_price = (
        inputs[path].value if path in inputs else 0.0
        for path in ("money.rent", "money.token_price")
    )
    if not rent and not (token_price and rate):
        return None
    used = _used_share(scenario_result)
    income = float(rent_income(rent, 1.0, used))
    if rate:
        income += float(token_income(token_price, rate, 1.0, used))
    cost = float(metrics["tco_usd_per_chip_hour"] or 0)
    margin = float(yearly_margin(income / HOURS_PER_MONTH, cost, chips, power))
    return margin * WATTS_PER_MEGAWATT
