"""A site filled with one system, and a fleet bought in waves for one power, with totals.

What the grid gives must carry the worst hour, so peak PUE decides how many racks stand; energy is
paid for at the typical one. A wave of a fleet is a scenario, the power of the grid it takes, and
the date whose prices it pays; each fills a site of its own. A system that is not in volume
at its date comes when it is, and counts from then on.
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

SUMMED = ("site_power_w", "racks", "chips", "it_power_w", "capex_usd", "output_tokens_per_s")


class Wave(NamedTuple):
    """One purchase as it was asked for."""

    scenario: str
    power: str
    date: str  # empty: that of the scenario


class Stage(NamedTuple):
    """A wave and what it comes to, with all waves up to it."""

    scenario: str
    date: str
    arrives: str  # when its system is in volume, or the date where it is by then
    wave_totals: dict[str, float | None]
    so_far: dict[str, float | None]
    hall_cooling: str | None  # of the hall that its racks fill


class FleetRollout(NamedTuple):
    """All waves in the order in which they come."""

    stages: list[Stage]
    power: float | None  # that all of them share
    evaluations: list[Evaluation]
    late: list[str]  # which waves wait, and for how long


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
    limit = None if budget is None else parsed(budget, "--power")
    taken = sum(parsed(wave.power, wave.scenario) for wave in waves)
    if limit is not None and taken > limit * (1 + 1e-9):
        raise DataError(f"the waves take {taken / 1e6:,.0f} MW, --power has {limit / 1e6:,.0f} MW")
    wave_evaluations = []
    for wave in waves:
        dated = {"terms.date": wave.date} if wave.date else {}
        implied = {SITE_POWER: wave.power}
        wave_evaluations += evaluate_each(
            [wave.scenario], data_folder, {**settings, **dated}, implied=implied
        )
    ordered_evaluations = sorted(wave_evaluations, key=_year_of_arrival)
    stages: list[Stage] = []
    late = []
    for evaluation in ordered_evaluations:
        wave_totals = _of_wave(evaluation)
        date = evaluation.result.texts["terms.date"]
        there = evaluation.result.available
        late += late_notes(evaluation.name, evaluation.result)
        arrives = there.volume if there is not None and there.months else date
        before = stages[-1].so_far if stages else {}
        # none as soon as one of their terms is unknown
        sums = {
            total_name: (before.get(total_name, 0.0), total_value)
            for total_name, total_value in wave_totals.items()
        }
        so_far: dict[str, float | None] = {
            total_name: None if None in pair else sum(pair)  # type: ignore[arg-type]
            for total_name, pair in sums.items()
        }
        stages.append(
            Stage(
                evaluation.name, date, arrives, wave_totals, so_far, evaluation.result.hall_cooling
            )
        )
    return FleetRollout(stages, limit, ordered_evaluations, late)


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


def parsed(power: str, where: str) -> float:
    """Return a power in watts; one that is none raises `DataError`."""
    with located(where):
        if (quantity := question_number_and_unit(power)) is not None and not quantity[1]:
            raise DataError(f"{power!r} has no unit; expected a power such as '{power} MW'")
        power_watts = question_quantity(power, "W")
    if power_watts <= 0:
        raise DataError(f"{where}: a power of {power} fills nothing")
    return power_watts


def _of_wave(evaluation: Evaluation) -> dict[str, float | None]:
    """Return a wave's hall totals with its yearly and waiting cost, USD.

    A cost is None where its metric is unknown.
    """
    hall = filled_hall(evaluation)
    cost, waiting = (
        evaluation.result.metrics[metric_name]
        for metric_name in ("tco_usd_per_chip_hour", "waiting_usd_per_chip")
    )
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
        least = (
            float(metrics["peak_facility_power_w_per_chip"] or 0)
            * float(metrics["chips"] or 0)
            / 1e6
        )
        site_power_mw = evaluation.result.inputs[SITE_POWER].value / 1e6
        raise DataError(
            f"{evaluation.name}: {site_power_mw:g} MW carry no scale-up domain of "
            f"{evaluation.result.system}, the least that do are {least:.3g} MW"
        )
    return hall


HOURS_PER_MONTH, WATTS_PER_MEGAWATT = 730.0, 1e6


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
    power, chips = inputs[SITE_POWER].value, float(metrics["chips"] or 0)
    world = float(metrics["it_power_w_per_chip"] or 0) * chips
    crowded = inputs.get(f"parts.{SIDECAR}.hall_share")
    share = 1.0 if crowded is None else crowded.value
    sold = sellable_share(*(inputs[path].value for path in FENCE))
    worlds = float(worlds_in_power(sellable_power(power, sold) * share, world))
    racks = float(metrics["racks"] or 0)
    together = (
        worlds_in_a_rack(inputs["site.rack_kw_max"].value, float(scenario_result.bill.power), racks)
        or 1 / racks
    )
    rate = metrics["output_tokens_per_s_per_chip"]
    building = next(
        (line.usd for line in scenario_result.lines if line.path == "site/building"), None
    )
    return {
        "site_power_w": power,
        "worlds": worlds,
        "racks": float(-(-worlds // together)) if together >= 1 else worlds * racks,
        "chips": worlds * chips,
        "it_power_w": worlds * world,
        "capex_usd": worlds * float(metrics["capex_usd"] or 0),
        "building_usd": None if building is None else worlds * float(building),
        "output_tokens_per_s": None
        if rate is None
        else worlds * chips * rate * _used_share(scenario_result),
        "margin_usd_per_mw_year": margin(scenario_result, worlds * chips, power),
    }


def _used_share(scenario_result: Result) -> float:
    return float(scenario_result.metrics["goodput"] or 0) * float(
        scenario_result.inputs["terms.utilisation"].value
    )


def margin(scenario_result: Result, chips: float, power: float) -> float | None:
    """Return the yearly margin over chip cost, USD per megawatt of site.

    The margin is None where nothing is rented or sold.
    """
    inputs, rate = scenario_result.inputs, scenario_result.metrics["output_tokens_per_s_per_chip"]
    rent, price = (
        inputs[path].value if path in inputs else 0.0
        for path in ("money.rent", "money.token_price")
    )
    if not rent and not (price and rate):
        return None
    used = _used_share(scenario_result)
    month = float(rent_income(rent, 1.0, used)) + (
        float(token_income(price, rate, 1.0, used)) if rate else 0.0
    )
    cost = float(scenario_result.metrics["tco_usd_per_chip_hour"] or 0)
    return float(yearly_margin(month / HOURS_PER_MONTH, cost, chips, power)) * WATTS_PER_MEGAWATT
