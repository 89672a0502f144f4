"""First tokens under load: published ladders of rates, none of which anything was fitted to."""

import json

import numpy as np
import pytest

from tests.cli import tco
from tests.studies.validation.today import table_of, validated


def test_first_tokens_under_load_are_met():
    card = validated("open-loop").card
    first = card["by"]["target"]["ttft_s_mean"]
    assert first["n"] >= 15
    assert first["median_ape"] <= 0.25
    assert first["spearman"] > 0.9


def test_the_rate_at_which_waits_set_in_is_met():
    """Where the mean first token is first more than twice that of the lowest rate: within 15 %."""
    table, rows = table_of("open-loop"), validated("open-loop").rows
    mine = (rows.skipped == "").to_numpy() & (rows.target == "ttft_s_mean").to_numpy()
    rate = table.offered_requests_per_s.to_numpy(float)[mine]
    measured, predicted = (rows[name].to_numpy(float)[mine] for name in ("measured", "predicted"))
    knees = [float(np.interp(np.log(2), np.log(many / many[0]), rate)) for many in (measured, predicted)]
    assert knees[1] == pytest.approx(knees[0], rel=0.15)


def test_what_states_no_arrivals_is_refused_by_the_name_of_the_column(tmp_path):
    table = table_of("open-loop").astype(str).head(3)
    for gone in ("arrivals", "question_tokens"):
        table.drop(columns=gone).to_csv(tmp_path / "some.csv", index=False)
        done = tco("validate", str(tmp_path / "some.csv"), "--kind", "open-loop")
        assert done.exit_code == 3
        assert f"need the column '{gone}'" in done.stderr
    table.assign(arrivals="", question_tokens=["", "500", "500"]).to_csv(tmp_path / "some.csv", index=False)
    skipped = json.loads(tco("validate", str(tmp_path / "some.csv"), "--kind", "open-loop", "--format", "json").stdout)["skipped"]
    assert skipped == {"unstated arrivals": 2, "unstated question_tokens": 1}


def test_routers_whose_rules_nobody_states_are_left_out():
    rows = validated("open-loop").rows
    routed = table_of("open-loop").routing.str.contains("affinity").to_numpy()
    assert ((rows.skipped != "").to_numpy() == routed).all()
