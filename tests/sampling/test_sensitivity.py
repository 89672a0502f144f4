"""Sensitivity of a metric: single inputs, ends that miss the target, shares of the variance."""

from __future__ import annotations

import csv
import io
import re
from functools import cache, partial
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import norm

import tco
from tco import DataError, UsageError, sensitivity
from tco.catalog.labels import short_name
from tco.report.sensitivity import GROUPS
from tco.sampling.drivers import first_order, pairs_that_flip
from tco.sampling.sensitivity import input_quantiles
from tco.scenario.metrics import PERFORMANCE
from tco.scenario.structure import plain_plan
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.cli import tco as command
from tests.scenario_helpers import ALIKE, HEADLINE, Input
from tests.study_helpers import (
    DRAWS,
    P95,
    Dice,
    Range,
    confidence_of,
    evaluate_each,
    settings_of,
)

CENTRE = 1

TRN3, GB200, MI450X, A100 = (
    "trn3-nl72x2",
    "gb200-nvl72",
    "mi450x-ualoe72",
    "train-gpt3-175b-a100x64",
)
TOKEN, HOUR, RATIO = (
    "usd_per_million_output_tokens",
    "tco_usd_per_chip_hour",
    "perf_per_tco_vs_baseline",
)
PLACES = np.array([-P95, 0, P95])  # of an input about a median
# where MI450X costs less a token than GB200
AHEAD = {
    "workload.interactivity": "20 token/s",
    "workload.as_deployed": "0",
}


def tco_lines(*arguments):
    return command(*arguments).stdout.splitlines()


cached_sensitivity = cache(sensitivity)
evaluate = cache(partial(tco.evaluate, catalogue=CATALOGUE))


def metric_at_values(name, path, values, metric):
    """Return a metric for some values of one input, with nan where no batch meets the target.

    The plan's axes are held, its batch is solved for the target.
    """
    base = evaluate(name)
    draw_results = tco.evaluate_draws(
        name,
        {path: (np.array(values), base.inputs[path].unit)},
        structure=base.structure,
        catalogue=CATALOGUE,
    )
    return (
        np.where(draw_results.meets, draw_results.metrics[metric], np.nan)
        if metric in PERFORMANCE
        else draw_results.metrics[metric]
    )


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        (TRN3, TOKEN),
        (GB200, HOUR),
        pytest.param(A100, "train_usd_per_trillion_tokens", marks=pytest.mark.thorough),
    ],
)
def test_metric_at_an_end_is_that_of_the_input_set_by_itself(name, metric):
    swing_study, base = cached_sensitivity(name, metric), evaluate(name)
    assert swing_study.centre == pytest.approx(base.metrics[metric], rel=1e-12)
    for swing in [
        *swing_study.swings[:8],
        *swing_study.swings[40:43],
        *(swing for swing in swing_study.swings if swing.input_record.path.startswith("cluster.")),
    ]:
        swing_input = swing.input_record
        end_metrics = [
            tco.evaluate(
                name, {swing_input.path: (end, swing_input.unit)}, catalogue=CATALOGUE
            ).metrics[metric]
            for end in (swing_input.low, swing_input.high)
        ]
        assert (swing.at_low, swing.at_high) == tuple(
            None if end_metric is None else pytest.approx(end_metric, rel=1e-7)
            for end_metric in end_metrics
        ), swing_input.path
        assert (swing.meets_low, swing.meets_high) == tuple(
            end_metric is not None for end_metric in end_metrics
        ), swing_input.path


def test_the_batch_of_an_end_is_the_best_that_a_search_of_batches_finds():
    """The batch of an end is within 3 % of a search on the axes of the plan at the centre.

    The search takes batches from a grid, so that it finds a little less.
    """
    plan = {
        axis: str(size)
        for axis, size in plain_plan(tco.evaluate(TRN3, ALIKE, catalogue=CATALOGUE).plan).items()
        if axis in ("tp", "dp", "ep", "pp")
    }
    swings = {
        swing.input_record.path: swing
        for swing in sensitivity(TRN3, TOKEN, set=ALIKE, hold=True).swings
    }
    for path in (
        "performance.layer.kernels_latent",
        "performance.trainium.stream_efficiency",
        "performance.trainium.flash_efficiency_bf16",
    ):
        swing = swings[path]
        for end, value in (
            (swing.input_record.low, swing.at_low),
            (swing.input_record.high, swing.at_high),
        ):
            searched_cost = tco.evaluate(
                TRN3, ALIKE | {path: (end, swing.input_record.unit)}, plan, catalogue=CATALOGUE
            ).metrics[TOKEN]
            assert 0.97 * searched_cost < value < 1.03 * searched_cost, path


