"""How often the model puts two systems in the right order: pairs of serving points at one interactivity."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tco.studies.validation.measured import column, texts
from tco.studies.validation.score import Prediction

CLOSE = 1.1  # interactivities within this ratio are one
WORKLOAD = ("model", "isl_tokens", "osl_tokens", "precision")


def order(table: pd.DataFrame, made: Prediction) -> dict[str, float]:
    """Return pairs of accelerators on one workload, the share in the right order, and the median error of their ratio; nothing without pairs."""
    speed = column(table, "interactivity_tok_s_per_user")
    usable = (made.skip == "") & (made.target_name != "tpot_ms_mean") & (speed > 0)
    keys = pd.DataFrame({name: texts(table, name).astype(str) for name in WORKLOAD}).assign(target=made.target_name)
    chips = texts(table, "accelerator").astype(str)
    truths, guesses = [], []
    for _, group in keys[usable].groupby(list(keys.columns)):
        rows = group.index.to_numpy()
        one, other = np.triu_indices(len(rows), 1)
        a, b = rows[one], rows[other]
        pair = (chips[a] != chips[b]) & (np.abs(np.log(speed[a] / speed[b])) <= np.log(CLOSE))
        a, b = a[pair], b[pair]
        truths.append(made.target[a] / made.target[b])
        guesses.append(made.predicted[a] / made.predicted[b])
    if not sum(map(len, truths)):
        return {}
    truth, guess = np.concatenate(truths), np.concatenate(guesses)
    return {
        "pairs": len(truth),
        "right": float(np.mean((truth > 1) == (guess > 1))),
        "ratio_error": float(np.median(np.abs(guess / truth - 1))),
    }
