"""Draws per second of all inputs with a range; the batch is solved for the target in each.

Run with `--benchmark-only`.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import tco
from tests.scenario_helpers import DRAWS_PER_CALL, HEADLINE
from tests.study_helpers import Dice, beliefs_of, settings_of

DRAWS = DRAWS_PER_CALL
FEW = 512


def draw_inputs(result):
    """Return draws of every input that has a range, except whole numbers.

    They are log-normal through low and high where the range lies above zero.
    """
    generator = np.random.default_rng(0)
    integer_paths = {
        path for path, reading in result.structure.readings.items() if not isinstance(reading, bool)
    }
    input_draws = {}
    for path, scenario_input in result.inputs.items():
        if (
            scenario_input.low is not None
            and scenario_input.low < scenario_input.high
            and path not in integer_paths
        ):
            standard_deviates = generator.standard_normal(DRAWS) / 1.645
            if scenario_input.low > 0:
                draw_values = (
                    scenario_input.value
                    * np.where(
                        standard_deviates < 0,
                        scenario_input.value / scenario_input.low,
                        scenario_input.high / scenario_input.value,
                    )
                    ** standard_deviates
                )
            else:
                draw_values = (
                    scenario_input.value
                    + np.where(
                        standard_deviates < 0,
                        scenario_input.value - scenario_input.low,
                        scenario_input.high - scenario_input.value,
                    )
                    * standard_deviates
                )
            input_draws[path] = (
                np.clip(draw_values, scenario_input.low, scenario_input.high),
                scenario_input.unit,
            )
    return input_draws


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("hold", "least"), [(True, 80e3), (False, 12e3)], ids=["held", "chosen"])
@pytest.mark.parametrize("name", HEADLINE)
def test_draws_of_the_whole_chain(name, hold, least, benchmark, catalogue):
    """A second takes 80,000 draws on a fixed plan, and 12,000 on plans chosen in each draw.

    On a machine at rest it takes 200,000 and 40,000.
    """
    result = tco.evaluate(name, catalogue=catalogue)
    benchmark.pedantic(
        tco.evaluate_draws,
        (name, draw_inputs(result)),
        {"hold": hold, "catalogue": catalogue},
        rounds=3,
    )
    rate = DRAWS / benchmark.stats.stats.min
    benchmark.extra_info["draws_per_second"] = round(rate)
    assert rate >= least


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", HEADLINE)
def test_few_draws_as_a_comparison_asks_for_them(name, benchmark, catalogue):
    """A second takes 5,000 draws of one table, with sizes of clusters and choices of parts drawn.

    On a machine at rest it takes 20,000.
    """
    ranges = beliefs_of(tco.evaluate(name, catalogue=catalogue))
    dice = Dice(catalogue, 0, 0, FEW)
    drawn_settings = settings_of(
        ranges, {path: dice.correlated_deviates(belief) for path, belief in ranges.items()}
    )
    benchmark.pedantic(
        tco.evaluate_draws,
        (name, drawn_settings),
        {"catalogue": catalogue},
        rounds=10,
        warmup_rounds=1,
    )
    rate = FEW / benchmark.stats.stats.min
    benchmark.extra_info["draws_per_second"] = round(rate)
    assert rate >= 5e3


@pytest.mark.benchmark(timer=time.process_time)
def test_values_of_all_inputs(benchmark, catalogue):
    """A second takes eight million values of all distributions and causes of a rack's inputs.

    On a machine at rest it takes twenty million.
    """
    ranges = beliefs_of(tco.evaluate(HEADLINE[0], catalogue=catalogue))

    def throw():
        dice = Dice(catalogue, 0, 0, DRAWS)
        for belief in ranges.values():
            belief.quantile(dice.correlated_deviates(belief))

    benchmark.pedantic(throw, rounds=3, warmup_rounds=1)
    rate = DRAWS * len(ranges) / benchmark.stats.stats.min
    benchmark.extra_info["values_per_second"] = round(rate)
    assert rate >= 8e6
