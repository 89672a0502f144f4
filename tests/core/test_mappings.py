"""Mappings of keys to lists and to sums."""

from __future__ import annotations

from tco.core.mappings import lists_by_key, sums_by_key

PAIRS = [("b", 2), ("a", 1), ("b", 3)]


def test_values_of_a_key_keep_their_order():
    assert lists_by_key(PAIRS) == {"b": [2, 3], "a": [1]}


def test_numbers_of_a_key_are_summed():
    assert sums_by_key(PAIRS) == {"b": 5, "a": 1}


def test_keys_keep_the_order_of_their_first_value():
    assert list(lists_by_key(PAIRS)) == list(sums_by_key(PAIRS)) == ["b", "a"]
