"""First tokens under load: published ladders of rates, none of which anything was fitted to."""

import json

import numpy as np
import pytest

from tco.validation.open_loop import engine_for
from tco.validation.score import spearman
from tests.cli import tco
from tests.validation.today import rows_of, table_of, validated


def test_first_tokens_under_load_are_met():
    card = validated("open-loop").card
    first = card["by"]["target"]["ttft_s_mean"]
    assert first["n"] >= 15
    assert first["median_ape"] <= 0.25
    table, rows = table_of("open-loop"), validated("open-loop").rows
    by_lot = ((rows.target == "ttft_s_mean") & table.routing.str.contains("round robin")).to_numpy()
    assert by_lot.sum() >= 15
    assert spearman(rows.measured[by_lot].to_numpy(), rows.predicted[by_lot].to_numpy()) > 0.9


def test_no_rate_of_any_ladder_is_missed_by_far():
    card = validated("open-loop").card
    assert card["scored"] == 64
    assert card["median_ape"] <= 0.30
    assert card["p90_ape"] <= 1.0


@pytest.mark.parametrize(
    ("model", "target", "times"), [("gpt-oss-120b", "mean", 2), ("qwen3-32b", "p90", 10)]
)
def test_the_rate_at_which_waits_set_in_is_met(model, target, times):
    """Where the first token is first some times that of the lowest rate: within 15 %."""
    table, rows = table_of("open-loop"), validated("open-loop").rows
    ladder = ((table.model == model) & table.routing.str.contains("round robin")).to_numpy()
    assert set(rows.target[ladder]) == {f"ttft_s_{target}"}
    rate = table.offered_requests_per_s.to_numpy(float)[ladder]
    first = (rows[name].to_numpy(float)[ladder] for name in ("measured", "predicted"))
    knees = [
        float(np.interp(np.log(times), np.log(first_token_times / first_token_times[0]), rate))
        for first_token_times in first
    ]
    assert knees[1] == pytest.approx(knees[0], rel=0.15)


def test_a_router_that_knows_prefixes_takes_waits_away_where_it_was_measured_to():
    """Qwen3-32B from 20 requests/s on: tens of seconds by lot, less than half a second routed."""
    table, rows = table_of("open-loop"), validated("open-loop").rows
    late = ((table.model == "qwen3-32b") & (table.offered_requests_per_s >= 20)).to_numpy()
    routed = table.routing.str.contains("affinity").to_numpy()
    assert rows.predicted[late & routed].max() < 0.5
    assert rows.predicted[late & ~routed].min() > 30


def test_what_states_no_arrivals_is_refused_by_the_name_of_the_column(tmp_path):
    table = table_of("open-loop").astype(str).head(3)
    for gone in ("arrivals", "question_tokens"):
        table.drop(columns=gone).to_csv(tmp_path / "some.csv", index=False)
        done = tco("validate", str(tmp_path / "some.csv"), "--kind", "open-loop")
        assert done.exit_code == 3
        assert f"need the column '{gone}'" in done.stderr
    table.assign(arrivals="", question_tokens=["", "500", "500"]).to_csv(
        tmp_path / "some.csv", index=False
    )
    skipped = json.loads(
        tco(
            "validate", str(tmp_path / "some.csv"), "--kind", "open-loop", "--format", "json"
        ).stdout
    )["skipped"]
    assert skipped == {"unstated arrivals": 2, "unstated question_tokens": 1}


def of_rows(tmp_path, table, *settings):
    """Return the predictions of some rows as a command gives them."""
    table.to_csv(tmp_path / "some.csv", index=False)
    options = ("--kind", "open-loop", "--rows", "--format", "json")
    done = tco("validate", str(tmp_path / "some.csv"), *options, *settings)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_routers_whose_rules_nobody_states_are_left_out(tmp_path):
    table = table_of("open-loop").head(2).assign(routing=["by its phase of the moon", "random"])
    assert of_rows(tmp_path, table)["skipped"] == {"unstated routing": 1}


def test_rows_that_cannot_be_simulated_are_left_out_with_their_reasons(tmp_path):
    table = table_of("open-loop").head(5).astype({"servers": float, "stage_duration_s": float})
    for row, (name, value) in enumerate(
        [("stage_duration_s", 0.1), ("servers", 0.5), ("question_tokens", 200_000), ("tp", None)]
    ):
        table.loc[row, name] = value
    answer = of_rows(tmp_path, table)
    assert answer["scored"] == 1
    reasons = sorted(reason.partition(":")[0] for reason in answer["skipped"])
    assert reasons == ["suspect", "unstated tp", "unsupported", "unsupported size"]


def test_settings_that_a_row_states_move_its_prediction(tmp_path):
    """Less memory or a smaller budget of tokens raises the predicted time to the first token.

    Less memory leaves less room, and a smaller budget makes more passes of a prompt.
    """
    table = table_of("open-loop")
    row = table[(table.offered_requests_per_s == 40) & (table.model == "gpt-oss-120b")].head(1)

    def first_token(notes, *settings):
        return of_rows(tmp_path, row.assign(notes=notes), *settings)["rows"][0]["predicted"]

    stated = first_token("--gpu-memory-utilization=0.95")
    assert first_token("--gpu-memory-utilization=0.93") > 1.5 * stated
    assert first_token("gpu-memory-utilization 0.95") == stated
    assert first_token("gpu-memory-utilization 0.95; max-num-batched-tokens 1024") > 1.05 * stated
    assert first_token("gpu-memory-utilization 0.95; max-num-seqs 4") > 2 * stated
    slower = ("--set", "performance.serving.first_token_start=1 s")
    assert first_token("--gpu-memory-utilization=0.95", *slower) == pytest.approx(stated + 0.94)


def test_an_h100_starts_gpt_oss_where_it_was_seen_to():
    """An H100 holds 131,072 tokens of gpt-oss-120b at 0.95 of its memory, and not at 0.9.

    Source: llm-d's guide for vLLM.
    """
    table = table_of("open-loop").head(1)
    chips = rows_of(table)
    rooms = []
    for share in (0.9, 0.95):
        settings = {"memory_taken": share}
        software = ("vllm", "2026-06")
        built_engine = engine_for(
            chips, "h100-sxm", "gpt-oss-120b", software, settings, 1.0, (6500.0, 500.0)
        )
        rooms.append(built_engine[0].room)
    assert rooms[0] < 131_072 < rooms[1]
