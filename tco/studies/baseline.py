"""Cost regression: keep the state of scenarios, and say which metric moved since, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tco.foundation.errors import DataError, unknown
from tco.foundation.files import read_text, write_atomically
from tco.studies.difference import Cause, Move, causes, moves

FOLDER = Path("reports") / "baselines"
SECTIONS = ("metrics", "texts", "quantities", "inputs")


class Drift(NamedTuple):
    """One metric of one scenario that moved beyond the threshold."""

    scenario: str
    move: Move
    why: list[Cause]


def baseline_path(name: str, folder: Path = FOLDER) -> Path:
    """Return the file of a baseline; a name that is a path raises `DataError`."""
    if not name or Path(name).name != name or name.startswith("."):
        raise DataError(f"{name!r} is no name for a baseline; expected letters, digits and dashes")
    return folder / f"{name}.json"


def save(path: Path, states: dict[str, dict[str, Any]]) -> None:
    """Write the states of some scenarios, a value a line, so that a change shows as a small diff."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"schema": "tco.baseline/1", "scenarios": states}, indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Return the states a baseline keeps; a missing or broken file raises `DataError`."""
    if not path.is_file():
        raise unknown("baseline", path.stem, [found.stem for found in path.parent.glob("*.json")], str(path.parent))
    try:
        kept = json.loads(read_text(path))["scenarios"]
        whole = all(set(SECTIONS) <= set(state) for state in kept.values())
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise DataError(f"{path}: is no baseline; `tco baseline save` writes one")
    states: dict[str, dict[str, Any]] = kept
    return states


def drifts(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]], threshold: float, max_increase: float | None) -> list[Drift]:
    """Return the metrics that moved by more than `threshold` either way, or, upwards only, by more than `max_increase`."""
    found = []
    for scenario, before in old.items():
        after = new[scenario]
        why = causes(before, after)
        for move in moves(before, after, threshold):
            tolerated = max_increase is not None and move.change is not None and 0 < move.change <= max_increase
            if not tolerated:
                found.append(Drift(scenario, move, why))
    return found
