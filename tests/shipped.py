"""The shipped catalogue, read once in a process: what a test asks it for is there for the next one. Do not change it."""

from __future__ import annotations

from tco import Catalogue, load_catalogue

CATALOGUE: Catalogue = load_catalogue()
DATA = CATALOGUE.folders[0]
