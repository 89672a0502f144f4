"""Try a sample of each room's mutants and print the share that its tests kill.

`python tests/mutation/sample.py 10 chip serving` tries ten of two rooms. A room is a file of this
folder: what is mutated, and the tests that must notice. The mutants are cosmic-ray's (`pip install
cosmic-ray`), the sample is the same for the same seed, and all of it happens in a copy of the
checkout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import tomllib
from contextlib import chdir
from pathlib import Path
from random import Random
from typing import Any

from cosmic_ray.commands import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome

HERE = Path(__file__).parent
ROOMS = sorted(path.stem for path in HERE.glob("*.toml"))
# A type that is written differently or imported, or a decorator that goes, changes no figure;
# `strict` only refuses what cannot be.
IDLE = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr_")
STRICT, TYPES = "strict=", "if TYPE_CHECKING:"


def idle(change: Any) -> bool:
    """Say whether a mutant can change nothing."""
    line, column = change.start_pos
    text = Path(change.module_path).read_text(encoding="utf-8").splitlines()[line - 1]
    return change.operator_name.startswith(IDLE) or text[:column].endswith(STRICT) or text == TYPES


def draw_mutants(modules: list[Path], count: int, seed: int) -> list[Any]:
    """Return a sample of the mutants of some modules, in the order they were drawn."""
    with use_db(":memory:", WorkDB.Mode.create) as work:
        init(find_modules(modules), work, {})
        mutants = [
            change for item in work.work_items for change in item.mutations if not idle(change)
        ]
    mutants.sort(
        key=lambda change: (
            str(change.module_path),
            change.start_pos,
            change.operator_name,
            change.occurrence,
        )
    )
    return Random(seed).sample(mutants, min(count, len(mutants)))


def try_mutants(room: str, count: int, seed: int) -> tuple[int, int]:
    """Try a sample of a room's mutants, print the survivors; return how many were tried, killed."""
    settings = tomllib.loads((HERE / f"{room}.toml").read_text(encoding="utf-8"))["cosmic-ray"]
    command = settings["test-command"].replace("python", sys.executable, 1)
    sample, killed = draw_mutants([Path(settings["module-path"])], count, seed), 0
    for change in sample:
        done = mutate_and_test([change], command, settings["timeout"])
        killed += done.test_outcome is TestOutcome.KILLED
        if done.test_outcome is not TestOutcome.KILLED:
            print(
                f"{room}: {done.test_outcome}: "
                f"{change.module_path}:{change.start_pos[0]}\n{done.diff or done.output}\n",
                flush=True,
            )
    return len(sample), killed


def main() -> None:
    """Try so many mutants of each room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="mutants of each room")
    parser.add_argument(
        "rooms", nargs="*", metavar="room", help=f"of {', '.join(ROOMS)}; none: all"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error("expected one mutant or more")
    if unknown := set(arguments.rooms) - set(ROOMS):
        parser.error(f"no room {', '.join(sorted(unknown))}; expected some of {', '.join(ROOMS)}")
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "checkout"
        shutil.copytree(
            HERE.parents[1],
            copy,
            ignore=shutil.ignore_patterns(".*_cache", ".git", ".venv", "__pycache__"),
        )
        os.environ["PYTHONPATH"] = str(copy)  # before whatever is installed
        with chdir(copy):
            for room in arguments.rooms or ROOMS:
                count, killed = try_mutants(room, arguments.count, arguments.seed)
                print(f"{room}: {killed} of {count} killed, {killed / count:.0%}", flush=True)


if __name__ == "__main__":
    main()
