"""How many draws of all inputs with a range a second takes, the batch solved for the target in each. Run with `--benchmark-only`."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tco.chain.draws import CELLS, evaluate_draws
from tco.chain.scenario import evaluate
from tests.chain import HEADLINE

DRAWS = CELLS


def drawn(result):
    """Draws of every input that has a range, log-normal through its low and high where it is above zero, but for those that are whole."""
    generator = np.random.default_rng(0)
    whole = {path for path, reading in result.structure.readings.items() if not isinstance(reading, bool)}
    found = {}
    for path, given in result.inputs.items():
        if given.low is not None and given.low < given.high and path not in whole:
            place = generator.standard_normal(DRAWS) / 1.645
            if given.low > 0:
                many = given.value * np.where(place < 0, given.value / given.low, given.high / given.value) ** place
            else:
                many = given.value + np.where(place < 0, given.value - given.low, given.high - given.value) * place
            found[path] = (np.clip(many, given.low, given.high), given.unit)
    return found


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("replan", "least"), [(False, 40e3), (True, 5e3)], ids=["held", "chosen"])
@pytest.mark.parametrize("name", HEADLINE)
def test_draws_of_the_whole_chain(name, replan, least, benchmark, catalogue):
    """125,000 draws a second on a plan that is held, and 5,000 on one that is chosen in each, are the marks of a machine at rest."""
    draws = drawn(evaluate(name, catalogue=catalogue))
    benchmark.pedantic(evaluate_draws, (name, draws), {"replan": replan, "catalogue": catalogue}, rounds=2)
    rate = DRAWS / benchmark.stats.stats.min
    benchmark.extra_info["draws_per_second"] = round(rate)
    assert rate >= least
