"""Capex and yearly money of a grid power filled with one system, beside published figures.

A megawatt is one of the grid at the fence. Racks may draw what carries the worst hour, less what is
kept in hand, as `hall_of` fills a site. The capex is what the cost lines say is bought: racks,
their share of the network, the hall, less rebates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.statements import published_rows, read_statement
from tco.comparison.filled_site import filled_hall, parse_power, purchases, yearly_money
from tco.core.columns import Column
from tco.core.errors import DataError
from tco.core.mappings import sums_by_key
from tco.cost.cash_flows import Flow
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.scenario_function import Evaluation
from tco.scenario.beliefs import Dice
from tco.scenario.pricing import SITE_POWER
from tco.system.bill import LABOUR_RATE

METRIC = "usd_per_facility_w"
DRAWS, SEED, PERCENTILES = 1000, 0, {"p10": 10.0, "p50": 50.0, "p90": 90.0}
KINDS = (
    "chips",
    "memory",
    "CPUs",
    "scale-up switches and cables",
    "network",
    "storage",
    "power and cooling",
    "boards, racks and assembly",
    "hall",
    "chip design",
    "tax and margin",
    "rebates",
)
CHIPS, MEMORY, CPUS, SCALE_UP, NETWORK, STORAGE, POWER, BOARDS, HALL, DESIGN, OTHER, REBATES = KINDS
# kind of part by file of data/parts; what stands in the racks and joins them is of the scale-up
# domain
KIND_BY_FILE = {
    "accelerators": CHIPS,
    "memory": MEMORY,
    "cpus": CPUS,
    "switches": SCALE_UP,
    "cables": SCALE_UP,
    "nics": NETWORK,
    "network": NETWORK,
    "storage": STORAGE,
    "power_cooling": POWER,
}
KIND_BY_ASSET = {
    "network": NETWORK,
    "storage": STORAGE,
    "cooling": POWER,
    "building": HALL,
    "design": DESIGN,
    "rebate": REBATES,
}


class PublishedCost(NamedTuple):
    """Published cost of a system, USD per facility watt."""

    publisher: str
    source: str
    low: float
    high: float
    note: str


class PurchaseSum(NamedTuple):
    """Capex of one kind of part."""

    kind: str  # one of KINDS
    usd: float


class Gigawatt(NamedTuple):
    """A power filled with one system."""

    system: str
    date: str
    hall_cooling: str | None
    racks: float
    chips: float
    grid_w: float  # at the fence
    it_w: float  # that racks may draw
    usd: float  # with the hall, less rebates
    usd_per_grid_w: float
    usd_per_it_w: float
    output_tokens_per_s: float | None
    capex_usd: float  # of the IT alone, before rebates
    cost_usd_per_year: float | None
    revenue_usd_per_year: float | None  # None where nothing is rented out or sold
    margin_usd_per_year: float | None
    lines: Annotated[list[PurchaseSum], Column(csv=False)]
    # percentiles of the dollars per watt of the grid
    range: Annotated[dict[str, float], Column(csv=False)]
    published: Annotated[list[PublishedCost], Column(csv=False)]
    evaluation: Annotated[Evaluation, Column(hidden=True)]


def gigawatts(
    systems: Sequence[str], power: str, data_folder: Path | None, settings: Mapping[str, str]
) -> list[Gigawatt]:
    """Return the capex of a site filled with each system in `systems`.

    Args:
        systems: Names of the systems or scenarios.
        power: Grid power of the site with its unit, such as `1 GW`.
        data_folder: Folder of further user data; None without a further folder.
        settings: Settings by input path.

    Raises:
        DataError: The power is no positive power, no rack of a system fits within the power, or the
            perspective buys nothing.

    """
    parse_power(power, "--power")
    evaluations = evaluate_each(systems, data_folder, settings, implied={SITE_POWER: power})
    return [_filled_site_capex(evaluation) for evaluation in evaluations]


def _filled_site_capex(evaluation: Evaluation) -> Gigawatt:
    """Return the capex of a filled site by kind of part, USD."""
    catalogue, scenario_result = evaluation.catalogue, evaluation.result
    hall = filled_hall(evaluation)
    sums = sums_by_key(
        (_purchase_kind(catalogue, line), float(line.amount) * hall["worlds"])
        for line in purchases(scenario_result)
    )
    if not sums:
        raise DataError(
            f"{evaluation.name}: {scenario_result.texts['terms.perspective']} buys nothing, so no "
            "watt has a price; an owner does, such as hyperscaler"
        )
    lines = [PurchaseSum(kind, sums[kind]) for kind in KINDS if kind in sums]
    usd = sum(line.usd for line in lines)
    grid_w, it_w = hall["site_power_w"], hall["it_power_w"]
    return Gigawatt(
        system=scenario_result.system,
        date=scenario_result.texts["terms.date"],
        hall_cooling=scenario_result.hall_cooling,
        racks=hall["racks"],
        chips=hall["chips"],
        grid_w=grid_w,
        it_w=it_w,
        usd=usd,
        usd_per_grid_w=usd / grid_w,
        usd_per_it_w=usd / it_w,
        output_tokens_per_s=hall["output_tokens_per_s"],
        capex_usd=hall["capex_usd"],
        **yearly_money(scenario_result, hall["chips"]),
        lines=lines,
        range=_cost_per_watt_percentiles(evaluation),
        published=_published_costs(catalogue, scenario_result.system),
        evaluation=evaluation,
    )


def _purchase_kind(catalogue: Catalogue, line: Flow) -> str:
    """Return the kind, one of `KINDS`, of the purchase in a cost line.

    The class of asset decides. A line of servers takes the kind of the file that holds its part.
    """
    if line.asset != "servers":
        return KIND_BY_ASSET[line.asset]
    part = line.path.rpartition("/")[2]
    if part not in catalogue.parts:
        return OTHER
    if catalogue.has_part_value(part, LABOUR_RATE):
        return BOARDS
    attributes = catalogue.parts[part]
    prices = (attribute_name for attribute_name in attributes if attribute_name.endswith("price"))
    price_row = catalogue.part_rows[part, next(prices, attributes[0])][0]
    path = Path(price_row.where.rpartition(":")[0])
    return KIND_BY_FILE.get(path.stem) or KIND_BY_FILE.get(path.parent.name, BOARDS)


def _cost_per_watt_percentiles(evaluation: Evaluation) -> dict[str, float]:
    """Return percentiles of the capex, USD per facility watt, over draws of every range.

    Racks and plan stay as they are.
    """
    # no model is run: nothing bought rests on one
    stated = evaluation.with_settings({"workload": "stated"})
    draws = stated.drawn_function(hold=True).sample(Dice(evaluation.catalogue, SEED, 0, DRAWS))
    samples = np.asarray(draws.metrics[METRIC], dtype=float)
    percentiles = np.percentile(samples, list(PERCENTILES.values()))
    return dict(zip(PERCENTILES, map(float, percentiles), strict=True))


def _published_costs(catalogue: Catalogue, system: str) -> list[PublishedCost]:
    """Return the published total costs of a system, USD per facility watt, of every publisher."""
    return [
        PublishedCost(
            catalogue.publisher(published_row["source"]),
            published_row["source"],
            *read_statement(published_row, where).ends,
            published_row.get("note", ""),
        )
        for where, published_row in published_rows(catalogue, "gigawatt")
        if published_row["metric"] == METRIC
        and "lines" not in published_row
        and published_row["system"] == system
    ]
