"""Why rows are not scored, to the point: which name is unknown and what it may mean, and which column is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.studies.validation.measured import TARGETS, TEXTS, column, texts
from tco.studies.validation.model_naming import read_models
from tco.studies.validation.naming import unread_accelerators
from tco.studies.validation.wording import yes_or_no

Array = np.ndarray[Any, Any]
POOLS = ("prefill_gpus", "prefill_workers", "decode_gpus", "decode_workers")
WANTED = {  # columns that a reason asks for
    "unstated accelerators": ("n_accelerators",),
    "unstated rank count": ("n_gpus",),
    "unstated token count": ("tokens_per_rank",),
    "unstated size": ("message_size_bytes",),
    "unstated network": ("fabric",),
    "unstated lengths": ("isl_tokens", "osl_tokens"),
    "unstated concurrency": ("concurrency",),
    "unstated workers": ("n_gpus", *POOLS),
    "unstated attention parallelism": ("prefill_dp", "decode_dp"),
    "unstated speculative decoding": ("spec_decoding",),
}


def explained(table: pd.DataFrame, skip: Array, kind: str, catalogue: Catalogue) -> Array:
    """Return the reasons of a file of a kind, each with what its row lacks."""
    said = {"unknown-accelerator": unread_accelerators(catalogue, texts(table, "accelerator"))}
    if "model" in table:
        said["unknown-model"] = read_models(catalogue, table)[1]
    for reason, columns in WANTED.items():
        if np.any(skip == reason):
            said[reason] = lacking(table, reason, columns, catalogue)
    found = np.where(skip == "unstated result", f"unstated result: none of {', '.join(TARGETS[kind])}", skip)
    for reason, details in said.items():
        found = np.where(found == reason, details, found)
    return np.asarray(found, dtype=object)


def lacking(table: pd.DataFrame, reason: str, columns: tuple[str, ...], catalogue: Catalogue) -> Array:
    """Return a reason with the columns that every row leaves blank; with all of them where what stands in them is not enough."""
    blank = {name: blanks(table, name) for name in columns}
    if set(POOLS) <= set(columns):
        answers = {text: yes_or_no(catalogue, str(text)) is True for text in set(texts(table, "disaggregated"))}
        apart = np.array([answers[text] for text in texts(table, "disaggregated")], dtype=bool)
        blank |= {name: blank[name] & apart for name in POOLS}
    named = (", ".join(name for name in columns if blank[name][row]) for row in range(len(table)))
    return np.array([f"{reason}: {names or ', '.join(columns)}" for names in named], dtype=object)


def blanks(table: pd.DataFrame, name: str) -> Array:
    """Say of every row whether a column is blank or zero."""
    if name in TEXTS:
        return np.array([not str(text).strip() for text in texts(table, name)], dtype=bool)
    return np.asarray(~(np.nan_to_num(column(table, name)) > 0))
