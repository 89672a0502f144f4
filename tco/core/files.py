"""Find and read files: the data folder, CSV and TOML, with errors that name file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tco.core.errors import FEW, DataError, nearest
from tco.core.spreadsheets import (
    header_fault,
    is_left_out,
    numbered_rows,
    recognised_rows,
    width_fault,
)
from tco.core.types import JsonObject

if TYPE_CHECKING:
    import os

LARGEST_FILE = 64 * 2**20  # bytes; a larger data file is a mistake
DEEPEST = 200  # dots of a line of TOML, but those of texts and numbers
QUOTED = re.compile(r"""\"[^"]*"|'[^']*'|\d\.\d""")
# bytes; a document that people write is shorter, and a larger one takes long to read
LARGEST_TOML = 2**20
UTF_16_MARKS = b"\xff\xfe", b"\xfe\xff"


@cache
def data_directory() -> Path:
    """Return the folder `data/` of the installed package or the checkout.

    The folder lies inside the installed package, or beside the package in a checkout.

    Returns:
        Absolute path of the folder.

    """
    return _shipped("data")


@cache
def scenario_directory() -> Path:
    """Return the folder `scenarios/` of the installed package or the checkout.

    The folder lies inside the installed package, or beside the package in a checkout.

    Returns:
        Absolute path of the folder.

    """
    return _shipped("scenarios")


def _shipped(folder_name: str) -> Path:
    package = Path(__file__).resolve().parents[1]
    inside = package / folder_name
    return inside if inside.is_dir() else package.parent / folder_name


def _nearest_file(path: Path) -> str:
    """Return words for the end of an error: a file of a similar name, or those of the kind."""
    try:
        file_names = sorted(
            file.name for file in path.parent.iterdir() if file.suffix == path.suffix
        )
    except OSError:
        return f"; there is no folder {path.parent} either"
    listing = f"; {path.parent}/ has {', '.join(file_names[:FEW])}" if file_names else ""
    return (
        nearest(path.name, file_names)
        or listing
        or f"; {path.parent}/ has no {path.suffix or 'such'} file"
    )


def read_text(path: Path, most: int | None = None) -> str:
    """Return the text of a UTF-8 file of limited size.

    Line ends become line feeds, and a byte order mark is left out.

    Args:
        path: File to read.
        most: Largest size in bytes; None and larger sizes mean `LARGEST_FILE`.

    Raises:
        DataError: The file is missing, a folder, not regular, too large, not UTF-8 or unreadable.

    """
    most = LARGEST_FILE if most is None else min(most, LARGEST_FILE)
    try:
        with open_regular_file(path) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise DataError(f"{path}: larger than {most // 2**20} MiB, expected a data file")
        # of a byte order mark: spreadsheets write UTF-16 as well
        encoding = "utf-16" if content.startswith(UTF_16_MARKS) else "utf-8-sig"
        return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file{_nearest_file(path)}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a file") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 text (byte {error.start}), expected a text file; save it as UTF-8, "
            "of a spreadsheet as 'CSV UTF-8'"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


def open_regular_file(path: Path | str, flags: int = 0) -> BinaryIO:
    """Open a regular file for reading; any other raises `DataError`.

    Reading a pipe or a socket would wait for its writer.
    """
    import os
    import stat

    handle = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | flags
    )
    # of what is open: whatever stands at the path next is another file
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise (
            IsADirectoryError
            if stat.S_ISDIR(mode)
            else DataError(
                f"{path}: is a pipe, a socket or a device, expected a file; save its content to one"
            )
        )
    return os.fdopen(handle, "rb")


