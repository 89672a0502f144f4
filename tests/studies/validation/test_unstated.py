"""Rows that leave something unstated have a range: that of the rows which say it, each asked for alone."""

import csv

import pytest

from tests.cli import document, tco
from tests.studies.validation.test_one_engine import HEADER, OWN

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


def asked(tmp_path, plain, *changes):
    path = tmp_path / "own.csv"
    rows = [plain | change for change in changes]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return document("validate", path, "--rows")


def predictions(tmp_path, plain, *changes):
    return [row["predicted"] for row in asked(tmp_path, plain, *changes)["rows"]]


def held_by(row, said):
    """Whether a row's range is that of what others say."""
    found = [value for value in (*said, row["predicted"]) if value is not None]  # None: no such plan
    assert len(found) > 2
    return (row["low"], row["high"]) == pytest.approx((min(found), max(found)), rel=1e-9)


@pytest.mark.parametrize("plain", [SERVED, TRAINED])
def test_a_row_that_says_all_has_no_range(tmp_path, plain):
    done = asked(tmp_path, plain, {})
    (row,) = done["rows"]
    assert row["unstated"] == []
    assert row["low"] == row["predicted"] == row["high"]
    assert done["ranges"] == {"n": 0, "inside": 0, "median_width": None}


def test_groups_of_experts_that_nobody_states(tmp_path):
    (row,) = asked(tmp_path, SERVED, {"ep": ""})["rows"]
    assert row["unstated"] == ["ep"]
    assert held_by(row, predictions(tmp_path, SERVED, {"ep": "1"}, {"ep": "8"}))
    assert row["high"] > 1.02 * row["low"]


def test_tensor_parallelism_that_nobody_states(tmp_path):
    said = [{"dp_attention": groups, "ep": experts} for groups in ("1", "8") for experts in ("1", "8")]
    (row,) = asked(tmp_path, SERVED, {"tp": "", "dp_attention": "", "ep": ""})["rows"]
    assert row["unstated"] == ["tp", "ep"]
    assert held_by(row, predictions(tmp_path, SERVED, *said))


def test_a_dense_model_has_no_experts_to_spread(tmp_path):
    (row,) = asked(tmp_path, SERVED, {"model": "Llama-3.3-70B", "ep": "", "dp_attention": ""})["rows"]
    assert (row["unstated"], row["low"]) == ([], row["high"])


def test_the_engine_that_nobody_states(tmp_path):
    (row,) = asked(tmp_path, SERVED, {"framework": ""})["rows"]
    assert row["unstated"] == ["framework"]
    assert held_by(row, predictions(tmp_path, SERVED, *({"framework": name} for name in ("trtllm", "sglang", "vllm"))))


def test_formats_and_age_that_nobody_states(tmp_path):
    (row,) = asked(tmp_path, SERVED, {"precision": "", "date": "", "framework": "vllm"})["rows"]
    assert row["unstated"] == ["precision", "date"]
    # an H200 has no peak for four bits; software of its release month against such as has grown up
    said = [{"precision": text, "date": date, "framework": "vllm"} for text in ("bf16", "fp8") for date in ("2024-03", "")]
    assert held_by(row, predictions(tmp_path, SERVED, *said))


def test_variants_that_do_not_fit_are_left_out(tmp_path):
    tight = {"n_gpus": "2", "tp": "2", "ep": "", "concurrency": "4"}  # 235 G of weights in 16 bits do not fit two chips of 141 GB, in 8 they do
    wide, row, narrow = asked(tmp_path, SERVED, *(tight | {"precision": text} for text in ("bf16", "", "fp8")))["rows"]
    assert wide["skipped"] == row["skipped"] == "unsupported: the plan does not fit memory"  # what nothing states is the checkpoint's own 16 bits
    assert wide["low"] is row["low"] is None
    assert narrow["low"] < narrow["high"]


def test_the_summary_counts_what_was_measured_inside(tmp_path):
    (row,) = asked(tmp_path, SERVED, {"ep": ""})["rows"]
    middle = (row["low"] * row["high"]) ** 0.5
    rows = [{"ep": "", "output_tput_tok_s_per_gpu": repr(value)} for value in (middle, row["low"] * 0.99, row["high"] * 1.01)]
    done = asked(tmp_path, SERVED, *rows, {})
    assert (done["scored"], done["ranges"]["n"], done["ranges"]["inside"]) == (4, 3, 1)
    assert done["ranges"]["median_width"] == pytest.approx(row["high"] / row["low"])
    table = tco("validate", tmp_path / "own.csv").stdout
    assert "3 rows leave something unstated: 1 were measured inside" in " ".join(table.split())


def test_the_point_of_a_training_row_is_the_quickest_of_its_plans(tmp_path):
    (row,) = asked(tmp_path, TRAINED, {"activation_recompute": ""})["rows"]
    assert row["unstated"] == ["activation_recompute"]
    said = [value for value in predictions(tmp_path, TRAINED, *({"activation_recompute": text} for text in ("none", "selective", "full"))) if value]
    assert len(said) >= 2
    assert row["low"] == row["predicted"] == pytest.approx(min(said))
    assert row["high"] >= max(said) * (1 - 1e-9)


def test_lengths_and_engine_of_a_training_row(tmp_path):
    blank = {"seq_len": "", "source_title": "", "step_time_s": "", "tokens_s_per_accelerator": "8000"}
    (row,) = asked(tmp_path, TRAINED, blank)["rows"]
    assert row["unstated"] == ["seq_len", "framework"]
    said = [blank | {"seq_len": length, "sharding": f"ZeRO-1 {engine}"} for length in ("2048", "4096", "8192") for engine in ("megatron", "maxtext")]
    assert held_by(row, predictions(tmp_path, TRAINED, *said))


# ---------------------------------------------------------------- offline
def test_offline_is_the_batch_that_memory_holds(tmp_path):
    rows = asked(tmp_path, SERVED, {"concurrency": "offline"}, {"concurrency": "1000000"}, {"concurrency": "", "scenario": "offline max throughput"})[
        "rows"
    ]
    offline, crowded, said = rows
    assert "workload.offline=1" in offline["command"]
    assert "workload.concurrency" not in offline["command"]
    assert offline["predicted"] == pytest.approx(crowded["predicted"], rel=1e-6)  # what waits beyond the memory changes nothing
    assert offline["predicted"] == said["predicted"]
