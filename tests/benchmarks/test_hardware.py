"""Time of bills and fabrics.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tco import load_catalogue
from tests.catalogue import load_system
from tests.scenario_helpers import bill_of_system, fabric_of, system_of

BARE = [sys.executable, "-c", "pass"]
ROUNDS = 12


def variants(catalogue, name):
    """The default of a system, and each variant by itself."""
    branches = catalogue.document("systems", name, "system")[1].get("variants", {})
    return [
        {},
        *(
            {key: option}
            for key, options in branches.items()
            for option in options
            if option != "default"
        ),
    ]


def price_all() -> int:
    """Price every system in every variant and read its fabric, the catalogue read anew."""
    catalogue, priced = load_catalogue(), 0
    for name in catalogue.ids("systems"):
        for variant in variants(catalogue, name):
            priced += bill_of_system(catalogue, name, {}, variant).bill.price > 0
            inputs = system_of(name, variant, catalogue)
            assert fabric_of(inputs)
    return priced


def test_every_system_and_variant_within_a_second(benchmark):
    assert benchmark.pedantic(price_all, rounds=5, warmup_rounds=1) >= 60
    assert benchmark.stats.stats.min <= 1.0


def largest(catalogue) -> dict[str, str]:
    """The systems of most chips and of most places in the tree."""
    systems = [load_system(catalogue, name) for name in catalogue.ids("systems")]
    return {
        "chips": max(systems, key=lambda s: s.chips).id,
        "places": max(systems, key=lambda s: len(s.leaves)).id,
    }


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


@pytest.mark.parametrize("most", ["chips", "places"])
@pytest.mark.parametrize("word", ["bom", "fabric"])
def test_the_largest_system_against_a_bare_start(word, most, benchmark, catalogue):
    """The shortest of interleaved runs counts: other work on a machine only ever adds time."""
    command = [sys.executable, "-m", "tco", word, largest(catalogue)[most]]
    bare = []
    benchmark.pedantic(
        seconds,
        (command,),
        setup=lambda: bare.append(seconds(BARE)),
        rounds=ROUNDS,
        warmup_rounds=1,
    )
    ratio = benchmark.stats.stats.min / min(bare)
    benchmark.extra_info["bare_starts"] = round(ratio, 1)
    assert ratio <= 40
