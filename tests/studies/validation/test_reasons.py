"""A row that is not scored says which column would do."""

import numpy as np
import pandas as pd
import pytest

from tco.studies.validation.run import WANTED, explained
from tests.cli import document
from tests.shipped import CATALOGUE

SERVING = {
    "accelerator": "H100",
    "model": "llama-2-7b",
    "isl_tokens": 1024.0,
    "osl_tokens": 128.0,
    "concurrency": 4.0,
    "n_gpus": 8.0,
    "disaggregated": "0",
}


def reason(kind, skip, **cells):
    return explained(pd.DataFrame([{**SERVING, **cells}]), np.array([skip], dtype=object), kind, CATALOGUE)[0]


@pytest.mark.parametrize(
    ("skip", "cells", "says"),
    [
        ("unstated lengths", {"osl_tokens": np.nan}, "unstated lengths: osl_tokens"),
        ("unstated lengths", {"isl_tokens": np.nan, "osl_tokens": np.nan}, "unstated lengths: isl_tokens, osl_tokens"),
        ("unstated concurrency", {"concurrency": 0.0}, "unstated concurrency: concurrency"),
        ("unstated workers", {"n_gpus": np.nan}, "unstated workers: n_gpus"),
        (
            "unstated workers",
            {"disaggregated": "True", "prefill_gpus": 8.0, "prefill_workers": 2.0, "decode_gpus": 8.0},
            "unstated workers: decode_workers",
        ),
        ("unstated speculative decoding", {"spec_decoding": "none"}, "unstated speculative decoding: spec_decoding"),
        ("unstated result", {}, "unstated result: none of total_tput_tok_s_per_gpu, output_tput_tok_s_per_gpu, "),
        ("unknown-accelerator", {"accelerator": "H101"}, "unknown-accelerator: 'H101'"),
        (
            "unknown-model",
            {"model": "ours"},
            "unknown-model: neither the name 'ours' nor its shape is known; missing: layers, hidden, heads, ffn, vocab",
        ),
        ("suspect: negative concurrency", {}, "suspect: negative concurrency"),
        ("", {}, ""),
    ],
)
def test_a_reason_names_the_column(skip, cells, says):
    found = reason("inference", skip, **cells)
    assert found == says or (says.endswith(" ") and found.startswith(says))


@pytest.mark.parametrize("skip", WANTED)
def test_every_reason_keeps_its_beginning(skip):
    found = reason("inference", skip)
    assert found.startswith(f"{skip}: ")
    assert found.removeprefix(f"{skip}: ")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("0,1024,100", "unstated lengths: isl_tokens"),
        ("1024,0,100", "unstated lengths: osl_tokens"),
        ("1024,1024,0", "suspect: zero total_tput_tok_s_per_gpu"),
        ("1024,1024,-1", "suspect: negative total_tput_tok_s_per_gpu"),
    ],
)
def test_what_no_run_can_be_is_not_scored(tmp_path, cells, reason):
    path = tmp_path / "rows.csv"
    header = "accelerator,n_gpus,model,precision,framework,concurrency,tp,ep,isl_tokens,osl_tokens,total_tput_tok_s_per_gpu\n"
    path.write_text(f"{header}H200 SXM,8,Llama-3.1-70B,fp8,vllm,16,8,1,{cells}\n", encoding="utf-8")
    (row,) = document("validate", path, "--rows")["rows"]
    assert (row["skipped"], row["predicted"], row["error"]) == (reason, None, None)
