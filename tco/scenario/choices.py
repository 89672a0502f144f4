"""Inputs that are no numbers: where documents state them, what follows where none does, and the
formats that checkpoints and chips bring.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.halls import COOLINGS
from tco.core.errors import DataError, unknown
from tco.core.files import read_csv
from tco.core.inputs import Readable
from tco.core.types import JsonMapping
from tco.cost.ledger import COMMITMENTS, COMMITTED
from tco.performance.chip.formats import FORMATS, computed_on
from tco.performance.deployment import FLEET, OPERATED_BY, OPERATORS
from tco.performance.software_maturity import BY_DATE, DRAWN, FAMILY, SOFTWARE, SOFTWARE_CHOICES
from tco.system.bill import USUAL_YIELD, YIELDS

WORKLOAD_KINDS = ("serving", "training", "stated")
DOCUMENTS = {"site": "sites", "terms": "terms", "workload": "workloads", "cluster": "clusters"}
TEXTS = {  # inputs that are no numbers, and the key of the document that holds them
    "terms.date": "date",
    "terms.perspective": "perspective",
    "terms.owner": "owner",
    "terms.yield": "yield",
    "terms.commitment": "commitment",
    "terms.rent_publisher": "rent_publisher",
    "terms.waiting": "waiting",
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
    "workload.operated_by": "operated_by",
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
    "cluster.optic": "optic",
    "cluster.port": "port",
    "cluster.network": "network",
}
CHOICES = {  # texts that are one of a few: what each is called, and those it may be
    "workload.kind": ("kind of workload", WORKLOAD_KINDS),
    "site.tenure": ("tenure", ("own", "colocation")),
    "site.cooling": ("cooling", COOLINGS),
    OPERATED_BY: ("operator", OPERATORS),
    "terms.yield": ("model of yield", tuple(YIELDS)),  # of dies that are built up from their wafer
    "terms.commitment": ("commitment", tuple(COMMITMENTS)),
    "terms.waiting": ("cost of waiting", ("no", "yes")),  # whether it is part of the cost
}
FOLLOWS = {  # texts that follow another where they are not given
    "workload.backward_precision": "workload.precision",
    "workload.attention_format": "workload.precision",
    "workload.expert_format": "workload.precision",
    "workload.cache_format": "workload.precision",
}
# texts that the model's checkpoint may say
IMPLIED = (
    "workload.attention_format",
    "workload.expert_format",
)
USUAL = {  # texts that are taken so where nothing says otherwise
    "terms.yield": USUAL_YIELD,
    "terms.commitment": COMMITTED,
    "terms.waiting": "no",
    "workload.formats": "given",
    # in which engines multiply queries with keys, whatever the cache is kept in
    "workload.attention_core_format": "bf16",
    "cluster.network": "rdma",
    **dict.fromkeys(SOFTWARE_CHOICES, BY_DATE),
    "workload.engine": FAMILY,
    OPERATED_BY: FLEET,
    SOFTWARE: DRAWN,
}


def texts_of(group: str, document: JsonMapping) -> dict[str, str]:
    """Return the inputs of a document that are no numbers, by path."""
    return {
        path: str(document[text_key])
        for path, text_key in TEXTS.items()
        if path.startswith(group + ".") and text_key in document
    }


COLUMNS = ("model", "precision", "attention", "experts", "dense", "note")
EVERY = "*"
GIVEN, NATIVE = "given", "native"
ATTENTION, EXPERTS, DENSE = (
    "workload.attention_format",
    "workload.expert_format",
    "workload.precision",
)


class Checkpoint(NamedTuple):
    """A row of `checkpoint_formats.csv`: what the parts of models are stored in that a precision is
    stated of, both as patterns.
    """

    model: str
    precision: str
    attention: str
    experts: str
    dense: str


def _checkpoints(catalogue: Catalogue) -> list[Checkpoint]:
    """Return the rows of the table, those of a person's own folder first."""

    def read() -> list[Checkpoint]:
        return [
            Checkpoint(*(checkpoint_row[field_name] for field_name in Checkpoint._fields))
            for path in reversed(catalogue.folder_files("checkpoint_formats.csv"))
            for _, checkpoint_row in read_csv(path, COLUMNS)
        ]

    return catalogue.once("checkpoint formats", read)


def checkpoint_of(catalogue: Catalogue, model: str, precision: str) -> Checkpoint:
    """Return the checkpoint of a model with a stated precision.

    The checkpoint holds the storage formats of the parts of the model. The first row whose patterns
    match counts; the last shipped row matches everything.

    Args:
        catalogue: Holds the rows of `checkpoint_formats.csv`.
        model: Id of the model.
        precision: Precision as a publication states it, in upper or lower case.

    """
    return next(
        checkpoint_row
        for checkpoint_row in _checkpoints(catalogue)
        if fnmatchcase(model, checkpoint_row.model)
        and fnmatchcase(precision.lower(), checkpoint_row.precision)
    )


def published(catalogue: Catalogue, model: str) -> dict[str, str]:
    """Return the formats of the parts of a model that has one checkpoint whatever precision is
    asked; none of other models.
    """
    for checkpoint_row in _checkpoints(catalogue):
        if (
            checkpoint_row.precision == EVERY
            and checkpoint_row.model != EVERY
            and fnmatchcase(model, checkpoint_row.model)
        ):
            return {ATTENTION: checkpoint_row.attention, EXPERTS: checkpoint_row.experts}
    return {}


def native(input_values: Readable, chip: str) -> dict[str, str]:
    """Return the narrowest formats that a chip computes itself: four bits where they are quicker
    than eight or spare bytes, attention in eight.
    """
    part = f"parts.{chip}"

    def is_native(format_name: str) -> bool:
        try:
            return computed_on(input_values, chip, format_name, DENSE).is_native
        except DataError:  # the chip has none of its peaks
            return False

    def takes(format_name: str) -> bool:  # the blocks of a format as they are
        return input_values.structure(f"{part}.{FORMATS[format_name].takes or 'takes_mx'}") > 0

    wide = next(
        format_name
        for format_name in ("fp8", "bf16")
        if format_name == "bf16" or is_native(format_name)
    )
    quicker = input_values.structure(f"{part}.peak_fp4") > input_values.structure(
        f"{part}.peak_fp8"
    )
    four = ("nvfp4", "mxfp4") if quicker else ()
    narrow = next(
        (
            format_name
            for format_name in (*four, "w4a8", "mxfp8")
            if is_native(format_name) and takes(format_name)
        ),
        wide,
    )
    return {DENSE: narrow, EXPERTS: narrow, ATTENTION: wide, "workload.cache_format": wide}


def formats_named(formats_text: str) -> bool:
    """Say whether each chip's own formats are asked for; anything but `given` or `native` raises
    `DataError`.
    """
    if formats_text not in (GIVEN, NATIVE):
        raise unknown("formats", formats_text, (GIVEN, NATIVE), "workload.formats")
    return formats_text == NATIVE


# begins a list of parts, of which the one stands with which a chip-hour costs least
CHEAPEST = "cheapest of "
