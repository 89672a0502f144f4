"""Cells of tables and sheets that are made by hand: units, digits, months and column blocks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.core.provenance import Input
from tco.cost.cash_flows import Payment
from tco.regression.difference import ChangeCause, ChangeContribution, Move
from tco.report import catalogue_checks
from tco.report.cost import _payment_table
from tco.report.difference import metric_change_lines
from tco.report.fleet import COLUMNS, USD_UNITS, WATT_UNITS, money_scale, scale_for
from tco.report.frontier import (
    CHANCE,
    _change_words,
    _design_row,
    _lines_once,
    _point_row,
    _thinned,
)
from tco.report.inputs import _input_in_read_unit, _range_text
from tco.report.page.whatif import COSTLY
from tco.report.performance import OPERATOR
from tco.report.service import GROUPS
from tco.report.table import Table
from tco.report.terminal import _column_blocks
from tco.report.uncertainty import WIDTH, _histogram_bar
from tco.report.validation import _share_member
from tco.report.verdict import listed_names, tie_words
from tco.report.workbook.sheets import number_format
from tco.scenario.metrics import training_perf_per_tco

BAND_ENDS = [f"output_tokens_per_s_per_chip_p{percentile}" for percentile in (10, 50, 90)]


# ---------------------------------------------------------------- words
@pytest.mark.parametrize(
    ("picks", "late", "words"),
    [
        (["a"], None, "a"),
        (["a"], {"a": "2027-03"}, "a (from 2027-03)"),
        (["a", "b"], {"b": "2027-03"}, "tie of a and b (from 2027-03)"),
        (["a", "b", "c"], None, "tie of a, b and c"),
    ],
)
def test_a_pick_is_named_alone_and_several_as_a_tie(picks, late, words):
    assert tie_words(picks, late) == words


def test_names_in_a_row_have_an_and_before_the_last():
    assert [listed_names(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (0.0, "="),
        (4.9e-4, "="),
        (-4.9e-4, "="),
        (5e-4, "+0.1 %"),
        (-0.0312, "-3.1 %"),
        (0.1, "+10 %"),
        (0.994, "+99 %"),
        (1.0, "2.00x"),
        (2.5, "3.50x"),
    ],
)
def test_a_change_is_in_per_cent_and_from_twice_as_much_on_a_factor(change, words):
    assert _change_words(change) == words


def test_a_line_of_all_tables_stands_once_and_another_where_it_holds():
    first, second, empty = (
        Table(("x",), [("1",)], "a", ("all", "liquid"), ("own a", "legend")),
        Table(("x",), [("2",)], "b", ("all", "air"), ("own b", "legend")),
        Table((), [], "c", ("all", "air"), ("no point",)),
    )
    tables = _lines_once([first, second, empty])
    assert [table.above for table in tables] == [["all", "liquid"], ["air"], ["air"]]
    assert [table.below for table in tables] == [["own a"], ["own b", "legend"], ["no point"]]
    assert _lines_once([empty]) == [empty]


def test_points_are_thinned_evenly_with_both_ends_and_the_chosen():
    assert _thinned(range(5), lambda _: False, most=5) == [0, 1, 2, 3, 4]
    assert _thinned(range(11), lambda number: number == 3, most=7) == [0, 2, 3, 4, 6, 8, 10]


def test_bands_and_chances_are_columns_only_where_inputs_are_drawn():
    drawn, undrawn = (
        [member.key for member in _design_row(flag).members] for flag in (True, False)
    )
    of_points = [member.key for member in _point_row(drawn=True).members]
    assert set(drawn) - set(of_points) >= {CHANCE}
    assert set(undrawn).isdisjoint({CHANCE, *BAND_ENDS})
    assert set(of_points) >= set(BAND_ENDS)


# ---------------------------------------------------------------- numbers
@pytest.mark.parametrize(
    ("unit", "numbers", "form"),
    [
        ("USD", [2.5e7], "#,##0"),
        ("USD", [999.0], "#,##0.00"),
        ("USD/chip/h", [1.25], "0.0000"),
        ("W", [2.5e7], "0.000E+00"),
        ("W", [9.5e6], "#,##0"),
        ("s", [5e-4], "0.000E+00"),
        ("USD", [5e-4], "0.000E+00"),
        ("token/s", [123.4, 5.5], "#,##0.0"),
        ("token/s", [12.3], "0.00"),
        ("", [0.5], "0.0000"),
        ("", [], "#,##0"),
        ("", [0.0], "#,##0"),
    ],
)
def test_cells_of_a_unit_share_a_format_after_the_largest(unit, numbers, form):
    assert number_format(unit, *numbers) == form


def test_whole_things_of_a_fleet_are_whole_and_the_rest_has_four_digits():
    sums = {"racks": 1234.0, "site_power_w": 61.25e6, "chips": 88848.0, "capex_usd": None}
    texts = {key: scale_for(total, COLUMNS[key][1]).text(total) for key, total in sums.items()}
    assert texts == {
        "racks": "1,234",
        "site_power_w": "61.25",
        "chips": "88,848",
        "capex_usd": "-",
    }


@pytest.mark.parametrize(
    ("largest", "units", "amount", "text"),
    [
        (33.31e9, USD_UNITS, 0.84e9, "0.84 billion USD"),
        (5.838e6, USD_UNITS, 46_700.0, "0.047 million USD"),
        (1e9, USD_UNITS, 1e9, "1.000 billion USD"),
        (9.99e8, USD_UNITS, 9.99e8, "999.0 million USD"),
        (250_000.0, USD_UNITS, 250_000.0, "0.2500 million USD"),
        (1e9, WATT_UNITS, 714.2e6, "714 MW"),
        (175.3e3, WATT_UNITS, 125.2e3, "125.2 kW"),
        (0.0, WATT_UNITS, 0.0, "0 kW"),
    ],
)
def test_amounts_of_a_column_have_the_unit_and_decimals_of_the_largest(
    largest, units, amount, text
):
    scale = scale_for(largest, units)
    assert f"{scale.text(amount)} {scale.unit_name}" == text


@pytest.mark.parametrize(
    ("amounts", "text"),
    [
        ((33.31e9, 8.38e9), "33.31 billion USD"),
        ((2.295e9, 0.555e9), "2,295 million USD"),
        ((5.838e6, None), "5.838 million USD"),
        ((0.0, 187e6), "187.0 million USD"),
        ((None,), "0 million USD"),
    ],
)
def test_money_of_a_table_is_in_the_unit_that_all_amounts_fill(amounts, text):
    money = money_scale(*amounts)
    assert f"{money.text(max(amount or 0.0 for amount in amounts))} {money.unit_name}" == text


def test_an_input_and_its_range_have_one_unit():
    bandwidth = Input("parts.a.hbm_bandwidth", 4.9e12, "byte/s", 4.2e12, 5.2e12)
    scaled = _input_in_read_unit(bandwidth)
    assert (scaled.value, scaled.unit) == (pytest.approx(4.9), "TB/s")
    assert (scaled.low, scaled.high) == (pytest.approx(4.2), pytest.approx(5.2))
    assert _range_text(bandwidth) == "4.2 to 5.2"
    assert _range_text(bandwidth._replace(low=None)) == ""


def member_of(record, key):
    return next(member for member in record.members if member.key == key)


def test_the_bound_of_an_operator_is_in_microseconds():
    bound = member_of(OPERATOR, "bound_time_us")
    operator = SimpleNamespace(line=SimpleNamespace(ideal=2.5e-6, time=5e-6))
    assert bound.of(operator) == pytest.approx(2.5)
    operator.line.ideal = None
    assert bound.of(operator) is None
    assert member_of(OPERATOR, "time_us").of(operator) == pytest.approx(5.0)


def test_a_share_of_rows_is_in_whole_per_cent():
    member = _share_member("inside", "inside", "inside P10-P90")
    assert member.text(SimpleNamespace(inside=0.804)) == "80 %"


def test_every_figure_of_a_service_has_a_size_above_nought():
    """A share in per cent is divided by a hundredth, anything else is shown as it is."""
    sizes = {label: size for rows in GROUPS.values() for label, _, size in rows.values()}
    assert {size for label, size in sizes.items() if label.endswith("%")} == {0.01}
    assert {size for label, size in sizes.items() if not label.endswith("%")} == {1}


def test_the_ratio_of_training_costs_is_that_of_training():
    assert list(COSTLY.values()) == [training_perf_per_tco]
    (ratio,) = COSTLY
    assert "train" in ratio


@pytest.mark.parametrize(
    ("eighths", "bar"),
    [(0, ""), (1, "▏"), (7, "▉"), (8, "█"), (12, "█▌"), (8 * WIDTH, "█" * WIDTH)],
)
def test_a_bar_is_drawn_to_an_eighth_of_a_character(eighths, bar):
    assert _histogram_bar(eighths / 8 / WIDTH) == bar


# ---------------------------------------------------------------- rows
def test_months_of_payments_are_twelve_each_and_those_before_the_start_are_apart():
    scenario_result = SimpleNamespace(title="rack", lines=[], results=None)
    rows = payment_rows(scenario_result, [Payment(0, 100.0, "rack"), Payment(12, 5.0, "power"),
                                          Payment(13, 7.0, "power")])  # fmt: skip
    assert rows == [("0", "100", "100"), ("1-12", "5", "105"), ("13-24", "7", "112")]
    rows = payment_rows(scenario_result, [Payment(-6, 40.0, "rack"), Payment(1, 5.0, "power")])
    assert rows == [("-11-0", "40", "40"), ("1-12", "5", "45")]


def payment_rows(scenario_result, payments):
    """Return months, sum and sum so far of the rows of payments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tco.report.cost.premise", lambda _: "")
        patch.setattr("tco.report.cost._payment_sentences", lambda *_: [])
        table = _payment_table(scenario_result, SimpleNamespace(payments=payments))
    assert table.align == "l" + "r" * (len(table.columns) - 1)
    return [(row[0], *row[-2:]) for row in table.rows]


