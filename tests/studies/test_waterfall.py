"""Why a result moved: the earlier state evaluated again, then one thing at a time; the steps sum to the drift."""

from __future__ import annotations

import copy
import math

import pytest

from tco import evaluate
from tco.studies.difference import again, differs
from tco.studies.waterfall import points, steps, text_of
from tests.chain import METRICS, result
from tests.registry import FORMULA
from tests.shipped import CATALOGUE
from tests.studies.room import state_of

NAME = "trn3-nl72x2"
COST = "usd_per_million_output_tokens"


def asked(name=NAME, variant=None, **settings):
    return evaluate(name, {path.replace("__", "."): text for path, text in settings.items()}, catalogue=CATALOGUE, variant=variant)


@pytest.fixture(scope="module")
def base():
    return state_of(result(NAME))


def kept(state):
    return {path: text_of(given) for path, given in state["inputs"].items()} | state["texts"]


def whole(before, after):
    """The steps of every metric, each held to sum and multiply to the drift."""
    way, found = points(before, after, CATALOGUE), {}
    for metric, old in before["metrics"].items():
        new = after["metrics"].get(metric)
        if new is None:
            continue
        made = steps(way, before["metrics"], metric)
        if made or new != pytest.approx(old, rel=1e-11, abs=0):  # a batch that is solved meets the same speed anew, but for rounding
            assert old + math.fsum(step.difference for step in made) == pytest.approx(new, rel=1e-14, abs=1e-15 * abs(old))
        ratios = [step.ratio for step in made]
        if made and None not in ratios:  # a rebate may pass through zero
            assert math.prod(ratios) == pytest.approx(new / old, rel=1e-13)
        assert bool(made) is differs(old, new, 1e-11)
        found[metric] = [[cause.words() for cause in step.causes] for step in made]
    return found


@pytest.mark.parametrize("name", CATALOGUE.scenarios)
def test_a_state_is_evaluated_again_to_the_last_digit(name):
    made = evaluate(name, catalogue=CATALOGUE)
    state = state_of(made)
    found = again(state, kept(state), CATALOGUE)
    assert {metric: value for metric, value in made.metrics.items() if value is not None} == {
        metric: value for metric, value in found.metrics.items() if metric in METRICS
    }
    assert found.quantities == state["quantities"]


def test_inputs_move_one_by_one_in_the_order_of_their_paths(base):
    after = state_of(asked(terms__rate="0.1", site__electricity_price="0.3 USD/kWh", parts__trn3__hbm_bandwidth="3.9 TB/s"))
    found = whole(base, after)
    price, rate = "price site.electricity_price: 0.0861 -> 0.3 USD/kWh", "assumption terms.rate: 0.09 -> 0.1"
    assert found[COST] == [["assumption parts.trn3.hbm_bandwidth: 4.9 -> 3.9 TB/s"], [price], [rate]]
    assert found["tco_usd_per_chip_hour"] == [[price], [rate]]
    assert found["capex_usd"] == []


def test_what_a_step_adds_is_what_that_change_does(base):
    changes = {"parts__trn3__hbm_bandwidth": "3.9 TB/s", "site__electricity_price": "0.3 USD/kWh", "terms__rate": "0.1"}
    way = points(base, state_of(asked(**changes)), CATALOGUE)
    at, given = base["metrics"][COST], {}
    for step, (path, text) in zip(steps(way, base["metrics"], COST), changes.items(), strict=True):
        given[path] = text
        new = asked(**given).metrics[COST]
        assert step.difference == pytest.approx(new - at, rel=1e-8)
        at = new


def test_dates_move_prices_one_by_one(base):
    found = whole(base, state_of(asked(terms__date="2026-09")))[COST]
    assert ["price parts.ddr5-dimm.price: 450 -> 1400 USD"] in found
    assert ["assumption terms.date: 2025-12 -> 2026-09"] in found
    assert len(found[-1]) == 2
    assert all(words.startswith("quantity rack/compute-tray/scorpio-p-") for words in found[-1])


def test_another_plan_counts_with_the_change_that_brought_it(base):
    assert whole(base, state_of(asked(workload__concurrency="64")))[COST] == [["assumption workload.concurrency: 0 -> 64"]]


def test_another_model_is_a_text(base):
    found = whole(base, state_of(asked(workload__model="gpt-oss-120b", site__pue="1.3")))[COST]
    formats = ["workload.attention_format: absent -> bf16", "workload.expert_format: absent -> w4a8"]  # those the model is published in
    model = "workload.model: deepseek-v3 -> gpt-oss-120b"
    drafts = "workload.draft_tokens: 1 -> 0 count"  # which has no head of its own
    assert found == [[f"assumption {one}"] for one in ("site.pue: 1.15 -> 1.3", drafts, *formats, model)]


