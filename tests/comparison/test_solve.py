"""A break-even value brings the metric to its target; a target without one has a reason."""

from __future__ import annotations

import re
from functools import cache

import pytest

import tco
from tco import DataError, UsageError, solve
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.cli import tco as command

TRN3, GB200, A100 = "trn3-nl72x2", "gb200-nvl72", "train-gpt3-175b-a100x64"
TOKEN, HOUR, RATIO = (
    "usd_per_million_output_tokens",
    "tco_usd_per_chip_hour",
    "perf_per_tco_vs_baseline",
)
BANDWIDTH = "parts.trn3.hbm_bandwidth"


def metric_at(name, solved, metric):
    """The metric with the value that was found, set as the command line takes it."""
    return tco.evaluate(
        name, {solved["input"]: solved["set"].partition("=")[2]}, catalogue=CATALOGUE
    ).metrics[metric]


@pytest.mark.parametrize(
    ("name", "path", "until", "times"),
    [
        (TRN3, "site.electricity_price", f"{HOUR}=+10%", 1.1),
        (TRN3, "terms.utilisation", f"{TOKEN}=-5%", 0.95),
        (GB200, "parts.gb200-gpu.price", f"{HOUR}=-20 %", 0.8),
        (GB200, "metrics.output_tokens_per_s_per_chip", f"{TOKEN}=+100%", 2),
        (A100, "parts.a100-sxm-80gb.price", "train_usd_per_trillion_tokens=-3%", 0.97),
    ],
)
def test_the_value_brings_the_metric_to_the_target(name, path, until, times):
    solution = document("solve", name, "--vary", path, "--until", until)
    metric = until.partition("=")[0]
    today = tco.evaluate(name, catalogue=CATALOGUE).metrics[metric]
    assert solution["crossing"] is True
    assert solution["metric_today"] == pytest.approx(today, rel=1e-12)
    assert solution["target"] == pytest.approx(times * today, rel=1e-12)
    assert solution["value"] == solution["values"][0]
    assert metric_at(name, solution, metric) == pytest.approx(times * today, rel=1e-9)


def test_a_target_in_a_unit_of_its_own():
    without_unit, with_unit = (
        solve(GB200, "terms.rate", f"{HOUR}={words}") for words in ("2.2", "2.2 USD/chip/h")
    )
    assert without_unit.breaks == with_unit.breaks
    assert without_unit.breaks[0].metric == pytest.approx(2.2, rel=1e-9)


def test_equal_to_another_scenario_which_an_input_of_both_moves_too():
    solution = solve(GB200, "parts.gb200-gpu.price", f"{TOKEN}={TRN3}")
    (price,) = (break_point.value for break_point in solution.breaks)
    assert solution.centre == pytest.approx(
        tco.evaluate(GB200, catalogue=CATALOGUE).metrics[TOKEN], rel=1e-12
    )
    costs = [
        tco.evaluate(
            name, {"parts.gb200-gpu.price": f"{price!r} USD"}, catalogue=CATALOGUE
        ).metrics[TOKEN]
        for name in (GB200, TRN3)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)
    ratio = solve(TRN3, "parts.gb200-gpu.price", f"{RATIO}=1")
    assert ratio.breaks[0].value == pytest.approx(price, rel=1e-9)
    assert "moved in gb200-nvl72 alone" in ratio.notes[0]
    common = solve(TRN3, "site.electricity_price", f"{HOUR}={GB200}")
    assert common.notes == ["site.electricity_price is moved in gb200-nvl72 too"]


def test_a_plan_is_chosen_anew_and_a_target_within_a_step_is_reached_with_it():
    solution = document(
        "solve",
        TRN3,
        "--vary",
        BANDWIDTH,
        "--until",
        f"{TOKEN}=+10%",
        "--from",
        "2 TB/s",
        "--to",
        "6 TB/s",
    )
    first, target = solution["reached"][0], solution["target"]
    reached = metric_at(TRN3, solution, TOKEN)
    assert reached == pytest.approx(first["metric"], rel=1e-12)
    assert solution["plan"] == "re-optimised"
    if first["step"]:
        assert first["metric_before"] < target < reached
        nearer = first["value"] * (1 + 1e-12)
        assert (
            tco.evaluate(TRN3, {BANDWIDTH: f"{nearer!r} TB/s"}, catalogue=CATALOGUE).metrics[TOKEN]
            < target
        )
    else:
        assert reached == pytest.approx(target, rel=1e-9)