@pytest.mark.thorough
@pytest.mark.parametrize("name", [TRN3, MI450X])
def test_compare_names_the_same_drivers_with_the_same_figures(name):
    """The drivers below the table of `compare` are the first of this ranking, flips included."""
    sure = dict(
        zip(HEADLINE, confidence_of(evaluate_each(HEADLINE, None, {}), GB200).sure, strict=True)
    )[name]
    swings = {swing.input_record.path: swing for swing in cached_sensitivity(name, RATIO).swings}
    for driver in sure.drivers:
        assert swings[driver.path].swing == pytest.approx(driver.swing, rel=1e-9)
        assert swings[driver.path].flips_at == (
            None if driver.flips_at is None else pytest.approx(driver.flips_at, rel=1e-9)
        )
    assert [driver.path for driver in sure.drivers] == list(swings)[:3]


def test_the_largest_swing_comes_first_and_every_input_with_a_range_is_there():
    swing_study = cached_sensitivity(TRN3, TOKEN)
    swings = [np.inf if swing.swing is None else abs(swing.swing) for swing in swing_study.swings]
    assert swings == sorted(swings, reverse=True)
    inputs = tco.evaluate(TRN3, catalogue=CATALOGUE).inputs
    assert {swing.input_record.path for swing in swing_study.swings} == {
        path
        for path, scenario_input in inputs.items()
        if scenario_input.low is not None and scenario_input.low < scenario_input.high
    }


@pytest.mark.thorough
def test_an_input_that_is_set_has_no_range():
    swing_study = sensitivity(TRN3, TOKEN, set={"terms.utilisation": "0.7"})
    assert "terms.utilisation" not in {swing.input_record.path for swing in swing_study.swings}


@pytest.mark.thorough
def test_a_ratio_moves_both_sides_together():
    swing_study = cached_sensitivity(TRN3, RATIO)
    scenario_result, baseline_result = (
        tco.evaluate(name, catalogue=CATALOGUE) for name in (TRN3, GB200)
    )
    assert swing_study.centre == pytest.approx(
        baseline_result.metrics[TOKEN] / scenario_result.metrics[TOKEN], rel=1e-12
    )
    by_path = {swing.input_record.path: swing for swing in swing_study.swings}
    # common to both, it cancels but for energy, which follows use and is a larger share of one
    used = by_path["terms.utilisation"]
    baseline_costs, two = (
        metric_at_values(
            name, used.input_record.path, [used.input_record.low, used.input_record.high], TOKEN
        )
        for name in (GB200, TRN3)
    )
    # on a step a batch is found to 1e-5
    assert (used.at_low, used.at_high) == pytest.approx(
        tuple(
            theirs / scenario_cost
            for theirs, scenario_cost in zip(baseline_costs, two, strict=True)
        ),
        rel=1e-6,
    )
    assert abs(used.swing) < 0.05
    chip = by_path["parts.gb200-gpu.price"]
    theirs = metric_at_values(GB200, chip.input_record.path, [chip.input_record.high], TOKEN)[0]
    scenario_cost = metric_at_values(
        TRN3, "terms.rate", [scenario_result.inputs["terms.rate"].value], TOKEN
    )[0]
    assert chip.at_high == pytest.approx(theirs / scenario_cost, rel=1e-6)
    assert chip.swing > 0


@pytest.mark.thorough
def test_an_end_at_which_the_plan_misses_the_target_is_marked():
    quick = {"workload.interactivity": "100 token/s"}
    held_study = sensitivity(TRN3, TOKEN, hold=True, set=quick)
    missed = {swing.input_record.path: swing for swing in held_study.swings if not swing.meets_high}
    assert missed
    base = tco.evaluate(TRN3, quick, catalogue=CATALOGUE)
    for path, swing in missed.items():
        high = {**quick, path: (np.array([swing.input_record.high]), swing.input_record.unit)}
        assert not tco.evaluate_draws(
            TRN3, high, structure=base.structure, catalogue=CATALOGUE
        ).meets[0]
    # a price per hour has no target to miss
    assert all(
        swing.meets_low and swing.meets_high for swing in cached_sensitivity(TRN3, HOUR).swings
    )
    lines = tco_lines("sensitivity", TRN3, "--hold", "--set", "workload.interactivity=100 token/s")
    first_missed = short_name(next(iter(missed)))
    assert any(" !" in line for line in lines if line.lstrip("~").startswith(first_missed))
    assert any(line.startswith("! ") for line in lines)


