"""Several systems bought one after the other for one power: what each wave comes to, and all so far.

A wave is a scenario, the power of the grid it takes, and the date whose prices it pays. Each fills its own halls as `hall` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tco.chain.placement import SITE_POWER
from tco.economics.finance import chips_cost
from tco.foundation.dates import period
from tco.foundation.errors import DataError, UsageError
from tco.foundation.units import parse_quantity
from tco.studies.evaluation import Evaluation, evaluate_each
from tco.studies.hall import hall_of

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
    own: dict[str, float | None]
    so_far: dict[str, float | None]


class Fleet(NamedTuple):
    """All waves in the order of their dates."""

    stages: list[Stage]
    power: float | None  # that all of them share
    asked: list[Evaluation]


def wave_of(text: str) -> Wave:
    """Return the wave that `SCENARIO:POWER[:DATE]` names; anything else raises `UsageError`."""
    parts = [part.strip() for part in text.split(":")]
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(f"{text}: expected SCENARIO:POWER or SCENARIO:POWER:DATE, such as 'trn3-nl72x2:500 MW:2026-06'")
    return Wave(parts[0], parts[1], parts[2] if len(parts) == 3 else "")


def fleet_of(waves: Sequence[Wave], budget: str | None, data: Path | None, settings: Mapping[str, str]) -> Fleet:
    """Return what a fleet comes to; waves that take more than the budget raise `DataError`."""
    limit = None if budget is None else parsed(budget, "--power")
    taken = sum(parsed(wave.power, wave.scenario) for wave in waves)
    if limit is not None and taken > limit * (1 + 1e-9):
        raise DataError(f"the waves take {taken / 1e6:,.0f} MW, --power has {limit / 1e6:,.0f} MW")
    found = []
    for wave in waves:
        dated = {"terms.date": wave.date} if wave.date else {}
        found += evaluate_each([wave.scenario], data, {**settings, **dated, SITE_POWER: wave.power})
    asked = sorted(found, key=lambda one: period(one.result.texts["terms.date"]).last)
    stages: list[Stage] = []
    for one in asked:
        own = of_wave(one)
        before = stages[-1].so_far if stages else {}
        stages.append(
            Stage(one.name, one.result.texts["terms.date"], own, {name: added(before.get(name, 0.0), value) for name, value in own.items()})
        )
    return Fleet(stages, limit, asked)


def parsed(power: str, where: str) -> float:
    """Return a power in watts; one that is none raises `DataError`."""
    try:
        found = parse_quantity(power, "W")
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if found <= 0:
        raise DataError(f"{where}: a power of {power} fills nothing")
    return found


def of_wave(one: Evaluation) -> dict[str, float | None]:
    """Return what one wave comes to: its halls, and what they cost in a year."""
    hall = hall_of(one.result)
    if hall is None or not hall["chips"]:
        raise DataError(f"{one.name}: {one.result.inputs[SITE_POWER].value / 1e6:g} MW carry no scale-up domain of {one.result.system}")
    cost = one.result.metrics["tco_usd_per_chip_hour"]
    return {name: hall[name] for name in SUMMED} | {"cost_usd_per_year": None if cost is None else float(chips_cost(cost, hall["chips"]))}


def added(so_far: float | None, value: float | None) -> float | None:
    """Return a sum; None as soon as one of its terms is unknown."""
    return None if so_far is None or value is None else so_far + value
