"""What a study rests on, by hash: the program, and the data that each of its scenarios sees. Equal ones compute the same bytes on one machine."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tco import __version__
from tco.catalog import Catalogue
from tco.foundation.errors import DataError
from tco.foundation.files import data_directory

Folders = tuple[str, ...]  # laid over the shipped data, in this order


class Ground(NamedTuple):
    """What a study was begun on."""

    program: str  # version, and hash of the code
    data: tuple[str, ...]  # hash of what is read through each of the folders
    folders: tuple[Folders, ...]

    def refuse_stranger(self) -> None:
        """Refuse to compute for a program or on data other than those that run here: the answer would be another."""
        if (why := self.why_stranger(self.standing())) is not None:
            raise DataError(f"a worker {why}; install the same on all")

    def standing(self) -> Ground:
        """Return what runs here, and the data that the same folders give here."""
        return ground_on(self.folders)

    def why_stranger(self, other: Ground) -> str | None:
        """Say what differs, if anything does."""
        if other.program != self.program:
            return f"runs tco {other.program}, the study was begun by {self.program}"
        if other.data != self.data:
            return f"has data {' '.join(dict.fromkeys(other.data))}, the study was begun on {' '.join(dict.fromkeys(self.data))}"
        return None


def ground_on(folders: tuple[Folders, ...]) -> Ground:
    """Return what an answer that is made here rests on."""
    return Ground(program(), tuple(data_hash(one) for one in folders), folders)


@cache
def program() -> str:
    """Return version and hash of the program that runs: equal ones compute the same."""
    digest = hashlib.sha256()
    home = Path(__file__).resolve().parents[2]
    for path in sorted(home.rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


@cache
def catalogue_on(folders: Folders, anchors: tuple[Any, ...] = ()) -> Catalogue:
    """Return the catalogue with some folders laid over it and some runs that move its answers, read once."""
    found = Catalogue(Path(folder) for folder in folders)
    found.anchors = anchors
    return found


def data_hash(folders: Folders) -> str:
    """Return the hash of the data that a scenario sees here."""
    catalogue = catalogue_on(folders)
    found: str = catalogue.once("hash", catalogue.hash)
    return found


def folders_of(catalogue: Catalogue) -> Folders:
    """Return the folders that are laid over the shipped data in a catalogue."""
    return tuple(str(folder.resolve()) for folder in catalogue.folders if folder != data_directory())
