"""Values that are computed once and kept in a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def value_once(cache: dict[Any, Any], cache_key: Any, make: Callable[[], T]) -> T:
    """Return the cached value of a key, computed by `make` on first use.

    Threads that compute the value at the same time all get the value that was cached first.
    """
    if cache_key not in cache:
        cache.setdefault(cache_key, make())
    cached_value: T = cache[cache_key]
    return cached_value
