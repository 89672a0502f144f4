"""What failures leave of the time: which parts of a system fail, how many chips stop with each, and what a job loses beside.

A part stops the chips that share its holder: a tray's, a server's, a rack's; in a torus the world, or the block that optical switches
close. Parts a holder can spare stop nothing until more are down than that, and lanes beyond those needed keep the bandwidth whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tco.catalog.systems import Leaf, System
from tco.economics.reliability import (
    between_such,
    chance_down,
    daly_interval,
    events_of_cluster,
    failures_per_year,
    missed_events,
    progress,
    rest_of,
    restart_loss,
    share_down,
    share_of_progress,
    share_up,
    shortfall,
    slowest_of,
    stopped_chips,
    stopped_share,
    time_between_failures,
    time_lost,
)
from tco.foundation.formula import total
from tco.foundation.trace import scope
from tco.foundation.values import Values
from tco.hardware.nics import cards_of

RATE = "failure_rate"  # attribute of parts that fail often enough to count
USUAL_RATE = "failures.chip_rate"  # of a chip whose rate nobody states
TAIL = 3  # terms of the chance that too many parts are down: the next are smaller by orders of magnitude
NEVER = 8  # parts to spare, from which on no holder ever lacks one
SPARE = "_spare"  # ends the name of lanes beyond those that are needed
AVAILABILITY = "terms.availability"


class Failing(NamedTuple):
    """A place of the tree whose parts fail, and how often those of one world do so in a year."""

    leaf: Leaf
    path: str  # of the rate
    failures: Any


def failing(values: Values, system: System, states: Callable[[str], bool]) -> list[Failing]:
    """Return the places whose parts fail; `states` says whether somebody states a part's rate. A chip always fails."""
    found = []
    for leaf in system.leaves:
        path = f"parts.{leaf.part}.{RATE}" if states(leaf.part) else USUAL_RATE if leaf.part == system.chip else None
        if path is not None:
            with scope(leaf.path):
                found.append(Failing(leaf, path, failures_per_year(values[path], leaf.quantity)))
    return found


# ---------------------------------------------------------------- structure: what stops with what
def chips_stopped(system: System, leaf: Leaf) -> tuple[float, float]:
    """Return the chips that stop with one part, and how many of what holds it stand in a world.

    Those of its holder stop, their share of the world where the holder has none, or a torus.
    """

    def count() -> tuple[float, float]:
        holders = max(sum(other.quantity for other in system.leaves if other.path == leaf.parent), 1.0)
        below = sum(other.quantity for other in system.leaves if other.part == system.chip and other.path.startswith(f"{leaf.parent}/"))
        stopped = max((below or system.chips) / holders, 1.0)
        if system.fabric.get("kind") == "torus":
            stopped = min(system.chips, float(math.prod(system.fabric.get("block", (system.chips,)))))
        return stopped, holders

    found: tuple[float, float] = system.once(("chips stopped", leaf.path), count)
    return found


def switches_of_a_chip(system: System, leaf: Leaf) -> tuple[int, int, float]:
    """Return how many scale-up switches a chip is wired to, how many of them it can spare, and the groups of such switches in a world."""
    fabric = system.fabric
    groups = float(fabric.get("planes", 1)) * (system.racks if "planes" in fabric or fabric.get("kind") == "two-star" else 1.0)
    each = round(leaf.quantity / groups)
    lanes = fabric.get("lanes", {})
    spare = sum(count for name, count in lanes.items() if name.endswith(SPARE))
    needed = sum(lanes[name.removesuffix(SPARE)] for name in lanes if name.endswith(SPARE))
    return each, math.floor(each * spare / (spare + needed) + 1e-9) if spare else 0, groups


# ---------------------------------------------------------------- what is lost
def too_many(down: Any, parts: int, spared: int) -> Iterator[tuple[int, Any]]:
    """Yield how many more of some parts are down than can be spared, and the chance of it."""
    for failed in range(spared + 1, min(parts, spared + TAIL) + 1):
        with scope(f"down-{failed}"):
            yield failed - spared, chance_down(down, float(math.comb(parts, failed)), float(failed), float(parts - failed))


def hours_lost(values: Values, system: System, one: Failing) -> Any:
    """Return the hours of chips that a part's failures take for each that works, until it is repaired."""
    leaf, repair = one.leaf, values["failures.repair_time"]
    stopped, holders = chips_stopped(system, leaf)
    spared = round(system.spares.get(leaf.part, 0))
    if not spared:
        return stopped_share(one.failures, stopped, system.chips, repair)
    down = share_down(values[one.path], repair)
    chance = total("too_many_down", [chance for _, chance in too_many(down, round(leaf.quantity / holders), spared)])
    return stopped_chips(chance, holders, stopped, system.chips)


