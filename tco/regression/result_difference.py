"""Differences between two results, with the steps of every metric that moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog.labels import count_with_noun
from tco.core.errors import DataError, located
from tco.core.files import read_json
from tco.core.notebook_display import Shown
from tco.core.types import JsonObject
from tco.evaluation.evaluation import SAVED, catalogue_for, evaluate_each
from tco.evaluation.what_if import UNMOVED
from tco.regression.attribution import attribute_change, changes_between_states
from tco.regression.counterfactual import (
    Counterfactual,
    between_systems,
)
from tco.regression.difference import ChangeCause, Move, compare_states
from tco.regression.state import check_state, refuse_own_values, state_of
from tco.scenario.result import SCHEMA, Result

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import Evaluation


class MetricMoves(NamedTuple):
    """Metrics that moved, step by step, and everything that differs beside them."""

    moves: list[Move]
    causes: list[ChangeCause]


class Difference(Shown, MetricMoves):
    """Differences between two results, with the walk from one system to the other."""

    counterfactual: Counterfactual | None = None
    notes: Sequence[str] = ()  # on settings that move nothing, or not the cost

    @property
    def line(self) -> str:
        """Counts of differing metrics and inputs, as a line of text.

        Between two systems the line begins with the change of the cost.
        """
        walk, head = self.counterfactual, ""
        if walk is not None:
            head = f"{walk.metric} {walk.ends[0]:.3g} -> {walk.ends[1]:.3g}, "
        metrics = count_with_noun(len(self.moves), "metric")
        return f"{head}{metrics} and {count_with_noun(len(self.causes), 'input')} differ"

    def to_frame(self) -> Any:
        """Return the steps between two systems, or else the metrics that moved, as a data frame."""
        import pandas as pd

        walk = self.counterfactual
        if walk is None:
            move_rows = [move[:4] for move in self.moves]
            return pd.DataFrame(move_rows, columns=["metric", "old", "new", "change"])
        scenarios = (walk.source.scenario, walk.target.scenario)
        return pd.DataFrame(walk.rows, columns=["cause", "of", *scenarios, "from", "to", "change"])


def diff(
    a: str | Path | Result,
    b: str | Path | Result,
    set: Mapping[str, str] | None = None,  # noqa: A002
    data: Path | None = None,
    metric: str | None = None,
) -> Difference:
    """Return the differences from `a` to `b`, with their causes.

    Args:
        a: Scenario by name or path, result, or file of a saved result.
        b: Scenario or result to compare with `a`, in any of these forms.
        set: Values of inputs of `b` by path; `a` stays as it is.
        data: Folder of own data; None takes no further data.
        metric: Cost to split into steps between two systems; None, or a metric that is no cost,
            takes the first cost that both systems have.

    Returns:
        Metrics that moved, inputs that differ and, between two evaluated systems, the change of a
        cost in steps.

    Raises:
        DataError: A scenario is unknown, or a file is no saved result.

    """
    old, source = _load_state(a, data, {})
    new, target = _load_state(b, data, dict(set or {}))
    catalogue = catalogue_for(a if isinstance(a, str) else None, data)
    changes = compare_states(old, new)
    applied_changes = changes_between_states(old, new, catalogue) if changes.moves else []
    moves = [
        move._replace(steps=attribute_change(applied_changes, move.metric, move.ends[0]))
        if move.ends
        else move
        for move in changes.moves
    ]
    difference = Difference(moves, changes.causes)
    if source and target and changes.system:
        difference.counterfactual = between_systems(source, target, metric)
    if source and target and set:
        difference.notes = _notes_on_settings(target, set)
    return difference


def _notes_on_settings(target: Evaluation, paths: Iterable[str]) -> list[str]:
    """Return the notes on settings of `target` that move nothing, or not the cost."""
    beginnings = tuple(f"{path} {words}" for path in paths for words in ("is set", UNMOVED))
    return [note for note in target.result.notes if note.startswith(beginnings)]


def _load_state(
    state_source: str | Path | Result, data_folder: Path | None, settings: Mapping[str, str]
) -> tuple[JsonObject, Evaluation | None]:
    """Return the state of a result or of the JSON of `tco price`.

    The evaluation beside it is None where it cannot be repeated.
    """
    if not isinstance(state_source, Result) and str(state_source).endswith(SAVED):
        wrong = (
            f"{state_source}: is no saved result; `Result.save` or `tco price SCENARIO --format "
            "json --output FILE` writes one"
        )
        with located(wrong):
            document = read_json(Path(state_source), "a saved result")
            content = document if isinstance(document, dict) else {}
            if "state" in content:
                check_state(content["state"], "state")
                remedy = "write it again with --redact"
                refuse_own_values(content["state"], str(state_source), remedy)
                return content["state"], None
        # a document of another command, such as `compare`
        if content.get("schema", SCHEMA) != SCHEMA:
            raise DataError(f"{wrong}: its schema is {content['schema']!r}")
    (evaluation,) = evaluate_each([state_source], data_folder, settings)
    return state_of(evaluation.result), None if evaluation.saved else evaluation
