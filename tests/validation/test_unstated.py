"""Rows that leave something unstated have the range of the rows that state it.

Each of those rows is evaluated by itself.
"""

import csv

import pytest

from tests.cli import document, tco
from tests.validation.test_one_engine import HEADER, OWN

SERVED = {
    "accelerator": "H200 SXM",
    "n_gpus": "8",
    "model": "Qwen3-235B-A22B",
    "precision": "fp8",
    "framework": "vllm 0.12.0",
    "date": "2026-01",
    "scenario": "closed loop",
    "spec_decoding": "none",
    "disaggregated": "0",
    "isl_tokens": "1024",
    "osl_tokens": "1024",
    "concurrency": "64",
    "tp": "8",
    "pp": "1",
    "ep": "8",
    "dp_attention": "1",
    "output_tput_tok_s_per_gpu": "400",
    "value_kind": "measured",
}
TRAINED = dict(zip(HEADER.split(","), OWN.split(","), strict=True)) | {
    "source_title": "a run with Megatron-LM",
    "activation_recompute": "selective",
    "sequence_parallel": "yes",
}


def predict(tmp_path, plain, *changes):
    path = tmp_path / "own.csv"
    rows = [plain | change for change in changes]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return document("validate", path, "--rows")


def predictions(tmp_path, plain, *changes):
    return [row["predicted"] for row in predict(tmp_path, plain, *changes)["rows"]]


def held_by(row, variant_values):
    """Whether a row's range is that of what others say."""
    # None: no such plan
    possible_values = [value for value in (*variant_values, row["predicted"]) if value is not None]
    assert len(possible_values) > 2
    return (row["low"], row["high"]) == pytest.approx(
        (min(possible_values), max(possible_values)), rel=1e-9
    )


@pytest.mark.parametrize("plain", [SERVED, TRAINED])
def test_a_row_that_says_all_has_no_range(tmp_path, plain):
    done = predict(tmp_path, plain, {})
    (row,) = done["rows"]
    assert row["unstated"] == []
    assert row["low"] == row["predicted"] == row["high"]
    assert done["ranges"] == {"n": 0, "inside": 0, "median_width": None}


def test_groups_of_experts_that_nobody_states(tmp_path):
    (row,) = predict(tmp_path, SERVED, {"ep": ""})["rows"]
    assert row["unstated"] == ["ep"]
    assert held_by(row, predictions(tmp_path, SERVED, {"ep": "1"}, {"ep": "8"}))
    assert row["high"] > 1.02 * row["low"]


def test_tensor_parallelism_that_nobody_states(tmp_path):
    variants = [
        {"dp_attention": groups, "ep": experts} for groups in ("1", "8") for experts in ("1", "8")
    ]
    (row,) = predict(tmp_path, SERVED, {"tp": "", "dp_attention": "", "ep": ""})["rows"]
    assert row["unstated"] == ["tp", "ep"]
    assert held_by(row, predictions(tmp_path, SERVED, *variants))


def test_a_dense_model_has_no_experts_to_spread(tmp_path):
    (row,) = predict(tmp_path, SERVED, {"model": "Llama-3.3-70B", "ep": "", "dp_attention": ""})[
        "rows"
    ]
    assert (row["unstated"], row["low"]) == ([], row["high"])


def test_the_engine_that_nobody_states(tmp_path):
    (row,) = predict(tmp_path, SERVED, {"framework": ""})["rows"]
    assert row["unstated"] == ["framework"]
    assert held_by(
        row,
        predictions(
            tmp_path, SERVED, *({"framework": name} for name in ("trtllm", "sglang", "vllm"))
        ),
    )


def test_formats_and_month_that_nobody_states(tmp_path):
    (row,) = predict(
        tmp_path, SERVED, {"precision": "", "date": "2025 (undated)", "framework": "vllm"}
    )["rows"]
    assert row["unstated"] == ["precision", "date"]
    # an H200 has no peak for four bits; software of the first and of the last day of the year
    variants = [
        {"precision": text, "date": date, "framework": "vllm"}
        for text in ("bf16", "fp8")
        for date in ("2025-01-01", "2025-12-31")
    ]
    assert held_by(row, predictions(tmp_path, SERVED, *variants))


def test_variants_that_do_not_fit_are_left_out(tmp_path):
    # 235 G of weights in 16 bits do not fit two chips of 141 GB, in 8 they do
    tight = {
        "n_gpus": "2",
        "tp": "2",
        "ep": "",
        "concurrency": "4",
    }
    wide, row, narrow = predict(
        tmp_path, SERVED, *(tight | {"precision": text} for text in ("bf16", "", "fp8"))
    )["rows"]
    # what nothing states is the checkpoint's own 16 bits
    assert wide["skipped"] == row["skipped"] == "unsupported: the plan does not fit memory"
    assert wide["low"] is row["low"] is None
    assert narrow["low"] < narrow["high"]


