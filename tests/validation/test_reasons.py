"""A row that is not scored says which column would do."""

import pandas as pd
import pytest

from tests.cli import document

SERVING = {
    "date": "2026-06",
    "accelerator": "H100",
    "model": "llama-2-7b",
    "isl_tokens": 1024.0,
    "osl_tokens": 128.0,
    "concurrency": 4.0,
    "n_gpus": 8.0,
    "disaggregated": "0",
    "total_tput_tok_s_per_gpu": 500.0,
}
BLANK = None


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"osl_tokens": BLANK}, "unstated lengths: osl_tokens"),
        ({"isl_tokens": BLANK, "osl_tokens": BLANK}, "unstated lengths: isl_tokens, osl_tokens"),
        ({"concurrency": 0.0}, "unstated concurrency: concurrency"),
        ({"n_gpus": BLANK}, "unstated workers: n_gpus"),
        ({"date": BLANK}, "unstated date: date"),
        ({"date": "undated"}, "unstated date: date"),
        (
            {
                "disaggregated": "True",
                "prefill_gpus": 8.0,
                "prefill_workers": 2.0,
                "decode_gpus": 8.0,
                "prefill_dp": 1,
                "decode_dp": 1,
            },
            "unstated workers: decode_workers",
        ),
        (
            {
                "disaggregated": "True",
                "prefill_gpus": 4.0,
                "prefill_workers": 2.0,
                "decode_gpus": 4.0,
                "decode_workers": 2.0,
            },
            "unstated attention parallelism: prefill_dp, decode_dp",
        ),
        (
            {"total_tput_tok_s_per_gpu": BLANK},
            "unstated result: none of total_tput_tok_s_per_gpu, output_tput_tok_s_per_gpu, ",
        ),
        ({"accelerator": "H101"}, "unknown-accelerator: 'H101'"),
        (
            {"model": "ours"},
            "unknown-model: neither the name 'ours' nor its shape is known; missing: layers, "
            "hidden, heads, ffn, vocab",
        ),
        ({"concurrency": -1.0}, "suspect: negative concurrency"),
        ({}, ""),
    ],
)
def test_a_reason_names_the_column(tmp_path, cells, says):
    pd.DataFrame([{**SERVING, **cells}]).to_csv(tmp_path / "rows.csv", index=False)
    (row,) = document("validate", tmp_path / "rows.csv", "--rows")["rows"]
    assert row["skipped"] == says or (says.endswith(" ") and row["skipped"].startswith(says))


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
    header = (
        "date,accelerator,n_gpus,model,precision,framework,concurrency,tp,ep,isl_tokens,osl_tokens,"
        "total_tput_tok_s_per_gpu\n"
    )
    path.write_text(
        f"{header}2026-06,H200 SXM,8,Llama-3.1-70B,fp8,vllm,16,8,1,{cells}\n", encoding="utf-8"
    )
    (row,) = document("validate", path, "--rows")["rows"]
    assert (row["skipped"], row["predicted"], row["error"]) == (reason, None, None)
