"""Are ratios right? Pairs of two chips that serve one workload at one speed: their predicted ratio and its range against the measured one.

Both rows of a pair are predicted in the same draws of all parameters of practice and of what none explains, so that what the two share
cancels, as it does between the columns of a comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.chain.inputs import plain_inputs
from tco.foundation.errors import DataError, UsageError
from tco.foundation.values import as_number
from tco.studies.ranges import Dice
from tco.studies.validation.back_test import P10, P90, SEED, Array, Question, places_in
from tco.studies.validation.measured import read_measured
from tco.studies.validation.order import order, pairs_of

DRAWS, LEAST = 128, 20  # least pairs of a chip that say something of it


class Ratios(NamedTuple):
    """How the predicted ratios of some pairs lie to the measured ones."""

    n: int
    inside: float  # share between P10 and P90
    width: float  # P90 over P10, the median of the pairs


class Compared(NamedTuple):
    """The pairs of a file: all of them, those of each chip, and how far the point lies off."""

    every: Ratios
    chips: dict[str, Ratios]
    order: float  # share in the right order, of those that differ
    median_off: float


def compared(path: Path, catalogue: Catalogue, settings: dict[str, str]) -> Compared:
    """Return how the predicted ratios of the pairs of chips in a file of serving points lie to the measured ones."""
    kind, table = read_measured(path)
    if kind != "inference":
        raise UsageError(f"--ratios: {path} holds {kind}, expected serving runs")
    asked = Question(kind, table, catalogue, plain_inputs(catalogue, settings).values(as_number))
    made = asked.prediction()
    one, other = pairs_of(table, made)
    if not len(one):
        raise DataError(f"{path}: no two chips serve one model with the same formats and lengths at one speed, so there is no ratio")
    point, truth = order(table, made), made.target[one] / made.target[other]
    rows = np.unique([one, other])
    asked = Question(kind, table.iloc[rows].reset_index(drop=True), catalogue, asked.chips.values)
    asked.prediction()
    asked.say(places_in(asked.ranges(), Dice(catalogue, SEED, 0, DRAWS)))
    drawn = asked.prediction().predicted
    ratios = (drawn[:, np.searchsorted(rows, side)] for side in (one, other))
    low, high = np.nanquantile(np.divide(*ratios), (P10, P90), axis=0)
    inside, width = (low <= truth) & (truth <= high), high / low
    parts = asked.chips.parts[np.searchsorted(rows, np.stack([one, other]))]
    of_chip = {chip: (parts == chip).any(axis=0) for chip in sorted(set(parts.ravel()))}
    by = {chip: summed(inside[own], width[own]) for chip, own in of_chip.items() if own.sum() >= LEAST}
    return Compared(summed(inside, width), by, point["right"], point["ratio_error"])


def summed(inside: Array, width: Array) -> Ratios:
    """Return what some pairs come to."""
    return Ratios(len(inside), float(inside.mean()), float(np.nanmedian(width)))
