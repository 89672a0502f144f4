"""Files that export and report write: checks of names and folders, and folders with a mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import isdir  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import TYPE_CHECKING

from tco.core.errors import UsageError

if TYPE_CHECKING:
    from tco.scenario.result import Result

FOLDER = "/"  # end of the name of a folder


def refuse_namesakes(scenario_results: Sequence[Result]) -> None:
    """Refuse scenarios of one name, which the rows and files of an answer could not tell apart.

    Args:
        scenario_results: Results of the scenarios.

    Raises:
        UsageError: Two scenarios have the same name.

    """
    name_counts = Counter(scenario_result.scenario for scenario_result in scenario_results)
    for scenario_name, count in name_counts.items():
        if count > 1:
            raise UsageError(
                f"two scenarios are called {scenario_name}, expected names that tell them apart"
            )


def refuse_foreign_folder(folder: Path, mark: str) -> None:
    """Refuse a folder that holds other files than those that a command wrote.

    Args:
        folder: Folder to write to, which need not exist.
        mark: Name of the file that every folder of the command holds.

    Raises:
        UsageError: The folder has files and no mark, or its parent does not exist.

    """
    if isdir(folder) and any(folder.iterdir()) and not (folder / mark).is_file():
        raise UsageError(
            f"{folder}/: holds other files, expected a new or empty folder, or one that holds "
            f"{mark}, to overwrite"
        )
    if not isdir(folder.absolute().parent):
        raise UsageError(f"{folder}/: cannot be written (No such file or directory)")


def write_folder(folder: Path, files: Mapping[str, str], mark: str) -> None:
    """Write files to a new or empty folder, or to one that holds the mark.

    No existing file is deleted.

    Args:
        folder: Folder to write to, which need not exist.
        files: Texts by file name; the mark is one of the files.
        mark: Name of the file that every folder of the command holds.

    Raises:
        UsageError: The folder has files and no mark, or its parent does not exist.

    """
    from tco.core.files import write_all

    refuse_foreign_folder(folder, mark)
    write_all(folder, files)
