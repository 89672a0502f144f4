"""A training job event by event: what failures, checkpoints, flaps and unseen errors leave of its
time, without the formulas of the model.

`python -m tests.cost.simulation` writes `simulated_goodput.csv` beside it, which the tests
compare the model with.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from typing import NamedTuple

import tco

ANSWERS = Path(__file__).with_name("simulated_goodput.csv")
EVENTS = 100_000
SYSTEM, YEAR = "h100-hgx8", 8760 * 3600
CHIPS = (1024, 16384, 65536, 262144, 1048576)
# after which others go on, after which a near copy is left
SHARES = (
    (0.0, 0.0),
    (0.0, 0.9),
    (0.9, 0.0),
    (0.9, 0.9),
)


class Job(NamedTuple):
    """Means of a job: all times in seconds, rates in events a second of the whole job."""

    failures: float
    elastic: float  # share after which the other replicas go on
    local: float  # share of the others after which a near copy is left
    stalls: tuple[float, float]  # of a near checkpoint and of one to storage
    intervals: tuple[float, float]  # of work between them
    restarts: tuple[float, float]
    elastic_stall: float
    flaps: float
    flap_time: float
    errors: float  # that no check sees
    error_time: float  # of work until they show


def simulated(job: Job, seed: int, events: int = EVENTS) -> float:
    """Return the share of its time in which a job makes progress."""
    dice = random.Random(seed)
    clock = work = 0.0
    saved = [0.0, 0.0]  # work that a near copy and one in storage hold
    due = list(job.intervals)  # work at which the next ones are made
    busy = 0.0  # until when pauses last
    faults = {
        "failure": dice.expovariate(job.failures),
        "flap": dice.expovariate(job.flaps) if job.flaps else float("inf"),
    }
    # work at which the next unseen error strikes
    wrong = dice.expovariate(job.errors) if job.errors else float("inf")
    for _ in range(events):
        name = min(faults, key=faults.__getitem__)
        until = faults[name]
        while clock < until:
            if busy > clock:
                clock = min(busy, until)
                continue
            next_save = min(due)
            detected_work = wrong + job.error_time
            step = min(next_save, detected_work) - work
            if clock + step > until:
                work += until - clock
                clock = until
                break
            clock += step
            work += step
            if (
                detected_work <= next_save
            ):  # what followed the error is done again, from where it struck
                work = wrong
                saved = [min(saved_work, work) for saved_work in saved]
                due = [work + interval for interval in job.intervals]
                wrong = work + dice.expovariate(job.errors)
                continue
            tier = due.index(next_save)
            if clock + job.stalls[tier] <= until:  # a checkpoint that a failure cuts short is none
                saved[tier] = work
                due[tier] = work + job.intervals[tier]
                if tier:
                    saved[0], due[0] = work, work + job.intervals[0]
                clock += job.stalls[tier]
            else:
                clock = until
        if name == "flap":
            busy = max(busy, clock + job.flap_time)
            faults["flap"] = clock + dice.expovariate(job.flaps)
            continue
        faults["failure"] = clock + dice.expovariate(job.failures)
        if dice.random() < job.elastic:
            busy = max(busy, clock + job.elastic_stall)
            continue
        near = dice.random() < job.local
        work = saved[0] if near else saved[1]
        if not near:
            saved[0] = work
        due = [work + job.intervals[0], saved[1] + job.intervals[1]]
        restart = job.restarts[0 if near else 1]
        while faults["failure"] < clock + restart:  # it fails while it starts
            clock = faults["failure"]
            faults["failure"] = clock + dice.expovariate(job.failures)
        clock += restart
        faults["flap"] = max(faults["flap"], clock)
        if wrong > work and job.errors:  # what was wrong is undone with the work
            wrong = work + dice.expovariate(job.errors)
    return work / clock


def settings(chips: int, elastic: float, local: float) -> dict[str, str]:
    """Return a training job whose chips are always up, so that what is left is what the job itself
    loses.
    """
    shares = {"failures.elastic_share": str(elastic), "failures.local_share": str(local)}
    return {
        "workload": "llama-3.1-405b-training",
        "cluster.chips": str(chips),
        "terms.availability": "1",
        **shares,
    }


def failure_rates(result: tco.Result) -> dict[str, float]:
    """Return the yearly failures of each part that fails; a chip without a rate takes the shared
    one.
    """
    rates = {
        path.split(".")[1]: rate_input.value
        for path, rate_input in result.inputs.items()
        if path.endswith(".failure_rate")
    }
    if "failures.chip_rate" in result.inputs:
        chip = next(path.split(".")[1] for path in result.inputs if path.endswith(".hbm_capacity"))
        rates[chip] = result.inputs["failures.chip_rate"].value
    return rates


def job_of(result: tco.Result) -> Job:
    """Return the job of a result from its inputs; checkpoints are as far apart as loses least to
    the first order.
    """
    chips = result.inputs["cluster.chips"].value
    failure_values = {
        path.removeprefix("failures."): failure_input.value
        for path, failure_input in result.inputs.items()
        if path.startswith("failures.")
    }
    rates = failure_rates(result)
    in_domain = sum(rates.get(line.part, 0.0) * line.quantity for line in result.bill.lines)
    failures = (in_domain / result.metrics["chips"] + failure_values["job_rate"]) * chips / YEAR
    left = failures * (1 - failure_values["elastic_share"])
    restores = (left * failure_values["local_share"], left * (1 - failure_values["local_share"]))
    stalls = (failure_values["local_stall"], failure_values["checkpoint_stall"])
    intervals = tuple(
        math.sqrt(2 * stall / rate) if rate else 1e12
        for stall, rate in zip(stalls, restores, strict=True)
    )
    return Job(
        failures,
        failure_values["elastic_share"],
        failure_values["local_share"],
        stalls,
        intervals,
        (failure_values["local_restart"], failure_values["restart_time"]),
        failure_values["elastic_stall"],
        failure_values["flap_rate"] * chips / YEAR,
        failure_values["flap_time"],
        failure_values["silent_rate"] * (1 - failure_values["silent_detected"]) * chips / YEAR,
        failure_values["silent_time"],
    )


if __name__ == "__main__":
    with ANSWERS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("chips", "elastic_share", "local_share", "goodput", "spread"))
        for number in CHIPS:
            for shares in SHARES:
                job = job_of(tco.evaluate(SYSTEM, settings(number, *shares)))
                found = [simulated(job, seed) for seed in range(4)]
                rows.writerow(
                    (
                        number,
                        *shares,
                        f"{sum(found) / len(found):.5f}",
                        f"{max(found) - min(found):.5f}",
                    )
                )
