"""What drives a metric: each input as if it alone were set, ends that miss the target, and shares
of the variance.
"""

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


asked = cache(sensitivity)
evaluate = cache(partial(tco.evaluate, catalogue=CATALOGUE))


def solved(name, path, values, metric):
    """A metric for some values of one input: the plan's axes held, its batch solved for the target;
    nan where no batch meets it.
    """
    base = evaluate(name)
    made = tco.evaluate_draws(
        name,
        {path: (np.array(values), base.inputs[path].unit)},
        structure=base.structure,
        catalogue=CATALOGUE,
    )
    return (
        np.where(made.meets, made.metrics[metric], np.nan)
        if metric in PERFORMANCE
        else made.metrics[metric]
    )


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        (TRN3, TOKEN),
        (GB200, HOUR),
        pytest.param(A100, "train_usd_per_trillion_tokens", marks=pytest.mark.thorough),
    ],
)
def test_every_end_is_that_of_the_input_set_alone(name, metric):
    found, base = asked(name, metric), evaluate(name)
    assert found.centre == pytest.approx(base.metrics[metric], rel=1e-12)
    for one in [
        *found.swings[:8],
        *found.swings[40:43],
        *(one for one in found.swings if one.given.path.startswith("cluster.")),
    ]:
        given = one.given
        each = [
            tco.evaluate(name, {given.path: (end, given.unit)}, catalogue=CATALOGUE).metrics[metric]
            for end in (given.low, given.high)
        ]
        assert (one.at_low, one.at_high) == tuple(
            None if alone is None else pytest.approx(alone, rel=1e-7) for alone in each
        ), given.path
        assert (one.meets_low, one.meets_high) == tuple(alone is not None for alone in each), (
            given.path
        )


def test_the_batch_of_an_end_is_the_best_that_a_search_of_batches_finds():
    """Held against the search itself, on the axes of the plan at the centre: it looks at batches of
    a grid, so that it finds a little less.
    """
    plan = {
        axis: str(size)
        for axis, size in plain_plan(tco.evaluate(TRN3, ALIKE, catalogue=CATALOGUE).plan).items()
        if axis in ("tp", "dp", "ep", "pp")
    }
    swings = {one.given.path: one for one in sensitivity(TRN3, TOKEN, set=ALIKE, hold=True).swings}
    for path in (
        "performance.layer.kernels_latent",
        "performance.trainium.stream_efficiency",
        "performance.trainium.flash_efficiency_bf16",
    ):
        one = swings[path]
        for end, value in ((one.given.low, one.at_low), (one.given.high, one.at_high)):
            alone = tco.evaluate(
                TRN3, ALIKE | {path: (end, one.given.unit)}, plan, catalogue=CATALOGUE
            ).metrics[TOKEN]
            assert 0.97 * alone < value < 1.03 * alone, path


@pytest.mark.thorough
@pytest.mark.parametrize("name", [TRN3, MI450X])
def test_compare_names_the_same_drivers_with_the_same_figures(name):
    """One ranking: what stands below the table of `compare` is the head of this one, flips
    and all.
    """
    sure = dict(
        zip(HEADLINE, confidence_of(evaluate_each(HEADLINE, None, {}), GB200).sure, strict=True)
    )[name]
    swings = {one.given.path: one for one in asked(name, RATIO).swings}
    for one in sure.drivers:
        assert swings[one.path].swing == pytest.approx(one.swing, rel=1e-9)
        assert swings[one.path].flips_at == (
            None if one.flips_at is None else pytest.approx(one.flips_at, rel=1e-9)
        )
    assert [one.path for one in sure.drivers] == list(swings)[:3]


def test_the_largest_swing_comes_first_and_every_input_with_a_range_is_there():
    found = asked(TRN3, TOKEN)
    swings = [np.inf if one.swing is None else abs(one.swing) for one in found.swings]
    assert swings == sorted(swings, reverse=True)
    inputs = tco.evaluate(TRN3, catalogue=CATALOGUE).inputs
    assert {one.given.path for one in found.swings} == {
        path for path, one in inputs.items() if one.low is not None and one.low < one.high
    }


