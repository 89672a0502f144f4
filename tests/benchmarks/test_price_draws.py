"""Draws per second of all prices at once, on the compiled program of a scenario.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import time

import pytest

import tco
from tco.compile.execute import ScheduleRunner
from tco.scenario.draw_case import programs_of
from tests.scenario_helpers import DRAWS_PER_CALL, load_scenario
from tests.study_helpers import Dice, beliefs_of, settings_of

PRICED = ("tco_usd_per_chip_hour", "capex_usd_per_chip")
OF_THE_WORK = ("performance.", "workload.")


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72"])
def test_draws_of_all_prices(name, benchmark, catalogue):
    """Cost and price of a chip, from the rows up, take 2 M draws per second of CPU time.

    Every price is drawn. On a machine at rest it is 4 M draws.
    """
    result = tco.evaluate(name, catalogue=catalogue)
    ranges, dice = beliefs_of(result), Dice(catalogue, 0, 0, DRAWS_PER_CALL)
    drawn = settings_of(
        ranges,
        {
            path: dice.correlated_deviates(belief)
            for path, belief in ranges.items()
            if not path.startswith(OF_THE_WORK) and not belief.steps
        },
    )
    drawn_result = tco.evaluate_draws(name, drawn, structure=result.structure, catalogue=catalogue)
    programs = programs_of(
        catalogue, load_scenario(catalogue, name), {}, dict(result.structure.variant)
    )
    ((lot, (names,), _),) = list(programs.known.values())
    kernel = lot.kernel(frozenset(drawn), {})
    values = kernel.values({path: drawn_values for path, (drawn_values, _) in drawn.items()})
    price = ScheduleRunner(
        kernel.schedule([kernel.made[names[f"metric {metric}"]] for metric in PRICED], values),
        values,
        DRAWS_PER_CALL,
    )
    for metric_values, metric in zip(price(), PRICED, strict=True):
        assert (metric_values == drawn_result.metrics[metric]).all()
    benchmark(price)
    rate = DRAWS_PER_CALL / benchmark.stats.stats.min
    benchmark.extra_info["draws_per_second"] = round(rate)
    assert rate >= 2e6
