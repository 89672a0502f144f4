"""Inputs that are no numbers: what a scenario names, the formats and software it takes where it names none, and what may be set instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.economics.cost import COMMITMENTS, COMMITTED
from tco.fabric.library import Library, library_of
from tco.foundation.errors import DataError, unknown
from tco.foundation.files import read_csv
from tco.foundation.provenance import Given, Input
from tco.foundation.units import convert, is_pure
from tco.foundation.values import Readable
from tco.hardware.bill import USUAL_YIELD, YIELDS
from tco.models.architecture import load_model
from tco.performance.chip.formats import FORMATS, chips_of, computed_on, family_of
from tco.performance.chip.software import BEST

if TYPE_CHECKING:
    from tco.catalog.systems import System
    from tco.chain.inputs import Scenario


FAMILY = "family"  # the engine of the chip's family
MONTHS = 12  # of a year
DAYS = 30  # of a month


def engines(catalogue: Catalogue) -> list[str]:
    """Return the serving engines whose practice the catalogue knows."""
    return sorted({owner for owner, name in catalogue.calibration_rows if name == "host_time"} - {BEST})


def relatives_of(catalogue: Catalogue, chip: str) -> frozenset[str]:
    """Return the chips that share the practice of a chip."""
    return chips_of(catalogue, family_of(catalogue, chip))


def serving_families(catalogue: Catalogue) -> dict[str, dict[str, Any]]:
    """Return what serves on the chips of each family: the engine unless a workload says otherwise, and the libraries engines bring."""

    def read() -> dict[str, dict[str, Any]]:
        paths = [path for folder in catalogue.folders if (path := folder / "performance" / "engines.toml").is_file()]
        return {key: table for path in paths for key, table in catalogue.toml(path).items()}

    known: dict[str, dict[str, Any]] = catalogue.once("engines", read)
    return known


def served_by(catalogue: Catalogue, family: str) -> dict[str, Any]:
    """Return what serves on a family of chips; one nobody knows raises `DataError`."""
    known = serving_families(catalogue)
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


DOCUMENTS = {"site": "sites", "terms": "terms", "workload": "workloads", "cluster": "clusters"}
TEXTS = {  # inputs that are no numbers, and the key of the document that holds them
    "terms.date": "date",
    "terms.perspective": "perspective",
    "terms.owner": "owner",
    "terms.yield": "yield",
    "terms.commitment": "commitment",
    "site.tenure": "tenure",
    "site.grid": "grid",
    "site.cooling": "cooling",
    "site.ready": "ready",
    "workload.kind": "kind",
    "workload.model": "model",
    "workload.precision": "precision",
    "workload.backward_precision": "backward_precision",
    "workload.attention_format": "attention_format",
    "workload.expert_format": "expert_format",
    "workload.cache_format": "cache_format",
    "workload.attention_core_format": "attention_core_format",
    "workload.engine": "engine",
    "workload.software": "software",
    "workload.formats": "formats",
    "workload.attention": "attention",
    "workload.dropout": "dropout",
    "workload.expert_kernels": "expert_kernels",
    "workload.trained": "trained",
    "workload.gradient_sums": "gradient_sums",
    "workload.stage_transfers": "stage_transfers",
    "workload.programs": "programs",
    "workload.loss": "loss",
    "cluster.switch": "switch",
    "cluster.port": "port",
    "cluster.network": "network",
}
KINDS = ("serving", "training", "stated")  # of workloads: the last runs no model, its rates are inputs
FOLLOWS = {  # texts that follow another where they are not given
    "workload.backward_precision": "workload.precision",
    "workload.attention_format": "workload.precision",
    "workload.expert_format": "workload.precision",
    "workload.cache_format": "workload.precision",
}
CORE = "workload.attention_core_format"
IMPLIED = ("workload.attention_format", "workload.expert_format", CORE)  # texts that the model's checkpoint or the chip's engine may say
USUAL = {  # texts that are taken so where nothing says otherwise
    "terms.yield": USUAL_YIELD,
    "terms.commitment": COMMITTED,
    "workload.formats": "given",
    "cluster.network": "rdma",
    **dict.fromkeys(
        (
            *("workload.attention", "workload.dropout", "workload.expert_kernels", "workload.trained", "workload.gradient_sums"),
            *("workload.stage_transfers", "workload.programs", "workload.loss"),
        ),
        "native",  # as the software has it by its date
    ),
    "workload.engine": FAMILY,
    "workload.software": "drawn",
}


@dataclass(slots=True)
class Texts:
    """The texts of one scenario: those it states, those that follow, and those that were asked for."""

    catalogue: Catalogue
    scenario: Scenario
    system: System = field(init=False)
    texts: dict[str, str] = field(init=False, default_factory=dict)
    texts_used: dict[str, str] = field(init=False, default_factory=dict)

    def text(self, path: str) -> str:
        """Return an input that is a text."""
        if path not in self.texts:
            if path in IMPLIED and (found := self.implied().get(path)):
                self.texts_used[path] = found
                return found
            if path in FOLLOWS:
                return self.text(FOLLOWS[path])
            if path in USUAL:
                self.texts_used[path] = USUAL[path]
                return USUAL[path]
            group = path.partition(".")[0]
            raise DataError(f"{self.scenario.documents[group]}: {path} is missing in data/{DOCUMENTS[group]}")
        self.texts_used[path] = self.texts[path]
        return self.texts[path]

    def implied(self) -> dict[str, str]:
        """Return the formats that the model is published in whatever precision is asked, and that in which engines run attention on the chip."""
        pass  # workloads that train serve in none

        model, chip = self.text("workload.model"), self.system.chip
        found: dict[str, str] = self.catalogue.once(
            ("implied", model, chip), lambda: published(self.catalogue, model) | {CORE: attention_core_of(self.catalogue, chip)}
        )
        return found

    @property
    def owner(self) -> str:
        """Who owns the racks: agreements with suppliers count where they are his."""
        return self.text("terms.owner")

    @property
    def date(self) -> str:
        """The date prices hold for."""
        return self.text("terms.date")

    @property
    def kind(self) -> str:
        """What the workload does."""
        kind = self.text("workload.kind")
        if kind not in KINDS:
            raise unknown("kind of workload", kind, KINDS, "workload.kind")
        return kind

    @property
    def tenure(self) -> str:
        """Whether the owner builds the site or rents it."""
        tenure = self.text("site.tenure")
        if tenure not in ("own", "colocation"):
            raise unknown("tenure", tenure, ("own", "colocation"), "site.tenure")
        return tenure

    @property
    def dies(self) -> str:
        """The model of the yield of the dies that are built up from their wafer."""
        model = self.text("terms.yield")
        if model not in YIELDS:
            raise unknown("model of yield", model, YIELDS, "terms.yield")
        return model

    @property
    def commitment(self) -> str:
        """What a renter commits himself to."""
        commitment = self.text("terms.commitment")
        if commitment not in COMMITMENTS:
            raise unknown("commitment", commitment, COMMITMENTS, "terms.commitment")
        return commitment

    @property
    def cooling(self) -> str:
        """What takes the heat out of the site's halls."""
        cooling = self.text("site.cooling")
        if cooling not in ("air", "liquid"):
            raise unknown("cooling", cooling, ("air", "liquid"), "site.cooling")
        return cooling