@pytest.mark.thorough
def test_an_input_that_is_set_has_no_range():
    found = sensitivity(TRN3, TOKEN, set={"terms.utilisation": "0.7"})
    assert "terms.utilisation" not in {one.given.path for one in found.swings}


@pytest.mark.thorough
def test_a_ratio_moves_both_sides_together():
    found = asked(TRN3, RATIO)
    own, other = (tco.evaluate(name, catalogue=CATALOGUE) for name in (TRN3, GB200))
    assert found.centre == pytest.approx(other.metrics[TOKEN] / own.metrics[TOKEN], rel=1e-12)
    by_path = {one.given.path: one for one in found.swings}
    # common to both, it cancels but for energy, which follows use and is a larger share of one
    used = by_path["terms.utilisation"]
    one, two = (
        solved(name, used.given.path, [used.given.low, used.given.high], TOKEN)
        for name in (GB200, TRN3)
    )
    # on a step a batch is found to 1e-5
    assert (used.at_low, used.at_high) == pytest.approx(
        tuple(theirs / mine for theirs, mine in zip(one, two, strict=True)), rel=1e-6
    )
    assert abs(used.swing) < 0.05
    chip = by_path["parts.gb200-gpu.price"]
    theirs = solved(GB200, chip.given.path, [chip.given.high], TOKEN)[0]
    mine = solved(TRN3, "terms.rate", [own.inputs["terms.rate"].value], TOKEN)[0]
    assert chip.at_high == pytest.approx(theirs / mine, rel=1e-6)
    assert chip.swing > 0


@pytest.mark.thorough
def test_an_end_at_which_the_plan_misses_the_target_is_marked():
    quick = {"workload.interactivity": "100 token/s"}
    held = sensitivity(TRN3, TOKEN, hold=True, set=quick)
    missed = {one.given.path: one for one in held.swings if not one.meets_high}
    assert missed
    base = tco.evaluate(TRN3, quick, catalogue=CATALOGUE)
    for path, one in missed.items():
        high = {**quick, path: (np.array([one.given.high]), one.given.unit)}
        assert not tco.evaluate_draws(
            TRN3, high, structure=base.structure, catalogue=CATALOGUE
        ).meets[0]
    # a price per hour has no target to miss
    assert all(one.meets_low and one.meets_high for one in asked(TRN3, HOUR).swings)
    lines = tco_lines("sensitivity", TRN3, "--hold", "--set", "workload.interactivity=100 token/s")
    assert any("!" in line for line in lines if line.startswith(short_name(next(iter(missed)))))
    assert lines[-1].startswith("! ")


@pytest.mark.thorough
def test_plans_chosen_anew_are_those_of_a_search_and_an_end_without_one_has_no_price():
    free = sensitivity(TRN3, TOKEN, set={"workload.interactivity": "130 token/s"})
    without = [one for one in free.swings if one.swing is None]
    assert free.swings[: len(without)] == without  # first, as nothing weighs more
    far = [one for one in free.swings if one.swing is not None][:3]
    for one in [*without, *far]:
        for end, value, met in (
            (one.given.low, one.at_low, one.meets_low),
            (one.given.high, one.at_high, one.meets_high),
        ):
            alone = tco.evaluate(
                TRN3,
                {"workload.interactivity": "130 token/s", one.given.path: (end, one.given.unit)},
                catalogue=CATALOGUE,
            )
            assert met == (value is not None) == (alone.plan is not None)
            if value is not None:
                assert value == pytest.approx(alone.metrics[TOKEN], rel=1e-7)
    assert without


def nested(name, metric, path, places=200, draws=60):
    """By which share knowing one input narrows the standard deviation of a metric's logarithm:
    draws of all in which it is nearly the same.
    """
    (case,) = evaluate_each([name], None, {})
    one = case.drawn_function()
    dice = Dice(CATALOGUE, 31, 0, places * draws)
    at = {other: dice.correlated_deviates(its) for other, its in one.ranges.items()}
    made = one.draws(settings_of(one.ranges, at))
    known = (
        np.where(made.meets, made.metrics[metric], np.nan)
        if metric in PERFORMANCE
        else made.metrics[metric]
    )
    many = np.log(known)[np.argsort(at[path])].reshape(places, draws)
    groups = [group[np.isfinite(group)] for group in many if np.isfinite(group).sum() > 1]
    within = sum(group.var() * len(group) for group in groups) / sum(
        len(group) - 1 for group in groups
    )
    return 1 - np.sqrt(within / np.concatenate(groups).var(ddof=1))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "metric", "count"), [(GB200, HOUR, 2), (GB200, TOKEN, 1)])
