"""Names of accelerators and models in publications, and their ids here.

A name is what the tables in the data folders say, exactly or in a form that leaves out what differs
between spellings. A name that fits several parts or none is unknown: no name is guessed, and a
variant with another form (PCIe, NVL) or memory is another part. A model is also known by the shape
that a row states. A file of aliases says what names mean that are in no table: `name,part`,
`name,model`, or both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.errors import DataError, located, unknown
from tco.core.files import read_csv
from tco.core.memory import once_per_owner
from tco.core.types import AnyArray, JsonObject
from tco.models.architecture import is_stated_model, load_model
from tco.models.from_figures import KEYS, figures_text, missing_figures
from tco.validation.measured import map_values

MARKS = re.compile(r"\((r|tm|c)\)|[®™©]")
MEMORY = re.compile(r"(\d+(?:\.\d+)?)(gi?b)\b")
COUNT = re.compile(r"^\d{1,2}x(?=[a-z]|$)|^x\d+$")  # how many of them
FORMS = {"pcie": re.compile(r"pcie\d?"), "sxm": re.compile(r"sxm\d?")}
PRINTED = 0.1  # printed and usable memory differ by less: binary units, spare stacks


class Spelling(NamedTuple):
    """Parts of a normalised accelerator name: core, memory and part ids."""

    core: str  # what is left: the chip and, if printed, its form
    memory: float  # bytes; zero where none is printed
    parts: frozenset[str] | None  # the only parts a word of the name is said of


def read_pattern_table(
    catalogue: Catalogue, table_name: str, columns: tuple[str, ...], flags: int = 0
) -> list[JsonObject]:
    """Return the rows of a table in any data folder, the user's first, with patterns compiled."""

    def read() -> Iterator[JsonObject]:
        for path in reversed(catalogue.folder_files(table_name)):
            for line, table_row in read_csv(path, columns):
                try:
                    yield table_row | (
                        {"pattern": re.compile(table_row["pattern"], flags)}
                        if "pattern" in table_row
                        else {}
                    )
                except re.error as error:
                    raise DataError(
                        f"{path}:{line}: {table_row['pattern']!r} is no regular expression "
                        f"({error})"
                    ) from None

    return catalogue.once(("table", table_name), lambda: list(read()))


def _hyphenated_name(model_name: str) -> str:
    return re.sub(r"[\s_:\-]+", "-", MARKS.sub(" ", model_name.lower())).strip("-")


def _spelling(accelerator_name: str, words: Mapping[str, frozenset[str] | None]) -> Spelling:
    """Return the normalised spelling of an accelerator name.

    The core leaves out every word of `words`.
    """
    name_text = MEMORY.sub(
        r" \1\2 ", re.sub(r"(\d)\s+(gi?b)\b", r"\1\2", MARKS.sub(" ", accelerator_name.lower()))
    )
    core_words: list[str] = []
    forms: list[str] = []
    memory, parts = 0.0, None
    for token in re.split(r"[^a-z0-9.]+", name_text):
        word = COUNT.sub("", token)
        size = MEMORY.fullmatch(word)
        form = next((form for form, pattern in FORMS.items() if pattern.fullmatch(word)), "")
        if size:
            memory = float(size[1]) * (2**30 if size[2] == "gib" else 1e9)
        elif form:
            forms.append(form)
        elif word in words:
            word_parts = words[word]
            parts = (
                parts if word_parts is None else word_parts if parts is None else parts & word_parts
            )
        else:
            core_words.append(word)
    return Spelling(
        "".join([*core_words, *sorted(set(forms))]) if "".join(core_words) else "", memory, parts
    )


