"""Statistics of a trace of requests, and the traffic document that stands for it.

The document keeps the rate, the bursts and the joint lengths of the requests: it holds a sample
whose means are those of the trace.
"""

from __future__ import annotations

import json

import numpy as np

from tco.comparison.trace_files import RequestTrace
from tco.core.types import FloatArray
from tco.performance.service.length_samples import LENGTHS
from tco.performance.service.traffic import Traffic

SAMPLED_REQUESTS = 1000  # of a document, at most
SIMULATED_REQUESTS = 50 * SAMPLED_REQUESTS
DEFINITIONS = {
    "requests_per_s": "requests over the time they came in",
    "arrival_cv": "standard deviation of the time between requests over its mean",
    "correlation": "rank correlation of the lengths of prompts and answers",
    "turns": "requests of a session",
    "thinking_time": "median time between two requests of a session, or of a prefix",
    "reuse": "tokens of prefixes over those of the prompts that have one",
}
UNITS = {"thinking_time": "s"}


def trace_statistics(trace: RequestTrace) -> dict[str, float]:
    """Return statistics of a request trace, by name of the traffic input."""
    from tco.validation.score import spearman  # takes long to import

    gaps, count = np.diff(trace.arrived), len(trace.arrived)
    statistics = {
        "requests_per_s": float(1 / gaps.mean()),
        "arrival_cv": float(gaps.std() / gaps.mean()),
    }
    for length_name in LENGTHS:
        side, percentile = length_name.split("_p")
        lengths = trace.prompt if side == "input" else trace.answer
        statistics[length_name] = float(np.quantile(lengths, int(percentile) / 100))
    statistics["correlation"] = spearman(trace.prompt, trace.answer) or 0.0
    waits = trace.since_use
    if trace.session is not None:
        order = np.lexsort((trace.arrived, trace.session))
        same_session = np.diff(trace.session[order]) == 0
        if same_session.any():
            statistics["turns"] = count / (count - int(same_session.sum()))
            waits = np.diff(trace.arrived[order])[same_session]
    if waits is not None and not np.isnan(waits).all():
        statistics["thinking_time"] = float(np.nanmedian(waits))
    if trace.prefix is not None and (shared := trace.prefix > 0).any():
        statistics["reuse"] = float(trace.prefix[shared].sum() / trace.prompt[shared].sum())
    return statistics


def sampled_lengths(trace: RequestTrace) -> FloatArray:
    """Return tokens of prompts, answers and prefixes of some requests, shape (requests, 2 or 3).

    The ranks are those of requests from strata of equal size in both lengths. Each length is the
    mean of an equal part of the sorted lengths of the trace, so that the sample has their means.
    """
    count = len(trace.prompt)
    size = min(count, SAMPLED_REQUESTS)
    strata = int(np.sqrt(size))
    by_prompt = np.argsort(trace.prompt, kind="stable")
    stratum = np.empty(count)
    stratum[by_prompt] = np.arange(count) * strata // count
    order = np.lexsort((trace.answer, stratum))
    chosen = order[((np.arange(size) + 0.5) * count / size).astype(int)]
    columns = []
    for lengths in (trace.prompt, trace.answer):
        ranks = np.argsort(np.argsort(lengths[chosen], kind="stable"), kind="stable")
        columns.append(np.maximum(np.rint(_means_of_parts(lengths, size)[ranks]), 1))
    if trace.prefix is not None and trace.prefix.any():
        share = trace.prefix[chosen] / trace.prompt[chosen]
        columns.append(np.rint(share * columns[0]))
    return np.stack(columns, axis=1)


def _means_of_parts(lengths: FloatArray, parts: int) -> FloatArray:
    """Return the means of equal parts of the sorted lengths."""
    sums = np.concatenate([[0.0], np.cumsum(np.sort(lengths))])
    edges = np.linspace(0, len(lengths), parts + 1)
    of_parts: FloatArray = np.diff(np.interp(edges, np.arange(len(sums)), sums))
    return of_parts * parts / len(lengths)


def traffic_text(trace: RequestTrace, trace_name: str) -> str:
    """Return the TOML document of the traffic of a trace.

    Args:
        trace: The requests.
        trace_name: Name of the trace, which the document repeats.

    """
    statistics, sample = trace_statistics(trace), sampled_lengths(trace)
    texts = [
        f"# Summed up from {json.dumps(trace_name)}: {len(trace.arrived):,} requests.\n"
        "# Kept: their rate and bursts, and the joint lengths in [sample].\n"
        "# Lost: how the rate moves over hours, and the order of the lengths.\n"
        f"name = {json.dumps(f'As {trace_name}')}\n"
        'promises = ["ttft p90 <= 2 s", "tpot p90 <= 50 ms"]  # yours\n'
    ]
    for statistic_name, statistic_value in statistics.items():
        numbers = "".join(
            f"{number} = {statistic_value!r}\n" for number in ("value", "low", "high")
        )
        texts.append(
            f'\n[{statistic_name}]\n{numbers}unit = "{UNITS.get(statistic_name, "")}"\n'
            'kind = "measured"\n'
            f'source = "own"\nnote = "{DEFINITIONS.get(statistic_name, "quantile of the trace")}"\n'
        )
    of_trace = "".join(
        f"{statistic_name} = {statistics[statistic_name]!r}\n"
        for statistic_name in (*LENGTHS, "correlation", "reuse")
        if statistic_name in statistics
    )
    columns = ("prompt", "answer", "prefix")[: sample.shape[1]]
    rows_text = "".join(f"    {list(map(int, sample_row))},\n" for sample_row in sample.tolist())
    texts.append(
        "\n# Requests whose lengths stand for those of the trace. A quantile or a reuse that is\n"
        "# changed above, or set, stretches them from what they are here.\n"
        f"[sample]\n{of_trace}# tokens: {', '.join(columns)}\nrequests = [\n{rows_text}]\n"
    )
    return "".join(texts)


def compared_means(trace: RequestTrace, traffic: Traffic) -> list[tuple[str, float, float, str]]:
    """Return label, mean of the trace, simulated mean and unit of what lengths come to."""
    simulated = traffic.requests(1, "random", SIMULATED_REQUESTS, 0, 1.0)[1]
    means = [
        ("prompt", trace.prompt.mean(), simulated.prompt.mean(), "tokens"),
        ("answer", trace.answer.mean(), simulated.answer.mean(), "tokens"),
    ]
    if trace.prefix is not None:
        shares = (
            part.sum() / prompt.sum() * 100
            for part, prompt in (
                (trace.prefix, trace.prompt),
                (simulated.prior_tokens, simulated.prompt),
            )
        )
        means.append(("share of prompts read before", *shares, "%"))
    return [(label, float(first), float(second), unit) for label, first, second, unit in means]
