"""The shipped catalogue, which tests read once in a process and never change.

It is the catalogue that commands and functions use by default. The shipped files below a user's
data folder are read once too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tco import Catalogue, load_catalogue
from tco.catalog import catalogue as reading
from tco.catalog import checks
from tco.catalog.rows import attribute, input_attributes
from tco.catalog.system_tree import load_system
from tco.core.files import data_directory, read_csv, read_toml, scenario_directory
from tco.models.architecture import Architecture, load_model
from tco.models.layers import Attention, FeedForward
from tco.models.readers.families import READERS
from tco.system.scale_out_network import tiers_needed

# what tests of several files ask for
__all__ = [
    "READERS",
    "Architecture",
    "Attention",
    "FeedForward",
    "attribute",
    "checks",
    "data_directory",
    "input_attributes",
    "load_model",
    "load_system",
    "read_csv",
    "read_toml",
    "scenario_directory",
    "tiers_needed",
]

CATALOGUE: Catalogue = load_catalogue()
DATA = CATALOGUE.folders[0]


def read_once(read: Callable[..., Any], keep: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a reader that reads each shipped file once and any other file each time."""
    cached_read = cache(lambda path, *columns, **optional: keep(read(path, *columns, **optional)))
    return lambda path, *columns, **optional: (cached_read if path.is_relative_to(DATA) else read)(
        path, *columns, **optional
    )


def keep() -> None:
    """Let all that is asked in this process share what is read of the shipped catalogue."""
    reading.read_csv, reading.read_toml = (
        read_once(reading.read_csv, list),
        read_once(reading.read_toml, lambda toml_document: toml_document),
    )
