"""Trace files of requests: Azure, BurstGPT, Mooncake, Bailian, vidur and one's own.

`data/words/trace_columns.csv` holds the spellings of columns. A trace is CSV, or JSON with an
object for each request. An error names file, line and column.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.core.errors import DataError, nearest
from tco.core.files import LARGEST_FILE, data_directory, is_there, read_csv, read_text
from tco.core.types import FloatArray

NEEDED = ("arrived", "input_tokens", "output_tokens")
FEWEST_REQUESTS = 2  # that a rate needs
MOST_TOKENS = 1e12
# least number of a time that is read in each unit, where the column states no unit
UNITS = {"ns": 1e17, "us": 1e14, "ms": 1e11, "s": 0.0}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
LATEST = 1e20  # largest number of a time
MISSING = frozenset(("", "nan", "none", "null", "na", "n/a"))
SAMPLED_SIZE = 2**20  # bytes that are read to estimate the lines of the largest file
LINE_SPREAD = 0.2  # share by which later lines may be longer
NO_PARENT = "-1"  # of the first request of a chat
BLOCK_SIZES = (512, 16, 8, 32, 64, 128, 256, 1024, 2048, 4096)  # tokens, the usual ones first
# kinds of columns of which a trace may have several, each under a name of its own
OUTCOMES = ("outcome", "error")
# words of an outcome; one that tells a failure counts whatever stands beside it
FAILURE_WORD = re.compile(
    "error(ed)?|fail(ed|ure)?|false|no|abort(ed)?|cancell?(ed)?|timeout|timedout|timed|rejected"
    "|dropped|incomplete|exception|unfinished|disconnected"
)
SUCCESS_WORD = re.compile(
    "ok|success(ful)?|succeeded|true|yes|completed?|finished|done|stop(ped)?|length|eos|tool|calls?"
    "|function|content|end|max|limit|processed|served"
)
# columns in which 0 and 1 are codes, of which nothing tells the meaning
CODE_COLUMNS = ("status", "statuscode", "state", "finishreason", "stopreason", "responsecode")
NO_ERROR_WORDS = frozenset(("false", "no", "ok", "success", "none", "0"))
FITTING_SHARE = 0.9  # least share of prompts whose count of blocks must fit the size of a block


class RequestTrace(NamedTuple):
    """Requests in the order they came: seconds, tokens, and sessions by number."""

    arrived: FloatArray  # seconds
    prompt: FloatArray  # tokens
    answer: FloatArray  # tokens
    session: FloatArray | None
    prefix: FloatArray | None  # tokens of the prompt that were read before
    # seconds since the prefix was last used, nan without one; None where nothing tells it
    since_use: FloatArray | None = None
    # failed requests: without a prompt, without an answer, or failed by a column of outcomes
    left_out: int = 0
    unread: tuple[str, ...] = ()  # columns of unknown meaning


class TraceColumn(NamedTuple):
    """A column of a trace: name in the file, unit (empty where values tell it) and place."""

    header: str
    unit: str
    position: int  # from zero


class TraceRow(NamedTuple):
    """A row of a trace: line of the file, and cells in the order of the header."""

    line: int
    cells: Sequence[object]


def read_trace(path: Path) -> RequestTrace:
    """Read a trace of requests from a CSV or JSON file.

    Args:
        path: File with the arrival, the prompt and the answer of each request, in any spelling of
            `data/words/trace_columns.csv`, and optionally its session, its prefix and its outcome.

    Returns:
        Arrays of shape (requests,); None for a column that the file lacks. Requests without a
        prompt or an answer, and those that failed, are left out.

    Raises:
        DataError: The file is missing, lacks a column, has a value that is none, is not in the
            order of arrival, has a prefix longer than its prompt, or has no two requests at
            different times. The error of a value names line and column.

    """
    if not is_there(path):
        raise DataError(
            f"{path}: no such file, expected a trace with the columns {', '.join(NEEDED)}"
        )
    _refuse_large(path)
    trace_text = read_text(path)
    is_json = trace_text.lstrip()[:1] in ("{", "[")
    header, trace_rows = (_json_rows if is_json else _csv_rows)(path, trace_text)
    reader = _TraceReader(path, is_json, *_recognised_columns(path, header))
    for trace_row in trace_rows:
        reader.add(trace_row)
    return reader.trace()


# ---------------------------------------------------------------- files
def _refuse_large(path: Path) -> None:
    """Refuse a file that is too large, with the command that shortens it."""
    if not path.is_file() or path.stat().st_size <= LARGEST_FILE:
        return
    with path.open("rb") as stream:
        block = stream.read(SAMPLED_SIZE)
    lines = block.count(b"\n") * (LARGEST_FILE // SAMPLED_SIZE)
    line_count = int(lines * (1 - LINE_SPREAD))
    advice = (
        f"its first lines are a trace too: head -n {line_count} {path.name} > short{path.suffix}"
        if line_count > FEWEST_REQUESTS
        else "split it into files with a request on each line"
    )
    raise DataError(f"{path}: larger than {LARGEST_FILE // 2**20} MiB; {advice}")


def _csv_rows(path: Path, trace_text: str) -> tuple[list[str], Iterator[TraceRow]]:
    import csv

    if "\0" in trace_text:
        raise DataError(f"{path}: holds NUL bytes, expected CSV text")
    lines = trace_text.splitlines(keepends=True)
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = [column_name.strip() for column_name in next(reader, [])]
    if not any(header):
        raise DataError(f"{path}: is empty, expected the columns {', '.join(NEEDED)}")

    def rows() -> Iterator[TraceRow]:
        try:
            for cells in reader:
                if not any(cells):
                    continue
                if len(cells) != len(header):
                    raise DataError(
                        f"{path}:{reader.line_num}: {len(cells)} cells, expected {len(header)} "
                        f"({', '.join(header)})"
                    )
                yield TraceRow(reader.line_num, cells)
        except csv.Error as error:
            raise DataError(f"{path}:{reader.line_num}: broken CSV ({error})") from None

    return header, rows()


def _json_rows(path: Path, trace_text: str) -> tuple[list[str], Iterator[TraceRow]]:
    # a key such as that of an error may stand in few objects
    names = {key: None for _, request in _json_objects(path, trace_text) for key in request}
    header = list(names)

    def rows() -> Iterator[TraceRow]:
        for line, request in _json_objects(path, trace_text):
            yield TraceRow(line, [request.get(column_name) for column_name in header])

    return header, rows()


def _json_objects(path: Path, trace_text: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield line and content of each object, of a list or of a line each."""
    numbered: Iterable[tuple[int, object]]
    if trace_text.lstrip().startswith("["):
        numbered, word = enumerate(_parsed_json(path, 1, trace_text), 1), "object"
    else:
        word = "line"
        numbered = (
            (line, _parsed_json(path, line, content))
            for line, content in enumerate(trace_text.splitlines(), 1)
            if content.strip()
        )
    for number, request in numbered:
        if not isinstance(request, dict):
            raise DataError(f"{path}:{number}: expected an object of a request on each {word}")
        yield number, request