@pytest.mark.thorough
def test_step_of_a_metric_is_stated_with_both_sides():
    """A cluster that outgrows a tier of switches pays for another one at once."""
    solution = document(
        "solve", TRN3, "--vary", "cluster.chips", "--until", f"{HOUR}=+1%", "--to", "100000"
    )
    (step,) = (
        reached_point
        for reached_point in solution["reached"]
        if reached_point["value"] == solution["value"]
    )
    assert step["step"]
    assert (
        step["metric_before"]
        < solution["target"]
        < step["metric"]
        == pytest.approx(metric_at(TRN3, solution, HOUR), rel=1e-12)
    )
    just_short = tco.evaluate(
        TRN3, {"cluster.chips": repr(solution["value"] * (1 - 1e-13))}, catalogue=CATALOGUE
    )
    assert just_short.metrics[HOUR] == pytest.approx(step["metric_before"], rel=1e-9)
    assert any("moves in steps" in note for note in solution["notes"])


def test_a_plan_that_is_held_leaves_no_steps():
    base = tco.evaluate(TRN3, catalogue=CATALOGUE)
    (break_point,) = solve(TRN3, BANDWIDTH, f"{TOKEN}=+5%", hold=True).breaks
    assert (
        break_point.metric
        == break_point.short
        == pytest.approx(1.05 * base.metrics[TOKEN], rel=1e-9)
    )
    held_result = tco.evaluate(
        TRN3, {BANDWIDTH: f"{break_point.value!r} TB/s"}, base.plan, catalogue=CATALOGUE
    )
    assert held_result.metrics[TOKEN] == pytest.approx(1.05 * base.metrics[TOKEN], rel=1e-9)


def test_answers_are_in_the_unit_of_the_ends():
    solve_words = ("solve", TRN3, "--until", f"{TOKEN}=+5%", "--hold", "--vary", BANDWIDTH)
    terabyte_solution, gigabyte_solution = (
        document(*solve_words, "--from", low, "--to", high)
        for low, high in (("2 TB/s", "6 TB/s"), ("2000 GB/s", "6000 GB/s"))
    )
    assert (terabyte_solution["unit"], gigabyte_solution["unit"]) == ("TB/s", "GB/s")
    for key in ("value", "today"):
        assert gigabyte_solution[key] == pytest.approx(terabyte_solution[key] * 1000, rel=1e-9)
    base_result = tco.evaluate(TRN3, catalogue=CATALOGUE)
    reached = tco.evaluate(
        TRN3,
        {BANDWIDTH: gigabyte_solution["set"].partition("=")[2]},
        base_result.plan,
        catalogue=CATALOGUE,
    )
    assert reached.metrics[TOKEN] == pytest.approx(1.05 * base_result.metrics[TOKEN], rel=1e-9)


MONTHS = [f"{year}-{month:02}" for year in (2025, 2026, 2027) for month in range(1, 13)][11:]


@cache
def by_month(metric):
    plan = tco.evaluate(GB200, catalogue=CATALOGUE).plan  # the price of an hour rests on none
    return {
        month: tco.evaluate(GB200, {"terms.date": month}, plan, catalogue=CATALOGUE).metrics[metric]
        for month in MONTHS
    }


def test_a_date_is_the_first_month_at_whose_prices_the_target_is_reached():
    """Against every month by itself."""
    levels = by_month(HOUR)
    solution = document(
        "solve",
        GB200,
        "--vary",
        "terms.date",
        "--until",
        f"{HOUR}=+5%",
        "--from",
        "2025-12",
        "--to",
        "2027-12",
        "--date",
        "2025-12",
    )
    assert [point["value"] for point in solution["points"]] == MONTHS
    assert [point["metric"] for point in solution["points"]] == pytest.approx(
        list(levels.values()), rel=1e-12
    )
    expected = next(month for month in MONTHS if levels[month] >= 1.05 * levels["2025-12"])
    assert (solution["value"], solution["set"], solution["today"], solution["unit"]) == (
        expected,
        f"terms.date={expected}",
        "2025-12",
        "date",
    )
    (reached,) = solution["reached"]
    assert (
        reached["metric_before"]
        < solution["target"]
        <= reached["metric"]
        == pytest.approx(levels[expected], rel=1e-12)
    )
    text = command(
        "solve",
        GB200,
        "--vary",
        "terms.date",
        "--until",
        f"{HOUR}=+5%",
        "--from",
        "2026-08",
        "--to",
        "2026-10",
        "--date",
        "2025-12",
    ).stdout
    assert re.search(rf"{expected} +\+\d+ months", text)
    assert f"--set 'terms.date={expected}'" in text


def test_a_date_before_todays_is_the_last_month_at_which_the_target_was_reached():
    levels = by_month(HOUR)
    target = 1.001 * levels["2025-12"]
    solution = solve(
        GB200,
        "terms.date",
        f"{HOUR}={target!r}",
        ("2025-12", "2027-06"),
        set={"terms.date": "2027-06"},
    )
    assert solution.today.text(solution.breaks[0].value) == max(
        month for month in MONTHS if levels[month] <= target
    )


