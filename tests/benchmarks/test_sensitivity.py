"""Time to move every input with a range to both its ends.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import time

import pytest

from tco import sensitivity
from tests.scenario_helpers import HEADLINE


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("hold", "most"), [(True, 0.5), (False, 2.0)], ids=["held", "chosen"])
@pytest.mark.parametrize("name", HEADLINE)
def test_sensitivity_of_all_inputs(name, hold, most, benchmark):
    """The catalogue is read anew in each round, as a command does."""
    benchmark.pedantic(
        sensitivity,
        (name, "usd_per_million_output_tokens"),
        {"hold": hold},
        rounds=2,
        warmup_rounds=1,
    )
    assert benchmark.stats.stats.min <= most
