"""Failures lower goodput as published clusters, a numerical optimum and invariants say."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw
from scipy.stats import binom

from tco import DataError, evaluate
from tco.cost.failures import chips_stopped, excess_failure_chances, switches_of_a_chip
from tests.catalogue import load_system
from tests.cost.simulation import (
    ANSWERS,
    SYSTEM,
    failure_rates,
    job_of,
    settings,
    simulated_goodput,
)
from tests.registry import FORMULA
from tests.scenario_helpers import HEADLINE, again, result

STALLS, BETWEEN = st.floats(0.1, 600), st.floats(100, 1e6)
PLANNED = 0.99


def test_goodput_of_llama_3_on_16384_gpus_is_the_published_one(catalogue):
    """One interruption in three hours leaves more than nine tenths of the time for progress.

    There were 419 interruptions in 54 days.
    """
    cluster_result = evaluate(
        SYSTEM,
        {"workload": "llama-3.1-405b-training", "cluster.chips": "16384"},
        catalogue=catalogue,
    )
    job = job_of(cluster_result)
    assert 1 / job.failures / 3600 == pytest.approx(54 * 24 / 419, rel=0.03)
    assert 0.90 <= cluster_result.metrics["goodput"] < 0.95


def test_goodput_of_100000_gpus_with_replicas_is_the_published_one(catalogue):
    """Meta's replicas leave 0.80 of the time for progress; each failure costs three minutes.

    A replica is the unit of failure.
    """
    job = {"workload": "llama-3.1-405b-training", "cluster.chips": "100000"}
    assert evaluate(SYSTEM, job | {"failures.elastic_share": "1"}, catalogue=catalogue).metrics[
        "goodput"
    ] == pytest.approx(0.80, abs=0.03)
    assert evaluate(SYSTEM, job, catalogue=catalogue).metrics["goodput"] < 0.7


@given(STALLS, BETWEEN)
def test_checkpoint_interval_is_near_the_exact_optimum(stall, between):
    """The exact optimum has the principal branch of Lambert's W."""
    best = between * (1 + float(lambertw(-math.exp(-1 - stall / between)).real))
    ours = FORMULA.checkpoint_interval(stall, between)
    assert FORMULA.checkpoint_efficiency(ours, stall, 0, between) >= (
        1 - 2e-3
    ) * FORMULA.checkpoint_efficiency(best, stall, 0, between)


SIMULATED = list(csv.DictReader(ANSWERS.read_text(encoding="utf-8").splitlines()))
BOUNDS = {1024: 0.001, 16384: 0.003, 65536: 0.008, 262144: 0.03, 1048576: 0.06}


@pytest.mark.parametrize("row", SIMULATED, ids=lambda row: "-".join(list(row.values())[:3]))
def test_goodput_is_that_of_a_simulation_of_events(row, catalogue):
    shares = float(row["elastic_share"]), float(row["local_share"])
    cluster_result = evaluate(SYSTEM, settings(int(row["chips"]), *shares), catalogue=catalogue)
    assert cluster_result.metrics["goodput"] == pytest.approx(
        float(row["goodput"]), abs=BOUNDS[int(row["chips"])]
    )


@pytest.mark.thorough
def test_the_simulation_gives_its_stored_answers(catalogue):
    (stored_row,) = [row for row in SIMULATED if list(row.values())[:3] == ["16384", "0.0", "0.9"]]
    job = job_of(evaluate(SYSTEM, settings(16384, 0.0, 0.9), catalogue=catalogue))
    assert simulated_goodput(job, 5) == pytest.approx(float(stored_row["goodput"]), abs=0.004)