def test_a_date_at_which_two_scenarios_are_level_moves_both_and_may_never_come():
    solution = document(
        "solve",
        GB200,
        "--vary",
        "terms.date",
        "--until",
        f"{TOKEN}=trn3-nl32x2",
        "--to",
        "2026-06",
        "--date",
        "2025-12",
    )
    assert solution["crossing"] is False
    assert "below that of trn3-nl32x2 everywhere" in solution["why"]
    assert "terms.date is moved in trn3-nl32x2 too" in solution["notes"]


def test_a_month_beyond_the_newest_price_is_said_to_be():
    def beyond(last):
        notes = solve(GB200, "terms.date", f"{HOUR}=+5%", ("2026-06", last), hold=True).notes
        return [note for note in notes if "lies beyond the prices known" in note]

    (note,) = beyond("2028-01")
    newest = re.search(r"the last is of (\d{4})-(\d\d)", note)
    months = 12 * int(newest[1]) + int(newest[2]) - 1
    newest_month, later = (f"{month // 12}-{month % 12 + 1:02}" for month in (months, months + 1))
    assert beyond(newest_month) == []
    assert beyond(later) == [note.replace("2028-01", later)]


def test_a_date_may_be_given_to_the_day():
    days = solve(GB200, "terms.date", f"{HOUR}=+5%", ("2026-12-15", "2027-02"), hold=True)
    assert [days.today.text(value) for value, _ in days.points] == [
        "2026-12-15",
        "2026-12",
        "2027-01",
        "2027-02",
    ]
    years = solve(GB200, "terms.date", f"{HOUR}=+5%", ("2026", "2027-Q1"), hold=True)
    assert [years.today.text(value) for value, _ in years.points] == [*MONTHS[1:16]]


@pytest.mark.parametrize("today", [6000, 13000])
def test_nearest_of_several_values_comes_first(today):
    """Prompts of 3,900 and 9,000 tokens cost the same; the one nearer to today comes first."""
    alike = (
        "--set",
        "workload.software=public",
        "--set",
        "workload.draft_tokens=0",
        "--date",
        "2025-12",
    )
    words = (
        "--vary",
        "workload.input_tokens",
        "--set",
        f"workload.input_tokens={today}",
        *alike,
        "--from",
        "500",
        "--to",
        "64000",
    )
    solved_values = document("solve", GB200, *words, "--until", "usd_per_million_tokens=0.093")[
        "values"
    ]
    assert len(solved_values) == 2
    assert (solved_values[0] < solved_values[1]) is (today == 6000)
    assert abs(solved_values[0] - today) < abs(solved_values[1] - today)


def test_message_of_no_crossing_states_the_range_of_the_metric():
    solution = document("solve", TRN3, "--vary", "terms.rate", "--until", f"{HOUR}=0.1")
    assert solution["crossing"] is False
    assert solution["value"] is None
    assert solution["values"] == []
    assert "lies between" in solution["why"]
    assert "the target is 0.1" in solution["why"]
    assert (
        "No value of it reaches the target"
        in command("solve", TRN3, "--vary", "terms.rate", "--until", f"{HOUR}=0.1").stdout
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("terms.date", "capex_usd=+5%"), "month at whose prices the capex of one scale-up domain"),
        (("terms.date", "capex_usd=-5%"), "No month reaches the target: at the prices from 2026-"),
        (("terms.life", f"{HOUR}=+10%"), "economic life at which the cost per chip-hour is"),
        (
            ("parts.gb200-gpu.price", f"{RATIO}=1.9", "--baseline", TRN3),
            f"gb200-gpu price at which the performance per TCO over that of {TRN3} is 1.900",
        ),
    ],
)
def test_the_title_is_a_sentence_for_every_kind_of_input(words, sentence):
    path, until, *options = words
    printed_text = command("solve", GB200, "--vary", path, "--until", until, *options).stdout
    assert sentence in " ".join(printed_text.split())


def test_values_without_an_answer_are_counted_with_the_reason():
    alike = {"workload.software": "public", "workload.draft_tokens": "0"}
    solution = solve(
        GB200,
        "workload.interactivity",
        f"{TOKEN}=-20%",
        ends=("20 token/s", "400 token/s"),
        set=alike,
    )
    missing = [value for value, metric in solution.points if metric is None]
    assert missing
    assert f"no answer at {len(missing)} of the {len(solution.points)} values" in solution.notes[0]
    assert "tokens/s per user" in solution.notes[0]
    assert solution.breaks


