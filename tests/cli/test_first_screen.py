"""First screen of a comparison as a reader sees it."""

from __future__ import annotations

import re

import pytest

from tco.comparison.records import AtSpeed
from tco.report.curve import cost_text
from tco.report.first_screen import _lines_within, _speed_rows
from tco.report.ranges import rounded_percent
from tests.catalogue import DATA
from tests.cli import document, tco

TWO = ("trn3-nl72x2", "gb200-nvl72")
HEADER_OF_CHANGES = "USD/M output tokens, median at 50 before with --set change"


@pytest.fixture(scope="module")
def screen():
    done = tco("compare", *TWO)
    assert done.exit_code == 0, done.stderr
    return done


def test_first_screen_fits_eighty_columns_and_thirty_lines_in_a_pipe(screen):
    lines = screen.stdout.rstrip().splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80


def test_first_screen_prints_pick_median_and_percentiles_of_each_speed(screen):
    answer = document("compare", *TWO)
    points = {
        (point["scenario"], point["tokens_per_s_per_user"]): point for point in answer["curve"]
    }
    for regime in answer["verdict"]:
        for speed in regime["speeds"]:
            (line,) = [
                line
                for line in screen.stdout.splitlines()
                if re.match(rf" +{speed:g}  {regime['choose']} ", line)
            ]
            point = points[regime["choose"], speed]
            costs = [
                point[f"{name}_usd_per_million_output_tokens"] for name in ("median", "p10", "p90")
            ]
            assert line.split()[1] == regime["choose"]
            assert list(map(cost_text, costs)) == re.findall(r"\d+\.\d+", line)[:3]
            (rival,) = [name for name in TWO if name != regime["choose"]]
            shares = (
                1 - point["share_of_best"]["mean"],
                point["share_cheapest"],
                1 - points[rival, speed]["share_of_best"]["mean"],
            )
            assert re.findall(r">?<?\d+ %", line) == list(map(rounded_percent, shares))


def test_runner_up_has_the_least_regret_after_the_pick_though_it_is_cheapest_more_often():
    points = [
        AtSpeed(name, 30.0, 1.0, share_cheapest=chance, share_of_best={"mean": share})
        for name, chance, share in (("a", 0.4, 0.9), ("b", 0.5, 0.6), ("c", 0.1, 0.8))
    ]
    (row,) = _speed_rows(30.0, points, ("a",), {}, True)
    assert row[0] == "30"
    assert row[-4:] == ("10 %", "40 %", "c", "20 %")


def test_one_rack_alone_shows_the_median_of_its_table_and_a_base_case_without_draws():
    for words, statistic in (((), "median of the draws"), (("--no-range",), "base case")):
        lines = tco("compare", "gb200-nvl72", *words).stdout.splitlines()
        sentence = " ".join(lines[1:3])
        (row,) = (line.split() for line in lines if line.startswith("   50 "))
        assert f"at 50 tokens/s per user for {row[2]} USD per million output tokens" in sentence
        assert sentence.endswith(f"({statistic}).")


def test_racks_without_a_price_for_one_reason_stand_in_one_sentence():
    words = ("compare", "trn3-nl32x2", *TWO, "--no-range", "--set", "terms.perspective=neocloud")
    text = " ".join(tco(*words).stdout.split())
    reason = "each is built by Amazon for its own use, so terms.perspective=neocloud has no"
    assert f"trn3-nl32x2, trn3-nl72x2 cannot be priced: {reason}" in text
    assert text.count("cannot be priced") == 1


def test_only_rack_that_is_priced_has_no_regret_and_no_runner_up():
    done = tco("compare", *TWO, "--set", "terms.perspective=renter")
    (header,) = (line for line in done.stdout.splitlines() if line.startswith("speed "))
    assert header.split() == ["speed", "pick", "median", "P10", "P90"]


def test_first_screen_says_runs_error_and_dates_of_each_rack(screen):
    for row in document("compare", *TWO)["rows"]:
        (line,) = [
            line
            for line in screen.stdout.partition("\nrack ")[2].splitlines()
            if line.startswith(row["scenario"])
        ]
        runs, error, _, *months = line.split()[-5:]
        assert runs == str(row["validated_rows"])
        assert f"{error} %" == rounded_percent(row["validated"]["median_ape"])
        assert months == [row["available"]["volume"], row["available"]["first_token"]]


def test_title_says_that_a_model_is_read_from_a_file(tmp_path):
    config = DATA / "models" / "deepseek-v3" / "config.json"
    (tmp_path / "config.json").write_text(config.read_text())
    done = tco("compare", "gb200-nvl72", "--no-range", "--set", f"workload.model={tmp_path}")
    assert done.stdout.startswith("model read from /")


