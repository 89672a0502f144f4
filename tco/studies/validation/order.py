"""How often the model puts two systems in the right order: pairs of serving points at one interactivity."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tco.studies.validation.measured import column, texts
from tco.studies.validation.score import Prediction

CLOSE = 1.1  # interactivities within this ratio are one
MOST = 400  # points of one workload taken, the first ones, so that no workload drowns the others


def order(table: pd.DataFrame, made: Prediction) -> dict[str, float]:
    """Return pairs of different accelerators on one workload, the share in the right order, and the median error of their ratio."""
    speed = column(table, "interactivity_tok_s_per_user")
    usable = (made.skip == "") & (made.target_name != "tpot_ms_mean") & ~np.isnan(speed)
    keys = pd.DataFrame({name: texts(table, name).astype(str) for name in ("model", "isl_tokens", "osl_tokens", "precision")})
    chips = texts(table, "accelerator")
    right, errors = [], []
    for _, group in keys[usable].groupby(list(keys.columns)):
        for a, b in combinations(group.index[:MOST], 2):
            if chips[a] != chips[b] and made.target_name[a] == made.target_name[b] and close(speed[a], speed[b]):
                truth, guess = made.target[a] / made.target[b], made.predicted[a] / made.predicted[b]
                right.append((truth > 1) == (guess > 1))
                errors.append(abs(guess / truth - 1))
    return {"pairs": len(right), "right": float(np.mean(right)), "ratio_error": float(np.median(errors))} if right else {"pairs": 0}


def close(a: Any, b: Any) -> bool:
    """Say whether two interactivities are one."""
    return bool(1 / CLOSE <= a / b <= CLOSE)