@pytest.mark.thorough
def test_plans_chosen_anew_are_those_of_a_search_and_an_end_without_one_has_no_price():
    free = sensitivity(TRN3, TOKEN, set={"workload.interactivity": "130 token/s"})
    without = [swing for swing in free.swings if swing.swing is None]
    assert free.swings[: len(without)] == without  # first, as nothing weighs more
    far = [swing for swing in free.swings if swing.swing is not None][:3]
    for swing in [*without, *far]:
        for end, value, met in (
            (swing.input_record.low, swing.at_low, swing.meets_low),
            (swing.input_record.high, swing.at_high, swing.meets_high),
        ):
            searched_result = tco.evaluate(
                TRN3,
                {
                    "workload.interactivity": "130 token/s",
                    swing.input_record.path: (end, swing.input_record.unit),
                },
                catalogue=CATALOGUE,
            )
            assert met == (value is not None) == (searched_result.plan is not None)
            if value is not None:
                assert value == pytest.approx(searched_result.metrics[TOKEN], rel=1e-7)
    assert without


def narrowing_by_nested_draws(name, metric, path, group_count=200, draws=60):
    """Return the share by which knowing an input narrows the deviation of a metric's logarithm.

    It is computed from draws of all inputs in groups in which that input is nearly the same.
    """
    (case,) = evaluate_each([name], None, {})
    drawn_function = case.drawn_function()
    dice = Dice(CATALOGUE, 31, 0, group_count * draws)
    deviates = {
        input_path: dice.correlated_deviates(input_range)
        for input_path, input_range in drawn_function.ranges.items()
    }
    draw_results = drawn_function.draws(settings_of(drawn_function.ranges, deviates))
    draw_values = (
        np.where(draw_results.meets, draw_results.metrics[metric], np.nan)
        if metric in PERFORMANCE
        else draw_results.metrics[metric]
    )
    grouped_logs = np.log(draw_values)[np.argsort(deviates[path])].reshape(group_count, draws)
    groups = [group[np.isfinite(group)] for group in grouped_logs if np.isfinite(group).sum() > 1]
    pooled_variance = sum(group.var() * len(group) for group in groups) / sum(
        len(group) - 1 for group in groups
    )
    return 1 - np.sqrt(pooled_variance / np.concatenate(groups).var(ddof=1))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "metric", "count"), [(GB200, HOUR, 2), (GB200, TOKEN, 1)])
def test_narrowing_by_an_input_is_that_of_nested_draws(name, metric, count):
    swing_study = cached_sensitivity(name, metric)
    for swing in sorted(swing_study.swings, key=lambda swing: -swing_study.narrows(swing))[:count]:
        share = swing_study.share(swing)
        # of 1 - sqrt(1 - R^2), whose share R^2 is fitted to so many draws
        error = np.sqrt(share * (1 - share) / DRAWS)
        assert swing_study.narrows(swing) == pytest.approx(
            narrowing_by_nested_draws(name, metric, swing.input_record.path), abs=3 * error
        ), swing.input_record.path
        assert swing_study.narrows(swing) > 0.1


def test_what_is_worth_finding_out_is_guessed_and_narrows_most():
    swing_study = cached_sensitivity(GB200, HOUR)
    assert len(swing_study.worth) == 3
    guessed = [
        swing for swing in swing_study.swings if swing.input_record.kind in ("estimate", "assumed")
    ]
    assert swing_study.worth == sorted(guessed, key=swing_study.narrows, reverse=True)[:3]


def test_the_share_of_an_input_is_that_of_closed_forms():
    """Shares of log y = 2 a + b + c^2 are those of the variances 4, 1 and 2.

    An input that moves nothing has no share, and too few draws give none.
    """
    deviates = dict(zip("abcd", np.random.default_rng(3).standard_normal((4, 20_000)), strict=True))
    values = np.exp(2 * deviates["a"] + deviates["b"] + deviates["c"] ** 2)
    assert first_order(values, deviates) == pytest.approx(
        {"a": 4 / 7, "b": 1 / 7, "c": 2 / 7, "d": 0}, abs=0.01
    )
    values[50:] = np.nan
    assert first_order(values, deviates) == {}


