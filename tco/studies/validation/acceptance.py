"""Measured lengths that steps of speculative decoding are accepted at, as questions: so many drafts, at the chances a workload states."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tco.performance.serving.requests import accepted_tokens
from tco.studies.validation.measured import base_skips, column
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications

TARGET = "acceptance_length_tokens_per_step"


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of accepted lengths."""
    drafts, target = column(table, "draft_tokens"), column(table, TARGET)
    skip = np.array(base_skips(table), dtype=object)
    skip[(skip == "") & ~(drafts > 0)] = "unstated drafts"
    skip[(skip == "") & np.isnan(target)] = "unstated result"
    skip[(skip == "") & ((target < 1) | (target > drafts + 1))] = "suspect: fewer tokens than the step's own, or more than it drafts"
    chances = (chips.values[f"workload.{name}"] for name in ("spec_acceptance", "spec_decline"))
    predicted = np.where(skip == "", accepted_tokens(drafts, *chances), np.nan)
    return Prediction(target, predicted, np.full(len(table), TARGET, dtype=object), skip)
