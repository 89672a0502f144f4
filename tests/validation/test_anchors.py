"""Own measured runs change answers as normal effects do, and incredible runs are refused by row."""

from __future__ import annotations

import csv
import math

import pytest

from tests.catalogue import CATALOGUE
from tests.cli import document, tco

SETTINGS = (
    "workload.concurrency=256",
    "workload.software=2026-06",
    "workload.draft_tokens=0",
    "workload.engine=sglang",
)
ASKED = (
    "perf",
    "b200-hgx8",
    "--plan",
    "tp=8,ep=1",
    *(word for setting in SETTINGS for word in ("--set", setting)),
)
RATE = "output_tokens_per_s_per_chip"
P95 = 1.6448536269514722


def rate(*more):
    return document(*ASKED, *more)["metrics"][RATE]


@pytest.fixture(scope="module")
def plain():
    return document(*ASKED)


@pytest.fixture
def write_own_runs(tmp_path, plain):
    """Write runs that are some times as quick as predicted, and return their file.

    Cells of the rows may be replaced.
    """

    def write(quicker=1.2, rows=1, **cells):
        output = plain["metrics"][RATE] * quicker
        row = {
            **{
                "accelerator": "B200 SXM",
                "n_gpus": 8,
                "model": "DeepSeek-V3",
                "precision": "fp8",
                "framework": "sglang",
                "spec_decoding": "none",
                "date": "2026-06",
            },
            **{
                "isl_tokens": 8192,
                "osl_tokens": 1024,
                "concurrency": 256,
                "tp": 8,
                "ep": 1,
                "dp_attention": 0,
                "output_tput_tok_s_per_gpu": output,
            },
        }
        row |= cells
        path = tmp_path / "own.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv_writer = csv.DictWriter(file, row)
            csv_writer.writeheader()
            csv_writer.writerows([row] * rows)
        return str(path)

    return write


def test_a_run_moves_its_own_configuration_most_of_the_way(write_own_runs, plain):
    before, after = plain["metrics"][RATE], rate("--anchor", write_own_runs())
    more = rate("--anchor", write_own_runs(rows=8))
    assert 1.05 * before < after < more < 1.2 * before


def test_a_stated_run_moves_alike_whether_chosen_plans_are_as_deployed(write_own_runs):
    """Deployment efficiency is no part of a plan and a load that are stated."""
    tuned = ("--set", "workload.as_deployed=0")
    assert rate(*tuned) == rate()
    assert rate(*tuned, "--anchor", write_own_runs()) == rate("--anchor", write_own_runs())


def test_a_run_as_predicted_moves_nothing(write_own_runs, plain):
    assert rate("--anchor", write_own_runs(1)) == pytest.approx(plain["metrics"][RATE], rel=0.005)


def test_run_changes_the_deployment_efficiency_of_chosen_plans(write_own_runs):
    """A run changes the rate in its class of engines and speed, and no user's speed."""
    question = (
        "perf",
        "b200-hgx8",
        "--set",
        "workload.engine=sglang",
        "--set",
        "workload.interactivity=20 token/s",
    )
    before, after = document(*question), document(*question, "--anchor", write_own_runs())
    assert after["metrics"][RATE] / before["metrics"][RATE] == pytest.approx(
        1 + after["anchored"]["systems"]["b200-hgx8"], rel=1e-9
    )
    assert 1.05 < after["metrics"][RATE] / before["metrics"][RATE] < 1.2
    assert after["metrics"]["tokens_per_s_per_user"] == before["metrics"]["tokens_per_s_per_user"]
    assert after["metrics"]["ttft_s"] == before["metrics"]["ttft_s"]


def test_the_document_says_what_it_rests_on(write_own_runs, plain):
    perf_document = document(*ASKED, "--anchor", write_own_runs())
    anchor_record = perf_document["anchored"]
    assert anchor_record["rows"] == 1
    # what is no pass is not moved
    assert (
        anchor_record["moved"]
        == anchor_record["systems"]["b200-hgx8"]
        == pytest.approx(perf_document["metrics"][RATE] / plain["metrics"][RATE] - 1, rel=0.005)
    )
    assert anchor_record["rests_on"] == [
        {
            "chip": "b200-sxm",
            "engine": "sglang",
            "model": "deepseek-v3",
            "formats": ["fp8", "fp8", "fp8"],
            "rows": 1,
        }
    ]
    assert any("anchored on 1 run" in note for note in perf_document["notes"])
    assert "anchored" not in plain


def test_a_run_tells_less_of_another_engine_and_least_of_another_chip(write_own_runs, plain):
    path = write_own_runs()
    anchor_shifts = [
        document("perf", system, *ASKED[2:-1], f"workload.engine={engine}", "--anchor", path)[
            "anchored"
        ]["systems"][system]
        for system, engine in (
            ("b200-hgx8", "sglang"),
            ("b200-hgx8", "vllm"),
            ("h200-hgx8", "vllm"),
        )
    ]
    assert anchor_shifts[0] > anchor_shifts[1] > anchor_shifts[2] > 0


