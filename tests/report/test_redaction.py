"""Only content that two answers of different own values share is shown."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco.report.export import ExportTable
from tco.report.page.page import Picture, ReportPage, Section, WhatIf
from tco.report.record import Member
from tco.report.redaction import WITHHELD_LINE, redact_differences, redact_rows
from tests.report.helpers import Table

WITHHELD = "withheld"

NUMBER = st.floats(allow_nan=False) | st.integers()
DOCUMENT = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abcdef"), inner),
    max_leaves=20,
)


@given(DOCUMENT)
def test_equal_answers_are_shown_completely(document):
    assert redact_differences(document, document) == document


@given(DOCUMENT, DOCUMENT)
def test_content_that_the_other_answer_lacks_is_withheld(first_document, second_document):
    def leaves(document):
        inner = (
            document.values()
            if isinstance(document, dict)
            else document
            if isinstance(document, list)
            else None
        )
        return (
            {repr(document)}
            if inner is None
            else {leaf for value in inner for leaf in leaves(value)}
        )

    visible_leaves = {
        leaf
        for leaf in leaves(redact_differences(first_document, second_document))
        if leaf != "None" and WITHHELD not in leaf
    }
    assert visible_leaves <= leaves(second_document)


def test_a_number_that_differs_is_null_and_a_text_says_so():
    assert redact_differences({"a": 1, "b": 2.5, "c": "x"}, {"a": 1, "b": 2.6, "c": "y"}) == {
        "a": 1,
        "b": None,
        "c": WITHHELD,
    }


def test_only_the_words_of_a_text_that_differ_are_withheld():
    assert (
        redact_differences("rate 8.765 % of 3 lines", "rate 9.1 % of 3 lines")
        == f"rate {WITHHELD} % of 3 lines"
    )


def test_entries_are_compared_by_name():
    priced_parts = [{"path": "a", "usd": 1}, {"path": "b", "usd": 2}]
    assert redact_differences(priced_parts, [{"path": "b", "usd": 2}, {"path": "a", "usd": 5}]) == [
        {"path": "a", "usd": None},
        {"path": "b", "usd": 2},
    ]


def test_entry_without_a_counterpart_keeps_its_shape_alone():
    assert redact_differences([{"path": "a", "usd": 1, "by": {"x": 2}}], []) == [
        {"path": WITHHELD, "usd": None, "by": {"x": None}}
    ]


def test_rows_of_a_table_are_compared_by_their_names():
    first_table, second_table = (
        Table(("part", "USD"), [("nic", "500"), ("cable", "5")], "total 505"),
        Table(("part", "USD"), [("cable", "5"), ("nic", "900")], "total 905"),
    )
    assert redact_differences(first_table, second_table)._replace(columns=()) == Table(
        (), [["nic", WITHHELD], ["cable", "5"]], f"total {WITHHELD}", [], []
    )
    assert redact_rows([["nic", 500, None]], [["nic", 900, None]]) == [["nic", None, None]]


def test_cells_that_the_counterpart_of_a_row_lacks_are_withheld():
    rows = [["nic", "400G", 500, None], ["cable", "DAC", 5, None]]
    assert redact_rows(rows, [["nic", "400G"], ["cable"]]) == [
        ["nic", "400G", None, None],
        ["cable", WITHHELD, None, None],
    ]
    assert redact_rows(rows, [["nic", "400G", 500, None, "more"]]) == [
        ["nic", "400G", 500, None],
        [WITHHELD, WITHHELD, None, None],
    ]
    assert redact_rows([["nic", 500]], [[]]) == [[WITHHELD, None]]


def page_of(rate, pick):
    table = Table(
        ("part", f"USD at {rate} %"), [("nic", str(rate))], emphasis={(0, 1): pick, (0, 0): "tie"}
    )
    section = Section(
        "cost",
        f"Cost at {rate} %",
        [f"word{rate}", f"text{rate}"],
        [Picture("same", "same"), Picture(f"<svg {rate}>", "same")],
        [table],
        [table],
    )
    return ReportPage(
        f"Page of {rate} dollars",
        ["Pick: A", f"because{rate}"],
        [f"rate {rate} %"],
        [section],
        WhatIf({"rate": rate}, []),
        [("data", "hash")],
        ["a note", f"note{rate}"],
        {"next": "next.html"},
    )


def test_a_page_shows_only_what_it_shares_with_its_counterpart():
    page = redact_differences(page_of(8, "pick"), page_of(9, "tie"))
    table = Table(
        ["part", f"USD at {WITHHELD} %"], [["nic", WITHHELD]], "", [], [], emphasis={(0, 0): "tie"}
    )
    assert page == ReportPage(
        f"Page of {WITHHELD} dollars",
        ["Pick: A", WITHHELD_LINE],
        [f"rate {WITHHELD} %"],
        [
            Section(
                "cost",
                f"Cost at {WITHHELD} %",
                [WITHHELD_LINE],
                [Picture("same", "same")],
                [table],
                [table],
            )
        ],
        None,
        [("data", "hash")],
        ["a note"],
        {"next": "next.html"},
    )


def test_a_table_to_export_keeps_its_columns():
    columns = [Member("part"), Member("usd", float)]
    table = ExportTable(columns, [["nic", 500.0]])
    assert redact_differences(table, ExportTable(columns, [["nic", 900.0]])) == ExportTable(
        columns, [["nic", None]]
    )


def test_a_record_with_a_field_of_unknown_redaction_is_refused():
    class Bill(NamedTuple):
        title: str
        price: float

    with pytest.raises(TypeError, match=r"Bill\.price: expected a field in PUBLIC_FIELDS"):
        redact_differences(Bill("Bill", 500.0), Bill("Bill", 900.0))
