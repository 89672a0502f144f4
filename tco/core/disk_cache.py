"""On-disk cache of answers that depend only on shipped data and code.

Answers that take long are kept in the user's cache folder. They are made again when the shipped
data, the code, a library or the processor changes.

The cache is read without numpy and without the evaluation chain, because both take longer to start
than an answer takes to print.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from tco.core.errors import DataError
from tco.core.files import data_directory, open_regular_file, replace, scenario_directory
from tco.core.provenance import making

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


def disk_cached(cache_key: object, make: Callable[[], Any]) -> Any:
    """Return the cached content of `cache_key`, or make and cache it.

    The content is kept as JSON. Nothing is kept where the folder cannot be written, or while a
    user's own values are withheld.

    Keys differ where their `repr` does. A key holds every value that the content depends on,
    unchanged. Joined or defaulted texts would give two questions the same answer.

    A file is made anew where it is incomplete, or where anything but this program on this data has
    written or changed it. Anything but a file of the user's own, such as a link or a pipe, is made
    anew too. Nothing is kept in a folder that other users may write to.

    Args:
        cache_key: Any value whose `repr` identifies the content.
        make: Makes the content where no valid file is kept.

    Returns:
        Content as JSON reads back, with lists for tuples.

    """
    if making.get() is not None:
        return json.loads(json.dumps(make(), default=float))
    key_text = repr(cache_key)
    folder, rests = cache_folder(), f"{key_text} {stamp()}"
    path = folder / f"{sha256(key_text.encode()).hexdigest()[:16]}.json"
    try:
        kept_record = json.loads(read_own_file(path))
        if isinstance(kept_record, dict) and kept_record.get("sum") == _content_checksum(
            rests, kept_record.get("content")
        ):
            return kept_record["content"]
    except (OSError, DataError, ValueError, RecursionError):
        pass
    computed_record = json.loads(json.dumps(make(), default=float))
    write_own_file(
        path,
        json.dumps(
            {"sum": _content_checksum(rests, computed_record), "content": computed_record}
        ).encode(),
    )
    return computed_record


def record_from_json(shape: Any, content: Any) -> Any:
    """Rebuild records and tuples from lists, as the annotations of a record say."""
    kinds = [kind for kind in get_args(shape) if kind is not NoneType]
    if hasattr(shape, "_fields"):
        return shape(*map(record_from_json, _field_types(shape), content))
    if not kinds or not isinstance(content, list | dict):
        return content
    if len(kinds) < len(get_args(shape)):
        return record_from_json(kinds[0], content)
    if isinstance(content, dict):
        return {
            content_key: record_from_json(kinds[-1], content_value)
            for content_key, content_value in content.items()
        }
    items = [record_from_json(kinds[0], item) for item in content]
    return tuple(items) if get_origin(shape) is tuple else items


@cache
def _field_types(record: type) -> list[Any]:
    hints = get_type_hints(record)
    return [hints[field_name] for field_name in record._fields]  # type: ignore[attr-defined]


def write_own_file(path: Path, content: bytes) -> None:
    """Write a file of the cache, unless its folder is missing or open to other users."""
    try:
        # each by itself: folders above the last take the mode of the user's mask
        cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _refuse_others(path.parent.lstat())
        replace(path, content)
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


def _content_checksum(rests: str, content: Any) -> str:
    return sha256(f"{rests}\n{json.dumps(content, sort_keys=True)}".encode()).hexdigest()


def cache_folder() -> Path:
    """Return the folder of the program in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tco"


@cache
def stamp() -> str:
    """Return a hash of all files an answer rests on, byte by byte, and of what computes: a size and
    a time say nothing of what is in a file.
    """
    digest = sha256(_computes().encode())
    for folder in (Path(__file__).resolve().parents[1], data_directory(), scenario_directory()):
        begin = len(str(folder)) + 1  # a path within a folder begins here
        for folder_path, folders, files in os.walk(folder):
            folders[:] = sorted(folder_name for folder_name in folders if folder_name not in UNREAD)
            for file_name in sorted({*files} - {SHIPPED_ARRAYS}):
                path = os.path.join(folder_path, file_name)
                with open(path, "rb") as stream:
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
            *map(_installed, LIBRARIES),
            sys.platform,
            processor(),
            *(os.environ.get(switch_name, "") for switch_name in SWITCHES),
        ]
    )


def _installed(library_name: str) -> str:
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


def are_shipped(scenario_names: Iterable[str]) -> bool:
    """Say whether scenarios, models and data are all those of the program.

    Args:
        scenario_names: Names or paths of the scenarios.

    Returns:
        False where the current folder has its own `data/`, a folder with the name of a shipped
        model, or a file or folder with the name of a scenario, and for a scenario that is not
        shipped.

    """
    own_data = Path("data")
    known_files = {path.stem for path in scenario_directory().glob("*.toml")}
    models = os.listdir(data_directory() / "models")
    if (own_data.is_dir() and own_data.resolve() != data_directory()) or any(
        map(os.path.isdir, models)
    ):
        return False
    return all(
        scenario_name in known_files and not os.path.exists(scenario_name)
        for scenario_name in scenario_names
    )
