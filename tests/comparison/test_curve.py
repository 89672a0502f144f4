"""The curve of a comparison agrees with searches at each speed and studies of draws.

Its picks are tried on known costs.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import tco
from tco.comparison.evidence_value import evidence_of
from tco.comparison.regimes import Costs, regimes_of
from tco.sampling.drivers import rank_share
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.cli import tco as command

GB200, TRN3, MI450X = "gb200-nvl72", "trn3-nl72x2", "mi450x-ualoe72"
HEADLINE = ("trn3-nl32x2", TRN3, GB200, MI450X)
COST, RATIO, SPEED = (
    "usd_per_million_output_tokens",
    "perf_per_tco_vs_baseline",
    "workload.interactivity",
)
SPEEDS = (20, 30, 50, 75, 100)
DRAWS = 512  # of a comparison
TRAINED = ("llama-3.1-405b-training-gb200-nvl72", "llama-3.1-405b-training-trn3-nl72x2")
EMPTY = {}  # standard errors of draws that are the same


@cache
def curve_answer(*arguments):
    """Return the document of a comparison, and the points of its curve by scenario and speed."""
    compare_document = document("compare", *arguments)
    return compare_document, {
        (curve_point["scenario"], curve_point["tokens_per_s_per_user"]): curve_point
        for curve_point in compare_document["curve"]
    }


# ---------------------------------------------------------------- points
@pytest.mark.parametrize(
    "settings",
    [(), pytest.param(("--set", "workload.as_deployed=0"), marks=pytest.mark.thorough)],
)
def test_cost_at_each_speed_is_that_of_a_search_for_it(settings):
    _, curve = curve_answer(*settings)
    base_settings = {"workload.as_deployed": "0"} if settings else {}
    assert sorted(curve) == sorted((name, speed) for name in HEADLINE for speed in SPEEDS)
    for (name, speed), curve_point in curve.items():
        searched_cost = tco.evaluate(name, base_settings | {SPEED: f"{speed} token/s"}).metrics[
            COST
        ]
        if searched_cost is None:
            assert curve_point[COST] is None
            assert curve_point["note"] == f"no plan that fits memory gives a user {speed} tokens/s"
        else:
            assert curve_point[COST] == pytest.approx(searched_cost, rel=1e-3), (name, speed)


def test_at_its_own_speed_the_curve_is_the_answer():
    compare_document, curve = curve_answer()
    for row in compare_document["rows"]:
        curve_point = curve[row["scenario"], 50]
        assert (curve_point[COST], curve_point[RATIO]) == (
            row["metrics"][COST],
            row["metrics"][RATIO],
        )
        assert curve_point["meets"] == row["share_of_draws_that_meet_the_target"]
        if row["scenario"] != GB200:
            assert (
                curve_point["probability_better_than_baseline"]
                == row["probability_better_than_baseline"]
            )
            assert {
                percentile: curve_point["range"][percentile] for percentile in ("p10", "p50", "p90")
            } == {
                percentile: row["range"][RATIO][percentile] for percentile in ("p10", "p50", "p90")
            }


def test_a_higher_speed_is_never_cheaper_and_met_no_more_often():
    _, curve = curve_answer()
    for name in HEADLINE:
        points = [curve[name, speed] for speed in SPEEDS]
        costs = [
            np.inf if curve_point[COST] is None else curve_point[COST] for curve_point in points
        ]
        assert costs == sorted(costs)
        shares = [curve_point["meets"] for curve_point in points]
        assert shares == sorted(shares, reverse=True)


def test_rack_that_misses_the_speed_wins_no_draw():
    for (name, _), curve_point in curve_answer()[1].items():
        if name == GB200:
            assert curve_point["probability_better_than_baseline"] is None
            continue
        assert curve_point["probability_better_than_baseline"] <= curve_point["meets"]
        assert curve_point["ties"] <= 1 - curve_point["meets"]
        assert {"public", "best"} == curve_point["by_software"].keys()
        assert 0 <= curve_point["software_share_of_range"] < 1


@pytest.mark.thorough
@pytest.mark.parametrize("speed", [30, 100])
def test_chances_at_a_speed_are_those_of_a_study_at_that_speed(speed):
    """Chances of the curve equal those of a study of the same draws at that speed.

    A plan among those tried for that speed alone may be missing, or there may be more.
    """
    for name in (TRN3, MI450X):
        curve_point = curve_answer()[1][name, speed]
        study = tco.uncertainty(
            name, GB200, samples=DRAWS, seed=0, set={SPEED: f"{speed} token/s"}
        ).sample
        ratio_draws = study.metrics[RATIO]
        assert curve_point["meets"] == pytest.approx(study.meets.mean(), abs=2 / DRAWS)
        assert curve_point["probability_better_than_baseline"] == pytest.approx(
            np.mean(ratio_draws > 1), abs=3 / DRAWS
        )
        if curve_point["range"]["p50"] is not None and curve_point["range"]["p50"] > 0:
            assert curve_point["range"]["p50"] == pytest.approx(
                np.quantile(ratio_draws[~np.isnan(ratio_draws)], 0.5), rel=0.02
            )


@pytest.mark.parametrize("end", ["public", "best"])
def test_costs_at_the_ends_of_software_are_those_of_setting_it(end):
    rows = {
        row["scenario"]: row["metrics"]
        for row in document(
            "compare", TRN3, GB200, "--no-range", "--set", f"workload.software={end}"
        )["rows"]
    }
    assert curve_answer()[1][TRN3, 50]["by_software"][end][RATIO] == pytest.approx(
        rows[TRN3][RATIO], rel=1e-3
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", [TRN3, MI450X])
def test_no_strong_input_leaves_the_printed_range(name):
    """Each of the strongest inputs at its P5 and P95 gives a ratio between the printed P5 and P95.

    Plans are chosen again; a tenth of the span is left for sampling.
    """
    range_ = curve_answer()[1][name, 50]["range"]
    span = range_["p95"] - range_["p5"]
    inputs = document("sensitivity", name, "--metric", RATIO)["inputs"][:6]
    rows = [
        document(
            "compare",
            name,
            GB200,
            "--no-range",
            "--set",
            f"{strong_input['path']}={strong_input[end]!r} {strong_input['unit']}".strip(),
        )["rows"]
        for strong_input in inputs
        for end in ("low", "high")
    ]
    ratios = [
        {row["scenario"]: row["metrics"][RATIO] or 0.0 for row in scenario_rows}[name]
        for scenario_rows in rows
    ]
    outside = [
        ratio
        for ratio in ratios
        if not range_["p5"] - 0.1 * span <= ratio <= range_["p95"] + 0.1 * span
    ]
    assert len(outside) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", [TRN3, MI450X])
def test_a_comparison_and_other_draws_agree_within_their_errors(name):
    curve_point = curve_answer()[1][name, 50]
    uncertainty_document = document(
        "uncertainty", name, "--baseline", GB200, "--samples", "4000", "--seed", "5"
    )
    errors = np.hypot(
        curve_point["probability_error"],
        uncertainty_document["monte_carlo_error"]["probability_better_than_baseline"],
    )
    assert curve_point["probability_better_than_baseline"] == pytest.approx(
        uncertainty_document["probability_better_than_baseline"], abs=3 * errors
    )


# ---------------------------------------------------------------- speeds that are asked for
def test_speeds_can_be_chosen_and_one_beyond_all_plans_has_a_reason():
    _, curve = curve_answer(GB200, TRN3, "--speeds", "60,25,100000", "--no-range")
    assert sorted({speed for _, speed in curve}) == [25, 60, 100000]
    assert curve[TRN3, 100000][COST] is None
    assert "100000 tokens/s" in curve[TRN3, 100000]["note"]


@pytest.mark.parametrize(
    "text", ["banana", "0", "-5", "20,,x", "nan", "inf", ",".join(map(str, range(1, 101)))]
)
def test_text_that_is_no_list_of_speeds_is_refused(text):
    done = command("compare", "--speeds", text)
    assert done.exit_code == 2
    assert "--speeds" in done.stderr
    assert len(done.stderr) < 200


@pytest.mark.thorough
def test_training_has_no_speed_and_is_rated_by_what_its_tokens_cost():
    done = command("compare", *TRAINED, "--speeds", "20,30")
    assert done.exit_code == 2
    assert "leave --speeds out" in done.stderr
    compare_document = document("compare", *TRAINED)
    rows = {row["scenario"]: row for row in compare_document["rows"]}
    costs = {name: row["metrics"]["train_usd_per_trillion_tokens"] for name, row in rows.items()}
    assert compare_document["curve"] == []
    assert rows[TRAINED[1]]["metrics"][RATIO] == pytest.approx(
        costs[TRAINED[0]] / costs[TRAINED[1]], rel=1e-12
    )
    range_ = rows[TRAINED[1]]["range"][RATIO]
    assert range_["p10"] < range_["p50"] < range_["p90"]
    assert len(rows[TRAINED[1]]["drivers"]) == 3
    (regime,) = compare_document["verdict"]
    assert (regime["from"], regime["to"]) == (None, None)
    mean_shares = {name: row["share_of_best"]["mean"] for name, row in rows.items()}
    assert max(mean_shares, key=mean_shares.get) in regime["picks"]


# ---------------------------------------------------------------- the verdict
def costs_of(*rows, ends=EMPTY):
    """Return the costs of some scenarios in a hundred draws.

    Each row is a function of the draw's number.
    """
    draws = np.arange(100)
    return Costs(np.array([np.broadcast_to(row(draws), 100).astype(float) for row in rows]), ends)


def wins(count):
    """Return costs of which so many draws lie below one."""
    return lambda draw: np.where(draw < count, 0.5, 2.0)


ONE = np.ones_like


def test_rack_of_least_regret_is_picked_and_as_sure_as_resamplings_say():
    """A pick is as sure as 95 of 100 resamplings say: 92 wins are surely 75, but not 90.

    Five of 100 resamplings have 1.6 standard errors fewer wins.
    """
    kinds = {55: "tie", 76: "close", 85: "likely", 92: "likely", 97: "clear", 100: "clear"}
    for count, kind in kinds.items():
        (regime,) = regimes_of(
            ["a", "b", "c"], (20.0,), [costs_of(wins(count), ONE, lambda draw: 9 * ONE(draw))], True
        )
        assert (regime.kind, regime.foremost, regime.rival, regime.probability) == (
            kind,
            "a",
            "b",
            count / 100,
        )
        assert (regime.picks, regime.choose) == (
            (("a", "b"), None) if kind == "tie" else (("a",), "a")
        )
        assert (regime.start, regime.end) == (None, None)
        assert regime.most == pytest.approx((count + (100 - count) / 2) / 100)


def test_a_single_rack_has_no_regime():
    assert regimes_of(["a"], (20.0,), [costs_of(ONE)], True) == []


def test_late_pick_names_its_date_and_an_available_rack():
    cheap, middle, dear = (lambda draw, cost=cost: cost * ONE(draw) for cost in (1.0, 2.0, 3.0))
    costs = [costs_of(cheap, middle, dear)]
    (regime,) = regimes_of(["a", "b", "c"], (20.0,), costs, True, {"a": "2027-05"})
    assert (regime.picks, regime.late, regime.available) == (("a",), {"a": "2027-05"}, ("b",))
    (regime,) = regimes_of(["a", "b", "c"], (20.0,), costs, True, {"b": "2027-05"})
    assert (regime.picks, regime.late, regime.available) == (("a",), {}, ())
    (regime,) = regimes_of(["a", "b", "c"], (20.0,), costs, True, dict.fromkeys("abc", "2027-05"))
    assert regime.available == ()


def test_rack_that_misses_a_speed_loses_to_all_that_reach_it():
    def missed(draw):
        return np.where(draw < 95, np.nan, 0.1)

    (regime,) = regimes_of(["a", "b"], (100.0,), [costs_of(missed, ONE)], True)
    assert (regime.kind, regime.choose, regime.probability) == ("alone", "b", 0.95)
    (regime,) = regimes_of(["a", "b"], (100.0,), [costs_of(missed, missed)], True)
    assert (regime.kind, regime.choose) == ("nobody", None)


def test_neighbours_with_one_choice_are_one_regime_and_no_speed_is_left_out():
    speed_costs = [costs_of(wins(count), ONE) for count in (97, 92, 80, 3)]
    regimes = regimes_of(["a", "b"], (20.0, 30.0, 50.0, 200.0), speed_costs, True)
    assert [
        (regime.kind, regime.choose, regime.speeds, regime.probability) for regime in regimes
    ] == [
        ("close", "a", (20, 30, 50), 0.8),
        ("clear", "b", (200,), 0.97),
    ]
    assert [(regime.start, regime.end) for regime in regimes] == [(None, 100), (100, None)]
    assert (regimes[0].keeps, regimes[0].most) == (pytest.approx(0.9), pytest.approx(0.985))


def test_where_each_end_of_software_surely_has_another_choice_it_decides():
    for count, kind in ((97, "software"), (80, "tie")):
        ends = {
            "public": costs_of(wins(100 - count), ONE).drawn,
            "best": costs_of(wins(count), ONE).drawn,
        }
        (regime,) = regimes_of(["a", "b"], (20.0,), [costs_of(wins(60), ONE, ends=ends)], True)
        assert (regime.kind, regime.by_software, regime.foremost) == (
            kind,
            {"public": ("b",), "best": ("a",)},
            "a",
        )


def test_the_document_covers_every_speed():
    compare_document, curve = curve_answer()
    regimes = compare_document["verdict"]
    # nothing is drawn of the baseline against itself
    baseline = [point for (name, _), point in curve.items() if name == GB200]
    assert {point["perf_per_tco_vs_baseline"] for point in baseline} <= {1.0, None}
    assert {point["probability_better_than_baseline"] for point in baseline} == {None}
    assert regimes[0]["from"] is None
    assert regimes[-1]["to"] is None
    assert all(
        lower_regime["to"] == higher_regime["from"]
        for lower_regime, higher_regime in pairwise(regimes)
    )
    assert [speed for regime in regimes for speed in regime["speeds"]] == list(SPEEDS)
    for regime in regimes:
        if regime["leader"] not in (None, GB200):
            assert (
                max(
                    curve[regime["leader"], speed]["probability_better_than_baseline"]
                    for speed in regime["speeds"]
                )
                >= 0.5
            )
    drafts = {name: tco.evaluate(name).plan.decode.drafts for name in HEADLINE}
    assert compare_document["deployed"]["draft_tokens"] == drafts
    assert min(drafts.values()) >= 1


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (
            (GB200, "moe-3t-decode-gb200-nvl72"),
            "its workload.model is moe-3t, that of gb200-nvl72 deepseek-v3",
        ),
        ((GB200, "tpuv6e-256"), "its terms.owner is Google, that of gb200-nvl72 Amazon"),
    ],
)
def test_different_workloads_and_owners_are_not_ranked(names, reason):
    compare_document, curve = curve_answer(*names, "--no-range")
    baseline_ratio, second_ratio = (row["metrics"][RATIO] for row in compare_document["rows"])
    assert (baseline_ratio, second_ratio) == (1, None)
    assert (
        f"performance per TCO says nothing here: {reason}" in compare_document["rows"][1]["notes"]
    )
    assert all(
        curve_point[RATIO] is None for (name, _), curve_point in curve.items() if name == names[1]
    )
    assert compare_document["verdict"] == []


@pytest.mark.thorough
def test_different_dates_are_not_ranked_and_spellings_of_one_day_are(tmp_path):
    for name, date in (("later", "2027-01"), ("same", "2026-11-30")):
        tco.evaluate(GB200, {"terms.date": date}).save(tmp_path / f"{name}.json")
    rows = document("compare", GB200, str(tmp_path / "later.json"))["rows"]
    assert [row["metrics"][RATIO] for row in rows] == [1, None]
    assert rows[1]["probability_better_than_baseline"] is None
    assert rows[1]["drivers"] == []
    rows = document("compare", GB200, str(tmp_path / "same.json"), "--no-range")["rows"]
    assert rows[1]["metrics"][RATIO] == 1


def test_comparison_without_costs_has_no_pick():
    compare_document, _ = curve_answer(
        GB200, "gb300-nvl72", "--set", "site=us-air-hall", "--no-range"
    )
    assert compare_document["verdict"] == []
    done = command("compare", GB200, "gb300-nvl72", "--set", "site=us-air-hall", "--no-range")
    assert "No verdict: gb200-nvl72 does not fit its site; gb300-nvl72 does not fit" in done.stdout


# ---------------------------------------------------------------- the table
def test_the_first_table_fits_a_screen_and_names_what_more_there_is():
    text = command("compare").stdout
    lines = text.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    words = ("mean regret", "P10 P90", "compared only if named", "draft tokens by rack")
    assert all(word in " ".join(text.split()) for word in (*HEADLINE, *words))
    firsts = [line.split()[:1] for line in lines if line.startswith("  ")]
    assert [[f"{speed:g}"] in firsts for speed in SPEEDS] == [True] * len(SPEEDS)
    assert all(word in lines[-1] for word in ("--full", "--why", "--workloads"))


def test_a_row_of_a_csv_is_one_scenario_or_one_of_its_speeds():
    plain, tidy = (
        command("compare", *more, "--format", "csv").stdout.splitlines()
        for more in ((), ("--curve",))
    )
    assert (len(plain), len(tidy)) == (1 + 4, 1 + 20)
    assert {"scenario", "tokens_per_s_per_user", "date", "set", f"{RATIO}_p10"} <= {
        *tidy[0].split(",")
    }


# ---------------------------------------------------------------- as bought
def test_few_racks_cost_more_and_one_rack_costs_what_perf_says_of_a_domain():
    _, fleet = curve_answer()
    _, two = curve_answer("--racks", "2")
    dearer = {
        key: two[key][COST] / fleet_point[COST]
        for key, fleet_point in fleet.items()
        if fleet_point[COST] is not None and two[key][COST] is not None
    }
    assert min(dearer.values()) >= 1 - 1e-9
    assert max(dearer.values()) > 1.5
    # a domain of two racks
    perf_document = document("perf", "trn3-nl32x2", "--set", "workload.interactivity=100 token/s")
    share = (
        perf_document["alone"]["output_tokens_per_s_per_chip"]
        / perf_document["metrics"]["output_tokens_per_s_per_chip"]
    )
    assert dearer["trn3-nl32x2", 100] == pytest.approx(1 / share, rel=0.02)


@pytest.mark.parametrize("racks", ["0", "-1", "1.5", "banana"])
def test_bad_number_of_racks_is_refused(racks):
    assert command("compare", "--racks", racks).exit_code == 2


# ---------------------------------------------------------------- the share of some inputs
def test_share_of_an_input_in_the_variance_of_ranks_is_the_closed_form():
    """One of two equal normal causes holds half of the variance of their sum.

    Infinities and equal losses have ranks.
    """
    normal_deviates = np.random.default_rng(1).standard_normal((2, 20_000))
    both = normal_deviates.sum(axis=0)
    assert rank_share(both, list(normal_deviates)) == pytest.approx(1, abs=0.05)
    # of ranks: Spearman's rho of 0.69, squared
    assert rank_share(np.exp(both), [normal_deviates[0]]) == pytest.approx(0.48, abs=0.02)
    assert rank_share(normal_deviates[0], [normal_deviates[1]]) == pytest.approx(0, abs=0.01)
    ended = np.where(both > 1, np.inf, np.where(both < 0, 0.0, both))
    assert 0.3 < rank_share(ended, [normal_deviates[0]]) < 0.5
    assert rank_share(np.full(50, 1.0), [normal_deviates[0][:50]]) is None


# ---------------------------------------------------------------- why, and what would notice
@pytest.mark.thorough
def test_why_says_what_moves_each_regime_and_what_to_measure():
    tuned = ("--why", "--set", "workload.as_deployed=0")
    compare_document, _ = curve_answer(*tuned)
    for regime in compare_document["verdict"]:
        assert len(regime["drivers"]) == 8
        narrows = [measurement["narrows"] for measurement in regime["measurements"]]
        assert len(narrows) == 3
        assert narrows == sorted(narrows, reverse=True)
        assert all(0 < share < 1 for share in narrows)
    text = command("compare", *tuned).stdout
    assert "performance." not in text
    assert "tco measure" in text or "a serving run" in text
    # of a system and of one run of it: one line, with the variance of both
    regime_texts = re.split(r"\n\n(?!What to measure)", text)
    for regime, table in zip(compare_document["verdict"], regime_texts, strict=True):
        lines = re.findall(r"^model error on (\S+) +\S+ % +([+-]\d+\.\d\d) ", table, re.MULTILINE)
        swings = {
            name: rf"performance\.((configuration|run)-)?{name}\.unexplained_.*"
            for name, _ in lines
        }
        parts = {
            name: [
                driver["swing"]
                for driver in regime["drivers"]
                if re.fullmatch(path, driver["path"])
            ]
            for name, path in swings.items()
        }
        assert len(parts) == len(lines)
        assert any(len(swing_parts) > 1 for swing_parts in parts.values())
        both = {
            name: np.sign(swing_parts[0]) * np.hypot.reduce(swing_parts)
            for name, swing_parts in parts.items()
        }
        assert {name: float(swing) for name, swing in lines} == pytest.approx(both, abs=0.006)


@pytest.mark.thorough
def test_evidence_of_an_input_is_the_error_of_validation_with_it_set():
    """The runs are those of the files that ship with the program.

    An input that none of them depends on is left out, and the answer names it.
    """
    inputs, path = (
        tco.evaluate(GB200, catalogue=CATALOGUE).inputs,
        "performance.nvidia.exchange_wait",
    )
    studied_inputs = {
        input_path: inputs[input_path] for input_path in (path, "performance.owner.software_reach")
    }
    evidence_rows = evidence_of(CATALOGUE, studied_inputs)
    row = next(evidence_row for evidence_row in evidence_rows if evidence_row.kind == "inference")
    assert {evidence_row.path for evidence_row in evidence_rows} == {path}
    low = inputs[path].low
    scored = {}
    for end, more in {"error": (), "error_low": ("--set", f"{path}={low!r} s")}.items():
        files = (
            f"data/measured/{name}.csv.gz"
            for name in ("inference", "mlperf_inference", "trainium_inference")
        )
        validation_rows = [
            validation_row
            for file in files
            for validation_row in document("validate", file, "--rows", *more)["rows"]
        ]
        scored[end] = [
            np.log1p(validation_row["error"])
            for validation_row in validation_rows
            if not validation_row["skipped"]
        ]
    error_pairs = [
        (base_error, low_error)
        for base_error, low_error in zip(scored["error"], scored["error_low"], strict=True)
        if base_error != low_error
    ]
    assert row.rows == len(error_pairs)
    at_value, at_low = (
        np.sqrt(np.mean(np.array(side) ** 2)) for side in zip(*error_pairs, strict=True)
    )
    assert row.errors[:2] == pytest.approx((at_low, at_value), rel=1e-6)
    rows = document("compare", TRN3, GB200, "--evidence")["evidence"]
    assert any(evidence_row["kind"] is None and evidence_row["rows"] == 0 for evidence_row in rows)


def test_reasons_without_draws_are_refused():
    assert command("compare", "--why", "--no-range").exit_code == 2
