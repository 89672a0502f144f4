"""Validation of one file: read, predict, score, with the errors the same model made on what was
left out of its fit.

Rows that are not scored say why to the point: which name is unknown and what it may mean, and which
column is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import errors_of
from tco.core.errors import DataError, UsageError, unknown
from tco.core.inputs import Values
from tco.core.types import AnyArray, JsonObject
from tco.performance.serving.plans import tokens_of_drafts
from tco.validation import collectives, deployments, inference, kernels, open_loop, training
from tco.validation.measured import (
    columns_known,
    mapped,
    numeric_column,
    of_text,
    read_measured,
    refused,
    texts,
)
from tco.validation.naming import read_models, renamed, unread_accelerators
from tco.validation.score import OFFLINE, Prediction, predict_by_accelerator, scorecard
from tco.validation.specifications import Specifications, command_line
from tco.validation.unstated import ranged
from tco.validation.wording import interpret_note

POOLS = ("prefill_gpus", "prefill_workers", "decode_gpus", "decode_workers")


def detailed_skip_reasons(
    table: pd.DataFrame, skip: AnyArray, kind: str, catalogue: Catalogue
) -> AnyArray:
    """Return the reasons of a file of a kind, each with what its row lacks."""
    said = {"unknown-accelerator": unread_accelerators(catalogue, texts(table, "accelerator"))}
    if "model" in table:
        said["unknown-model"] = read_models(catalogue, table)[1]
    for reason, columns in columns_known()["wanted"].items():
        if np.any(skip == reason):
            said[reason] = lacking(table, reason, columns, catalogue)
    found = np.where(
        skip == "unstated result",
        f"unstated result: none of {', '.join(columns_known()['kinds'][kind]['targets'])}",
        skip,
    )
    for reason, details in said.items():
        found = np.where(found == reason, details, found)
    return np.asarray(found, dtype=object)


def lacking(
    table: pd.DataFrame, reason: str, columns: Sequence[str], catalogue: Catalogue
) -> AnyArray:
    """Return a reason with the columns that every row leaves blank; with all of them where what
    stands in them is not enough.
    """
    blank = {name: blanks(table, name) for name in columns}
    if set(POOLS) <= set(columns):
        apart = mapped(
            texts(table, "disaggregated"),
            lambda text: interpret_note(catalogue, "answer", str(text)) == "yes",
            bool,
        )
        blank |= {name: blank[name] & apart for name in POOLS}
    named = (", ".join(name for name in columns if blank[name][row]) for row in range(len(table)))
    return np.array([f"{reason}: {names or ', '.join(columns)}" for names in named], dtype=object)


def blanks(table: pd.DataFrame, name: str) -> AnyArray:
    """Say of every row whether a column is blank or zero."""
    if of_text(name):
        return np.array([not str(text).strip() for text in texts(table, name)], dtype=bool)
    return np.asarray(~(np.nan_to_num(numeric_column(table, name)) > 0))


TARGET = "acceptance_length_tokens_per_step"
# any system's time of a token rests on the tokens of a step, beside the step
ASKED = (
    "b200-hgx8",
    "tpot_s",
)
KEY = "tree/inputs/1/value"


def accepted_lengths(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of lengths that steps of speculative decoding are accepted at: so
    many drafts, at the chances a workload states.
    """
    drafts, target = numeric_column(table, "draft_tokens"), numeric_column(table, TARGET)
    skip = refused(
        table,
        (~(drafts > 0), "unstated drafts"),
        (np.isnan(target), "unstated result"),
        (
            (target < 1) | (target > drafts + 1),
            "suspect: fewer tokens than the step's own, or more than it drafts",
        ),
    )
    predicted = np.where(skip == "", tokens_of_drafts(chips.values, drafts), np.nan)
    command = [
        command_line(
            ["explain", *ASKED],
            {},
            {
                "workload.draft_tokens": count,
                "workload.draft_limit": count,
                "workload.as_deployed": 0,
            },
        )
        if why == ""
        else ""
        for count, why in zip(drafts, skip, strict=True)
    ]
    names, keys = (np.full(len(table), text, dtype=object) for text in (TARGET, KEY))
    return Prediction(
        target, predicted, names, skip, np.array(command, dtype=object), keys, np.ones(len(table))
    )


