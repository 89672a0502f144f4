"""Find and read files: the data folder, CSV and TOML, with errors that name file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

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
LARGEST_TOML = 2**20  # bytes; documents that people write are shorter, and larger ones read slowly
# Dots on a line of TOML outside texts and numbers. The parser takes a time that grows with the
# square of the parts of a dotted key.
MOST_DOTS = 200
TEXT_OR_DECIMAL = re.compile(r"""\"[^"]*"|'[^']*'|\d\.\d""")
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks


class CsvRow(NamedTuple):
    """Row of a CSV file."""

    line: int  # number of its last line in the file, from 1
    cells: dict[str, str]  # texts by column


class FileStamp(NamedTuple):
    """Path, size and time of change of a file."""

    path: str
    size: int  # bytes
    change_time: int  # ns


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
    """Return the end of an error: a file of a similar name, or files with the same ending."""
    try:
        file_names = sorted(
            file.name for file in path.parent.iterdir() if file.suffix == path.suffix
        )
    except OSError:
        return f"; there is no folder {path.parent} either"
    if not file_names:
        return f"; {path.parent}/ has no {path.suffix or 'such'} file"
    listing = f"; {path.parent}/ has {', '.join(file_names[:FEW])}"
    return nearest(path.name, file_names) or listing


def read_text(path: Path, largest_size: int | None = None) -> str:
    """Return the text of a UTF-8 file of limited size.

    Line ends become line feeds, and a byte order mark is left out.

    Args:
        path: File to read.
        largest_size: Largest size in bytes; None and larger sizes mean `LARGEST_FILE`.

    Raises:
        DataError: The file is missing, a folder, not regular, too large, not UTF-8 or unreadable.

    """
    limit = LARGEST_FILE if largest_size is None else min(largest_size, LARGEST_FILE)
    try:
        with open_regular_file(path) as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise DataError(f"{path}: larger than {limit // 2**20} MiB, expected a data file")
        # some spreadsheets write UTF-16, and then begin the file with a byte order mark
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
    """Open a regular file for reading.

    To read a pipe or a socket would be to wait for its writer.

    Args:
        path: File to open.
        flags: Further flags of `os.open`.

    Raises:
        IsADirectoryError: The path is a folder.
        DataError: The path is a pipe, a socket or a device.

    """
    import os
    import stat

    handle = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | flags
    )
    # asks for the mode of the open file, as another file may have taken the path since
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    raise DataError(
        f"{path}: is a pipe, a socket or a device, expected a file; save its content to one"
    )


def read_csv(path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file; empty lines and comments are left out.

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
        yield CsvRow(line, dict(zip(header, cells, strict=True)))


def source_positions(where: str, cell: str) -> Callable[[int], str]:
    """Return a function that finds the source position of a character of a CSV cell.

    The function takes the offset of the character in the cell, and returns `file:line:column`.

    Args:
        where: File and last line of the row, as `file:line`.
        cell: Text of the cell.

    """

    def source_position(offset: int) -> str:
        path, _, last_line = where.rpartition(":")
        lines = read_text(Path(path)).split("\n")[: int(last_line)]
        text = "".join(f"{line}\n" for line in lines)
        position = text.rfind(cell) + offset
        line_number = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        return f"{path}:{line_number}:{column}"

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
    for line_number, line in enumerate(toml_text.split("\n"), 1):
        # most lines have few dots, and need no search for texts and numbers
        if line.count(".") > MOST_DOTS and TEXT_OR_DECIMAL.sub("", line).count(".") > MOST_DOTS:
            raise DataError(
                f"{path}:{line_number}: more than {MOST_DOTS} dots on a line, nested too deeply, "
                "expected a plain TOML file"
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
    except ValueError as error:  # a number with more digits than Python reads
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
    except ValueError as error:  # a number with more digits than Python reads
        raise DataError(f"{path}: {error}, expected {expected}") from None


def is_folder(path: Path) -> bool:
    """Say whether a path is a folder; False for a name that no file can have.

    Args:
        path: Path to test.

    """
    try:
        return path.is_dir()
    except OSError:
        return False


def file_stamps(folder: Path, *unread: str) -> list[FileStamp]:
    """Return the stamps of all files in a folder, at any depth, sorted by path.

    Args:
        folder: Folder to walk.
        *unread: Names of folders to leave out, at any depth.

    """
    import os

    stamps, pending_folders = [], [str(folder)]
    while pending_folders:
        for directory_entry in os.scandir(pending_folders.pop()):
            if not directory_entry.is_dir():
                state = directory_entry.stat()
                stamps.append(FileStamp(directory_entry.path, state.st_size, state.st_mtime_ns))
            elif directory_entry.name not in unread:
                pending_folders.append(directory_entry.path)
    return sorted(stamps)


def refuse_odd_files(folder: Path) -> None:
    """Refuse pipes, sockets and devices at any depth of a folder.

    To read a pipe or a socket would be to wait for its writer. A broken link passes.

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
            except OSError:  # a broken link: whoever reads it raises the error
                continue
            if not stat.S_ISREG(mode):
                raise DataError(f"{path}: is a pipe, a socket or a device, expected a file")


def is_there(path: Path) -> bool:
    """Say whether a path exists; False for a name that no file can have.

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

    is_new = not is_there(folder)
    try:
        for file_name, file_text in files.items():
            (folder / file_name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / file_name, file_text)
    except BaseException as error:
        if is_new:
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
        # `resolve` raises RuntimeError for a loop of links; from Python 3.13 on it returns the link
        if resolved_path.is_symlink():
            raise UsageError(f"{path}: cannot be written (a loop of links)")
        old_state = resolved_path.stat() if resolved_path.exists() else None
        if old_state and stat.S_ISDIR(old_state.st_mode):
            raise UsageError(f"{path}: is a folder, expected a file name to write")
        if old_state and not old_state.st_mode & 0o222:
            raise UsageError(f"{path}: is read-only, expected a file that may be written")
        if old_state and not stat.S_ISREG(old_state.st_mode):
            with resolved_path.open("wb") as stream:
                stream.write(file_bytes)
            return
        replace_file(
            resolved_path,
            file_bytes,
            lambda temporary_name: _set_mode_and_owner(temporary_name, old_state),
        )
    except (OSError, RuntimeError) as error:
        lacks_folder = isinstance(error, FileNotFoundError) and not path.parent.exists()
        hint = f"; make its folder first: mkdir -p {path.parent}" if lacks_folder else ""
        raise UsageError(
            f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}){hint}"
        ) from None


def replace_file(
    target_path: Path, file_bytes: bytes, finish: Callable[[str], None] = lambda _: None
) -> None:
    """Write a temporary file beside a path, and move it there over an earlier file.

    Args:
        target_path: Path of the file.
        file_bytes: Content of the file.
        finish: Called with the name of the temporary file before the move, to change its mode;
            else only the user can read the file.

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


def _set_mode_and_owner(temporary_name: str, old_state: os.stat_result | None) -> None:
    """Set mode and owner of a new file: those of the old file, or those of an ordinary file."""
    import contextlib
    import os
    import stat

    mask = os.umask(0)
    os.umask(mask)
    if old_state and (old_state.st_uid, old_state.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only a superuser may change the owner
            os.chown(temporary_name, old_state.st_uid, old_state.st_gid)
    os.chmod(temporary_name, stat.S_IMODE(old_state.st_mode) if old_state else 0o666 & ~mask)
