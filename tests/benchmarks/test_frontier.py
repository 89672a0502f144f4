"""The frontier over every plan and batch, against a fixed calculation in the same run.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import time

import numpy as np

from tests.study_helpers import frontier_of, pool_of

NUMBERS = np.random.default_rng(1).random(500_000)


def reference():
    """Sort half a million numbers."""
    begin = time.perf_counter()
    np.sort(NUMBERS)
    return time.perf_counter() - begin


def test_every_plan_and_batch_of_the_largest_switched_world(benchmark, catalogue):
    """Every plan and batch takes at most half a second, and ten sorts on a machine of any speed.

    A sort takes about 30 ms.
    """
    pool = pool_of(catalogue, "trn3-nl72x2", {})
    sorts = []
    benchmark.pedantic(
        frontier_of,
        (pool, pool, False),
        setup=lambda: sorts.append(reference()),
        rounds=10,
        warmup_rounds=1,
    )
    ratio = benchmark.stats.stats.min / min(sorts)
    benchmark.extra_info["sorts"] = round(ratio, 2)
    assert benchmark.stats.stats.min <= 0.5
    assert ratio <= 10


def test_every_pair_of_plans_of_two_systems(benchmark, catalogue):
    pool = pool_of(catalogue, "trn3-nl72x2", {})
    gb200_pool = pool_of(catalogue, "gb200-nvl72", {}, pool.scenario)
    benchmark.pedantic(frontier_of, (pool, gb200_pool, True), rounds=10, warmup_rounds=1)
    assert benchmark.stats.stats.min <= 0.5
