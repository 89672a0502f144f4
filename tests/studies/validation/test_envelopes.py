"""The best plan against published runs: which runs count, and that GB200's best plans reach those of the headline's workload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tco.catalog import load_catalogue
from tco.chain.inputs import plain_inputs
from tco.foundation.values import as_number
from tco.studies.validation.envelopes import Envelope, Run, Sweep, envelopes_of, measured_at, pairs, summary, unbeaten
from tco.studies.validation.measured import read_measured
from tco.studies.validation.sweeps import Curve, left_out, loads_between, made_at, never_seen, speed_at

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def gb200():
    """The runs of GB200, the catalogue and its values."""
    catalogue = load_catalogue()
    _, table = read_measured(ROOT / "data/measured/inference.csv.gz")
    return table[table["accelerator"].str.startswith("GB200")].reset_index(drop=True), catalogue, plain_inputs(catalogue, {}).values(as_number)


def test_a_run_that_another_beats_in_both_is_not_on_the_envelope():
    speed, rate = np.array([10.0, 20, 30, 20, 5]), np.array([100.0, 80, 20, 79, 100])
    assert unbeaten(speed, rate).tolist() == [True, True, True, False, False]


def test_a_configuration_run_many_times_counts_once(gb200):
    found, table = Sweep(*gb200).configurations(), gb200[0]
    assert 30 <= len(found) <= 0.5 * (table["spec_decoding"] != "mtp").sum()  # sweeps were run again day by day
    assert not found.drop(columns=["speed", "rate"]).duplicated().any()


def test_a_summary_counts_what_no_plan_reaches_as_nothing():
    found = summary([Run(10, 100, 100, 10, 110), Run(20, 100, 80, 19, 85), Run(30, 100, 0, 0, None)])
    assert (found["n"], found["median"], found["below_0.9"], found["least"]) == (3, 0.85, pytest.approx(2 / 3), 0.0)
    assert (found["alike"]["median"], found["alike"]["close"], found["alike_speed"]["median"]) == (0.8, pytest.approx(1 / 3), 0.95)


def test_a_curve_is_read_between_its_loads_and_not_beyond_its_speeds():
    curves = [Curve(np.array([100.0, 50, 10]), np.array([1.0, 2, 4])), Curve(np.array([60.0]), np.array([1.9]))]
    assert made_at(curves, 50) == pytest.approx(2)
    assert made_at(curves, 5) == 4  # a higher speed is one that is quick enough
    assert made_at(curves, 55) == pytest.approx(1.9)
    assert made_at(curves, 101) == 0
    assert speed_at(curves, 2) == pytest.approx(50)
    assert speed_at(curves, 1.9) == pytest.approx(60)
    assert speed_at(curves, 4.1) == 0
    loads = loads_between(4, 64)
    assert (loads[0], loads[-1]) == (pytest.approx(4), pytest.approx(64))
    assert loads_between(8, 8).tolist() == [8]


def test_a_chip_is_predicted_by_the_refit_that_never_saw_it(gb200):
    table, catalogue, values = gb200
    sweep = Sweep(table, catalogue, values)
    found, own = left_out(catalogue, "gb200-gpu"), values["performance.nvidia.exchange_wait"]
    with never_seen(sweep.chips, "gb200-gpu"):
        assert values["performance.nvidia.exchange_wait"] == found["performance.nvidia.exchange_wait"] != own
    assert values["performance.nvidia.exchange_wait"] == own
    given = plain_inputs(catalogue, {"performance.nvidia.exchange_wait": "3 us"}).values(as_number)
    with never_seen(Sweep(table, catalogue, given).chips, "gb200-gpu"):
        assert given["performance.nvidia.exchange_wait"] == pytest.approx(3e-6)  # what the user sets stays


def test_two_chips_are_compared_at_the_speeds_both_span():
    def envelope(chip, measured, predicted):
        runs = [Run(speed, made, 0, 0, None) for speed, made in measured]
        return Envelope(chip, "m", "fp8", 1, 1, 5, runs, [Curve(*map(np.array, zip(*predicted, strict=True)))])

    one = envelope("one", [(10, 400), (40, 100)], [(40, 90), (10, 400)])
    other = envelope("other", [(20, 100), (80, 50)], [(80, 60), (20, 100)])
    assert measured_at(one, 20) == pytest.approx(200)  # a straight line in logarithms
    found = pairs([one, other])  # at 20 and 40
    assert found["pairs"] == 2
    assert found["right"] == 1
    assert found["ratio_error"] == pytest.approx(np.mean([abs(predicted_ratio(one, other, s) - 1) for s in (20, 40)]))
    assert pairs([one])["right"] is None


def predicted_ratio(one, other, speed):
    guess = made_at(one.curves, speed) / made_at(other.curves, speed)
    return guess / (measured_at(one, speed) / measured_at(other, speed))


def test_gb200s_best_plans_reach_the_published_runs_of_the_headlines_workload(gb200):
    table, catalogue, values = gb200
    eight = table[(table["precision"] == "fp8") & (table["isl_tokens"] == 8192)].reset_index(drop=True)
    (found,) = envelopes_of(eight, catalogue, values)
    assert found.configurations >= 5
    assert summary(found.runs)["least"] >= 0.95