def texts_of(group: str, document: Mapping[str, Any]) -> dict[str, str]:
    """Return the inputs of a document that are no numbers, by path."""
    return {path: str(document[key]) for path, key in TEXTS.items() if path.startswith(group + ".") and key in document}


COLUMNS = ("model", "precision", "attention", "experts", "dense", "note")
EVERY = "*"
GIVEN, NATIVE = "given", "native"
DRAFTS = "workload.draft_tokens"
ATTENTION, EXPERTS, DENSE = "workload.attention_format", "workload.expert_format", "workload.precision"


class Checkpoint(NamedTuple):
    """A row of `checkpoint_formats.csv`: what the parts of models are stored in that a precision is stated of, both as patterns."""

    model: str
    precision: str
    attention: str
    experts: str
    dense: str


def checkpoints(catalogue: Catalogue) -> list[Checkpoint]:
    """Return the rows of the table, those of a person's own folder first."""

    def read() -> list[Checkpoint]:
        paths = [path for folder in reversed(catalogue.folders) if (path := folder / "checkpoint_formats.csv").is_file()]
        return [Checkpoint(*(row[name] for name in Checkpoint._fields)) for path in paths for _, row in read_csv(path, COLUMNS)]

    found: list[Checkpoint] = catalogue.once("checkpoint formats", read)
    return found


