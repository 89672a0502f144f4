"""Folder of the user's cache: its files, and a hash of everything that decides their content.

A cached result is computed again when the shipped data, the code, a library or the processor
changes.
"""

from __future__ import annotations

import os
import stat
import sys
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from tco.core.files import data_directory, open_regular_file, replace_file, scenario_directory

LIBRARIES = ("numpy", "scipy", "pint")  # libraries whose versions may change numbers
LARGEST = 64 * 2**20  # bytes of a file
UNUSED_FOLDERS = ("__pycache__", "measured")  # folders that decide no answer
SHIPPED_ARRAYS = "shipped_arrays.npz"  # left out of the hash, since its entries have own keys
# Environment variables with the features of the processor that numpy may use.
NUMPY_FEATURES = ("NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")
PROCESSOR = Path("/proc/cpuinfo")  # on Linux
FEATURE_LINES = ("flags", "Features")  # how the lines with the features of a processor begin


def write_own_file(path: Path, content: bytes) -> None:
    """Write a file of the cache, unless its folder is missing or open to other users."""
    try:
        # With `parents=True` only the last folder gets the mode, so both are made separately.
        cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _refuse_foreign(path.parent.lstat())
        replace_file(path, content)
    except OSError:
        pass


def read_own_file(path: Path) -> bytes:
    """Return the bytes of a file of the cache.

    Raises:
        OSError: The file is missing, is a link, or another user may write to it or its folder.
        DataError: The file is a pipe, a socket or a device.

    """
    _refuse_foreign(path.parent.lstat())
    with open_regular_file(path, getattr(os, "O_NOFOLLOW", 0)) as stream:
        _refuse_foreign(os.fstat(stream.fileno()))
        return stream.read(LARGEST)


def _refuse_foreign(state: os.stat_result) -> None:
    if stat.S_ISLNK(state.st_mode) or (
        hasattr(os, "geteuid") and (state.st_uid != os.geteuid() or state.st_mode & 0o022)
    ):
        raise PermissionError


def cache_folder() -> Path:
    """Return the folder of the program in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tco"


@cache
def stamp() -> str:
    """Return a hash of the software, the processor and the content of all shipped files.

    It reads the content, since a file may change without a change of its size and time.
    """
    digest = sha256(_computing_environment().encode())
    for folder in (Path(__file__).resolve().parents[1], data_directory(), scenario_directory()):
        prefix_length = len(str(folder)) + 1  # characters of a path before the part in the folder
        for folder_path, folders, files in os.walk(folder):
            folders[:] = sorted(
                folder_name for folder_name in folders if folder_name not in UNUSED_FOLDERS
            )
            for file_name in sorted({*files} - {SHIPPED_ARRAYS}):
                path = os.path.join(folder_path, file_name)
                with open(path, "rb", buffering=0) as stream:
                    content = stream.read()
                digest.update(f"{path[prefix_length:]} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _computing_environment() -> str:
    """Return the software and processor properties that affect rounding, as text.

    They are the versions of Python and of the libraries, the platform, the features of the
    processor and the features that numpy may use.
    """
    return "\n".join(
        [
            sys.version,
            *map(_installed_version, LIBRARIES),
            sys.platform,
            processor(),
            *(os.environ.get(variable_name, "") for variable_name in NUMPY_FEATURES),
        ]
    )


def _installed_version(library_name: str) -> str:
    """Return the names of the metadata folders of a library, which contain its version.

    The library is not imported, because an import takes long. The text is empty where the library
    is missing.
    """
    package_spec = find_spec(library_name)
    if package_spec is None or not package_spec.origin:
        return ""
    metadata_folders = [
        folder_name
        for folder_name in os.listdir(Path(package_spec.origin).parents[1])
        if folder_name.startswith(f"{library_name}-")
    ]
    return " ".join(sorted(metadata_folders))


def processor() -> str:
    """Return the features of the processor, as the operating system reports them.

    The text is empty where the operating system reports none.
    """
    try:
        with PROCESSOR.open(encoding="utf-8", errors="replace") as lines:
            return next((line for line in lines if line.startswith(FEATURE_LINES)), "")
    except OSError:
        return os.environ.get("PROCESSOR_IDENTIFIER", "")
