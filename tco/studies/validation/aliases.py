"""A file that says what names in one's rows mean: `name,part` for accelerators, `name,model` for models, or all three columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tco.catalog import Catalogue
from tco.foundation.errors import DataError, unknown
from tco.foundation.files import read_csv
from tco.models.architecture import load_model
from tco.studies.validation.model_naming import named_model
from tco.studies.validation.naming import accelerators

COLUMNS = {"part": "accelerator", "model": "model"}  # of the aliases: the column of the rows


def read_aliases(path: Path, catalogue: Catalogue) -> dict[str, dict[str, str]]:
    """Return by column of the rows what every name means; one that means nothing known raises `DataError` with its line."""
    found: dict[str, dict[str, str]] = {column: {} for column in COLUMNS.values()}
    for line, row in read_csv(path, ("name",), tuple(COLUMNS)):
        name, where = row["name"].strip(), f"{path}:{line}"
        given = {key: row[key].strip() for key in COLUMNS if row.get(key, "").strip()}
        if not name or len(given) != 1:
            raise DataError(f"{where}: expected a name and either the part or the model it means")
        ((key, meant),) = given.items()
        if name in found[COLUMNS[key]]:
            raise DataError(f"{where}: the name {name!r} is given twice")
        found[COLUMNS[key]][name] = part_of(meant, catalogue, where) if key == "part" else model_of(meant, catalogue, where)
    return found


def part_of(meant: str, catalogue: Catalogue, where: str) -> str:
    """Return the accelerator an alias stands for."""
    known = accelerators(catalogue)
    part = known.part(meant)
    if not part:
        raise unknown("accelerator", meant, set(known.exact.values()), where)
    return part


def model_of(meant: str, catalogue: Catalogue, where: str) -> str:
    """Return the model an alias stands for: one of the catalogue, or stated figures."""
    model = named_model(catalogue, meant)
    if not model:
        raise unknown("model", meant, catalogue.models, where)
    try:
        return load_model(catalogue, model).id
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def renamed(table: pd.DataFrame, catalogue: Catalogue, path: Path) -> pd.DataFrame:
    """Return rows with the names of a file of aliases replaced by what they mean."""
    found = read_aliases(path, catalogue)
    return table.assign(
        **{name: table[name].map(lambda text, meant=meant: meant.get(text.strip(), text)) for name, meant in found.items() if name in table}
    )
