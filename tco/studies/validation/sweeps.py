"""What the runs of a sweep are predicted to make, so that like is held against like.

A sweep runs some configurations (an engine, its pools and how their chips divide), each under several loads. Each of its runs is
predicted as it was configured and loaded, with the parameters of the refit that never saw the chip. Of what is predicted, the runs
that no other run beats form an envelope, as those that were measured do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import table
from tco.studies.validation.inference import MILLI, Asked, predict_group
from tco.studies.validation.specifications import Specifications

POOLS = ("size", "workers", "groups", "experts")
CONFIGURATION = ("engine", "apart", *(f"{side}_{name}" for side in ("decode", "prefill") for name in POOLS))
Array = np.ndarray[Any, Any]


class Curve(NamedTuple):
    """The runs that no other run beats: the speed a user gets, which rises, and what a chip makes, which falls; in logarithms lines join them."""

    speed: Array
    rate: Array

    @classmethod
    def of(cls, speed: Array, rate: Array) -> Self:
        """Return the envelope of some runs."""
        best = unbeaten(speed, rate)
        order = np.argsort(speed[best])
        return cls(speed[best][order], rate[best][order])

    def rate_at(self, speed: float) -> float:
        """Return the most that a chip makes at a speed or a higher one; zero beyond the quickest run."""
        if not len(self.speed) or speed > self.speed[-1]:
            return 0.0
        return float(np.exp(np.interp(np.log(speed), np.log(self.speed), np.log(self.rate))))

    def speed_at(self, rate: float) -> float:
        """Return the highest speed at which a chip makes so much or more; zero beyond the run that makes most."""
        if not len(self.speed) or rate > self.rate[0]:
            return 0.0
        return float(np.exp(np.interp(-np.log(rate), -np.log(self.rate), np.log(self.speed))))


def unbeaten(speed: Array, rate: Array) -> Array:
    """Return which runs no other run beats in both."""
    order = np.lexsort((-rate, -speed))
    best = np.maximum.accumulate(rate[order])
    found = np.zeros(len(rate), dtype=bool)
    found[order] = (rate[order] >= best) & np.concatenate([np.ones(1, bool), rate[order][1:] > best[:-1]])[: len(rate)]
    return found


def left_out(catalogue: Catalogue, chip: str) -> dict[str, float]:
    """Return the parameters of the refit that never saw a chip's serving runs; empty where there are too few of them for one."""
    rows = table(catalogue, "left_out")
    return {row["path"]: float(row["value"]) for row in rows if (row["kind"], row["left_out"], row["member"]) == ("inference", "accelerator", chip)}


@contextmanager
def never_seen(chips: Specifications, chip: str) -> Iterator[None]:
    """Let the values be those of the refit that never saw a chip, but for what the user sets."""
    values = chips.values
    found = {path: value for path, value in left_out(chips.catalogue, chip).items() if path not in values.given}
    held = {path: values[path] for path in found}
    values.update(found)
    chips.found.clear()
    try:
        yield
    finally:
        values.update(held)
        chips.found.clear()


def predicted(asked: Asked, kind: dict[str, Any], runs: pd.DataFrame) -> Curve:
    """Return the envelope of what some runs of one chip, model, set of formats and lengths are predicted to make."""
    speeds, rates = list[Array](), list[Array]()
    for (engine, apart), some in runs.groupby(["engine", "apart"], sort=True):
        asks = kind | {"engine": engine, "apart": apart, "ahead": False, "offline": False}
        made, fits = predict_group(asked, asked.chips, asks, some["row"].to_numpy())
        rate, time = (np.broadcast_to(made[name], fits.shape)[fits] for name in ("output_tput_tok_s_per_gpu", "tpot_ms_mean"))
        speeds.append(MILLI / time)
        rates.append(rate)
    return Curve.of(np.concatenate(speeds), np.concatenate(rates))
