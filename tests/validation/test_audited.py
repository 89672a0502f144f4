"""Audited rows of MLPerf Inference as serving points: load, lengths, plan, and what is left out."""

from __future__ import annotations

import csv
import shlex
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tco.catalog.accuracy import accuracy_rows
from tco.scenario.evaluate import evaluate
from tco.validation.audited import (
    OPEN,
    TWICE,
    as_serving_rows,
    refused_runs,
    stated_drafts,
    stated_plan,
)
from tco.validation.envelopes import EnvelopeCandidates
from tco.validation.row_dates import row_date
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.shared import shared_by_workers
from tests.validation.today import VALUES, predicted, rows_of, table_of

FILE = "mlperf_inference"
ROW = {
    "source_id": "mlperf-inference-v5.1",
    "source_url": "https://github.com/mlcommons/inference_results_v5.1",
    "date": "2025-09-09",
    "submitter": "ours",
    "division": "closed",
    "platform": "eight",
    "accelerator": "NVIDIA H200-SXM-141GB",
    "chip": "H200",
    "n_gpus": "8",
    "model": "llama2-70b-99",
    "weights": "fp8",
    "scenario": "server",
    "arrivals": "Poisson",
    "requests_per_s": "100",
    "output_tok_s_per_gpu": "3500",
    "ttft_ms_mean": "400",
    "tpot_ms_mean": "100",
    "osl_mean": "281",
    "isl_mean": "222.33",
    "framework": "TensorRT-LLM",
    "parallel": "tp1 pp1 (config)",
    "ttft_limit_ms": "2000",
    "tpot_limit_ms": "200",
    "value_kind": "measured, audited",
    "notes": "",
}


def scored(tmp_path, *changes):
    path = tmp_path / "audited.csv"
    rows = [ROW | change for change in changes]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(ROW))
        writer.writeheader()
        writer.writerows(rows)
    return document("validate", path, "--rows")


def settings_of(row):
    words = shlex.split(row["command"])
    return dict(word.split("=", 1) for word in words if word.startswith("workload."))


def plan_of(row):
    words = shlex.split(row["command"])
    return dict(axis.split("=") for axis in words[words.index("--plan") + 1].split(","))


def test_load_of_a_logged_run_is_rate_times_time_of_a_request(tmp_path):
    (row,) = scored(tmp_path, {})["rows"]
    # 100 requests a second of 0.4 s and 280 gaps of 0.1 s each
    assert float(settings_of(row)["workload.concurrency"]) == pytest.approx(100 * (0.4 + 280 * 0.1))


def test_run_without_a_log_has_no_load(tmp_path):
    (row,) = scored(tmp_path, {"ttft_ms_mean": "", "tpot_ms_mean": ""})["rows"]
    assert row["skipped"] == "unstated concurrency: concurrency"


def test_offline_run_has_all_requests_at_once(tmp_path):
    offline = {"scenario": "offline", "arrivals": "all at once", "requests_per_s": ""}
    (row,) = scored(tmp_path, offline)["rows"]
    assert row["skipped"] == ""
    assert settings_of(row)["workload.offline"] == "1"
    assert "workload.concurrency" not in settings_of(row)


def test_answer_without_a_length_takes_that_of_its_data_set(tmp_path):
    changes = {"model": "gpt-oss-120b", "weights": "fp4", "osl_mean": "", "isl_mean": "5010.64"}
    offline = {"scenario": "offline", "arrivals": "all at once"}
    (row,) = scored(tmp_path, changes | offline)["rows"]
    assert float(settings_of(row)["workload.output_tokens"]) == 1278.2  # of the reference runs


@pytest.mark.parametrize(
    ("words", "tensor", "stages", "experts", "groups", "size"),
    [
        ("tp1 pp1 (config)", 1, 1, 1, 1, 1),
        ("tp2 pp2 (config)", 2, 2, 1, 1, 4),
        ("tp8 pp1 ep8 attention-dp (config)", 8, 1, 8, 8, 8),
        ("36 replicas x dep8 (config)", 8, 1, 8, 8, 8),
        ("tp1, 512 replicas (notes)", 1, 1, 1, 1, 1),
    ],
)
def test_words_of_a_plan_are_read(words, tensor, stages, experts, groups, size):
    plan = stated_plan(words, 512.0)
    read = tuple(plan[name] for name in ("tp", "pp", "ep", "groups", "engine_chips"))
    assert read == (tensor, stages, experts, groups, size)
    assert plan["searched"] == 0


def test_pools_of_a_plan_are_read():
    words = "disaggregated (Dynamo): 2 prefill x dep4 + 4 decode x dep16, max batch 64 a rank"
    plan = stated_plan(words, 72.0)
    assert (plan["prefill_gpus"], plan["prefill_workers"], plan["prefill_ep"]) == (8, 2, 4)
    assert (plan["decode_gpus"], plan["decode_workers"], plan["decode_ep"]) == (64, 4, 16)
    assert stated_drafts(words) == 0
    assert stated_drafts("tp8, aggregated, MTP 1 draft (notes)") == 1


