"""Time of answers in a loop, as a user of the library computes them.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from tco import Catalogue, evaluate
from tests.performance.servers import serving as phases
from tests.scenario_helpers import HEADLINE, bill_of_system, load_scenario

SERIES = itertools.count(1)
COLUMN, ROW = np.ones((8, 1)), np.ones((1, 5))
LOOPS = 6


def next_setting(result, side):
    """Return a new setting in each call, of what the chips cost or of what they do."""
    if side == "price":
        return {"site.electricity_price": f"{0.05 + 1e-7 * next(SERIES)} USD/kWh"}
    path = next(path for path in result.inputs if path.endswith(".hbm_bandwidth"))
    return {path: f"{result.inputs[path].value * (1 + 1e-7 * next(SERIES))} byte/s"}


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("side", ["price", "performance"])
@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_a_fixed_plan(name, side, benchmark):
    """The chain on a fixed plan takes 2 ms on a machine at rest, with a new input each time.

    It is the unit of every study.
    """
    result = evaluate(name)

    def anew():
        return (name, next_setting(result, side), result.plan), {}

    benchmark.pedantic(evaluate, setup=anew, rounds=300, warmup_rounds=2)
    assert benchmark.stats.stats.min <= 2e-3


def reference() -> float:
    """CPU time of three thousand calls of numpy on small arrays: what an evaluation consists of."""
    begin = time.process_time()
    for _ in range(1000):
        np.maximum(COLUMN * 2.0 + ROW, ROW)
    return time.process_time() - begin


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_the_search(name, benchmark):
    """A search takes at most `LOOPS` times the reference loop, on any machine.

    On a machine at rest it takes 5 ms.
    """
    result, loops = evaluate(name), []

    def anew():
        loops.append(reference())
        return (name, next_setting(result, "performance")), {}

    benchmark.pedantic(evaluate, setup=anew, rounds=60, warmup_rounds=1)
    ratio = benchmark.stats.stats.min / min(loops)
    benchmark.extra_info["loops"] = round(ratio, 2)
    assert ratio <= LOOPS


@pytest.mark.parametrize("name", HEADLINE)
def test_passes_of_a_search(name, benchmark, catalogue, monkeypatch):
    """A search takes at most five passes: grid, target, two at a step, and the best one again."""
    passes = []
    step = phases.decode_step
    monkeypatch.setattr(
        phases, "decode_step", lambda *step_arguments: passes.append(1) or step(*step_arguments)
    )
    settings = next_setting(evaluate(name, catalogue=catalogue), "performance")
    passes.clear()
    benchmark.pedantic(evaluate, (name, settings), {"catalogue": catalogue}, rounds=1)
    assert 1 <= len(passes) <= 5


@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_a_trace(name, benchmark, catalogue):
    scenario = load_scenario(catalogue, name)
    plan = evaluate(scenario, catalogue=catalogue).plan
    benchmark(evaluate, scenario, plan=plan, catalogue=catalogue, trace=True)


def largest(catalogue):
    """The system whose tree has the most places."""
    return max(
        catalogue.ids("systems"),
        key=lambda name: len(bill_of_system(catalogue, name, {}, {}).bill.lines),
    )


def test_bill_of_the_largest_system(benchmark, catalogue):
    benchmark(bill_of_system, catalogue, largest(catalogue), {}, {})


def test_bill_with_a_fresh_catalogue(benchmark, catalogue):
    name = largest(catalogue)
    benchmark(lambda: bill_of_system(Catalogue(), name, {}, {}))
