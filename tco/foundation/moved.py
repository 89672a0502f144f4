"""A person's own values, moved: what an answer shows alike with them as they are and moved tells nothing of them.

An answer that keeps own values back is made twice, once as it is and once with every own value moved by a factor of its own, so that neither sums nor
quotients of them stay. Whatever differs between the two is withheld, in whichever command and form it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from tco.foundation.provenance import Input, way

UP, DOWN = 1, -1


@contextmanager
def own_values_moved(where: int) -> Iterator[None]:
    """Move every own value that is read within, up or down where its bounds let it."""
    token = way.set(where)
    try:
        yield
    finally:
        way.reset(token)


def moved(given: Input, minimum: float, maximum: float) -> Input:
    """Return an own value moved by a factor between 1.5 and 2.5 that is its path's own, within its bounds, under another source."""
    mark = crc32(given.path.encode())
    factor = (1.5 + mark / 2**32) ** way.get()
    tries = (given.value * factor, given.value / factor, factor, (given.value + maximum) / 2, (given.value + minimum) / 2)
    value = next((one for one in tries if minimum <= one <= maximum and one != given.value), given.value)
    shown = given.shown and (given.shown[0] * value / given.value if given.value else value, given.shown[1])
    return given._replace(value=value, low=value, high=value, shown=shown, source=f"moved-{mark}", note=f"moved-{mark}")