PREDICTORS: dict[str, Callable[[pd.DataFrame, Specifications], Prediction]] = {
    "kernels": kernels.predict_kernels,
    "collectives": collectives.predict_collectives,
    "inference": inference.predict_serving_runs,
    "training": training.predict_training_runs,
    "acceptance": accepted_lengths,
    "open-loop": open_loop.predict_open_loop_runs,
    "deployments": deployments.predict_deployments,
}


STATED_BY_ROWS = ("inference", "training", "open-loop", "kernels", "collectives")


class Validation(NamedTuple):
    """A file's score and the rows behind it."""

    kind: str
    card: JsonObject
    rows: pd.DataFrame


def rescore_column(table: pd.DataFrame, made: Prediction, name: str) -> Prediction:
    """Return the predictions held against another column, where the model predicts that
    quantity.
    """
    if name not in set(made.target_name) | set(table.columns):
        raise unknown("column", name, table.columns, "--against")
    chosen = made.target_name == name
    if not chosen.any():
        raise DataError(
            f"--against {name}: no row of this file is predicted as {name}; there are "
            f"{', '.join(sorted(set(made.target_name) - {''}))}"
        )
    skip = np.where(chosen | (made.skip != ""), made.skip, f"unsupported target: not {name}")
    return replace(made, skip=skip)


def refuse_stated_settings(kind: str, settings: Mapping[str, str]) -> None:
    """Refuse settings of the workload where every row states its own and none would be read."""
    if kind not in STATED_BY_ROWS:
        return
    for path in settings:
        if path.startswith("workload."):
            raise UsageError(
                f"--set {path}: every row of {kind} states its own workload, so this moves nothing;"
                " expected a path such as performance.layer.expert_passes, or --envelopes, which "
                "takes it"
            )


def score_measurements(
    path: Path,
    catalogue: Catalogue,
    values: Values,
    kind: str | None = None,
    column: str | None = None,
    alias: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> Validation:
    """Predict and score every row of a file of measurements.

    Args:
        path: The file, or the name of one that travels with the program.
        catalogue: Names of chips and models, and their practice.
        values: The inputs, with those that are set.
        kind: The kind of measurements; left out, the header tells it.
        column: Score only the rows that are predicted as this column.
        alias: A file that says what unknown names mean.
        settings: What the user sets, as texts.

    Raises:
        DataError: If the file cannot be read.
        UsageError: If a setting is one that every row states itself.

    """
    found, stated = read_measured(path, kind)
    table = renamed(stated, catalogue, alias) if alias else stated
    if found not in PREDICTORS:
        raise DataError(f"{path}: {found} are not predicted yet; there are {', '.join(PREDICTORS)}")
    refuse_stated_settings(found, settings or {})
    chips = Specifications(
        catalogue, values, texts(table, "accelerator"), settings=dict(settings or {})
    )
    made = ranged(
        found,
        PREDICTORS[found],
        table,
        chips,
        predict_by_accelerator(PREDICTORS[found], table, chips),
    )
    if column is not None:
        made = rescore_column(table, made, column)
    made.skip = detailed_skip_reasons(table, made.skip, found, catalogue)
    card = scorecard(stated, made)
    errors = np.where(np.isin(made.skip, ("", OFFLINE)), made.predicted / made.target - 1, np.nan)
    rows = pd.DataFrame(
        {
            "target": made.target_name,
            "measured": made.target,
            "predicted": made.predicted,
            "error": errors,
            "skipped": made.skip,
        }
    )
    if made.unstated is not None:
        rows = rows.assign(low=made.low, high=made.high, unstated=made.unstated)
    if made.command is not None:
        rows = rows.assign(command=made.command, key=made.key, scale=made.scale)
    keep = [
        name
        for name in (
            "source_id",
            "accelerator",
            "op",
            "model",
            "precision",
            "dtype",
            "framework",
            "library",
            "date",
        )
        if name in stated
    ]
    return Validation(
        found,
        card | {"left_out": errors_of(catalogue, found)},
        pd.concat([stated[keep].reset_index(drop=True), rows], axis=1),
    )
