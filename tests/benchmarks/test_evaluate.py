"""How long the answers take once the catalogue is read. Run with `--benchmark-only`."""

from __future__ import annotations

import pytest

from tco.catalog import load_catalogue
from tco.chain.inputs import load_scenario
from tco.chain.scenario import bill_of_system, evaluate
from tests.chain import HEADLINE


@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_a_fixed_plan(name, benchmark, catalogue):
    """The whole chain on one plan: the unit of every study. 2 ms is the mark."""
    scenario = load_scenario(catalogue, name)
    plan = evaluate(scenario, catalogue=catalogue).plan
    benchmark(evaluate, scenario, plan=plan, catalogue=catalogue)
    assert benchmark.stats.stats.min <= 2e-3


@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_the_search(name, benchmark, catalogue):
    scenario = load_scenario(catalogue, name)
    benchmark(evaluate, scenario, catalogue=catalogue)


@pytest.mark.parametrize("name", HEADLINE)
def test_evaluate_with_a_trace(name, benchmark, catalogue):
    scenario = load_scenario(catalogue, name)
    plan = evaluate(scenario, catalogue=catalogue).plan
    benchmark(evaluate, scenario, plan=plan, catalogue=catalogue, trace=True)


def largest(catalogue):
    """The system whose tree has the most places."""
    return max(catalogue.ids("systems"), key=lambda name: len(bill_of_system(catalogue, name, {}, {}).bill.lines))


def test_bill_of_the_largest_system(benchmark, catalogue):
    benchmark(bill_of_system, catalogue, largest(catalogue), {}, {})


def test_bill_with_a_fresh_catalogue(benchmark, catalogue):
    name = largest(catalogue)
    benchmark(lambda: bill_of_system(load_catalogue(), name, {}, {}))