def test_runs_narrow_the_range(write_own_runs):
    question = (
        "uncertainty",
        "b200-hgx8",
        "--set",
        "workload.engine=sglang",
        "--set",
        "workload.interactivity=20 token/s",
        "--samples",
        "400",
    )
    wide, narrow = (
        document(*question, *more)["metrics"][RATE] for more in ((), ("--anchor", write_own_runs()))
    )
    assert (narrow["p90"] - narrow["p10"]) / narrow["p50"] < 0.95 * (
        wide["p90"] - wide["p10"]
    ) / wide["p50"]
    assert narrow["p50"] > wide["p50"]


def test_a_scenario_names_its_runs(write_own_runs, tmp_path, plain):
    write_own_runs()
    documents = {
        "system": "b200-hgx8",
        "site": "us-hyperscale",
        "terms": "hyperscaler-2025-12",
        "workload": "deepseek-v3-8k-1k",
        "cluster": "tor-100g-16k",
    }
    scenario = tmp_path / "mine.toml"
    scenario.write_text(
        "".join(
            f'{key} = "{value}"\n' for key, value in {**documents, "anchor": "own.csv"}.items()
        ),
        encoding="utf-8",
    )
    perf_document = document("perf", str(scenario), *ASKED[2:])
    assert perf_document["metrics"][RATE] > 1.05 * plain["metrics"][RATE]
    assert perf_document["anchored"]["rows"] == 1


@pytest.mark.parametrize(
    ("quicker", "cells", "message"),
    [
        (1000, {}, "above the roofline"),
        (1 / 1000, {}, "expected the unit"),
        (1, {"interactivity_tok_s_per_user": 0.5}, "Little's law"),
        (1, {"model": "Llama-3.1-70B"}, "expected runs of the same model"),
        (1, {"model": "Nobody-1B"}, "unknown-model"),
        (1, {"accelerator": "Z9"}, "unknown-accelerator"),
        (1, {"concurrency": ""}, "unstated concurrency"),
    ],
)
def test_unbelievable_run_is_refused_by_row(write_own_runs, quicker, cells, message):
    path = write_own_runs(quicker, **cells)
    command_result = tco(*ASKED, "--anchor", path)
    assert command_result.exit_code == 3
    assert f"{path}:2: " in command_result.stderr
    assert message in command_result.stderr


def test_serving_runs_say_nothing_of_training(write_own_runs):
    command_result = tco("perf", "train-gpt3-175b-a100x64", "--anchor", write_own_runs())
    assert command_result.exit_code == 3
    assert "moves serving alone" in command_result.stderr


@pytest.mark.thorough
def test_redaction_refuses_own_runs_in_the_same_words(write_own_runs):
    """Measured rows of a user have no stand-in, so redaction refuses them.

    The words are the same for any rows.
    """
    command_results = [
        tco(*ASKED, "--anchor", write_own_runs(quicker), "--redact", "--format", "json")
        for quicker in (1.1, 1.5)
    ]
    assert {
        (command_result.exit_code in (2, 3), command_result.stdout)
        for command_result in command_results
    } == {(True, "")}
    assert command_results[0].stderr == command_results[1].stderr != ""


def test_one_run_moves_by_its_share_of_the_variance(write_own_runs, plain):
    """A run y moves the answer by E = V/(V + r) y, with V the sum of the effects' variances.

    r is the variance of a run; the effects act as one.
    """
    levels = ("nvidia", "b200-sxm", "sglang", "deepseek-v3", "configuration")
    rows = [CATALOGUE.practice(owner, "unexplained_serving") for owner in (*levels, "run")]
    variances = [(math.log((1 + row.high) / (1 + row.low)) / (2 * P95)) ** 2 for row in rows]
    shared, single = sum(variances[:-1]), variances[-1]
    assert rate("--anchor", write_own_runs(1.2)) / plain["metrics"][RATE] == pytest.approx(
        1.2 ** (shared / (shared + single)), rel=5e-3
    )


def test_one_run_moves_a_chosen_plan_by_the_family_the_chip_and_half_of_what_runs_have_alone(
    write_own_runs,
):
    question = (
        "perf",
        "b200-hgx8",
        *(
            f"--set=workload.{setting}"
            for setting in ("engine=sglang", "software=public", "interactivity=20 token/s")
        ),
    )
    before, after = (
        document(*question, *more)["metrics"][RATE]
        for more in ((), ("--anchor", write_own_runs(1.2)))
    )
    rows = [
        CATALOGUE.practice(owner, "deployment_efficiency")
        for owner in ("nvidia", "b200-sxm", "run")
    ]
    family, chip, single = ((math.log(row.high / row.low) / (2 * P95)) ** 2 for row in rows)
    shared = family + chip + single / 2
    assert after / before == pytest.approx(1.2 ** (shared / (shared + single / 2)), rel=5e-3)


def test_an_anchor_of_a_chip_moves_every_system_of_the_chip_more_than_one_of_its_family(
    write_own_runs,
):
    path = write_own_runs(rows=4)
    question = (
        "--set",
        "workload.engine=vllm",
        "--set",
        "workload.interactivity=20 token/s",
        "--anchor",
        path,
    )
    anchor_shifts = {
        system: document("perf", system, *question)["anchored"]["systems"][system]
        for system in ("b200-hgx8", "h200-hgx8", "mi355x-8")
    }
    assert (
        anchor_shifts["b200-hgx8"]
        > anchor_shifts["h200-hgx8"]
        > anchor_shifts["mi355x-8"]
        == pytest.approx(0, abs=1e-12)
    )
