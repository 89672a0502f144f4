"""Which model a row means: by its name as papers, frameworks and model hubs print it, or by the shape the row itself states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.foundation.errors import DataError
from tco.models.architecture import is_stated, load_model
from tco.models.stated import KEYS, figures_text, missing_figures
from tco.studies.validation.measured import texts
from tco.studies.validation.naming import plain, rows_of

Array = np.ndarray[Any, Any]
OWNER = re.compile(r"[\w.-]+/(?=[^\s/]+$)")  # of a model on a hub
BRACKETS = re.compile(r"[()\[\],]")
MAKERS = re.compile(r"^(meta|nvidia|openai|mistralai|moonshotai|google|amd)-(?=.)")
VOCABULARIES = (32_000.0, 50_304.0, 128_256.0, 256_000.0)  # tokens, as published models of one's own have them
USUAL = VOCABULARIES[1]  # where a row states all of its model but this
SHAPE = tuple(key for key in KEYS if key not in ("tied", "context"))  # columns of numbers


def patterns_of(catalogue: Catalogue) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of model names with the model each means; an empty one means that the name is of no model here."""

    def read() -> list[tuple[re.Pattern[str], str]]:
        made = []
        for path, line, row in rows_of(catalogue, "model_names.csv", ("pattern", "model")):
            try:
                made.append((re.compile(row["pattern"], re.IGNORECASE), row["model"]))
            except re.error as error:
                raise DataError(f"{path}:{line}: {row['pattern']!r} is no regular expression ({error})") from None
        return made

    found: list[tuple[re.Pattern[str], str]] = catalogue.once("model names", read)
    return found


def named_model(catalogue: Catalogue, name: str) -> str:
    """Return the model a name means, empty where it is unknown: an id, a list of figures, or what the table of names says."""
    name = name.strip()
    if name in catalogue.models or is_stated(name):
        return name
    level = MAKERS.sub("", plain(BRACKETS.sub(" ", OWNER.sub("", name))))
    if level in catalogue.models:
        return level
    return next((model for pattern, model in patterns_of(catalogue) if pattern.search(level) or pattern.search(name)), "")


def shapes_of(table: pd.DataFrame) -> list[dict[str, float]]:
    """Return the figures every row states of its model."""
    stated = [name for name in SHAPE if name in table]
    rows = table[stated].to_numpy(float) if stated else np.empty((len(table), 0))
    return [{name: value for name, value in zip(stated, row, strict=True) if not np.isnan(value)} for row in rows]


def read_model(catalogue: Catalogue, name: str, figures: Mapping[str, float]) -> tuple[str, str]:
    """Return the model of a row and why it is unknown, one of them empty."""
    known = named_model(catalogue, name)
    if not known and vocabulary_alone(figures):
        figures = {**figures, "vocab": USUAL}
    missing = missing_figures(figures)
    if not known and missing:
        return "", f"unknown-model: neither the name {name!r} nor its shape is known; missing: {', '.join(missing)}"
    try:
        return load_model(catalogue, known or figures_text(figures)).id, ""
    except DataError as error:
        return "", f"unknown-model: {error}"


def vocabulary_alone(figures: Mapping[str, float]) -> bool:
    """Say whether a model's figures lack nothing but its vocabulary, which may then be any of the usual ones."""
    return missing_figures(figures) == ["vocab"]


def read_models(catalogue: Catalogue, table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the model of every row, and the reason where it is unknown."""
    names = [str(name) for name in texts(table, "model")]
    asked = [(name, tuple(figures.items())) for name, figures in zip(names, shapes_of(table), strict=True)]
    found = {one: read_model(catalogue, one[0], dict(one[1])) for one in set(asked)}
    both = np.array([found[one] for one in asked], dtype=object).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def model_ids(catalogue: Catalogue, table: pd.DataFrame) -> Array:
    """Return the model of every row; empty where it is unknown."""
    return read_models(catalogue, table)[0]