@pytest.mark.parametrize("group", GROUPS)
def test_shares_of_groups_come_to_one_and_are_those_of_their_inputs(group):
    swing_study, name = cached_sensitivity(GB200, HOUR), GROUPS[group]
    groups = swing_study.groups(name)
    assert sum(groups.values()) == pytest.approx(1)
    assert list(groups.values()) == sorted(groups.values(), reverse=True)
    squares = {
        key: sum(swing.swing**2 for swing in swing_study.swings if name(swing.input_record) == key)
        for key in groups
    }
    assert groups == pytest.approx(
        {key: square_sum / sum(squares.values()) for key, square_sum in squares.items()}
    )


def test_rates_that_are_stated_have_no_target_to_miss():
    swing_study = sensitivity(GB200, HOUR, set={"workload": "stated"})
    assert swing_study.swings[0].swing
    assert all(swing.meets_low and swing.meets_high for swing in swing_study.swings)


# ---------------------------------------------------------------- what flips the order
class Law:
    """A ratio that is a known function of the places of some inputs, in the place of the chain."""

    def __init__(self, function):
        self.function = function

    def places(self, input_range):
        return PLACES

    def together(self, deviates):
        count = len(next(iter(deviates.values())))
        return self.function({path: deviates.get(path, np.zeros(count)) for path in "abcdefg"})

    def one_at_a_time_values(self):
        return {path: self.together({path: PLACES}) for path in "abcdefg"}


LAWS = {
    "a power law": lambda deviates: (
        0.6
        * np.exp(
            0.25 * deviates["a"]
            - 0.2 * deviates["b"]
            + 0.15 * deviates["c"]
            + 0.12 * deviates["d"]
            + 0.02 * deviates["e"]
            + 0.4 * deviates["f"]
        )
    ),
    "from above": lambda deviates: (
        1.7
        * np.exp(
            0.25 * deviates["a"]
            - 0.2 * deviates["b"]
            + 0.15 * deviates["c"]
            + 0.12 * deviates["d"]
            + 0.02 * deviates["e"]
        )
    ),
    "inputs that strengthen each other": lambda deviates: (
        0.6
        * np.exp(
            0.1 * deviates["a"]
            + 0.1 * deviates["b"]
            + 0.08 * deviates["a"] * deviates["b"]
            + 0.13 * deviates["c"]
        )
    ),
    "a target that both together miss": lambda deviates: np.where(
        deviates["a"] + deviates["b"] > 3,
        np.nan,
        0.6 * np.exp(0.25 * deviates["a"] - 0.25 * deviates["b"]),
    ),
    "none": lambda deviates: 0.1 * np.exp(0.1 * deviates["a"] + 0.1 * deviates["b"]),
}


@pytest.mark.parametrize("plan_inputs", ["", "abc", "abcdefg"])
@pytest.mark.parametrize("name", LAWS)
def test_pairs_that_flip_are_those_of_all_pairs_at_all_places(name, plan_inputs):
    law, expected_ratios = Law(LAWS[name]), {}
    ranges = {
        path: Range(path, 1.0, 2.0, 4.0, "", 0.0, 1e9, False, None, "a" if path == "g" else path)
        for path in "abcdefg"
    }
    ratios_by_path = law.one_at_a_time_values()
    above = ratios_by_path["a"][CENTRE] > 1
    single_flips = {
        path
        for path, path_ratios in ratios_by_path.items()
        if (path_ratios[np.isfinite(path_ratios)] > 1).any() != above
        or (path_ratios[np.isfinite(path_ratios)] > 1).all() != above
    }
    for pair in combinations("abcdef", 2):
        grid = np.array(list(product(PLACES, PLACES)))
        pair_ratios = law.together(
            {path: grid[:, grid_column] for grid_column, path in enumerate(pair)}
        )
        flips = np.isfinite(pair_ratios) & ((pair_ratios > 1) != above)
        if flips.any() and not single_flips & {*pair}:
            expected_ratios[pair] = (pair_ratios[flips].min if above else pair_ratios[flips].max)()
    flip_pairs = pairs_that_flip(ranges, ratios_by_path, law.together, frozenset(plan_inputs))
    assert {
        tuple(sorted(flip_pair.paths)): flip_pair.ratio for flip_pair in flip_pairs
    } == pytest.approx(expected_ratios)
    assert [flip_pair.ratio for flip_pair in flip_pairs] == sorted(
        (flip_pair.ratio for flip_pair in flip_pairs), reverse=not above
    )
    for flip_pair in flip_pairs:
        deviates = {
            path: np.array([np.log(value / 2) / np.log(2) * P95])
            for path, value in zip(flip_pair.paths, flip_pair.values, strict=True)
        }
        assert law.together(deviates) == pytest.approx([flip_pair.ratio])
    assert bool(flip_pairs) == (name != "none")


