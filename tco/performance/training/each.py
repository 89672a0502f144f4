"""A training job asked for many values together: the plans that each of them chooses among."""

from __future__ import annotations

from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.plans import Plan
from tco.performance.training.search import search

MOST = 12  # candidates


def candidates(job: Job, practice: Practice) -> list[Plan]:
    """Return the quickest plans that fit."""
    return [one.plan for one in search(job, practice, kept=MOST).top]
