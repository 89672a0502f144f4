"""Goodput after failures: chip availability and restart losses of training jobs.

Availability is the share of hours in which chips are up. A training job also loses time when it
starts again from its checkpoints.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tco.catalog.system_tree import System
from tco.core.elementwise import elementwise_maximum, elementwise_minimum, exp, expm1, sqrt
from tco.core.formula import formula, select, somewhere, total
from tco.core.inputs import Values
from tco.core.trace import scope, untraced_value
from tco.core.types import Quantity
from tco.core.units import HourPerYear, PerYear, Pure, Second, SecondPerHour
from tco.cost.failures import (
    Failing,
    availability,
    bandwidth_lost,
    failures_per_year,
    interrupting_failures,
    interruptions,
    is_switch,
    rest_of,
    share_of_progress,
    share_up,
    time_lost,
)
from tco.system.scale_out_network import cards_of


@formula("1/year")
def events_of_cluster(rate: PerYear, parts: Pure, world: Pure, cluster: Pure) -> Quantity:
    """Events of a year in a cluster of worlds: f = rate x parts of a world x cluster / world."""
    return rate * parts * cluster / world


@formula("s", source="kokolis2024")
def time_between_failures(
    failures: PerYear,
    world: Pure,
    cluster: Pure,
    seconds_per_hour: SecondPerHour = 3600,
    hours_per_year: HourPerYear = 8760,
) -> Quantity:
    """Mean time between failures of a job on a cluster: M = 8,760 h / (f x cluster / world).

    f is the yearly failures of one scale-up domain of `world` chips.
    """
    return seconds_per_hour * hours_per_year / (failures * cluster / world)


@formula("s", source="daly2006")
def checkpoint_interval(stall: Second, between: Second) -> Quantity:
    """Work between checkpoints that loses least time.

    tau = sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18 M) - C for C < 2 M, otherwise M.

    C is the time a checkpoint stops the job, M the mean time between failures. Within 0.2 % of the
    efficiency of the exact optimum, M (1 + W(-exp(-1 - C / M))).
    """
    share = elementwise_minimum(stall / (2 * between), 1)
    return select(
        stall < 2 * between,
        sqrt(2 * stall * between) * (1 + sqrt(share) / 3 + share / 9) - stall,
        between,
    )


@formula("", source="daly2006")
def checkpoint_efficiency(
    interval: Second, stall: Second, restart: Second, between: Second
) -> Quantity:
    """Share of time in which a job with checkpoints progresses.

    e = tau / (M exp(R / M) (exp((tau + C) / M) - 1)).

    Exact where failures come one by one at any time, while it works, saves or starts again alike:
    work and its checkpoint, tau + C, are done again until none fails between, and so is the restart
    R. Daly's equation 20, for a job of many intervals.
    """
    return interval / between * exp(-restart / between) / expm1((interval + stall) / between)


@formula("")
def share_between_pauses(lost: Pure) -> Quantity:
    """Share of the time without a pause: exp(-f t).

    Pauses begin independently, also while another lasts.
    """
    return exp(-lost)


@formula("s")
def between_such(between: Second, share: Pure) -> Quantity:
    """Mean time between failures of one kind, a share s of all: M / s.

    Without any, it is so long that nothing is lost.
    """
    return between / elementwise_maximum(share, 1e-12)


@formula("")
def progress(up: Pure, kept_share: Pure, straggling: Pure) -> Quantity:
    """Share of the time in which a restarting job progresses: g = a k (1 - stragglers)."""
    return up * kept_share * (1 - straggling)


AVAILABILITY = "terms.availability"


class CheckpointTier(NamedTuple):
    """Tier of checkpoints, with the paths of its times."""

    name: str
    stall: str  # time that a checkpoint stops the job
    restart: str  # time until the job runs again from a checkpoint


TIERS = (
    CheckpointTier("local", "failures.local_stall", "failures.local_restart"),
    CheckpointTier("remote", "failures.checkpoint_stall", "failures.restart_time"),
)


def goodput(
    input_values: Values, system: System, failing_parts: list[Failing], trains: bool, stated: bool
) -> Any:
    """Return the share of the paid hours in which chips make progress.

    The cost of an hour is divided by this share. The availability follows from the failures unless
    the availability is `stated`. A training job also loses time at each restart.

    Args:
        input_values: Inputs by path.
        system: System with its tree.
        failing_parts: Places whose parts fail.
        trains: Whether the job trains a model.
        stated: Whether a contract or the user states the availability.

    """
    if stated:
        up = input_values[AVAILABILITY]
    else:
        up = input_values.derived(
            AVAILABILITY, "", lambda: availability(input_values, system, failing_parts, trains)
        )
    if trains:
        return _training_goodput(input_values, system, failing_parts, up)
    if stated:
        return up
    lost_bandwidth = [
        bandwidth_lost(input_values, system, failing_part)
        for failing_part in failing_parts
        if is_switch(system, failing_part)
    ]
    if not lost_bandwidth:
        return up
    return share_of_progress(up, rest_of(total("bandwidth", lost_bandwidth)))


def _training_goodput(
    input_values: Values, system: System, failing_parts: list[Failing], up: Any
) -> Any:
    """Return the share of the hours in which a training job of the whole cluster makes progress.

    After a failure the other replicas of an elastic job continue after a pause. Otherwise the job
    restarts from the nearest checkpoint that is left. Worlds that wait for repair do not take part.
    The job pauses while links flap, and discards the work after an error that is detected late.

    Each kind of event is a separate renewal process, and the shares of time that they leave are
    multiplied. The result is within 0.006 of a simulation of events up to 65,536 chips, and within
    0.06 at a million chips, where events often coincide. The progress that a restarting replica
    misses relative to the others is ignored.
    """
    chips = system.chips
    cluster = input_values["cluster.chips"]
    failures = _interruptions_of_job(input_values, system, failing_parts)
    progress_shares = []
    for tier, between in zip(
        TIERS, _times_between_restarts(input_values, system, failures), strict=True
    ):
        with scope(tier.name):
            stall = input_values[tier.stall]
            interval = checkpoint_interval(stall, between)
            progress_shares.append(
                checkpoint_efficiency(interval, stall, input_values[tier.restart], between)
            )
    with scope("elastic"):
        survived = events_of_cluster(
            interrupting_failures(failures, input_values["failures.elastic_share"]),
            1.0,
            chips,
            cluster,
        )
        progress_shares.append(
            share_between_pauses(time_lost(survived, input_values["failures.elastic_stall"]))
        )
    with scope("flaps"):
        flaps = events_of_cluster(
            input_values["failures.flap_rate"], _scale_out_link_count(system), chips, cluster
        )
        progress_shares.append(
            share_between_pauses(time_lost(flaps, input_values["failures.flap_time"]))
        )
    with scope("silent"):
        errors = events_of_cluster(input_values["failures.silent_rate"], chips, chips, cluster)
        undetected = interrupting_failures(
            errors, rest_of(input_values["failures.silent_detected"])
        )
        # The work of a fixed time after an undetected error is discarded.
        progress_shares.append(
            share_up(time_lost(undetected, input_values["failures.silent_time"]))
        )
    return progress(
        up, reduce(share_of_progress, progress_shares), input_values["failures.straggling"]
    )


def _interruptions_of_job(
    input_values: Values, system: System, failing_parts: list[Failing]
) -> Quantity:
    """Return the yearly interruptions of a job per world, from failed parts and other causes."""
    return total(
        "failures",
        [
            interruptions(input_values, system, failing_parts),
            failures_per_year(input_values["failures.job_rate"], system.chips),
        ],
    )


def _times_between_restarts(
    input_values: Values, system: System, failures: Quantity
) -> tuple[Quantity, Quantity]:
    """Return the mean times between restarts of a job from the tiers of checkpoints, s."""
    between_failures = time_between_failures(failures, system.chips, input_values["cluster.chips"])
    between = between_such(between_failures, rest_of(input_values["failures.elastic_share"]))
    local_share = input_values["failures.local_share"]
    return between_such(between, local_share), between_such(between, rest_of(local_share))


def long_checkpoints(
    input_values: Values, system: System, failing_parts: list[Failing]
) -> list[str]:
    """Return a note for each checkpoint tier that stalls longer than its interval.

    The interval is the work between two checkpoints that is best for the job.

    Args:
        input_values: Inputs by path.
        system: System with its tree.
        failing_parts: Places whose parts fail.

    """
    notes = []
    failures = _interruptions_of_job(input_values, system, failing_parts)
    for tier, between in zip(
        TIERS, _times_between_restarts(input_values, system, failures), strict=True
    ):
        stall = untraced_value(input_values[tier.stall])
        work = untraced_value(checkpoint_interval(stall, between))
        if somewhere(stall > work):
            notes.append(
                f"{tier.stall} is {np.max(stall):,.4g} s, longer than the {np.min(work):,.4g} s of "
                "work that are best between two checkpoints"
            )
    return notes


def _scale_out_link_count(system: System) -> float:
    cards = cards_of(system, "scale_out")
    return system.chips if cards is None else cards.quantity
