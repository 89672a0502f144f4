"""The verdict in words: ties, dates, and prices that change a pick."""

from __future__ import annotations

from types import SimpleNamespace

from tco.comparison.records import Confidence, Later, PriceTurn, Regime
from tco.report.verdict import (
    later_words,
    price_words,
    regime_sentence,
    software_bound_picks,
    tie_words,
)


def regime(*picks, **more):
    """Return a regime of one speed or some."""
    default_fields = {
        "probability": 0.6,
        "keeps": 0.8,
        "most": 0.8,
        "worst": 0.6,
        "speeds": (20.0,),
    }
    return Regime("close", picks=picks, foremost=picks[0], **{**default_fields, **more})


def test_a_tie_names_all_and_when_each_comes():
    assert tie_words(("a", "b", "c")) == "tie of a, b and c"
    assert tie_words(("a", "b"), {"a": "2027-05"}) == "tie of a (from 2027-05) and b"
    assert tie_words(("a",)) == "a"


def test_a_regime_says_what_is_lost_and_who_is_there_until_then():
    text = regime_sentence(regime("a", late={"a": "2027-05"}, available=("b",)))
    assert (
        text
        == "a (from 2027-05), regret 20 % on average, 40 % in the worst 1 of 10 draws; until then b"
    )
    assert regime_sentence(regime("a", keeps=0.75)).startswith("a, regret 20-25 % on average")


def test_software_is_named_where_it_has_another_pick():
    ends = {
        "by_software": {"public": ("a", "b"), "best": ("c",)},
        "by_software_keeps": {"public": 0.9, "best": 0.88},
    }
    assert regime_sentence(regime("a", **ends)).endswith(
        "; with the best software written by hand c (regret 12 %)"
    )
    assert software_bound_picks([regime("a", **ends)]) == [
        "If all racks ran the best software written by hand, buy c at 20 tokens/s."
    ]


def test_the_later_pick_is_said_only_where_it_differs():
    later = Later("2027-05", 512, [regime("a", speeds=(20.0, 50.0))], True)
    assert later_words(later) == [
        "If bought in 2027-05 instead, with all in volume: a at every speed."
    ]
    picks = [regime("a", speeds=(20.0,)), regime("b", speeds=(50.0,))]
    assert later_words(later._replace(regimes=picks))[0].endswith(
        "volume: a at 20, b at 50 tokens/s."
    )
    training = later._replace(regimes=[regime("a", speeds=())])
    assert later_words(training)[0].endswith("volume: a.")
    assert later_words(later._replace(differs=False)) == []
    assert later_words(None) == []


def test_prices_that_turn_a_pick_stand_in_the_unit_of_the_catalogue():
    turns = [
        PriceTurn(
            path="parts.mi450x.price",
            pick="b",
            to="a",
            unit="USD",
            value=66700.0,
            turns_at=52507.6,
            sigmas=1.0,
            low=45000.0,
            high=82000.0,
            break_even=49994.6,
            stated_quantity=(66700.0, "USD"),
        ),
        PriceTurn(
            path="site.electricity_price",
            pick="b",
            to="a",
            unit="USD/Wh",
            value=8.61e-5,
            turns_at=1.2e-4,
            sigmas=2.0,
            low=None,
            high=None,
            break_even=None,
            stated_quantity=(0.0861, "USD/kWh"),
        ),
    ]
    confidence = Confidence([], [], [regime("b")])._replace(turns=turns)
    racks = [SimpleNamespace(texts={"terms.date": "2026-11"})] * 2
    (text,) = price_words(confidence, 20.0, racks)
    assert text == (
        "The pick at 20 tokens/s turns to a if mi450x price is below 52,500 USD (2026-11: "
        "66,700) or electricity price is above 0.12 USD/kWh (2026-11: 0.0861)."
    )
    racks.append(SimpleNamespace(texts={"terms.date": "2026-12"}))
    assert "(now: 66,700)" in price_words(confidence, 20.0, racks)[0]
    (text,) = price_words(confidence._replace(regimes=[regime("a", "b")]), 20.0, racks)
    assert text.startswith("The tie at 20 tokens/s tips from b if ")
    assert price_words(confidence._replace(turns=[]), 20.0, racks) == []
