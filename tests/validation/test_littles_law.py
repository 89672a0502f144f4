"""Serving rows that contradict themselves are suspect, whoever printed them."""

import numpy as np
import pandas as pd
import pytest

from tests.validation.today import predicted, table_of

TOLERANCE = 1.4

# 8 chips, 100 requests: a request takes 0.5 + 100 x 0.02 = 2.5 s, so that 40 requests a second are
# in flight
ROW = {
    "concurrency": 100,
    "n_gpus": 8,
    "isl_tokens": 900,
    "osl_tokens": 101,
    "ttft_ms_mean": 500,
    "tpot_ms_mean": 20,
}
RATE = 40 * 101 / 8


def breaks(**row):
    table = pd.DataFrame([{**ROW, **row}], dtype=float).assign(
        accelerator="H100", model="llama-2-7b"
    )
    return predicted("inference", table).skip[0].startswith("suspect: breaks Little's law")


@pytest.mark.parametrize("column_name", ["output_tput_tok_s_per_gpu", "total_tput_tok_s_per_gpu"])
@pytest.mark.parametrize(
    ("factor", "wrong"),
    [(1, False), (1.3, False), (1.5, True), (0.8, False), (0.7, True), (0.1, True)],
)
def test_rate_and_latency_give_the_concurrency(column_name, factor, wrong):
    tokens = 1001 / 101 if column_name.startswith("total") else 1
    assert breaks(**{column_name: RATE * tokens * factor}) is wrong


def test_medians_and_interactivity_stand_in_for_means():
    assert not breaks(
        output_tput_tok_s_per_gpu=RATE,
        ttft_ms_mean=np.nan,
        ttft_ms_median=500,
        tpot_ms_mean=np.nan,
        interactivity_tok_s_per_user=50,
    )
    assert breaks(
        output_tput_tok_s_per_gpu=RATE / 2,
        ttft_ms_mean=np.nan,
        ttft_ms_median=500,
        tpot_ms_mean=np.nan,
        tpot_ms_median=20,
    )


def test_without_a_time_to_first_token_there_may_be_too_many_requests_only():
    assert not breaks(output_tput_tok_s_per_gpu=RATE / 4, ttft_ms_mean=np.nan)
    assert breaks(output_tput_tok_s_per_gpu=RATE * 2, ttft_ms_mean=np.nan)


@pytest.mark.parametrize(
    "name", ["concurrency", "n_gpus", "osl_tokens", "tpot_ms_mean", "output_tput_tok_s_per_gpu"]
)
def test_what_is_unstated_contradicts_nothing(name):
    assert not breaks(**{"output_tput_tok_s_per_gpu": RATE * 10, name: np.nan})


def test_output_rates_of_separate_pools_are_not_read():
    assert not breaks(output_tput_tok_s_per_gpu=RATE * 3, prefill_gpus=4)
    assert breaks(output_tput_tok_s_per_gpu=RATE, total_tput_tok_s_per_gpu=RATE, prefill_gpus=4)


def test_the_tolerance_lies_in_a_gap_of_the_shipped_rows():
    table = table_of("inference")
    is_trusted = ~table["value_kind"].fillna("").str.upper().str.startswith("SUSPECT").to_numpy()
    prompt, answer = table["isl_tokens"], table["osl_tokens"]
    # printed per chip of one pool or of both
    output = table["output_tput_tok_s_per_gpu"].where(~(table["prefill_gpus"] > 0))
    rate = (
        table["n_gpus"]
        * (table["total_tput_tok_s_per_gpu"] * answer / (prompt + answer)).fillna(output)
        / answer
    )
    token_time = (
        table["tpot_ms_mean"]
        .fillna(table["tpot_ms_median"])
        .fillna(1e3 / table["interactivity_tok_s_per_user"])
    )
    time = table["ttft_ms_mean"].fillna(table["ttft_ms_median"]) + (answer - 1) * token_time
    ratio = (rate * time / 1e3 / table["concurrency"].astype(float)).to_numpy()[is_trusted]
    ratio = ratio[~np.isnan(ratio)]
    outside = (ratio > TOLERANCE) | (ratio < 1 / TOLERANCE)
    assert (len(ratio), int(outside.sum())) == (1281, 36)
    assert not np.any((ratio > 0.68) & (ratio < 0.73))
    assert ratio.max() < 1.17
    assert np.mean(np.abs(np.log(ratio)) < np.log(1.15)) > 0.93
