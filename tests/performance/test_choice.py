"""The choice among plans: the best that fits and is in time, and how far the next one lies behind."""

from __future__ import annotations

import numpy as np
import pytest

from tco.performance.serving.search import choose_best
from tests.performance.servers import DecodePlan


def test_the_runner_up_lies_behind_by_its_own_score():
    """Of 12, 10 and 6 that are feasible the best leads by a fifth, whatever else does not fit or is too slow."""
    score = np.array([[6.0, 50.0], [12.0, 10.0], [40.0, 0.1]])
    fits = np.array([[True, False], [True, True], [True, True]])
    meets = np.array([[True, True], [True, True], [False, True]])
    axes = DecodePlan(*(np.arange(3.0)[:, None] for _ in range(5)), np.array([[7.0, 9.0]]))
    found = choose_best(score, fits, meets, axes)
    assert (found.plan.chips, found.plan.sequences, found.place) == (1.0, 7.0, (1, 0))
    assert (found.plans, found.feasible, found.margin) == (6, 4, pytest.approx(0.2))
    assert found.best.tolist() == [6.0, 12.0, 0.1]
    alone = choose_best(score, fits & (score == 12), meets, axes)
    assert (alone.feasible, alone.margin) == (1, None)
    assert choose_best(score, fits & False, meets, axes).plan is None
