"""How long commands take to start, against a bare start of the same interpreter.

The shortest of interleaved runs counts: other work on a machine only ever adds time. Modules are
compiled before, as an installation leaves them. Run with `--benchmark-only`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

BARE = [sys.executable, "-c", "pass"]
# Bare starts; answers of what is shipped are kept.
LIMITS = {
    "--help": 20,
    "parts list": 30,
    "compare": 15,
    "price gb200-nvl72": 15,
    "perf gb200-nvl72": 15,
    "explain trn3-nl72x2 tco_usd_per_chip_hour": 15,
    "frontier gb200-nvl72": 15,
    "uncertainty gb200-nvl72": 15,
}
ROUNDS = 12


def seconds(command, compiled):
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    return time.perf_counter() - begin


@pytest.mark.parametrize("words", LIMITS)
def test_start_against_a_bare_interpreter(words, benchmark, tmp_path_factory):
    command = [sys.executable, "-m", "tco", *words.split()]
    bare, compiled = [], tmp_path_factory.getbasetemp() / "compiled"
    benchmark.pedantic(
        seconds,
        (command, compiled),
        setup=lambda: bare.append(seconds(BARE, compiled)),
        rounds=ROUNDS,
        warmup_rounds=1,
    )
    ratio = benchmark.stats.stats.min / min(bare)
    benchmark.extra_info["bare_starts"] = round(ratio, 1)
    assert ratio <= LIMITS[words]
