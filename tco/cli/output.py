"""Printing a command's answer to stdout or a file.

A form that answers are printed in is a row of `FORMS`, and nothing else: `--format`, endings of
files and help follow from it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from os.path import isdir, isfile  # unlike a path's methods they say no to any name
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile

from tco.core.progress import USUAL_WIDTH
from tco.core.streams import tell
from tco.core.types import is_whole_number

if TYPE_CHECKING:
    from tco.report.record import Answer


class Screen(NamedTuple):
    """Layout of an answer: width of its terminal, and whether that has colour."""

    width: int | None = None  # characters of a line; None leaves lines unbroken
    is_coloured: bool = False


def _as_text(answer: Answer, screen: Screen) -> str:
    from tco.report.terminal import to_text

    return "\n".join(to_text(table, *screen) for table in answer.tables())


def _as_csv(answer: Answer, _: Screen) -> str:
    from tco.report.table import to_csv

    return to_csv(answer.header, answer.rows)


def _as_json(answer: Answer, _: Screen) -> str:
    from tco.report.record import to_json

    return to_json(answer.json())


def _as_markdown(answer: Answer, _: Screen) -> str:
    from tco.report.table import to_markdown

    return "\n".join(to_markdown(table) for table in answer.tables())


MEGABYTE = 1e6


class Rendering(NamedTuple):
    """A form: the ending of files that are written in it, and what makes its text for a screen."""

    ending: str
    text: Callable[[Answer, Screen], str]


FORMS = {
    "table": Rendering(".txt", _as_text),
    "csv": Rendering(".csv", _as_csv),
    "json": Rendering(".json", _as_json),
    "md": Rendering(".md", _as_markdown),
}


@cache
def format_choices(*command_forms: str) -> Any:
    """Return the choices of `--format` for a command.

    The choices are the forms of all answers and the command's own forms `command_forms`.
    """
    enum_type: Any = StrEnum
    return enum_type("Form", [*FORMS, *command_forms])


def render_answer(answer: Answer, form: str, screen: Screen) -> str:
    """Return an answer in one of the forms of all, or in one of its own."""
    text_maker = answer.texts.get(form)
    return text_maker() if text_maker else FORMS[form].text(answer, screen)


def emit(answer_text: str, output: Path | None) -> None:
    """Print or write the text of an answer."""
    from tco.core.files import write_atomically
    from tco.core.streams import print_text

    if output is None:
        print_text(answer_text)
    else:
        write_atomically(output, answer_text)


@contextmanager
def telling_written(output: Path | str | None, quiet: bool) -> Iterator[None]:
    """Say on stderr which file or folder the block has written, and how large it is."""
    path = None if output is None or quiet else Path(output)
    before = path and _last_change(path)
    yield
    if path is not None and _last_change(path) != before:
        tell(f"wrote {output} ({_size_words(path)})")


def _last_change(path: Path) -> int | None:
    """Return when a file, or the newest file of a folder, was written; None for any other path."""
    return max((file.stat().st_mtime_ns for file in _files_of(path)), default=None)


def _files_of(path: Path) -> list[Path]:
    """Return a file, or the files that lie in a folder; a name that no file can have has none."""
    if isfile(path):
        return [path]
    return [file for file in path.iterdir() if isfile(file)] if isdir(path) else []


def _size_words(path: Path) -> str:
    from tco.catalog.labels import count_with_noun  # few commands write

    files = _files_of(path)
    size = sum(file.stat().st_size for file in files)
    size_text = f"{size / 1e6:.1f} MB" if size >= MEGABYTE else f"{max(size / 1e3, 1):.0f} kB"
    if isdir(path):
        return f"{count_with_noun(len(files), 'file')}, {size_text}"
    if path.suffix.lower() != ".xlsx":
        return size_text
    with ZipFile(path) as workbook:
        sheets = [
            member_name
            for member_name in workbook.namelist()
            if member_name.startswith("xl/worksheets/sheet")
        ]
    return f"{count_with_noun(len(sheets), 'sheet')}, {size_text}"


def screen_for(output: Path | None) -> Screen:
    """Return the screen that an answer is laid out for, if it goes to one.

    `NO_COLOR` with any text keeps it without colour, as https://no-color.org says.
    """
    if output is not None:
        return Screen()
    has_colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Screen(screen_width(), is_terminal() and has_colours)


def is_terminal() -> bool:
    """Say whether the answer goes to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def screen_width() -> int | None:
    """Return the width that `COLUMNS` states, else the terminal's; None for a pipe without."""
    columns = os.environ.get("COLUMNS", "")
    if is_whole_number(columns) and int(columns):
        return int(columns)
    if not is_terminal():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_WIDTH