class Accelerators:
    """The names of every accelerator of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        alias_rows = read_pattern_table(
            catalogue, "words/accelerator_aliases.csv", ("word", "parts")
        )
        # that tell no part from another, and of which
        self.words = {
            alias_row["word"]: frozenset(alias_row["parts"].split()) or None
            for alias_row in alias_rows
        }
        self.exact = {
            part: part
            for part, part_attributes in catalogue.parts.items()
            if "hbm_bandwidth" in part_attributes
        }
        for accelerator_row in read_pattern_table(catalogue, "accelerators.csv", ("name", "part")):
            self.exact.setdefault(accelerator_row["name"], accelerator_row["part"])
        self.spelt: dict[str, list[tuple[float, str]]] = {}
        for accelerator_name, part in self.exact.items():
            spelling = _spelling(accelerator_name, self.words)
            if spelling.core:
                self.spelt.setdefault(spelling.core, []).append((spelling.memory, part))

    def candidates(self, accelerator_name: str) -> set[str]:
        """Return the parts a name may mean."""
        accelerator_name = accelerator_name.strip()
        if accelerator_name in self.exact:
            return {self.exact[accelerator_name]}
        inside = re.fullmatch(r"(.+?)\s*\((.+)\)", accelerator_name)
        meant = self.fitting(accelerator_name)
        if not meant and inside:
            both = self.candidates(inside[1]), self.candidates(inside[2])
            return both[0] & both[1]
        return meant

    def fitting(self, accelerator_name: str) -> set[str]:
        """Return the parts that a name fits once spellings are levelled."""
        spelling = _spelling(accelerator_name, self.words)
        entries = self.spelt.get(spelling.core, [])
        if spelling.memory:
            parts = {part for _, part in entries if self.holds(part, spelling.memory)}
        else:
            parts = {part for memory, part in entries if not memory} or {
                part for _, part in entries
            }
        return parts if spelling.parts is None else parts & spelling.parts

    def holds(self, part: str, memory: float) -> bool:
        """Say whether a printed size of memory is that of a part."""
        if not self.catalogue.has_part_value(part, "hbm_capacity"):
            return False
        return bool(
            abs(self.catalogue.part_input(part, "hbm_capacity", "").value / memory - 1) <= PRINTED
        )

    def part(self, accelerator_name: str) -> str:
        """Return the part a name means, empty where it is unknown or may be several."""
        candidate_parts = self.candidates(accelerator_name)
        return candidate_parts.pop() if len(candidate_parts) == 1 else ""

    def fault(self, accelerator_name: str) -> str:
        """Return the fault of an unknown accelerator name, with possible parts.

        The text names no parts where the name fits none.
        """
        core = _spelling(accelerator_name, self.words).core
        near = {
            part
            for spelt_core, entries in self.spelt.items()
            if core and spelt_core.startswith(core)
            for _, part in entries
        }
        candidate_parts = sorted(self.candidates(accelerator_name) or near)
        return f"unknown-accelerator: {accelerator_name!r}" + (
            f" may be {' or '.join(candidate_parts)}" if candidate_parts else ""
        )


@once_per_owner
def accelerators(catalogue: Catalogue) -> Accelerators:
    """Return the names of the accelerators of a catalogue, read once.

    Args:
        catalogue: Holds the accelerators and keeps their names.

    """
    return Accelerators(catalogue)


def part_ids(catalogue: Catalogue, printed_names: Iterable[Any]) -> AnyArray:
    """Return the part id of every name; empty where it is unknown."""
    return map_values(map(str, printed_names), accelerators(catalogue).part)


def unread_accelerators(catalogue: Catalogue, printed_names: Iterable[Any]) -> AnyArray:
    """Return the fault of each accelerator name; empty where it is known."""
    accelerator_names = accelerators(catalogue)
    return map_values(
        map(str, printed_names),
        lambda printed_name: (
            "" if accelerator_names.part(printed_name) else accelerator_names.fault(printed_name)
        ),
    )


OWNER = re.compile(r"[\w.-]+/(?=[^\s/]+$)")  # of a model on a hub
BRACKETS = re.compile(r"[()\[\],]")
MAKERS = re.compile(r"^(meta|nvidia|openai|mistralai|moonshotai|google|amd)-(?=.)")
# tokens, as published models of one's own have them
VOCABULARIES = (
    32_000.0,
    50_304.0,
    128_256.0,
    256_000.0,
)
USUAL = VOCABULARIES[1]  # where a row states all of its model but this
SHAPE = tuple(
    figure_name for figure_name in KEYS if figure_name not in ("tied", "context")
)  # columns of numbers


def named_model(catalogue: Catalogue, model_name: str) -> str:
    """Return the model id that a name means, empty if unknown: an id, figures, or a listed name."""
    model_name = model_name.strip()
    if model_name in catalogue.models or is_stated_model(model_name):
        return model_name
    level = MAKERS.sub("", _hyphenated_name(BRACKETS.sub(" ", OWNER.sub("", model_name))))
    if level in catalogue.models:
        return level
    # an empty model: the name is of none here
    pattern_rows = read_pattern_table(
        catalogue, "model_names.csv", ("pattern", "model"), re.IGNORECASE
    )
    return next(
        (
            pattern_row["model"]
            for pattern_row in pattern_rows
            if pattern_row["pattern"].search(level) or pattern_row["pattern"].search(model_name)
        ),
        "",
    )


def _stated_model_dimensions(table: pd.DataFrame) -> list[dict[str, float]]:
    """Return the figures every row states of its model."""
    stated = [figure_name for figure_name in SHAPE if figure_name in table]
    figure_rows = table[stated].to_numpy(float) if stated else np.empty((len(table), 0))
    return [
        {
            figure_name: figure_value
            for figure_name, figure_value in zip(stated, figure_row, strict=True)
            if not np.isnan(figure_value)
        }
        for figure_row in figure_rows
    ]


def _read_model(
    catalogue: Catalogue, model_name: str, figures: Mapping[str, float]
) -> tuple[str, str]:
    """Return the model of a row and why it is unknown, one of them empty."""
    model_id = named_model(catalogue, model_name)
    if not model_id and vocabulary_alone(figures):
        figures = {**figures, "vocab": USUAL}
    missing = missing_figures(figures)
    if not model_id and missing:
        return (
            "",
            f"unknown-model: neither the name {model_name!r} nor its shape is known; missing: "
            f"{', '.join(missing)}",
        )
    try:
        return load_model(catalogue, model_id or figures_text(figures)).id, ""
    except DataError as error:
        return "", f"unknown-model: {error}"


def vocabulary_alone(figures: Mapping[str, float]) -> bool:
    """Say whether a model's figures lack only its vocabulary, which may be any usual one."""
    return missing_figures(figures) == ["vocab"]


