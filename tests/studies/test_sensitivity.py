"""What drives a metric: each input as if it alone were set, ends that miss the target, and shares of the variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import tco
from tco.foundation.errors import DataError, UsageError
from tco.foundation.provenance import Input
from tco.studies.sensitivity import sensitivity, spread
from tests.cli import document
from tests.cli import tco as command
from tests.shipped import CATALOGUE

TRN3, GB200, A100 = "trn3-nl72x2", "gb200-nvl72", "train-gpt3-175b-a100x64"
TOKEN, HOUR, RATIO = "usd_per_million_output_tokens", "tco_usd_per_chip_hour", "perf_per_tco_vs_baseline"


def tco_lines(*arguments):
    return command(*arguments).stdout.splitlines()


@pytest.mark.parametrize(("name", "metric"), [(TRN3, TOKEN), (GB200, HOUR), (A100, "train_usd_per_trillion_tokens")])
def test_every_end_is_that_of_the_input_set_alone(name, metric):
    found = sensitivity(name, metric)
    base = tco.evaluate(name, catalogue=CATALOGUE)
    assert found.centre == pytest.approx(base.metrics[metric], rel=1e-12)
    for one in [*found.swings[:6], *found.swings[40:44], *(one for one in found.swings if one.given.path.startswith("cluster."))]:
        for end, value in ((one.given.low, one.at_low), (one.given.high, one.at_high)):
            structure = None if one.given.path in ("cluster.chips", "cluster.oversubscription") else base.structure
            plan = base.plan if structure is None else None
            alone = tco.evaluate(name, {one.given.path: (end, one.given.unit)}, plan, structure=structure, catalogue=CATALOGUE)
            assert value == pytest.approx(alone.metrics[metric], rel=1e-12), one.given.path


def test_the_largest_swing_comes_first_and_every_input_with_a_range_is_there():
    found = sensitivity(TRN3, TOKEN)
    swings = [abs(one.swing) for one in found.swings]
    assert swings == sorted(swings, reverse=True)
    inputs = tco.evaluate(TRN3, catalogue=CATALOGUE).inputs
    assert {one.given.path for one in found.swings} == {path for path, one in inputs.items() if one.low is not None and one.low < one.high}


def test_an_input_that_is_set_has_no_range():
    found = sensitivity(TRN3, TOKEN, set={"terms.utilisation": "0.7"})
    assert "terms.utilisation" not in {one.given.path for one in found.swings}


def test_a_ratio_moves_both_sides_together():
    found = sensitivity(TRN3, RATIO)
    own, other = (tco.evaluate(name, catalogue=CATALOGUE) for name in (TRN3, GB200))
    assert found.centre == pytest.approx(other.metrics[TOKEN] / own.metrics[TOKEN], rel=1e-12)
    by_path = {one.given.path: one for one in found.swings}
    assert by_path["terms.utilisation"].swing == 0  # common to both, it cancels
    chip = by_path["parts.gb200-gpu.price"]
    set_high = tco.evaluate(GB200, {"parts.gb200-gpu.price": (chip.given.high, "USD")}, structure=other.structure, catalogue=CATALOGUE)
    assert chip.at_high == pytest.approx(set_high.metrics[TOKEN] / own.metrics[TOKEN], rel=1e-12)
    assert chip.swing > 0


def test_an_end_at_which_the_plan_misses_the_target_is_marked():
    held = sensitivity(TRN3, TOKEN)
    missed = {one.given.path: one for one in held.swings if not one.meets_high}
    assert missed
    base = tco.evaluate(TRN3, catalogue=CATALOGUE)
    for path, one in missed.items():
        high = {path: (np.array([one.given.high]), one.given.unit)}
        assert not tco.evaluate_draws(TRN3, high, structure=base.structure, catalogue=CATALOGUE).meets[0]
    assert all(one.meets_low and one.meets_high for one in sensitivity(TRN3, HOUR).swings)  # a price per hour has no target to miss
    lines = tco_lines("sensitivity", TRN3)
    assert any("!" in line for line in lines if line.startswith(next(iter(missed))))
    assert lines[-1].startswith("! ")


def test_plans_chosen_anew_are_those_of_a_search_and_an_end_without_one_has_no_price():
    free = sensitivity(TRN3, TOKEN, replan=True, set={"workload.interactivity": "60 token/s"})
    without = [one for one in free.swings if one.swing is None]
    assert free.swings[: len(without)] == without  # first, as nothing weighs more
    far = [one for one in free.swings if one.swing is not None][:3]
    for one in [*without, *far]:
        for end, value, met in ((one.given.low, one.at_low, one.meets_low), (one.given.high, one.at_high, one.meets_high)):
            alone = tco.evaluate(TRN3, {"workload.interactivity": "60 token/s", one.given.path: (end, one.given.unit)}, catalogue=CATALOGUE)
            assert met == (value is not None) == (alone.plan is not None)
            if value is not None:
                assert 0.7 * alone.metrics[TOKEN] < value < alone.metrics[TOKEN] * (1 + 2e-3)  # its batch is solved, not one of a grid
    assert without


def test_what_is_worth_finding_out_is_guessed_and_moves_most():
    found = sensitivity(GB200, HOUR)
    assert len(found.worth) == 3
    guessed = [one for one in found.swings if one.given.kind in ("estimate", "assumed")]
    assert found.worth == guessed[:3]
    assert found.share(found.worth[0]) == pytest.approx(found.worth[0].swing ** 2 / sum(one.swing**2 for one in found.swings))


def test_shares_of_groups_come_to_one():
    groups = sensitivity(GB200, HOUR).groups(lambda given: given.kind)
    assert sum(groups.values()) == pytest.approx(1)
    assert list(groups.values()) == sorted(groups.values(), reverse=True)


def test_first_order_indices_of_a_price_that_is_nearly_a_sum_come_to_one():
    found = sensitivity(GB200, HOUR, sobol=1024)
    moving = {one.given.path for one in found.swings if one.swing and one.given.path not in ("cluster.chips", "cluster.oversubscription")}
    assert set(found.drivers) == moving
    assert sum(one.first for one in found.drivers.values()) == pytest.approx(1, abs=0.06)
    assert sum(one.total for one in found.drivers.values()) == pytest.approx(1, abs=0.06)
    assert found.drivers == sensitivity(GB200, HOUR, sobol=1024).drivers
    assert max(found.drivers, key=lambda path: found.drivers[path].total) in ("terms.life", "terms.rate")


@pytest.mark.parametrize(
    ("path", "low", "value", "high", "median"),
    [("parts.trn3.price", 2.0, 3.0, 9.0, 3.0), ("terms.residual", 0.0, 0.1, 0.2, 0.1), ("terms.residual", 0.0, 0.0, 0.2, 0.0560)],
)
def test_low_and_high_are_the_fifth_and_the_ninety_fifth_percentile(path, low, value, high, median):
    """The value is the median of a price, the most likely of a share: of one at its low end the median is that of Beta(1.048, 4.952)."""
    given = Input(path, value, "ratio", low, high)
    assert spread(given, np.array([0.05, 0.5, 0.95])) == pytest.approx([low, median, high], rel=1e-3)
    if path == "parts.trn3.price":
        assert spread(given, np.array([0.75])) == pytest.approx(value * (high / value) ** (norm.ppf(0.75) / norm.ppf(0.95)), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "fragment"),
    [
        ((TRN3, "usd_per_token"), {}, DataError, "did you mean"),
        ((TRN3, "mfu"), {}, DataError, "mfu has no value for trn3-nl72x2"),
        (("trn3-nl72x", TOKEN), {}, DataError, "did you mean 'trn3-nl72x2'"),
        ((TRN3, TOKEN), {"baseline": GB200}, DataError, "is held against none"),
        ((TRN3, RATIO), {"baseline": "gb200"}, DataError, "unknown scenario 'gb200'"),
        ((GB200, HOUR), {"sobol": 1000}, UsageError, "expected a power of two"),
        ((GB200, HOUR), {"sobol": 64, "replan": True}, UsageError, "hold the plan"),
    ],
)
def test_a_question_that_has_no_answer(arguments, keywords, error, fragment):
    with pytest.raises(error, match=fragment):
        sensitivity(*arguments, **keywords)


def test_the_document_has_ranges_in_the_units_of_the_catalogue():
    found = document("sensitivity", GB200, "--metric", HOUR)
    rows = {row["path"]: row for row in found["inputs"]}
    price = rows["site.electricity_price"]
    assert (price["low"], price["high"], price["unit"]) == (pytest.approx(0.066), pytest.approx(0.098), "USD/kWh")
    assert price["swing"] == pytest.approx(price["metric_high"] - price["metric_low"])
    assert len(found["worth_finding_out"]) == 3
    assert found["plan"] == "held"


def test_the_table_shows_bars_to_the_side_the_metric_goes():
    lines = tco_lines("sensitivity", GB200, "--metric", HOUR)
    (rate,) = (line for line in lines if line.startswith("terms.rate"))
    (life,) = (line for line in lines if line.startswith("terms.life "))
    assert rate.index("░") < rate.index("│") < rate.index("█")
    assert life.index("█") < life.index("│") < life.index("░")
    assert any(line.startswith("Worth finding out") for line in lines)
