"""Sampled requests of a traffic document: the joint lengths of a trace, as `[sample]` holds them.

Beside the requests, `[sample]` holds the quantiles and the reuse of the trace. Where those of the
document are others, the sample is stretched: logarithms of lengths move by what lies on straight
lines between the quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tco.core.errors import DataError, refuse_unknown
from tco.core.types import FloatArray, JsonMapping, is_finite_number

LENGTHS = tuple(f"{side}_p{quantile}" for side in ("input", "output") for quantile in (50, 90, 99))


def stretched_sample(
    path: Path, document: JsonMapping, traffic_values: Mapping[str, float]
) -> FloatArray | None:
    """Return the sampled requests of a document, stretched to its quantiles and its reuse.

    Args:
        path: File of the document, for errors.
        document: Traffic document.
        traffic_values: Its values, with those that are set.

    Returns:
        Tokens of prompts, answers and, if known, prefixes, shape (requests, 2 or 3); None where the
        document has no sample.

    Raises:
        DataError: The sample is malformed, or its correlation is not that of the values.

    """
    if "sample" not in document:
        return None
    table = document["sample"]
    needed = (*LENGTHS, "correlation", "requests")
    if not isinstance(table, dict) or not all(field_name in table for field_name in needed):
        raise DataError(f"{path}: sample: expected a table with {', '.join(needed)}")
    refuse_unknown("key", table, (*needed, "reuse"), f"{path}: sample")
    sample = _sampled_requests(path, table["requests"])
    traced = {
        field_name: _number_of(path, field_name, table[field_name])
        for field_name in table
        if field_name != "requests"
    }
    if traced["correlation"] != traffic_values["correlation"]:
        raise DataError(
            f"{path}: correlation is {traffic_values['correlation']:g}, and its [sample] has that "
            "of the trace; take [sample] out, and the lengths follow their quantiles"
        )
    for column in (0, 1):
        before, after = (
            np.array([numbers[length_name] for length_name in LENGTHS[3 * column : 3 * column + 3]])
            for numbers in (traced, traffic_values)
        )
        tokens = sample[:, column].copy()
        stretch = np.interp(np.log(tokens), np.log(before), np.log(after / before))
        sample[:, column] = np.maximum(np.rint(tokens * np.exp(stretch)), 1)
        if column == 0 and sample.shape[1] > 2:
            sample[:, 2] = np.floor(sample[:, 2] * sample[:, 0] / tokens)
    if sample.shape[1] > 2:
        more_reuse = traffic_values["reuse"] / traced.get("reuse", 1.0)
        sample[:, 2] = np.minimum(np.floor(sample[:, 2] * more_reuse), sample[:, 0])
    return sample


def _sampled_requests(path: Path, sample_rows: object) -> FloatArray:
    """Return the checked requests of a sample, shape (requests, 2 or 3)."""
    sample_rows = sample_rows if isinstance(sample_rows, list) else []
    columns = {len(sample_row) if isinstance(sample_row, list) else 0 for sample_row in sample_rows}
    if columns not in ({2}, {3}):
        raise DataError(
            f"{path}: sample.requests: expected lists of two or three numbers: tokens of a prompt, "
            "of its answer and, if known, of its prefix"
        )
    for number, sample_row in enumerate(sample_rows, 1):
        prompt, answer, *prefix = (_number_of(path, "requests", tokens) for tokens in sample_row)
        if min(prompt, answer) < 1 or not 0 <= sum(prefix) <= prompt:
            raise DataError(
                f"{path}: sample.requests: request {number} is {sample_row}, expected a prompt and "
                "an answer of 1 token or more, and a prefix no longer than the prompt"
            )
    return np.array(sample_rows, dtype=float)


def _number_of(path: Path, field_name: str, field_value: object) -> float:
    if not is_finite_number(field_value) or abs(field_value) >= 1e12:
        raise DataError(f"{path}: sample.{field_name}: is {field_value!r}, expected a number")
    return float(field_value)
