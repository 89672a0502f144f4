"""Known deployments are asked as the program plans them, per chip of each pool."""

from __future__ import annotations

import shlex

import pytest

from tests.cli import document, tco
from tests.validation.today import table_of

FILE = "deployments"


@pytest.fixture(scope="module")
def scored():
    return document("validate", FILE, "--kind", "deployments", "--rows")


def test_every_deployment_is_scored(scored):
    assert scored["kind"] == "deployments"
    assert (scored["scored"], scored["skipped"]) == (scored["n"], {})
    targets = {row["target"] for row in scored["rows"]}
    assert targets == {"decode_tput_tok_s_per_decode_gpu", "prefill_tput_tok_s_per_prefill_gpu"}


def test_rate_of_a_pool_is_per_chip_of_that_pool(scored):
    for row in (scored["rows"][0], scored["rows"][1]):
        answer = document(*shlex.split(row["command"])[1:])
        share = answer["prefill_share"]
        decode = row["target"].startswith("decode")
        pool = 1 - share if decode else share
        metric = "output_tokens_per_s_per_chip" if decode else "input_tokens_per_s_per_chip"
        assert row["predicted"] == pytest.approx(answer["metrics"][metric] / pool, rel=1e-9)


def test_two_pools_of_one_plan_carry_the_same_requests(scored):
    decode, prefill = (document(*shlex.split(row["command"])[1:]) for row in scored["rows"][:2])
    tokens = [answer["metrics"]["input_tokens_per_s_per_chip"] for answer in (decode, prefill)]
    assert tokens[0] == pytest.approx(tokens[1], rel=1e-9)


def test_fleet_lengths_follow_from_what_its_operator_printed():
    row = table_of(FILE).query("source_id == 'deepseek_open_infra'").iloc[0]
    prompts_over_answers, mean_context, cached = 608 / 168, 4989, 342 / 608
    answer = mean_context / (prompts_over_answers + 0.5)
    assert row.osl_tokens == pytest.approx(answer, rel=2e-3)
    assert row.isl_tokens == pytest.approx(prompts_over_answers * answer, rel=2e-3)
    assert row.cache_hit == pytest.approx(cached, rel=2e-3)


def test_software_of_a_deployment_is_of_its_month_unless_set(scored):
    assert "workload.software=2025-05" in scored["rows"][0]["command"]
    best = document("validate", FILE, "--rows", "--set", "workload.software=best")
    pairs = zip(scored["rows"], best["rows"], strict=True)
    assert all(later["predicted"] > month["predicted"] for month, later in pairs)


@pytest.mark.parametrize("setting", ["workload.as_deployed=1", "workload.attention=nope"])
def test_setting_that_rows_state_themselves_is_refused(setting):
    done = tco("validate", "inference", "--set", setting)
    assert done.exit_code == 2
    assert (
        f"--set {setting.partition('=')[0]}: every row of inference states its own" in done.stderr
    )


def test_total_rate_of_a_frontier_is_of_prompts_and_answers():
    (first, *_) = document("validate", "frontiers", "--rows")["rows"]
    metrics = document(*shlex.split(first["command"])[1:])["metrics"]
    rates = (metrics["output_tokens_per_s_per_chip"], metrics["input_tokens_per_s_per_chip"])
    assert first["predicted"] == pytest.approx(sum(rates), rel=1e-9)
