"""CPU time of studies of ranges from cold, each in a new process.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

STUDIES = {
    "two scenarios, 20,000 draws": "uncertainty trn3-nl72x2 --baseline gb200-nvl72 --samples 20000",
    "all inputs alone": "sensitivity trn3-nl72x2 --metric usd_per_million_output_tokens",
}
MOST = 2.0  # seconds


def cpu_seconds(words: list[str]) -> float:
    """The CPU time a command took, with that of what it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tco", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_from_cold(study, benchmark):
    used = []
    benchmark.pedantic(
        lambda words: used.append(cpu_seconds(words)),
        (STUDIES[study].split(),),
        rounds=5,
        warmup_rounds=1,
    )
    benchmark.extra_info["cpu_seconds"] = round(min(used), 2)
    assert min(used) <= MOST