def test_inputs_that_draw_alike_and_those_that_decide_what_exists_are_no_pair():
    law = Law(lambda deviates: 0.6 * np.exp(0.25 * deviates["a"] + 0.25 * deviates["b"]))
    ranges = {
        path: Range(path, 1.0, 2.0, 4.0, "", 0.0, 1e9, False, None, path) for path in "abcdefg"
    }
    moves = law.one_at_a_time_values()
    pairs = pairs_that_flip(ranges, moves, law.together, frozenset())
    assert [pair.paths for pair in pairs] == [("a", "b")]
    for change in ({"leader": "a"}, {"steps": True}):
        changed = ranges | {"b": ranges["b"]._replace(**change)}
        assert not pairs_that_flip(changed, moves, law.together, frozenset("ab"))


@pytest.mark.thorough
def test_the_chain_flips_at_the_named_pairs_and_at_no_other():
    """Every pair of the strongest inputs is set at all corners in the chain.

    The inputs are those that do not flip the order by themselves.
    """
    swing_study = sensitivity(MI450X, RATIO, set=AHEAD)
    scenario_side, baseline_side = swing_study.sides
    excluded_prefixes = (
        "cluster.",
        "performance.amd.flop_energy",
    )  # a choice, and what follows NVIDIA's
    strongest = [
        swing.input_record
        for swing in swing_study.swings
        if swing.flips_at is None and not swing.input_record.path.startswith(excluded_prefixes)
    ][:14]
    pairs = list(combinations(strongest, 2))
    expected_pairs = set()
    for ends in product(("low", "high"), repeat=2):
        costs = []
        for side in (baseline_side, scenario_side):
            drawn_values = {
                ranged_input.path: np.full(len(pairs), ranged_input.value)
                for ranged_input in strongest
                if ranged_input.path in side.result.inputs
            }
            for pair_index, pair in enumerate(pairs):
                for ranged_input, end in zip(pair, ends, strict=True):
                    if ranged_input.path in drawn_values:
                        drawn_values[ranged_input.path][pair_index] = getattr(ranged_input, end)
            units = {
                path: (input_values, side.result.inputs[path].unit)
                for path, input_values in drawn_values.items()
            }
            draw_results = tco.evaluate_draws(
                side.scenario.name, AHEAD | units, catalogue=CATALOGUE
            )
            costs.append(np.where(draw_results.meets, draw_results.metrics[TOKEN], np.nan))
        ratios = costs[0] / costs[1]
        expected_pairs |= {
            frozenset(ranged_input.path for ranged_input in pairs[pair_index])
            for pair_index in np.flatnonzero(np.isfinite(ratios) & (ratios < 1))
        }
    names = {ranged_input.path for ranged_input in strongest}
    assert swing_study.centre > 1
    assert {
        frozenset(flip_pair.paths) for flip_pair in swing_study.pairs if {*flip_pair.paths} <= names
    } == expected_pairs
    assert expected_pairs
    single_flips = {swing.input_record.path for swing in swing_study.flips}
    assert single_flips
    assert not any(single_flips & {*flip_pair.paths} for flip_pair in swing_study.pairs)


@pytest.mark.thorough
def test_flips_of_plans_chosen_anew_are_those_of_a_search():
    swing_study = sensitivity(MI450X, RATIO, set=AHEAD)
    flip_pair, units = (
        swing_study.pairs[0],
        {swing.input_record.path: swing.input_record.unit for swing in swing_study.swings},
    )
    pair_settings = {
        path: (value, units[path])
        for path, value in zip(flip_pair.paths, flip_pair.values, strict=True)
    }
    costs = []
    for name in (GB200, MI450X):
        side_settings = {
            path: value for path, value in pair_settings.items() if path in evaluate(name).inputs
        }
        costs.append(tco.evaluate(name, AHEAD | side_settings, catalogue=CATALOGUE).metrics[TOKEN])
    assert costs[0] / costs[1] == pytest.approx(flip_pair.ratio, rel=0.05)
    assert len(swing_study.flips) >= 2