def _parsed_json(path: Path, line: int, json_text: str) -> list[object]:
    try:
        parsed: list[object] = json.loads(json_text)
    except (ValueError, RecursionError) as error:
        fault = getattr(error, "msg", str(error))
        raise DataError(
            f"{path}:{line}: broken JSON ({fault}), expected an object of a request on each line"
        ) from None
    return parsed


# ---------------------------------------------------------------- columns
def _plain(column_name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", column_name.lower())


def _recognised_columns(
    path: Path, header: Sequence[str]
) -> tuple[dict[str, TraceColumn], tuple[str, ...]]:
    """Return the columns of a header by what they hold, and the names that nothing is known of."""
    table = [
        spelling_row
        for _, spelling_row in read_csv(
            data_directory() / "words" / "trace_columns.csv",
            ("column", "spelling", "unit", "beside"),
        )
    ]
    plain_names = {_plain(column_name) for column_name in header}
    columns = dict[str, TraceColumn]()
    strange = []
    for position, column_name in enumerate(header):
        if not column_name:  # the index that pandas writes
            continue
        meanings = [
            spelling_row
            for spelling_row in table
            if _plain(spelling_row["spelling"]) == _plain(column_name)
            and (not spelling_row["beside"] or _plain(spelling_row["beside"]) in plain_names)
        ]
        if not meanings:
            strange.append(column_name)
            continue
        column = meanings[0]["column"]
        if column in OUTCOMES:
            column = f"{column} {column_name}"
        if column in columns and column != "unread":
            raise DataError(
                f"{path}:1: columns {columns[column].header!r} and {column_name!r} both hold "
                f"{column}, expected one of them; take the other out"
            )
        columns[column] = TraceColumn(column_name, meanings[0]["unit"], position)
    _refuse_misspelt(path, table, columns, strange)
    return columns, tuple(strange)


def _refuse_misspelt(
    path: Path,
    table: Sequence[dict[str, str]],
    columns: dict[str, TraceColumn],
    strange: Sequence[str],
) -> None:
    """Refuse a header that lacks a needed column, or nearly spells one that it lacks."""
    import difflib

    spellings = {
        spelling_row["spelling"]: spelling_row["column"]
        for spelling_row in table
        if spelling_row["column"] != "unread"
    }
    lacking = [needed_column for needed_column in NEEDED if needed_column not in columns]
    if lacking:
        synonyms = [
            known_spelling for known_spelling, column in spellings.items() if column == lacking[0]
        ][1:4]
        unknown_names = "".join(
            f"; unknown column {strange_name!r}{nearest(strange_name, spellings)}"
            for strange_name in strange
        )
        raise DataError(
            f"{path}:1: lacks column {lacking[0]!r}, also called {', '.join(synonyms)}"
            f"{unknown_names}"
        )
    absent = [
        known_spelling for known_spelling, column in spellings.items() if column not in columns
    ]
    for strange_name in strange:
        near = difflib.get_close_matches(strange_name.lower(), absent, n=1, cutoff=0.8)
        if near:
            raise DataError(f"{path}:1: unknown column {strange_name!r}; did you mean {near[0]!r}?")


# ---------------------------------------------------------------- rows
class _TraceReader:
    """Requests read so far, row by row."""

    def __init__(
        self, path: Path, is_json: bool, columns: dict[str, TraceColumn], unread: tuple[str, ...]
    ) -> None:
        self.path, self.is_json = path, is_json
        self.columns, self.unread = columns, unread
        self.outcomes = [name for name in columns if name.partition(" ")[0] in OUTCOMES]
        self.arrived, self.prompt, self.answer = array("d"), array("d"), array("d")
        self.session, self.prefix, self.since_use = array("d"), array("d"), array("d")
        self.blocks, self.shared_blocks = array("d"), array("d")  # counts of each request
        self.places: list[str] = []  # of its blocks
        self.sessions = dict[str, int]()
        self.last_use = dict[object, float]()  # seconds, by block
        self.first_time, self.unit = math.nan, ""
        self.previous, self.left_out = -math.inf, 0

    def add(self, trace_row: TraceRow) -> None:
        """Read a request."""
        arrived = self._arrival(trace_row)
        if any(self._has_failed(trace_row, column_name) for column_name in self.outcomes):
            self.left_out += 1
            return
        prompt, answer = (
            self._number(trace_row, column_name)
            for column_name in ("input_tokens", "output_tokens")
        )
        if not prompt or not answer:
            self.left_out += 1
            return
        self.arrived.append(arrived)
        self.prompt.append(prompt)
        self.answer.append(answer)
        self._add_session(trace_row)
        if "blocks" in self.columns:
            self._add_blocks(trace_row, arrived)
        elif "prefix" in self.columns:
            self._add_prefix(trace_row, prompt)

    def trace(self) -> RequestTrace:
        """Return the requests read."""
        count = len(self.arrived)
        if count < FEWEST_REQUESTS or self.arrived[-1] <= self.arrived[0]:
            left_out = f", {self.left_out} failed ones left out" if self.left_out else ""
            raise DataError(
                f"{self.path}: {count} requests in no time{left_out}, expected {FEWEST_REQUESTS} "
                "or more that come one after another"
            )
        prompt = np.array(self.prompt)
        prefix = np.array(self.prefix) if len(self.prefix) else None
        if "blocks" in self.columns:
            prefix = self._prefix_of_blocks(prompt)
        return RequestTrace(
            np.array(self.arrived),
            prompt,
            np.array(self.answer),
            np.array(self.session) if len(self.session) else None,
            prefix,
            np.array(self.since_use) if len(self.since_use) else None,
            self.left_out,
            self.unread,
        )

    def _place(self, trace_row: TraceRow, column_name: str) -> str:
        column = self.columns[column_name]
        number = "" if self.is_json else f":{column.position + 1}"
        return f"{self.path}:{trace_row.line}{number}: {column.header}"

    def _cell(self, trace_row: TraceRow, column_name: str) -> object:
        return trace_row.cells[self.columns[column_name].position]

    def _is_missing(self, trace_row: TraceRow, column_name: str) -> bool:
        cell = self._cell(trace_row, column_name)
        return cell is None or str(cell).strip().lower() in MISSING

    def _has_failed(self, trace_row: TraceRow, column_name: str) -> bool:
        """Say whether a request failed, by a word, a code or an error of a column."""
        if self._is_missing(trace_row, column_name):
            return False
        cell = self._cell(trace_row, column_name)
        code = _number_or_nan(cell)
        outcome_text = str(cell).strip().lower()
        if column_name.startswith("error"):
            return outcome_text not in NO_ERROR_WORDS and code != 0
        if code in (0, 1) and _plain(column_name.removeprefix("outcome ")) not in CODE_COLUMNS:
            return code == 0
        if 100 <= code < 600:  # of HTTP
            return not 200 <= code < 300
        words = re.findall("[a-z]+", outcome_text)
        if any(map(FAILURE_WORD.fullmatch, words)):
            return True
        if not any(map(SUCCESS_WORD.fullmatch, words)):
            raise self._refused(
                trace_row, column_name, "an outcome such as success, failed, 200 or 500"
            )
        return False

    def _number(self, trace_row: TraceRow, column_name: str, most: float = MOST_TOKENS) -> float:
        cell_number = _number_or_nan(self._cell(trace_row, column_name))
        if 0 <= cell_number < most:
            return cell_number
        raise self._refused(trace_row, column_name, f"a number from 0 to {most:g}")

    def _refused(self, trace_row: TraceRow, column_name: str, expected: str) -> DataError:
        cell = self._cell(trace_row, column_name)
        cell_text = repr(cell) if isinstance(cell, str) else json.dumps(cell)
        return DataError(
            f"{self._place(trace_row, column_name)} is {cell_text}, expected {expected}"
        )

    def _arrival(self, trace_row: TraceRow) -> float:
        """Return the seconds between the first row and a request."""
        unit = self.columns["arrived"].unit
        time = _number_or_nan(self._cell(trace_row, "arrived"))
        if not math.isnan(time):
            if not 0 <= time < LATEST:
                raise self._refused(
                    trace_row,
                    "arrived",
                    f"seconds or an epoch time from 0 to {LATEST:g}, or an ISO date",
                )
            unit = unit or next(time_unit for time_unit, least in UNITS.items() if time >= least)
        else:
            time, unit = _instant(str(self._cell(trace_row, "arrived"))), "date"
            if math.isnan(time):
                raise self._refused(
                    trace_row,
                    "arrived",
                    "seconds, an epoch time or an ISO date (2023-11-16 18:15:46)",
                )
        if not self.unit:
            self.first_time, self.unit = time, unit
        if unit != self.unit:
            raise self._refused(trace_row, "arrived", f"a time in {self.unit}, as in the first row")
        arrived = (time - self.first_time) * SECONDS.get(unit, 1.0)
        if arrived < self.previous:
            raise DataError(
                f"{self._place(trace_row, 'arrived')} is earlier than in the line before, expected "
                "rows in the order they came; sort the file by it"
            )
        self.previous = arrived
        return arrived

    def _add_session(self, trace_row: TraceRow) -> None:
        """Number the session of a request; one without an id is a session by itself."""
        count = len(self.sessions)
        id_column = "session" if "session" in self.columns else "chat"
        if id_column not in self.columns:
            return
        if self._is_missing(trace_row, id_column):
            self.session.append(self.sessions.setdefault(f"row {trace_row.line}", count))
            return
        identity = f"id {self._cell(trace_row, id_column)}"
        if id_column == "session" or "parent" not in self.columns:
            self.session.append(self.sessions.setdefault(identity, count))
            return
        is_first = (
            self._is_missing(trace_row, "parent")
            or str(self._cell(trace_row, "parent")) == NO_PARENT
        )
        parent = identity if is_first else f"id {self._cell(trace_row, 'parent')}"
        number = self.sessions.setdefault(parent, count)
        self.sessions[identity] = number
        self.session.append(number)

    def _add_prefix(self, trace_row: TraceRow, prompt: float) -> None:
        prefix = 0.0 if self._is_missing(trace_row, "prefix") else self._number(trace_row, "prefix")
        if prefix > prompt:
            raise DataError(
                f"{self._place(trace_row, 'prefix')} is {prefix:g} of a prompt of {prompt:g} "
                "tokens, expected no more than the prompt"
            )
        self.prefix.append(prefix)

    def _add_blocks(self, trace_row: TraceRow, arrived: float) -> None:
        """Count the leading blocks of a prompt that earlier prompts had."""
        blocks = self._cell(trace_row, "blocks")
        if isinstance(blocks, str):
            try:
                blocks = json.loads(blocks)
            except ValueError:
                blocks = None
        if not isinstance(blocks, list) or any(isinstance(block, list | dict) for block in blocks):
            raise self._refused(trace_row, "blocks", "a list of hashes")
        shared_count = 0
        prefix_use = math.nan  # last use of the last shared block
        for block in blocks:
            if block not in self.last_use:
                break
            shared_count += 1
            prefix_use = self.last_use[block]
        self.last_use.update(dict.fromkeys(blocks, arrived))
        self.blocks.append(len(blocks))
        self.shared_blocks.append(shared_count)
        self.since_use.append(arrived - prefix_use)
        self.places.append(self._place(trace_row, "blocks"))

    def _prefix_of_blocks(self, prompt: FloatArray) -> FloatArray:
        """Return the tokens of the blocks that each prompt shares with earlier prompts.

        The size of a block is the usual size that fits the counts of blocks of most prompts.
        """
        blocks = np.array(self.blocks)

        def fitting_share(size: int) -> float:
            return float(np.mean((blocks == np.ceil(prompt / size)) | (blocks == prompt // size)))

        size = max(BLOCK_SIZES, key=fitting_share)
        excess = np.flatnonzero(blocks > np.ceil(prompt / size))
        if fitting_share(size) < FITTING_SHARE or len(excess):
            at_fault = excess[0] if len(excess) else 0
            raise DataError(
                f"{self.places[at_fault]} are {blocks[at_fault]:g} blocks of a prompt of "
                f"{prompt[at_fault]:g} tokens, expected blocks of {size} tokens"
            )
        prefix: FloatArray = np.minimum(np.array(self.shared_blocks) * size, prompt)
        return prefix


def _number_or_nan(cell: object) -> float:
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return math.nan
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return math.nan


def _instant(date_text: str) -> float:
    """Return the seconds from 1970 to an ISO date, UTC without a zone; nan where it is none."""
    try:
        date = datetime.fromisoformat(date_text.strip().removesuffix(" UTC").replace("/", "-"))
    except ValueError:
        return math.nan
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
