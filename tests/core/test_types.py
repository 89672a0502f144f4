"""Values of documents that count as numbers."""

from __future__ import annotations

import math

import pytest

from tco.core.types import is_finite_number, is_whole_number


@pytest.mark.parametrize("document_value", [0, -1.5, 10**300])
def test_numbers_that_arithmetic_takes_are_finite(document_value):
    assert is_finite_number(document_value)


@pytest.mark.parametrize("document_value", [True, "1", None, math.inf, math.nan, 10**400])
def test_other_values_of_a_document_are_no_finite_number(document_value):
    assert not is_finite_number(document_value)


@pytest.mark.parametrize("number_text", ["", "²", "٣", "-1", "1_0", "1.0", "9" * 5000])
def test_other_digits_and_endless_ones_are_no_whole_number(number_text):
    assert not is_whole_number(number_text)


def test_the_digits_from_0_to_9_are_a_whole_number():
    assert is_whole_number("007")