@pytest.mark.thorough
def test_flips_stand_in_table_document_and_csv():
    ahead = [word for path, text in AHEAD.items() for word in ("--set", f"{path}={text}")]
    swing_document = document("sensitivity", MI450X, "--metric", RATIO, *ahead)
    first = swing_document["pairs_that_flip"][0]
    a, b = (pair_input["path"] for pair_input in first["inputs"])
    assert first["metric"] < 1 < swing_document["metric_value"]
    lines = command("sensitivity", MI450X, "--metric", RATIO, *ahead).stdout.splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("turns the order"))
    pairs = [line for line in lines[head:] if short_name(a) in line and short_name(b) in line]
    assert pairs
    flip_rows = [row for row in swing_document["inputs"] if row["flips_at"] is not None]
    assert flip_rows
    for row in flip_rows:
        side = "below" if row["flips_at"] < row["value"] else "above"
        name = re.escape(short_name(row["path"]))
        assert any(re.match(rf"{name} +{side} about", line) for line in lines[head:])
    printed = command("sensitivity", MI450X, "--metric", RATIO, *ahead, "--format", "csv").stdout
    rows = {row["path"]: row for row in csv.DictReader(io.StringIO(printed))}
    assert b in rows[a]["flips_with"].split()
    assert float(rows[flip_rows[0]["path"]]["flips_at"]) == flip_rows[0]["flips_at"]
    assert "turns the order" not in command("sensitivity", GB200, "--metric", HOUR).stdout
    assert document("sensitivity", GB200, "--metric", HOUR)["pairs_that_flip"] is None


def test_shares_by_subject_and_by_kind_of_source_are_two_tables_that_sum_to_one():
    screen = command("sensitivity", GB200, "--metric", HOUR).stdout
    _, subjects, kinds = screen.split("Where the variation comes from, by ")
    assert subjects.startswith("subject\n")
    assert kinds.startswith("kind of source\n")
    for shares_text in (subjects, kinds.partition("\n\n")[0]):
        shares = [float(share) for share in re.findall(r" ([\d.]+) %$", shares_text, re.MULTILINE)]
        assert sum(shares) == pytest.approx(100, abs=0.5 * len(shares))


def test_the_tornado_names_the_strongest_input_the_bars_and_the_next_commands():
    screen = command("sensitivity", GB200, "--metric", HOUR).stdout
    first = document("sensitivity", GB200, "--metric", HOUR)["inputs"][0]
    low, high = (f"{first[end]:.2f}" for end in ("metric_low", "metric_high"))
    strongest = f"The strongest input is {short_name(first['path'])}: {low} at its low, {high} at"
    assert strongest in screen
    assert "less │ more" in screen
    assert "░ result at the input's low, █ result at its high" in screen
    assert f"tco inputs {GB200} WORD" in screen
    assert "50 tokens/s per user" not in screen  # the cost of a chip-hour rests on no workload


# ---------------------------------------------------------------- all together
@pytest.mark.thorough
def test_first_order_indices_of_a_price_that_is_nearly_a_sum_come_to_one():
    swing_study = sensitivity(GB200, HOUR, hold=True, sobol=1024)
    moving = {
        swing.input_record.path
        for swing in swing_study.swings
        if swing.swing
        and swing.input_record.path not in ("cluster.chips", "cluster.oversubscription")
    }
    assert set(swing_study.drivers) == moving
    assert sum(driver.first for driver in swing_study.drivers.values()) == pytest.approx(
        1, abs=0.06
    )
    assert sum(driver.total for driver in swing_study.drivers.values()) == pytest.approx(
        1, abs=0.06
    )
    assert swing_study.drivers == sensitivity(GB200, HOUR, hold=True, sobol=1024).drivers
    assert max(swing_study.drivers, key=lambda path: swing_study.drivers[path].total) in (
        "terms.life",
        "terms.rate",
    )


