"""Chosen plans of long runs are slower than the best plan; stated plans are taken as stated."""

from __future__ import annotations

import numpy as np
import pytest

from tco import evaluate
from tco.performance.training.deployment import long_run_efficiency
from tco.performance.training.plans import fixed_axes
from tco.scenario.evaluate_samples import evaluate_draws
from tco.scenario.plan_records import plan_from
from tco.scenario.structure import plain_plan
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.performance.training.jobs import search_training_plans, small

LLAMA = {"workload": "llama-3.1-405b-training", "workload.precision": "bf16"}
RATE, DECLINE = (
    CATALOGUE.practice("training", f"long_run_{name}").value for name in ("rate", "decline")
)


def llama(chips: int, plan=None, **more: str):
    """Llama 3.1 405B on H100, as its paper trains it but for the plan."""
    settings = (
        LLAMA
        | {"cluster.chips": str(chips)}
        | {path.replace("__", "."): value for path, value in more.items()}
    )
    return evaluate("h100-hgx8", settings, plan, catalogue=CATALOGUE)


def test_llama_on_its_cluster_reaches_about_the_published_utilisation():
    """38 to 43 % on 8,192 and 16,384 H100 (arXiv 2407.21783, table 4)."""
    assert 0.37 <= llama(16384).metrics["mfu"] <= 0.45


def test_deepseek_takes_about_the_published_hours():
    """180,000 hours of an H800 for a trillion tokens (arXiv 2412.19437), on 2,048 of them."""
    size = {
        "cluster.chips": "2048",
        "workload.global_batch": "15360",
        "workload.sequence_length": "4096",
    }
    inputs = {
        "workload": "training",
        "workload.model": "deepseek-v3",
        "workload.precision": "fp8_block",
        **size,
    }
    rate = evaluate("h100-hgx8", inputs, catalogue=CATALOGUE).metrics["train_tokens_per_s"]
    assert 2048 / rate * 1e12 / 3600 == pytest.approx(180e3, rel=0.1)


def test_a_chosen_plan_takes_longer_by_the_efficiency_of_long_runs():
    deployed, tuned = llama(4096), llama(4096, workload__as_deployed="0")
    assert tuned.metrics["step_s"] / deployed.metrics["step_s"] == pytest.approx(
        RATE * (1 - DECLINE) ** 2, rel=1e-9
    )
    assert tuned.metrics["mfu"] / deployed.metrics["mfu"] == pytest.approx(
        deployed.metrics["step_s"] / tuned.metrics["step_s"], rel=1e-9
    )
    lines = {line.name: line.time for line in deployed.report.phases["step"].lines}
    assert lines["below the best plan"] == pytest.approx(
        deployed.metrics["step_s"] - tuned.metrics["step_s"], rel=1e-9
    )
    assert sum(lines.values()) == pytest.approx(deployed.metrics["step_s"], rel=1e-9)


def test_the_best_software_runs_its_best_plan():
    best = llama(4096, workload__software="best")
    assert best.metrics["step_s"] == pytest.approx(
        llama(4096, workload__software="best", workload__as_deployed="0").metrics["step_s"],
        rel=1e-12,
    )


def test_a_stated_plan_is_taken_as_it_is():
    tuned = llama(4096, workload__as_deployed="0")
    names = (
        "tp",
        "cp",
        "pp",
        "dp",
        "micro_batch",
        "schedule",
        "interleave",
        "zero",
        "recompute",
        "sequence_parallel",
        "tp_overlap",
        "order",
    )
    axes = {
        name: str(tuned.report.plan[name]).replace("True", "yes").replace("False", "no")
        for name in names
    }
    stated = llama(4096, axes | {"optimizer_offload": "no"})
    assert stated.metrics["step_s"] == pytest.approx(tuned.metrics["step_s"], rel=1e-12)
    record = llama(4096, tuned.plan._replace(chosen=0))
    assert record.metrics["step_s"] == pytest.approx(tuned.metrics["step_s"], rel=1e-12)


def test_a_held_structure_keeps_what_its_plan_was_chosen_as():
    deployed = llama(1024)
    on_structure = evaluate(
        "h100-hgx8",
        LLAMA | {"cluster.chips": "1024"},
        structure=deployed.structure,
        catalogue=CATALOGUE,
    )
    assert on_structure.metrics["step_s"] == pytest.approx(deployed.metrics["step_s"], rel=1e-12)
    path = "performance.training.long_run_rate"
    draws = LLAMA | {"cluster.chips": "1024", path: np.array([RATE, RATE * 0.9])}
    drawn = evaluate_draws("h100-hgx8", draws, catalogue=CATALOGUE)
    assert drawn.metrics["step_s"] == pytest.approx(
        deployed.metrics["step_s"] / np.array([1.0, 0.9]), rel=1e-9
    )


def test_a_search_of_all_plans_chooses_and_one_with_an_axis_fixed_does_not():
    training_job, machine = small(
        "llama-3.1-8b", 8, 8, workload__attention="fused", workload__sequence_length="4096"
    )
    assert search_training_plans(training_job, machine).best.chosen == 1
    assert search_training_plans(training_job, machine, fixed_axes({"tp": "2"})).best.chosen == 0


def test_the_plan_of_a_saved_result_is_stated_by_who_names_it(tmp_path):
    path = tmp_path / "llama.json"
    llama(1024).save(path)
    sets = [
        word
        for name, text in (LLAMA | {"cluster.chips": "1024"}).items()
        for word in ("--set", f"{name}={text}")
    ]
    stated = document("perf", "h100-hgx8", *sets, "--plan", str(path))
    assert stated["metrics"]["step_s"] == pytest.approx(
        llama(1024, workload__as_deployed="0").metrics["step_s"], rel=1e-9
    )


def test_a_plan_saved_before_plans_were_chosen_is_read_as_stated():
    plan = llama(1024).plan
    saved = {name: value for name, value in plain_plan(plan).items() if name != "chosen"}
    assert plan_from(saved) == plan._replace(chosen=0)


def test_a_larger_job_reaches_no_larger_share_of_its_best_plan():
    shares = [
        float(long_run_efficiency(RATE, DECLINE, chips))
        for chips in (8, 64, 512, 1024, 4096, 16384, 131072)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    assert shares[-1] > 0.6
