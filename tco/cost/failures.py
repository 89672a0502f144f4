"""Part failures of a system: rates, stopped chips, repair hours, lost bandwidth.

A holder is the assembly around a part: a tray, a server or a rack. A world is one scale-up domain.
A failed part stops the chips of its holder. In a torus it stops the world, or the block that
optical switches close. A holder with spare parts stops no chip until more parts are down than it
can spare. Lanes beyond the needed number keep the bandwidth whole.
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

RATE = "failure_rate"  # attribute of parts that fail often enough to count
REPAIR_TIME = "failures.repair_time"  # usual time to repair
REPAIR_SHARE = "repair_share"  # attribute of trays: repair time relative to the usual time
USUAL_RATE = "failures.chip_rate"  # rate of chips whose own rate is not stated
ENOUGH_SPARES = 8  # a holder with this many spare parts never runs out of them
SPARE_SUFFIX = "_spare"  # suffix of the names of lanes beyond the needed number


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
    """Share that is left: 1 - s."""
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
    """Goodput, share of the time in which chips are up and make progress: g = a k."""
    return up * kept_share


class Failing(NamedTuple):
    """A place of the tree whose parts fail."""

    leaf: Leaf
    path: str  # input path of the failure rate of one part
    failures: Quantity  # failures per year of all parts at the place, in one world
    # Input path of the repair time relative to the usual time; None for the usual time.
    repair_share: str | None


class ChipSwitches(NamedTuple):
    """Scale-up switches that a chip joins."""

    switches: int
    spares: int  # switches that may fail while the needed lanes of the chip still find a port
    groups: float  # groups of switches in a world; all chips of a group join the same switches


def failing(
    input_values: Values, system: System, states: Callable[[str, str], bool]
) -> list[Failing]:
    """Return the places of the tree whose parts fail.

    A chip without a stated rate fails at the usual rate. Other parts without a stated rate are
    taken not to fail.

    Args:
        input_values: Inputs by path.
        system: System with its tree.
        states: Returns for a part and an attribute whether the attribute is stated.

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
            failing_parts.append(
                Failing(
                    leaf=leaf,
                    path=path,
                    failures=failures_per_year(input_values[path], leaf.quantity),
                    repair_share=(
                        f"parts.{tray}.{REPAIR_SHARE}" if states(tray, REPAIR_SHARE) else None
                    ),
                )
            )
    return failing_parts


def _repair_time(input_values: Values, failing_part: Failing) -> Quantity:
    usual_time: Quantity = input_values[REPAIR_TIME]
    if failing_part.repair_share is None:
        return usual_time
    return time_to_repair(usual_time, input_values[failing_part.repair_share])


def chips_stopped(system: System, leaf: Leaf) -> tuple[float, float]:
    """Return the chips that stop with a failed part, and the number of its holders in a world.

    Args:
        system: System with its tree.
        leaf: Place of the part in the tree.

    Returns:
        The chips of one holder, or an equal share of the world's chips for a holder without chips.
        In a torus the chips of a block, or of the world where the torus has no blocks. Then the
        number of holders.

    """

    def count() -> tuple[float, float]:
        holders = sum(holder.quantity for holder in system.leaves if holder.path == leaf.parent)
        holders = max(holders, 1.0)
        if system.fabric.get("kind") == "torus":
            block_sides = system.fabric.get("block", (system.chips,))
            return min(system.chips, float(math.prod(block_sides))), holders
        chips_in_holders = sum(
            chip.quantity
            for chip in system.leaves
            if chip.part == system.chip and chip.path.startswith(f"{leaf.parent}/")
        )
        return max((chips_in_holders or system.chips) / holders, 1.0), holders

    return system.once(("chips stopped", leaf.path), count)


def switches_of_a_chip(system: System, leaf: Leaf) -> ChipSwitches:
    """Return the number of switches that a chip joins, its spare switches and the groups.

    The needed lanes of a chip fill a number of switches; the other switches are spare. A chip has
    no spare switches if its spare lanes end at the switches that the needed lanes fill.

    Args:
        system: System with its fabric.
        leaf: Place of the switches in the tree.

    """
    fabric = system.fabric
    is_in_each_rack = "planes" in fabric or fabric.get("kind") == "two-star"
    groups = float(fabric.get("planes", 1)) * (system.racks if is_in_each_rack else 1.0)
    switches = round(leaf.quantity / groups)
    lanes = fabric.get("lanes", {})
    spare_names = [lane_name for lane_name in lanes if lane_name.endswith(SPARE_SUFFIX)]
    spare_lanes = sum(lanes[lane_name] for lane_name in spare_names)
    needed_lanes = sum(lanes[lane_name.removesuffix(SPARE_SUFFIX)] for lane_name in spare_names)
    if not spare_lanes:
        return ChipSwitches(switches=switches, spares=0, groups=groups)
    lanes_per_port = fabric.get("port_lanes", (needed_lanes + spare_lanes) / switches)
    needed_switches = math.ceil(needed_lanes / lanes_per_port - 1e-9)
    spare_switches = max(switches - needed_switches, 0)
    return ChipSwitches(switches=switches, spares=spare_switches, groups=groups)


