"""Mappings made of pairs of key and value: the values of each key, or their sum."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


def lists_by_key(pairs: Iterable[tuple[KeyT, ValueT]]) -> dict[KeyT, list[ValueT]]:
    """Return the values of each key, keys and values in order of first appearance.

    Args:
        pairs: Keys with their values.

    """
    lists: dict[KeyT, list[ValueT]] = {}
    for pair_key, pair_value in pairs:
        lists.setdefault(pair_key, []).append(pair_value)
    return lists


def sums_by_key(pairs: Iterable[tuple[KeyT, Any]]) -> dict[KeyT, Any]:
    """Return the sum of the numbers of each key, keys in order of first appearance.

    Args:
        pairs: Keys with their numbers.

    """
    sums: dict[KeyT, Any] = {}
    for pair_key, number in pairs:
        sums[pair_key] = sums.get(pair_key, 0) + number
    return sums
