"""Intervals, dates, changes and reasons of evaluations that are made by hand."""

from __future__ import annotations

import hashlib
import itertools
from datetime import date
from types import SimpleNamespace

import pytest

import tco
from tco import DataError, UsageError
from tco.core.provenance import period
from tco.evaluation import (
    break_even_rents,
    evaluation,
    rent_statistics,
    varied_input,
    what_if,
)
from tco.evaluation.cost_changes import CostChange
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction, _plan_inputs_of
from tco.evaluation.side_by_side import LATE, late_racks, why_unrated
from tco.evaluation.varied_input import AHEAD, Moment, VariedInput, log_or_linear_grid
from tco.evaluation.workers import StudyEnvironment, program, run_pieces

PRICE = VariedInput("site.electricity_price", 0.06, "USD/kWh", "USD/J")


# ---------------------------------------------------------------- intervals
def test_an_interval_lies_a_factor_around_today_unless_ends_are_given():
    assert PRICE.interval((None, None), 10) == pytest.approx((0.006, 0.6))
    assert PRICE.interval(("0.05 USD/kWh", None), 10) == pytest.approx((0.05, 0.6))
    assert PRICE.interval((None, "0.12 USD/kWh"), 10) == pytest.approx((0.006, 0.12))
    # bounds of an input hold for a factor, too
    pue = VariedInput("site.pue", 1.2, "ratio", "ratio")
    assert pue.interval((None, None), 10) == pytest.approx((1.0, 3.0))


@pytest.mark.parametrize(
    "ends", [("0.12 USD/kWh", "0.05 USD/kWh"), ("0.05 USD/kWh", "0.05 USD/kWh")]
)
def test_a_reversed_or_empty_interval_is_refused(ends):
    with pytest.raises(UsageError, match="reversed or empty"):
        PRICE.interval(ends, 10)


def test_an_end_beyond_the_bounds_of_an_input_is_refused():
    pue = VariedInput("site.pue", 1.2, "ratio", "ratio")
    for ends, option in ((("0.5", "2"), "--from"), (("1", "4"), "--to")):
        with pytest.raises(DataError, match=f"^{option}.* lies within 1 to 3"):
            pue.interval(ends, 10)
    assert pue.interval(("1", "3"), 10) == (1.0, 3.0)


@pytest.mark.parametrize(("value", "state"), [(None, "has no value"), (0.0, "is zero")])
def test_an_input_without_a_value_needs_both_ends(value, state):
    absent = PRICE._replace(value=value)
    with pytest.raises(UsageError, match=state):
        absent.interval((None, "0.1 USD/kWh"), 10)
    assert absent.interval(("0.01 USD/kWh", "0.1 USD/kWh"), 10) == pytest.approx((0.01, 0.1))


def test_a_grid_holds_both_ends_and_today():
    assert not PRICE.stepwise
    assert PRICE.grid(("0.01 USD/kWh", "1 USD/kWh"), 3) == pytest.approx([0.01, 0.06, 0.1, 1.0])
    assert PRICE.grid(("0.1 USD/kWh", "1 USD/kWh"), 2) == pytest.approx([0.1, 1.0])
    assert PRICE.grid(("0.06 USD/kWh", "1 USD/kWh"), 2) == pytest.approx([0.06, 1.0])


@pytest.mark.parametrize(
    ("low", "high", "least_ratio", "middle"),
    [
        (1.0, 1.21, 1, 1.1),  # equal ratios, however near the ends
        (1.0, 1.21, 2, 1.105),
        (1.0, 4.0, 4, 2.0),
        (0.0, 4.0, 1, 2.0),
    ],
)
def test_values_between_ends_have_equal_ratios_or_differences(low, high, least_ratio, middle):
    assert log_or_linear_grid(low, high, 3, least_ratio) == pytest.approx([low, middle, high])


def test_values_have_equal_ratios_unless_a_least_ratio_is_asked_for():
    assert log_or_linear_grid(1.0, 1.21, 3)[1] == pytest.approx(1.1)


# ---------------------------------------------------------------- dates
def moment(year, month, day):
    return Moment("terms.date", float(date(year, month, day).toordinal()), "date", "date")


