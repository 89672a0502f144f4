"""Part failures of a system: rates, stopped chips, repair hours, lost bandwidth.

A failed part stops the chips that share its holder: a tray, a server or a rack. In a torus it stops
the world, or the block that optical switches close. A holder with spare parts stops no chip until
more parts are down than it can spare. Lanes beyond the needed number keep the bandwidth whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tco.catalog.system_tree import Leaf, System
from tco.core.formula import formula, total
from tco.core.inputs import Values
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import USD, Hour, HourPerYear, PerYear, Pure, Second, SecondPerHour


@formula("1/year")
def failures_per_year(rate: PerYear, parts: Pure) -> Quantity:
    """Failures of some parts in a year: f = n x rate; parts fail one by one, whatever their age."""
    return rate * parts


@formula("")
def stopped_share(
    failures: PerYear, stopped: Pure, chips: Pure, repair: Hour, hours_per_year: HourPerYear = 8760
) -> Quantity:
    """Chip-hours lost per working chip-hour: x = f x stopped / chips x repair / 8,760 h.

    stopped is the number of chips that a failure stops.
    """
    return failures * stopped / chips * (repair / hours_per_year)


@formula("h")
def time_to_repair(usual: Hour, share: Pure) -> Quantity:
    """Time to repair a tray's part: t = usual x share.

    The tray's design makes it shorter or longer than is usual.
    """
    return usual * share


@formula("")
def share_down(rate: PerYear, repair: Hour, hours_per_year: HourPerYear = 8760) -> Quantity:
    """Share of the time that a part waits for repair: p = x / (1 + x).

    x = rate x repair / 8,760 h.
    """
    waits = rate * (repair / hours_per_year)
    return waits / (1 + waits)


@formula("")
def chance_down(down: Pure, arrangements: Pure, failed: Pure, left: Pure) -> Quantity:
    """Chance that exactly k of n equal parts are down: C(n, k) p^k (1 - p)^(n - k).

    The parts fail independently.
    """
    return arrangements * down**failed * (1 - down) ** left


@formula("")
def shortfall(chance: Pure, missing: Pure, needed: Pure) -> Quantity:
    """Missing share of a bandwidth while some of its parts are down: s = P x missing / needed."""
    return chance * missing / needed


@formula("1/year")
def interrupting_failures(failures: PerYear, chance: Pure) -> Quantity:
    """Failures per year that stop a job: f P.

    P is the chance that no spare stands in for a failed part.
    """
    return failures * chance


@formula("")
def stopped_chips(chance: Pure, holders: Pure, stopped: Pure, chips: Pure) -> Quantity:
    """Chip-hours lost per working chip-hour to failures beyond the spares.

    x = P x holders x m / chips, where m is the number of chips that each holder stops.
    """
    return chance * holders * stopped / chips


@formula("")
def time_lost(
    failures: PerYear,
    time: Second,
    seconds_per_hour: SecondPerHour = 3600,
    hours_per_year: HourPerYear = 8760,
) -> Quantity:
    """Share of the time that goes with an event that stops all chips: x = f t / 8,760 h."""
    return failures * (time / seconds_per_hour) / hours_per_year


@formula("")
def rest_of(share: Pure) -> Quantity:
    """Remaining share: 1 - s."""
    return 1 - share


@formula("USD/year")
def yearly_repairs(price: USD, failures: PerYear, bought: Pure) -> Quantity:
    """Parts that an owner buys anew for those that fail: R = f C x share he pays for."""
    return price * failures * bought


@formula("")
def share_up(stopped: Pure) -> Quantity:
    """Share of the time that repairs or lost work leave: a = 1 / (1 + x).

    x is the hours of repair, or of discarded work, per hour of work.
    """
    return 1 / (1 + stopped)


@formula("")
def share_of_progress(up: Pure, kept_share: Pure) -> Quantity:
    """Share of the time in which chips that are up make progress: g = a k."""
    return up * kept_share


RATE = "failure_rate"  # attribute of parts that fail often enough to count
# usual, and an attribute of trays that are repaired sooner or later
REPAIR, SHARE = (
    "failures.repair_time",
    "repair_share",
)
USUAL_RATE = "failures.chip_rate"  # of a chip whose rate nobody states
NEVER = 8  # parts to spare, from which on no holder ever lacks one
SPARE = "_spare"  # ends the name of lanes beyond those that are needed


class Failing(NamedTuple):
    """A place of the tree whose parts fail, and how often those of one world do so in a year."""

    leaf: Leaf
    path: str  # of the rate
    failures: Quantity
    share: str | None  # path of what the tray around makes of the usual time to repair


def failing(
    input_values: Values, system: System, states: Callable[[str, str], bool]
) -> list[Failing]:
    """Return the places of the tree whose parts fail.

    A chip always fails, at the usual rate where no rate of the chip is stated.

    Args:
        input_values: Inputs by path.
        system: System with its tree.
        states: Says, by part and attribute, whether the attribute is stated.

    """
    failing_parts = []
    for leaf in system.leaves:
        if states(leaf.part, RATE):
            path = f"parts.{leaf.part}.{RATE}"
        elif leaf.part == system.chip:
            path = USUAL_RATE
        else:
            continue
        tray = leaf.parent.rpartition("/")[2]
        with scope(leaf.path):
            share = f"parts.{tray}.{SHARE}" if states(tray, SHARE) else None
            failures = failures_per_year(input_values[path], leaf.quantity)
            failing_parts.append(Failing(leaf, path, failures, share))
    return failing_parts


def _repair_of(input_values: Values, failing_part: Failing) -> Quantity:
    return (
        input_values[REPAIR]
        if failing_part.share is None
        else time_to_repair(input_values[REPAIR], input_values[failing_part.share])
    )


# ---------------------------------------------------------------- structure: what stops with what
def chips_stopped(system: System, leaf: Leaf) -> tuple[float, float]:
    """Return the chips that stop with one part, and how many of what holds it stand in a world.

    Those of its holder stop, their share of the world where the holder has none, or a torus.
    """

    def count() -> tuple[float, float]:
        holders = max(
            sum(
                holder_leaf.quantity
                for holder_leaf in system.leaves
                if holder_leaf.path == leaf.parent
            ),
            1.0,
        )
        below = sum(
            chip_leaf.quantity
            for chip_leaf in system.leaves
            if chip_leaf.part == system.chip and chip_leaf.path.startswith(f"{leaf.parent}/")
        )
        stopped = max((below or system.chips) / holders, 1.0)
        if system.fabric.get("kind") == "torus":
            stopped = min(
                system.chips, float(math.prod(system.fabric.get("block", (system.chips,))))
            )
        return stopped, holders

    return system.once(("chips stopped", leaf.path), count)


def switches_of_a_chip(system: System, leaf: Leaf) -> tuple[int, int, float]:
    """Return a chip's scale-up switches, its spare switches and the switch groups.

    The first two are numbers of switches. The groups are the groups of such switches in a world.

    A chip can spare the switches beyond the number that its lanes fill, without its spare lanes.
    Spare lanes without a switch at their end help nobody.
    """
    fabric = system.fabric
    groups = float(fabric.get("planes", 1)) * (
        system.racks if "planes" in fabric or fabric.get("kind") == "two-star" else 1.0
    )
    chip_switches = round(leaf.quantity / groups)
    lanes = fabric.get("lanes", {})
    spare = sum(count for lane_name, count in lanes.items() if lane_name.endswith(SPARE))
    needed = sum(
        lanes[lane_name.removesuffix(SPARE)] for lane_name in lanes if lane_name.endswith(SPARE)
    )
    port = fabric.get("port_lanes", (needed + spare) / chip_switches)
    return (
        chip_switches,
        max(chip_switches - math.ceil(needed / port - 1e-9), 0) if spare else 0,
        groups,
    )


# ---------------------------------------------------------------- what is lost
def excess_failure_chances(
    down: Quantity, parts: int, spared: int
) -> Iterator[tuple[int, Quantity]]:
    """Yield the number of failed parts beyond the spares, and its chance."""
    for failed in range(spared + 1, parts + 1):
        with scope(f"down-{failed}"):
            yield (
                failed - spared,
                chance_down(
                    down, float(math.comb(parts, failed)), float(failed), float(parts - failed)
                ),
            )


def _redundancy(system: System, failing_part: Failing) -> tuple[int, int]:
    if is_switch(system, failing_part):
        return switches_of_a_chip(system, failing_part.leaf)[:2]
    return round(failing_part.leaf.quantity / chips_stopped(system, failing_part.leaf)[1]), round(
        system.spares.get(failing_part.leaf.part, 0)
    )


def interrupting(input_values: Values, system: System, failing_part: Failing) -> Quantity:
    """Return the failures of a year that find nothing to stand in for what fails."""
    parts, spared = _redundancy(system, failing_part)
    if not spared:
        return failing_part.failures
    with scope(failing_part.leaf.path), scope("interrupting"):
        down = share_down(input_values[failing_part.path], _repair_of(input_values, failing_part))
        chances = [chance for _, chance in excess_failure_chances(down, parts - 1, spared - 1)]
        return interrupting_failures(failing_part.failures, total("all_spares_down", chances))


def _hours_lost(input_values: Values, system: System, failing_part: Failing) -> Quantity:
    """Return the chip-hours that a part's failures take per working chip-hour, until repair."""
    leaf, repair = failing_part.leaf, _repair_of(input_values, failing_part)
    stopped, holders = chips_stopped(system, leaf)
    parts, spared = _redundancy(system, failing_part)
    if not spared:
        return stopped_share(failing_part.failures, stopped, system.chips, repair)
    down = share_down(input_values[failing_part.path], repair)
    chance = total(
        "too_many_down", [chance for _, chance in excess_failure_chances(down, parts, spared)]
    )
    return stopped_chips(chance, holders, stopped, system.chips)


