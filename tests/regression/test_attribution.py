"""Causes of a change: the earlier state is evaluated again, then with one change at a time.

The steps sum to the drift.
"""

from __future__ import annotations

import collections
import copy
import json
import math

import pytest

from tco import diff, evaluate
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.registry import FORMULA
from tests.scenario_helpers import result

NAME = "trn3-nl72x2"
COST = "usd_per_million_output_tokens"


def evaluate_set(name=NAME, variant=None, **settings):
    return evaluate(
        name,
        {path.replace("__", "."): text for path, text in settings.items()},
        catalogue=CATALOGUE,
        variant=variant,
    )


@pytest.fixture(scope="module")
def state():
    """A result as its document keeps it."""
    return document("price", NAME)["state"]


@pytest.fixture
def write_earlier(tmp_path, state):
    """Return a function that writes a state with a change, as an earlier program kept it."""

    def write_state(change):
        changed = copy.deepcopy(state)
        change(changed)
        path = tmp_path / "before.json"
        path.write_text(json.dumps({"state": changed}))
        return path

    return write_state


def steps(before, after, metric):
    """The steps in which a metric moved; none where it did not."""
    return next((move.steps for move in diff(before, after).moves if move.metric == metric), ())


def words_of_steps(before, after):
    """Return the words of the steps of every metric that changed.

    Steps sum and multiply to the drift of their metric.
    """
    causes_by_metric = collections.defaultdict(list)
    for move in diff(before, after).moves:
        if move.old is None or move.new is None:
            continue
        assert move.steps
        assert move.old + math.fsum(step.difference for step in move.steps) == pytest.approx(
            move.new, rel=1e-14, abs=1e-15 * abs(move.old)
        )
        ratios = [step.ratio for step in move.steps]
        if None not in ratios:  # a rebate may pass through zero
            assert math.prod(ratios) == pytest.approx(move.new / move.old, rel=1e-13)
        causes_by_metric[move.metric] = [
            [cause.words() for cause in step.causes] for step in move.steps
        ]
    return causes_by_metric


@pytest.mark.parametrize("name", CATALOGUE.scenarios)
def test_a_state_is_evaluated_again_to_the_last_digit(name):
    """Otherwise a step would say that the program has changed."""
    path, text = (
        ("terms.rate", "0.123")
        if "terms.rate" in evaluate_set(name).inputs
        else ("workload.output_tokens", "777")
    )
    after = evaluate(name, {path: text}, catalogue=CATALOGUE)
    metric_moves = [move for move in diff(evaluate_set(name), after).moves if move.steps]
    assert metric_moves
    assert {
        cause.path for move in metric_moves for step in move.steps for cause in step.causes
    } == {path}


def test_inputs_move_one_by_one_in_the_order_of_their_paths():
    after = evaluate_set(
        terms__rate="0.1",
        site__electricity_price="0.3 USD/kWh",
        parts__trn3__hbm_bandwidth="3.9 TB/s",
    )
    causes_by_metric = words_of_steps(result(NAME), after)
    price, rate = (
        "price site.electricity_price: 0.0861 -> 0.3 USD/kWh",
        "assumption terms.rate: 0.09 -> 0.1",
    )
    assert causes_by_metric[COST] == [
        ["assumption parts.trn3.hbm_bandwidth: 4.9 -> 3.9 TB/s"],
        [price],
        [rate],
    ]
    assert causes_by_metric["tco_usd_per_chip_hour"] == [[price], [rate]]
    assert causes_by_metric["capex_usd"] == []


def test_what_a_step_adds_is_what_that_change_does():
    changes = {
        "parts__trn3__hbm_bandwidth": "3.9 TB/s",
        "site__electricity_price": "0.3 USD/kWh",
        "terms__rate": "0.1",
    }
    previous_cost, changed_inputs = result(NAME).metrics[COST], {}
    for step, (path, text) in zip(
        steps(result(NAME), evaluate_set(**changes), COST), changes.items(), strict=True
    ):
        changed_inputs[path] = text
        new = evaluate_set(**changed_inputs).metrics[COST]
        assert step.difference == pytest.approx(new - previous_cost, rel=1e-8)
        previous_cost = new


def test_dates_move_prices_one_by_one():
    cost_causes = words_of_steps(
        evaluate_set(terms__date="2025-12"), evaluate_set(terms__date="2026-09")
    )[COST]
    assert ["price parts.ddr5-dimm.price: 450 -> 1445 USD"] in cost_causes
    assert ["assumption terms.date: 2025-12 -> 2026-09"] in cost_causes


def test_a_part_that_a_price_makes_the_cheapest_counts_with_that_price():
    causes_by_metric = words_of_steps(
        result(NAME), evaluate_set(**{"parts__scorpio-p-64__price": "400 USD"})
    )
    assert (
        causes_by_metric["it_power_w_per_chip"]
        == causes_by_metric[COST]
        == [["price parts.scorpio-p-64.price: absent -> 400 USD"]]
    )


def test_another_plan_counts_with_the_change_that_brought_it():
    assert words_of_steps(result(NAME), evaluate_set(workload__concurrency="64"))[COST] == [
        ["assumption workload.concurrency: 0 -> 64"]
    ]


def test_change_of_the_model_is_one_of_text():
    cost_causes = words_of_steps(
        result(NAME), evaluate_set(workload__model="gpt-oss-120b", site__pue="1.3")
    )[COST]
    # those the model is published in
    formats = [
        "workload.attention_format: absent -> bf16",
        "workload.expert_format: absent -> w4a8",
    ]
    model = "workload.model: deepseek-v3 -> gpt-oss-120b"
    assert cost_causes == [
        [f"assumption {input_change}"]
        for input_change in (
            "site.pue: 1.15 -> 1.3",
            *formats,
            model,
            "workload.precision: fp8 -> bf16",
        )
    ]