def test_a_change_that_starts_from_nothing_has_no_per_cent():
    causes = (ChangeCause("price", "parts.a.price", 1.0, 2.0, "USD"),)
    steps = (ChangeContribution(causes, 2.0, 3.0), ChangeContribution(causes, 0.0, 1.0))
    head, first, second = metric_change_lines(Move("capex_usd", 2.0, 4.0, 1.0, steps))
    assert head.endswith("+100 %")
    assert "+50 %" in first
    assert "%" not in second


@pytest.mark.parametrize(
    ("least", "width", "blocks"),
    [
        ([5, 5, 5], 19, [[0, 1, 2]]),  # 15 and two gaps of two
        ([5, 5, 5], 18, [[0, 1], [0, 2]]),
        ([5, 5, 5, 5], 12, [[0, 1], [0, 2], [0, 3]]),
        ([9, 9, 9], 4, [[0, 1], [0, 2]]),  # each block has a column beside the first
        ([5, 9, 2, 3], 18, [[0, 1], [0, 2, 3]]),
    ],
)
def test_columns_that_find_no_room_go_below_with_the_first_again(least, width, blocks):
    assert _column_blocks(least, width, gap=2) == blocks


def test_a_variant_that_cannot_be_priced_is_a_finding_with_its_name(monkeypatch):
    class OneSystem:
        def ids(self, *_):
            return ["rack"]

        def document(self, *_):
            return None, {}

    monkeypatch.setattr("tco.catalog.checks.check_systems", lambda _: [])
    monkeypatch.setattr(
        "tco.catalog.system_tree.single_variants", lambda _: [{}, {"cooling": "air"}]
    )

    def refuse(*_):
        raise DataError("no price of part x")

    monkeypatch.setattr("tco.scenario.system_bill.bill_of_system", refuse)
    assert catalogue_checks._system_findings(OneSystem()) == [
        "rack =: no price of part x",
        "rack cooling=air: no price of part x",
    ]
