"""A training job asked for many values together: the plan each of them gets among some candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.performance.training.job import Job
from tco.performance.training.machine import Passes, Practice
from tco.performance.training.plans import Plan
from tco.performance.training.result import TrainingResult, train
from tco.performance.training.search import search

MOST = 12  # candidates


def candidates(job: Job, practice: Practice) -> list[Plan]:
    """Return the quickest plans that fit."""
    return [one.plan for one in search(job, practice, kept=MOST).top]


def train_each(job: Job, practice: Practice, formats: Passes, plans: list[Plan]) -> tuple[TrainingResult, Any]:
    """Return what each value reaches on its quickest plan that fits, and whether one fits; where none does, on the leanest."""
    made = [train(job, practice, formats, plan) for plan in plans]
    held = np.stack(np.broadcast_arrays(*(one.held for one in made), practice.memory)[:-1])
    times = np.stack(np.broadcast_arrays(*(one.rates["step_s"] for one in made), held[0])[:-1])
    fits = held <= practice.memory
    chosen = np.where(fits.any(axis=0), np.where(fits, times, np.inf).argmin(axis=0), held.argmin(axis=0))
    rates = {name: np.choose(chosen, np.broadcast_arrays(*(one.rates[name] for one in made), held[0])[:-1]) for name in made[0].rates}
    return TrainingResult(plans[0], rates, job.chips), fits.any(axis=0)