def test_model_in_another_format_than_its_checkpoint_is_noted():
    done = tco("compare", *TWO, "--no-range", "--set", "workload.model=llama-3.1-70b")
    assert "weights FP8, as the workload is stated; its checkpoint is BF16" in done.stderr


def test_first_screen_without_the_target_speed_prints_medians_of_the_nearest():
    done = tco("compare", *TWO, "--speeds", "40,45")
    answer = document("compare", *TWO, "--speeds", "40,45")
    rack_lines = done.stdout.partition("\nrack ")[2].splitlines()
    assert "45" in " ".join(rack_lines[:2])
    for point in answer["curve"]:
        if point["tokens_per_s_per_user"] == 45:
            (line,) = [line for line in rack_lines if line.startswith(point["scenario"])]
            assert line.split()[1] == cost_text(point["median_usd_per_million_output_tokens"])


def test_full_table_prints_the_median_below_each_base_case_cost():
    lines = tco("compare", *TWO, "--full").stdout.splitlines()
    answer = document("compare", *TWO)
    (base_case,) = [
        index for index, line in enumerate(lines) if line.startswith("~ million output tokens")
    ]
    assert lines[base_case + 1].startswith("median of the draws")
    medians = [row["range"]["usd_per_million_output_tokens"]["p50"] for row in answer["rows"]]
    assert lines[base_case + 1].split()[-2:] == list(map(cost_text, medians))


def test_full_table_names_the_kind_of_each_share():
    text = tco("compare", *TWO, "--full").stdout
    assert re.search(r"hardware price, estimated +\d+ % +\d+ %", text)


def test_first_screen_counts_notes_on_old_prices_in_one_line(screen):
    (note,) = screen.stderr.strip().splitlines()
    count = re.fullmatch(
        r"note: --full lists (\d+) more notes; up to \d+ % of a rack's price is of other dates",
        note,
    )
    assert count
    assert int(count[1]) == len(tco("compare", *TWO, "--full").stderr.splitlines())


def test_choices_are_printed_with_their_regret():
    text = tco("compare", *TWO, "--choose", "gb200-nvl72,trn3-nl72x2:0.5+gb200-nvl72:0.5").stdout
    assert "mean regret of the choice" in text
    assert text.count("trn3-nl72x2:0.5+") == 1


def test_curve_without_csv_is_refused_with_the_form_that_has_it():
    done = tco("compare", *TWO, "--curve")
    assert done.exit_code == 2
    assert "--format csv" in done.stderr


def test_setting_shows_base_cases_before_and_after():
    changes = document("compare", *TWO, "--no-range", "--set", "terms.rate=0.2")["changes"]
    unset = document("compare", *TWO, "--no-range")["rows"]
    metric = "usd_per_million_output_tokens"
    assert [change["before"] for change in changes] == [row["metrics"][metric] for row in unset]
    assert all(change["after"] > change["before"] for change in changes)


def test_setting_shows_the_medians_of_the_screen_before_and_after():
    setting = ("--set", "terms.rate=0.2")
    changes = document("compare", *TWO, *setting)["changes"]
    rows = tco("compare", *TWO, *setting).stdout.splitlines()
    assert " ".join(rows[3].split()) == HEADER_OF_CHANGES
    for index, words in enumerate(((), setting)):
        medians = {
            point["scenario"]: point["median_usd_per_million_output_tokens"]
            for point in document("compare", *TWO, *words)["curve"]
            if point["tokens_per_s_per_user"] == 50
        }
        key = ("median_before", "median_after")[index]
        for change, row in zip(changes, rows[5:7], strict=True):
            assert change[key] == pytest.approx(medians[change["scenario"]], rel=1e-9)
            assert row.split()[1 + index] == cost_text(medians[change["scenario"]])


def test_medians_before_a_setting_are_of_the_same_draws():
    for words in (("--seed", "3"), ("--hold",)):
        unset = document("compare", *TWO, *words)["curve"][2]
        changes = document("compare", *TWO, *words, "--set", "terms.rate=0.2")["changes"]
        median = unset["median_usd_per_million_output_tokens"]
        assert unset["tokens_per_s_per_user"] == 50
        assert changes[0]["median_before"] == pytest.approx(median, rel=1e-9)


def test_costs_of_another_target_are_those_at_the_target_speed():
    text = tco("compare", *TWO, "--set", "workload.interactivity=30 token/s").stdout
    assert "median at the target speed" in " ".join(text.split())


