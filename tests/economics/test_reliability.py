"""What failures leave of the time: figures of two clusters, a numerical optimum, and what must hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco.catalog.systems import load_system
from tco.chain.scenario import evaluate
from tco.economics.reliability import chips_stopped, daly_interval, goodput, share_kept, time_between_failures, young_interval
from tests.chain import again, result

STALLS, BETWEEN = st.floats(1, 600), st.floats(2e3, 1e6)


def test_llama_3_on_16384_gpus():
    """419 interruptions in 54 days; every three hours; more than nine tenths of the time made progress."""
    between = time_between_failures(419 / 54 * 365, 16384, 16384)
    assert between / 3600 == pytest.approx(54 * 24 / 419, rel=1e-9)
    assert 0.85 < share_kept(30, daly_interval(30, between), 300, between) < 0.95


@given(STALLS, BETWEEN)
def test_no_other_interval_is_much_better(stall, between):
    best = daly_interval(stall, between)
    kept = share_kept(stall, best, 0, between)
    for factor in (0.7, 0.85, 1.2, 1.5):
        assert share_kept(stall, best * factor, 0, between) <= kept + 0.1 * stall / between
    assert best <= young_interval(stall, between) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "stopped"),
    [
        ("trn3-nl72x2", 4),
        ("trn3-nl32x2", 2),
        ("gb200-nvl72", 4),
        ("h100-hgx8", 8),
        ("trn2-nl32x2-3d", 64),
        ("tpuv7-cube64", 64),
        ("tpuv7-pod9216", 64),
    ],
)
def test_the_chips_that_stop_with_one(name, stopped, catalogue):
    """A tray of a switched rack, a server, a torus, and a block of a torus that optical switches close."""
    system = load_system(catalogue, name)
    chip = next(leaf for leaf in system.leaves if leaf.part == system.chip)
    assert chips_stopped(system, chip) == stopped


def test_by_hand():
    """0.1 a chip and year, 12 h, four chips at a time; a card's 0.0144 with the four chips of its tray."""
    found = result("trn3-nl72x2")
    cards = next(line.quantity for line in found.bill.lines if line.path.endswith("compute-tray/nitro-v6-400g"))
    lost = (0.1 * 144 + 0.0144 * cards) * 4 / 144 * 12 / 8760
    assert found.metrics["goodput"] == pytest.approx(1 / (1 + lost), rel=1e-4)


def test_what_fails_more_or_waits_longer_leaves_less():
    base = result("trn3-nl72x2").metrics
    for path, value in (("parts__trn3__failure_rate", "1 1/year"), ("failures__repair_time", "72 h")):
        worse = again("trn3-nl72x2", **{path: value}).metrics
        assert worse["goodput"] < base["goodput"]
        assert worse["tco_usd_per_chip_hour"] == base["tco_usd_per_chip_hour"]  # what is charged is the availability of the terms


def test_a_job_starts_again(catalogue):
    name = "llama-3.1-405b-training-gb200-nvl72"
    job = evaluate(name, catalogue=catalogue)
    chips = job.inputs["cluster.chips"].value
    failures = (0.1 * 72 + 0.0144 * 72) * chips / 72
    between = 8760 * 3600 / failures
    assert job.metrics["goodput"] == pytest.approx(share_kept(60, daly_interval(60, between), 600, between), rel=2e-3)
    more = evaluate(name, {"failures.checkpoint_stall": "5 s"}, job.plan, catalogue=catalogue)
    assert more.metrics["goodput"] > job.metrics["goodput"]


def test_nothing_is_said_of_parts_whose_failures_nobody_states(catalogue):
    assert goodput({}, load_system(catalogue, "gb200-nvl72"), lambda _: False, False) is None
