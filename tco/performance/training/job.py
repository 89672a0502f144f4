"""What a training job rests on: the workload, read from the catalogue's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tco.foundation.errors import DataError, unknown
from tco.foundation.trace import plain
from tco.models.architecture import Architecture
from tco.performance.chip.formats import element_size

TODAY = ("fused", "unfused")  # attention: the best kernel of the day, or scores kept in memory
CHOICES = {
    "workload.attention": ("fused", "unfused"),
    "workload.dropout": ("yes", "no"),
    "workload.expert_kernels": ("fused", "separate"),
    "workload.trained": ("all", "adapters"),
}


class Readable(Protocol):
    """Values by path."""

    def __getitem__(self, path: str, /) -> Any:
        """Return the value of a path."""


@dataclass(slots=True)
class Job:
    """A model trained on a number of chips."""

    model: Architecture
    chips: Any  # whole numbers
    batch: int  # sequences of a step
    length: int  # tokens of a sequence
    fused: bool
    dropout: bool
    values: Readable
    fused_experts: Any = False  # experts run as few kernels, permutation and exchange inside them
    frozen: bool = False  # the model's weights stay; only small adapters are trained
    attention: str = "fused"  # the kernel of attention, a name of practice where it is older than today's
    adds_in_product: bool = True  # products that make weight gradients add them to their sums themselves
    overlaps: bool = True  # transfers between stages run beside compute
    compiled: bool = False  # steps are compiled: nothing is computed again that no gradient needs, and no host launches kernels

    def value(self, name: str) -> Any:
        """Return one of the parameters all training runs share."""
        return self.values[f"performance.training.{name}"]

    @property
    def sequences(self) -> Any:
        """Sequences of a step, as the values give them."""
        return self.values["workload.global_batch"]

    @property
    def sequence(self) -> Any:
        """Tokens of a sequence, as the values give them."""
        return self.values["workload.sequence_length"]

    @property
    def wide_size(self) -> Any:
        """Bytes of a number in BF16."""
        return element_size(16)


def whole(values: Readable, path: str) -> int:
    """Return an input that must be a whole number, as plans divide by it."""
    number = float(plain(values[path]))
    if number != int(number):
        raise DataError(f"{path} is {number:g}, expected a whole number: plans divide it")
    return int(number)


def job_of(model: Architecture, texts: dict[str, str], values: Readable) -> Job:
    """Return the job of a workload; `texts` are its inputs that are no numbers."""
    for path, allowed in CHOICES.items():
        if texts[path] not in allowed:
            raise unknown(path, texts[path], allowed)
    chips, batch, length = (whole(values, path) for path in ("cluster.chips", "workload.global_batch", "workload.sequence_length"))
    return Job(
        model,
        chips,
        batch,
        length,
        fused=texts["workload.attention"] == "fused",
        dropout=texts["workload.dropout"] == "yes",
        values=values,
        fused_experts=texts["workload.expert_kernels"] == "fused",
        frozen=texts["workload.trained"] == "adapters",
    )
