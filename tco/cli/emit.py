"""Printing a command's answer: the data to stdout or a file, everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tco.foundation.streams import put, tell
from tco.outputs.document import to_json
from tco.outputs.table import Table, to_csv, to_markdown
from tco.outputs.terminal import to_text


class Answer(NamedTuple):
    """What a command has to say, each form made only if it is asked for."""

    json: Callable[[], dict[str, Any]]
    tables: Callable[[], Sequence[Table]]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    notes: Sequence[str] = ()
    texts: Mapping[str, Callable[[], str]] = {}  # forms that this command has beside those of all


def emit(answer: Answer, form: str, output: Path | None, quiet: bool, redact: bool = False) -> None:
    """Print or write an answer in one of the forms table, csv, json, md, or of its own; with `redact` without what tells of own values."""
    from tco.foundation.files import write_atomically

    if redact:
        from tco.cli.keeping import without_own_values

        answer = without_own_values(answer, form)
    if form in answer.texts:
        text = answer.texts[form]()
    elif form == "json":
        text = to_json(answer.json())
    elif form == "csv":
        text = to_csv(answer.header, answer.rows)
    elif form == "md":
        text = "\n".join(to_markdown(table) for table in answer.tables())
    else:
        text = "\n".join(to_text(table, terminal_width() if output is None else None) for table in answer.tables())
    if output is None:
        put(text)
    else:
        write_atomically(output, text)
    if not quiet:
        for note in answer.notes:
            tell(f"note: {note}")


def terminal_width() -> int | None:
    """Return the width of the terminal, or None where stdout is no terminal: a pipe never loses a digit."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns
