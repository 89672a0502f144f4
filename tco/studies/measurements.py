"""What moves a regime, and which measurements would narrow it most.

A measurement of a kind, such as of collectives on one family's chips, pins the inputs that a fit of that kind may move. Once they are known
the standard deviation of the ranks of the leader's performance per cost over its rival's narrows by 1 - sqrt(1 - share of the variance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from tco.foundation.files import data_directory, read_csv
from tco.studies.comparison import Measurement, Regime
from tco.studies.flips import drivers_of
from tco.studies.ranges import Array, Range
from tco.studies.response import Quantity
from tco.studies.validation.free import COLUMNS
from tco.studies.variance import narrowing, rank_share

NAMED, DRIVERS = 3, 8  # measurements an answer names, and inputs that move a regime
KINDS = ("kernels", "collectives", "inference", "training")
FREE = {"software_reach": "inference", "unexplained_serving": "inference", "unexplained_training": "training"}  # what no fit moves


@cache
def kind_of_rows() -> Mapping[str, str]:
    """Return by which kind of measurements each parameter of practice is fitted."""
    found = dict(FREE)
    for file in sorted((data_directory() / "fits").glob("*.csv")):
        kind = next((kind for kind in KINDS if file.stem.endswith(kind)), None)
        if kind is not None:
            found |= {row["attribute"]: kind for _, row in read_csv(file, COLUMNS)}
    return found


def explained(regime: Regime, ratio: Quantity) -> Regime:
    """Return a regime with the inputs that move the ratio of its leader to its rival, and the measurements that would narrow it."""
    places = {path: ratio.dice.places(one) for path, one in ratio.ranges.items()}
    return regime._replace(
        drivers=drivers_of(ratio.ranges, ratio.ways(), ratio.together, DRIVERS),
        measurements=measurements_of(ratio.drawn(), ratio.ranges, places),
    )


def measurements_of(many: Array, ranges: Mapping[str, Range], places: Mapping[str, Array]) -> list[Measurement]:
    """Return the measurements that narrow some draws of a ratio most, each with the share by which it does."""
    groups: dict[tuple[str, str], list[Array]] = {}
    for path in ranges:
        group, *owner, name = path.split(".")
        if group == "performance" and name in kind_of_rows():
            whose = owner[-1].removeprefix("configuration-").removeprefix("run-")  # a run of its own tells of both
            groups.setdefault((kind_of_rows()[name], whose), []).append(places[path])
    shares: Sequence[tuple[float, tuple[str, str]]] = [(rank_share(many, some) or 0.0, one) for one, some in groups.items()]
    most = sorted(shares, key=lambda one: (-one[0], one[1]))[:NAMED]
    return [Measurement(kind, owner, narrowing(share)) for share, (kind, owner) in most if share > 0]
