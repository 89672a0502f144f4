"""Which measurements would notice: how far the errors of the rows that travel with the program move between the two ends of an input.

Every row is predicted as it is when it is scored, with the input at its value, its P5 and its P95. What moves no row is constrained by none:
its range is what is believed of it, and nothing that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tco.catalog import Catalogue
from tco.chain.inputs import plain_inputs
from tco.foundation.errors import DataError
from tco.foundation.files import data_directory
from tco.foundation.provenance import Input
from tco.foundation.values import as_number
from tco.studies.comparison import Notice
from tco.studies.ranges import Array
from tco.studies.validation.by_part import tried
from tco.studies.validation.measured import read_measured, texts
from tco.studies.validation.run import PREDICTORS
from tco.studies.validation.specifications import Specifications

STILL = 1e-9  # relative change of a prediction that is none


def evidence_of(catalogue: Catalogue, inputs: Mapping[str, Input]) -> list[Notice]:
    """Return how some inputs show in the rows that travel with the program; an input that shows in none is left out."""
    asked = [one for one in inputs.values() if one.path.startswith("performance.") and one.low is not None and one.high is not None]
    found: dict[tuple[str, str], list[Array]] = {}
    for file in sorted((data_directory() / "measured").glob("*.csv.gz")) if asked else ():
        for kind, logs in errors_in(catalogue, file, asked):
            for at, one in enumerate(asked):
                own = logs[[1 + 2 * at, 0, 2 + 2 * at]]
                moved = (np.abs(own - own[1]) > STILL).any(axis=0)
                if moved.any():
                    found.setdefault((one.path, kind), []).append(own[:, moved])
    notices = []
    for (path, kind), parts in found.items():
        every = np.concatenate(parts, axis=1)
        notices.append(Notice(path, kind, every.shape[1], tuple(np.sqrt(np.mean(every**2, axis=1)).tolist())))
    return notices


def errors_in(catalogue: Catalogue, file: Path, asked: Sequence[Input]) -> Iterator[tuple[str, Array]]:
    """Yield the kind of a file, and the logarithms of the errors of each chip's rows: all inputs at their values first, then each at both ends."""
    kind, table = read_measured(file)
    values = plain_inputs(catalogue, {}).values(as_number)
    chips = Specifications(catalogue, values, texts(table, "accelerator"))
    sets = 1 + 2 * len(asked)
    for at, one in enumerate(asked):
        column = np.full((sets, 1), one.value)
        column[1 + 2 * at :][:2, 0] = one.low, one.high
        values[one.path] = column
    for part in sorted({*chips.parts} - {""}):
        rows = chips.parts == part
        made = tried(PREDICTORS[kind], table[rows].reset_index(drop=True), chips.rows(rows))
        if not isinstance(made, DataError) and (scored := made.skip == "").any():
            yield kind, np.log(np.broadcast_to(made.predicted, (sets, int(rows.sum())))[:, scored] / made.target[scored])
