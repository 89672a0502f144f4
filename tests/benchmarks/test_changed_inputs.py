"""CPU time of commands with a setting that is new in each round, over a bare start of Python.

The least of interleaved rounds counts: other work on a machine only ever adds time. Modules are
compiled before, as an installation leaves them. A question without a setting is asked again, word
for word. Run with `--benchmark-only`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

PYTHON = sys.executable
ROUNDS = 4  # after one that fills the cache
NOISE = 1.3  # of a machine that others use too
PRICE = "site.electricity_price={:.5f} USD/kWh", 0.05, 0.12
BANDWIDTH = "parts.gb200-gpu.hbm_bandwidth={:.4f} TB/s", 7.5, 8.5
# Bare starts that a command may take, and the setting that changes.
LIMITS = {
    "--help": (20, None),
    "parts list": (30, None),
    "compare": (60, PRICE),
    "compare --format table": (150, BANDWIDTH),
    "compare --full": (80, None),
    "compare --all": (250, PRICE),
    "claims": (60, None),
    "uncertainty trn3-nl72x2": (60, PRICE),
    "uncertainty trn3-nl72x2 --baseline gb200-nvl72 --samples 20000": (200, PRICE),
    "price gb200-nvl72": (25, PRICE),
    "perf gb200-nvl72": (25, PRICE),
    "frontier gb200-nvl72": (60, PRICE),
    "explain trn3-nl72x2 tco_usd_per_chip_hour": (60, PRICE),
    "sensitivity trn3-nl72x2 --metric perf_per_tco_vs_baseline": (60, PRICE),
    "solve trn3-nl72x2 --vary parts.trn3.price --until perf_per_tco_vs_baseline=1": (40, PRICE),
    "service gb200-nvl72 --traffic chat": (60, PRICE),
    "gigawatt gb200-nvl72": (45, PRICE),
    "fleet gb200-nvl72:40MW trn3-nl72x2:60MW": (30, PRICE),
    "export trn3-nl72x2 gb200-nvl72 -o FOLDER/two.xlsx": (60, PRICE),
    "report trn3-nl72x2 gb200-nvl72 -o FOLDER/two.html": (200, PRICE),
}
# A question that the library answers in a loop, with a new price each time, beside a loop of plain
# Python; and how many of these loops an answer may take.
ANSWER_LOOPS = 2.4
LOOP = """
import time, tco
def median_time(ask):
    ask(0)
    times = []
    for number in range(1, 16):
        begin = time.process_time()
        ask(number)
        times.append(time.process_time() - begin)
    return sorted(times)[7]
def answer(number):
    price = f"{0.08 + number * 1e-5} USD/kWh"
    tco.evaluate("gb200-nvl72", {"site.electricity_price": price})
print(median_time(answer) / median_time(lambda _: [number * number for number in range(20000)]))
"""


def cpu_time(command, environment):
    """Return the CPU time of a command and of what it starts, s."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), command
    return usage.ru_utime + usage.ru_stime


def changed(setting):
    """Return the option of a setting at a value that nobody asked for yet."""
    if setting is None:
        return []
    template, low, high = setting
    return ["--set", template.format(random.uniform(low, high))]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return an environment with a cache and compiled modules of its own."""
    folder = tmp_path_factory.mktemp("start")
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment | {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }


@pytest.mark.parametrize("words", LIMITS)
def test_a_changed_input_against_a_bare_start(words, benchmark, environment, tmp_path):
    limit, setting = LIMITS[words]
    command = [PYTHON, "-m", "tco", *words.replace("FOLDER", str(tmp_path)).split()]
    ratios = []

    def ask():
        bare = min(cpu_time([PYTHON, "-c", "pass"], environment) for _ in range(3))
        ratios.append(cpu_time([*command, *changed(setting)], environment) / bare)

    benchmark.pedantic(ask, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["bare_starts"] = round(min(ratios), 1)
    assert min(ratios) <= NOISE * limit


def test_an_answer_in_a_loop_against_plain_python(benchmark, environment):
    ratios = []

    def ask():
        process = subprocess.run(
            [PYTHON, "-c", LOOP], env=environment, capture_output=True, text=True, check=True
        )
        ratios.append(float(process.stdout))

    benchmark.pedantic(ask, rounds=ROUNDS)
    benchmark.extra_info["loops"] = round(min(ratios), 2)
    assert min(ratios) <= NOISE * ANSWER_LOOPS