def test_pools_of_unstated_size_are_left_out(tmp_path):
    words = "disaggregated: 2 prefill + 4 decode workers (config)"
    (row,) = scored(tmp_path, {"parallel": words})["rows"]
    assert row["skipped"].startswith("unstated workers")


def test_run_without_a_plan_is_the_best_whole_engine_that_divides_its_chips(tmp_path):
    plans = ("tp1 pp1", "tp2 pp1", "tp4 pp1", "tp8 pp1")
    free, *stated = scored(tmp_path, *({"parallel": words} for words in ("", *plans)))["rows"]
    rates = [row["predicted"] for row in stated]
    assert free["predicted"] == pytest.approx(max(rates), rel=1e-12)
    assert free["low"] == pytest.approx(min(rates), rel=1e-12)
    assert "plan" in free["unstated"]
    assert 8 % float(plan_of(free)["chips"]) == 0


def test_engines_of_a_run_fill_its_chips(tmp_path):
    (row,) = scored(tmp_path, {"parallel": "tp2 pp1"})["rows"]
    assert float(plan_of(row)["chips"]) * float(plan_of(row)["workers"]) == 8


def test_run_entered_for_two_accuracies_counts_once(tmp_path):
    rows = scored(tmp_path, {}, {"model": "llama2-70b-99.9"})["rows"]
    assert [row["skipped"] for row in rows] == ["", TWICE]


def test_two_runs_of_one_accuracy_both_count(tmp_path):
    rows = scored(tmp_path, {}, {"output_tok_s_per_gpu": "3600"})["rows"]
    assert [row["skipped"] for row in rows] == ["", ""]


def test_open_division_is_left_out(tmp_path):
    (row,) = scored(tmp_path, {"division": "open"})["rows"]
    assert row["skipped"] == OPEN


def test_suspect_runs_of_the_shipped_file_say_why():
    measurements = as_serving_rows(rows_of(table_of(FILE)))
    reasons = pd.Series(refused_runs(measurements))
    suspect = measurements.table[reasons.str.startswith("suspect").to_numpy()]
    assert set(suspect.submitter) == {"VibeHPC", "Google"}
    assert (suspect.model == "deepseek-r1").all()


@pytest.fixture(scope="module")
def shipped():
    return document("validate", FILE, "--rows")


def test_every_audited_row_is_scored_or_says_why(shipped):
    words = ("suspect", "claim", "unstated", "unknown-model", "unknown-accelerator", "unsupported")
    assert shipped["n"] == 833 == shipped["scored"] + sum(shipped["skipped"].values())
    assert shipped["scored"] >= 450
    assert all(reason.startswith(words) for reason in shipped["skipped"])


def test_sampled_audited_rows_are_what_their_commands_say(shipped):
    rows = [row for row in shipped["rows"] if not row["skipped"]]
    pools = [row for row in rows if "prefill_tp" in row["command"]]
    staged = [row for row in rows if ",pp=2" in row["command"]]
    for row in (*rows[::90], pools[0], staged[0]):
        answer_value = document(*shlex.split(row["command"])[1:])
        for step in row["key"].split("/"):
            answer_value = answer_value[step]
        assert answer_value * row["scale"] == pytest.approx(row["predicted"], rel=1e-9)


def test_weights_of_the_first_round_are_those_that_ran(shipped):
    # NVIDIA's calibration notes of that round: language models ran in FP8, and in FP4 on Blackwell
    rows = [row for row in shipped["rows"] if row["source_id"].endswith("v4.1") and row["command"]]
    formats = {
        (row["accelerator"], row["framework"], settings_of(row)["workload.precision"])
        for row in rows
    }
    assert ("NVIDIA H100-SXM-80GB", "TensorRT-LLM", "fp8") in formats
    assert ("NVIDIA B200-SXM-180GB", "TensorRT-LLM", "nvfp4") in formats


def test_four_bits_of_a_submission_are_in_the_blocks_its_chip_takes(shipped):
    # AMD's notes on its v6.0 submission: weights in OCP MXFP4; NVIDIA's harness: FP4 is NVFP4
    precisions = {
        (row["accelerator"], settings_of(row)["workload.precision"])
        for row in shipped["rows"]
        if row["command"] and row["precision"] == "fp4" and row["model"].startswith("llama2")
    }
    assert ("AMD Instinct MI355X 288GB HBM3e", "mxfp4") in precisions
    assert ("NVIDIA B200-SXM-180GB", "nvfp4") in precisions


def test_rows_that_state_a_division_alone_run_the_engine_of_submissions(shipped):
    published = document("validate", "trainium_inference", "--rows")
    engines = [
        {
            settings_of(row)["workload.engine"] == "mlperf"
            for row in answer["rows"]
            if row["command"]
        }
        for answer in (shipped, published)
    ]
    assert engines == [{True}, {False}]


