"""A trace of requests summed up as traffic: rate, bursts, lengths, sessions. A bad row is told by
line and column.
"""

from __future__ import annotations

import json
import math
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.core.errors import DataError
from tco.core.files import is_there, read_csv

NEEDED, ALSO = ("arrived", "input_tokens", "output_tokens"), ("session", "prefix")
LEAST, MOST = 2, 1e12  # requests that tell a rate, and of any number
SAID = {
    "requests_per_s": "requests over the time they came in",
    "arrival_cv": "standard deviation of the time between requests over its mean",
    "correlation": "rank correlation of the lengths of prompts and answers",
    "turns": "requests of a session",
    "thinking_time": "median time between two requests of a session",
    "reuse": "tokens of prefixes over those of the prompts that have one",
}


class RequestTrace(NamedTuple):
    """Requests in the order they came: seconds, tokens, and sessions by number."""

    arrived: Any
    prompt: Any
    answer: Any
    session: Any
    prefix: Any


def read_trace(path: Path) -> RequestTrace:
    """Read a trace of requests from a CSV file.

    Args:
        path: File with the columns `arrived` (s), `input_tokens`, `output_tokens`, and optionally
            `session` and `prefix` (tokens).

    Returns:
        Arrays of shape (requests,); None for a column that the file lacks.

    Raises:
        DataError: The file is missing, lacks a column, has a value that is no number within its
            bounds, is not in the order of arrival, or has no two requests at different times. The
            error of a value names line and column.

    """
    if not is_there(path):
        raise DataError(
            f"{path}: no such file, expected a trace with the columns {', '.join(NEEDED)}"
        )
    kept, sessions, before = (
        {name: array("d") for name in NEEDED + ALSO},
        dict[str, int](),
        -math.inf,
    )
    for line, row in read_csv(path, NEEDED, ALSO):
        for column, (name, text) in enumerate(row.items(), 1):
            if name == "session":
                kept[name].append(sessions.setdefault(text, len(sessions)))
                continue
            least = 1.0 if name.endswith("_tokens") else 0.0
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not least <= value < MOST:
                raise DataError(
                    f"{path}:{line}:{column}: {name} is {text!r}, expected a number of {least:g} "
                    "or more"
                )
            if name == "arrived" and value < before:
                raise DataError(
                    f"{path}:{line}:{column}: arrived is earlier than in the line before, expected "
                    "rows in the order they came"
                )
            kept[name].append(value)
        before = kept["arrived"][-1]
    arrived = kept["arrived"]
    if len(arrived) < LEAST or arrived[-1] <= arrived[0]:
        raise DataError(
            f"{path}: {len(arrived)} requests in no time, expected {LEAST} or more that come one "
            "after another"
        )
    return RequestTrace(*(np.frombuffer(many) if len(many) else None for many in kept.values()))


def trace_statistics(trace: RequestTrace) -> dict[str, float]:
    """Return statistics of a request trace, by name of the traffic input."""
    gaps, count = np.diff(trace.arrived), len(trace.arrived)
    found = {
        "requests_per_s": float(1 / gaps.mean()),
        "arrival_cv": float(gaps.std() / gaps.mean()),
    }
    for side, many in (("input", trace.prompt), ("output", trace.answer)):
        found |= {f"{side}_p{at}": float(np.quantile(many, at / 100)) for at in (50, 90, 99)}
    ranks = [
        np.argsort(np.argsort(many, kind="stable"), kind="stable")
        for many in (trace.prompt, trace.answer)
    ]
    alike = any(np.ptp(many) == 0 for many in (trace.prompt, trace.answer)) or count < 3
    found["correlation"] = 0.0 if alike else float(np.asarray(np.corrcoef(np.stack(ranks)))[0, 1])
    if trace.session is not None:
        order = np.lexsort((trace.arrived, trace.session))
        same = np.diff(trace.session[order]) == 0
        found["turns"] = count / (count - int(same.sum()))
        if same.any():
            found["thinking_time"] = float(np.median(np.diff(trace.arrived[order])[same]))
    if trace.prefix is not None and (shared := trace.prefix > 0).any():
        found["reuse"] = float(min(trace.prefix[shared].sum() / trace.prompt[shared].sum(), 1.0))
    return found


def traffic_text(trace: RequestTrace, name: str) -> str:
    """Return the TOML document of the traffic of a trace.

    Args:
        trace: The requests.
        name: Name of the trace, which the document repeats.

    """
    found = trace_statistics(trace)
    unit = {"thinking_time": "s"}
    said = [
        f"# Summed up from {json.dumps(name)}: {len(trace.arrived):,} requests.\nname = "
        f"{json.dumps(f'As {name}')}\n"
    ]
    said.append('promises = ["ttft p90 <= 2 s", "tpot p90 <= 50 ms"]  # yours\n')
    for key, value in found.items():
        note = SAID.get(key, "quantile of the trace")
        ends = "".join(f"{name} = {value!r}\n" for name in ("value", "low", "high"))
        said.append(
            f'\n[{key}]\n{ends}unit = "{unit.get(key, "")}"\nkind = "measured"\nsource = '
            f'"own"\nnote = "{note}"\n'
        )
    return "".join(said)
