"""Corrections of serving-engine kernel times, learnt from tables of measured shapes.

The corrected time t' follows from the physical time t:

    t' = t exp(a + b_t(t) + b_1(x_1) + b_2(x_2))

Each b bends at four places of a logarithm and is level beyond them. The time itself separates the
cost of a start from the cost of a rate. Two sides of the shape show for which shapes a kernel was
written.

`data/engine_kernels.csv` has a row for every engine, kernel, release, format and chip (fitted by
`tco.validation.engine_kernels`). A further row serves chips without a table: it holds the common
part of the measured chips. Where no table has the kernel, the physical time stands. An answer names
the kernel by the words of its publisher, ENGINE/KERNEL@RELEASE. A release without a table takes the
release before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.rows import parse_finite_number
from tco.core.elementwise import as_array, exp, log
from tco.core.errors import DataError, unknown
from tco.core.files import read_csv
from tco.core.formula import formula, maximum, minimum
from tco.core.memory import once_per_owner
from tco.core.types import FloatArray, JsonMapping, Quantity
from tco.core.units import Pure, Second

Shape = JsonMapping
NAMED = ("operation", "kernel", "format", "chip")
LEVEL = "level"
BENDS = tuple(
    f"{of}_{piece_number}" for of in ("time", "first", "second") for piece_number in (1, 2, 3)
)
COLUMNS = (*NAMED, "rows", LEVEL, *BENDS, "spread", "as_of", "source")
ANY = "any"  # a chip that no table of the kernel is of
TIMES = (3e-6, 3e-5, 3e-4, 3e-3)  # seconds at which a correction bends
Places = tuple[float, float, float, float]


class CorrectionDimension(NamedTuple):
    """A side of the shape that a correction follows, and where it bends."""

    of: Callable[[Shape], Quantity]
    bend_points: Places


RANKS = CorrectionDimension(itemgetter("ranks"), (2, 4, 8, 72))
SIDES: dict[str, tuple[CorrectionDimension, CorrectionDimension]] = {  # by operation
    "gemm": (
        CorrectionDimension(itemgetter("m"), (1, 16, 256, 4096)),
        CorrectionDimension(itemgetter("k"), (64, 512, 4096, 16384)),
    ),
    "experts": (
        CorrectionDimension(
            lambda shape: shape["tokens"] * shape["topk"] / shape["experts"], (0.06, 1, 16, 256)
        ),
        CorrectionDimension(itemgetter("width"), (64, 256, 1024, 4096)),
    ),
    "prefill": (
        CorrectionDimension(itemgetter("seq_q"), (16, 256, 2048, 16384)),
        CorrectionDimension(itemgetter("head_dim"), (64, 128, 256, 512)),
    ),
    "decode": (
        CorrectionDimension(itemgetter("seq_kv"), (4, 64, 1024, 16384)),
        CorrectionDimension(lambda shape: shape["heads"] / shape["kv_heads"], (1, 4, 16, 64)),
    ),
    "latent": (
        CorrectionDimension(itemgetter("seq_kv"), (4, 64, 1024, 16384)),
        CorrectionDimension(itemgetter("heads"), (1, 8, 32, 128)),
    ),
    "all-reduce": (
        CorrectionDimension(itemgetter("size"), (1e3, 1e5, 1e7, 1e9)),
        RANKS,
    ),
    **dict.fromkeys(
        ("dispatch", "combine"),
        (CorrectionDimension(itemgetter("tokens"), (16, 128, 1024, 16384)), RANKS),
    ),
}


@formula("", source="tco-calibration")
def bend(
    x: Pure,
    point_1: Pure,
    point_2: Pure,
    point_3: Pure,
    point_4: Pure,
    low: Pure,
    middle: Pure,
    high: Pure,
) -> Quantity:
    """Logarithm of a factor that is linear in ln x between each two of four points, level beyond.

    f = sum_i s_i (clamp(ln x, ln p_i, ln p_i+1) - ln p_i).
    """
    first = minimum(maximum(log(x / point_1), 0), log(point_2 / point_1))
    second = minimum(maximum(log(x / point_2), 0), log(point_3 / point_2))
    third = minimum(maximum(log(x / point_3), 0), log(point_4 / point_3))
    return low * first + middle * second + high * third


@formula("", source="tco-calibration")
def over_shortest(time: Second, shortest: Second = 3e-6) -> Quantity:
    """A time over the shortest at which corrections bend: t / 3 us."""
    return time / shortest


@formula("s", source="tco-calibration")
def corrected_time(
    time: Second, level: Pure, by_time: Pure, by_first: Pure, by_second: Pure
) -> Quantity:
    """Time of a kernel as an engine runs it: t' = t exp(a + b_t + b_1 + b_2)."""
    return time * exp(level + by_time + by_first + by_second)


