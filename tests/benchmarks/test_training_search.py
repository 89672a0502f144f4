"""The training search: plans a second on one core, and memory."""

from __future__ import annotations

import tracemalloc

from tests.performance.training.jobs import job, search_training_plans


def test_a_million_plans_a_second(benchmark):
    training_job, machine = job()
    result = benchmark.pedantic(
        search_training_plans, (training_job, machine), rounds=5, warmup_rounds=1
    )
    assert result.plans / benchmark.stats.stats.min >= 1e6


def test_the_search_stays_in_half_a_gigabyte(benchmark):
    training_job, machine = job()

    def peak():
        tracemalloc.start()
        search_training_plans(training_job, machine)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert benchmark.pedantic(peak, rounds=1) <= 500e6
