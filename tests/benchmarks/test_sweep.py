"""Cases of a sweep per second, to Parquet; time and memory of a case stay the same at any number.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import resource
import time

import pytest

import tco

RATE, MEMORY = 170e3, 2e9  # 10 million cases within a minute and 2 GB


def study(steps):
    return {
        "scenarios": ["gb200-nvl72"],
        "report": ["tco_usd_per_chip_hour"],
        "grid": {
            "site.electricity_price": {"from": "0.03 USD/kWh", "to": "0.2 USD/kWh", "steps": steps},
            "terms.rate": {"from": 0.02, "to": 0.2, "steps": 1024},
        },
    }


@pytest.mark.benchmark(timer=time.process_time)
def test_cases_of_a_sweep(benchmark, tmp_path):
    """2 M cases a second of CPU time is the mark of a machine at rest."""
    tco.sweep(study(16), tmp_path / "warm")
    began = time.process_time()
    tco.sweep(study(512), tmp_path / "few")
    small_sweep_time = time.process_time() - began
    benchmark.pedantic(tco.sweep, (study(2048), tmp_path / "many"), rounds=1)
    rate = 2048 * 1024 / benchmark.stats.stats.min
    benchmark.extra_info["cases_per_second"] = round(rate)
    assert rate >= RATE
    assert rate >= 0.5 * 512 * 1024 / small_sweep_time
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 <= MEMORY


def rate_of(workers, folder):
    """Return cases per second, without the time that workers take to start."""
    progress_times = []
    tco.sweep(
        study(8192),
        folder,
        workers=workers,
        tell=lambda progress: progress_times.append((time.perf_counter(), progress.cases_made)),
    )
    began, last = progress_times[1], progress_times[-1]
    return (last[1] - began[1]) / (last[0] - began[0])


@pytest.mark.benchmark(timer=time.perf_counter)
def test_two_workers_beside_one(benchmark, tmp_path):
    """1.6 times as quick, in the median of five, is the mark of a machine at rest."""
    pytest.importorskip("distributed")
    ratios = sorted(
        rate_of(2, tmp_path / f"two-{turn}") / rate_of(1, tmp_path / f"one-{turn}")
        for turn in range(5)
    )
    benchmark.extra_info["ratios"] = ratios
    benchmark(lambda: ratios)
    assert ratios[2] >= 1.6