def test_a_variant_and_a_system_come_last(base):
    found = whole(base, state_of(asked(variant={"nic": "400g"}, site__pue="1.3")))["tco_usd_per_chip_hour"]
    assert [words[0].partition(":")[0] for words in found] == ["assumption site.pue", "assumption variant nic"]
    found = whole(base, state_of(asked("gb200-nvl72", site__pue="1.3")))["tco_usd_per_chip_hour"]
    assert [words[0].partition(":")[0] for words in found] == ["assumption site.pue", "assumption system"]


def test_a_cut_stays_cut(base):
    cut = state_of(asked(metrics__tco_usd_per_chip_hour="1 USD/chip/h"))
    assert again(cut, kept(cut), CATALOGUE).metrics["tco_usd_per_chip_hour"] == 1
    assert whole(base, cut)["tco_usd_per_used_chip_hour"] == [["assumption metrics.tco_usd_per_chip_hour: absent -> 1 USD/chip/h"]]


def test_training_moves_too():
    name = "train-gpt3-175b-a100x64"
    after = state_of(asked(name, site__pue="1.3", terms__rate="0.2"))
    found = whole(state_of(asked(name)), after)["train_usd_per_trillion_tokens"]
    assert [words[0].split(":")[0] for words in found] == ["assumption site.pue", "assumption terms.rate"]


def dearer(state, factor=1.03):
    """A state as a program with another formula of the cost of tokens would have kept it."""
    made = copy.deepcopy(state)
    made["formulas"]["usd_per_million"] = "0123456789ab"
    for metric in (COST, "usd_per_million_input_tokens", "usd_per_million_tokens"):
        made["metrics"][metric] /= factor
    return made


def test_a_formula_is_told_from_an_input_that_moved_with_it(base):
    after = state_of(asked(site__electricity_price="0.0862 USD/kWh"))
    way = points(dearer(base), after, CATALOGUE)
    formula, price = steps(way, dearer(base)["metrics"], COST)
    assert [cause.words() for cause in formula.causes] == ["program changed: formula usd_per_million is another"]
    assert formula.ratio == pytest.approx(1.03, rel=1e-11)
    assert [cause.words() for cause in price.causes] == ["price site.electricity_price: 0.0861 -> 0.0862 USD/kWh"]
    assert formula.difference > 100 * price.difference > 0
    (only,) = steps(way, dearer(base)["metrics"], "tco_usd_per_chip_hour")
    assert only.causes == price.causes


def test_a_formula_that_really_changes_is_found(base, monkeypatch):
    """The formula is another one where it is called, as after an edit."""
    monkeypatch.setattr("tco.chain.metrics.usd_per_million", lambda *given, **named: 1.03 * FORMULA.usd_per_million.__wrapped__(*given, **named))
    after = state_of(evaluate(NAME, {"site.pue": "1.3"}, catalogue=CATALOGUE), fingerprints=False)
    after["formulas"] = {**base["formulas"], "usd_per_million": "0123456789ab"}
    first, second = steps(points(base, after, CATALOGUE), base["metrics"], COST)
    assert [cause.words() for cause in first.causes] == ["program changed: formula usd_per_million is another"]
    assert first.ratio == pytest.approx(1.03, rel=1e-11)
    assert [cause.path for cause in second.causes] == ["site.pue"]


def test_what_no_fingerprint_names_is_structure(base):
    before = copy.deepcopy(base)
    before["metrics"][COST] *= 1.1
    (step,) = steps(points(before, base, CATALOGUE), before["metrics"], COST)
    assert [cause.words() for cause in step.causes] == ["program changed: code that is no formula, no input differs"]


def test_a_tree_that_changed_names_its_places(base):
    before = copy.deepcopy(base)
    before["quantities"]["rack/compute-tray/trn3"] -= 4
    before["metrics"]["capex_usd"] *= 0.97
    (step,) = steps(points(before, base, CATALOGUE), before["metrics"], "capex_usd")
    ((kind, path, old, new, _),) = step.causes
    assert (kind, path, new - old) == ("quantity", "rack/compute-tray/trn3", 4)


def test_a_state_that_cannot_be_had_any_more_still_sums(base):
    before = copy.deepcopy(base)
    before["system"] = "gone-nl8"
    before["metrics"][COST] *= 2
    (step,) = steps(points(before, base, CATALOGUE), before["metrics"], COST)
    assert step.difference == base["metrics"][COST] - before["metrics"][COST]
    assert step.causes


def test_values_that_do_not_go_together_yet_count_with_what_follows(base):
    """A prompt beyond the context of the first model is no workload until the model follows."""
    long = {"workload__input_tokens": "200000", "workload__interactivity": "10 token/s"}
    after = state_of(asked(workload__model="llama-4-maverick", **long))
    *_, joint = whole(base, after)[COST]
    paths = [words.partition(":")[0].rpartition(" ")[2] for words in joint]
    assert paths == ["workload.input_tokens", "workload.interactivity", "workload.model"]
