"""Values that are computed once, on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from typing import Any, Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class Owner(Protocol):
    """Object that caches values derived from it, such as a catalogue or a system."""

    def once(self, cache_key: Any, make: Callable[[], T]) -> T:
        """Return the cached value of a key, computed by `make` on first use."""


OwnerT = TypeVar("OwnerT", bound=Owner)


def value_once(cache: dict[Any, Any], cache_key: Any, make: Callable[[], T]) -> T:
    """Return the cached value of a key, computed by `make` on first use.

    Threads that compute the value at the same time get the value that was cached first.
    """
    if cache_key not in cache:
        cache.setdefault(cache_key, make())
    cached_value: T = cache[cache_key]
    return cached_value


class LazySequence(Sequence[T]):
    """Sequence whose items are computed on first use."""

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self.items = cache(make)

    def __len__(self) -> int:
        return len(self.items())

    def __getitem__(self, index: Any) -> Any:
        return self.items()[index]

    def __eq__(self, sequence: object) -> bool:
        return isinstance(sequence, Sequence) and list(self) == list(sequence)

    def __hash__(self) -> int:
        return hash(tuple(self))


def once_per_owner(
    make: Callable[[OwnerT, *Arguments], T],
) -> Callable[[OwnerT, *Arguments], T]:
    """Decorate a function so that its first argument, the owner, caches its values.

    Args:
        make: Function of the owner and of further hashable arguments.

    """

    @wraps(make)
    def made_once(owner: OwnerT, *arguments: *Arguments) -> T:
        return owner.once((make, *arguments), partial(make, owner, *arguments))

    return made_once