def bandwidth_lost(values: Values, system: System, one: Failing, cluster: Any) -> Any:
    """Return the share of the scale-up bandwidth that is missing where the slowest group of switches of a cluster sets the pace."""
    parts, spared, groups = switches_of_a_chip(system, one.leaf)
    down = share_down(values[one.path], values["failures.repair_time"])
    if not spared:  # the mean of what is down is the share that is missing
        return slowest_of(down, groups, system.chips, cluster)
    missing = []
    for beyond, chance in too_many(down, parts, spared):
        with scope(f"short-{beyond}"):
            missing.append(shortfall(chance, float(beyond), float(parts - spared)))
    return slowest_of(total("missing", missing), groups, system.chips, cluster)


def availability(values: Values, system: System, found: list[Failing], trains: bool) -> Any:
    """Return the share of the hours in which chips are up: without repairs, swaps that drain a world, loading anew, and planned stops."""
    lost = []
    for one in found:
        with scope(one.leaf.path):
            if system.spares.get(one.leaf.part, 0) >= NEVER:
                continue
            if not is_switch(system, one):
                lost.append(hours_lost(values, system, one))
            elif not switches_of_a_chip(system, one.leaf)[1]:
                lost.append(stopped_share(one.failures, system.chips, system.chips, values["failures.swap_time"]))
    if not trains:  # a job that trains starts again from a checkpoint, which costs more than loading weights
        lost.append(time_lost(total("failures", [one.failures for one in found]), values["failures.restart_time"]))
    return share_of_progress(share_up(total("stopped", lost)), rest_of(values["failures.planned_share"]))


def is_switch(system: System, one: Failing) -> bool:
    """Say whether a part is a switch of the scale-up fabric, whose failure leaves chips up and takes bandwidth."""
    return one.leaf.part == system.fabric.get("switch")


def goodput(values: Values, system: System, found: list[Failing], trains: bool, stated: bool) -> Any:
    """Return the share of the hours paid for that makes progress, by which the cost of an hour is divided.

    The availability follows from the failures unless it is `stated`, by a contract or by the user; what a job that trains loses by
    starting again comes on top.
    """
    up = values[AVAILABILITY] if stated else values.derived(AVAILABILITY, "", lambda: availability(values, system, found, trains))
    if trains:
        return job(values, system, found, up)
    lost = [] if stated else [bandwidth_lost(values, system, one, system.chips) for one in found if is_switch(system, one)]
    return share_of_progress(up, rest_of(total("bandwidth", lost))) if lost else up


# ---------------------------------------------------------------- a job that trains
def job(values: Values, system: System, found: list[Failing], up: Any) -> Any:
    """Return the share of the hours in which a training job of the whole cluster makes progress.

    It runs at the pace of its slowest world, stops for checkpoints and while links flap, starts again after each failure from the
    nearest copy that is left, and throws away what followed an error that nobody saw.
    """
    chips, cluster = system.chips, values["cluster.chips"]
    between = time_between_failures(total("failures", [one.failures for one in found]), chips, cluster)
    local = values["failures.local_share"]
    lost = [
        tier_loss("local", values["failures.local_stall"], values["failures.local_restart"], between_such(between, local)),
        tier_loss("remote", values["failures.checkpoint_stall"], values["failures.restart_time"], between_such(between, rest_of(local))),
        *(bandwidth_lost(values, system, one, cluster) for one in found if is_switch(system, one)),
    ]
    with scope("flaps"):
        flaps = events_of_cluster(values["failures.flap_rate"], links_of(system), chips, cluster)
        lost.append(time_lost(flaps, values["failures.flap_time"]))
    with scope("silent"):
        missed = missed_events(events_of_cluster(values["failures.silent_rate"], chips, chips, cluster), values["failures.silent_detected"])
        lost.append(time_lost(missed, values["failures.silent_time"]))
    return progress(up, total("lost", lost), values["failures.straggling"])


def tier_loss(name: str, stall: Any, restart: Any, between: Any) -> Any:
    """Return what a tier of checkpoints and the failures that it serves take, at the best interval."""
    with scope(name):
        return restart_loss(stall, daly_interval(stall, between), restart, between)


def links_of(system: System) -> float:
    """Return the links of one world into the scale-out network: its cards, or one a chip where the system names none."""
    cards = cards_of(system, "scale_out")
    return system.chips if cards is None else cards.quantity
