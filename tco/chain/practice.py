"""What a workload says of the software that serves it: the engine, and how old it is."""

from __future__ import annotations

import re
from typing import Any

from tco.catalog import Catalogue
from tco.fabric.library import Library, library_of
from tco.foundation.errors import DataError, unknown
from tco.foundation.provenance import Input
from tco.foundation.units import parse_quantity
from tco.foundation.values import Values
from tco.performance.chip.families import chips_of, family_of

MATURE = "mature"  # software that has had its time
FAMILY = "family"  # the engine of the chip's family
OWN = "own"  # the practice of the chip's own family
MONTHS = 12  # of a year
DAYS = 30  # of a month


def engines(catalogue: Catalogue) -> list[str]:
    """Return the serving engines whose practice the catalogue knows."""
    return sorted({owner for owner, name in catalogue.calibration_rows if name == "host_time"})


def practised(catalogue: Catalogue, chip: str, family: str) -> dict[str, Input]:
    """Return what a chip reaches in the practice of another family, under the paths of its own; what that one has no word for stays."""
    own = family_of(catalogue, chip)
    served_by(catalogue, family)
    names = [name for owner, name in catalogue.calibration_rows if owner == family]
    paths = {name: f"performance.{own}.{name}" for name in names if (own, name) in catalogue.calibration_rows}
    return {path: catalogue.practice(family, name)._replace(path=path) for name, path in paths.items()}


def relatives_of(catalogue: Catalogue, chip: str) -> frozenset[str]:
    """Return the chips that share the practice of a chip."""
    return chips_of(catalogue, family_of(catalogue, chip))


def practice_family(catalogue: Catalogue, chip: str, text: str) -> str:
    """Return the family whose practice a workload asks for: the chip's own, unless another is named."""
    return family_of(catalogue, chip) if text == OWN else text


def served_by(catalogue: Catalogue, family: str) -> dict[str, Any]:
    """Return what serves on a family of chips: the engine unless a workload says otherwise, and the libraries engines bring."""

    def read() -> dict[str, dict[str, Any]]:
        paths = [path for folder in catalogue.folders if (path := folder / "performance" / "engines.toml").is_file()]
        return {key: table for path in paths for key, table in catalogue.toml(path).items()}

    known: dict[str, dict[str, Any]] = catalogue.once("engines", read)
    if family not in known:
        raise unknown("family of chips", family, known, "performance/engines.toml")
    return known[family]


def engine_of(catalogue: Catalogue, family: str, name: str) -> str:
    """Return the id of a serving engine, or the one a family of chips runs unless a workload says otherwise."""
    if name == FAMILY:
        return str(served_by(catalogue, family)["engine"])
    every = catalogue.once("engine names", lambda: engines(catalogue))
    if name not in every:
        raise unknown("serving engine", name, every, "workload.engine")
    return name


def attention_core_of(catalogue: Catalogue, chip: str) -> str:
    """Return the format in which engines run the products of attention on a chip."""
    return str(served_by(catalogue, family_of(catalogue, chip))["attention_core"])


def library_of_engines(catalogue: Catalogue, family: str) -> Library:
    """Return the collectives that serving engines use on a family of chips."""
    return library_of(catalogue, map(str, served_by(catalogue, family)["libraries"]))


def month_of(text: str) -> float | None:
    """Return a date such as 2026-02 or 2026-02-15 in months of the calendar; a month without a day stands for its middle."""
    found = re.fullmatch(r"(\d{4})-(\d{2})(?:-(\d{2}))?", text.strip())
    return None if found is None else int(found[1]) * MONTHS + int(found[2]) - 1 + (int(found[3]) if found[3] else DAYS / 2) / DAYS


def months_after(text: str, values: Values, chip: str) -> float | None:
    """Return how many months after its chip some software was written: from a date, or as it stands; None where it has grown up."""
    if text == MATURE:
        return None
    month = month_of(text)
    if month is not None:
        return month - values.structure(f"parts.{chip}.released") * MONTHS
    try:
        return parse_quantity(text, "month")
    except DataError:
        raise DataError(f"workload.software={text}: expected a date such as 2026-02, months such as '6 months', or {MATURE}") from None