class Correction(NamedTuple):
    """Fitted correction of a kernel's time on one chip.

    Fields may be arrays over rows of several chips.
    """

    level: Quantity
    slopes: tuple[Quantity, ...]  # by time, first and second side: three each
    spread: float = 0.0  # of the logarithm of single shapes about it
    kernel: str = ""
    chip: str = ""

    def of(self, operation: str, time: Any, shape: Shape) -> Any:
        """Return the time of a kernel that physics gives some time."""
        first, second = SIDES[operation]
        by_time = bend(
            over_shortest(time), *(bend_time / TIMES[0] for bend_time in TIMES), *self.slopes[:3]
        )
        by_first = bend(first.of(shape), *first.bend_points, *self.slopes[3:6])
        return corrected_time(
            time,
            self.level,
            by_time,
            by_first,
            bend(second.of(shape), *second.bend_points, *self.slopes[6:]),
        )


PHYSICS = Correction(0.0, (0.0,) * len(BENDS))  # leaves a time as it is
# by operation, kernel and format, of each chip
Known = dict[tuple[str, str, str], dict[str, Correction]]


@once_per_owner
def corrections(catalogue: Catalogue) -> Known:
    """Return the kernel corrections of all data folders; the last folder overrides the others."""
    table_corrections: Known = {}
    for path in catalogue.folder_files("engine_kernels.csv"):
        for line, table_row in read_csv(path, COLUMNS):
            level, *slopes, spread = (
                parse_finite_number(table_row[column_name], column_name, f"{path}:{line}")
                for column_name in (LEVEL, *BENDS, "spread")
            )
            chip_correction = Correction(
                level, tuple(slopes), spread, table_row["kernel"], table_row["chip"]
            )
            table_corrections.setdefault(
                (table_row["operation"], table_row["kernel"], table_row["format"]), {}
            )[table_row["chip"]] = chip_correction
    return table_corrections


def is_of_engine(kernel_name: str) -> bool:
    """Say whether the name of a kernel has the form ENGINE/KERNEL.

    Args:
        kernel_name: Name of the kernel.

    """
    return "/" in kernel_name


def release(kernel_name: str) -> tuple[str, tuple[int, ...]]:
    """Return the kernel of a name such as "moe@1.2" and its release numbers, empty without one."""
    kernel, _, version = kernel_name.partition("@")
    return kernel, tuple(map(int, re.findall(r"\d{1,18}", version)))


def nearest_release(
    catalogue: Catalogue, operation: str, engine_kernel: str, form: str
) -> str | None:
    """Return a kernel's name with the newest listed release that is not after the requested one.

    Without an earlier release it is the first; without a requested release it is the last.
    """
    kernel, release_numbers = release(engine_kernel)
    kernel_names = (
        kernel_name
        for of, kernel_name, stored in corrections(catalogue)
        if (of, stored) == (operation, form)
    )
    release_names = sorted(
        (kernel_name for kernel_name in kernel_names if release(kernel_name)[0] == kernel),
        key=release,
    )
    before = [
        kernel_name
        for kernel_name in release_names
        if not release_numbers or release(kernel_name)[1] <= release_numbers
    ]
    if before:
        return before[-1]
    return release_names[0] if release_names else None


