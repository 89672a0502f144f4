"""A fleet bought in waves for one power, with totals.

A wave is a scenario, the grid power that it takes, and the date whose prices it pays. Each wave
fills a site of its own. A system that is not in volume at its date arrives when it is, and counts
from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.comparison.filled_site import (
    PRICES,
    filled_hall,
    hourly_income,
    parse_power,
    purchases,
    yearly_money,
)
from tco.core.errors import DataError, UsageError
from tco.core.provenance import MONTHS
from tco.cost.waiting import year_of
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.scenario_function import Evaluation
from tco.scenario.pricing import SITE_POWER

if TYPE_CHECKING:
    from tco.scenario.result import Result

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
    """Return the notes on a purchase, those on old prices counted together.

    Notes on the power are left out, as the command sets it. So are notes on chosen parts, and notes
    that prices of which the revenue is computed move no metric.
    """
    scenario_result = evaluation.result
    answered = [f"{SITE_POWER} is"]
    if hourly_income(scenario_result) is not None:
        answered += [f"{path} is set, but moves no metric" for path in PRICES]
    notes = [
        f"{evaluation.name}: {note}"
        for note in scenario_result.notes
        if note not in scenario_result.chosen and not note.startswith(tuple(answered))
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


def _wave_totals(evaluation: Evaluation) -> dict[str, float | None]:
    """Return a wave's hall totals with all that it buys, its yearly money and waiting cost, USD.

    An amount is None where its metric is unknown.
    """
    hall, scenario_result = filled_hall(evaluation), evaluation.result
    waiting = scenario_result.metrics["waiting_usd_per_chip"]
    bought = sum(float(line.amount) for line in purchases(scenario_result))
    return {
        **{total_name: hall[total_name] for total_name in SUMMED},
        "capex_with_hall_usd": bought * hall["worlds"],
        **yearly_money(scenario_result, hall["chips"]),
        "waiting_usd": None if waiting is None else float(waiting * hall["chips"]),
    }
