"""Only content that two answers of different own values share is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tco.report.redaction import alike_rows, redact_differences
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
    assert alike_rows([["nic", 500, None]], [["nic", 900, None]]) == [["nic", None, None]]
