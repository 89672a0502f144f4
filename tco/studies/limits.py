"""How far a metric may move: `2%` or `0.02` of itself, or an amount in a unit of its own, such as `0.05USD`."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tco.chain.metrics import METRICS
from tco.foundation.errors import DataError, UsageError
from tco.foundation.units import convert, unit
from tco.studies.difference import Move

ROUNDING = 1e-9  # a relative change that is none


class Limit(NamedTuple):
    """A relative change, or an amount where there is a unit."""

    size: float
    unit: str = ""

    def allows(self, move: Move) -> bool:
        """Say whether a move stays within the limit; a metric that is measured in another unit may not move at all."""
        if move.old is None or move.new is None:
            return False
        most = self.amount(move.metric) if self.unit else self.size * abs(move.old)
        return abs(move.new - move.old) <= (ROUNDING * abs(move.old) if most is None else most)

    def amount(self, metric: str) -> float | None:
        """Return the amount in the unit of a metric: `USD` stands for USD/chip/h and USD/Mtoken alike."""
        whole = METRICS[metric].unit
        for target in (whole, whole.partition("/")[0]):
            try:
                return convert(self.size, self.unit, target)
            except DataError:
                continue
        return None


def limit_of(text: str, option: str) -> Limit:
    """Return the limit that a text states; any other text raises `UsageError`."""
    wrong = UsageError(f"{option} {text!r}: expected a share such as 2% or 0.02, or an amount such as 0.05USD")
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*", text)
    try:
        size = float(found[1]) if found else math.nan
        if found and found[2] not in ("", "%"):
            unit(found[2])
    except (ValueError, DataError):
        raise wrong from None
    if found is None or not math.isfinite(size) or ("%" in found[2] and found[2] != "%"):
        raise wrong
    return Limit(size / 100) if found[2] == "%" else Limit(size, found[2])
