"""What the configurations of a sweep are predicted to make at any speed, so that like is held against like.

A sweep runs some configurations (an engine, its pools and how their chips divide), each under several loads. The engine is asked for
the same configurations at any load between the least and the most each was run at, with the parameters of the refit that never saw
the chip. The best of them at a speed is what the envelope of the published runs should be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import table
from tco.studies.validation.inference import MILLI, Asked, predict_group
from tco.studies.validation.specifications import Specifications

STEP = 1.12  # from one load to the next
POOLS = ("size", "workers", "groups", "experts")
CONFIGURATION = ("engine", "apart", *(f"{side}_{name}" for side in ("decode", "prefill") for name in POOLS))
Array = np.ndarray[Any, Any]


class Curve(NamedTuple):
    """A configuration by its load: the speed a user gets, which falls, and what a chip makes, which rises."""

    speed: Array
    rate: Array


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


def curves_of(asked: Asked, kind: dict[str, Any], runs: pd.DataFrame) -> list[Curve]:
    """Return the configurations of some runs of one chip, model, set of formats and lengths, each by its load."""
    found = []
    for (engine, apart), some in runs.groupby(["engine", "apart"], sort=True):
        own = some.groupby(list(CONFIGURATION), dropna=False, sort=True)
        each = [(int(rows["row"].iloc[-1]), loads_between(rows["flight"].min(), rows["flight"].max())) for _, rows in own]
        counts = [len(loads) for _, loads in each]
        rows, loads = np.repeat([row for row, _ in each], counts), np.concatenate([loads for _, loads in each])
        asks = kind | {"engine": engine, "apart": apart, "ahead": False, "offline": False}
        made, _ = predict_group(asked, asked.chips, asks, rows, loads)
        rate, time = (np.broadcast_to(made[name], rows.shape) for name in ("output_tput_tok_s_per_gpu", "tpot_ms_mean"))
        ends = np.cumsum(counts)[:-1]
        found += [Curve(*pair) for pair in zip(np.split(MILLI / time, ends), np.split(rate, ends), strict=True)]
    return found


def loads_between(least: float, most: float) -> Array:
    """Return the loads from the least to the most that a configuration was run at, in small steps."""
    return np.geomspace(least, most, max(int(np.ceil(np.log(most / least) / np.log(STEP))) + 1, 1))


def made_at(curves: Sequence[Curve], speed: float) -> float:
    """Return the most that any configuration makes a chip at a speed or a higher one; zero where none has it."""
    made = (float(np.interp(-np.log(speed), -np.log(one.speed), one.rate, left=0.0)) for one in curves)
    return max(made, default=0.0)


def speed_at(curves: Sequence[Curve], rate: float) -> float:
    """Return the highest speed at which any configuration makes so much a chip or more; zero where none does."""
    found = (float(np.interp(rate, one.rate, one.speed, right=0.0)) for one in curves)
    return max(found, default=0.0)
