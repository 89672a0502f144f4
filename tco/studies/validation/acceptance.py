"""Measured lengths that steps of speculative decoding are accepted at, as questions: so many drafts, at the chances a workload states."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tco.performance.serving.plans import tokens_of_drafts
from tco.studies.validation.measured import column, refused
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications, command_line

TARGET = "acceptance_length_tokens_per_step"
ASKED = ("b200-hgx8", "tpot_s")  # any system's time of a token rests on the tokens of a step, beside the step
KEY = "tree/inputs/1/value"


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of accepted lengths."""
    drafts, target = column(table, "draft_tokens"), column(table, TARGET)
    skip = refused(
        table,
        (~(drafts > 0), "unstated drafts"),
        (np.isnan(target), "unstated result"),
        ((target < 1) | (target > drafts + 1), "suspect: fewer tokens than the step's own, or more than it drafts"),
    )
    predicted = np.where(skip == "", tokens_of_drafts(chips.values, drafts), np.nan)
    command = [
        command_line(["explain", *ASKED], {}, {"workload.draft_tokens": count}) if why == "" else "" for count, why in zip(drafts, skip, strict=True)
    ]
    names, keys = (np.full(len(table), text, dtype=object) for text in (TARGET, KEY))
    return Prediction(target, predicted, names, skip, np.array(command, dtype=object), keys, np.ones(len(table)))
