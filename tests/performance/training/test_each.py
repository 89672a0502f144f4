"""Candidates of a job asked for many values: the quickest plans that fit."""

from __future__ import annotations

from tco.performance.training.each import MOST, candidates

from tco.performance.training.search import search
from tests.performance.training.jobs import job


def test_candidates_are_the_quickest_plans():
    found, machine = job()
    every = search(found, machine, kept=2 * MOST).top
    assert candidates(found, machine) == [one.plan for one in every[:MOST]]
