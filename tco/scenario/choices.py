"""Text inputs of a scenario, their default values, and the number formats of models and chips."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.halls import COOLING_KINDS
from tco.core.errors import DataError, refuse_unknown
from tco.core.files import read_csv
from tco.core.inputs import Readable
from tco.core.memory import once_per_owner
from tco.core.types import JsonMapping
from tco.cost.ledger import COMMITMENTS, COMMITTED
from tco.performance.chip.formats import FORMATS, computed_on
from tco.performance.deployment import FLEET, OPERATED_BY, OPERATORS
from tco.performance.serving_engines import FAMILY_ENGINE
from tco.performance.software_maturity import BY_DATE, DRAWN, SOFTWARE, SOFTWARE_CHOICES
from tco.system.bill import USUAL_YIELD, YIELDS

WORKLOAD_KINDS = ("serving", "training", "stated")
DOCUMENTS = {"site": "sites", "terms": "terms", "workload": "workloads", "cluster": "clusters"}
TEXTS = {  # text inputs, and the key of the document that holds each
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
CHOICES = {  # text inputs that take one of a list: what the input is called, and the list
    "workload.kind": ("kind of workload", WORKLOAD_KINDS),
    "site.tenure": ("tenure", ("own", "colocation")),
    "site.cooling": ("cooling", COOLING_KINDS),
    OPERATED_BY: ("operator", OPERATORS),
    "terms.yield": ("model of yield", tuple(YIELDS)),  # of dies that are built up from their wafer
    "terms.commitment": ("commitment", tuple(COMMITMENTS)),
    "terms.waiting": ("cost of waiting", ("no", "yes")),  # whether it is part of the cost
}
FOLLOWS = {  # text inputs that take the text of another one unless they are set
    "workload.backward_precision": "workload.precision",
    "workload.attention_format": "workload.precision",
    "workload.expert_format": "workload.precision",
    "workload.cache_format": "workload.precision",
}
# text inputs that the model's checkpoint may decide
IMPLIED = (
    "workload.attention_format",
    "workload.expert_format",
)
USUAL = {  # default texts
    "terms.yield": USUAL_YIELD,
    "terms.commitment": COMMITTED,
    "terms.waiting": "no",
    "workload.formats": "given",
    # engines multiply queries with keys in this format, whatever the cache is stored in
    "workload.attention_core_format": "bf16",
    "cluster.network": "rdma",
    **dict.fromkeys(SOFTWARE_CHOICES, BY_DATE),
    "workload.engine": FAMILY_ENGINE,
    OPERATED_BY: FLEET,
    SOFTWARE: DRAWN,
}


def texts_of(group: str, document: JsonMapping) -> dict[str, str]:
    """Return the text inputs of a document, by path."""
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
    """A row of `checkpoint_formats.csv`: storage formats of the parts of some models."""

    model: str  # pattern of model ids
    precision: str  # pattern of the precision that a publication states
    attention: str
    experts: str
    dense: str


@once_per_owner
def _checkpoints(catalogue: Catalogue) -> list[Checkpoint]:
    """Return the rows of all tables; those of a user's folder come first."""
    return [
        Checkpoint(*(checkpoint_row[field_name] for field_name in Checkpoint._fields))
        for path in reversed(catalogue.folder_files("checkpoint_formats.csv"))
        for _, checkpoint_row in read_csv(path, COLUMNS)
    ]


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


def formats_of_checkpoint(catalogue: Catalogue, model: str) -> dict[str, str]:
    """Return the formats that a model's only checkpoint decides, by path.

    The result is empty for a model that is published in several precisions.
    """
    for checkpoint_row in _checkpoints(catalogue):
        if (
            checkpoint_row.precision == EVERY
            and checkpoint_row.model != EVERY
            and fnmatchcase(model, checkpoint_row.model)
        ):
            return {ATTENTION: checkpoint_row.attention, EXPERTS: checkpoint_row.experts}
    return {}


def native_formats(input_values: Readable, chip: str) -> dict[str, str]:
    """Return the narrowest formats that a chip computes itself, by path.

    Weights and experts are in four bits where the chip computes four bits faster than eight, or
    else where it takes four-bit weights for eight-bit products. Attention and cache are in FP8, or
    in BF16 on a chip without FP8.
    """
    part = f"parts.{chip}"

    def is_native(format_name: str) -> bool:
        try:
            return computed_on(input_values, chip, format_name, DENSE).is_native
        except DataError:  # the chip has no peak for it
            return False

    def takes_blocks(format_name: str) -> bool:
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
            if is_native(format_name) and takes_blocks(format_name)
        ),
        wide,
    )
    return {DENSE: narrow, EXPERTS: narrow, ATTENTION: wide, "workload.cache_format": wide}


def uses_native_formats(formats_text: str) -> bool:
    """Say whether `workload.formats` asks for each chip's native formats.

    Raises:
        DataError: The text is neither `given` nor `native`.

    """
    refuse_unknown("formats", [formats_text], (GIVEN, NATIVE), "workload.formats")
    return formats_text == NATIVE


# Prefix of a list of alternative parts, among which the cheapest per chip-hour is chosen.
CHEAPEST = "cheapest of "