def days_of(ordinals):
    return [date.fromordinal(int(ordinal)).isoformat() for ordinal in ordinals]


def test_a_date_is_looked_at_month_by_month_two_years_ahead():
    start = moment(2026, 11, 30)
    assert start.stepwise
    days = days_of(start.grid((None, None), 0))
    assert days[:4] == ["2026-11-30", "2026-12-31", "2027-01-31", "2027-02-28"]
    assert (days[-1], len(days)) == ("2028-11-30", AHEAD + 1)


@pytest.mark.parametrize("month", range(1, 13))
def test_a_date_is_looked_at_24_months_ahead_in_any_month(month):
    end = period(f"2029-{month:02}").last
    start = period(f"2027-{month:02}").last
    days = days_of(Moment("terms.date", start.toordinal(), "date", "date").grid((None, None), 0))
    assert (days[0], days[-1], len(days)) == (start.isoformat(), end.isoformat(), 25)


def test_a_day_at_an_end_is_among_the_days_and_a_month_is_its_last_day():
    start = moment(2026, 11, 30)
    assert days_of(start.grid(("2027-01-10", "2027-02"), 0)) == [
        "2027-01-10", "2027-01-31", "2027-02-28",
    ]  # fmt: skip
    assert days_of(start.grid(("2026-12", "2027-02-03"), 0)) == [
        "2026-12-31", "2027-01-31", "2027-02-03",
    ]  # fmt: skip


def test_a_span_of_dates_has_two_days_at_least_and_twenty_years_at_most():
    start = moment(2026, 11, 30)
    assert len(start.grid(("2027", "2046"), 0)) == 240
    for ends in (("2027-03", "2027-01"), ("2027-03", "2027-03"), ("2027-01", "2047-01")):
        with pytest.raises(UsageError, match=r"reversed or empty|241 months, expected 240"):
            start.grid(ends, 0)


def test_a_last_day_is_told_as_its_month_and_any_other_as_a_day():
    texts = [moment(*day).text(moment(*day).value) for day in ((2028, 2, 29), (2028, 2, 28))]
    assert texts == ["2028-02", "2028-02-28"]
    assert moment(2026, 11, 30).months_to(date(2028, 1, 15).toordinal()) == 14
    assert moment(2026, 11, 30).plain(float(date(2026, 12, 31).toordinal())) == "2026-12"


# ---------------------------------------------------------------- changes
@pytest.mark.parametrize(
    ("before", "after", "percent", "words"),
    [
        (2.0, 2.5, 25.0, "+25.0 %"),
        (2.0, 1.5, -25.0, "-25.0 %"),
        (2.0, 2.0008, 0.04, "none"),
        (2.0, 2.00102, 0.051, "+0.1 %"),
        (None, 2.0, None, "-"),
        (2.0, None, None, "-"),
        (0.0, 2.0, None, "-"),
    ],
)
def test_a_change_of_cost_is_in_per_cent_of_the_cost_before(before, after, percent, words):
    change = CostChange("rack", before, after)
    assert change.percent == (None if percent is None else pytest.approx(percent))
    assert change.words == words


def cell_of(name, value, unit=""):
    return SimpleNamespace(id=name, value=value, unit=unit)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], "it is read to check or to choose, and all that is chosen stays"),
        ([cell_of("time", 0.0123, "s")], "it is read but does not bind: time stays 0.0123 s"),
        (
            [cell_of("load", 2.0), cell_of("b", 1.0), cell_of("c", 1.0)],
            "it is read but does not bind: load stays 2, as do 2 more",
        ),
    ],
)
def test_a_setting_that_moves_nothing_names_where_its_effect_ends(monkeypatch, cells, words):
    monkeypatch.setattr(what_if, "_unmoved_cells", lambda *_: cells)
    assert what_if._where_effect_ends("site.pue", None, None) == words


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (1.0, 1.0 + 1e-13, True),
        (1.0, 1.0 + 1e-11, False),
        (None, None, True),
        (None, 0.0, False),
        (0.0, None, False),
    ],
)
def test_values_are_equal_but_for_rounding(first, second, equal):
    assert what_if._is_equal(first, second) is equal