def test_relative_setting_is_that_share_of_the_value_of_each_scenario():
    relative, absolute = (
        document("price", "gb200-nvl72", "--set", f"site.electricity_price={text}")["metrics"][
            "tco_usd_per_chip_hour"
        ]
        for text in ("-10%", f"{0.9 * 0.0861} USD/kWh")
    )
    assert relative == pytest.approx(absolute, rel=1e-9)


def test_relative_price_of_a_chip_that_its_parts_give_leaves_other_systems_alone():
    setting = ("--set", "parts.trn3.price=+20%")
    rows = document("compare", *TWO, "--no-range", *setting)["rows"]
    unset = document("compare", *TWO, "--no-range")["rows"]
    costs, unset_costs = (
        {row["scenario"]: row["metrics"]["tco_usd_per_chip_hour"] for row in side}
        for side in (rows, unset)
    )
    assert [name for name in costs if costs[name] != unset_costs[name]] == ["trn3-nl72x2"]
    note = "parts.trn3.price is set, but nothing in this scenario rests on it"
    assert [row["scenario"] for row in rows if note in row["notes"]] == ["gb200-nvl72"]


def test_relative_setting_of_a_text_is_refused():
    done = tco("price", "gb200-nvl72", "--set", "workload.model=+20%")
    assert done.exit_code == 3
    assert "is no number" in done.stderr


def test_setting_that_moves_no_cost_names_the_input_that_binds():
    """HBM of Trainium3 stops at what its DMA engines move."""
    done = tco("compare", *TWO, "--no-range", "--set", "parts.trn3.hbm_bandwidth=+20%")
    assert "parts.trn3.dma_bandwidth 4.224 TB/s binds" in done.stderr
    note = "parts.trn3.hbm_bandwidth does not move the base-case cost: parts.trn3.dma_bandwidth"
    assert " ".join(done.stdout.split()).count(note) == 1


def test_speed_of_a_setting_that_moves_no_cost_names_the_input_that_binds():
    note = "parts.trn3.dma_bandwidth 4.224 TB/s binds"
    words = ("perf", "trn3-nl72x2", "--set")
    assert note in tco(*words, "parts.trn3.hbm_bandwidth=+20%").stderr
    assert "binds" not in tco(*words, "parts.trn3.hbm_bandwidth=-40%").stderr
    assert "binds" not in tco(*words, "site.electricity_price=+20%").stderr


def test_title_names_the_share_of_cached_input():
    done = tco("compare", "gb200-nvl72", "--no-range", "--set", "workload=agent")
    assert "32,768 tokens in (90 % cached), 512 out" in done.stdout


def test_costs_of_another_workload_are_not_held_against_those_before():
    other_work = tco("compare", *TWO, "--no-range", "--set", "workload=agent").stdout
    assert "before" not in other_work
    same_work = tco("compare", *TWO, "--no-range", "--set", "terms.life=4 year").stdout
    assert "before" in same_work
    assert all("`tco compare --all` ranks them" in text for text in (other_work, same_work))


def test_screen_with_settings_says_where_other_systems_and_remarks_stand():
    text = tco("compare", *TWO, "--set", "terms.life=4 year").stdout
    assert "`tco compare --all` ranks them, with the same --set." in text
    text = tco("compare", "--set", "terms.life=4 year").stdout
    assert "If bought in 2027-05 instead, with all in volume:" in text


def test_remarks_without_room_are_named_with_the_command_that_shows_them():
    remarks = {"first": ["one", "two words"], "long": ["x" * 100], "last": ["three"]}
    assert _lines_within(remarks, 3) == (["one", "two words", "three"], ["long"])
    assert _lines_within(remarks, 0) == ([], ["first", "long", "last"])
    assert "--full (later dates, picks by software)" in tco("compare").stdout


def test_renters_side_by_side_are_said_to_pay_one_kind_of_rent():
    renter = ("--no-range", "--set", "terms.perspective=renter")
    words = "All rents compared are of one kind: contracts of three years (SemiAnalysis)."
    assert words in " ".join(tco("compare", "h100-hgx8", "h200-hgx8", *renter).stdout.split())
    assert "of one kind" not in tco("compare", "h100-hgx8", *renter).stdout


def test_another_buyer_is_shown_with_the_terms_that_it_brings():
    words = ("compare", *TWO, "--no-range", "--set", "terms.perspective=on-premises")
    text = " ".join(tco(*words).stdout.split())
    (sentence,) = (part for part in text.split(". ") if "This buyer also brings" in part)
    assert "utilisation 50 % (before: 80 %)" in sentence
    assert "cost of capital" not in sentence  # 9 % for both
    busier = " ".join(tco(*words, "--set", "terms.utilisation=0.6").stdout.split())
    assert "utilisation 50 %" not in busier
    assert "utilisation 60 %" in busier