def test_a_variant_and_a_system_come_last():
    hour_causes = words_of_steps(
        result(NAME), evaluate_set(variant={"nic": "400g"}, site__pue="1.3")
    )["tco_usd_per_chip_hour"]
    assert [words[0].partition(":")[0] for words in hour_causes] == [
        "assumption site.pue",
        "assumption variant nic",
    ]
    hour_causes = words_of_steps(result(NAME), evaluate_set("gb200-nvl72", site__pue="1.3"))[
        "tco_usd_per_chip_hour"
    ]
    assert [words[0].partition(":")[0] for words in hour_causes] == [
        "assumption site.pue",
        "assumption system",
    ]


def test_set_metric_stays_set_in_every_step():
    cut = evaluate_set(metrics__tco_usd_per_chip_hour="1 USD/chip/h")
    assert words_of_steps(result(NAME), cut)["tco_usd_per_used_chip_hour"] == [
        ["assumption metrics.tco_usd_per_chip_hour: absent -> 1 USD/chip/h"]
    ]
    dearer = evaluate_set(metrics__tco_usd_per_chip_hour="1 USD/chip/h", site__pue="1.3")
    assert "tco_usd_per_used_chip_hour" not in words_of_steps(cut, dearer)


def test_steps_of_training_sum_to_the_drift():
    name = "train-gpt3-175b-a100x64"
    after = evaluate_set(name, site__pue="1.3", terms__rate="0.2")
    training_causes = words_of_steps(evaluate_set(name), after)["train_usd_per_trillion_tokens"]
    assert [words[0].split(":")[0] for words in training_causes] == [
        "assumption site.pue",
        "assumption terms.rate",
    ]


def dearer(state):
    """A state as a program with another formula of the cost of tokens would have kept it."""
    state["formulas"]["usd_per_million"] = "0123456789ab"
    for metric in (COST, "usd_per_million_input_tokens", "usd_per_million_tokens"):
        state["metrics"][metric] /= 1.03


def test_a_formula_is_told_from_an_input_that_moved_with_it(write_earlier):
    before, after = write_earlier(dearer), evaluate_set(site__electricity_price="0.0862 USD/kWh")
    formula, price = steps(before, after, COST)
    assert [cause.words() for cause in formula.causes] == [
        "program changed: formula usd_per_million is another"
    ]
    assert formula.ratio == pytest.approx(1.03, rel=1e-11)
    assert [cause.words() for cause in price.causes] == [
        "price site.electricity_price: 0.0861 -> 0.0862 USD/kWh"
    ]
    assert formula.difference > 100 * price.difference > 0
    (only,) = steps(before, after, "tco_usd_per_chip_hour")
    assert only.causes == price.causes


def test_a_formula_that_really_changes_is_found(write_earlier, tmp_path, state, monkeypatch):
    """The formula is another one where it is called, as after an edit."""
    monkeypatch.setattr(
        "tco.scenario.metrics.usd_per_million",
        lambda *arguments, **named: 1.03 * FORMULA.usd_per_million.__wrapped__(*arguments, **named),
    )
    evaluation, after = (
        evaluate(NAME, {"site.pue": "1.3"}, catalogue=CATALOGUE),
        copy.deepcopy(state),
    )
    after["metrics"] = {name: evaluation.metrics[name] for name in state["metrics"]}
    after["inputs"]["site.pue"] = [1.3, "ratio"]
    after["formulas"]["usd_per_million"] = "0123456789ab"
    (tmp_path / "after.json").write_text(json.dumps({"state": after}))
    first, second = steps(write_earlier(lambda _: None), tmp_path / "after.json", COST)
    assert [cause.words() for cause in first.causes] == [
        "program changed: formula usd_per_million is another"
    ]
    assert first.ratio == pytest.approx(1.03, rel=1e-11)
    assert [cause.path for cause in second.causes] == ["site.pue"]


def test_change_that_no_fingerprint_names_is_one_of_structure(write_earlier):
    def other(state):
        state["metrics"][COST] *= 1.1

    (step,) = steps(write_earlier(other), result(NAME), COST)
    assert [cause.words() for cause in step.causes] == [
        "program changed: code that is no formula, no input differs"
    ]


def test_a_tree_that_changed_names_its_places(write_earlier):
    def smaller(state):
        state["formulas"]["split_hour"] = "0123456789ab"  # of one side, and so no cause beside it
        state["quantities"]["rack/compute-tray/trn3"] -= 4
        state["metrics"]["capex_usd"] *= 0.97

    (step,) = steps(write_earlier(smaller), result(NAME), "capex_usd")
    ((kind, path, old, new, _),) = step.causes
    assert (kind, path, new - old) == ("quantity", "rack/compute-tray/trn3", 4)


def test_steps_of_a_state_that_cannot_be_evaluated_sum_to_the_drift(write_earlier):
    def gone(state):
        state["system"] = "gone-nl8"
        state["metrics"][COST] *= 2

    (step,) = steps(write_earlier(gone), result(NAME), COST)
    assert 2 * step.difference == pytest.approx(-2 * result(NAME).metrics[COST], rel=1e-9)
    assert step.causes


def test_values_that_do_not_go_together_yet_count_with_what_follows():
    """A prompt beyond the context of the first model is no workload until the model follows."""
    long = {"workload__input_tokens": "200000", "workload__interactivity": "10 token/s"}
    after = evaluate_set(workload__model="llama-4-maverick", **long)
    *_, joint = words_of_steps(result(NAME), after)[COST]
    paths = [words.partition(":")[0].rpartition(" ")[2] for words in joint]
    assert paths == ["workload.input_tokens", "workload.interactivity", "workload.model"]
