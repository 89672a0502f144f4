"""What no parameter explains: how far single measured runs lie off once all parameters are fitted, as the range of an input of each family.

The ranges of the parameters say how sure their values are, as groups of rows are left out. A run beside it has causes of its own: a
driver, a cooler rack, an operator nobody timed. Both are in the range of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tco.catalog.rows import attribute
from tco.studies.validation.measured import TIMES
from tco.studies.validation.score import Prediction

Array = np.ndarray[Any, Any]
PARAMETERS = {"inference": "unexplained_serving", "training": "unexplained_training"}  # kinds whose answers have ranges


def time_beyond(made: Prediction) -> Array:
    """Return what each scored row took beyond its prediction, as a share of it: x = t / t_model - 1, of rates R_model / R - 1."""
    scored = made.skip == ""
    ratio = made.target[scored] / made.predicted[scored]
    beyond: Array = np.where(np.isin(made.target_name[scored], TIMES), ratio, 1 / ratio) - 1
    return beyond


def unexplained_rows(kind: str, made: Prediction, families: Iterable[str], date: str) -> Iterator[dict[str, Any]]:
    """Yield the catalogue rows of what a fit leaves unexplained: P5 and P95 over all rows of a kind, for every family of chips alike."""
    if kind not in PARAMETERS:
        return
    beyond = time_beyond(made)
    low, high = (float(f"{value:.4g}") for value in np.quantile(beyond, (0.05, 0.95)))
    unit = attribute("performance", PARAMETERS[kind], kind).unit
    note = f"P5 and P95 over the {len(beyond):,} rows of the fit"
    for family in sorted(families):
        yield {
            **{"family": family, "attribute": PARAMETERS[kind], "value": 0, "unit": unit, "low": min(low, 0.0), "high": max(high, 0.0)},
            **{"as_of": date, "kind": "derived", "source": "tco-calibration", "note": note, "use": "", "residual": ""},
        }
