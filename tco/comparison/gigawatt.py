"""A power of the grid turned into racks of one system, and into dollars by kind of part: what a
gigawatt costs, and what others say it does.

A megawatt is one of the grid at the fence. Racks may draw what carries the worst hour, less what is
kept in hand, as `hall_of` fills a site. What is bought for them is what the cost lines say is
bought: racks, their share of the network, the hall, less rebates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.comparison.fleet import filled_hall, parsed
from tco.core.errors import DataError
from tco.cost.ledger import WAITING
from tco.evaluation.evaluated_scenario import Evaluation
from tco.evaluation.evaluation import evaluate_each
from tco.sampling.response import response_of
from tco.scenario.beliefs import Dice
from tco.scenario.pricing import SITE_POWER
from tco.system.bill import LABOUR_RATE

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.cost.cash_flows import Flow

METRIC = "usd_per_facility_w"
DRAWS, SEED, PERCENTILES = 1000, 0, {"p10": 10.0, "p50": 50.0, "p90": 90.0}
CHIPS, MEMORY, CPUS, SCALE_UP, NETWORK, STORAGE, POWER, BOARDS, HALL, DESIGN, OTHER, REBATES = (
    KINDS
) = (
    *(
        "chips",
        "memory",
        "CPUs",
        "scale-up switches and cables",
        "network",
        "storage",
        "power and cooling",
        "boards, racks and assembly",
    ),
    *("hall", "chip design", "tax and margin", "rebates"),
)
# of data/parts -> kind of what its parts are bought for; what stands in the racks and joins them is
# of the scale-up domain
FILES = {
    **{
        "accelerators": CHIPS,
        "memory": MEMORY,
        "cpus": CPUS,
        "switches": SCALE_UP,
        "cables": SCALE_UP,
        "nics": NETWORK,
        "network": NETWORK,
    },
    **{"storage": STORAGE, "power_cooling": POWER, "boards": BOARDS},
}
ASSETS = {
    "network": NETWORK,
    "storage": STORAGE,
    "cooling": POWER,
    "building": HALL,
    "design": DESIGN,
    "rebate": REBATES,
}


class Said(NamedTuple):
    """Published cost of a system by another publisher, USD per facility watt."""

    publisher: str
    source: str
    low: float
    high: float
    note: str


class Gigawatt(NamedTuple):
    """A power filled with one system."""

    asked: Evaluation
    hall: dict[str, float]
    usd: float
    lines: list[tuple[str, float]]  # kind of part, and what is bought of it
    range: dict[str, float]  # of the dollars a watt of the grid
    published: list[Said]

    @property
    def grid_w(self) -> float:
        """Power at the fence."""
        return self.hall["site_power_w"]

    @property
    def usd_per_grid_w(self) -> float:
        """Dollars a watt at the fence."""
        return self.usd / self.grid_w

    @property
    def usd_per_it_w(self) -> float:
        """Dollars a watt that racks may draw."""
        return self.usd / self.hall["it_power_w"]


def gigawatts(
    systems: Sequence[str], power: str, data: Path | None, settings: Mapping[str, str]
) -> list[Gigawatt]:
    """Return the capex of a site filled with each system in `systems`.

    Args:
        systems: Names of the systems or scenarios.
        power: Grid power of the site with its unit, such as `1 GW`.
        data: Folder of further user data; None without a further folder.
        settings: Settings by input path.

    Raises:
        DataError: The power is no positive power, no rack of a system fits within the power, or the
            perspective buys nothing.

    """
    parsed(power, "--power")
    return [
        filled_site_capex(one)
        for one in evaluate_each(systems, data, {**settings, SITE_POWER: power})
    ]


def filled_site_capex(asked: Evaluation) -> Gigawatt:
    """Return the capex of a filled site by kind of part, USD."""
    result = asked.result
    hall = filled_hall(asked)
    sums: dict[str, float] = {}
    for line in result.lines:
        if not line.recurs and line.asset != WAITING:  # nothing is bought by waiting
            kind = purchase_category(asked.catalogue, line)
            sums[kind] = sums.get(kind, 0.0) + float(line.amount) * hall["worlds"]
    if not sums:
        raise DataError(
            f"{asked.name}: {result.texts['terms.perspective']} buys nothing, so no watt has a "
            "price; an owner does, such as hyperscaler"
        )
    lines = [(kind, sums[kind]) for kind in KINDS if kind in sums]
    return Gigawatt(
        asked,
        hall,
        sum(usd for _, usd in lines),
        lines,
        cost_per_watt_percentiles(asked),
        published_of(asked.catalogue, result.system),
    )


def purchase_category(catalogue: Catalogue, line: Flow) -> str:
    """Return the category in `KINDS` of the purchase in `line`.

    The class of asset decides. A line of servers takes the category of the file that holds its
    part.
    """
    if line.asset != "servers":
        return ASSETS[line.asset]
    part = line.path.rpartition("/")[2]
    if part not in catalogue.parts:
        return OTHER
    if catalogue.has_part_value(part, LABOUR_RATE):
        return BOARDS
    named = next(
        (name for name in catalogue.parts[part] if name.endswith("price")), catalogue.parts[part][0]
    )
    where = Path(catalogue.part_rows[part, named][0].where.rpartition(":")[0])
    return FILES.get(where.stem) or FILES.get(where.parent.name, BOARDS)


def cost_per_watt_percentiles(asked: Evaluation) -> dict[str, float]:
    """Return percentiles of the dollars a watt, of draws of every input with a range; racks and
    plan stay as they are.
    """
    # no model is run: nothing bought rests on one
    plain = asked._replace(settings={**asked.settings, "workload": "stated"})
    draws = response_of(plain._replace(result=plain.again({})), hold=True).drawn(
        Dice(asked.catalogue, SEED, 0, DRAWS)
    )
    many: Any = np.percentile(
        np.asarray(draws.metrics[METRIC], dtype=float), list(PERCENTILES.values())
    )
    return dict(zip(PERCENTILES, map(float, many), strict=True))


def published_of(catalogue: Catalogue, system: str) -> list[Said]:
    """Return the published total costs of `system`, USD per facility watt.

    Every publisher counts.
    """
    from tco.evidence.published import published_interval as stated

    path = catalogue.published["gigawatt"]
    document = catalogue.toml(path)
    found = []
    for row in document["published"]:
        if (
            row["metric"] == METRIC
            and "lines" not in row
            and row.get("system", document["system"]) == system
        ):
            low, high = (row["value"],) * 2 if "value" in row else stated(row, str(path))
            found.append(
                Said(
                    catalogue.publisher(row["source"]),
                    row["source"],
                    low,
                    high,
                    row.get("note", ""),
                )
            )
    return found
