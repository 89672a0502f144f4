"""What a choice stands to lose: shares of the best in known draws, mixes of dollars, and what a comparison says of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tco.studies.decision import Choice, rated, shares_of_best, stakes
from tests.cli import document
from tests.cli import tco as command

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
COSTS = arrays(float, (3, 40), elements=st.one_of(st.just(np.nan), st.floats(0.1, 10)))


def test_by_hand():
    """Four draws: a is the cheapest, b is, neither reaches the speed, both cost the same."""
    one, other = stakes(np.array([[1.0, 4.0, np.nan, 2.0], [2.0, 1.0, np.nan, 2.0]]))
    assert (one.share_cheapest, other.share_cheapest, one.share_nobody) == (0.375, 0.375, 0.25)
    assert one.share_of_best.mean == pytest.approx((1 + 0.25 + 1) / 3)
    assert other.share_of_best.mean == pytest.approx((0.5 + 1 + 1) / 3)


@given(COSTS)
def test_shares_sum_to_one_and_the_best_keeps_all(costs):
    found = stakes(costs)
    assert sum(one.share_cheapest for one in found) + found[0].share_nobody == pytest.approx(1)
    kept = shares_of_best(costs)
    assert (kept.max(axis=0, initial=1.0) == 1).all()
    assert ((kept >= 0) & (kept <= 1)).all()
    assert all(one.share_of_best.p10 <= one.share_of_best.p50 for one in found)


@given(COSTS, st.floats(0.01, 100))
def test_a_currency_changes_nothing(costs, rate):
    for one, other in zip(stakes(costs), stakes(costs * rate), strict=True):
        assert one.share_of_best == pytest.approx(other.share_of_best)


@given(COSTS, st.floats(0, 1))
def test_a_mix_keeps_what_its_dollars_keep(costs, share):
    alone = [one.share_of_best.mean for one in stakes(costs)]
    mixed = rated(Choice("", {"a": share, "b": 1 - share}), ["a", "b", "c"], costs)
    assert mixed.mean == pytest.approx(share * alone[0] + (1 - share) * alone[1])


def test_a_comparison_says_what_each_choice_keeps():
    said = document("compare", "--choose", f"{HEADLINE[2]},{HEADLINE[2]}:0.25+{HEADLINE[3]}:0.75")
    at = {(one["scenario"], one["tokens_per_s_per_user"]): one for one in said["curve"]}
    for regime in said["verdict"]:
        for speed in regime["speeds"]:
            kept = {name: at[name, speed]["share_of_best"]["mean"] for name in HEADLINE}
            assert kept[regime["choose"]] >= max(kept.values()) - 0.015
            assert regime["keeps"] <= kept[regime["choose"]]
    kept = [one["share_of_best"]["mean"] for one in said["choices"] if one["tokens_per_s_per_user"] == 50]
    own = [at[name, 50]["share_of_best"]["mean"] for name in HEADLINE[2:]]
    assert kept == pytest.approx([own[0], 0.25 * own[0] + 0.75 * own[1]])


@pytest.mark.parametrize("text", ["gb200-nvl72:0.7+mi450x-ualoe72:0.7", "banana", "gb200-nvl72:-1+mi450x-ualoe72:2", "", "gb200-nvl72:x"])
def test_what_is_no_choice_is_refused(text):
    done = command("compare", "--choose", text)
    assert done.exit_code in (2, 3)
    assert "Traceback" not in done.stderr
