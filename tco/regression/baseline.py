"""Baseline files: states of scenarios that a cost regression keeps, with drawn figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join

from tco.catalog.catalogue import is_name
from tco.core.errors import DataError, UsageError, unknown
from tco.core.file_lock import hold_lock
from tco.core.files import (
    is_there,
    read_json,
    read_toml,
    scenario_directory,
    write_atomically,
)
from tco.core.types import JsonMapping, JsonObject
from tco.regression.state import check_state, holds_own_values, refuse_own_values

FOLDER = Path("reports") / "baselines"
SCHEMA = "tco.baseline/2"
SCENARIO_KEYS = {"system", "workload"}  # by which a file of TOML is told to be a scenario
States = dict[str, JsonObject]


def baseline_path(baseline_name: str) -> Path:
    """Return the path of a baseline file.

    Args:
        baseline_name: Name of the baseline, a single path step that does not begin with a dot.

    Raises:
        DataError: The name cannot be the name of a file.

    """
    if not is_name(baseline_name) or baseline_name.startswith("."):
        raise DataError(
            f"{baseline_name!r} is no name for a baseline; expected letters, digits and dashes"
        )
    return FOLDER / f"{baseline_name}.json"


def save_baseline(path: Path, states: Mapping[str, JsonMapping], stakes: JsonMapping) -> list[str]:
    """Write states of scenarios into a baseline file.

    States of the same scenarios are replaced; states of all other scenarios stay, also those that
    another program saves at the same time. The file has a value a line, so that a change is a small
    diff. A file that is no baseline stays unchanged.

    Args:
        path: Path of the baseline file; its folder is made where absent.
        states: State by scenario.
        stakes: Drawn figures, as `stakes_of` returns them. The drawn figures of the file are
            replaced; an empty table removes all.

    Returns:
        Names of the scenarios of the file that are not in `states`.

    Raises:
        DataError: The file exists and is no baseline of this version.
        UsageError: The folder cannot be made, or the file cannot be written.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: cannot be made ({error.strerror})") from None
    with hold_lock(path):
        existing = load_baseline(path) if is_there(path) else {}
        document: JsonObject = {"schema": SCHEMA, "scenarios": {**existing, **states}}
        if stakes:
            document["stakes"] = stakes
        document_text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(path, document_text + "\n")
    return [scenario_name for scenario_name in existing if scenario_name not in states]


def load_baseline(path: Path) -> States:
    """Return the states of a baseline file by scenario.

    Args:
        path: Path of the baseline file.

    Raises:
        DataError: The file is missing, foreign, broken or of another version.

    """
    if not is_there(path):
        baseline_names = [file.stem for file in path.parent.glob("*.json")]
        if not baseline_names:
            raise DataError(
                f"{path.parent}: unknown baseline {path.stem!r}, as there is none; `tco baseline "
                "save` keeps the headline as one"
            )
        raise unknown("baseline", path.stem, baseline_names, str(path.parent))
    foreign = DataError(f"{path}: is no baseline; `tco baseline save` writes one")
    try:
        document = read_json(path, "a baseline")
    except DataError:
        raise foreign from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA and str(schema).startswith("tco.baseline/"):
        raise DataError(
            f"{path}: was saved by another version of tco ({schema}, expected {SCHEMA}); move it "
            "away and save its scenarios again"
        )
    if schema != SCHEMA or not isinstance(document.get("scenarios"), dict):
        raise foreign
    states: States = document["scenarios"]
    for scenario_name, state in states.items():
        check_state(state, f"{path}: {scenario_name}")
    return states


def refuse_own_states(path: Path, states: States, replaced: Sequence[str] = ()) -> None:
    """Refuse a baseline with own values where a run withholds them.

    Args:
        path: Path of the baseline file.
        states: States of the file by scenario.
        replaced: Scenarios whose states the run replaces, which may hold own values.

    Raises:
        KeptBackError: A state that is not replaced holds own values; the text names the command
            that saves all of them without.

    """
    unredacted = [
        scenario_name for scenario_name, state in states.items() if holds_own_values(state)
    ]
    scenario_names = dict.fromkeys([*replaced, *unredacted])
    words = ["tco", "baseline", "save", path.stem, *scenario_names, "--redact"]
    for scenario_name in unredacted:
        if scenario_name not in replaced:
            remedy = f"save the baseline without them: {join(words)}"
            refuse_own_values(states[scenario_name], f"{path}: {scenario_name}", remedy)


def load_stakes(path: Path) -> JsonObject:
    """Return the drawn figures of a baseline file.

    Args:
        path: Path of the baseline file.

    Returns:
        Figures by speed and scenario, as `stakes_of` returns them. The table is empty where the
        baseline was saved without draws.

    Raises:
        DataError: The file cannot be read as JSON, or the table is malformed.

    """
    stakes: JsonObject = read_json(path, "a baseline").get("stakes", {})
    speeds = list(stakes.values()) if isinstance(stakes, dict) else [None]
    if not all(
        isinstance(scenarios, dict)
        and all(isinstance(figures, dict) for figures in scenarios.values())
        for scenarios in speeds
    ):
        raise DataError(
            f"{path}: stakes: expected tables by speed and scenario; save the baseline again"
        )
    return stakes


def baseline_scenarios() -> dict[str, Sequence[str] | str]:
    """Return the scenarios of every baseline.

    Returns:
        Names of the scenarios by baseline; the text of the error where a file cannot be loaded.

    """
    scenarios: dict[str, Sequence[str] | str] = {}
    for path in sorted(FOLDER.glob("*.json")):
        try:
            scenarios[path.stem] = list(load_baseline(path))
        except DataError as error:
            scenarios[path.stem] = str(error)
    return scenarios


def unguarded_scenarios() -> list[str]:
    """Return the scenario files of the user that no baseline holds.

    Files are looked for in the current folder, in its `scenarios/`, and beside files that a
    baseline holds. Shipped scenarios and files that cannot be read do not count.

    """
    guarded = {
        Path(name).resolve()
        for scenario_names in baseline_scenarios().values()
        if not isinstance(scenario_names, str)
        for name in scenario_names
        if name.endswith(".toml")
    }
    folders = dict.fromkeys(
        [Path.cwd(), Path.cwd() / "scenarios", *sorted(path.parent for path in guarded)]
    )
    files = [path for folder in folders for path in sorted(folder.glob("*.toml"))]
    return [
        str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        for path in files
        if path.resolve() not in guarded
        and not path.resolve().is_relative_to(scenario_directory())
        and _is_scenario(path)
    ]


def _is_scenario(path: Path) -> bool:
    try:
        return read_toml(path).keys() >= SCENARIO_KEYS
    except DataError:
        return False
