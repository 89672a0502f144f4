"""What was computed from some numbers is known when the same numbers come again: results by what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from tco.foundation.formula import MANY, in_use


class Known(dict[tuple[Any, ...], Any]):
    """Results of pure calculations by a name and the numbers and small arrays they rest on, all else being the same."""

    held: Any = None

    def of(self, name: tuple[str, ...], rests: Iterable[Any], compute: Callable[[], Any]) -> Any:
        """Return what `compute()` gives, of the same numbers once; None where it is not to be kept: of large arrays, and in a trace."""
        if in_use() is not None:
            return None
        key: list[Any] = [*name]
        for one in rests:
            if isinstance(one, np.ndarray):
                if one.size > MANY:
                    return None
                key += (one.shape, one.tobytes())
            else:
                key.append(one)
        whole = tuple(key)
        found = self.get(whole)
        if found is None:
            found = self[whole] = compute()
        return found


def known_on(rests: tuple[Any, ...], held: Any) -> Known:
    """Return what is known where all else is the same: of equal numbers what was known before, of arrays nothing yet.

    `held` is whatever numbers stand for by their `id`: it stays as long as they are among the last that were asked for.
    """
    try:
        found = of_numbers(rests) if in_use() is None else Known()
    except TypeError:  # arrays have no hash
        found = Known()
    found.held = held
    return found


@lru_cache(maxsize=32)
def of_numbers(_: tuple[Any, ...]) -> Known:
    """Return what is known of some numbers, as long as they are among the last that were asked for."""
    return Known()
