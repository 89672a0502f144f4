"""The shipped catalogue, read once in a process: what a test asks it for is there for the next one. Do not change it.

So is what commands and functions open where they are given no catalogue, and of a folder of one's own the shipped files that it is laid over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tco import Catalogue, load_catalogue
from tco.catalog import catalogue as reading
from tco.catalog import checks
from tco.catalog.rows import attribute, attributes
from tco.catalog.systems import load_system
from tco.chain import draws, scenario
from tco.foundation.files import data_directory, read_csv, read_toml, scenario_directory
from tco.hardware.network import tiers_needed
from tco.models.architecture import Architecture, load_model
from tco.models.families import READERS
from tco.models.layers import Attention, FeedForward
from tco.studies import evaluation

__all__ = [
    "READERS",
    "Architecture",
    "Attention",
    "FeedForward",
    "attribute",
    "attributes",
    "checks",
    "data_directory",
    "load_model",
    "load_system",
    "read_csv",
    "read_toml",
    "scenario_directory",
    "tiers_needed",
]  # what tests of several files ask for

CATALOGUE: Catalogue = load_catalogue()
DATA = CATALOGUE.folders[0]


class Shipped(Catalogue):
    """The shipped catalogue, opened again: with all that was asked of it before, but where it gets measured runs of its own."""

    def __init__(self) -> None:
        self.__dict__ = CATALOGUE.__dict__

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "anchors":
            self.__dict__ = {**CATALOGUE.__dict__, "cache": {}}
        super().__setattr__(name, value)


def opened(overlays: Iterable[Path] = ()) -> Catalogue:
    """Return a catalogue of some folders, of the shipped one alone as it is known already."""
    folders = list(overlays)
    return Catalogue(folders) if folders else Shipped()


def read_once(read: Callable[..., Any], keep: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return what reads a shipped file once, however many catalogues ask for it, and any other each time."""
    kept = cache(lambda path, *columns, **optional: keep(read(path, *columns, **optional)))
    return lambda path, *columns, **optional: (kept if path.is_relative_to(DATA) else read)(path, *columns, **optional)


def keep() -> None:
    """Let all that is asked in this process share what is read of the shipped catalogue."""
    reading.read_csv, reading.read_toml = read_once(reading.read_csv, list), read_once(reading.read_toml, lambda found: found)
    evaluation.Catalogue = scenario.load_catalogue = draws.load_catalogue = opened
