"""The best plan against published runs: which runs count, and that GB200's best plans reach those of the headline's workload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tco.catalog import load_catalogue
from tco.chain.inputs import plain_inputs
from tco.foundation.values import as_number
from tco.studies.validation.envelopes import Run, configurations, envelopes_of, summary, unbeaten
from tco.studies.validation.measured import read_measured

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
    found, table = configurations(*gb200), gb200[0]
    assert 30 <= len(found) <= 0.5 * (table["spec_decoding"] != "mtp").sum()  # sweeps were run again day by day
    assert not found.drop(columns=["speed", "rate"]).duplicated().any()


def test_a_summary_counts_what_no_plan_reaches_as_nothing():
    runs = [Run(10, 100, 110), Run(20, 100, 85), Run(30, 100, None)]
    assert summary(runs) == {"n": 3, "median": 0.85, "below_0.9": pytest.approx(2 / 3), "below_0.75": pytest.approx(1 / 3), "least": 0.0}


def test_gb200s_best_plans_reach_the_published_runs_of_the_headlines_workload(gb200):
    table, catalogue, values = gb200
    eight = table[(table["precision"] == "fp8") & (table["isl_tokens"] == 8192)].reset_index(drop=True)
    (found,) = envelopes_of(eight, catalogue, values)
    assert found.configurations >= 5
    assert summary(found.runs)["least"] >= 0.95
