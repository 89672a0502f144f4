"""The formulas of failures: hours that parts take down, lanes that are left, and what a job loses by starting again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, select
from tco.foundation.units import USD, Hour, HourPerYear, PerYear, Pure, Second, SecondPerHour


@formula(unit="1/year", source="tco-model")
def failures_per_year(rate: PerYear, parts: Pure) -> Any:
    """Failures of some parts in a year: f = n x rate; parts fail one by one, whatever their age."""
    return rate * parts


@formula(unit="", source="tco-model")
def stopped_share(failures: PerYear, stopped: Pure, chips: Pure, repair: Hour, hours_per_year: HourPerYear = 8760) -> Any:
    """Hours of chips lost for each that works: x = f x (chips a failure stops / chips) x repair / 8,760 h."""
    return failures * stopped / chips * (repair / hours_per_year)


@formula(unit="", source="tco-model")
def share_down(rate: PerYear, repair: Hour, hours_per_year: HourPerYear = 8760) -> Any:
    """Share of the time that one part waits for repair: p = x / (1 + x), x = rate x repair / 8,760 h."""
    waits = rate * (repair / hours_per_year)
    return waits / (1 + waits)


@formula(unit="", source="tco-model")
def chance_down(down: Pure, ways: Pure, failed: Pure, left: Pure) -> Any:
    """Chance that just so many of some equal parts are down: C(n, k) p^k (1 - p)^(n - k), the parts failing one by one."""
    return ways * down**failed * (1 - down) ** left


@formula(unit="", source="tco-model")
def shortfall(chance: Pure, missing: Pure, needed: Pure) -> Any:
    """Share of a bandwidth that is missing where some of the parts it needs are: s = P x missing / needed."""
    return chance * missing / needed


@formula(unit="1/year", source="tco-model")
def interrupting_failures(failures: PerYear, chance: Pure) -> Any:
    """Failures of a year that stop what runs: f P, P the chance that nothing stands in for what fails."""
    return failures * chance


@formula(unit="", source="tco-model")
def stopped_chips(chance: Pure, holders: Pure, stopped: Pure, chips: Pure) -> Any:
    """Hours of chips lost for each that works where a holder has lost more parts than it can spare: x = P x holders x chips each / chips."""
    return chance * holders * stopped / chips


@formula(unit="", source="tco-model")
def time_lost(failures: PerYear, time: Second, seconds_per_hour: SecondPerHour = 3600, hours_per_year: HourPerYear = 8760) -> Any:
    """Share of the time that goes with an event that stops all chips: x = f t / 8,760 h."""
    return failures * (time / seconds_per_hour) / hours_per_year


@formula(unit="1/year", source="tco-model")
def events_of_cluster(rate: PerYear, parts: Pure, world: Pure, cluster: Pure) -> Any:
    """Events of a year in a cluster of worlds: f = rate x parts of a world x cluster / world."""
    return rate * parts * cluster / world


@formula(unit="1/year", source="tco-model")
def missed_events(events: PerYear, detected: Pure) -> Any:
    """Events of a year that checks do not see: f (1 - d)."""
    return events * (1 - detected)


@formula(unit="", source="tco-model")
def rest_of(share: Pure) -> Any:
    """What a share leaves: 1 - s."""
    return 1 - share


@formula(unit="USD/year", source="tco-model")
def yearly_repairs(price: USD, failures: PerYear, bought: Pure) -> Any:
    """Parts that an owner buys anew for those that fail: R = f C x share he pays for."""
    return price * failures * bought


@formula(unit="", source="tco-model")
def share_up(stopped: Pure) -> Any:
    """Share of the time that repairs leave, where one hour of work meets x hours of repair: a = 1 / (1 + x)."""
    return 1 / (1 + stopped)


@formula(unit="s", source="kokolis2024")
def time_between_failures(
    failures: PerYear, world: Pure, cluster: Pure, seconds_per_hour: SecondPerHour = 3600, hours_per_year: HourPerYear = 8760
) -> Any:
    """Mean time between failures of a job on a cluster whose worlds fail so often: M = 8,760 h / (f x cluster / world)."""
    return seconds_per_hour * hours_per_year / (failures * cluster / world)


@formula(unit="s", source="daly2006")
def checkpoint_interval(stall: Second, between: Second) -> Any:
    """Work between checkpoints that loses least: tau = sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18 M) - C for C < 2 M, else M.

    C is the time a checkpoint stops the job, M the mean time between failures. Within 0.2 % of the efficiency of the exact optimum,
    M (1 + W(-exp(-1 - C / M))).
    """
    share = np.minimum(stall / (2 * between), 1)
    return select(stall < 2 * between, np.sqrt(2 * stall * between) * (1 + np.sqrt(share) / 3 + share / 9) - stall, between)


@formula(unit="", source="daly2006")
def checkpoint_efficiency(interval: Second, stall: Second, restart: Second, between: Second) -> Any:
    """Share of its time in which a job with checkpoints makes progress: tau / (M exp(R / M) (exp((tau + C) / M) - 1)).

    Exact where failures come one by one at any time, while it works, saves or starts again alike: work and its checkpoint, tau + C, are
    done again until none fails between, and so is the restart R. Daly's equation 20, for a job of many intervals.
    """
    return interval / between * np.exp(-restart / between) / np.expm1((interval + stall) / between)


@formula(unit="", source="tco-model")
def share_between_pauses(pauses: PerYear, time: Second, seconds_per_hour: SecondPerHour = 3600, hours_per_year: HourPerYear = 8760) -> Any:
    """Share of the time in which no pause lasts: exp(-f t), of pauses that begin one by one, also while another lasts."""
    return np.exp(-pauses * (time / seconds_per_hour) / hours_per_year)


@formula(unit="", source="tco-model")
def share_kept(errors: PerYear, time: Second, seconds_per_hour: SecondPerHour = 3600, hours_per_year: HourPerYear = 8760) -> Any:
    """Share of the work that is kept where an error throws away what follows it for some time: 1 / (1 + f t)."""
    return 1 / (1 + errors * (time / seconds_per_hour) / hours_per_year)


@formula(unit="s", source="tco-model")
def between_such(between: Second, share: Pure) -> Any:
    """Mean time between failures of one kind, a share of all: M / s; of none, so long that nothing is lost."""
    return between / np.maximum(share, 1e-12)


@formula(unit="", source="tco-model")
def progress(up: Pure, kept: Pure, straggling: Pure) -> Any:
    """Share of the time in which a job that starts again after failures makes progress: g = a k (1 - stragglers)."""
    return up * kept * (1 - straggling)


@formula(unit="", source="tco-model")
def share_of_progress(up: Pure, kept: Pure) -> Any:
    """Share of the time in which chips that are up make progress: g = a k."""
    return up * kept
