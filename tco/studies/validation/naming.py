"""Names of accelerators and models as vendors, frameworks and papers print them, and what they are called here.

A name is what the tables in the data folders say, exactly or in a form that leaves out what differs between spellings. A name that
fits several parts or none is unknown: no name is guessed, and a variant with another form (PCIe, NVL) or memory is another part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.foundation.files import read_csv

Array = np.ndarray[Any, Any]
MARKS = re.compile(r"\((r|tm|c)\)|[®™©]")
MEMORY = re.compile(r"(\d+(?:\.\d+)?)(gi?b)\b")
COUNT = re.compile(r"^\d{1,2}x(?=[a-z]|$)|^x\d+$")  # how many of them
FORMS = {"pcie": re.compile(r"pcie\d?"), "sxm": re.compile(r"sxm\d?")}
PRINTED = 0.1  # printed and usable memory differ by less: binary units, spare stacks


class Spelling(NamedTuple):
    """What a name says once spellings are levelled."""

    core: str  # what is left: the chip and, if printed, its form
    memory: float  # bytes; zero where none is printed
    parts: frozenset[str] | None  # the only parts a word of the name is said of


def rows_of(catalogue: Catalogue, name: str, columns: tuple[str, ...]) -> Iterator[tuple[Path, int, dict[str, str]]]:
    """Yield the rows of a table that any data folder may have, a person's own folder first."""
    for folder in reversed(catalogue.folders):
        path = folder / name
        if path.is_file():
            yield from ((path, line, row) for line, row in read_csv(path, columns))


def words_of(catalogue: Catalogue) -> dict[str, frozenset[str] | None]:
    """Return the words that tell no part from another, each with the parts it is said of; None where of any."""
    rows = rows_of(catalogue, "accelerator_words.csv", ("word", "parts"))
    return {row["word"]: frozenset(row["parts"].split()) or None for _, _, row in rows}


def plain(name: str) -> str:
    """Return a name in small letters, its words joined by hyphens."""
    return re.sub(r"[\s_:\-]+", "-", MARKS.sub(" ", name.lower())).strip("-")


def spelling(name: str, words: Mapping[str, frozenset[str] | None]) -> Spelling:
    """Return what a name says, words that say nothing left out."""
    text = MEMORY.sub(r" \1\2 ", re.sub(r"(\d)\s+(gi?b)\b", r"\1\2", MARKS.sub(" ", name.lower())))
    kept: list[str] = []
    forms: list[str] = []
    memory, parts = 0.0, None
    for token in re.split(r"[^a-z0-9.]+", text):
        word = COUNT.sub("", token)
        size = MEMORY.fullmatch(word)
        form = next((form for form, pattern in FORMS.items() if pattern.fullmatch(word)), "")
        if size:
            memory = float(size[1]) * (2**30 if size[2] == "gib" else 1e9)
        elif form:
            forms.append(form)
        elif word in words:
            said = words[word]
            parts = parts if said is None else said if parts is None else parts & said
        else:
            kept.append(word)
    return Spelling("".join([*kept, *sorted(set(forms))]) if "".join(kept) else "", memory, parts)


class Accelerators:
    """The names of every accelerator of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self.words = catalogue, words_of(catalogue)
        self.exact = {part: part for part, known in catalogue.parts.items() if "hbm_bandwidth" in known}
        for _, _, row in rows_of(catalogue, "accelerators.csv", ("name", "part")):
            self.exact.setdefault(row["name"], row["part"])
        self.plain = {plain(name): part for name, part in reversed(self.exact.items())}
        self.spelt: dict[str, list[tuple[float, str]]] = {}
        for name, part in self.exact.items():
            said = spelling(name, self.words)
            if said.core:
                self.spelt.setdefault(said.core, []).append((said.memory, part))

    def candidates(self, name: str) -> set[str]:
        """Return the parts a name may mean."""
        name = name.strip()
        found = self.exact.get(name) or self.plain.get(plain(name))
        if found:
            return {found}
        inside = re.fullmatch(r"(.+?)\s*\((.+)\)", name)
        meant = self.fitting(name)
        if not meant and inside:
            both = self.candidates(inside[1]), self.candidates(inside[2])
            return both[0] & both[1]
        return meant

    def fitting(self, name: str) -> set[str]:
        """Return the parts that a name fits once spellings are levelled."""
        said = spelling(name, self.words)
        entries = self.spelt.get(said.core, [])
        if said.memory:
            parts = {part for _, part in entries if self.holds(part, said.memory)}
        else:
            parts = {part for memory, part in entries if not memory} or {part for _, part in entries}
        return parts if said.parts is None else parts & said.parts

    def holds(self, part: str, memory: float) -> bool:
        """Say whether a printed size of memory is that of a part."""
        if not self.catalogue.has_part_value(part, "hbm_capacity"):
            return False
        return bool(abs(self.catalogue.part_input(part, "hbm_capacity", "").value / memory - 1) <= PRINTED)

    def part(self, name: str) -> str:
        """Return the part a name means, empty where it is unknown or may be several."""
        found = self.candidates(name)
        return found.pop() if len(found) == 1 else ""

    def fault(self, name: str) -> str:
        """Return why rows of an accelerator are not read: what the name may mean, if it says too little."""
        core = spelling(name, self.words).core
        near = {part for other, entries in self.spelt.items() if core and other.startswith(core) for _, part in entries}
        found = sorted(self.candidates(name) or near)
        return f"unknown-accelerator: {name!r}" + (f" may be {' or '.join(found)}" if found else "")


def accelerators(catalogue: Catalogue) -> Accelerators:
    """Return the names of the accelerators of a catalogue, read once."""
    found: Accelerators = catalogue.once("accelerators", lambda: Accelerators(catalogue))
    return found


def part_ids(catalogue: Catalogue, names: Iterable[Any]) -> Array:
    """Return the part id of every name; empty where it is unknown."""
    known, names = accelerators(catalogue), [str(name) for name in names]
    found = {name: known.part(name) for name in set(names)}
    return np.array([found[name] for name in names], dtype=object)


def unread_accelerators(catalogue: Catalogue, names: Iterable[Any]) -> Array:
    """Return why the rows of every name that is unknown are not read."""
    known, names = accelerators(catalogue), [str(name) for name in names]
    found = {name: "" if known.part(name) else known.fault(name) for name in set(names)}
    return np.array([found[name] for name in names], dtype=object)
