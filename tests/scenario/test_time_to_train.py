"""A training job that is to end in some days takes the fewest whole domains that keep them."""

import re

import pytest

import tco
from tco.core.errors import DataError
from tco.scenario.workload_sizing import chips_in
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.cli import tco as run_tco

DAYS, CHIPS, RATE = "workload.days", "cluster.chips", "train_tokens_per_s"
JOB = "llama-3.1-405b-training-gb200-nvl72"


def saturating_rate(chips):
    """Return the rate of a job on whole hundreds of chips.

    It doubles with twice the chips up to a million tokens per second.
    """
    return min(chips * 100.0, 1e6)


def test_the_fewest_domains_that_keep_the_days_are_taken():
    """86.4 T tokens in 1,000 days take 10,000 chips, and in 2,000 days 5,000.

    1,000 days need a million tokens per second.
    """
    for days, chips in ((1000, 10000), (2000, 5000), (20000, 500)):
        assert chips_in(days, 86.4e12, 100, saturating_rate, "here") == pytest.approx(
            chips, rel=2e-3, abs=100
        )


def test_days_that_no_cluster_keeps_are_refused_with_the_nearest():
    with pytest.raises(
        DataError,
        match=r"here: workload.days is 500: no cluster is as quick; the nearest takes 1e.03 days",
    ):
        chips_in(500, 86.4e12, 100, saturating_rate, "here")


@pytest.mark.parametrize("days", [90, 200])
def test_a_scenario_takes_the_chips_of_its_days(days):
    evaluation = tco.evaluate(JOB, {DAYS: f"{days} day"}, catalogue=CATALOGUE)
    chips = evaluation.inputs[CHIPS].value
    assert chips % 72 == 0
    assert 15.6e12 / evaluation.metrics[RATE] / 86400 <= days
    assert (
        evaluation.metrics == tco.evaluate(JOB, {CHIPS: repr(chips)}, catalogue=CATALOGUE).metrics
    )


def test_days_and_chips_are_not_both_asked_for():
    with pytest.raises(DataError, match="the chips follow from the days; leave one out"):
        tco.evaluate(JOB, {DAYS: "90 day", CHIPS: "4608"}, catalogue=CATALOGUE)


def test_a_job_has_the_days_and_the_cost_of_its_tokens():
    evaluation = tco.evaluate(JOB, {"workload.train_tokens": "15e12"}, catalogue=CATALOGUE)
    metrics = evaluation.metrics
    seconds = 15e12 / metrics[RATE] / metrics["goodput"]
    assert metrics["train_time_s"] == pytest.approx(seconds, rel=1e-12)
    cost = 15 * metrics["train_usd_per_trillion_tokens"]
    assert metrics["train_usd"] == pytest.approx(cost, rel=1e-12)
    # paid for: all chips through the job, with stops and idle hours
    hours = metrics["train_time_s"] / 3600 * evaluation.inputs[CHIPS].value
    hour = metrics["tco_usd_per_chip_hour"] / evaluation.inputs["terms.utilisation"].value
    assert metrics["train_usd"] == pytest.approx(hours * hour)


@pytest.mark.parametrize("command", ["price", "perf", "compare"])
def test_screens_of_a_training_job_say_its_days_and_its_cost(command):
    printed_text = " ".join(
        run_tco(command, JOB, "--set", "workload.train_tokens=15e12").stdout.split()
    )
    assert (
        "Training on 15 trillion tokens (--set workload.train_tokens=...) on 16,128 chips"
        in printed_text
    )
    assert "The days include failures; the cost also pays the idle hours." in printed_text
    assert re.search(r": [\d.]+ days, [\d.]+ million USD\.", printed_text)


def test_serving_has_no_training_job():
    metrics = tco.evaluate("trn3-nl72x2", {}, catalogue=CATALOGUE).metrics
    assert metrics["train_time_s"] is None
    assert metrics["train_usd"] is None
    assert "Training on" not in run_tco("price", "trn3-nl72x2").stdout


def test_comparison_shows_median_ratios_and_warns_of_chips_without_training_runs():
    words = ("compare", "--set", "workload=training")
    screen = run_tco(*words).stdout
    printed_text = " ".join(screen.split())
    assert "The chances rest on estimates: no published training runs of trn3." in printed_text
    rows = document(*words)["rows"]
    for row in rows:
        (line,) = [
            line
            for line in screen.splitlines()
            if line.startswith(f"{row['scenario']} ") and " to " in line
        ]
        median = row["range"]["perf_per_tco_vs_baseline"]["p50"]
        assert float(line.split()[-1]) == pytest.approx(median, rel=5e-3)
