"""The price of a large batch in steps and tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tco import evaluate
from tests.catalogue import CATALOGUE
from tests.registry import FORMULA

SCENARIO = "train-gpt3-175b-a100x64"


@given(st.floats(1, 1e8), st.floats(1e3, 1e9))
def test_fewer_steps_cost_more_tokens(batch, critical):
    """(S / S_min - 1) (E / E_min - 1) = 1, and a step takes its batch: S B = E."""
    steps, tokens = (
        FORMULA.steps_over_least(batch, 1, critical),
        FORMULA.tokens_over_least(batch, 1, critical),
    )
    assert np.isclose((steps - 1) * (tokens - 1), 1, rtol=1e-6)
    assert np.isclose(steps * batch, tokens * critical, rtol=1e-12)


def test_a_stated_critical_batch_is_noted():
    batch = 1536 * 2048
    stated = evaluate(SCENARIO, catalogue=CATALOGUE, set={"workload.critical_batch": str(batch)})
    (note,) = (note for note in stated.notes if "fewest" in note)
    assert note.count("2 x the fewest") == 2
    assert not [note for note in evaluate(SCENARIO, catalogue=CATALOGUE).notes if "fewest" in note]
