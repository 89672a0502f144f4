"""The figures that a study's answer states, checked against a finished sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.core.errors import library
from tco.core.types import JsonMapping
from tco.sweeps.answer import ExpectedFigure

if TYPE_CHECKING:
    from tco.sweeps.run import Sweep


class Check(NamedTuple):
    """A figure of the answer and what it is today; none where no draw has a value."""

    figure: ExpectedFigure
    today: float | None

    @property
    def holds(self) -> bool:
        """Say whether the answer is today's."""
        return self.figure.reads(self.today)


def checks(finished_sweep: Sweep) -> list[Check]:
    """Return the expected figures of a sweep, each with today's value.

    Args:
        finished_sweep: Finished sweep.

    Returns:
        Checks in the order of the study's figures; empty where the study expects none, or where own
        settings or data make another question.

    """
    study = finished_sweep.job.study
    stated = {path: str(setting) for path, setting in study.document.get("set", {}).items()}
    if study.settings != stated or any(finished_sweep.job.environment.folders):
        return []
    return [Check(figure, today(figure, finished_sweep)) for figure in study.expect]


def today(figure: ExpectedFigure, finished_sweep: Sweep) -> float | None:
    """Return the current value of `figure`: a quantile over finite draws.

    All cases share the draws, so a ratio of two cases is formed draw by draw. The result is None
    where no draw has a value.
    """
    import numpy as np

    draw_values = _read_case_draws(figure.metric, figure.figure_case, finished_sweep)
    if figure.over is not None:
        draw_values = draw_values / _read_case_draws(
            figure.metric, {**figure.figure_case, **figure.over}, finished_sweep
        )
    draw_values = draw_values[np.isfinite(draw_values)]
    return float(np.quantile(draw_values, figure.quantile)) if len(draw_values) else None


def _read_case_draws(metric: str, figure_case: JsonMapping, finished_sweep: Sweep) -> Any:
    """Return a metric in every draw of a case, in the order of the draws."""
    dataset = library("pyarrow.dataset", "Parquet", "sweep")

    grid: Mapping[str, Sequence[Any]] = finished_sweep.job.study.grid
    case_filter = dataset.field("scenario") == figure_case["scenario"]
    for axis in finished_sweep.job.axes:
        case_filter &= (
            dataset.field(axis.path) == axis.listed[grid[axis.path].index(figure_case[axis.path])]
        )
    column = finished_sweep.dataset().to_table(columns=[metric], filter=case_filter)[metric]
    return column.to_numpy().astype(float)
