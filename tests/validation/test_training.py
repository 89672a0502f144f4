"""Predictions of training runs: columns of a row, reasons to skip it, and published steps."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from tco import DataError
from tco.validation.training_rows import Reader, training_targets, usable_domain
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.validation.today import precisions, predicted, rows_of, table_of

PUBLISHED = """\
source_id,date,accelerator,n_accelerators,model,precision,seq_len,global_batch_seqs,\
micro_batch_seqs,tp,pp,vp,cp,ep,activation_recompute,sharding,step_time_s,value_kind
megatron_2021,2021-04,A100 SXM 80GB,32,GPT 1.7B,fp16,2048,512,,1,1,,1,1,full,,3.52802,measured
megatron_2021,2021-04,A100 SXM 80GB,64,GPT 3.6B,fp16,2048,512,,2,1,,1,1,full,,3.69741,measured
megatron_2021,2021-04,A100 SXM 80GB,128,GPT 7.5B,fp16,2048,512,,4,1,,1,1,full,,3.69633,measured
"""


def made(text, tmp_path, **cells):
    path = tmp_path / "training.csv"
    path.write_text(text)
    return predicted("training", table_of(path).assign(**cells))


def test_published_steps_are_met(tmp_path):
    predictions = made(PUBLISHED, tmp_path)
    assert list(predictions.skip) == ["", "", ""]
    assert predictions.predicted == pytest.approx(predictions.target, rel=0.10)


def test_the_step_comes_before_the_rates():
    nan = float("nan")
    table = pd.DataFrame(
        {
            "global_batch_seqs": [8.0, 8.0, 8.0, 8.0, 8.0],
            "step_time_s": [2.0, nan, nan, nan, nan],
            "tokens_s_per_accelerator": [10.0, 20.0, nan, nan, nan],
            "model_tflops_per_accelerator": [100.0, 200.0, 300.0, nan, nan],
            "hw_tflops_per_accelerator": [1.0, 2.0, 3.0, 400.0, nan],
        }
    )
    values, names = training_targets(rows_of(table))
    assert values[:4].tolist() == [2.0, 20.0, 300.0, 400.0]
    assert np.isnan(values[4])
    assert list(names) == [
        "step_time_s",
        "tokens_s_per_accelerator",
        "model_tflops_per_accelerator",
        "hw_tflops_per_accelerator",
        "",
    ]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"model": "GPT of nobody"}, "unknown-model"),
        ({"accelerator": "Abacus 3"}, "unknown-accelerator"),
        ({"value_kind": "SUSPECT measured"}, "suspect"),
        ({"value_kind": "CLAIM, not a measurement"}, "claim"),
        ({"step_time_s": float("nan")}, "unstated result"),
        ({"n_accelerators": float("nan")}, "unstated accelerators"),
        ({"tp": 3.0}, "unsupported: groups do not divide the accelerators"),
    ],
)
def test_a_row_that_lacks_something_is_skipped_with_its_reason(cells, reason, tmp_path):
    predictions = made(PUBLISHED, tmp_path, **cells)
    assert {
        text.split(": ")[0] if reason.startswith("unknown") else text for text in predictions.skip
    } == {reason}
    assert np.isnan(predictions.predicted).all()


def test_a_text_in_a_number_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match=":2: step_time_s is 'fast'"):
        made(PUBLISHED.replace("3.52802", "fast"), tmp_path)


def test_the_same_run_by_step_and_by_tokens_is_one_error(tmp_path):
    by_step = made(PUBLISHED, tmp_path)
    tokens = 512 * 2048 / by_step.target / np.array([32, 64, 128])
    nothing = np.full(3, np.nan)
    by_tokens = made(PUBLISHED, tmp_path, step_time_s=nothing, tokens_s_per_accelerator=tokens)
    assert set(by_tokens.target_name) == {"tokens_s_per_accelerator"}
    assert by_tokens.target / by_tokens.predicted == pytest.approx(
        by_step.predicted / by_step.target, rel=1e-9
    )


@pytest.mark.parametrize(
    ("cells", "recomputed", "stated"),
    [
        ({}, "selective|partial", False),
        ({"activation_recompute": "full"}, "full", True),
        ({"precision": "NVFP4"}, "", False),
        ({"source_title": "another publication"}, "", False),
    ],
)
def test_recomputation_is_that_of_the_row_or_of_the_recipe_of_its_publication(
    cells, recomputed, stated
):
    row = {
        "source_title": "NVIDIA Megatron-Bridge performance summary, NeMo 26.04 container",
        "model": "GPT OSS 120B",
        "accelerator": "GB200 NVL72",
        "precision": "BF16",
        "activation_recompute": "",
        "n_accelerators": 64.0,
    }
    reader = Reader(rows_of(pd.DataFrame([row | cells])))
    fixed = reader.fixed(0, 1, 64)
    assert fixed.get("recompute", "") == recomputed
    assert ("activation_recompute" in reader.unstated(0, fixed)) != stated


def test_adapters_train_faster_than_all_weights(tmp_path):
    row = (
        PUBLISHED.splitlines()[0]
        + "\nx,2025-01,H100 SXM,64,{},bf16,4096,64,1,8,1,,1,1,selective,ZeRO-1,10,measured\n"
    )
    full_step, adapters = (
        float(made(row.format(name), tmp_path).predicted[0])
        for name in ("Llama-2-70B", "Llama-2-70B LoRA")
    )
    assert 0.5 * full_step < adapters < full_step


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("MXFP8", ("mxfp8", "mxfp8")),
        ("NVFP4", ("nvfp4", "nvfp4")),
        ("fp8 hybrid", ("fp8", "fp8")),
        ("amp_fp8", ("fp8", "fp8")),
        ("float8", ("fp8", "fp8")),
        ("int8/bf16 (typical)", ("int8", "bf16")),
        ("Autocast:BF16+SR", ("bf16", "bf16")),
        ("fp16", ("bf16", "bf16")),
    ],
)
def test_formats_of_a_row_are_those_of_its_text(text, forms):
    forward, *backward = precisions(CATALOGUE, text) or ("bf16",)
    assert (forward, *(backward or [forward])) == forms


def test_racks_of_72_lend_64_to_jobs_that_72_does_not_divide():
    assert [usable_domain(72, chips) for chips in (8, 64, 72, 144, 256)] == [72, 64, 72, 72, 64]


def fixed_axes_of(text, tmp_path, **cells):
    path = tmp_path / "training.csv"
    path.write_text(text)
    reader = Reader(rows_of(table_of(path).assign(**cells)))
    return reader.fixed(0, 1, 32)


def test_what_a_row_states_fixes_its_plan(tmp_path):
    fixed_axes = fixed_axes_of(
        PUBLISHED,
        tmp_path,
        vp=2.0,
        pp=8.0,
        micro_batch_seqs=1.0,
        activation_recompute="selective + sequence parallel",
    )
    assert fixed_axes["interleave"] == "2"
    assert (fixed_axes["pp"], fixed_axes["micro_batch"], fixed_axes["schedule"]) == (
        "8",
        "1",
        "interleaved",
    )
    assert (
        fixed_axes["recompute"],
        fixed_axes["sequence_parallel"],
        fixed_axes["optimizer_offload"],
    ) == (
        "selective",
        "yes",
        "no",
    )
    open_axes = fixed_axes_of(PUBLISHED, tmp_path, pp=8.0, activation_recompute="")
    assert "interleave" not in open_axes
    assert "recompute" not in open_axes


def test_a_publication_that_prints_interleaves_leaves_none_out(tmp_path):
    rows = PUBLISHED.replace("full,,3.69741", "full,,3.69741").replace(
        ",,2,1,,1,1,full", ",,2,1,4,1,1,full"
    )
    assert fixed_axes_of(rows, tmp_path, pp=8.0)["interleave"] == "1"


def test_fewer_sequences_than_ranks_are_no_plan(tmp_path):
    predictions = made(PUBLISHED, tmp_path, global_batch_seqs=8.0)
    assert set(predictions.skip) == {"unsupported: fewer sequences than ranks"}


def test_a_plan_that_does_not_fit_is_not_predicted(tmp_path):
    predictions = made(PUBLISHED.replace("GPT 1.7B", "GPT 1008.0B"), tmp_path)
    assert predictions.skip[0].startswith("unsupported: no plan fits, the leanest needs")
    assert np.isnan(predictions.predicted[0])


def test_where_the_batch_is_unstated_the_rate_is_scored(tmp_path):
    predictions = made(
        PUBLISHED,
        tmp_path,
        global_batch_seqs=float("nan"),
        tokens_s_per_accelerator=np.array([9287.93, 4431.21, 2216.25]),
    )
    assert set(predictions.target_name) == {"tokens_s_per_accelerator"}
    assert predictions.predicted == pytest.approx(predictions.target, rel=0.10)


def answer(command, key):
    value = document(*shlex.split(command)[1:])
    for step in key.split("/"):
        value = value[step]
    return value


@pytest.mark.thorough
def test_every_prediction_is_an_answer_of_the_command_line():
    predictions = predicted("training", table_of("training"))
    scored = np.flatnonzero(predictions.skip == "")
    assert len(scored) >= 373
    for row in scored[::12]:
        assert answer(predictions.command[row], predictions.key[row]) * predictions.scale[
            row
        ] == pytest.approx(predictions.predicted[row], rel=1e-9), predictions.command[row]


def test_the_same_model_by_its_figures_is_the_same_prediction(tmp_path):
    """An unknown name with the columns of GPT 1.7B gives the prediction of GPT 1.7B.

    The columns are layers, hidden size, heads and vocabulary.
    """
    named, stated = (
        made(PUBLISHED, tmp_path),
        made(
            PUBLISHED,
            tmp_path,
            model="house GPT",
            layers=24.0,
            hidden=2304.0,
            heads=24.0,
            ffn=9216.0,
            vocab=51200.0,
        ),
    )
    assert stated.predicted[0] == pytest.approx(named.predicted[0], rel=0.01)
    assert "workload.model=layers=24,hidden=2304" in stated.command[0]
    assert answer(stated.command[0], stated.key[0]) * stated.scale[0] == pytest.approx(
        stated.predicted[0], rel=1e-9
    )
