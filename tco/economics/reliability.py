"""What failures leave of the time: how often parts fail, how many chips stop with one, and what a job loses by starting again."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tco.catalog.systems import Leaf, System
from tco.foundation.formula import formula, total
from tco.foundation.trace import scope
from tco.foundation.units import Hour, HourPerYear, PerYear, Pure, Second, SecondPerHour
from tco.foundation.values import Values

RATE = "failure_rate"  # attribute of parts that fail often enough to count


@formula(unit="1/year", source="tco-model")
def failures_per_year(rate: PerYear, parts: Pure) -> Any:
    """Failures of some parts in a year: f = n x rate; parts fail one by one, whatever their age."""
    return rate * parts


@formula(unit="", source="tco-model")
def stopped_share(failures: PerYear, stopped: Pure, chips: Pure, repair: Hour, hours_per_year: HourPerYear = 8760) -> Any:
    """Hours of chips lost for each that works: x = f x (chips a failure stops / chips) x repair / 8,760 h."""
    return failures * stopped / chips * (repair / hours_per_year)


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
def young_interval(stall: Second, between: Second) -> Any:
    """Time between checkpoints that loses least, to first order: tau = sqrt(2 C M)."""
    return np.sqrt(2 * stall * between)


@formula(unit="s", source="daly2006")
def daly_interval(stall: Second, between: Second) -> Any:
    """Time between checkpoints that loses least: tau = sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18 M) - C, for C < 2 M."""
    share = np.minimum(stall / (2 * between), 1)
    return np.maximum(np.sqrt(2 * stall * between) * (1 + np.sqrt(share) / 3 + share / 9) - stall, stall)


@formula(unit="", source="daly2006")
def share_kept(stall: Second, interval: Second, restart: Second, between: Second) -> Any:
    """Share of its time a job keeps between checkpoints and failures: g = 1 - C / tau - (tau / 2 + R) / M, never below nothing."""
    return np.maximum(1 - stall / interval - (interval / 2 + restart) / between, 0)


@formula(unit="", source="tco-model")
def share_of_progress(up: Pure, kept: Pure) -> Any:
    """Share of the time in which a job that starts again after failures makes progress: g = a k."""
    return up * kept


def chips_stopped(system: System, leaf: Leaf) -> float:
    """Return the chips that stop with one part: a torus without optical switches loses its world, a switched rack what shares its tray."""
    chips = system.chips
    if system.fabric.get("kind") == "torus":
        return min(chips, float(math.prod(system.fabric.get("block", (chips,)))))
    holders = sum(other.quantity for other in system.leaves if other.path == leaf.parent) or 1.0
    below = sum(other.quantity for other in system.leaves if other.part == system.chip and other.path.startswith(f"{leaf.parent}/"))
    return max(below / holders, 1.0)


def goodput(values: Values, system: System, states: Callable[[str], bool], trains: bool) -> Any:
    """Return the share of the time that makes progress, as far as failures go; `states` says whether a part has a rate of failure.

    A serving world goes on without the chips that wait for repair; a job that trains starts again from its last checkpoint.
    """
    chips, lost, often = system.chips, [], []
    for leaf in system.leaves:
        if states(leaf.part):
            with scope(leaf.path):
                failures = failures_per_year(values[f"parts.{leaf.part}.{RATE}"], leaf.quantity)
                often.append(failures)
                stopped = system.once(("stopped", leaf.path), partial(chips_stopped, system, leaf))
                lost.append(stopped_share(failures, stopped, chips, values["failures.repair_time"]))
    if not often:
        return None
    up = share_up(total("stopped", lost))
    if not trains:
        return up
    stall = values["failures.checkpoint_stall"]
    between = time_between_failures(total("failures", often), chips, values["cluster.chips"])
    return share_of_progress(up, share_kept(stall, daly_interval(stall, between), values["failures.restart_time"], between))
