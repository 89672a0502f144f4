"""Training job: model, workload, and software features by date, engine and family.

`data/training/software.csv` holds the month from which an engine has a feature. An input overrides
the file. Of the rows of a feature that hold, the last row counts.

Beyond the critical batch, the noise scale of the gradients, a larger batch saves few steps. The
scale belongs to model and data, so no workload states it. A user with a known scale sets
`workload.critical_batch`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError, unknown
from tco.core.files import read_csv
from tco.core.formula import formula
from tco.core.inputs import Readable, Values
from tco.core.memory import once_per_owner
from tco.core.trace import untraced_value
from tco.core.types import Quantity, Settings, TextMapping
from tco.core.units import Pure
from tco.models.architecture import Architecture
from tco.performance.chip.formats import element_size
from tco.performance.layer.chip_model import KernelComposition
from tco.performance.software_maturity import BY_DATE

FILE, ENGINES = "training/software.csv", "training/engines.csv"
KERNELS = "training/attention.csv"
COLUMNS = ("input", "value", "since", "engine", "family", "needs", "source", "note")
TODAY = "9999"
ATTENTION = "workload.attention"
CHOICES: dict[str, tuple[str, ...]] = {
    ATTENTION: (),  # any kernel of `training/attention.csv`
    "workload.dropout": ("yes", "no"),
    "workload.expert_kernels": ("fused", "grouped", "separate"),
    "workload.trained": ("all", "adapters"),
    "workload.gradient_sums": ("fused", "separate"),
    "workload.stage_transfers": ("overlapped", "exposed"),
    "workload.programs": ("eager", "compiled"),
    "workload.loss": ("whole", "chunked"),
}
# attention: the chip's own library or compiler, or scores kept in memory
GENERIC, UNFUSED = (
    "fused",
    "unfused",
)
DATED = ("workload.software", "workload.engine")  # what the features follow from
OF_FAMILY = "family"  # no engine in particular
# what plans the software offers
PLANS = (
    "plan.sequence_parallel",
    "plan.tp_overlap",
    "plan.micro_batches",
)
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
        return (
            self.since <= date
            and self.engine in ("", engine)
            and self.family in ("", family)
            and self.needs <= facts
        )


class Software(NamedTuple):
    """Software features of a training job."""

    attention: str = GENERIC  # the kernel: the owner of its rates on the chip
    dropout: bool = False
    fused_experts: bool = False  # experts run as few kernels, permutation and exchange inside them
    separate_experts: bool = False  # every expert has kernels of its own, which share no waves
    adapters: bool = False  # the model's weights stay; only small adapters are trained
    # products that make weight gradients add them to their sums themselves
    adds_in_product: bool = True
    overlaps: bool = True  # transfers between stages run beside compute
    # whole steps are compiled: no host launches kernels, nothing is computed again that no gradient
    # needs
    compiled: bool = False
    splits_sequences: bool = True  # sequence parallelism exists
    splits_collectives: bool = True  # collectives in pieces beside the products they feed
    # the loss takes the logits in chunks, which never lie in memory together
    chunks_loss: bool = False
    # a step is one micro-batch of every rank: no gradients are summed over several
    whole_batches: bool = False

    @property
    def fused(self) -> bool:
        """Say whether attention keeps its scores on the chip."""
        return self.attention != UNFUSED

    @property
    def programs(self) -> KernelComposition:
        """Composition of the chip's kernels under this software."""
        return KernelComposition(self.compiled, not self.fused_experts, self.separate_experts)


def facts_of(model: Architecture, precision: str) -> frozenset[str]:
    """Return the facts of a job that features of software may need.

    Args:
        model: Architecture of the model.
        precision: Format of the forward pass.

    Returns:
        The format, and `gated-experts` where the model has experts with gates.

    """
    gated = any(
        block.feed_forward.experts and block.feed_forward.matrices == GATED
        for block in model.blocks
    )
    return frozenset((precision, *(("gated-experts",) if gated else ())))


@once_per_owner
def _features(catalogue: Catalogue) -> dict[str, list[Feature]]:
    """Return the features of every input, as the data folders state them."""
    file_features: dict[str, list[Feature]] = {}
    for path in catalogue.folder_files(FILE):
        for _, feature_row in read_csv(path, COLUMNS):
            feature = Feature(
                feature_row["value"],
                feature_row["since"],
                feature_row["engine"],
                feature_row["family"],
                frozenset(feature_row["needs"].split()),
            )
            file_features.setdefault(feature_row["input"], []).append(feature)
    return file_features


class AttentionKernel(NamedTuple):
    """An attention kernel on the chips that it is written for."""

    name: str
    chips: tuple[str, ...]  # patterns
    owner: str  # of its rates on them

    def written_for(self, chip: str) -> bool:
        """Say whether a chip runs it."""
        return any(fnmatchcase(chip, pattern) for pattern in self.chips)


