"""Every system on the same terms, in the order of what the work costs on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.chain.inputs import HEADLINE_SYSTEM
from tco.chain.metrics import PRICED
from tco.chain.result import why_absent
from tco.chain.texts import MONTHS
from tco.foundation.errors import DataError, unknown
from tco.studies.comparison import compared, rated_by
from tco.studies.evaluation import catalogue_for, evaluate_each

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result


class Ranked(NamedTuple):
    """A system in its place."""

    rank: int | None  # none of what has no cost of its work
    result: Result
    vendor: str
    cooling: str
    released: str | None  # the month its chip came out, or is announced for
    reason: str | None  # why it has none


class Ranking(NamedTuple):
    """Systems, the least cost first; those that cannot be priced last."""

    catalogue: Catalogue
    metric: str  # the cost
    rows: list[Ranked]


def released(catalogue: Catalogue, system: str) -> str | None:
    """Return the month in which the chip of a system came out, or is announced for; none where nobody says."""
    chip = catalogue.document("systems", system, "system")[1]["chip"]
    if not catalogue.has_part_value(chip, "released"):
        return None
    year = catalogue.part_input(chip, "released", "").value
    return f"{int(year)}-{int((year % 1) * MONTHS) + 1:02}"


def ranking(settings: Mapping[str, str], data: Path | None, vendor: str | None = None, air: bool = False) -> Ranking:
    """Rank all systems, those of one vendor, or those that air cools; each is held against the headline's, whether or not that is ranked."""
    catalogue = catalogue_for(None, data)
    documents = {system: catalogue.document("systems", system, "system")[1] for system in catalogue.ids("systems")}
    vendors = {system: str(one.get("builder") or str(one["name"]).partition(" ")[0]) for system, one in documents.items()}  # who builds or sells it
    cooling = {system: str(one["cooling"]) for system, one in documents.items()}
    if vendor is not None and vendor.lower() not in {one.lower() for one in vendors.values()}:
        raise unknown("vendor", vendor, sorted(set(vendors.values())), "--vendor")
    of_vendor = [system for system, its in vendors.items() if vendor is None or its.lower() == vendor.lower()]
    wanted = [system for system in of_vendor if not air or cooling[system] == "air"]
    if not wanted:
        raise DataError(f"--vendor {vendor} --air: air cools no system of {vendor}; liquid cools {', '.join(of_vendor)}")
    asked = evaluate_each(list(dict.fromkeys([*wanted, HEADLINE_SYSTEM])), data, settings, refuse=False)
    results = [one for one in compared([one.result for one in asked], HEADLINE_SYSTEM).results if one.system in wanted]
    metric = rated_by(results) or PRICED[0]
    priced = sorted((one for one in results if one.metrics[metric] is not None), key=lambda one: float(one.metrics[metric]))
    places = [*enumerate(priced, 1), *((None, one) for one in results if one.metrics[metric] is None)]

    def ranked(place: int | None, one: Result) -> Ranked:
        why = why_absent(one, metric) if place is None else None
        return Ranked(place, one, vendors[one.system], cooling[one.system], released(catalogue, one.system), why)

    return Ranking(catalogue, metric, [ranked(*one) for one in places])
