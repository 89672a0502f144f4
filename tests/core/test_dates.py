"""Dates: what may be written, what each covers, and that nothing else passes."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import DataError, evaluate
from tests.cli import tco
from tests.scenario_helpers import load_agreement, period

DAYS = st.dates(date(1990, 1, 1), date(2090, 12, 31))
BAD = (
    "banana",
    "2026-13",
    "2026-00",
    "2026-09-31",
    "2025-02-29",
    "26",
    "2026-Q5",
    "2026-Q0",
    "2026-9",
    "2026-09-",
    "2026-Q3-01",
    "2026-00-00",
)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026", "2026-01-01", "2026-12-31"),
        ("2026-Q1", "2026-01-01", "2026-03-31"),
        ("2026-Q3", "2026-07-01", "2026-09-30"),
        ("2026-Q4", "2026-10-01", "2026-12-31"),
        ("2026-12", "2026-12-01", "2026-12-31"),
        ("2028-02", "2028-02-01", "2028-02-29"),
        ("9999-12", "9999-12-01", "9999-12-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2100-02", "2100-02-01", "2100-02-28"),
        ("2026-09-30", "2026-09-30", "2026-09-30"),
    ],
)
def test_a_date_covers_its_days(text, first, last):
    assert period(text) == (date.fromisoformat(first), date.fromisoformat(last))


@given(DAYS)
def test_day_month_quarter_and_year_lie_within_each_other(day):
    quarter = f"{day.year}-Q{(day.month + 2) // 3}"
    spans = [
        period(text) for text in (day.isoformat(), day.isoformat()[:7], quarter, str(day.year))
    ]
    for inner, outer in pairwise(spans):
        assert outer.first <= inner.first <= inner.last <= outer.last


@given(DAYS)
def test_months_and_quarters_follow_without_a_gap(day):
    for text in (day.isoformat()[:7], f"{day.year}-Q{(day.month + 2) // 3}"):
        after = period(text).last + timedelta(days=1)
        assert after.day == 1
        assert period(after.isoformat()[:7]).first == after


@pytest.mark.parametrize("text", [*BAD, "", " 2026", "2026\n", "\u0662\u0660\u0662\u0666"])
def test_text_that_is_no_date_is_refused(text):
    with pytest.raises(
        DataError,
        match=r"^here: .* is no date, expected a year, a quarter, a month or a day, "
        r"such as 2026, 2026-Q3",
    ):
        period(text, "here")


@pytest.mark.parametrize("text", BAD)
def test_a_scenario_at_no_date_is_refused(text):
    done = tco("price", "trn3-nl72x2", "--set", f"terms.date={text}")
    assert done.exit_code == 3
    assert f"--set: terms.date: {text!r} is no date, expected a year" in done.stderr


def test_the_third_quarter_ends_in_september(catalogue):
    metrics_by_date = [
        evaluate("trn3-nl72x2", {"terms.date": text}, catalogue=catalogue).metrics
        for text in ("2026-Q3", "2026-09", "2026-09-30")
    ]
    assert metrics_by_date[0] == metrics_by_date[1] == metrics_by_date[2]
    assert (
        metrics_by_date[0]
        != evaluate("trn3-nl72x2", {"terms.date": "2026-Q2"}, catalogue=catalogue).metrics
    )


def test_a_document_with_no_date_says_where(own_data):
    text = (
        own_data.catalogue()
        .find("terms", "hyperscaler-2025-12", "terms")
        .read_text(encoding="utf-8")
    )
    own_data.write("terms/mine.toml", text.replace('date = "2025-12"', 'date = "2025-31"'))
    done = tco("price", "trn3-nl72x2", "--set", "terms=mine", "--data", str(own_data.folder))
    assert done.exit_code == 3
    assert "mine: terms.date: '2025-31' is no date" in done.stderr


def test_a_row_with_no_date_is_refused(own_data):
    own_data.parts("nitro-v6-400g,price,400,USD,,,2025-13,vendor,tco-model,,")
    with pytest.raises(DataError, match=r"nitro-v6-400g.price: as_of: '2025-13' is no date"):
        own_data.catalogue().part_input("nitro-v6-400g", "price", "2025-12")
    done = tco("parts", "check", "--data", str(own_data.folder))
    assert done.exit_code == 1
    assert "'2025-13' is no date" in done.stdout


def test_a_purchase_falls_under_one_of_two_agreements_that_follow_each_other(catalogue):
    old, new = (load_agreement(catalogue, name) for name in ("astera-2022", "astera-2026"))
    for text, holds in (
        ("2026-02", new),
        ("2026-02-04", old),
        ("2026-02-05", new),
        ("2026-Q1", new),
        ("2026-01", old),
        ("2025", old),
        ("2026", new),
    ):
        assert [agreement for agreement in (old, new) if agreement.in_force(text)] == [holds], text


def test_an_agreement_with_no_date_is_refused(own_data):
    text = own_data.catalogue().find("rebates", "astera-2022", "rebate").read_text(encoding="utf-8")
    own_data.write("rebates/mine.toml", text.replace('"2026-02-04"', '"2026-02-30"'))
    with pytest.raises(DataError, match=r"mine.toml: until: '2026-02-30' is no date"):
        load_agreement(own_data.catalogue(), "mine")