@once_per_owner
def attention_kernels(catalogue: Catalogue) -> list[AttentionKernel]:
    """Return the attention kernels, as the data folders state them."""
    columns = ("kernel", "chips", "owner", "source", "note")
    return [
        AttentionKernel(
            kernel_row["kernel"], tuple(kernel_row["chips"].split()), kernel_row["owner"]
        )
        for path in catalogue.folder_files(KERNELS)
        for _, kernel_row in read_csv(path, columns)
    ]


def _attention_owner(catalogue: Catalogue, word: str, chip: str) -> str:
    """Return the owner of a kernel's rates on a chip.

    Raises:
        DataError: No kernel is called so, or none of that name is written for the chip.

    """
    refuse_unknown_words(catalogue, {ATTENTION: word})
    written = {
        kernel.name: kernel.owner
        for kernel in attention_kernels(catalogue)
        if kernel.written_for(chip)
    }
    if word not in written:
        raise DataError(
            f"workload.attention is {word}, which is not written for {chip}; expected one of "
            f"{', '.join([*written, BY_DATE])}"
        )
    return written[word]


@once_per_owner
def engine_words(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return the words by which texts name training engines, each with the engine it means.

    Args:
        catalogue: Holds the data folders with `training/engines.csv`.

    Returns:
        Pairs (word, engine), in the order of the folders and of the rows.

    """
    return [
        (engine_row["word"], engine_row["engine"])
        for path in catalogue.folder_files(ENGINES)
        for _, engine_row in read_csv(path, ("word", "engine"))
    ]


def _training_engines(catalogue: Catalogue) -> list[str]:
    return sorted({engine for _, engine in engine_words(catalogue)})


def _software_month(texts: TextMapping) -> str:
    date = texts.get("workload.software", TODAY)
    return date if re.fullmatch(r"\d{4}(-\d{2}){0,2}", date) else TODAY


def setting_or_software_default(
    catalogue: Catalogue,
    path: str,
    texts: TextMapping,
    family: str,
    facts: frozenset[str],
) -> str:
    """Return the stated setting of an input, else the software's default.

    The text is empty where no feature has a default.

    Args:
        catalogue: Holds the features of training software.
        path: Path of the input.
        texts: Text inputs by path, with the date and the engine of the software.
        family: Family of the chip.
        facts: Facts of the job that features may need.

    """
    if (stated := texts.get(path, BY_DATE)) != BY_DATE:
        return stated
    offered_values = _available_feature_values(catalogue, path, texts, family, facts)
    return offered_values[-1] if offered_values else ""


def _available_feature_values(
    catalogue: Catalogue,
    path: str,
    texts: TextMapping,
    family: str,
    facts: frozenset[str] = frozenset(),
) -> list[str]:
    """Return the values of an input that the software offers.

    Only features available at the date of the software count. The last value is the default.
    """
    month, engine = _software_month(texts), texts.get("workload.engine", OF_FAMILY)
    return [
        feature.value
        for feature in _features(catalogue).get(path, ())
        if feature.holds(month, engine, family, facts)
    ]


def attention_of(catalogue: Catalogue, texts: TextMapping, family: str, chip: str) -> str:
    """Return the owner of a job's attention rates: as stated, or the chip's newest kernel."""
    if (stated := texts.get(ATTENTION, BY_DATE)) != BY_DATE:
        return _attention_owner(catalogue, stated, chip)
    written = {kernel.name for kernel in attention_kernels(catalogue) if kernel.written_for(chip)}
    *_, word = (
        word
        for word in _available_feature_values(catalogue, ATTENTION, texts, family)
        if word in written
    )
    return _attention_owner(catalogue, word, chip)


def known_words(catalogue: Catalogue) -> dict[str, tuple[str, ...]]:
    """Return the words that each input of training software may hold."""
    kernels = dict.fromkeys(kernel.name for kernel in attention_kernels(catalogue))
    return CHOICES | {ATTENTION: tuple(kernels)}


def refuse_unknown_words(catalogue: Catalogue, words: TextMapping) -> None:
    """Refuse a word that training software does not know.

    Args:
        catalogue: Names the attention kernels whose rate is known.
        words: The word by input path.

    Raises:
        DataError: If a word is none of those that its input may hold.

    """
    allowed = known_words(catalogue)
    for path, word in words.items():
        if word not in allowed[path]:
            raise unknown(path, word, [*allowed[path], BY_DATE])


def training_software(
    catalogue: Catalogue,
    texts: TextMapping,
    family: str,
    chip: str,
    facts: frozenset[str],
) -> Software:
    """Return the software features of a training job on a chip.

    The features follow from the text inputs `texts`.

    Args:
        catalogue: Holds engines, features and attention kernels.
        texts: Text inputs by path; the software decides a missing text by date and engine.
        family: Family of the chip.
        chip: Id of the chip.
        facts: Facts of the job that features may need.

    Raises:
        DataError: The engine or a text is unknown, or the attention kernel is not written for
            the chip.

    """
    engine = texts.get("workload.engine", OF_FAMILY)
    if engine != OF_FAMILY and engine not in _training_engines(catalogue):
        raise unknown(
            "engine of training",
            engine,
            [*_training_engines(catalogue), OF_FAMILY],
            "workload.engine",
        )
    feature_words = {
        path: setting_or_software_default(catalogue, path, texts, family, facts)
        for path in (*CHOICES, *PLANS)
    }
    refuse_unknown_words(
        catalogue, {path: feature_words[path] for path in CHOICES if path != ATTENTION}
    )
    return Software(
        attention=attention_of(catalogue, texts, family, chip),
        dropout=feature_words["workload.dropout"] == "yes",
        fused_experts=feature_words["workload.expert_kernels"] == "fused",
        separate_experts=feature_words["workload.expert_kernels"] == "separate",
        adapters=feature_words["workload.trained"] == "adapters",
        adds_in_product=feature_words["workload.gradient_sums"] == "fused",
        overlaps=feature_words["workload.stage_transfers"] == "overlapped",
        compiled=feature_words["workload.programs"] == "compiled",
        splits_sequences=feature_words["plan.sequence_parallel"] != "no",
        splits_collectives=feature_words["plan.tp_overlap"] != "no",
        chunks_loss=feature_words["workload.loss"] == "chunked",
        whole_batches=feature_words["plan.micro_batches"] == "one",
    )


@dataclass(slots=True)
class TrainingJob:
    """A model trained on a number of chips."""

    model: Architecture
    software: Software
    values: Settings
    # whole numbers; arrays where many jobs are asked together, of which no plans are sought
    chips: Any
    batch: int = 0  # sequences of a step
    length: int = 0  # tokens of a sequence
    # plans that the program chooses fall short of the best as those of long runs do
    deployed: bool = False

    def value(self, parameter_name: str) -> Any:
        """Return one of the parameters all training runs share."""
        return self.values[f"performance.training.{parameter_name}"]

    @property
    def sequences(self) -> Any:
        """Sequences of a step, as the values give them."""
        return self.values["workload.global_batch"]

    @property
    def sequence(self) -> Any:
        """Tokens of a sequence, as the values give them."""
        return self.values["workload.sequence_length"]

    @property
    def wide_size(self) -> Quantity:
        """Bytes of a number in BF16."""
        return element_size(16)


def _integer_input(input_values: Readable, path: str) -> int:
    number = input_values.structure(path)
    if number != int(number):
        raise DataError(f"{path} is {number:g}, expected a whole number: plans divide it")
    return int(number)


def training_job(
    model: Architecture, software: Software, input_values: Readable, deployed: bool = False
) -> TrainingJob:
    """Return the job of a workload.

    Args:
        model: Architecture of the model.
        software: Software features of the job.
        input_values: Inputs by path; they give chips, sequences of a step and tokens of a sequence.
        deployed: Whether chosen plans fall short of the best as those of long runs do.

    Raises:
        DataError: The chips, the batch or the sequence length are no whole number.

    """
    chips, batch, length = (
        _integer_input(input_values, path)
        for path in ("cluster.chips", "workload.global_batch", "workload.sequence_length")
    )
    return TrainingJob(model, software, input_values, chips, batch, length, deployed)


CRITICAL = "workload.critical_batch"


@formula("", source="mccandlish2018")
def steps_over_least(sequences: Pure, sequence: Pure, critical_batch: Pure) -> Quantity:
    """Steps to a loss over the fewest any batch takes: S / S_min = 1 + B_n / (B s)."""
    return 1 + critical_batch / (sequences * sequence)


@formula("", source="mccandlish2018")
def tokens_over_least(sequences: Pure, sequence: Pure, critical_batch: Pure) -> Quantity:
    """Tokens to a loss over the fewest any batch takes: E / E_min = 1 + B s / B_n."""
    return 1 + sequences * sequence / critical_batch


def notes_on_batch(input_values: Values) -> list[str]:
    """Return notes on the steps and tokens that the batch costs.

    The list is empty without a stated critical batch, and for many draws at once.

    Args:
        input_values: Inputs by path, with the batch in sequences and the sequence length in tokens.

    """
    if not input_values.has(CRITICAL):
        return []
    batch = (
        input_values["workload.global_batch"],
        input_values["workload.sequence_length"],
        input_values[CRITICAL],
    )
    steps = untraced_value(steps_over_least(*batch))
    tokens = untraced_value(tokens_over_least(*batch))
    if np.ndim(steps):
        return []  # many draws at once
    return [
        f"to the same loss this batch takes {float(steps):.3g} x the fewest steps and "
        f"{float(tokens):.3g} x the fewest tokens"
    ]
