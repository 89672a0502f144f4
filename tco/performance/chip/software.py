"""How far software reaches: between what is public, which measured rows show, and the best that anybody wrote by hand for such hardware.

Every chip is held to the same best. A parameter of practice lies between its public value and that best at a share of the way, in logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.trace import scope
from tco.foundation.units import Pure, Second

BEST = "best"  # owner of the best values of parameters of practice
REACH = "software_reach"  # of a family: how far its software is on the way
APPROACH = "performance.public.approach"  # by which public software comes nearer to the best
YOUNGEST = "performance.public.youngest_port"  # months from the release of a chip to the first software that was measured on one
MORE, FACTOR = "efficiency", "factor"  # in the names of parameters of which more is better, and of times over those of others


@formula(unit="", source="tco-model")
def gap_left(reach: Pure) -> Any:
    """Share of the way from public software to the best that is left: g = 1 - r."""
    return 1 - reach


@formula(unit="", source="tco-model")
def gap_after(gap: Pure, approach: Pure, months: Pure) -> Any:
    """The same once public software has come nearer for some months: g exp(-a m)."""
    return gap * np.exp(-approach * np.maximum(months, 0))


@formula(unit="s", source="tco-model")
def reached_time(public: Second, best: Second, gap: Pure) -> Any:
    """A time between that of public software and the best, never above the public one: t_b min(x, 1) max(x, 1)^g, x = t_p / t_b."""
    over = public / best
    return best * np.minimum(over, 1) * np.maximum(over, 1) ** gap


@formula(unit="", source="tco-model")
def reached_factor(public: Pure, best: Pure, gap: Pure) -> Any:
    """The same of a time over that of other software: f_b min(x, 1) max(x, 1)^g, x = f_p / f_b."""
    over = public / best
    return best * np.minimum(over, 1) * np.maximum(over, 1) ** gap


@formula(unit="", source="tco-model")
def reached_share(public: Pure, best: Pure, gap: Pure) -> Any:
    """A share of a peak between that of public software and the best, never below the public one: e_b max(x, 1) min(x, 1)^g, x = e_p / e_b."""
    over = public / best
    return best * np.maximum(over, 1) * np.minimum(over, 1) ** gap


class Reach(NamedTuple):
    """What stands between a chip and its work: how old the port to it is, and how far its software reaches."""

    months: Any = None  # from the release of the chip to its software; none: the port has grown up
    gap: Any = None  # share of the way to the best that is left; none: all of it, which is public software
    best: frozenset[str] = frozenset()  # parameters of practice of which the best is known

    def of(self, values: Mapping[str, Any], path: str) -> Any:
        """Return a parameter of practice as this software has it."""
        public, name = values[path], path.rpartition(".")[2]
        if self.gap is None or name not in self.best:
            return public
        with scope("software", name):
            law = reached_share if MORE in name else reached_factor if FACTOR in name else reached_time
            return law(public, values[f"performance.{BEST}.{name}"], self.gap)


MEASURED = Reach()  # of rows and kernels that were timed
