"""Candidates of a job asked for many values: just those plans that come near the best."""

from __future__ import annotations

import pytest

from tco.performance.training.each import candidates
from tco.performance.training.search import search
from tests.performance.training.jobs import job


@pytest.mark.parametrize("many", [1, 3, 10])
def test_candidates_reach_the_best_but_for_a_share(many):
    """The share lies between two plans of different times, so that it counts the plans before the second."""
    found, machine = job()
    every = search(found, machine, kept=24).top
    seconds = [one.seconds for one in every]
    many = next(place for place in range(many, len(every)) if seconds[place] > seconds[place - 1] * 1.0001)
    share = 1 - seconds[0] / ((seconds[many - 1] + seconds[many]) / 2)
    assert candidates(found, machine, seconds[0], share) == [one.plan for one in every[:many]]
