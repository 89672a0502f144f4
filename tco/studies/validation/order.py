"""How often the model puts two systems in the right order: pairs of serving points at one interactivity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.studies.validation.measured import column, texts
from tco.studies.validation.score import Prediction

Array = np.ndarray[Any, Any]
CLOSE = 1.1  # interactivities within this ratio are one
EVEN = 1.1  # rates within this ratio have no order
WORKLOAD = ("model", "isl_tokens", "osl_tokens", "precision")


class Pairs(NamedTuple):
    """Rows of two chips each that serve one workload at one interactivity, by their places."""

    one: Array
    other: Array


def pairs(workload: pd.DataFrame, chips: Array, speed: Array, usable: Array) -> Pairs:
    """Return the pairs among rows: of one workload, two chips, and speeds within a tenth of each other."""
    found = []
    for _, group in workload[usable].groupby(list(workload.columns)):
        rows = group.index.to_numpy()
        one, other = (rows[places] for places in np.triu_indices(len(rows), 1))
        apart = (chips[one] != chips[other]) & (np.abs(np.log(speed[one] / speed[other])) <= np.log(CLOSE))
        found.append((one[apart], other[apart]))
    return Pairs(*(np.concatenate([np.empty(0, dtype=int), *side]) for side in zip(*found, strict=True))) if found else Pairs(*np.empty((2, 0), int))


def pairs_of(table: pd.DataFrame, made: Prediction) -> Pairs:
    """Return the pairs of the scored rows of a file of serving points: two accelerators with one model, formats and lengths."""
    speed = column(table, "interactivity_tok_s_per_user")
    usable = (made.skip == "") & (made.target_name != "tpot_ms_mean") & (speed > 0)
    workload = pd.DataFrame({name: texts(table, name).astype(str) for name in WORKLOAD}).assign(target=made.target_name)
    return pairs(workload, texts(table, "accelerator").astype(str), speed, usable)


def order(table: pd.DataFrame, made: Prediction) -> dict[str, float]:
    """Return pairs of accelerators on one workload, the share in the right order, and the median error of their ratio; nothing without pairs.

    Two that were measured within a tenth of each other have no order to be right about: one configuration differs as much from day to day.
    """
    one, other = pairs_of(table, made)
    if not len(one):
        return {}
    truth, guess = (values[one] / values[other] for values in (made.target, made.predicted))
    differ = np.abs(np.log(truth)) > np.log(EVEN)
    return {
        "pairs": len(truth),
        "right": float(np.mean(((truth > 1) == (guess > 1))[differ])) if differ.any() else 1.0,
        "ratio_error": float(np.median(np.abs(guess / truth - 1))),
    }
