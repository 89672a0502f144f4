"""What the software of a training job does: the features it has by its date, its engine and the family of its chips.

`data/training/software.csv` says since when an engine has a feature; an input states it where somebody knows better. Of the rows
of a feature that hold, the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.foundation.errors import DataError, unknown
from tco.foundation.files import read_csv
from tco.models.architecture import Architecture

FILE, ENGINES = "training/software.csv", "training/engines.csv"
COLUMNS = ("input", "value", "since", "engine", "family", "needs", "source", "note")
TODAY = "9999"
CHOICES: dict[str, tuple[str, ...]] = {
    "workload.attention": (),  # any kernel whose share of today's rate is known
    "workload.dropout": ("yes", "no"),
    "workload.expert_kernels": ("fused", "grouped", "separate"),
    "workload.trained": ("all", "adapters"),
    "workload.gradient_sums": ("fused", "separate"),
    "workload.stage_transfers": ("overlapped", "exposed"),
    "workload.programs": ("eager", "compiled"),
    "workload.loss": ("whole", "chunked"),
}
BEST, UNFUSED = "fused", "unfused"  # attention: today's kernel, or scores kept in memory
NATIVE = "native"  # as the software has it by its date
DATED = ("workload.software", "workload.engine")  # what the features follow from
MATURE, OF_FAMILY = "mature", "family"  # software of today, and no engine in particular
PLANS = ("plan.sequence_parallel", "plan.tp_overlap", "plan.micro_batches")  # what plans the software offers


GATED = 3  # matrices of a feed-forward part


class Feature(NamedTuple):
    """A feature that software has from some month on."""

    value: str
    since: str
    engine: str  # empty: every one
    family: str  # of chips; empty: every one
    needs: frozenset[str]  # facts of a job without which it does nothing

    def holds(self, date: str, engine: str, family: str, facts: frozenset[str]) -> bool:
        """Say whether software of a date has it for a job."""
        return self.since <= date and self.engine in ("", engine) and self.family in ("", family) and self.needs <= facts


class Software(NamedTuple):
    """What the software of a job does."""

    attention: str = BEST  # the kernel
    dropout: bool = False
    fused_experts: bool = False  # experts run as few kernels, permutation and exchange inside them
    separate_experts: bool = False  # every expert has kernels of its own, which share no waves
    adapters: bool = False  # the model's weights stay; only small adapters are trained
    adds_in_product: bool = True  # products that make weight gradients add them to their sums themselves
    overlaps: bool = True  # transfers between stages run beside compute
    compiled: bool = False  # whole steps are compiled: no host launches kernels, nothing is computed again that no gradient needs
    splits_sequences: bool = True  # sequence parallelism exists
    splits_collectives: bool = True  # collectives in pieces beside the products they feed
    chunks_loss: bool = False  # the loss takes the logits in chunks, which never lie in memory together
    whole_batches: bool = False  # a step is one micro-batch of every rank: no gradients are summed over several

    @property
    def fused(self) -> bool:
        """Say whether attention keeps its scores on the chip."""
        return self.attention != UNFUSED


def feature_of(row: Mapping[str, str]) -> Feature:
    """Return the feature of a row."""
    return Feature(row["value"], row["since"], row["engine"], row["family"], frozenset(row["needs"].split()))


def facts_of(model: Architecture, precision: str) -> frozenset[str]:
    """Return the facts of a job that features may need: the format of the forward pass, and experts with gates."""
    gated = any(block.feed_forward.experts and block.feed_forward.matrices == GATED for block in model.blocks)
    return frozenset((precision, *(("gated-experts",) if gated else ())))


def features(catalogue: Catalogue) -> dict[str, list[Feature]]:
    """Return the features of every input, as the data folders state them."""

    def read() -> dict[str, list[Feature]]:
        found: dict[str, list[Feature]] = {}
        for folder in catalogue.folders:
            if (path := folder / FILE).is_file():
                for _, row in read_csv(path, COLUMNS):
                    found.setdefault(row["input"], []).append(feature_of(row))
        return found

    made: dict[str, list[Feature]] = catalogue.once(FILE, read)
    return made


def engine_words(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return the words by which texts name training engines, each with the engine it means."""

    def read() -> list[tuple[str, str]]:
        paths = [path for folder in catalogue.folders if (path := folder / ENGINES).is_file()]
        return [(row["word"], row["engine"]) for path in paths for _, row in read_csv(path, ("word", "engine"))]

    made: list[tuple[str, str]] = catalogue.once(ENGINES, read)
    return made


def engines(catalogue: Catalogue) -> list[str]:
    """Return the engines of training that are known."""
    return sorted({engine for _, engine in engine_words(catalogue)})


def month_of(texts: Mapping[str, str]) -> str:
    """Return the month of the software; one that is none raises `DataError`."""
    date = texts.get("workload.software", MATURE)
    if date != MATURE and not re.fullmatch(r"\d{4}(-\d{2}){0,2}", date):
        raise DataError(f"workload.software is {date!r}, expected the month of its release, such as 2024-06, or {MATURE}")
    return TODAY if date == MATURE else date


def held(catalogue: Catalogue, path: str, texts: Mapping[str, str], family: str, facts: frozenset[str] = frozenset()) -> str:
    """Return what the software does for an input, unless it is stated; empty where no feature says so."""
    if (stated := texts.get(path, NATIVE)) != NATIVE:
        return stated
    month, engine = month_of(texts), texts.get("workload.engine", OF_FAMILY)
    found = [one.value for one in features(catalogue).get(path, ()) if one.holds(month, engine, family, facts)]
    return found[-1] if found else ""


def software_of(catalogue: Catalogue, texts: Mapping[str, str], family: str, facts: frozenset[str] = frozenset()) -> Software:
    """Return what software does, from the inputs that are texts; an unknown one raises `DataError`."""
    engine = texts.get("workload.engine", OF_FAMILY)
    if engine != OF_FAMILY and engine not in engines(catalogue):
        raise unknown("engine of training", engine, [*engines(catalogue), OF_FAMILY], "workload.engine")
    said = {path: held(catalogue, path, texts, family, facts) for path in (*CHOICES, *PLANS)}
    kernels = sorted(name for name, attribute in catalogue.calibration_rows if attribute == "attention_share")
    for path, allowed in (CHOICES | {"workload.attention": (BEST, UNFUSED, *kernels)}).items():
        if said[path] not in allowed:
            raise unknown(path, said[path], [*allowed, NATIVE])
    return Software(
        attention=said["workload.attention"],
        dropout=said["workload.dropout"] == "yes",
        fused_experts=said["workload.expert_kernels"] == "fused",
        separate_experts=said["workload.expert_kernels"] == "separate",
        adapters=said["workload.trained"] == "adapters",
        adds_in_product=said["workload.gradient_sums"] == "fused",
        overlaps=said["workload.stage_transfers"] == "overlapped",
        compiled=said["workload.programs"] == "compiled",
        splits_sequences=said["plan.sequence_parallel"] != "no",
        splits_collectives=said["plan.tp_overlap"] != "no",
        chunks_loss=said["workload.loss"] == "chunked",
        whole_batches=said["plan.micro_batches"] == "one",
    )