def test_submissions_are_met_left_out_without_a_bias(shipped):
    left_out = [
        float(row["median_ape"])
        for row in accuracy_rows(CATALOGUE, "kinds")
        if row["kind"] == "mlperf_inference"
    ]
    assert len(left_out) == 4
    assert max(left_out) <= 0.18
    assert abs(shipped["bias"]) <= 0.05


@pytest.mark.parametrize("traffic", [0.5, 2.0])
def test_own_traffic_of_an_engine_moves_that_engine_alone(traffic):
    setting = {"performance.mlperf.elementwise_traffic": str(traffic)}
    question = {"workload.concurrency": "256", "workload.model": "llama-3.1-8b"}

    def rate(engine, settings):
        inputs = question | {"workload.engine": engine} | settings
        return evaluate("h200-hgx8", inputs, catalogue=CATALOGUE).metrics[
            "output_tokens_per_s_per_chip"
        ]

    assert rate("trtllm", setting) == rate("trtllm", {})
    assert (rate("mlperf", setting) > rate("mlperf", {})) == (traffic < 1)


# chips whose envelopes are made, and how many runs stand on them at least; all in thorough runs
CHIPS = [("H100", 7), pytest.param("", 60, marks=pytest.mark.thorough)]


@pytest.fixture(scope="module")
def envelopes_of(tmp_path_factory):
    """Return a function that makes the envelopes of a chip, or of all, once for a setting."""
    folder = tmp_path_factory.mktemp("audited")

    @cache
    def make(chip, *settings):
        table = table_of(FILE)
        path = folder / f"{chip or 'all'}.csv"
        (table[table.chip == chip] if chip else table).to_csv(path, index=False)
        return shared_by_workers(
            "-".join(("envelopes", path.stem, *settings)),
            lambda: document("validate", path, "--envelopes", *settings),
        )

    return make


@pytest.mark.parametrize(("chip", "least"), CHIPS)
def test_envelopes_of_audited_rows_take_the_software_that_is_set(envelopes_of, chip, least):
    months = envelopes_of(chip)["summary"]
    best = envelopes_of(chip, "--set", "workload.software=best")["summary"]
    assert months["n"] == best["n"] >= least
    assert best["below_0.9"] < months["below_0.9"]


@pytest.mark.parametrize(
    ("chip", "experts", "cache"),
    [("mi355x", "w4a8", "fp8"), ("b200-sxm", "nvfp4", "fp8"), ("a100-sxm-80gb", "bf16", "bf16")],
)
def test_best_plans_keep_caches_as_the_runs_do(chip, experts, cache):
    sweep = EnvelopeCandidates(table_of(FILE), CATALOGUE, VALUES)
    shared = sweep.kind((chip, "gpt-oss-120b", "bf16", experts, "bf16", 1000.0, 1000.0))
    assert (
        shared["cache"]
        == cache
        == sweep.asked.texts(shared | {"engine": "mlperf"})["workload.cache_format"]
    )


@pytest.mark.parametrize(
    ("printed", "source_id", "expected"),
    [
        ("2025-03", "", "2025-03"),
        ("2025-03-07", "", "2025-03"),
        ("2025", "", "2025-07"),  # the middle of the year
        ("2024-2025", "", "2024-12"),
        ("2026 (undated)", "", "2026-06"),  # of what is past of it
        ("", "mlperf-inference-v6.1", "2026-09"),  # of its source
        ("", "", ""),
        ("soon", "", ""),
    ],
)
def test_date_of_a_row_is_of_its_text_or_its_source(printed, source_id, expected):
    assert row_date(CATALOGUE, printed, source_id) == expected


def test_source_is_also_known_by_its_address():
    address = (
        "https://github.com/mlcommons/inference_results_v6.1/tree/10ecdffd/closed/NVIDIA/results"
    )
    assert row_date(CATALOGUE, "", "", f"{address}/VR-NVL72") == "2026-09"
    assert row_date(CATALOGUE, "", "", f"{address}_of_another") != "2026-09"


def test_audited_rows_read_the_same_among_others():
    audited, serving_rows = table_of(FILE), table_of("inference").head(200)
    together = pd.concat([serving_rows, audited], ignore_index=True)
    mixed, sole = (predicted("inference", table).predicted for table in (together, audited))
    assert np.array_equal(mixed[len(serving_rows) :], sole, equal_nan=True)


@pytest.mark.parametrize("chip", ["H100", pytest.param("", marks=pytest.mark.thorough)])
def test_offline_runs_stand_on_envelopes_where_nobody_waits(envelopes_of, chip):
    envelopes = envelopes_of(chip)["envelopes"]
    assert envelopes
    slowest = [min(run["speed"] for run in envelope["runs"]) for envelope in envelopes]
    assert slowest.count(0.001) >= len(envelopes) / 2


def test_requests_in_flight_of_shipped_logs_are_positive():
    flight = as_serving_rows(rows_of(table_of(FILE)))["concurrency"]
    flight = flight[~np.isnan(flight)]
    assert len(flight) > 300
    assert np.all(flight > 0)