def read_csv(
    path: Path, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row of a CSV file.

    Empty lines are left out. The cells are texts by column.

    Args:
        path: File to read.
        columns: Columns that the file must have.
        optional: Columns that the file may have.

    Raises:
        DataError: The file cannot be read, its header or a row does not fit, or its CSV is broken.

    """
    table_text = read_text(path)
    if "\0" in table_text:
        raise DataError(
            f"{path}: holds NUL bytes, expected CSV text; save it as 'CSV UTF-8' if it is UTF-16"
        )
    table_rows = numbered_rows(path, table_text)
    line, header = next(table_rows, (1, []))
    if header_fault(header, columns, optional):
        table_rows = recognised_rows(path, table_text, columns)
        line, header = next(table_rows)
        if fault := header_fault(header, columns, optional):
            raise DataError(f"{path}:{line}: {fault}, expected {', '.join(columns)}")
    for line, cells in table_rows:
        if is_left_out(cells):
            continue
        if len(cells) != len(header):
            raise DataError(f"{path}:{line}: {width_fault(cells, header)}")
        yield line, dict(zip(header, cells, strict=True))


def place_in(where: str, cell: str) -> Callable[[int], str]:
    """Return a function from character offset in `cell` to its source position.

    The position is `file:line:column`.

    Args:
        where: File and last line of the row, as `file:line`.
        cell: Text of the cell.

    """

    def source_position(offset: int) -> str:
        path, _, last = where.rpartition(":")
        above = "".join(f"{line}\n" for line in read_text(Path(path)).split("\n")[: int(last)])
        cell_start = above.rfind(cell) + offset
        line_number = above.count("\n", 0, cell_start) + 1
        return f"{path}:{line_number}:{cell_start - above.rfind(chr(10), 0, cell_start)}"

    return source_position


def read_toml(path: Path) -> JsonObject:
    """Return a TOML file as a dictionary.

    Args:
        path: File to read.

    Raises:
        DataError: The file cannot be read, or is empty, too large, broken or nested too deeply.

    """
    import tomllib

    toml_text = read_text(path, LARGEST_TOML)
    if not toml_text.strip():
        raise DataError(f"{path}: is empty, expected TOML")
    # what reads TOML takes the square of the steps of a dotted key
    for number, line in enumerate(toml_text.split("\n"), 1):
        if line.count(".") > DEEPEST and QUOTED.sub("", line).count(".") > DEEPEST:
            raise DataError(
                f"{path}:{number}: more than {DEEPEST} dots on a line, nested too deeply, expected "
                "a plain TOML file"
            )
    try:
        return tomllib.loads(toml_text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(
            f"{path}: broken TOML: {error}; expected lines of KEY = VALUE, with texts in quotation "
            "marks"
        ) from None
    except RecursionError:
        raise DataError(f"{path}: nested too deeply, expected a plain TOML file") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise DataError(f"{path}: {error}") from None


def read_json(path: Path, expected: str) -> Any:
    """Return the content of a JSON file.

    Args:
        path: File to read.
        expected: Words for the expected content, for the text of an error.

    Raises:
        DataError: The file cannot be read, is broken or nested too deeply, or has a number of too
            many digits.

    """
    import json

    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}:{error.lineno}: broken JSON ({error.msg}), expected {expected}"
        ) from None
    except RecursionError:
        raise DataError(f"{path}: nested too deeply, expected {expected}") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise DataError(f"{path}: {error}, expected {expected}") from None


def is_folder(path: Path) -> bool:
    """Say whether a path is a folder.

    A name that no file can have is no folder.

    Args:
        path: Path to test.

    """
    try:
        return path.is_dir()
    except OSError:
        return False


def stamp_of(folder: Path, *unread: str) -> list[tuple[str, int, int]]:
    """Return path, size and change time of all files in a folder.

    Files of folders below the folder are part of the result.

    Args:
        folder: Folder to walk.
        *unread: Names of folders to leave out, at any depth.

    Returns:
        Sorted rows of path, size in bytes and time of change in ns.

    """
    import os

    file_stamps, left = [], [str(folder)]
    while left:
        for directory_entry in os.scandir(left.pop()):
            if not directory_entry.is_dir():
                state = directory_entry.stat()
                file_stamps.append((directory_entry.path, state.st_size, state.st_mtime_ns))
            elif directory_entry.name not in unread:
                left.append(directory_entry.path)
    return sorted(file_stamps)


def refuse_odd_files(folder: Path) -> None:
    """Refuse pipes, sockets and devices at any depth of a folder.

    To read a pipe or a socket is to wait for a writer. Links to nothing pass.

    Args:
        folder: Folder to walk.

    Raises:
        DataError: A file of the folder is a pipe, a socket or a device.

    """
    import os
    import stat

    for directory_path, _, file_names in os.walk(folder):
        for file_name in file_names:
            path = os.path.join(directory_path, file_name)
            try:
                mode = os.stat(path).st_mode
            except OSError:  # a link to nothing: who reads it says so
                continue
            if not stat.S_ISREG(mode):
                raise DataError(f"{path}: is a pipe, a socket or a device, expected a file")


def is_there(path: Path) -> bool:
    """Say whether a path leads to anything.

    A name that no file can have leads to nothing.

    Args:
        path: Path to test.

    """
    try:
        return path.exists()
    except OSError:
        return False


def write_all(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder, and make the folders they need.

    If a file cannot be written, a folder that was new is removed again.

    Args:
        folder: Folder to write to.
        files: Texts by file name, relative to the folder.

    Raises:
        UsageError: A file or folder cannot be written.

    """
    import shutil

    from tco.core.errors import UsageError

    new = not is_there(folder)
    try:
        for file_name, file_text in files.items():
            (folder / file_name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / file_name, file_text)
    except BaseException as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise UsageError(f"{folder}: cannot be written ({error.strerror or error})") from None
        raise


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all.

    The content goes to a temporary file, which then moves into place. A link is followed, and an
    existing file keeps its mode and owner. A device or a pipe is written in place.

    Args:
        path: File to write.
        content: Bytes, or a text to write as UTF-8.

    Raises:
        UsageError: The path is a folder, read-only or a loop of links, or cannot be written.

    """
    import stat

    from tco.core.errors import UsageError

    file_bytes = content if isinstance(content, bytes) else content.encode("utf-8")
    try:
        resolved_path = path.resolve()
        # a loop of links is a RuntimeError before Python 3.13, and left as it is from then on
        if resolved_path.is_symlink():
            raise UsageError(f"{path}: cannot be written (a loop of links)")
        before = resolved_path.stat() if resolved_path.exists() else None
        if before and stat.S_ISDIR(before.st_mode):
            raise UsageError(f"{path}: is a folder, expected a file name to write")
        if before and not before.st_mode & 0o222:
            raise UsageError(f"{path}: is read-only, expected a file that may be written")
        if before and not stat.S_ISREG(before.st_mode):
            with resolved_path.open("wb") as stream:
                stream.write(file_bytes)
            return
        replace(
            resolved_path, file_bytes, lambda temporary_name: _take_rights(temporary_name, before)
        )
    except (OSError, RuntimeError) as error:
        absent = isinstance(error, FileNotFoundError) and not path.parent.exists()
        hint = f"; make its folder first: mkdir -p {path.parent}" if absent else ""
        raise UsageError(
            f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}){hint}"
        ) from None


def replace(
    target_path: Path, file_bytes: bytes, finish: Callable[[str], None] = lambda _: None
) -> None:
    """Write a file beside a path and move it there, over whatever the path holds.

    Only the user can read it, unless `finish` changes its mode.
    """
    import os
    import tempfile

    handle, temporary_name = tempfile.mkstemp(
        prefix=f".{target_path.name[:100]}.", dir=target_path.parent
    )
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(file_bytes)
        finish(temporary_name)
        os.replace(temporary_name, target_path)
    except BaseException:
        Path(temporary_name).unlink(missing_ok=True)
        raise


def _take_rights(temporary_name: str, before: os.stat_result | None) -> None:
    """Give a new file the mode and owner of the one it replaces, or those of an ordinary file."""
    import contextlib
    import os
    import stat

    mask = os.umask(0)
    os.umask(mask)
    if before and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only a superuser gives files away
            os.chown(temporary_name, before.st_uid, before.st_gid)
    os.chmod(temporary_name, stat.S_IMODE(before.st_mode) if before else 0o666 & ~mask)