def bandwidth_lost(input_values: Values, system: System, failing_part: Failing) -> Quantity:
    """Return the mean share of scale-up bandwidth missing while switches wait for repair.

    Only switches beyond the spare ones count.
    """
    parts, spared, _ = switches_of_a_chip(system, failing_part.leaf)
    down = share_down(input_values[failing_part.path], _repair_of(input_values, failing_part))
    if not spared:  # the mean of what is down is the share that is missing
        return down
    missing = []
    for beyond, chance in excess_failure_chances(down, parts, spared):
        with scope(f"short-{beyond}"):
            missing.append(shortfall(chance, float(beyond), float(parts - spared)))
    return total("missing", missing)


def availability(
    input_values: Values, system: System, failing_parts: list[Failing], trains: bool
) -> Quantity:
    """Return the share of the hours in which chips are up.

    Repairs, swaps that drain a scale-up domain, reloads and planned stops take the rest.
    """
    lost = []
    for failing_part in failing_parts:
        with scope(failing_part.leaf.path):
            if system.spares.get(failing_part.leaf.part, 0) >= NEVER:
                continue
            if not is_switch(system, failing_part):
                lost.append(_hours_lost(input_values, system, failing_part))
            elif not _redundancy(system, failing_part)[1]:
                lost.append(
                    stopped_share(
                        failing_part.failures,
                        system.chips,
                        system.chips,
                        input_values["failures.swap_time"],
                    )
                )
    # a job that trains starts again from a checkpoint, which costs more than loading weights
    if not trains:
        lost.append(
            time_lost(
                interruptions(input_values, system, failing_parts),
                input_values["failures.restart_time"],
            )
        )
    return share_of_progress(
        share_up(total("stopped", lost)), rest_of(input_values["failures.planned_share"])
    )


def interruptions(input_values: Values, system: System, failing_parts: list[Failing]) -> Quantity:
    """Return the failures of a world in a year that stop what runs on it."""
    return total(
        "interruptions",
        [
            interrupting(input_values, system, failing_part)
            for failing_part in failing_parts
            if system.spares.get(failing_part.leaf.part, 0) < NEVER
        ],
    )


def is_switch(system: System, failing_part: Failing) -> bool:
    """Say whether a part is a scale-up switch, whose failure takes bandwidth and stops no chip."""
    return failing_part.leaf.part == system.fabric.get("switch")
