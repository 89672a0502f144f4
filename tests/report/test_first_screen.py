"""Sentences of the first screen: what to buy, ties, late racks, speeds that are missed."""

from __future__ import annotations

from tco.comparison.records import AtSpeed, Confidence, Regime, Sureness
from tco.report.curve import cost_text, is_too_slow
from tco.report.first_screen import advice_lines, too_slow_words
from tests.cli import tco


class NamedResult:
    """Result of which only the name is read."""

    def __init__(self, name):
        self.scenario = name


RESULTS = [NamedResult("a"), NamedResult("b")]
DRAWN = [Sureness({}, None, None, [], share_cheapest=0.4), Sureness({}, None, None, [])]


def regime(*picks, **fields):
    """Return a regime of one speed."""
    usual = {"probability": 0.6, "keeps": 0.8, "most": 0.9, "speeds": (20.0,)}
    return Regime("close", picks=picks, foremost=picks[0], **{**usual, **fields})


def advice(*regimes, curve=()):
    return advice_lines(Confidence(DRAWN, list(curve), list(regimes)), RESULTS)


def test_advice_names_pick_and_chance():
    points = [AtSpeed("a", 20.0, share_cheapest=0.42), AtSpeed("b", 20.0, share_cheapest=0.58)]
    assert advice(regime("a"), curve=points) == [
        "Buy a at 20 tokens/s per user (cheapest in 42 % of draws)."
    ]


def test_advice_says_of_whom_a_speed_is_in_its_first_sentence_alone():
    sentences = advice(regime("a"), regime("b", speeds=(50.0,)))
    assert [" per user" in sentence for sentence in sentences] == [True, False]


def test_advice_on_a_tie_prefers_none():
    points = [AtSpeed("a", 20.0, share_cheapest=0.5), AtSpeed("b", 20.0, share_cheapest=0.5)]
    (sentence,) = advice(regime("a", "b"), curve=points)
    assert sentence.startswith("Tie at 20 tokens/s per user: a and b are too close to call (")


def test_advice_on_a_late_rack_says_what_to_buy_until_then():
    late = {"late": {"a": "2027-05"}}
    (sentence,) = advice(regime("a", available=("b",), **late))
    assert sentence.endswith("It ships in volume from 2027-05; until then buy b.")
    (sentence,) = advice(regime("a", "b", available=("c",), **late))
    assert sentence.endswith("a ships in volume from 2027-05; until then buy c.")
    (sentence,) = advice(regime("a", **late))
    assert sentence.endswith("none that serves this work comes sooner.")


def test_advice_without_a_speed_takes_the_chance_of_the_pick():
    (sentence,) = advice(regime("a", speeds=()))
    assert sentence == "Buy a (cheapest in 40 % of draws)."


def test_speed_missed_in_over_a_fifth_of_draws_is_too_slow_with_its_share():
    points = [AtSpeed("a", 75.0, meets=0.8), AtSpeed("a", 100.0, meets=0.61)]
    assert [is_too_slow(point) for point in points] == [False, True]
    assert too_slow_words(Confidence([], points, [])) == [
        "Too slow, with the share of draws that miss the speed: a at 100 (39 %)."
    ]


def test_costs_have_three_significant_digits():
    costs = (None, 0.0123, 0.7, 1.234, 123.4)
    assert [cost_text(cost) for cost in costs] == ["none", "0.0123", "0.700", "1.23", "123"]


def test_tied_racks_stand_below_each_other_within_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = tco("compare", "gb200-nvl72", "gb200-nvl72", "--no-range").stdout.splitlines()
    first = next(index for index, line in enumerate(lines) if line.split()[:1] == ["50"])
    assert lines[first].split()[:3] == ["50", "tied", "gb200-nvl72"]
    assert lines[first + 1].split()[0] == "gb200-nvl72"
    assert max(map(len, lines)) <= 80
