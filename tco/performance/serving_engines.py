"""Serving engines and collective libraries of each chip family.

`performance/engines.toml` has a table for each family: the engine that its chips run unless a
workload names another, the libraries of collectives that engines bring, and releases of an engine
whose kernels nobody had tuned for a chip.
"""

from __future__ import annotations

from typing import NamedTuple

from tco.catalog.catalogue import Catalogue
from tco.core.calendar_months import calendar_month
from tco.core.errors import refuse_unknown
from tco.core.memory import once_per_owner
from tco.core.types import JsonObject
from tco.fabric.libraries import CollectiveLibrary, combined_library
from tco.performance.chip.formats import FORMATS, plain_weight_format

FAMILY_ENGINE = "family"  # `workload.engine`: the usual engine of the chip's family
# practice whose calibration rows are the best values that anybody wrote by hand; no engine
BEST_PRACTICE = "best"
ENGINE_PARAMETER = "host_time"  # every serving engine has a calibration row of it


class UntunedPeriod(NamedTuple):
    """Period in which an engine's releases ran untuned kernels on a chip."""

    since: float  # calendar months
    until: float  # calendar months
    factor_path: str  # input by which passes take longer, from 1


@once_per_owner
def serving_families(catalogue: Catalogue) -> dict[str, JsonObject]:
    """Return the table of engines and libraries of every chip family, by family id."""
    return {
        family: family_table
        for path in catalogue.folder_files("performance/engines.toml")
        for family, family_table in catalogue.toml(path).items()
    }


def served_by(catalogue: Catalogue, family: str) -> JsonObject:
    """Return the serving engines and libraries of one chip family.

    Args:
        catalogue: Holds the table of serving engines.
        family: Id of the chip family.

    Returns:
        Table of the family in `performance/engines.toml`, such as `engine` and `libraries`.

    Raises:
        DataError: The family is unknown.

    """
    family_tables = serving_families(catalogue)
    refuse_unknown("family of chips", [family], family_tables, "performance/engines.toml")
    return family_tables[family]


@once_per_owner
def serving_engines(catalogue: Catalogue) -> list[str]:
    """Return the sorted ids of the serving engines that the catalogue has parameters of.

    Args:
        catalogue: Holds the calibration rows.

    """
    practices = {
        practice
        for practice, parameter_name in catalogue.calibration_rows
        if parameter_name == ENGINE_PARAMETER
    }
    return sorted(practices - {BEST_PRACTICE})


def serving_engine_id(catalogue: Catalogue, family: str, engine_name: str) -> str:
    """Return the id of a serving engine.

    Args:
        catalogue: Holds the engines and calibration rows.
        family: Chip family whose usual engine the name `family` stands for.
        engine_name: Id of an engine, or `family`.

    Raises:
        DataError: The engine is unknown, or the family of a `family` engine.

    """
    if engine_name == FAMILY_ENGINE:
        return str(served_by(catalogue, family)["engine"])
    engine_ids = serving_engines(catalogue)
    refuse_unknown("serving engine", [engine_name], engine_ids, "workload.engine")
    return engine_name


def library_of_engines(catalogue: Catalogue, family: str) -> CollectiveLibrary:
    """Return the collectives that serving engines use on a family of chips.

    Args:
        catalogue: Holds the engines and the collective libraries.
        family: Id of the chip family.

    Returns:
        Library with the algorithms of all libraries of the family.

    Raises:
        DataError: The family is unknown.

    """
    return combined_library(catalogue, map(str, served_by(catalogue, family)["libraries"]))


def untuned_periods(
    catalogue: Catalogue, family: str, chip: str, engine: str, weight_format: str
) -> tuple[UntunedPeriod, ...]:
    """Return the periods in which an engine ran untuned kernels on a chip.

    Args:
        catalogue: Holds the table of serving engines.
        family: Chip family whose engines are looked up.
        chip: Id of the chip.
        engine: Id of the serving engine.
        weight_format: Number format in which the weights are stored.

    Returns:
        Periods in the order of the table; none if the kernels were always tuned.

    Raises:
        DataError: The family is unknown.

    """
    if weight_format not in FORMATS:
        return ()
    plain_format = plain_weight_format(weight_format)
    return tuple(
        UntunedPeriod(
            since=calendar_month(row["since"]),
            until=calendar_month(row["until"]),
            factor_path=f"performance.{row['practice']}.untuned_factor",
        )
        for row in served_by(catalogue, family).get("untuned", ())
        if engine == row["engine"] and chip in row["chips"] and plain_format == row["weights"]
    )