def read_models(catalogue: Catalogue, table: pd.DataFrame) -> tuple[AnyArray, AnyArray]:
    """Return the model of every row, and the reason where it is unknown."""
    model_names = [str(model_name) for model_name in table["model"]]
    names_and_figures = [
        (model_name, tuple(figures.items()))
        for model_name, figures in zip(model_names, _stated_model_dimensions(table), strict=True)
    ]
    both = map_values(
        names_and_figures,
        lambda name_and_figures: _read_model(
            catalogue, name_and_figures[0], dict(name_and_figures[1])
        ),
    ).reshape(-1, 2)
    return both[:, 0], both[:, 1]


COLUMNS = {"part": "accelerator", "model": "model"}  # of the aliases: the column of the rows


def _read_aliases(path: Path, catalogue: Catalogue) -> dict[str, dict[str, str]]:
    """Return the meaning of every alias by column; an unknown meaning raises `DataError`."""
    alias_meanings: dict[str, dict[str, str]] = {column: {} for column in COLUMNS.values()}
    for line, alias_row in read_csv(path, ("name",), tuple(COLUMNS)):
        alias_name, where = alias_row["name"].strip(), f"{path}:{line}"
        stated_meanings = {
            kind_name: alias_row[kind_name].strip()
            for kind_name in COLUMNS
            if alias_row.get(kind_name, "").strip()
        }
        if not alias_name or len(stated_meanings) != 1:
            raise DataError(f"{where}: expected a name and either the part or the model it means")
        ((alias_kind, meant),) = stated_meanings.items()
        if alias_name in alias_meanings[COLUMNS[alias_kind]]:
            raise DataError(f"{where}: the name {alias_name!r} is given twice")
        alias_meanings[COLUMNS[alias_kind]][alias_name] = (
            part_of(meant, catalogue, where)
            if alias_kind == "part"
            else _model_id_for_alias(meant, catalogue, where)
        )
    return alias_meanings


def part_of(meant: str, catalogue: Catalogue, where: str) -> str:
    """Return the accelerator an alias stands for."""
    accelerator_names = accelerators(catalogue)
    part = accelerator_names.part(meant)
    if not part:
        raise unknown("accelerator", meant, set(accelerator_names.exact.values()), where)
    return part


def _model_id_for_alias(meant: str, catalogue: Catalogue, where: str) -> str:
    model = named_model(catalogue, meant)
    if not model:
        raise unknown("model", meant, catalogue.models, where)
    with located(where):
        return load_model(catalogue, model).id


def renamed(table: pd.DataFrame, catalogue: Catalogue, path: Path) -> pd.DataFrame:
    """Return rows with the names of a file of aliases replaced by what they mean."""
    alias_meanings = _read_aliases(path, catalogue)
    return table.assign(
        **{
            column_name: table[column_name].map(
                lambda cell_text, meant=meant: meant.get(cell_text.strip(), cell_text)
            )
            for column_name, meant in alias_meanings.items()
            if column_name in table
        }
    )