@pytest.mark.parametrize(
    ("speed", "first_token", "missed"),
    [
        (50.0, 2.0, []),
        (49.99999, 2.00000001, []),
        (49.0, 2.0, ["gives 49 tokens/s per user where workload.interactivity asks for 50"]),
        (50.0, 2.1, ["gives 2.1 s where workload.ttft asks for 2"]),
        (None, 2.0, []),
    ],
)
def test_a_fixed_plan_says_which_target_it_misses(speed, first_token, missed):
    targets = {"workload.interactivity": 50.0, "workload.ttft": 2.0}
    metrics = {"tokens_per_s_per_user": speed, "ttft_s": first_token}
    notes = list(what_if._missed_targets(targets, SimpleNamespace(metrics=metrics)))
    assert len(notes) == len(missed)
    assert all(words in note for words, note in zip(missed, notes, strict=True))


# ---------------------------------------------------------------- scenarios
def test_a_function_without_a_setting_keeps_the_others():
    function = ScenarioFunction(None, None, {"site.pue": "1.2", "terms.rate": "0.1"})
    assert function.without("site.pue").settings == {"terms.rate": "0.1"}
    assert function.without("terms.life").settings == function.settings


def test_the_plan_of_stated_rates_rests_on_no_input():
    readings = SimpleNamespace(inputs={"site.pue": 1.2})
    assert _plan_inputs_of(SimpleNamespace(kind="stated"), readings) == frozenset()
    for kind in ("serving", "training"):
        assert _plan_inputs_of(SimpleNamespace(kind=kind), readings) == {"site.pue"}


def evaluation_of(saved=False, **fields):
    usual = {
        "texts": {"workload.kind": "serving"},
        "plan": object(),
        "serving": SimpleNamespace(reason="too slow"),
        "costless": "",
        "inputs": {"site.pue": SimpleNamespace(value=1.2, low=1.1, high=1.4)},
    }
    return Evaluation("rack", {}, None, SimpleNamespace(**usual | fields), saved)


@pytest.mark.parametrize(
    ("fields", "hold", "words"),
    [
        ({"saved": True}, False, "it was saved on other data"),
        ({"texts": {"workload.kind": "stated"}}, False, "its rates are stated"),
        ({"plan": None}, True, "so there is none to hold: too slow"),
        ({"plan": None, "serving": None}, True, "so there is none to hold: "),
        ({"costless": "has no price"}, False, "it has no price"),
    ],
)
def test_what_cannot_be_drawn_says_why(fields, hold, words):
    assert words in evaluation_of(**fields).why_undrawable(hold)


def test_an_evaluation_is_not_saved_unless_it_says_so():
    assert Evaluation("rack", {}, None, None).saved is False


def test_racks_come_late_after_more_months_than_a_quarter():
    racks = [
        SimpleNamespace(scenario=name, available=available)
        for name, available in (
            ("now", None),
            ("in time", SimpleNamespace(months=LATE, volume="2027-02")),
            ("late", SimpleNamespace(months=LATE + 1, volume="2027-03")),
        )
    ]
    assert late_racks(racks) == {"late": "2027-03"}


@pytest.mark.parametrize(
    ("costless", "plan", "reason", "words"),
    [
        ("has no price", None, "too slow", "has no price"),
        ("", None, "too slow", "no plan: too slow"),
        ("", object(), "too slow", "states no rate of this work"),
        ("", None, "", "states no rate of this work"),
    ],
)
def test_a_missing_cost_of_work_has_a_reason(costless, plan, reason, words):
    scenario_result = SimpleNamespace(
        costless=costless, plan=plan, serving=SimpleNamespace(reason=reason)
    )
    assert why_unrated(scenario_result) == words


@pytest.mark.parametrize("rents", [[None, None], [None, ("rent", "a")], [("rent", "a")] * 2])
def test_racks_of_one_rent_statistic_stay_as_they_are(rents):
    racks = [SimpleNamespace(result=SimpleNamespace(rent=rent)) for rent in rents]
    assert evaluation._with_one_rent(racks, refuse=True, workload=True) is racks