@pytest.mark.parametrize(
    ("path", "low", "value", "high", "median"),
    [
        ("parts.trn3.price", 2.0, 3.0, 9.0, 3.0),
        ("terms.residual", 0.0, 0.1, 0.2, 0.1),
        ("terms.residual", 0.0, 0.0, 0.2, 0.0560),
    ],
)
def test_low_and_high_are_the_fifth_and_the_ninety_fifth_percentile(path, low, value, high, median):
    """The value is the median of a price, and the most likely value of a share.

    For a share at its low end the median is that of Beta(1.048, 4.952).
    """
    ranged_input = Input(path, value, "ratio", low, high)
    assert input_quantiles(ranged_input, np.array([0.05, 0.5, 0.95])) == pytest.approx(
        [low, median, high], rel=1e-3
    )
    if path == "parts.trn3.price":
        assert input_quantiles(ranged_input, np.array([0.75])) == pytest.approx(
            value * (high / value) ** (norm.ppf(0.75) / norm.ppf(0.95)), rel=1e-9
        )


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "fragment"),
    [
        ((TRN3, "usd_per_token"), {}, DataError, "did you mean"),
        ((TRN3, "mfu"), {}, DataError, "mfu has no value for trn3-nl72x2"),
        (("trn3-nl72x", TOKEN), {}, DataError, "did you mean 'trn3-nl72x2'"),
        ((TRN3, TOKEN), {"baseline": GB200}, DataError, "is compared with no baseline"),
        ((TRN3, RATIO), {"baseline": "gb200"}, DataError, "unknown scenario 'gb200'"),
        ((GB200, HOUR), {"sobol": 1000, "hold": True}, UsageError, "expected a power of two"),
        ((GB200, HOUR), {"sobol": 64}, UsageError, "with the plan fixed"),
    ],
)
def test_impossible_sensitivity_is_refused(arguments, keywords, error, fragment):
    with pytest.raises(error, match=fragment):
        sensitivity(*arguments, **keywords)


def test_the_document_has_ranges_in_the_units_of_the_catalogue():
    swing_document = document("sensitivity", GB200, "--metric", HOUR)
    rows = {row["path"]: row for row in swing_document["inputs"]}
    price = rows["site.electricity_price"]
    assert (price["low"], price["high"], price["unit"]) == (
        pytest.approx(0.066),
        pytest.approx(0.098),
        "USD/kWh",
    )
    assert price["swing"] == pytest.approx(price["metric_high"] - price["metric_low"])
    assert len(swing_document["worth_finding_out"]) == 3
    assert swing_document["plan"] == "re-optimised"


def test_the_table_shows_bars_to_the_side_the_metric_goes():
    lines = tco_lines("sensitivity", GB200, "--metric", HOUR)
    bars = [line.lstrip("~") for line in lines if "│" in line]
    (rate,) = (line for line in bars if line.startswith("cost of capital"))
    (life,) = (line for line in bars if line.startswith("economic life"))
    assert rate.index("░") < rate.index("│") < rate.index("█")
    assert life.index("█") < life.index("│") < life.index("░")
    assert any(line.startswith("Estimates that a measurement should") for line in lines)


def test_the_failure_rate_that_chips_share_drives_a_ratio_as_one_input():
    """The shared failure rate moves a ratio less than the rate of one chip would.

    Trainium3 and GB200 fail as often, so the rate moves both at once.
    """
    outcome = document("sensitivity", "trn3-nl32x2", "--metric", RATIO)
    shared = next(row for row in outcome["inputs"] if row["path"] == "failures.chip_rate")
    assert not [
        row
        for row in outcome["inputs"]
        if row["path"] in ("parts.trn3.failure_rate", "parts.gb200-gpu.failure_rate")
    ]

    def cost(name, **rates):
        changed = {path.replace("__", "."): f"{rate} 1/year" for path, rate in rates.items()}
        return tco.evaluate(name, changed, catalogue=CATALOGUE).metrics[TOKEN]

    moves = [
        cost("gb200-nvl72", failures__chip_rate=rate)
        / cost("trn3-nl32x2", failures__chip_rate=rate)
        for rate in (0.05, 0.35)
    ]
    assert [shared["metric_low"], shared["metric_high"]] == pytest.approx(moves, rel=2e-3)
    plain, of_one = outcome["metric_value"], {"parts__gb200-gpu__failure_rate": 0.35}
    assert (
        0
        < shared["metric_high"] - plain
        < cost("gb200-nvl72", **of_one) / cost("trn3-nl32x2") - plain
    )