def checkpoint_of(catalogue: Catalogue, model: str, precision: str) -> Checkpoint:
    """Return how the parts of a model are stored of which some precision is stated."""
    return next(row for row in checkpoints(catalogue) if fnmatchcase(model, row.model) and fnmatchcase(precision.lower(), row.precision))


def published(catalogue: Catalogue, model: str) -> dict[str, str]:
    """Return the formats of the parts of a model that has one checkpoint whatever precision is asked; none of other models."""
    for row in checkpoints(catalogue):
        if row.precision == EVERY and row.model != EVERY and fnmatchcase(model, row.model):
            return {ATTENTION: row.attention, EXPERTS: row.experts}
    return {}


def drafts_of(catalogue: Catalogue, model: str) -> Input:
    """Return the tokens that a model's own head drafts a step, which production uses where a model has one: as many as it was trained to."""
    found = load_model(catalogue, model)
    count, note = float(found.prediction_layers), "as many as the model has layers of its own for; 0 turns drafts off"
    return Input(DRAFTS, count, "count", count, count, kind="vendor", source=found.source, note=note, shown=(count, "count"), where=model)


def native(values: Readable, chip: str) -> dict[str, str]:
    """Return the narrowest formats that a chip computes itself: four bits where they are quicker than eight or spare bytes, attention in eight."""
    part = f"parts.{chip}"

    def own(name: str) -> bool:
        try:
            return computed_on(values, chip, name, DENSE).own
        except DataError:  # the chip has none of its peaks
            return False

    wide = next(name for name in ("fp8", "bf16") if name == "bf16" or own(name))
    quicker = values.structure(f"{part}.peak_fp4") > values.structure(f"{part}.peak_fp8")
    four = ("nvfp4", "mxfp4") if quicker else ()
    narrow = next((name for name in (*four, "w4a8", "mxfp8") if own(name) and takes_blocks(values, part, name)), wide)
    return {DENSE: narrow, EXPERTS: narrow, ATTENTION: wide, "workload.cache_format": wide}


def takes_blocks(values: Readable, part: str, name: str) -> bool:
    """Say whether the matrix units of a chip take the blocks of a format as they are."""
    return values.structure(f"{part}.{FORMATS[name].takes or 'takes_mx'}") > 0


def formats_named(text: str) -> bool:
    """Say whether each chip's own formats are asked for; anything but `given` or `native` raises `DataError`."""
    if text not in (GIVEN, NATIVE):
        raise unknown("formats", text, (GIVEN, NATIVE), "workload.formats")
    return text == NATIVE


def given_of(path: str, setting: Any, unit_of: Callable[[str], str]) -> Given:
    """Return a setting as the inputs take it: one number as its text, many as an array in the input's unit; anything else raises `DataError`."""
    if isinstance(setting, str):
        return Given(setting)
    number, unit = setting if isinstance(setting, tuple) and len(setting) == 2 else (setting, "")
    try:
        found = np.asarray(number, dtype=float)
    except (TypeError, ValueError):
        found = None
    if found is None or not found.size or not isinstance(unit, str):
        raise DataError(f"{path}: {setting!r} is no setting; expected a text such as '5 GB', (numbers, unit), or a pure number")
    wanted = unit_of(path)
    if not unit and not is_pure(wanted):
        one = "numbers" if found.ndim else repr(float(found))
        raise DataError(f"{path}: {one} without a unit, expected {wanted!r} or another of its kind, such as ({one}, {wanted!r})")
    if not found.ndim:
        return Given(f"{float(found)!r} {unit}".strip())
    try:
        many = convert(found, unit, wanted)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return Given(f"{found.size} values", many=many)


def shape_of(given: Mapping[str, Given]) -> tuple[int, ...]:
    """Return the shape of what is asked together: empty where every input is one number; shapes that do not fit raise `DataError`."""
    shapes = {path: one.many.shape for path, one in given.items() if one.many is not None}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{path} has {'x'.join(map(str, shape))}" for path, shape in shapes.items())
        raise DataError(f"inputs that are asked together need one number of values each: {said}") from None