def correction(
    catalogue: Catalogue, operation: str, engine_kernel: str, form: str, chip: str
) -> Correction | None:
    """Return the correction of a kernel's time on a chip, or None.

    A chip without a table takes the common part of the measured chips. The result is None where no
    table has the kernel.
    """
    kernel_name = nearest_release(catalogue, operation, engine_kernel, form)
    if kernel_name is None:
        return None
    chips = corrections(catalogue)[operation, kernel_name, form]
    return chips.get(chip, chips.get(ANY))


def asked_correction(
    catalogue: Catalogue, operation: str, engine_kernel: str, form: str, chip: str, option: str
) -> Correction:
    """Return the correction of a kernel that a user names.

    Args:
        catalogue: Names the data folders.
        operation: Operation of the kernel, a key of `SIDES`.
        engine_kernel: Name of the kernel, ENGINE/KERNEL.
        form: Number format of the kernel.
        chip: Part id of the chip.
        option: Option that stands before the text of an error.

    Raises:
        DataError: No table has kernels of the operation, or the kernel in the format.

    """
    if operation not in SIDES:
        raise DataError(
            f"{option}: no table of engines has {operation} kernels; there are {', '.join(SIDES)}"
        )
    chip_correction = correction(catalogue, operation, engine_kernel, form, chip)
    if chip_correction is None:
        kernel_names = sorted(
            {
                kernel_name
                for of, kernel_name, stored in corrections(catalogue)
                if (of, stored) == (operation, form)
            }
        )
        raise unknown(f"engine's {operation} kernel in {form}", engine_kernel, kernel_names, option)
    return chip_correction


def correction_of_rows(
    catalogue: Catalogue, operation: str, engine_kernel: str, form: str, chips: Iterable[str]
) -> Correction | None:
    """Return the correction of a kernel's time on each row's chip.

    A chip without a correction keeps the physical time.

    Args:
        catalogue: Names the data folders.
        operation: Operation of the kernel.
        engine_kernel: Name of the kernel, ENGINE/KERNEL.
        form: Number format of the kernel.
        chips: Part id of the chip of each row.

    Returns:
        Correction whose level and slopes are arrays of shape (rows,); None where no table has the
        kernel.

    """
    if nearest_release(catalogue, operation, engine_kernel, form) is None:
        return None
    of_chip = cache(partial(correction, catalogue, operation, engine_kernel, form))
    row_corrections = [of_chip(chip) or PHYSICS for chip in chips]
    level, *slopes = np.array(
        [(row_correction.level, *row_correction.slopes) for row_correction in row_corrections]
    ).T
    return Correction(level, tuple(slopes))


def correction_design_matrix(
    operation: str, time: Quantity, shape: Shape, count: int
) -> FloatArray:
    """Return the design matrix of a correction, one row per kernel.

    The first column is 1. The further columns hold the pieces of the time and of both sides.

    Args:
        operation: Operation of the kernels, a key of `SIDES`.
        time: Physical time of each kernel in s, a number or shape (count,).
        shape: Sizes of the kernels by name, each a number or of shape (count,).
        count: Number of kernels.

    Returns:
        Array of shape (count, 10): level, then three pieces each of time, first and second side.

    """
    bent = [
        (over_shortest(time), tuple(bend_time / TIMES[0] for bend_time in TIMES)),
        *((side.of(shape), side.bend_points) for side in SIDES[operation]),
    ]
    columns = [bend(x, *bend_points, *slopes) for x, bend_points in bent for slopes in np.eye(3)]
    return np.array(
        [np.ones(count), *(np.broadcast_to(as_array(column), count) for column in columns)]
    ).T