def test_the_summary_counts_what_was_measured_inside(tmp_path):
    (row,) = predict(tmp_path, SERVED, {"ep": ""})["rows"]
    middle = (row["low"] * row["high"]) ** 0.5
    rows = [
        {"ep": "", "output_tput_tok_s_per_gpu": repr(value)}
        for value in (middle, row["low"] * 0.99, row["high"] * 1.01)
    ]
    done = predict(tmp_path, SERVED, *rows, {})
    assert (done["scored"], done["ranges"]["n"], done["ranges"]["inside"]) == (4, 3, 1)
    assert done["ranges"]["median_width"] == pytest.approx(row["high"] / row["low"])
    table = tco("validate", tmp_path / "own.csv").stdout
    assert "1 of these measurements lie inside it" in " ".join(table.split())


def test_the_point_of_a_training_row_is_the_quickest_of_its_plans(tmp_path):
    (row,) = predict(tmp_path, TRAINED, {"activation_recompute": ""})["rows"]
    assert row["unstated"] == ["activation_recompute"]
    variant_values = [
        value
        for value in predictions(
            tmp_path,
            TRAINED,
            *({"activation_recompute": text} for text in ("none", "selective", "full")),
        )
        if value
    ]
    assert len(variant_values) >= 2
    assert row["low"] == row["predicted"] == pytest.approx(min(variant_values))
    assert row["high"] >= max(variant_values) * (1 - 1e-9)


def test_lengths_and_engine_of_a_training_row(tmp_path):
    blank = {
        "seq_len": "",
        "source_title": "",
        "step_time_s": "",
        "tokens_s_per_accelerator": "8000",
    }
    (row,) = predict(tmp_path, TRAINED, blank)["rows"]
    assert row["unstated"] == ["seq_len", "framework"]
    variants = [
        blank | {"seq_len": length, "sharding": f"ZeRO-1 {engine}"}
        for length in ("2048", "4096", "8192")
        for engine in ("megatron", "maxtext")
    ]
    assert held_by(row, predictions(tmp_path, TRAINED, *variants))


# ---------------------------------------------------------------- offline
def test_offline_is_the_batch_that_memory_holds(tmp_path):
    waiting = {"concurrency": "", "scenario": "offline max throughput"}
    done = predict(
        tmp_path, SERVED, {"concurrency": "offline"}, {"concurrency": "1000000"}, waiting
    )
    offline, crowded, waiting_row = done["rows"]
    assert "workload.offline=1" in offline["command"]
    assert "workload.concurrency" not in offline["command"]
    # what waits beyond the memory changes nothing
    assert offline["predicted"] == pytest.approx(crowded["predicted"], rel=1e-6)
    assert offline["predicted"] == waiting_row["predicted"]
    # a batch that nobody states is no measure of the step: such rows have a score of their own
    assert (done["scored"], done["offline"]["n"]) == (1, 2)
    assert done["offline"]["median_ape"] == pytest.approx(abs(offline["predicted"] / 400 - 1))
    assert offline["error"] == pytest.approx(offline["predicted"] / 400 - 1)


OFFLINE = ("--set", "workload.model=qwen3-235b-a22b", "--set", "workload.offline=1")
PLAN = ("--plan", "chips=8,tp=8,ep=8")


def test_stated_plan_offline_runs_the_batch_that_memory_holds():
    """A stated plan runs the batch that memory holds: more memory gives more tokens.

    No target speed binds.
    """
    sizes = (("--set", f"parts.h200-sxm.hbm_capacity={size} GB") for size in (100, 141))
    small, large = (
        document(
            "perf", "h200-sxm", *PLAN, *OFFLINE, *size, "--set", "parts.h200-sxm.scale_up_domain=8"
        )
        for size in sizes
    )
    assert large["plan"]["batch"] > 1.5 * small["plan"]["batch"]
    rates = [
        offline_document["metrics"]["output_tokens_per_s_per_chip"]
        for offline_document in (small, large)
    ]
    assert rates[1] > rates[0]
    assert large["metrics"]["tokens_per_s_per_user"] < 50  # what the workload asks for
    searched = document("perf", "h200-sxm", *OFFLINE, "--set", "parts.h200-sxm.scale_up_domain=8")
    assert searched["metrics"]["output_tokens_per_s_per_chip"] >= rates[1] * (1 - 1e-9)


def test_offline_and_a_number_of_requests_exclude_each_other():
    done = tco("perf", "h200-sxm", "--set", "workload.offline=1", "--set", "workload.concurrency=8")
    assert done.exit_code == 3
    assert "workload.concurrency beside workload.offline" in " ".join(done.stderr.split())


def test_engines_that_keep_room_for_answers_run_fewer():
    """An engine that reserves memory for whole answers holds fewer, by the ratio of the contexts.

    TensorRT-LLM starts the requests that it can end without a pause.
    """
    lengths = ("--set", "workload.input_tokens=1024", "--set", "workload.output_tokens=8192")
    shares = (("--set", f"performance.trtllm.answer_reserved={share}") for share in (1, 0.5))
    reserved_batch, grown = (
        document("perf", "h200-sxm", *PLAN, *OFFLINE, *lengths, *share)["plan"]["batch"]
        for share in shares
    )
    assert grown / reserved_batch == pytest.approx((1024 + 8192) / (1024 + 4096), rel=0.02)
