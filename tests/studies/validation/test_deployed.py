"""How much longer deployments take than best plans: a fit that finds what was put in, and plans that take as much longer."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

from tco import evaluate
from tco.foundation.provenance import P95
from tco.studies.validation.deployed import deployed_rows, fitted, gaps
from tests.chain import plain_values
from tests.shipped import CATALOGUE, DATA
from tests.studies.validation.today import table_of

RATE = "output_tokens_per_s_per_chip"
CHIPS = {"one": (1.1, 0.1), "other": (1.6, -0.2), "third": (1.3, 0.0)}  # time at 50 tokens/s a user and its power of the speed


def runs(noise=0.05, weak=0.0, bounds=0):
    """Runs of three chips in four envelopes each, some of which are weak, and some of a young model."""
    random = np.random.default_rng(1)
    rows = []
    for chip, (level, slope) in CHIPS.items():
        for envelope in range(4):
            for speed in np.geomspace(15, 150, 15):
                times = level * (speed / 50) ** slope * np.exp(noise * random.normal() + (1.5 if random.random() < weak else 0.0))
                rows.append((chip, f"{chip} {envelope}", speed, times, False))
        rows += [(chip, f"{chip} young", speed, 4.0, True) for speed in np.geomspace(15, 150, bounds)]
    return pd.DataFrame(rows, columns=["chip", "envelope", "speed", "times", "bound"])


@pytest.mark.parametrize(("weak", "bounds"), [(0.0, 0), (0.1, 0), (0.0, 10), (0.1, 10)])
def test_a_fit_finds_what_was_put_in_whatever_weak_and_young_runs_say(weak, bounds):
    found = {(row["family"], row["attribute"]): row for row in deployed_rows(runs(weak=weak, bounds=bounds), "2026-11")}
    for chip, (level, slope) in CHIPS.items():
        assert found[chip, "deployed_time"]["value"] == pytest.approx(level, rel=0.04)
        assert found[chip, "deployed_slope"]["value"] == pytest.approx(slope, abs=0.04)


def test_a_chip_without_runs_lies_anywhere_among_chips():
    """Its logarithm is as wide as those of the three chips, with what is not known of their middle."""
    (row,) = (row for row in deployed_rows(runs(), "2026-11") if (row["family"], row["attribute"]) == ("chip", "deployed_time"))
    spread = np.std([np.log(level) for level, _ in CHIPS.values()])
    assert np.log(row["high"] / row["value"]) / P95 > spread
    assert 1.1 < row["value"] < 1.6


def test_single_runs_lie_off_by_the_noise_put_in():
    assert np.sqrt(fitted(runs(noise=0.05)).scatter) == pytest.approx(0.04, abs=0.01)  # the core of Student's t is narrower than a bell curve


@pytest.mark.parametrize("speed", [20, 50, 90])
@pytest.mark.parametrize("slope", [0.0, 0.3, -0.2])
def test_a_plan_as_deployed_is_a_best_plan_of_a_higher_speed(speed, slope):
    """R(v) = R*(t v) / t with t = t_50 (v / 50)^b; or more, where time falls with speed and a quicker plan than was promised makes more."""
    plain = {"workload.ttft": "0 s", "workload.draft_tokens": "0"}
    deployed = {"workload.as_deployed": "1", "performance.gb200-gpu.deployed_time": "1.25", "performance.gb200-gpu.deployed_slope": repr(slope)}
    times = 1.25 * (speed / 50) ** slope
    found = evaluate("gb200-nvl72", plain | deployed | {"workload.interactivity": f"{speed} token/s"}, catalogue=CATALOGUE).metrics[RATE]
    best = evaluate("gb200-nvl72", plain | {"workload.interactivity": f"{speed * times!r} token/s"}, catalogue=CATALOGUE).metrics[RATE]
    assert found >= best / times * (1 - 1e-6)
    assert slope < 0 or found == pytest.approx(best / times, rel=1e-6)


@pytest.mark.thorough
def test_what_is_shipped_is_the_fit_of_the_rows_that_are():
    found = {(row["family"], row["attribute"]): row for row in deployed_rows(gaps(table_of("inference"), CATALOGUE, plain_values()), "2026-11")}
    with (DATA / "calibration" / "deployed.csv").open(encoding="utf-8") as file:
        shipped = {(row["family"], row["attribute"]): row for row in csv.DictReader(file)}
    assert found.keys() == shipped.keys()
    for key, row in found.items():
        for name in ("value", "low", "high"):
            assert float(shipped[key][name]) == pytest.approx(row[name], rel=0.01, abs=0.005), (key, name)
