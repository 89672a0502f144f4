"""Rules, walks and differences of states that are made by hand, without an evaluation."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from tco.comparison.records import AtSpeed, Confidence, Regime
from tco.core.errors import DataError, TcoError, UsageError
from tco.regression.attribution import (
    AppliedChange,
    ChangeStage,
    attribute_change,
    changes_of_ratio,
    evaluate_in_turn,
)
from tco.regression.difference import (
    ChangeCause,
    ChangeContribution,
    Move,
    changed_metrics,
    compare_states,
    differs,
    side_text,
    value_in_unit_or_text,
)
from tco.regression.drift import (
    Limit,
    Shift,
    _without_unused_formulas,
    parse_rule,
    shifts,
    stakes_of,
)
from tco.scenario.metrics import METRICS

HOUR, TOKENS, SPEED = (
    "tco_usd_per_chip_hour",
    "usd_per_million_output_tokens",
    "output_tokens_per_s_per_chip",
)


def move_of(old, new, metric=HOUR):
    return Move(metric, old, new, None)


# ---------------------------------------------------------------- rules
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("2%", Limit(0.02)),
        (" 2.5 % ", Limit(0.025)),
        ("0.02", Limit(0.02)),
        ("1e-3", Limit(0.001)),
        ("0.05USD", Limit(0.05, "USD")),
        ("0.05 USD/chip/h", Limit(0.05, "USD/chip/h")),
    ],
)
def test_a_limit_is_a_share_or_an_amount(text, limit):
    rule = parse_rule(text, None, None)
    assert rule.threshold == limit
    assert rule.max_increase is None
    assert list(rule.metrics) == list(METRICS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("much", None, None), "--threshold 'much': expected a share such as 2%"),
        (("2%%", None, None), "--threshold '2%%'"),
        (("1.2.3", None, None), "--threshold '1.2.3'"),
        (("2 flurbs", None, None), "--threshold '2 flurbs'"),
        (("1e999", None, None), "--threshold '1e999'"),
        (("-1%", None, None), "--threshold '-1%'"),
        (("2", None, None), "--threshold '2': did you mean 2%? A bare 2 is 200 %"),
        (("1%", "1.0", None), "--max-increase '1.0': did you mean 1%? A bare 1 is 100 %"),
        (("1%", "x", None), "--max-increase 'x'"),
        (("1 USD", None, ["chips"]), "--threshold is in USD, chips in chip"),
        (("1 USD", None, ["mfu"]), "--threshold is in USD, mfu in no unit"),
        (("1%", "1 USD", [HOUR, SPEED]), f"--max-increase is in USD, {SPEED} in token/s/chip"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(UsageError) as error:
        parse_rule(*arguments)
    assert message in str(error.value)


def test_a_rule_of_an_unknown_metric_is_refused():
    with pytest.raises(DataError, match="unknown metric 'cost'"):
        parse_rule("1%", None, ["cost"])


@pytest.mark.parametrize(
    ("limit", "old", "new", "metric", "allowed"),
    [
        (Limit(0.02), 100.0, 102.0, HOUR, True),
        (Limit(0.02), 100.0, 98.0, HOUR, True),
        (Limit(0.02), 100.0, 102.1, HOUR, False),
        (Limit(0.02), 100.0, 97.9, HOUR, False),
        (Limit(0.02), -100.0, -101.0, HOUR, True),
        (Limit(0.02), -100.0, -103.0, HOUR, False),
        (Limit(0.5, "USD"), 1.0, 1.5, HOUR, True),
        (Limit(0.5, "USD"), 1.0, 1.51, HOUR, False),
        (Limit(0.5, "USD"), 1.0, 0.5, TOKENS, True),
        (Limit(500.0, "W"), 1000.0, 1500.0, "it_power_w_per_chip", True),
        (Limit(0.5, "kW"), 1000.0, 1500.0, "it_power_w_per_chip", True),
        # an amount of another unit allows nothing but rounding
        (Limit(9.0, "USD"), 100.0, 101.0, SPEED, False),
        (Limit(9.0, "USD"), 100.0, 100.0 + 1e-8, SPEED, True),
        (Limit(9.0, "USD"), 100.0, 100.0 + 1e-6, SPEED, False),
        (Limit(9.0), None, 1.0, HOUR, False),
        (Limit(9.0), 1.0, None, HOUR, False),
    ],
)
def test_a_move_is_allowed_up_to_its_limit(limit, old, new, metric, allowed):
    assert limit.allows(move_of(old, new, metric)) is allowed


def test_with_a_greatest_increase_only_what_is_worse_by_more_is_a_drift():
    strict = parse_rule("1%", None, [HOUR, SPEED, "chips"])
    assert strict.is_broken(move_of(1.0, 0.9))
    rule = parse_rule("1%", "10%", [HOUR, SPEED, "chips"])
    assert not rule.is_broken(move_of(1.0, 1.005))
    assert not rule.is_broken(move_of(1.0, 0.5))  # cheaper
    assert not rule.is_broken(move_of(1.0, 1.09))
    assert rule.is_broken(move_of(1.0, 1.11))
    # fewer tokens are worse
    assert rule.is_broken(move_of(1.0, 0.89, SPEED))
    assert not rule.is_broken(move_of(1.0, 1.5, SPEED))
    # more chips are neither better nor worse
    assert rule.is_broken(move_of(100.0, 102.0, "chips"))
    assert not rule.is_broken(move_of(1.0, 9.0, TOKENS))  # of no metric that is asked for
    # what is gone is worse, what is new is not
    assert rule.is_broken(move_of(1.0, None))
    assert not rule.is_broken(move_of(None, 1.0))


def test_drawn_figures_shift_beyond_the_greater_of_limit_and_tolerance():
    old = {"50": {"a": {"p50_usd": 1.0, "choose": "a", "p10": None, "share_of_best": 0.5}}}

    def shifted(limit, **figures):
        new = {"50": {"a": old["50"]["a"] | figures}, "20": {"a": {"p50_usd": 9.0}}}
        return [shift.figure for shift in shifts(old, new, limit)]

    assert shifted(Limit(0.0)) == []
    assert shifted(Limit(0.0), p50_usd=1.0009) == []
    assert shifted(Limit(0.0), p50_usd=1.0011) == ["p50_usd"]
    assert shifted(Limit(0.0), p50_usd=0.9989, share_of_best=0.49) == ["p50_usd", "share_of_best"]
    assert shifted(Limit(0.05), p50_usd=1.04, share_of_best=0.47) == ["share_of_best"]
    # an amount is no share
    assert shifted(Limit(0.5, "USD"), p50_usd=1.1) == ["p50_usd"]
    assert shifted(Limit(9.0), choose="b", p10=0.3) == ["choose", "p10"]
    (shift,) = shifts(old, {}, Limit(9.0))[:1]
    assert shift == Shift("a", 50.0, "p50_usd", 1.0, None)


def test_drawn_figures_are_kept_by_speed_and_scenario():
    curve = [
        AtSpeed("a", 50.0, None, 1.25, share_of_best={"mean": 0.9}, range={"p10": 0.5, "p50": 1}),
        AtSpeed("b", 50.0),
        AtSpeed("a", 12.5, None, 1.0),
    ]
    regimes = [Regime("tie", ("a", "b"), speeds=(50.0,)), Regime("nobody", (), speeds=(12.5,))]
    none = dict.fromkeys(("share_of_best", "p50_usd", "p10", "p50", "p90"))
    assert stakes_of(Confidence([], curve, regimes)) == {
        "50": {
            "a": {
                "choose": "a and b",
                "share_of_best": 0.9,
                "p50_usd": 1.25,
                "p10": 0.5,
                "p50": 1,
                "p90": None,
            },
            "b": none | {"choose": "a and b"},
        },
        "12.5": {"a": none | {"choose": None, "p50_usd": 1.0}},
    }


# ---------------------------------------------------------------- walks
def change(path, cost, metric=HOUR, stage=ChangeStage.INPUT, **settings):
    metrics = {} if cost is None else {metric: cost}
    return AppliedChange((ChangeCause("price", path),), settings, stage, path, metrics)


def test_steps_of_a_walk_sum_to_the_change_and_what_moves_nothing_is_none():
    steps = attribute_change(
        [change("a", 3.0, x="1"), change("b", 3.0, y="2"), change("c", 2.0, z="3")], HOUR, 1.0
    )
    assert [(step.name, step.start, step.end) for step in steps] == [("a", 1, 3), ("c", 3, 2)]
    assert [step.difference for step in steps] == [2, -1]
    assert [step.ratio for step in steps] == pytest.approx([3, 2 / 3])
    assert [step.settings for step in steps] == [{"x": "1"}, {"z": "3"}]
    assert steps[0].last_cause.path == "a"
    assert ChangeContribution((), 0.0, 1.0).ratio is None


def test_a_change_without_a_value_counts_with_the_next():
    walk = [change("a", None, x="1"), change("b", 4.0, y="2"), change("c", 5.0)]
    steps = attribute_change(walk, HOUR, 1.0)
    assert [(step.name, step.start, step.end) for step in steps] == [
        ("a and b", 1, 4),
        ("c", 4, 5),
    ]
    assert steps[0].last_cause.path == "b"
    assert steps[0].settings == {"x": "1", "y": "2"}
    assert steps[1].settings == {}


def test_rounding_is_no_step_unless_every_change_is_one():
    walk = [change("a", 2.0), change("b", 2.0 * (1 + 1e-12)), change("c", 2.0)]
    assert [step.name for step in attribute_change(walk, HOUR, 1.0)] == ["a"]
    all_steps = attribute_change(walk, HOUR, 1.0, tolerance=None)
    assert [step.name for step in all_steps] == ["a", "b", "c"]
    # the last step ends where the walk does, to the last digit
    near = attribute_change(walk[:2], HOUR, 1.0)
    assert near[-1].end == 2.0 * (1 + 1e-12)
    assert attribute_change([], HOUR, 1.0) == ()
    assert attribute_change([change("a", 1.0)], HOUR, 1.0) == ()


def test_changes_are_kept_as_a_walk_goes_on_though_one_does_not_go_together():
    evaluated = []

    class Evaluation:
        def __init__(self, cost):
            self.metrics = {HOUR: cost}

    def evaluate(settings):
        evaluated.append(dict(settings))
        if settings.get("b") == "bad":
            raise DataError("b and a do not go together")
        return Evaluation(float(len(settings)))

    changes = [
        AppliedChange((), {"a": "1"}),
        AppliedChange((), {"b": "bad"}),
        AppliedChange((), {"b": "good"}),
    ]
    walked = list(evaluate_in_turn(changes, {"start": "0"}, evaluate))
    assert [point.metrics.get(HOUR) for point, _ in walked] == [2.0, None, 3.0]
    assert walked[1][1] is None
    assert evaluated == [
        {"start": "0", "a": "1"},
        {"start": "0", "a": "1", "b": "bad"},
        {"start": "0", "a": "1", "b": "good"},
    ]
    assert issubclass(DataError, TcoError)


def test_a_ratio_takes_a_change_of_both_scenarios_as_one():
    """Costs of 2 and 6 have a ratio of 3, which a price and a rate of both change in turn."""
    ratio = "perf_per_tco_vs_baseline"
    scenario = [
        change("terms.rate", 4.0, TOKENS),
        change("parts.x.price", 5.0, TOKENS),
    ]
    base = [
        change("terms.rate", 8.0, TOKENS),
        change("", 10.0, TOKENS, ChangeStage.SYSTEM),
        change("variant", None, TOKENS, ChangeStage.SYSTEM),
    ]
    walk = changes_of_ratio(scenario, base, (2.0, 6.0), TOKENS, ratio)
    assert [[cause.path for cause in point.causes] for point in walk] == [
        ["parts.x.price"],
        ["terms.rate"],
        [""],
        ["variant"],
    ]
    # paths go by the alphabet: the price first
    assert [point.metrics[ratio] for point in walk] == pytest.approx([6 / 5, 8 / 4, 10 / 4, 10 / 4])


def test_a_cost_of_zero_is_a_value_of_the_ratio_and_no_missing_one():
    ratio = "perf_per_tco_vs_baseline"
    base = [change("a", 0.0, TOKENS), change("b", 8.0, TOKENS)]
    ratio_changes = changes_of_ratio([], base, (2.0, 6.0), TOKENS, ratio)
    assert [dict(step.metrics) for step in ratio_changes] == [{ratio: 0.0}, {ratio: 4.0}]
    # a scenario without cost has no ratio
    scenario = [change("a", 0.0, TOKENS), change("b", 3.0, TOKENS)]
    ratio_changes = changes_of_ratio(scenario, [], (2.0, 6.0), TOKENS, ratio)
    assert [dict(step.metrics) for step in ratio_changes] == [{}, {ratio: 2.0}]
    contributions = attribute_change(ratio_changes, ratio, 3.0)
    assert [(step.name, step.start, step.end) for step in contributions] == [("a and b", 3, 2)]


def test_changes_of_equal_order_and_other_types_stay_in_their_order():
    scenario = [
        AppliedChange((ChangeCause("price", "a", None, 1.0),), metrics={TOKENS: 3.0}),
        AppliedChange((ChangeCause("price", "a", 1.0, "text"),), metrics={TOKENS: 2.0}),
    ]
    (step,) = changes_of_ratio(scenario, [], (1.0, 6.0), TOKENS, "ratio")
    assert step.causes == (scenario[0].causes[0], scenario[1].causes[0])
    assert step.metrics == {"ratio": 3.0}


def test_evaluation_in_turn_leaves_the_settings_as_they_are():
    settings = {"start": "0"}
    changes = [AppliedChange((), {"a": "1"})]
    evaluations = evaluate_in_turn(changes, settings, lambda _: SimpleNamespace(metrics={HOUR: 1}))
    assert [step.metrics for step, _ in evaluations] == [{HOUR: 1}]
    assert settings == {"start": "0"}


def test_a_step_names_the_changed_formulas_that_its_metric_rests_on():
    origin = SimpleNamespace(used_by=lambda metric: {HOUR: {"hour"}, TOKENS: set()}[metric])
    result = SimpleNamespace(origin=origin)
    hour, tokens = (ChangeCause("formula", name, "f", "g") for name in ("hour", "tokens"))
    gone, price = ChangeCause("formula", "gone", "f", None), ChangeCause("price", "p", 1.0, 2.0)
    step = ChangeContribution((price, hour, tokens, gone), 1.0, 2.0)
    assert _without_unused_formulas(step, HOUR, result).causes == (price, hour, gone)
    assert _without_unused_formulas(step, TOKENS, result).causes == (price, gone)
    # a step keeps a cause
    unused = step._replace(causes=(tokens,))
    assert _without_unused_formulas(unused, HOUR, result) == unused
    assert _without_unused_formulas(step, HOUR, SimpleNamespace(origin=None)) == step


# ---------------------------------------------------------------- differences
def state_of(**parts):
    empty = {
        "tco_version": "1",
        "data_hash": "h",
        "system": "rack",
        "variant": {},
        "texts": {},
        "quantities": {},
        "inputs": {},
        "metrics": {},
        "formulas": {"cost": "f"},
    }
    return empty | parts


def test_each_part_of_a_state_is_a_kind_of_cause():
    old = state_of(texts={"workload.model": "a"}, quantities={"rack/chip": 4.0})
    new = state_of(
        tco_version="2",
        data_hash="i",
        system="other",
        variant={"nic": "400g"},
        quantities={"rack/chip": 8.0},
        formulas={"cost": "g"},
    )
    difference = compare_states(old, new)
    assert difference.versions == [ChangeCause("version", "", "1", "2")]
    assert difference.data == [ChangeCause("data", "", "h", "i")]
    assert difference.system == [ChangeCause("assumption", "system", "rack", "other")]
    assert difference.variant == [ChangeCause("assumption", "variant nic", None, "400g")]
    assert difference.texts == [ChangeCause("assumption", "workload.model", "a", None)]
    assert difference.quantities == [ChangeCause("quantity", "rack/chip", 4.0, 8.0)]
    assert difference.formulas == [ChangeCause("formula", "cost", "f", "g")]
    kinds = [cause.kind for cause in difference.causes]
    assert kinds == ["assumption", "assumption", "quantity", "formula"]


def test_inputs_are_compared_in_the_later_unit():
    old = state_of(
        inputs={
            "site.power": [1.0, "MW"],
            "terms.life": [4, "year"],
            "site.pue": [1.2, "ratio"],
            "parts.x.price": [5, "USD"],
        }
    )
    new = state_of(
        inputs={
            "site.power": [1000.0, "kW"],
            "terms.life": [5, "year"],
            "site.pue": [1.3, ""],
            "parts.y.tdp": [1, "W"],
        }
    )
    assert compare_states(old, new).inputs == [
        ChangeCause("price", "parts.x.price", 5.0, None, "USD"),
        ChangeCause("assumption", "parts.y.tdp", None, 1.0, "W"),
        ChangeCause("assumption", "site.pue", 1.2, 1.3, "ratio"),
        ChangeCause("assumption", "terms.life", 4.0, 5.0, "year"),
    ]
    assert value_in_unit_or_text([3, "W"], "USD") == "3 W"
    assert value_in_unit_or_text(None, "USD") is None


def test_words_of_causes():
    assert ChangeCause("version", "", "1", "2").words() == "program changed: version: 1 -> 2"
    assert ChangeCause("quantity", "rack", None, 4.0).words() == "quantity rack: absent -> 4"
    assert ChangeCause("fit", "performance.x", 0.5, 0.25, "ratio").words() == (
        "program changed: fit performance.x: 0.5 -> 0.25 ratio"
    )
    assert ChangeCause("price", "p", 1.0, 2.0, "USD").words() == "price p: 1 -> 2 USD"
    assert side_text(1234567.0) == "1.23457e+06"


def test_changes_are_relative_to_the_earlier_value():
    moves = changed_metrics(
        {"same": 1.0, "up": 2.0, "down": 2.0, "zero": 0.0, "gone": 1.0},
        {"same": 1.0 + 1e-12, "up": 5.0, "down": 0.5, "zero": 1.0, "new": 1.0},
    )
    assert [(move.metric, move.change) for move in moves] == [
        ("up", 1.5),
        ("down", -0.75),
        ("zero", None),
        ("gone", None),
        ("new", None),
    ]
    assert differs(1.0, 1.1)
    assert not differs(1.0, 1.1, 0.1)
    assert differs(1.0, "1")
    assert differs(1.0, None)
    assert not differs(None, None)
    assert differs(0.0, math.nextafter(0.0, 1.0))
