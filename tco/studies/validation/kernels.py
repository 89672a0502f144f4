"""Measured kernels as questions to `tco kernel`: each row's chip, shape, format and library, many rows of one structure at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.performance.chip.formats import Computed
from tco.performance.chip.kernel_times import BARE, Kernel, kernel
from tco.performance.chip.products import kernels_on
from tco.studies.validation.commands import command_line
from tco.studies.validation.kernel_rows import Array, Kind, asked, cores_of, kinds_of, skips, targets, widths
from tco.studies.validation.measured import texts
from tco.studies.validation.row_values import CHIP, FAMILY, RowValues
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications

ANSWERS = {"time_us": "time_us", "tflops": "tflops", "gb_s": "gb_per_s"}  # what a row states -> key of `tco kernel`'s answer


def answers(made: Kernel) -> dict[str, Any]:
    """Return what a kernel's time is stated as."""
    return {"time_us": made.time * 1e6, "tflops": made.flops / made.time / 1e12, "gb_s": made.bytes / made.time / 1e9}


def commands(kind: Kind, sides: Mapping[str, Any], parts: Array) -> list[str]:
    """Return the command line that asks for the kernel of every row again."""
    attention = kind.kernel in ("prefill", "decode", "latent")
    options: dict[str, Any] = {"op": "attention" if attention else kind.kernel}
    options |= {"phase": kind.kernel if attention else None, "precision": kind.number_format}
    options["library"] = None if kind.library == BARE else kind.library
    named = {name.replace("_", "-"): side for name, side in sides.items() if name not in ("causal", "by_row", "even")}
    full = sides["causal"] == 0 if "causal" in sides else np.zeros(len(parts), dtype=bool)
    even = sides.get("even", np.zeros(len(parts)))
    flat = True if sides.get("by_row") is False else None
    found = []
    for row, part in enumerate(parts):
        own = {name: side[row] if np.ndim(side) else side for name, side in named.items()}
        found.append(
            command_line(["kernel", part], {**options, **own, "full": bool(full[row]) or None, "even": bool(even[row]) or None, "flat": flat}, {})
        )
    return found


class Question(NamedTuple):
    """Rows of one kind, asked together."""

    kind: Kind
    form: Computed
    rows: list[int]
    own: Specifications
    sides: dict[str, Any]
    cores: Array | None  # that the kernels had; None: the whole chip


class Reading(NamedTuple):
    """What the rows of a file say and ask."""

    table: pd.DataFrame
    target: Array
    names: Array
    skip: Array
    questions: list[Question]
    commands: Array


def reading(table: pd.DataFrame, chips: Specifications) -> Reading:
    """Return what the rows of a file ask; kept, as a fit asks it many times over."""
    kept: Reading | None = chips.kept.get("kernels")
    if kept is not None and kept.table is table:
        return kept
    whole = table.assign(width=widths(table))
    target, names = targets(whole)
    kinds = kinds_of(whole, chips)
    skip = skips(whole, chips, kinds, target)
    no_rate = (names == "tflops") & np.array([kind.kernel == "elementwise" for kind in kinds], dtype=bool)
    skip[(skip == "") & no_rate] = "unsupported target: TFLOP/s of an elementwise kernel"
    members: dict[Kind, list[int]] = {}
    for row in np.flatnonzero(skip == "").tolist():
        members.setdefault(kinds[row], []).append(row)
    questions, lines = [], np.full(len(table), "", dtype=object)
    for kind, rows in members.items():
        assert kind.form is not None
        some = whole.iloc[rows]
        cores = np.array([cores_of(chips.catalogue, text) for text in texts(some, "kernel_source")]) if kind.part_of_chip else None
        one = Question(kind, kind.form, rows, chips.rows(np.array(rows)), asked(kind, some), cores)
        questions.append(one)
        lines[rows] = commands(kind, one.sides if cores is None else {**one.sides, "cores": cores}, one.own.parts)
    made = chips.kept["kernels"] = Reading(table, target, names, skip, questions, lines)
    return made


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of kernels."""
    file = reading(table, chips)
    predicted = np.full((*chips.sets, len(table)), np.nan)
    for one in file.questions:
        one.own.found.clear()
        chip = kernels_on(RowValues(one.own), CHIP, FAMILY, one.kind.traits)
        found = answers(kernel(chip, one.kind.kernel, one.form, one.sides, one.kind.library, one.cores))
        predicted[..., one.rows] = np.select([file.names[one.rows] == name for name in found], list(found.values()))
    keys = np.array([ANSWERS.get(name, "") for name in file.names], dtype=object)
    return Prediction(file.target, predicted, file.names, file.skip.copy(), file.commands, keys, np.ones(len(table)))