def test_racks_of_two_rent_statistics_are_priced_by_one(monkeypatch):
    racks = [
        SimpleNamespace(result=SimpleNamespace(rent=("rent", publisher))) for publisher in "ab"
    ]
    monkeypatch.setattr(
        "tco.evaluation.rent_statistics.with_one_rent_statistic", lambda *_: ["one"]
    )
    assert evaluation._with_one_rent(racks, refuse=True, workload=True) == ["one"]


def renter_of(**publishers):
    """A renter whose chip has rents of these publishers, and the settings it is evaluated with."""
    catalogue = SimpleNamespace(
        has_part_value=lambda _, rent_attribute: rent_attribute in publishers,
        part_input=lambda _, rent_attribute, __: SimpleNamespace(
            source="a-source", publisher=publishers[rent_attribute]
        ),
    )
    texts = {"terms.date": "2026-11", "terms.commitment": "committed"}
    return SimpleNamespace(
        catalogue=catalogue,
        result=SimpleNamespace(rent=("rent", "nobody"), texts=texts),
        saved=False,
        with_settings=lambda settings, refuse, workload: settings,
    )


@pytest.mark.parametrize(
    ("renters", "commitment", "publisher"),
    [
        # most renters have it
        ([{"rent": "b"}, {"rent": "b", "rent_list": "a"}, {"rent_list": "a2"}], "three-years", "b"),
        # of two that as many have, the nearest to a contract
        ([{"rent_list": "a", "rent": "b"}], "three-years", "b"),
        # of two publishers that as many have, the first by name
        ([{"rent": "b"}, {"rent": "a"}, {"rent": "c"}], "three-years", "a"),
    ],
)
def test_the_statistic_of_all_renters_does_not_depend_on_their_order(
    monkeypatch, renters, commitment, publisher
):
    monkeypatch.setattr(rent_statistics, "chip_of", lambda *_: "chip")
    terms = {"terms.commitment": commitment, "terms.rent_publisher": publisher}
    for order in itertools.permutations(renters):
        evaluations = [renter_of(**publishers) for publishers in order]
        assert rent_statistics.with_one_rent_statistic(evaluations) == [terms] * len(renters)


def test_owners_are_not_evaluated_at_a_rent(monkeypatch):
    monkeypatch.setattr(rent_statistics, "chip_of", lambda *_: "chip")
    owner = SimpleNamespace(result=SimpleNamespace(rent=None), catalogue=None)
    assert rent_statistics.with_one_rent_statistic([owner]) == [owner]


def test_the_catalogue_of_evaluations_is_that_of_the_last(monkeypatch):
    monkeypatch.setattr(evaluation, "catalogue_for", lambda scenario, folder: (scenario, folder))
    assert evaluation.catalogue_of([], None) == (None, None)
    racks = [SimpleNamespace(catalogue="first"), SimpleNamespace(catalogue="last")]
    assert evaluation.catalogue_of(racks, None) == "last"


def test_own_rows_are_checked_only_where_there_are_some_and_it_is_asked(monkeypatch, tmp_path):
    checked = []
    monkeypatch.setattr("tco.catalog.overlay.check_own_rows", checked.append)
    evaluation.catalogue_for(None, None, checked=True)
    evaluation.catalogue_for(None, tmp_path, checked=False)
    assert checked == []
    catalogue = evaluation.catalogue_for(None, tmp_path, checked=True)
    assert checked == [catalogue]


def rack_of(name, cost, hourly=2.0):
    """A renter whose work costs `cost`, and nothing where it has no cost."""
    return SimpleNamespace(
        name=name,
        metric={"usd_per_million_output_tokens": cost, "tco_usd_per_chip_hour": hourly}.get,
        result=SimpleNamespace(
            scenario=name, basis="rent", metrics={"usd_per_million_output_tokens": cost}
        ),
    )