def test_goodput_falls_with_size_and_stays_above_zero(catalogue):
    job = {"workload": "llama-3.1-405b-training"}
    sizes = [
        evaluate(SYSTEM, job | {"cluster.chips": str(2**k)}, catalogue=catalogue).metrics["goodput"]
        for k in range(10, 21, 2)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert 0 < sizes[-1] < sizes[0] < 1


def test_a_checkpoint_longer_than_the_work_between_two_is_said(catalogue):
    job = {
        "workload": "llama-3.1-405b-training",
        "cluster.chips": "1048576",
        "failures.checkpoint_stall": "600 s",
    }
    assert any(
        note.startswith("failures.checkpoint_stall is 600 s, longer than the")
        for note in evaluate(SYSTEM, job, catalogue=catalogue).notes
    )
    job["failures.checkpoint_stall"] = "1 s"
    assert not any("failures." in note for note in evaluate(SYSTEM, job, catalogue=catalogue).notes)


# ---------------------------------------------------------------- what stops with what
@pytest.mark.parametrize(
    ("name", "part", "stopped"),
    [
        ("trn3-nl72x2", "trn3", 4),
        ("trn3-nl32x2", "trn3", 2),
        ("gb200-nvl72", "gb200-gpu", 4),
        ("h100-hgx8", "h100-sxm", 8),
        ("trn2-nl32x2-3d", "trn2", 64),
        ("tpuv7-cube64", "tpu-v7", 64),
        ("tpuv7-pod9216", "tpu-v7", 64),
        ("trn3-nl72x2", "tor-25t6", 72),  # a rack's
        ("trn3-nl32x2", "graviton4", 16),  # a CPU tray serves eight trays of two chips
        ("trn2-nl32x2-3d", "backplane-pair-pcie5", 64),
    ],
)
def test_failed_part_stops_the_chips_of_its_unit(name, part, stopped, catalogue):
    """The unit is a tray of a switched rack, a server, a rack, a torus, or a block of a torus.

    Optical switches close such a block.
    """
    system = load_system(catalogue, name)
    assert (
        chips_stopped(system, next(leaf for leaf in system.leaves if leaf.part == part))[0]
        == stopped
    )


@pytest.mark.parametrize(
    ("name", "variant", "wired", "spared", "groups"),
    [
        ("trn3-nl72x2", {}, 10, 2, 8),
        ("trn3-nl72x2", {"switch": "gen3"}, 20, 4, 2),
        ("trn3-nl32x2", {}, 8, 0, 4),
        ("trn3-nl32x2", {"spare_switch_tray": "yes"}, 10, 2, 4),
        ("gb200-nvl72", {}, 18, 0, 1),
        ("gb200-nvl36x2", {}, 18, 0, 2),
    ],
)
def test_chip_can_spare_switches_beyond_its_bandwidth(
    name, variant, wired, spared, groups, catalogue
):
    """Eight of ten switches of a plane keep the full bandwidth: 64 of 80 lanes are needed.

    Without a fifth tray there are eight, which are all needed.
    """
    system = load_system(catalogue, name, variant)
    leaf = next(leaf for leaf in system.leaves if leaf.part == system.fabric["switch"])
    assert switches_of_a_chip(system, leaf) == (wired, spared, groups)


@given(st.floats(1e-6, 0.9), st.integers(1, 20), st.integers(0, 4))
def test_chance_of_too_many_failed_switches_equals_the_binomial(down, parts, spared):
    excess_chance = sum(chance for _, chance in excess_failure_chances(down, parts, spared))
    assert excess_chance == pytest.approx(binom.sf(spared, parts, down), rel=1e-9, abs=1e-15)


# ---------------------------------------------------------------- a world that serves
def test_goodput_equals_the_one_computed_by_hand():
    """A chip fails 0.1 times a year; repair of its tray takes 9 h and stops four chips.

    Other parts of a tray fail too, and every failure loads the model anew.
    """
    rack_result = result("trn3-nl72x2")
    rates = failure_rates(rack_result)
    count = {
        part: sum(line.quantity for line in rack_result.bill.lines if line.part == part)
        for part in rates
    }
    tray = [part for part in rates if part.startswith(("trn3", "graviton", "nitro", "scorpio-p"))]
    assert count["trn3"] == 144
    waits = sum(rates[part] * count[part] for part in tray) * 4 / 144 * 9 / 8760
    waits += rates["aec-pcie6-x16"] * 72 * 4 / 144 * 9 / 8760
    tor = rates["tor-25t6"] * 12 / 8760
    waits += 2 * 72 / 144 * (tor / (1 + tor)) ** 2
    # nothing stands in for these
    unspared_parts = [
        part for part in rates if part not in ("tor-25t6", "scorpio-x-160", "backplane-cable")
    ]
    anew = (
        (
            sum(rates[part] * count[part] for part in unspared_parts)
            + count["tor-25t6"] * rates["tor-25t6"] * tor / (1 + tor)
        )
        * 480
        / 3600
        / 8760
    )
    assert rack_result.metrics["goodput"] == pytest.approx(PLANNED / (1 + waits + anew), rel=1e-9)


def test_switches_without_spares_cost_bandwidth_and_a_drain():
    usual_goodput = result("gb200-nvl72").metrics["goodput"]
    fragile = {"parts.nvswitch-5.failure_rate": "1 1/year"}
    worse = evaluate("gb200-nvl72", fragile, result("gb200-nvl72").plan).metrics["goodput"]
    repair = 12 * 1.3  # of a tray with cables
    down = repair / 8760 / (1 + repair / 8760)
    drained = 18 * (1 - 0.005) * (2 + 480 / 3600) / 8760
    assert usual_goodput - worse == pytest.approx(
        0.99 * (drained + down - 0.005 * repair / 8760), rel=0.01
    )
    spared = evaluate(
        "trn3-nl72x2", {"parts.scorpio-x-160.failure_rate": "1 1/year"}, result("trn3-nl72x2").plan
    ).metrics["goodput"]
    assert 0 < result("trn3-nl72x2").metrics["goodput"] - spared < 1e-5


@pytest.mark.parametrize(
    ("name", "tray"),
    [
        ("trn3-nl32x2", "jbog-tray"),
        ("trn3-nl72x2", "compute-tray"),
        ("gb200-nvl72", "gb200-compute-tray"),
    ],
)
def test_a_tray_repaired_sooner_raises_goodput_as_a_shorter_repair_of_all_does(
    name, tray, catalogue
):
    """Twice the usual time over trays repaired in half of it is the usual time."""
    usual, sooner, later = (
        evaluate(
            name, {"workload": "stated", f"parts.{tray}.repair_share": share}, catalogue=catalogue
        ).metrics["goodput"]
        for share in ("1", "0.5", "2")
    )
    assert later < usual < sooner
    assert 1 / later - 1 / usual == pytest.approx(2 * (1 / usual - 1 / sooner), rel=1e-6)


def test_a_spare_switch_tray_raises_goodput(catalogue):
    with_spare, without = (
        evaluate(
            "trn3-nl32x2",
            {"workload": "stated"},
            variant={"spare_switch_tray": spare_choice},
            catalogue=catalogue,
        ).metrics
        for spare_choice in ("yes", "no")
    )
    assert with_spare["capex_usd"] > without["capex_usd"]
    drained = 32 * 0.005 * (2 + 480 / 3600) / 8760
    assert with_spare["goodput"] - without["goodput"] == pytest.approx(
        0.99 * (drained + 0.005 * 12 / 8760), rel=0.02
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_what_fails_more_or_waits_longer_leaves_less_and_costs_more(name):
    base = result(name)
    rates = [path for path in base.inputs if path.endswith((".failure_rate", ".chip_rate"))]
    assert len(rates) > 4
    parts = {line.part for line in base.bill.lines}
    for path, value in (
        *((path, "1 1/year") for path in rates),
        ("failures.repair_time", "72 h"),
        ("failures.planned_share", "0.03"),
    ):
        worse_result = again(name, **{path.replace(".", "__"): value})
        worse = worse_result.metrics
        assert worse["tco_usd_per_used_chip_hour"] > base.metrics["tco_usd_per_used_chip_hour"], (
            path
        )
        # another switch takes the place of one that fails too often
        if {line.part for line in worse_result.bill.lines} != parts:
            assert path == "parts.scorpio-p-32.failure_rate"
            continue
        # with 32 spare lanes a tray they are bought anew, and never waited for
        never_lacked = path == "parts.backplane-cable.failure_rate" and name.startswith("trn3")
        assert (
            worse["goodput"] <= base.metrics["goodput"]
            if never_lacked
            else worse["goodput"] < base.metrics["goodput"]
        ), path
        assert worse["tco_usd_per_chip_hour"] >= base.metrics["tco_usd_per_chip_hour"], path


@pytest.mark.parametrize("name", HEADLINE)
def test_goodput_is_charged_once(name):
    metrics = result(name).metrics
    assert metrics["tco_usd_per_used_chip_hour"] == pytest.approx(
        metrics["tco_usd_per_chip_hour"] / (metrics["goodput"] * 0.8), rel=1e-12
    )
    stated = again(name, terms__availability="0.9").metrics
    assert stated["goodput"] == 0.9
    assert stated["tco_usd_per_chip_hour"] == metrics["tco_usd_per_chip_hour"]
    # what the contract promises
    assert again(name, terms__perspective="renter").metrics["goodput"] == 0.99


# ---------------------------------------------------------------- what fails is bought anew
def test_repairs_by_hand(catalogue):
    rack_result = evaluate("gb200-nvl72", {"workload": "stated"}, catalogue=catalogue)
    line = next(line for line in rack_result.lines if line.path == "upkeep/repairs")
    spent = 0.15 * sum(
        rate * sum(line.extended or 0.0 for line in rack_result.bill.lines if line.part == part)
        for part, rate in failure_rates(rack_result).items()
    )
    assert line.amount == pytest.approx(spent, rel=1e-9)
    assert line.amount > 0.8 * 0.15 * 0.1 * 72 * rack_result.inputs["parts.gb200-gpu.price"].value


def test_owner_without_a_share_of_repairs_has_them_in_upkeep(catalogue, own_data):
    text = (
        own_data.catalogue()
        .find("perspectives", "hyperscaler", "perspective")
        .read_text(encoding="utf-8")
    )
    own_data.write(
        "perspectives/hyperscaler.toml",
        text[: text.index("[repairs]")] + text[text.index("[margin]") :],
    )
    paths = [
        line.path
        for line in evaluate(
            "gb200-nvl72",
            {"terms.perspective": "neocloud", "workload": "stated"},
            catalogue=own_data.catalogue(),
        ).lines
    ]
    assert "upkeep/repairs" not in paths
    assert "upkeep/equipment" in paths


# ---------------------------------------------------------------- a job that trains
JOB, SMALL = "llama-3.1-405b-training-gb200-nvl72", {"cluster.chips": "4608"}


def test_goodput_of_a_training_job_equals_the_one_computed_by_hand(catalogue):
    job = evaluate(JOB, SMALL, catalogue=catalogue)
    chips = job.inputs["cluster.chips"].value
    failures = sum(
        rate * sum(line.quantity for line in job.bill.lines if line.part == part)
        for part, rate in failure_rates(job).items()
    )
    between = 8760 * 3600 / (failures * chips / 72 + 0.0495 * chips)
    work = math.sqrt(2 * 4 * between)
    lost = (
        4 / work
        + (work / 2 + 480) / between
        + 0.0025 * chips * 0.2 * 12 / 8760
        + chips * 10 / 3600 / 8760
    )
    assert job.metrics["goodput"] == pytest.approx(PLANNED * (1 - lost), rel=2e-3)
    cost = job.metrics["train_usd_per_trillion_tokens"]
    for path, value in (
        ("failures.checkpoint_stall", "1 s"),
        ("failures.local_share", "0.95"),
        ("failures.silent_detected", "0.95"),
    ):
        better = evaluate(JOB, SMALL | {path: value}, job.plan, catalogue=catalogue).metrics
        assert better["goodput"] > job.metrics["goodput"]
        assert better["train_usd_per_trillion_tokens"] == pytest.approx(
            cost * job.metrics["goodput"] / better["goodput"], rel=1e-12
        )
    for path, value in (
        ("failures.flap_rate", "10 1/year"),
        ("failures.straggling", "0.1"),
        ("cluster.chips", "46080"),
    ):
        assert (
            evaluate(JOB, SMALL | {path: value}, job.plan, catalogue=catalogue).metrics["goodput"]
            < job.metrics["goodput"]
        )
    stated = evaluate(
        JOB, SMALL | {"terms.availability": "1"}, job.plan, catalogue=catalogue
    ).metrics["goodput"]
    # a contract mends no job
    assert stated == pytest.approx(job.metrics["goodput"] / (PLANNED * 0.9993), rel=1e-3)


def test_goodput_of_a_training_cluster_lies_within_semianalysis_range(catalogue):
    """SemiAnalysis takes off 6.1 % at a good provider and 10.5 % at a hyperscaler.

    A GPU runs 25,000 hours between failures.
    """
    published_rate = {"parts.gb200-gpu.failure_rate": "0.3504 1/year"}
    assert (
        1 - 0.1053
        < evaluate(JOB, SMALL | published_rate, catalogue=catalogue).metrics["goodput"]
        < 1 - 0.0614
    )


# ---------------------------------------------------------------- what is stated badly
def test_a_chip_whose_rate_nobody_states_takes_the_usual_one(catalogue, own_data):
    text = own_data.catalogue().find("systems", "h100-hgx8", "system").read_text(encoding="utf-8")
    own_data.write(
        "systems/h100-hgx8.toml",
        text.replace('chip = "h100-sxm"', 'chip = "h800-sxm"').replace(
            "h100-sxm = 8", "h800-sxm = 8"
        ),
    )
    rack_result = evaluate(
        "h100-hgx8",
        {"workload": "stated", "parts.h800-sxm.price": "20000 USD"},
        catalogue=own_data.catalogue(),
    )
    assert rack_result.inputs["failures.chip_rate"].value == pytest.approx(0.1)
    assert math.isclose(rack_result.metrics["goodput"], 0.988, abs_tol=0.002)


@pytest.mark.parametrize(
    ("system", "chip"),
    [("gb200-nvl72", "gb200-gpu"), ("trn3-nl32x2", "trn3"), ("mi450x-ualoe72", "mi450x")],
)
def test_chip_without_a_published_failure_rate_takes_the_shared_one_unless_set(
    system, chip, catalogue
):
    """A chip without a published rate fails at the shared rate, unless its own rate is set."""
    stated = {"workload": "stated"}
    shared = evaluate(system, stated | {"failures.chip_rate": "0.3 1/year"}, catalogue=catalogue)
    chip_rate_result = evaluate(
        system, stated | {f"parts.{chip}.failure_rate": "0.3 1/year"}, catalogue=catalogue
    )
    assert (
        shared.metrics["goodput"]
        == chip_rate_result.metrics["goodput"]
        < evaluate(system, stated, catalogue=catalogue).metrics["goodput"]
    )
    assert "failures.chip_rate" not in chip_rate_result.inputs
    both = {f"parts.{chip}.failure_rate": "0.3 1/year", "failures.chip_rate": "3 1/year"}
    assert (
        evaluate(system, stated | both, catalogue=catalogue).metrics["goodput"]
        == chip_rate_result.metrics["goodput"]
    )


def test_failure_rate_of_a_chip_is_never_an_estimate(catalogue):
    """Only measured rates stand at a chip; the estimate for unmeasured chips is shared by all."""
    files = {
        Path(row.where.rpartition(":")[0]) for rows in catalogue.part_rows.values() for row in rows
    }
    chips = {path.stem for path in files if path.parent.name == "accelerators"}
    rates = [row for chip in chips for row in catalogue.part_rows.get((chip, "failure_rate"), ())]
    assert len(rates) >= 3
    assert {row.cells["kind"] for row in rates} <= {"measured", "derived", "vendor"}


@pytest.mark.parametrize(
    ("system", "chip", "low", "high"),
    [("b200-hgx8", "b200-sxm", 5.43, 16.96), ("h100-hgx8", "h100-sxm", None, None)],
)
def test_chip_with_a_published_failure_rate_keeps_it(system, chip, low, high, catalogue):
    """504 B200 failed ten times in 55 days.

    P5 and P95 of the mean of a count of ten are 5.43 and 16.96.
    """
    rack_result = evaluate(system, {"workload": "stated"}, catalogue=catalogue)
    rate = rack_result.inputs[f"parts.{chip}.failure_rate"]
    assert "failures.chip_rate" not in rack_result.inputs
    if low is not None:
        years = 504 * 55 / 365
        assert (rate.low, rate.value, rate.high) == pytest.approx(
            (low / years, 10 / years, high / years), rel=2e-3
        )


@pytest.mark.parametrize(
    ("spares", "message"),
    [
        ("tor-25t7 = 1", "did you mean 'tor-25t6'"),
        ("tor-25t6 = -1", "expected how many of a holder's may fail"),
        ('tor-25t6 = "x"', "expected how many"),
    ],
)
def test_bad_spares_are_refused(spares, message, own_data):
    text = own_data.catalogue().find("systems", "trn3-nl72x2", "system").read_text(encoding="utf-8")
    own_data.write("systems/trn3-nl72x2.toml", text.replace("tor-25t6 = 1\n", f"{spares}\n"))
    with pytest.raises(DataError, match=message):
        evaluate("trn3-nl72x2", {"workload": "stated"}, catalogue=own_data.catalogue())
