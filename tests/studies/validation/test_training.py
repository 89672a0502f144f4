"""Predictions of training runs: what is read from a row, why a row is skipped, and published steps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tco.catalog import load_catalogue
from tco.chain.inputs import plain_inputs
from tco.foundation.errors import DataError
from tco.foundation.values import as_number
from tco.studies.validation.measured import read_measured, texts
from tco.studies.validation.specifications import Specifications
from tco.studies.validation.training import predict
from tco.studies.validation.training_rows import format_of, interleaves, targets, usable_domain

CATALOGUE = load_catalogue()
PUBLISHED = """\
source_id,date,accelerator,n_accelerators,model,precision,seq_len,global_batch_seqs,micro_batch_seqs,tp,pp,vp,cp,ep,activation_recompute,sharding,step_time_s,value_kind
megatron_2021,2021-04,A100 SXM 80GB,32,GPT 1.7B,fp16,2048,512,,1,1,,1,1,full,,3.52802,measured
megatron_2021,2021-04,A100 SXM 80GB,64,GPT 3.6B,fp16,2048,512,,2,1,,1,1,full,,3.69741,measured
megatron_2021,2021-04,A100 SXM 80GB,128,GPT 7.5B,fp16,2048,512,,4,1,,1,1,full,,3.69633,measured
"""


def made(text, tmp_path, **cells):
    path = tmp_path / "training.csv"
    path.write_text(text)
    kind, table = read_measured(path)
    assert kind == "training"
    table = table.assign(**cells)
    values = plain_inputs(CATALOGUE, {}).values(as_number)
    return predict(table, Specifications(CATALOGUE, values, texts(table, "accelerator")))


def test_published_steps_are_met(tmp_path):
    found = made(PUBLISHED, tmp_path)
    assert list(found.skip) == ["", "", ""]
    assert found.predicted == pytest.approx(found.target, rel=0.10)


def test_the_step_comes_before_the_rates():
    nan = float("nan")
    table = pd.DataFrame(
        {
            "step_time_s": [2.0, nan, nan, nan, nan],
            "tokens_s_per_accelerator": [10.0, 20.0, nan, nan, nan],
            "model_tflops_per_accelerator": [100.0, 200.0, 300.0, nan, nan],
            "hw_tflops_per_accelerator": [1.0, 2.0, 3.0, 400.0, nan],
        }
    )
    values, names = targets(table)
    assert values[:4].tolist() == [2.0, 20.0, 300.0, 400.0]
    assert np.isnan(values[4])
    assert list(names) == ["step_time_s", "tokens_s_per_accelerator", "model_tflops_per_accelerator", "hw_tflops_per_accelerator", ""]


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
    found = made(PUBLISHED, tmp_path, **cells)
    assert set(found.skip) == {reason}
    assert np.isnan(found.predicted).all()


def test_a_text_in_a_number_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match=":2: step_time_s is 'fast'"):
        made(PUBLISHED.replace("3.52802", "fast"), tmp_path)


def test_the_same_run_by_step_and_by_tokens_is_one_error(tmp_path):
    by_step = made(PUBLISHED, tmp_path)
    tokens = 512 * 2048 / by_step.target / np.array([32, 64, 128])
    nothing = np.full(3, np.nan)
    by_tokens = made(PUBLISHED, tmp_path, step_time_s=nothing, tokens_s_per_accelerator=tokens)
    assert set(by_tokens.target_name) == {"tokens_s_per_accelerator"}
    assert by_tokens.target / by_tokens.predicted == pytest.approx(by_step.predicted / by_step.target, rel=1e-9)


def test_adapters_train_faster_than_all_weights(tmp_path):
    row = PUBLISHED.splitlines()[0] + "\nx,2025-01,H100 SXM,8,{},bf16,4096,8,1,4,1,,1,1,none,,10,measured\n"
    whole, adapters = (float(made(row.format(name), tmp_path).predicted[0]) for name in ("Llama-2-70B", "Llama-2-70B LoRA"))
    assert 0.5 * whole < adapters < whole


@pytest.mark.parametrize(
    ("text", "form"), [("MXFP8", "mxfp8"), ("NVFP4", "fp4"), ("fp8 hybrid", "fp8"), ("int8/bf16 (typical)", "fp8"), ("Autocast:BF16+SR", "bf16")]
)
def test_formats(text, form):
    assert format_of(text) == form


def test_racks_of_72_lend_64_to_jobs_that_72_does_not_divide():
    assert [usable_domain(72, chips) for chips in (64, 72, 144, 256)] == [64, 72, 144 // 2, 64]


def test_interleaves_follow_the_row_before_the_rule():
    assert interleaves(3.0, True, 4, 96, 8) == [3]
    assert interleaves(None, False, 4, 96, 8) == [1]
    assert interleaves(None, True, 4, 96, 8) == [1, 2, 3, 4, 5, 6, 8, 12]
