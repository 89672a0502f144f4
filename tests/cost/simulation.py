"""Simulate a training job event by event, without the formulas of the model.

Failures, checkpoints, flaps and unseen errors take from its time. `python -m tests.cost.simulation`
writes `simulated_goodput.csv` beside it, which the tests compare the model with.
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


class Simulation:
    """A job on its way: the clock, the work done, and the events to come."""

    def __init__(self, job: Job, seed: int) -> None:
        self.job, self.dice = job, random.Random(seed)
        self.clock = self.work = 0.0
        self.saved = [0.0, 0.0]  # work that a near copy and one in storage hold
        self.due = list(job.intervals)  # work at which the next ones are made
        self.busy = 0.0  # until when pauses last
        self.faults = {
            "failure": self.dice.expovariate(job.failures),
            "flap": self.dice.expovariate(job.flaps) if job.flaps else float("inf"),
        }
        # work at which the next unseen error strikes
        self.wrong = self.dice.expovariate(job.errors) if job.errors else float("inf")

    def run_to_next_fault(self) -> str:
        """Work, pause and save until the next fault; return its name."""
        name = min(self.faults, key=self.faults.__getitem__)
        until = self.faults[name]
        while self.clock < until:
            if self.busy > self.clock:
                self.clock = min(self.busy, until)
                continue
            next_save = min(self.due)
            detected_work = self.wrong + self.job.error_time
            step = min(next_save, detected_work) - self.work
            if self.clock + step > until:
                self.work += until - self.clock
                self.clock = until
                break
            self.clock += step
            self.work += step
            if detected_work <= next_save:
                self.undo_error()
            else:
                self.save(next_save, until)
        return name

    def undo_error(self) -> None:
        """Do again what followed an unseen error, from where it struck."""
        self.work = self.wrong
        self.saved = [min(saved_work, self.work) for saved_work in self.saved]
        self.due = [self.work + interval for interval in self.job.intervals]
        self.wrong = self.work + self.dice.expovariate(self.job.errors)

    def save(self, next_save: float, until: float) -> None:
        """Make the checkpoint that is due, unless a fault cuts it short."""
        tier = self.due.index(next_save)
        if self.clock + self.job.stalls[tier] > until:
            self.clock = until
            return
        self.saved[tier] = self.work
        self.due[tier] = self.work + self.job.intervals[tier]
        if tier:
            self.saved[0], self.due[0] = self.work, self.work + self.job.intervals[0]
        self.clock += self.job.stalls[tier]

    def flap(self) -> None:
        """Pause for a flap of a link."""
        self.busy = max(self.busy, self.clock + self.job.flap_time)
        self.faults["flap"] = self.clock + self.dice.expovariate(self.job.flaps)

    def fail(self) -> None:
        """Go on with the other replicas, or restart from the near copy or from storage."""
        job, dice = self.job, self.dice
        self.faults["failure"] = self.clock + dice.expovariate(job.failures)
        if dice.random() < job.elastic:
            self.busy = max(self.busy, self.clock + job.elastic_stall)
            return
        near = dice.random() < job.local
        self.work = self.saved[0] if near else self.saved[1]
        if not near:
            self.saved[0] = self.work
        self.due = [self.work + job.intervals[0], self.saved[1] + job.intervals[1]]
        restart = job.restarts[0 if near else 1]
        while self.faults["failure"] < self.clock + restart:  # it fails while it starts
            self.clock = self.faults["failure"]
            self.faults["failure"] = self.clock + dice.expovariate(job.failures)
        self.clock += restart
        self.faults["flap"] = max(self.faults["flap"], self.clock)
        if self.wrong > self.work and job.errors:  # what was wrong is undone with the work
            self.wrong = self.work + dice.expovariate(job.errors)


def simulated_goodput(job: Job, seed: int, events: int = EVENTS) -> float:
    """Return the share of its time in which a job makes progress."""
    simulation = Simulation(job, seed)
    for _ in range(events):
        if simulation.run_to_next_fault() == "flap":
            simulation.flap()
        else:
            simulation.fail()
    return simulation.work / simulation.clock


def settings(chips: int, elastic: float, local: float) -> dict[str, str]:
    """Return a training job whose chips are always up, so that only the job itself loses time."""
    shares = {"failures.elastic_share": str(elastic), "failures.local_share": str(local)}
    return {
        "workload": "llama-3.1-405b-training",
        "cluster.chips": str(chips),
        "terms.availability": "1",
        **shares,
    }


def failure_rates(result: tco.Result) -> dict[str, float]:
    """Return the yearly failures of each part that fails.

    A chip without a rate takes the shared one.
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
    """Return the job of a result from its inputs.

    Checkpoints are as far apart as loses least to the first order.
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
                goodputs = [simulated_goodput(job, seed) for seed in range(4)]
                rows.writerow(
                    (
                        number,
                        *shares,
                        f"{sum(goodputs) / len(goodputs):.5f}",
                        f"{max(goodputs) - min(goodputs):.5f}",
                    )
                )
