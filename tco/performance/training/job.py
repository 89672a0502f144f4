"""What a training job rests on: a model, its software and the workload, read from the catalogue's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tco.foundation.errors import DataError
from tco.foundation.values import Readable
from tco.models.architecture import Architecture
from tco.performance.chip.formats import element_size
from tco.performance.training.software import Software


@dataclass(slots=True)
class Job:
    """A model trained on a number of chips."""

    model: Architecture
    software: Software
    values: Mapping[str, Any]
    chips: Any  # whole numbers; arrays where many jobs are asked together, of which no plans are sought
    batch: int = 0  # sequences of a step
    length: int = 0  # tokens of a sequence

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
    number = values.structure(path)
    if number != int(number):
        raise DataError(f"{path} is {number:g}, expected a whole number: plans divide it")
    return int(number)


def job_of(model: Architecture, software: Software, values: Readable) -> Job:
    """Return the job of a workload."""
    return Job(model, software, values, *(whole(values, path) for path in ("cluster.chips", "workload.global_batch", "workload.sequence_length")))
