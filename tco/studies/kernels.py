"""One kernel on one chip, asked by anyone: its time, what it consists of, how it is cut, and the bound that binds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tco.catalog import Catalogue
from tco.foundation.errors import DataError, UsageError, unknown
from tco.foundation.values import Values
from tco.performance.chip.formats import Computed, computed_on, family_of
from tco.performance.chip.kernel_times import BARE, SHAPES, Kernel, chip_on, kernel
from tco.performance.chip.products import Tiling, operands, tiling, traits_of

OPERATIONS = ("gemm", "grouped", "experts", "attention", "elementwise")
PHASES = ("prefill", "decode", "latent")
STATED = {  # what the rows of practice of a library state that runs a kernel
    "gemm": "casts_activations",
    "grouped": "casts_activations",
    "experts": "expert_stages",
    "prefill": "prefill_stages",
    "decode": "decode_stages",
    "latent": "latent_stages",
    "elementwise": "casts_activations",
}


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """A kernel that was asked for, and the answer."""

    chip: str
    operation: str  # of the shapes of kernels
    form: Computed
    library: str
    shape: dict[str, Any]
    made: Kernel
    cut: Tiling | None
    peak: float

    @property
    def bound(self) -> str:
        """Name of the longest part."""
        return max(self.made.parts, key=lambda name: float(self.made.parts[name]))

    @property
    def rate(self) -> float:
        """FLOP a second."""
        return float(self.made.flops / self.made.time)


def operation_of(name: str, phase: str) -> str:
    """Return which kernel an operation and the phase of its attention mean."""
    if name not in OPERATIONS:
        raise unknown("operation", name, OPERATIONS, "--op")
    if phase not in PHASES:
        raise unknown("phase", phase, PHASES, "--phase")
    return phase if name == "attention" else name


def asked(
    catalogue: Catalogue,
    values: Values,
    chip: str,
    operation: str,
    precision: str,
    sides: Mapping[str, Any],
    library: str | None,
    cores: float | None = None,
) -> KernelAnswer:
    """Return a kernel's answer; sides that its operation does not take are left out, one that is not stated raises `UsageError`."""
    family_of(catalogue, chip)
    missing = [name for name in SHAPES[operation] if sides.get(name) is None]
    if missing:
        raise UsageError(f"{operation} needs {', '.join('--' + name.replace('_', '-') for name in missing)}")
    known = sorted(family for family, name in catalogue.calibration_rows if name == STATED[operation])
    if library is not None and library not in known:
        raise unknown("library", library, known, "--library")
    shape = {name: sides[name] for name in SHAPES[operation]}
    if cores is not None:
        refuse_cores(catalogue, values, chip, operation, cores)
    form, on = computed_on(values, chip, precision, "kernel.precision"), chip_on(catalogue, values, chip)
    made = kernel(on, operation, form, shape, library or BARE, cores)
    if not 0 < float(made.time) < math.inf:
        raise DataError(f"{operation} of {', '.join(f'{name} {side:g}' for name, side in shape.items())}: takes no finite time")
    cut = tiling(operands(on, form), *(shape[name] for name in SHAPES[operation])) if operation in ("gemm", "grouped") else None
    return KernelAnswer(chip, operation, form, library or BARE, shape, made, cut, float(values[f"parts.{chip}.{form.peak}"]))


def refuse_cores(catalogue: Catalogue, values: Values, chip: str, operation: str, cores: float) -> None:
    """Refuse a part of the cores of a chip that has them all at work, more cores than there are, and kernels other than products."""
    if operation not in ("gemm", "grouped") or not traits_of(catalogue, chip).logical:
        raise UsageError("--cores: only products on chips whose cores software hands out may have some of them")
    every = values.structure(f"parts.{chip}.cores")
    if cores > every:
        raise UsageError(f"--cores {cores:g}: {chip} has {every:g}")
