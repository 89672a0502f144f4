"""The number formats a scenario serves in where it does not state them: as the model is published, as engines run attention, or the chip's best."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.foundation.errors import DataError, unknown
from tco.foundation.files import read_csv
from tco.foundation.values import Readable
from tco.performance.chip.formats import FORMATS, computed_on

COLUMNS = ("model", "precision", "attention", "experts", "dense", "note")
EVERY = "*"
GIVEN, NATIVE = "given", "native"
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
