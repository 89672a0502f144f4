"""How long the answers take in a loop, as a user of the library asks for them. Run with
`--benchmark-only`.
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


def another(result, side):
    """A setting that nobody asked for yet, of what the chips cost or of what they do, the next in
    each call.
    """
    if side == "price":
        return {"site.electricity_price": f"{0.05 + 1e-7 * next(SERIES)} USD/kWh"}
    path = next(path for path in result.inputs if path.endswith(".hbm_bandwidth"))
    return {path: f"{result.inputs[path].value * (1 + 1e-7 * next(SERIES))} byte/s"}


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("side", ["price", "performance"])
@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_a_fixed_plan(name, side, benchmark):
    """The whole chain on one plan, with an input that is new each time: the unit of every study. 2
    ms are the mark of a machine at rest.
    """
    result = evaluate(name)

    def anew():
        return (name, another(result, side), result.plan), {}

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
    """Five milliseconds are the mark of a machine at rest; the limit, in loops of the reference,
    holds on any.
    """
    result, loops = evaluate(name), []

    def anew():
        loops.append(reference())
        return (name, another(result, "performance")), {}

    benchmark.pedantic(evaluate, setup=anew, rounds=60, warmup_rounds=1)
    ratio = benchmark.stats.stats.min / min(loops)
    benchmark.extra_info["loops"] = round(ratio, 2)
    assert ratio <= LOOPS


@pytest.mark.parametrize("name", HEADLINE)
def test_passes_of_a_search(name, benchmark, catalogue, monkeypatch):
    """One pass over the grid, one around the target, two more where the best ends at a step, and
    one of it alone.
    """
    passes = []
    step = phases.decode_step
    monkeypatch.setattr(
        phases, "decode_step", lambda *step_arguments: passes.append(1) or step(*step_arguments)
    )
    settings = another(evaluate(name, catalogue=catalogue), "performance")
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
