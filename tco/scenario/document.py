"""A scenario's document: what its file names and sets, read and checked."""

from __future__ import annotations

from os.path import exists  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.system_tree import known_systems
from tco.core.errors import DataError, nearest_name, refuse_unknown, unknown
from tco.core.files import read_toml, scenario_directory
from tco.core.provenance import ANCHOR, making
from tco.core.types import JsonObject
from tco.scenario.choices import DOCUMENTS

HEADLINE_SYSTEM = "gb200-nvl72"
HEADLINE_DOCUMENTS = {
    "site": "us-hyperscale",
    "terms": "hyperscaler-2026-11",
    "workload": "deepseek-v3-8k-1k",
    "cluster": "tor-100g-16k",
}


FIGURES = "published"  # of a scenario that holds figures of publications, read by who asks for them


SCENARIO_KEYS = {
    "title",
    "system",
    "site",
    "terms",
    "workload",
    "cluster",
    "rebates",
    "variant",
    "set",
    "note",
    ANCHOR,
    FIGURES,
}


class Scenario(NamedTuple):
    """A scenario as its file states it."""

    name: str
    title: str
    system: str
    documents: dict[str, str]  # site, terms, workload, cluster -> id
    rebates: tuple[str, ...] | None  # None: those the system's file names
    variant: dict[str, str]
    settings: dict[str, str]
    where: str

    @property
    def has_user_settings(self) -> bool:
        """Say whether its settings are a person's own: those of a file that is shipped are not."""
        return bool(self.settings) and not Path(self.where).resolve().is_relative_to(
            scenario_directory().resolve()
        )


def load_scenario(catalogue: Catalogue, scenario_name: str | Path | Scenario) -> Scenario:
    """Read a scenario of the catalogue by name or by path; one already read is returned.

    The id of a system or a chip stands for the headline's workload on that system.
    `ID@key=value,...` names variants of a system.

    Args:
        catalogue: Holds the scenarios, systems and documents.
        scenario_name: Name of a scenario, path of a TOML file, or id of a system or chip.

    Raises:
        DataError: The name or a key is unknown, the file cannot be read, or a key is missing or
            holds another kind of value.

    """
    if isinstance(scenario_name, Scenario):
        return scenario_name
    shipped = catalogue.scenarios.get(str(scenario_name))
    if shipped is not None:
        return catalogue.once(
            ("scenario", shipped),
            lambda: _scenario_from_document(catalogue, shipped, catalogue.toml(shipped)),
        )
    path = _scenario_path(catalogue, scenario_name)
    if path.suffix != ".toml" and not exists(path):
        system, _, variants = str(scenario_name).partition("@")
        if system not in known_systems(catalogue):
            raise _unknown_scenario(catalogue, str(scenario_name))
        return headline_scenario(
            str(scenario_name), system, variants_of(variants, str(scenario_name))
        )
    is_shipped = path in (
        catalogue.scenarios.get(path.stem),
        catalogue.published.get(path.name),
    )
    return _scenario_from_document(
        catalogue, path, catalogue.toml(path) if is_shipped else read_toml(path)
    )


def _scenario_from_document(catalogue: Catalogue, path: Path, document: JsonObject) -> Scenario:
    """Return the scenario of a document; one that is no scenario raises `DataError`."""
    _expect_scenario(catalogue, path, document)
    rebates = document.get("rebates")
    return Scenario(
        path.stem,
        str(document.get("title", path.stem)),
        document["system"],
        {group: document[group] for group in DOCUMENTS},
        None if rebates is None else tuple(map(str, rebates)),
        document.get("variant", {}),
        document.get("set", {}),
        str(path),
    )


def _scenario_path(catalogue: Catalogue, scenario_name: str | Path) -> Path:
    """Return the file of a published scenario; any other path as it is."""
    path = Path(scenario_name)
    if path.parent.name == "published" and path.name in catalogue.published:
        return catalogue.published[path.name]
    return path


def _unknown_scenario(catalogue: Catalogue, scenario_name: str) -> DataError:
    """Return the error on an unknown scenario, with the nearest names."""
    racks = list(dict.fromkeys([*catalogue.scenarios, *catalogue.ids("systems")]))
    # a rack is meant before a publication or a chip where the name is part of a rack's
    if any(scenario_name.lower() in rack for rack in racks):
        return unknown("scenario", scenario_name, racks)
    chip = nearest_name(scenario_name, set(known_systems(catalogue)) - set(racks))
    with_chip = [rack for rack in racks if chip and rack.startswith(f"{chip}-")]
    if with_chip and nearest_name(scenario_name, racks) is None:
        return DataError(
            f"unknown scenario {scenario_name!r}; racks with {chip}: {', '.join(with_chip)}"
        )
    published = [f"published/{file_name}" for file_name in catalogue.published]
    return unknown("scenario", scenario_name, [*racks, *published, *known_systems(catalogue)])


def _expect_scenario(catalogue: Catalogue, path: Path, document: JsonObject) -> None:
    """Check the keys of a scenario's document.

    Raises:
        DataError: A key is unknown or missing, or holds another kind of value.

    """
    refuse_unknown("key", document, SCENARIO_KEYS, str(path))
    for document_key in ("system", *DOCUMENTS):
        if not isinstance(document.get(document_key), str):
            raise DataError(
                f"{path}: the key {document_key!r} is missing; it names one of "
                f"{', '.join(catalogue.ids(DOCUMENTS.get(document_key, 'systems')))}"
            )
    for document_key in ("variant", "set"):
        table = document.get(document_key, {})
        if not isinstance(table, dict) or not all(
            isinstance(table_value, str) for table_value in table.values()
        ):
            raise DataError(
                f"{path}: [{document_key}] takes texts, such as "
                '"site.electricity_price" = "0.09 USD/kWh"'
            )
    if ANCHOR in document and not (catalogue.anchors or making.get()):
        raise DataError(
            f"{path}: {ANCHOR}: its runs are read where one scenario or several are asked (perf, "
            "price, compare, uncertainty), not here"
        )
    if not isinstance(document.get("rebates", []), list):
        raise DataError(f"{path}: rebates takes a list of ids")


def headline_scenario(scenario_name: str, system: str, variant: dict[str, str]) -> Scenario:
    """Return the headline's workload, site and terms on a system."""
    return Scenario(
        scenario_name, system, system, dict(HEADLINE_DOCUMENTS), None, variant, {}, "--set"
    )


def variants_of(variant_text: str, where: str) -> dict[str, str]:
    """Return the variants that `key=value,...` names; a malformed one raises `DataError`."""
    variants = {}
    for assignment in filter(None, variant_text.split(",")):
        variant_key, sign, variant_value = assignment.partition("=")
        if not (sign and variant_key and variant_value):
            raise DataError(
                f"{where}: {assignment!r} after @, expected KEY=VALUE, such as switch=gen2"
            )
        variants[variant_key] = variant_value
    return variants
