"""Serving rows held against themselves: requests in flight are the rate of requests times the time one takes (Little's law).

Of a closed loop the left side is the stated concurrency, and the right side follows from the printed throughput and latencies. Of
the 1,281 shipped rows that state both, 94 in 100 agree within 15 %, and all lie between 0.73 and 1.17 but for a group of 36 from 0.02
to 0.68. Medians printed for means explain the first, nothing the second: rate, latency or concurrency are of another run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tco.studies.validation.measured import column

BREAKS = "suspect: breaks Little's law: rate x time of a request is not the stated concurrency"
TOLERANCE = 1.4  # ratio of the two sides, either way


def first_stated(table: pd.DataFrame, *names: str) -> np.ndarray[Any, Any]:
    """Return of every row the first of some columns that it states."""
    found = column(table, names[0])
    for name in names[1:]:
        found = np.where(np.isnan(found), column(table, name), found)
    return found


def requests_in_flight(table: pd.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the requests that are being answered and those that wait for a first token, as rates and latencies imply; NaN where unstated.

    The output rate of separate pools is printed per chip of either all pools or one, so that only the rate of all tokens is read there.
    """
    prompt, answer = column(table, "isl_tokens"), column(table, "osl_tokens")
    separate = column(table, "prefill_gpus") > 0
    output = np.where(separate, np.nan, column(table, "output_tput_tok_s_per_gpu"))
    total = column(table, "total_tput_tok_s_per_gpu")
    rate = column(table, "n_gpus") * np.where(np.isnan(total), output, total * answer / (prompt + answer)) / answer
    first = first_stated(table, "ttft_ms_mean", "ttft_ms_median") / 1e3
    each = first_stated(table, "tpot_ms_mean", "tpot_ms_median") / 1e3
    each = np.where(np.isnan(each), 1 / column(table, "interactivity_tok_s_per_user"), each)
    return rate * (answer - 1) * each, rate * first


def breaks_littles_law(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Say of every row whether its own figures contradict each other; without a time to first token there are only too many requests."""
    with np.errstate(divide="ignore", invalid="ignore"):
        stated = column(table, "concurrency")
        concurrency = np.where(np.isinf(stated), np.nan, stated)  # offline there is nothing to hold the other side against
        answered, waiting = (requests / concurrency for requests in requests_in_flight(table))
        return np.asarray((answered + np.nan_to_num(waiting) > TOLERANCE) | (answered + waiting < 1 / TOLERANCE))
