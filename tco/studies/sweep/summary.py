"""What a sweep comes to in few lines: its cases where there are few, else what each metric runs through by scenario."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.studies.sweep.run import Sweep

FEW = 40  # cases that are shown one by one
MANY = 2_000_000  # cases beyond which they are only counted: reading them takes as long as the program may take to answer


class Span(NamedTuple):
    """What a metric runs through in the cases of a scenario."""

    scenario: str
    metric: str
    cases: int  # that have it
    low: float
    median: float
    high: float


class Summary(NamedTuple):
    """How many cases were kept, and what is shown of them."""

    rows: int
    shown: Any  # a data frame of all, where they are few
    spans: list[Span]


def summary(found: Sweep) -> Summary:
    """Return what a finished sweep comes to."""
    from pyarrow import dataset

    parts = dataset.dataset(found.folder, format="parquet", filesystem=None)
    rows = parts.count_rows()
    if rows > MANY:
        return Summary(rows, None, [])
    if rows <= FEW:
        return Summary(rows, found.to_frame(), [])
    report = list(found.job.study.report)
    frame = parts.to_table(columns=["scenario", *report]).to_pandas()
    spans = []
    for scenario in found.job.study.scenarios:
        mine = frame[frame["scenario"] == scenario]
        for metric in report:
            many = mine[metric].dropna()
            if len(many):
                spans.append(Span(scenario, metric, len(many), float(many.min()), float(many.median()), float(many.max())))
    return Summary(rows, None, spans)