def test_a_rack_without_a_rent_breaks_even_with_the_cheapest_renter(monkeypatch):
    """At a dollar an hour its work costs 4 dollars a million, and half as much at half a dollar."""
    racks = [rack_of("b", 3.0), rack_of("a", 2.0), rack_of("c", None)]
    metric = "usd_per_million_output_tokens"
    monkeypatch.setattr(break_even_rents, "rated_by", lambda _: metric)
    monkeypatch.setattr(break_even_rents, "speed_of", lambda _: 50.0)
    monkeypatch.setattr(break_even_rents, "_rent_bounds", lambda _: (0.1, 9.0))
    trial = SimpleNamespace(
        metrics={metric: 4.0}, inputs={"terms.utilisation": SimpleNamespace(value=0.8)}
    )
    monkeypatch.setattr(
        break_even_rents, "_trial_result", lambda rack: trial if rack.name == "c" else None
    )
    assert break_even_rents.break_even_rents(racks) == [
        ("c", "a", 50.0, 0.5, 2.0, 9.0, "rent", 0.1, 0.8)
    ]
    assert break_even_rents.break_even_rents([racks[2]]) == []
    monkeypatch.setattr(break_even_rents, "rated_by", lambda _: None)
    assert break_even_rents.break_even_rents(racks) == []


@pytest.mark.parametrize(
    ("bill", "is_bare", "refused"),
    [(None, True, True), (None, False, False), (object(), True, False)],
)
def test_a_bare_chip_has_no_bill_and_is_refused_a_price(monkeypatch, bill, is_bare, refused):
    # first, since the module takes `is_bare_chip` when it is imported
    monkeypatch.setattr(
        "tco.scenario.system_bill.no_bill_error", lambda _, system: DataError(f"{system} alone")
    )
    monkeypatch.setattr("tco.catalog.system_tree.is_bare_chip", lambda *_: is_bare)
    chip = Evaluation("chip", {}, None, SimpleNamespace(bill=bill, system="chip"))
    if refused:
        with pytest.raises(DataError, match="chip alone"):
            evaluation._refuse_bare_chip(chip)
    else:
        evaluation._refuse_bare_chip(chip)


def test_a_derived_input_is_varied_from_the_value_that_it_has(monkeypatch):
    leaf = SimpleNamespace(path="parts.a.derived", value=7.0, unit="W", inputs=[])
    root = SimpleNamespace(path=None, value=1.0, unit="", inputs=[("x", leaf)])
    monkeypatch.setattr(varied_input, "walk", lambda node: [node, leaf])
    function = SimpleNamespace(
        result=lambda *_, **__: SimpleNamespace(nodes={"capex_usd": root}),
        inputs=lambda _: SimpleNamespace(unit_of=lambda _: "GB"),
    )
    function._replace = lambda **_: function
    side = SimpleNamespace(result=SimpleNamespace(inputs={}, plan=None), function=lambda: function)
    second_side = SimpleNamespace(result=SimpleNamespace(inputs={}))
    derived, sides = varied_input.varied_input([side, second_side], "parts.a.derived")
    assert (derived.value, derived.unit, sides) == (7.0, "W", [side])
    absent, sides = varied_input.varied_input([side, second_side], "parts.a.size")
    assert (absent.value, absent.unit, sides) == (None, "GB", [side])


# ---------------------------------------------------------------- workers
def test_the_program_is_its_version_and_twelve_digits_of_its_files():
    home = evaluation.Path(tco.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    assert program() == f"{tco.__version__}+{digest.hexdigest()[:12]}"


def test_a_stranger_has_another_program_or_other_data():
    environment = StudyEnvironment("1.0+abc", ("aa", "bb"), ((), ()))
    assert environment.difference_from(environment) is None
    assert "runs tco 1.1+abc" in environment.difference_from(
        environment._replace(program="1.1+abc")
    )
    words = environment.difference_from(environment._replace(data=("aa", "cc", "cc")))
    assert words == "has data aa cc, the study was begun on aa bb"


def test_pieces_are_done_here_without_workers():
    pieces = list(run_pieces(None, None, None, None, lambda number: number**2, [2, 3]))
    assert [(piece.number, piece.piece_result) for piece in pieces] == [(2, 4), (3, 9)]


def test_fewer_than_one_worker_or_two_ways_to_work_are_refused():
    with pytest.raises(UsageError, match="expected one or more"):
        run_pieces(0, None, None, None, None, [])
    with pytest.raises(UsageError, match="give one of them"):
        run_pieces(1, "tcp://a:1", None, None, None, [])
