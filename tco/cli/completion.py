"""What the shell completes: ids, metrics and input paths, read from the catalogue when Tab is pressed."""

from __future__ import annotations

from collections.abc import Iterable

from tco.catalog import load_catalogue
from tco.catalog.rows import attributes


def scenarios() -> Iterable[str]:
    """Return whatever may stand where a scenario is named."""
    catalogue = load_catalogue()
    return dict.fromkeys([*catalogue.scenarios, *systems()])


def systems() -> Iterable[str]:
    """Return the systems, and the chips that may be asked for alone."""
    from tco.catalog.systems import known_systems

    return known_systems(load_catalogue())


def chips() -> Iterable[str]:
    """Return the chips."""
    catalogue = load_catalogue()
    return [part for part in catalogue.parts if catalogue.has_part_value(part, "hbm_bandwidth")]


def studies() -> Iterable[str]:
    """Return the studies that come with the program."""
    from tco.studies.sweep.study import shipped_studies

    return shipped_studies()


def metrics() -> Iterable[str]:
    """Return the names of the metrics."""
    from tco.chain.metrics import METRICS

    return METRICS


def settings() -> Iterable[str]:
    """Return the inputs `--set` replaces, each with the sign its value follows."""
    catalogue = load_catalogue()
    plain = [f"{group}.{name}=" for group, name in attributes() if group in ("site", "terms", "workload", "cluster")]
    rows = {"parts": catalogue.part_rows, "performance": catalogue.calibration_rows, "shares": catalogue.share_rows}
    return [*plain, *(f"{group}.{owner}.{name}=" for group, table in rows.items() for owner, name in table)]
