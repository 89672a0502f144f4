"""Folder of the user's cache: its files, and a hash of what everything in it rests on.

What is cached is made again when the shipped data, the code, a library or the processor changes.
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

LIBRARIES = ("numpy", "scipy", "pint")  # that compute
LARGEST = 64 * 2**20  # bytes of a file that is kept
UNREAD = ("__pycache__", "measured")  # folders that no answer rests on
SHIPPED_ARRAYS = "shipped_arrays.npz"  # whose entries have keys of their own
# by which numpy is told what a processor may do
SWITCHES = (
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
)
PROCESSOR = Path("/proc/cpuinfo")  # of Linux
ABLE = ("flags", "Features")  # its lines of what a processor can do


def write_own_file(path: Path, content: bytes) -> None:
    """Write a file of the cache, unless its folder is missing or open to other users."""
    try:
        # each by itself: folders above the last take the mode of the user's mask
        cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _refuse_others(path.parent.lstat())
        replace_file(path, content)
    except OSError:
        pass


def read_own_file(path: Path) -> bytes:
    """Return the bytes of a file of the cache.

    Raises:
        OSError: The file is missing, is a link, or another user may write to it or its folder.
        DataError: The file is a pipe, a socket or a device.

    """
    _refuse_others(path.parent.lstat())
    with open_regular_file(path, getattr(os, "O_NOFOLLOW", 0)) as stream:
        _refuse_others(os.fstat(stream.fileno()))
        return stream.read(LARGEST)


def _refuse_others(state: os.stat_result) -> None:
    if stat.S_ISLNK(state.st_mode) or (
        hasattr(os, "geteuid") and (state.st_uid != os.geteuid() or state.st_mode & 0o022)
    ):
        raise PermissionError


def cache_folder() -> Path:
    """Return the folder of the program in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tco"


@cache
def stamp() -> str:
    """Return a hash of the content of all files that an answer uses, and of what computes it.

    The size and the time of a file do not tell its content.
    """
    digest = sha256(_computes().encode())
    for folder in (Path(__file__).resolve().parents[1], data_directory(), scenario_directory()):
        begin = len(str(folder)) + 1  # a path within a folder begins here
        for folder_path, folders, files in os.walk(folder):
            folders[:] = sorted(folder_name for folder_name in folders if folder_name not in UNREAD)
            for file_name in sorted({*files} - {SHIPPED_ARRAYS}):
                path = os.path.join(folder_path, file_name)
                with open(path, "rb", buffering=0) as stream:  # read whole, without a buffer
                    content = stream.read()
                digest.update(f"{path[begin:]} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _computes() -> str:
    """Return the software and processor properties that affect rounding, as text.

    They are the versions of Python and of the libraries, the platform, the features of the
    processor and the features that numpy may use.
    """
    return "\n".join(
        [
            sys.version,
            *map(_metadata_folders, LIBRARIES),
            sys.platform,
            processor(),
            *(os.environ.get(switch_name, "") for switch_name in SWITCHES),
        ]
    )


def _metadata_folders(library_name: str) -> str:
    """Return the metadata folder names of a library, which hold its version.

    The library is not imported, because an import takes long. The text is empty where the library
    is missing.
    """
    package_spec = find_spec(library_name)
    packages_folder = (
        Path(package_spec.origin).parents[1] if package_spec and package_spec.origin else None
    )
    return (
        " ".join(
            sorted(
                directory_name
                for directory_name in os.listdir(packages_folder)
                if directory_name.startswith(f"{library_name}-")
            )
        )
        if packages_folder
        else ""
    )


def processor() -> str:
    """Return the features of the processor, as the operating system reports them.

    The text is empty where the operating system reports none.
    """
    try:
        with PROCESSOR.open(encoding="utf-8", errors="replace") as lines:
            return next((line for line in lines if line.startswith(ABLE)), "")
    except OSError:
        return os.environ.get("PROCESSOR_IDENTIFIER", "")
