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


def checks(found: Sweep) -> list[Check]:
    """Return the expected figures of a sweep, each with today's value.

    Args:
        found: Finished sweep.

    Returns:
        Checks in the order of the study's figures; empty where the study expects none, or where own
        settings or data make another question.

    """
    job = found.job
    if not job.study.expect or job.study.settings != {
        path: str(value) for path, value in job.study.document.get("set", {}).items()
    }:
        return []
    return (
        []
        if any(job.ground.folders)
        else [Check(one, today(one, found)) for one in job.study.expect]
    )


def today(figure: ExpectedFigure, found: Sweep) -> float | None:
    """Return the current value of `figure`: a quantile over finite draws.

    All cases share the draws, so a ratio of two cases is formed draw by draw. The result is None
    where no draw has a value.
    """
    import numpy as np

    many = _read_case_draws(figure.metric, figure.at, found)
    if figure.over is not None:
        many = many / _read_case_draws(figure.metric, {**figure.at, **figure.over}, found)
    many = many[np.isfinite(many)]
    return float(np.quantile(many, figure.quantile)) if len(many) else None


def _read_case_draws(metric: str, at: JsonMapping, found: Sweep) -> Any:
    """Return a metric in every draw of a case, in the order of the draws."""
    dataset = library("pyarrow.dataset", "Parquet", "sweep")

    grid: Mapping[str, Sequence[Any]] = found.job.study.grid
    wanted = dataset.field("scenario") == at["scenario"]
    for axis in found.job.axes:
        wanted &= dataset.field(axis.path) == axis.listed[grid[axis.path].index(at[axis.path])]
    column = found.dataset().to_table(columns=[metric], filter=wanted)[metric]
    return column.to_numpy().astype(float)
