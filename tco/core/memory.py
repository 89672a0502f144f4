"""Values that are computed once, on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
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


class LazySequence(Sequence[T]):
    """A sequence whose items are made on first use."""

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self.items = cache(make)

    def __len__(self) -> int:
        return len(self.items())

    def __getitem__(self, index: Any) -> Any:
        return self.items()[index]
