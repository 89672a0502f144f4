"""Words and tables of records that are made by hand: numbers in the units and digits shown."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tco.comparison.gigawatt import Gigawatt, PublishedCost, PurchaseSum
from tco.comparison.records import AtSpeed, Confidence, Measurement, Regime, Sureness
from tco.comparison.workloads import Cell
from tco.evaluation.side_by_side import Driver
from tco.evidence.forecasts import Forecast
from tco.regression.difference import ChangeCause, ChangeContribution, Move
from tco.report.counterfactual import _percent_or_times
from tco.report.curve import measurement_table, why_tables
from tco.report.difference import _step_table
from tco.report.figures.hardware import tiles
from tco.report.forecasts import _forecasts_table
from tco.report.gigawatt import _gigawatt_table, _published_capex_tables
from tco.report.kernels import _binary_size_text
from tco.report.ranges import (
    chance_rows,
    drawn_words,
    driver_table,
    metric_range_rows,
    percentile_range_text,
    range_end_label,
    rounded_percent,
    turn_words,
)
from tco.report.table import (
    Table,
    fixed_digits,
    headed,
    input_text,
    input_unit,
    is_heading,
    scaled_unit,
    sentence,
    weak,
)
from tco.report.uncertainty import _chance_sentences, _legend, training_gap_words
from tco.report.verdict import _basis_of
from tco.report.workloads import _workloads_table
from tco.scenario.result import OWN_COST
from tests.scenario_helpers import result

RATIO, COST = "perf_per_tco_vs_baseline", "usd_per_million_output_tokens"


# ---------------------------------------------------------------- numbers
@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 3, ""),
        (0.0, 3, "0"),
        (math.inf, 3, "-"),
        (1.0, 3, "1.00"),
        (0.86, 3, "0.860"),
        (2.2, 3, "2.20"),
        (12.0, 3, "12.0"),
        (99.96, 3, "100"),
        (123.4, 3, "123"),
        (1234.0, 3, "1,230"),
        (-0.5, 2, "-0.50"),
        (1e-5, 3, "1e-05"),
    ],
)
def test_a_column_has_as_many_digits_in_every_row(value, digits, text):
    assert fixed_digits(value, digits) == text


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("byte/s", 2e10, ("GB/s", 1e9)),
        ("byte", 999_999.0, ("byte", 1.0)),
        ("byte", 1e6, ("MB", 1e6)),
        ("byte", -3e12, ("TB", 1e12)),
        ("FLOP/s", 5e15, ("PFLOP/s", 1e15)),
        ("USD", 1e9, ("USD", 1.0)),
    ],
)
def test_large_numbers_have_a_prefix(unit, largest, expected):
    assert scaled_unit(unit, largest) == expected


def test_dates_shares_and_counts_have_no_unit():
    assert input_unit("terms.rate", "ratio") == input_unit("cluster.chips", "count") == ""
    assert input_unit("site.power", "W") == "W"
    assert input_text("parts.trn3.released", 2025.92) == "2025-12"
    assert input_text("site.power", 1234567.0) == "1,234,570"
    assert input_text("site.power", None) == ""


def test_labels():
    assert headed("cost", "USD") == "cost, USD"
    assert headed("ratio", "x") == "ratio"
    assert headed("USD per million output tokens", "USD/Mtoken") == (
        "USD per million output tokens, USD"
    )
    assert sentence("a price") == "A price"
    assert (weak("estimate"), weak("vendor"), weak(None)) == ("~", "", "")
    assert is_heading(("prices", "", ""))
    assert not is_heading(("prices",))
    assert not is_heading(("", "", ""))
    assert not is_heading(("prices", "", "1"))
    assert [Table(("a", "b", "c"), [], align="lr").side(column) for column in range(3)] == [
        "left",
        "right",
        "right",
    ]


# ---------------------------------------------------------------- ranges
@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "<1 %"),
        (0.0049, "<1 %"),
        (0.006, "1 %"),
        (0.345, "34 %"),
        (0.994, "99 %"),
        (0.9951, ">99 %"),
        (1.0, ">99 %"),
    ],
)
def test_draws_cannot_tell_a_share_from_none_or_all(share, text):
    assert rounded_percent(share) == text


def test_an_end_beyond_which_the_target_is_missed_is_none_of_a_rate_and_no_end_of_a_cost():
    assert range_end_label(COST, 1234.5) == "1,230"
    assert range_end_label(COST, 2.5e6, 1e6) == "2.50"
    assert range_end_label(COST, None) == "no end"
    assert range_end_label(RATIO, None) == "no end"
    assert range_end_label("output_tokens_per_s_per_chip", None) == "none"


def sureness_of(low=0.8, high=1.25, **fields):
    usual = {
        "probability_better_than_baseline": 0.62,
        "share_of_draws_that_meet_the_target": 0.97,
        "drivers": [],
        "draws": 512,
        "probability_error": 0.0214,
    }
    return Sureness({RATIO: {"p10": low, "p50": 1.0, "p90": high}}, **(usual | fields))


BASELINE = sureness_of(1.0, 1.0, probability_error=None, ties=0.0)


def test_a_range_has_two_ends_unless_it_is_of_the_baseline_against_itself():
    assert percentile_range_text(sureness_of(), RATIO, 1.0) == "0.800 to 1.25"
    assert percentile_range_text(sureness_of(0.8, None), RATIO, 1.0) == "0.800 to no end"
    assert percentile_range_text(BASELINE, RATIO, 1.0) == "-"
    assert percentile_range_text(sureness_of(), COST, 1.0) == "-"


def test_rows_of_ranges_are_those_that_somebody_has():
    assert metric_range_rows(RATIO, 1.0, [BASELINE, sureness_of()]) == [
        ("median of the draws", "-", "1.00"),
        ("P10 to P90", "-", "0.800 to 1.25"),
    ]
    assert metric_range_rows(RATIO, 1.0, [BASELINE]) == []
    assert chance_rows([BASELINE, sureness_of(ties=0.03)]) == [
        ("chance to beat the baseline", "-", "62 % ± 2.1"),
        ("ties: both miss the target", "<1 %", "3 %"),
        ("meets the target, share of draws", "97 %", "97 %"),
    ]
    undrawn = BASELINE._replace(share_of_draws_that_meet_the_target=None)
    assert chance_rows([undrawn]) == []


def test_rows_of_a_metrics_draws_are_in_the_unit_shown():
    metric = "train_usd_per_trillion_tokens"
    missed = {"p10": 1.5e6, "p50": None, "p90": None}
    trained = [
        BASELINE._replace(ranges={metric: {"p10": 1.5e6, "p50": 2e6, "p90": 3.1e6}}),
        BASELINE._replace(ranges={metric: missed}),
    ]
    assert metric_range_rows(metric, 1e6, trained) == [
        ("median of the draws", "2.00", "no end"),
        ("P10 to P90", "1.50 to 3.10", "1.50 to no end"),
    ]


def test_drivers_say_which_way_they_move_the_ratio_and_where_the_order_turns():
    drivers = [
        Driver("site.electricity_price", 0.25, 0.12, "USD/J", 0.06, None),
        Driver("terms.rate", -0.5, None, "", 0.09, None),
        Driver("workload.interactivity", None, 60.0, "token/s", 50.0, None),
    ]
    assert driver_table(["rack"], [sureness_of(drivers=drivers)]).rows == [
        ("rack", "electricity price", "+0.25", "above about 0.12 USD/J"),
        ("", "cost of capital", "-0.50", "no"),
        ("", "tokens/s per user", "misses the target", "above about 60 token/s"),
    ]


def test_draws_say_their_number_and_whether_the_plan_is_fixed():
    (sentence,) = drawn_words([sureness_of()])
    assert sentence.startswith(
        "Ranges: 512 draws of every input within its low and high, the plan re"
    )
    (fixed_plan,) = drawn_words([sureness_of(hold=True)])
    assert "the plan of the base case fixed" in fixed_plan
    assert drawn_words([sureness_of(draws=0)]) == []


def uncertainty_of(both, draws=10_000):
    """Return an uncertainty of which the first `both` draws meet the target on both racks."""
    meets = np.arange(draws) < both
    sample = SimpleNamespace(meets=meets, both=meets, ties=None, better=meets)
    baseline = SimpleNamespace(name="b")
    return SimpleNamespace(sample=sample, baseline=baseline, hold=False, drawn={}, seed=0)


def test_a_share_of_the_draws_is_said_unless_it_prints_as_all_of_them():
    def sentences(both):
        return [line for line in _chance_sentences(uncertainty_of(both)) if "here and on" in line]

    assert sentences(10_000) == sentences(9_996) == []
    assert sentences(9_990) == ["99.9 % (± 0.0 points) meet it here and on b."]


def test_draws_of_another_number_than_those_of_a_comparison_say_both():
    words = "Medians and ranges are of 10,000 draws; those of `tco compare` are of 512."
    assert words in _legend(uncertainty_of(10_000))
    assert not any("tco compare" in line for line in _legend(uncertainty_of(512, 512)))


def test_measurements_have_what_they_narrow_and_save_in_columns():
    measured = (Measurement("kernels", "mi450x", 0.11, 0.044, 0.029),)
    table = measurement_table(Regime("close", picks=("a",), measurements=measured))
    assert table.rows == [
        ("tco measure -o kernels.csv on a chip of mi450x", "11 %", "4.4 %", "2.9 %")
    ]


DRIVERS = (
    Driver("performance.run-a.deployment_efficiency", 0.4, 0.8567, "ratio", 1.0, None),
    Driver("parts.b-chip.price", -0.1, None, "USD", 30_000.0, (30.0, "kUSD")),
    Driver("performance.b.unexplained_training", None, 0.12, "ratio", 0.0, None),
)


def why_tables_of(**regime_fields):
    """Return the tables on racks a at 0.8 and b at 0.6 USD, at 30 tokens/s per user."""
    why_regime = Regime(
        "close", picks=("a",), foremost="a", rival="b", probability=0.6, keeps=0.9, most=0.9
    )._replace(**regime_fields)
    curve = [
        AtSpeed(rack, speed, cost * speed / 30)
        for rack, cost in (("a", 0.8), ("b", 0.6))
        for speed in (20.0, 30.0)
    ]
    results = [SimpleNamespace(scenario=rack, metrics={COST: 2.0}) for rack in "ab"]
    return why_tables(Confidence([], curve, [why_regime, why_regime]), results)


def test_why_says_what_each_input_moves_whom_it_favours_and_where_costs_are_equal():
    first, second = why_tables_of(drivers=DRIVERS, speeds=(20.0, 30.0))
    assert first.title == "20 to 30 tokens/s per user: a against b"
    assert first.rows == [
        ("production speed, a alone", "1.00", "+0.40", "a", "0.857"),
        ("b-chip price", "30.0 kUSD", "-0.10", "b", "nowhere"),
        ("model error on b", "0 %", "-", "decides who meets the target", "12.0 %"),
    ]
    assert list(first.above) == [
        "Pick: a, regret 10 % on average.",
        "Base case at 30 tokens/s per user: 0.800 USD per million output tokens on a, 0.600 USD on "
        "b. Ratio of performance per TCO: 0.75.",
        "a costs more in the base case; over all draws its mean regret is less.",
        "Each of 2 inputs alone can turn within its range which of the two costs less.",
    ]
    assert first.below[0].endswith("the mean regret would be saved: 10 % of the spend.")
    assert any(line.startswith("production speed: ") for line in first.below)
    assert first.below[1] == f"All inputs: tco sensitivity a --metric {RATIO} --baseline b"
    assert list(second.below) == list(first.below[:2])  # the legend stands once


def test_why_without_a_speed_compares_the_costs_of_the_results():
    table, _ = why_tables_of(drivers=DRIVERS[1:2])
    assert table.title == "a against b"
    assert table.above[1] == (
        "Base case: 2.00 USD per million output tokens on a, 2.00 USD on b. Ratio of performance "
        "per TCO: 1.00."
    )
    assert table.above[-1].startswith("No input alone can turn ")


def test_why_of_software_compares_the_leaders_at_its_ends():
    ends = {"public": ("b",), "best": ("a",)}
    shares = dict.fromkeys(ends, 0.9)
    table, _ = why_tables_of(
        kind="software", by_software=ends, by_software_keeps=shares, drivers=DRIVERS
    )
    assert table.title == "a against b"


def test_a_measurement_that_saves_nothing_is_said_to_change_no_pick():
    useless = (Measurement("inference", "a", 0.11, 0.0004, 0.0),)
    tables = why_tables_of(measurements=useless)
    for table in (tables[1], tables[3]):
        assert table.below[:2] == [
            "No measurement alone saves regret: the pick stays.",
            "Give a serving run, published or your own, with --anchor FILE.",
        ]
    assert tables[0].columns == ()  # a regime without drivers has its sentence alone


def test_a_turn_is_told_in_the_unit_of_the_catalogue():
    assert turn_words(1500.0, 2000.0, "W", (2.0, "kW")) == "below about 1.5 kW"
    assert turn_words(2500.0, 2000.0, "W", None) == "above about 2,500 W"
    assert turn_words(0.5, 0.0, "", (0.0, "x")) == "above about 0.5"
    assert turn_words(1.04166, 1.0, "ratio", None) == "above about 1.04"


# ---------------------------------------------------------------- tables
def test_forecasts_are_off_by_a_signed_share_or_waiting():
    usual = {
        "date": "2026-01",
        "version": "0.1",
        "hash": "a",
        "system": "rack",
        "settings": "",
        "metric": "tpot_s",
        "unit": "s",
        "source": "",
        "note": "",
    }
    came = Forecast(
        id="f1", what="a step", predicted=120.0, low=90.0, high=None, measured=100.0,
        error=0.2, inside=None, **usual,
    )  # fmt: skip
    waits = came._replace(id="f2", measured=None, error=None, high=150.0)
    table = _forecasts_table([came, waits])
    assert table.rows == [
        ("f1", "2026-01", "rack", "120", "90", "-", "100", "+20 %"),
        ("f2", "2026-01", "rack", "120", "90", "150", "-", "waiting"),
    ]
    assert table.title == "2 forecasts, 1 measured since, 1 waiting"
    assert table.below[0] == "f1: a step, s."


def test_mean_regret_is_starred_where_a_rack_is_picked():
    cells = [
        Cell("chat", 20.0, "a", choose=True, share_cheapest=None, share_of_best={"mean": 0.991}),
        Cell("chat", 20.0, "b", choose=False, share_cheapest=None, share_of_best={"mean": 0.5}),
        Cell("train", None, "a", choose=False, share_cheapest=None, share_of_best=None),
        Cell("train", None, "b", choose=True, share_cheapest=None, share_of_best={"mean": 1.0}),
    ]
    table = _workloads_table(cells)
    assert table.rows == [
        ("chat", "20", "*1 %", "50 %"),
        ("train", "-", "-", "*<1 %"),
    ]
    assert table.emphasis == {(0, 2): "pick", (1, 3): "pick"}
    assert "without a mark" not in " ".join(table.below)
    slow = Cell("chat", 99.0, "a", choose=False, share_cheapest=None, share_of_best={"mean": 0.3})
    assert "without a mark" in " ".join(
        _workloads_table([*cells, slow, slow._replace(scenario="b")]).below
    )


def site_of(**fields):
    scenario_result = result("gb200-nvl72")
    evaluation = SimpleNamespace(result=scenario_result, name="gb200-nvl72")
    usual = {
        "system": "gb200-nvl72",
        "date": "2026-11",
        "hall_cooling": None,
        "racks": 5705.0,
        "chips": 410_760.0,
        "grid_w": 1e9,
        "it_w": 714.16e6,
        "usd": 33.305e9,
        "usd_per_grid_w": 33.305,
        "usd_per_it_w": 46.64,
        "output_tokens_per_s": 381.23e6,
        "capex_usd": 23.309e9,
        "cost_usd_per_year": 8.384e9,
        "revenue_usd_per_year": None,
        "margin_usd_per_year": None,
        "lines": [PurchaseSum("chips", 12.347e9), PurchaseSum("hall", 9.996e9)],
        "range": {"p10": 28.91, "p50": 33.26, "p90": 39.25},
        "published": [PublishedCost("Bernstein", "paper", 35.0, 50.0, "all of it")],
        "evaluation": evaluation,
    }
    return Gigawatt(**(usual | fields))


def test_a_site_is_shown_in_megawatts_billions_and_millions():
    table = _gigawatt_table([site_of()])
    rows = {label.strip(): text for label, text in table.rows}
    assert rows == {
        "racks are priced at": "vendor's price",
        "MW from the grid": "1,000",
        "cooling of the hall": "-",
        "divided by peak PUE": rows["divided by peak PUE"],
        "spare power, %": "0",
        "MW for the racks": "714",
        "number of racks": "5,705",
        "number of chips": "410,760",
        "chips": "12.35",
        "capex of IT, billion USD": "23.31",
        "capex with hall, billion USD": "33.30",
        "hall": "10.00",
        "USD per watt of the grid (base case)": "33.3",
        "median": "33.3",
        "P10": "28.9",
        "P90": "39.2",
        "USD per watt for the racks (base case)": "46.6",
        "million output tokens/s": "381.2",
        "cost per year, billion USD": "8.38",
    }
    assert len(rows) == len(table.rows)  # no label stands twice
    assert any("mean of all hours" in line for line in table.below)
    silent = _gigawatt_table([site_of(output_tokens_per_s=None)])
    assert not any(label.endswith("output tokens/s") for label, _ in silent.rows)
    assert not any("mean of all hours" in line for line in silent.below)


def test_published_costs_stand_beside_the_range_of_ours():
    (table,) = _published_capex_tables([site_of()])
    assert table.rows == [("gb200-nvl72", "Bernstein", "35.0", "50.0", "28.9", "39.2", "all of it")]
    assert table.columns[2:4] == ("published low", "published high")
    assert _published_capex_tables([site_of(published=[])]) == []


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0.0, "0 B"),
        (1.0, "1 B"),
        (1023.0, "1,023 B"),
        (1024.0, "1 KiB"),
        (1536.0, "1.5 KiB"),
        (2.0**20, "1 MiB"),
        (3 * 2.0**30, "3 GiB"),
        (2.0**50, "1,024 TiB"),
    ],
)
def test_sizes_of_buffers_go_by_1024(size, text):
    assert _binary_size_text(size) == text


@pytest.mark.parametrize("room", [(40.0, 30.0), (30.0, 90.0), (400.0, 10.0)])
def test_rectangles_fill_their_room_in_proportion_to_their_sizes(room):
    sizes, (width, height) = [8.0, 5.0, 3.0, 2.0, 1.0, 1.0], room
    rectangles = tiles(sizes, 7.0, 11.0, width, height)
    areas = [wide * high for _, _, wide, high in rectangles]
    assert areas == pytest.approx([size / 20 * width * height for size in sizes])
    for left, top, wide, high in rectangles:
        assert 7 - 1e-9 <= left <= left + wide <= 7 + width + 1e-9
        assert 11 - 1e-9 <= top <= top + high <= 11 + height + 1e-9
    for index, (left, top, wide, high) in enumerate(rectangles):
        for right, bottom, breadth, depth in rectangles[index + 1 :]:
            overlap_x = min(left + wide, right + breadth) - max(left, right)
            overlap_y = min(top + high, bottom + depth) - max(top, bottom)
            assert min(overlap_x, overlap_y) < 1e-9


@pytest.mark.parametrize(
    ("basis", "rent", "texts", "words"),
    [
        (None, None, {}, None),
        (OWN_COST, None, {"terms.owner": "Amazon"}, "built at Amazon's own cost, for Amazon alone"),
        (OWN_COST, None, {}, "built at its owner's own cost, for its owner alone"),
        ("price", None, {}, "at vendor's price, for any buyer"),
        (
            "price",
            ("rent", "SemiAnalysis"),
            {},
            "rented by contracts of three years (SemiAnalysis)",
        ),
    ],
)
def test_a_rack_is_priced_on_a_basis_that_is_named(basis, rent, texts, words):
    rack = SimpleNamespace(basis=basis, rent=rent, texts=texts)
    assert _basis_of(rack) == words


def test_steps_of_a_metric_add_up_and_are_told_in_per_cent_of_where_they_begin():
    causes = (ChangeCause("price", "parts.a.price", 1.0, 2.0, "USD"),)
    steps = (
        ChangeContribution(causes, 2.0, 3.0),
        ChangeContribution(causes, 3.0, 1.5),
    )
    table = _step_table(Move(COST, 2.0, 1.5, -0.25, steps))
    first, second, total = ([cell.strip() for cell in row[1:3]] for row in table.rows)
    assert (first[0], second[0], total[0]) == ("+1", "-1.5", "-0.5")
    percents = [float(row[1].rstrip(" %")) for row in (first, second, total)]
    assert percents == pytest.approx([50.0, -50.0, -25.0])


TRAINING_MEDIANS = {
    "train_usd_per_trillion_tokens": {"p50": 6.25e6},
    "step_s": {"p50": 15.0},
    "tco_usd_per_used_chip_hour": {"p50": 1.8},
    "goodput": {"p50": 0.86},
}
TRAINING_BASE = {
    "train_usd_per_trillion_tokens": 5e6,
    "step_s": 12.0,
    "tco_usd_per_used_chip_hour": 1.5,
    "goodput": 0.91,
}


def test_a_training_cost_under_its_median_has_its_reason():
    (sentence,) = training_gap_words(TRAINING_BASE, TRAINING_MEDIANS)
    assert sentence == (
        "The base case of the training cost lies 20 % under the median. In the medians a step "
        "takes 25 % longer, and a used chip-hour costs 20 % more: failures leave 86 % of the "
        "hours, in the base case 91 %."
    )
    # the reason is not this one where steps are no slower, or nothing is trained
    assert training_gap_words(TRAINING_BASE | {"step_s": 15.0}, TRAINING_MEDIANS) == []
    assert training_gap_words(TRAINING_BASE | {"goodput": 0.8}, TRAINING_MEDIANS) == []
    assert training_gap_words({"goodput": 0.9}, {"goodput": {"p50": 0.8}}) == []


def test_a_change_is_said_in_per_cent_or_from_the_double_on_in_times():
    assert _percent_or_times(1.743) == "+74 %"
    assert _percent_or_times(0.57) == "-43 %"
    assert _percent_or_times(2.774) == "2.77 times"