@pytest.mark.parametrize(
    ("path", "until", "ends", "error", "fragment"),
    [
        (
            "site.electricty_price",
            f"{HOUR}=+10%",
            (),
            DataError,
            "did you mean 'site.electricity_price'",
        ),
        (
            "site.electricity_price",
            "tco_usd_per_chip_hr=1",
            (),
            DataError,
            "did you mean 'tco_usd_per_chip_hour'",
        ),
        ("site.electricity_price", "1", (), UsageError, "expected METRIC=VALUE"),
        ("site.electricity_price", f"{HOUR}=1 kg", (), DataError, "unit 'kg'"),
        ("site.electricity_price", f"{HOUR}=1..2", (), DataError, "1..2"),
        (
            "site.electricity_price",
            f"{HOUR}=gb200-nvl73",
            (),
            DataError,
            "did you mean 'gb200-nvl72'",
        ),
        (
            "site.electricity_price",
            f"{HOUR}=1",
            ("0.2 USD/kWh", "0.1 USD/kWh"),
            UsageError,
            "reversed",
        ),
        ("site.electricity_price", f"{HOUR}=1", ("0.2 kg", None), DataError, "unit 'kg'"),
        (
            "site.electricity_price",
            f"{HOUR}=1",
            ("-1 USD/kWh", None),
            DataError,
            "--from .* lies within",
        ),
        ("site.electricity_price", f"{HOUR}=1", ("0.1", None), DataError, "such as '0.1 USD/kWh'"),
        ("parts.trn3.hbm_capacity", f"{TOKEN}=1", ("96", None), DataError, "such as '96 GiB'"),
        ("terms.date", f"{HOUR}=1", ("2027-01", "2026-01"), UsageError, "reversed or empty"),
        ("terms.date", f"{HOUR}=1", ("2026-01-31", "2026-01"), UsageError, "reversed or empty"),
        (
            "terms.date",
            f"{HOUR}=1",
            ("3 year", None),
            DataError,
            "--from 3 year: terms.date: '3 year' is no date",
        ),
        ("terms.date", f"{HOUR}=1", (None, "2026-13"), DataError, "'2026-13' is no date"),
        (
            "terms.date",
            f"{HOUR}=1",
            ("1990", "2027"),
            UsageError,
            "456 months, expected 240 at most",
        ),
        ("terms.date", "chips=1", (), DataError, "does not move chips"),
        ("terms.utilisation", f"{HOUR}=1", (None, "2"), DataError, "--to"),
        ("site.grid_carbon", "capex_usd=+10%", (), DataError, "does not move capex_usd"),
        (
            "parts.b200-sxm.price",
            "capex_usd=+10%",
            ("1 USD", "100 USD"),
            DataError,
            "does not move capex_usd",
        ),
        ("parts.b200-sxm.price", "capex_usd=+10%", (), UsageError, "has no value today"),
        ("terms.rate", f"{HOUR}={TRN3}", (), DataError, "at every value of terms.rate"),
        ("workload.model", f"{TOKEN}=1", (), DataError, "is a text"),
        (
            "workload.interactivity",
            f"{TOKEN}=1",
            ("2000 token/s", "4000 token/s"),
            DataError,
            "no value from 2000.0 token/s to 4000.0 token/s",
        ),
        ("workload", f"{TOKEN}=1", (), DataError, "is a text"),
    ],
)
def test_impossible_question_is_refused(path, until, ends, error, fragment):
    with pytest.raises(error, match=fragment.replace("[", r"\[")):
        solve(TRN3, path, until, ends or (None, None))


def test_equal_cost_is_told_from_the_turn_of_the_pick():
    words = ("parts.gb200-gpu.price", "usd_per_million_output_tokens")
    texts = [
        command(
            "solve", "gb200-nvl72", "--vary", words[0], "--until", f"{words[1]}={target}"
        ).stdout
        for target in ("mi450x-ualoe72", "+10%")
    ]
    assert ["over the draws, so it turns at another value." in text for text in texts] == [
        True,
        False,
    ]


def test_screen_says_what_the_plan_does_and_of_which_scenario_the_median_is():
    vary = ("solve", TRN3, "--vary", "site.electricity_price", "--until", f"{HOUR}=+10%")
    text, fixed = command(*vary).stdout, command(*vary, "--hold").stdout
    assert "The best plan stays that of the base case: its search does not read this input." in text
    assert "The plan is fixed." in fixed
    assert "fixed" not in text
    assert f"Cost per chip-hour of {TRN3}, USD: median of 512 draws " in text
    bandwidth = ("--vary", BANDWIDTH, "--until", f"{TOKEN}=+10%")
    assert "The plan is re-optimised at every value." in command("solve", TRN3, *bandwidth).stdout