def test_what_knowing_an_input_narrows_is_what_nested_draws_say(name, metric, count):
    found = asked(name, metric)
    for one in sorted(found.swings, key=lambda one: -found.narrows(one))[:count]:
        share = found.share(one)
        # of 1 - sqrt(1 - R^2), whose share R^2 is fitted to so many draws
        error = np.sqrt(share * (1 - share) / DRAWS)
        assert found.narrows(one) == pytest.approx(
            nested(name, metric, one.given.path), abs=3 * error
        ), one.given.path
        assert found.narrows(one) > 0.1


def test_what_is_worth_finding_out_is_guessed_and_narrows_most():
    found = asked(GB200, HOUR)
    assert len(found.worth) == 3
    guessed = [one for one in found.swings if one.given.kind in ("estimate", "assumed")]
    assert found.worth == sorted(guessed, key=found.narrows, reverse=True)[:3]


def test_the_share_of_an_input_is_that_of_closed_forms():
    """Of log y = 2 a + b + c^2 of normal deviates the variances are 4, 1 and 2; one that moves
    nothing has no share, and few draws say nothing.
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
    found, name = asked(GB200, HOUR), GROUPS[group]
    groups = found.groups(name)
    assert sum(groups.values()) == pytest.approx(1)
    assert list(groups.values()) == sorted(groups.values(), reverse=True)
    squares = {
        key: sum(one.swing**2 for one in found.swings if name(one.given) == key) for key in groups
    }
    assert groups == pytest.approx(
        {key: many / sum(squares.values()) for key, many in squares.items()}
    )


def test_rates_that_are_stated_have_no_target_to_miss():
    found = sensitivity(GB200, HOUR, set={"workload": "stated"})
    assert found.swings[0].swing
    assert all(one.meets_low and one.meets_high for one in found.swings)


# ---------------------------------------------------------------- what flips the order
class Law:
    """A ratio that is a known function of the places of some inputs, in the place of the chain."""

    def __init__(self, function):
        self.function = function

    def places(self, one):
        return PLACES

    def together(self, places):
        count = len(next(iter(places.values())))
        return self.function({path: places.get(path, np.zeros(count)) for path in "abcdefg"})

    def one_at_a_time_values(self):
        return {path: self.together({path: PLACES}) for path in "abcdefg"}


LAWS = {
    "a power law": lambda at: (
        0.6
        * np.exp(
            0.25 * at["a"]
            - 0.2 * at["b"]
            + 0.15 * at["c"]
            + 0.12 * at["d"]
            + 0.02 * at["e"]
            + 0.4 * at["f"]
        )
    ),
    "from above": lambda at: (
        1.7
        * np.exp(0.25 * at["a"] - 0.2 * at["b"] + 0.15 * at["c"] + 0.12 * at["d"] + 0.02 * at["e"])
    ),
    "inputs that strengthen each other": lambda at: (
        0.6 * np.exp(0.1 * at["a"] + 0.1 * at["b"] + 0.08 * at["a"] * at["b"] + 0.13 * at["c"])
    ),
    "a target that both together miss": lambda at: np.where(
        at["a"] + at["b"] > 3, np.nan, 0.6 * np.exp(0.25 * at["a"] - 0.25 * at["b"])
    ),
    "none": lambda at: 0.1 * np.exp(0.1 * at["a"] + 0.1 * at["b"]),
}


@pytest.mark.parametrize("plan_inputs", ["", "abc", "abcdefg"])
@pytest.mark.parametrize("name", LAWS)
def test_pairs_that_flip_are_those_of_all_pairs_at_all_places(name, plan_inputs):
    law, wanted = Law(LAWS[name]), {}
    ranges = {
        path: Range(path, 1.0, 2.0, 4.0, "", 0.0, 1e9, False, None, "a" if path == "g" else path)
        for path in "abcdefg"
    }
    ways = law.one_at_a_time_values()
    above = ways["a"][CENTRE] > 1
    alone = {
        path
        for path, way in ways.items()
        if (way[np.isfinite(way)] > 1).any() != above or (way[np.isfinite(way)] > 1).all() != above
    }
    for pair in combinations("abcdef", 2):
        grid = np.array(list(product(PLACES, PLACES)))
        many = law.together({path: grid[:, at] for at, path in enumerate(pair)})
        flips = np.isfinite(many) & ((many > 1) != above)
        if flips.any() and not alone & {*pair}:
            wanted[pair] = (many[flips].min if above else many[flips].max)()
    found = pairs_that_flip(ranges, ways, law.together, frozenset(plan_inputs))
    assert {tuple(sorted(one.paths)): one.ratio for one in found} == pytest.approx(wanted)
    assert [one.ratio for one in found] == sorted((one.ratio for one in found), reverse=not above)
    for one in found:
        places = {
            path: np.array([np.log(value / 2) / np.log(2) * P95])
            for path, value in zip(one.paths, one.values, strict=True)
        }
        assert law.together(places) == pytest.approx([one.ratio])
    assert bool(found) == (name != "none")


def test_inputs_that_draw_alike_and_those_that_decide_what_exists_are_no_pair():
    law = Law(lambda at: 0.6 * np.exp(0.25 * at["a"] + 0.25 * at["b"]))
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
def test_the_chain_flips_where_it_is_said_to_and_at_no_other_pair():
    """Of the strongest inputs that do not flip the order alone, every pair at all corners, each
    asked of the chain as settings.
    """
    found = sensitivity(MI450X, RATIO, set=AHEAD)
    own, other = found.sides
    apart = ("cluster.", "performance.amd.flop_energy")  # a choice, and what follows NVIDIA's
    strongest = [
        one.given
        for one in found.swings
        if one.flips_at is None and not one.given.path.startswith(apart)
    ][:14]
    pairs = list(combinations(strongest, 2))
    wanted = set()
    for ends in product(("low", "high"), repeat=2):
        costs = []
        for side in (other, own):
            moved = {
                given.path: np.full(len(pairs), given.value)
                for given in strongest
                if given.path in side.result.inputs
            }
            for at, pair in enumerate(pairs):
                for given, end in zip(pair, ends, strict=True):
                    if given.path in moved:
                        moved[given.path][at] = getattr(given, end)
            units = {path: (many, side.result.inputs[path].unit) for path, many in moved.items()}
            made = tco.evaluate_draws(side.scenario.name, AHEAD | units, catalogue=CATALOGUE)
            costs.append(np.where(made.meets, made.metrics[TOKEN], np.nan))
        ratios = costs[0] / costs[1]
        wanted |= {
            frozenset(given.path for given in pairs[at])
            for at in np.flatnonzero(np.isfinite(ratios) & (ratios < 1))
        }
    names = {given.path for given in strongest}
    assert found.centre > 1
    assert {frozenset(one.paths) for one in found.pairs if {*one.paths} <= names} == wanted
    assert wanted
    alone = {one.given.path for one in found.flips}
    assert alone
    assert not any(alone & {*one.paths} for one in found.pairs)


@pytest.mark.thorough
def test_flips_of_plans_chosen_anew_are_those_of_a_search():
    found = sensitivity(MI450X, RATIO, set=AHEAD)
    one, units = found.pairs[0], {swing.given.path: swing.given.unit for swing in found.swings}
    given = {path: (value, units[path]) for path, value in zip(one.paths, one.values, strict=True)}
    costs = []
    for name in (GB200, MI450X):
        own = {path: value for path, value in given.items() if path in evaluate(name).inputs}
        costs.append(tco.evaluate(name, AHEAD | own, catalogue=CATALOGUE).metrics[TOKEN])
    assert costs[0] / costs[1] == pytest.approx(one.ratio, rel=0.05)
    assert len(found.flips) >= 2


@pytest.mark.thorough
def test_flips_stand_in_table_document_and_csv():
    ahead = [word for path, text in AHEAD.items() for word in ("--set", f"{path}={text}")]
    found = document("sensitivity", MI450X, "--metric", RATIO, *ahead)
    first = found["pairs_that_flip"][0]
    a, b = (one["path"] for one in first["inputs"])
    assert first["metric"] < 1 < found["metric_value"]
    lines = command("sensitivity", MI450X, "--metric", RATIO, *ahead).stdout.splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("turns the order"))
    pairs = [line for line in lines[head:] if short_name(a) in line and short_name(b) in line]
    assert pairs
    alone = [row for row in found["inputs"] if row["flips_at"] is not None]
    assert alone
    for row in alone:
        side = "below" if row["flips_at"] < row["value"] else "above"
        name = re.escape(short_name(row["path"]))
        assert any(re.match(rf"{name} +{side} about", line) for line in lines[head:])
    printed = command("sensitivity", MI450X, "--metric", RATIO, *ahead, "--format", "csv").stdout
    rows = {row["path"]: row for row in csv.DictReader(io.StringIO(printed))}
    assert b in rows[a]["flips_with"].split()
    assert float(rows[alone[0]["path"]]["flips_at"]) == alone[0]["flips_at"]
    assert "turns the order" not in command("sensitivity", GB200, "--metric", HOUR).stdout
    assert document("sensitivity", GB200, "--metric", HOUR)["pairs_that_flip"] is None


# ---------------------------------------------------------------- all together
@pytest.mark.thorough
def test_first_order_indices_of_a_price_that_is_nearly_a_sum_come_to_one():
    found = sensitivity(GB200, HOUR, hold=True, sobol=1024)
    moving = {
        one.given.path
        for one in found.swings
        if one.swing and one.given.path not in ("cluster.chips", "cluster.oversubscription")
    }
    assert set(found.drivers) == moving
    assert sum(one.first for one in found.drivers.values()) == pytest.approx(1, abs=0.06)
    assert sum(one.total for one in found.drivers.values()) == pytest.approx(1, abs=0.06)
    assert found.drivers == sensitivity(GB200, HOUR, hold=True, sobol=1024).drivers
    assert max(found.drivers, key=lambda path: found.drivers[path].total) in (
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
    """The value is the median of a price, the most likely of a share: of one at its low end the
    median is that of Beta(1.048, 4.952).
    """
    given = Input(path, value, "ratio", low, high)
    assert input_quantiles(given, np.array([0.05, 0.5, 0.95])) == pytest.approx(
        [low, median, high], rel=1e-3
    )
    if path == "parts.trn3.price":
        assert input_quantiles(given, np.array([0.75])) == pytest.approx(
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
        ((GB200, HOUR), {"sobol": 64}, UsageError, "with the plan held"),
    ],
)
def test_a_question_that_has_no_answer(arguments, keywords, error, fragment):
    with pytest.raises(error, match=fragment):
        sensitivity(*arguments, **keywords)


def test_the_document_has_ranges_in_the_units_of_the_catalogue():
    found = document("sensitivity", GB200, "--metric", HOUR)
    rows = {row["path"]: row for row in found["inputs"]}
    price = rows["site.electricity_price"]
    assert (price["low"], price["high"], price["unit"]) == (
        pytest.approx(0.066),
        pytest.approx(0.098),
        "USD/kWh",
    )
    assert price["swing"] == pytest.approx(price["metric_high"] - price["metric_low"])
    assert len(found["worth_finding_out"]) == 3
    assert found["plan"] == "re-optimised"


def test_the_table_shows_bars_to_the_side_the_metric_goes():
    lines = tco_lines("sensitivity", GB200, "--metric", HOUR)
    (rate,) = (line for line in lines if line.startswith("cost of capital"))
    (life,) = (line for line in lines if line.startswith("life of the equipment"))
    assert rate.index("░") < rate.index("│") < rate.index("█")
    assert life.index("█") < life.index("│") < life.index("░")
    assert any(line.startswith("Highest value of information") for line in lines)


def test_the_failure_rate_that_chips_share_drives_a_ratio_as_one_input():
    """Trainium3 and GB200 fail as often: the rate moves both at once, and so less than one chip's
    alone would.
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