def excess_failure_chances(
    down: Quantity, parts: int, spared: int
) -> Iterator[tuple[int, Quantity]]:
    """Yield each number of failed parts beyond the spares with the chance of that number.

    Args:
        down: Share of the time that a part waits for repair.
        parts: Parts of one holder.
        spared: Parts of the holder that may be down without any loss.

    """
    for failed in range(spared + 1, parts + 1):
        arrangements = float(math.comb(parts, failed))
        with scope(f"down-{failed}"):
            chance = chance_down(down, arrangements, float(failed), float(parts - failed))
            yield failed - spared, chance


def _redundancy(system: System, failing_part: Failing) -> tuple[int, int]:
    """Return the parts of one holder, or the switches of one chip, and the spares among them."""
    leaf = failing_part.leaf
    if is_switch(system, failing_part):
        chip_switches = switches_of_a_chip(system, leaf)
        return chip_switches.switches, chip_switches.spares
    _, holders = chips_stopped(system, leaf)
    return round(leaf.quantity / holders), round(system.spares.get(leaf.part, 0))


def interrupting(input_values: Values, system: System, failing_part: Failing) -> Quantity:
    """Return the failures per year of a world that no spare part covers."""
    parts, spared = _redundancy(system, failing_part)
    if not spared:
        return failing_part.failures
    # A failure interrupts if all spares are down among the other parts of the holder.
    with scope(failing_part.leaf.path), scope("interrupting"):
        down = share_down(input_values[failing_part.path], _repair_time(input_values, failing_part))
        chances = [chance for _, chance in excess_failure_chances(down, parts - 1, spared - 1)]
        return interrupting_failures(failing_part.failures, total("all_spares_down", chances))


def _hours_lost(input_values: Values, system: System, failing_part: Failing) -> Quantity:
    """Return the chip-hours lost per working chip-hour while a part waits for repair."""
    repair = _repair_time(input_values, failing_part)
    stopped, holders = chips_stopped(system, failing_part.leaf)
    parts, spared = _redundancy(system, failing_part)
    if not spared:
        return stopped_share(failing_part.failures, stopped, system.chips, repair)
    down = share_down(input_values[failing_part.path], repair)
    chances = [chance for _, chance in excess_failure_chances(down, parts, spared)]
    too_many_down = total("too_many_down", chances)
    return stopped_chips(too_many_down, holders, stopped, system.chips)


def bandwidth_lost(input_values: Values, system: System, failing_part: Failing) -> Quantity:
    """Return the mean share of scale-up bandwidth missing while switches wait for repair.

    Only switches beyond the spare ones count.
    """
    switches, spares, _ = switches_of_a_chip(system, failing_part.leaf)
    down = share_down(input_values[failing_part.path], _repair_time(input_values, failing_part))
    if not spares:  # the missing share of the bandwidth is the share of switches down
        return down
    needed = float(switches - spares)
    shortfalls = []
    for excess, chance in excess_failure_chances(down, switches, spares):
        with scope(f"short-{excess}"):
            shortfalls.append(shortfall(chance, float(excess), needed))
    return total("missing", shortfalls)


def availability(
    input_values: Values, system: System, failing_parts: list[Failing], trains: bool
) -> Quantity:
    """Return the share of the hours in which chips are up.

    Chips are down during repairs, swaps that drain a scale-up domain, reloads and planned stops.

    Args:
        input_values: Inputs by path.
        system: System with its tree.
        failing_parts: Places of the tree whose parts fail.
        trains: Whether the workload is a training job, whose restarts are counted elsewhere.

    """
    lost = []  # chip-hours per working chip-hour
    for failing_part in failing_parts:
        if system.spares.get(failing_part.leaf.part, 0) >= ENOUGH_SPARES:
            continue
        with scope(failing_part.leaf.path):
            if not is_switch(system, failing_part):
                lost.append(_hours_lost(input_values, system, failing_part))
                continue
            _, spare_switches = _redundancy(system, failing_part)
            if not spare_switches:
                swap_time = input_values["failures.swap_time"]
                lost.append(
                    stopped_share(failing_part.failures, system.chips, system.chips, swap_time)
                )
    if not trains:  # restarts of a training job are counted with its checkpoints
        restarts = interruptions(input_values, system, failing_parts)
        lost.append(time_lost(restarts, input_values["failures.restart_time"]))
    return share_of_progress(
        share_up(total("stopped", lost)), rest_of(input_values["failures.planned_share"])
    )


def interruptions(input_values: Values, system: System, failing_parts: list[Failing]) -> Quantity:
    """Return the failures per year of a world that stop the job or engine on it."""
    return total(
        "interruptions",
        [
            interrupting(input_values, system, failing_part)
            for failing_part in failing_parts
            if system.spares.get(failing_part.leaf.part, 0) < ENOUGH_SPARES
        ],
    )


def is_switch(system: System, failing_part: Failing) -> bool:
    """Return whether a part is a scale-up switch, whose failure costs bandwidth and no chip."""
    return failing_part.leaf.part == system.fabric.get("switch")
