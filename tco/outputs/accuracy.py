"""The files of `data/accuracy/`: what a calibration says of its own errors, kind by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tco.catalog.accuracy import FILES
from tco.foundation.errors import UsageError
from tco.foundation.files import read_csv, write_atomically
from tco.outputs.table import to_csv

if TYPE_CHECKING:
    from tco.studies.validation.calibrate import Calibration


def write_accuracy(folder: Path, found: Mapping[str, Calibration], date: str) -> None:
    """Write the errors of some calibrations; what the folder holds of other kinds stays."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    made: dict[str, list[Sequence[Any]]] = {
        "kinds": [
            [kind, what, *figures(one, ("n", "median_ape", "p90_ape", "spearman")), date]
            for kind, fit in found.items()
            for what, one in fit.accuracy.items()
        ],
        "chips": [
            [kind, part, *figures(one, ("n", "median_ape", "p90_ape", "left_out")), date]
            for kind, fit in found.items()
            for part, one in fit.chips.items()
        ],
        "orders": [[kind, *figures(fit.order, ("pairs", "right", "ratio_error")), date] for kind, fit in found.items() if fit.order],
        "left_out": list(left_out_rows(found)),
    }
    for name, rows in made.items():
        path, columns = folder / f"{name}.csv", FILES[name]
        kept = [list(row.values()) for _, row in read_csv(path, columns) if row["kind"] not in found] if path.is_file() else []
        ordered: list[Sequence[Any]] = sorted([*kept, *rows], key=lambda row: str(row[0]))
        write_atomically(path, to_csv(columns, ordered))


def figures(found: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Return some figures at four decimals; None where there is none."""
    return tuple(round(found[name], 4) if isinstance(found[name], float) else found[name] for name in names)


def left_out_rows(found: Mapping[str, Calibration]) -> Iterator[tuple[Any, ...]]:
    """Yield the parameters of every refit, so that each left-out figure can be computed again without a fit."""
    for kind, made in found.items():
        for one in made.refits:
            for path, value in one.values.items():
                yield kind, one.left_out, one.member, path, float(f"{value:.9g}")
