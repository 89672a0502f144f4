"""Read a file of measurements: its kind, checked numbers, and the reason for each skipped row.

A row of `data/words/column_names.csv` says how a publisher's column is read in files that have the
header's mark: from others by name (`{batch_size}`), as a calculation of two of them or of one and a
number (`= isl + step`), or as a text that holds for the whole file, and where only for some rows,
which of them.
"""

from __future__ import annotations

import gzip
import operator
import os
import re
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tco.core.errors import DataError, located, refuse_unknown
from tco.core.files import (
    LARGEST_FILE,
    data_directory,
    is_there,
    open_regular_file,
    read_csv,
    read_toml,
)
from tco.core.provenance import refuse_own
from tco.core.types import AnyArray, JsonObject
from tco.validation.benchmark_logs import (
    Log,
    read_log,
    stated_columns,
    table_records,
    with_chip_count,
    with_facts,
)

COLUMNS = ("header", "mark", "column", "reads", "where")
CALCULATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
NAMED = re.compile(r"{(\w+)}")


def _translate_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of texts with the columns that its header means."""
    translated_columns: dict[str, pd.Series[str]] = {}
    for _, column_row in read_csv(data_directory() / "words" / "column_names.csv", COLUMNS):
        if column_row["mark"] in table:
            read = _evaluate_column_template(table, column_row["reads"])
            chosen = pd.Series(True, index=table.index)
            for column_name, _, expected_text in (
                condition.partition("=") for condition in column_row["where"].split()
            ):
                chosen &= _required_column(table, column_name) == expected_text
            before = translated_columns.get(
                column_row["column"],
                table.get(column_row["column"], pd.Series("", index=table.index)),
            )
            translated_columns[column_row["column"]] = read.where(chosen, before)
    return table.assign(**translated_columns)


def _required_column(table: pd.DataFrame, column_name: str) -> pd.Series[str]:
    if column_name not in table:
        raise DataError(
            f"the header lacks the column {column_name!r}; there are "
            f"{', '.join(table.columns[:12])}"
        )
    return table[column_name]


def _evaluate_column_template(table: pd.DataFrame, reads: str) -> pd.Series[str]:
    """Return the text of each row under the template `reads`.

    A template that begins with `= ` calculates a number. The text is blank where a number of the
    calculation is missing.
    """
    if reads.startswith("= "):
        left_operand, sign, right_operand = reads.removeprefix("= ").split()
        numbers = (
            float(operand_name)
            if operand_name.isdigit()
            else pd.to_numeric(_required_column(table, operand_name), errors="coerce")
            for operand_name in (left_operand, right_operand)
        )
        return CALCULATIONS[sign](*numbers).map(
            lambda cell_number: "" if pd.isna(cell_number) else repr(float(cell_number))
        )
    column_names, texts = NAMED.findall(reads), NAMED.split(reads)[::2]
    row_texts = pd.Series(texts[0], index=table.index)
    for column_name, template_text in zip(column_names, texts[1:], strict=True):
        row_texts = row_texts + _required_column(table, column_name) + template_text
    return row_texts


@cache
def columns_known() -> JsonObject:
    """Return the descriptions of the columns of measured files."""
    return read_toml(data_directory() / "measured" / "columns.toml")


def of_text(column_name: str) -> bool:
    """Say whether a column holds texts; all others hold numbers."""
    return column_name in columns_known()["texts"]


CHUNK = 2**20  # bytes that are unpacked at a time
# of these: of which less is better
TIMES = (
    "time_us",
    "step_time_s",
    "tpot_ms_mean",
    "tpot_ms_median",
)
# where the name of a file that travels with the program may be written
PLACES = (
    Path(),
    Path("data/measured"),
)
# words that a column of numbers may hold
WORDS = {"concurrency": {"offline": np.inf, "unlimited": np.inf}}
SUFFIXES = {
    "_us": "microseconds",
    "_ms": "milliseconds",
    "_s": "seconds",
    "_gb_s": "GB/s",
    "_bytes": "bytes",
}


def _measurement_kind(columns: list[str], path: Path, stated_kind: str | None = None) -> str:
    """Return the kind of a file: the given one, or the one whose own column its header holds."""
    kinds: JsonObject = columns_known()["kinds"]
    if stated_kind is not None:
        refuse_unknown("kind of measurements", [stated_kind], kinds, "--kind")
        return stated_kind
    scores = {
        kind: len(
            {kind_columns["mark"], *kind_columns["needed"], *kind_columns["targets"]} & set(columns)
        )
        + 5 * (kind_columns["mark"] in columns)
        for kind, kind_columns in kinds.items()
    }
    best: str = max(scores, key=lambda kind: scores[kind])
    if scores[best] < 3:
        raise DataError(
            f"{path}:1: the header fits no kind of measurements; say --kind {', '.join(kinds)}"
        )
    return best


def read_measured(path: Path, stated_kind: str | None = None) -> tuple[str, pd.DataFrame]:
    """Return the kind and the rows of a file of measurements, CSV or what a benchmark wrote.

    Columns of numbers become floats, and a blank cell becomes nan.

    Args:
        path: File to read, or the name of a shipped file, such as `kernels`.
        stated_kind: Kind of the measurements; None takes the kind that fits the header.

    Raises:
        DataError: The file cannot be read or has no rows, the kind is unknown, a column is missing,
            or a column of numbers holds a text.
        UsageError: The rows are the user's own, and the answer withholds the user's values.

    """
    path, log = _checked_file(path)
    if log is not None:
        return _checked_rows(
            path, log.kind if stated_kind is None else stated_kind, with_facts(path, log)
        )
    return _checked_rows(path, stated_kind, _csv_table(path))


def _checked_file(path: Path) -> tuple[Path, Log | None]:
    """Return the path of a file of measurements, and the benchmark log that it holds."""
    path = _travelling(path)
    if not path.resolve().is_relative_to(data_directory()):
        refuse_own(f"{path}: measured rows of your own")
    _check_file(path)
    return path, None if path.suffix == ".gz" else read_log(path)


def _csv_table(path: Path) -> pd.DataFrame:
    """Return a CSV file as texts in the columns of measured files."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except EOFError:
        raise DataError(f"{path}: the gzip file ends too early") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text, expected a CSV of measurements") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path}: broken CSV ({str(error).splitlines()[0]})") from None
    with located(f"{path}:1"):
        return _translate_columns(table_records(table)).assign(**stated_columns())


def curve_table(path: Path) -> pd.DataFrame:
    """Return measured serving points of any file, with `number`, the place of each in it.

    Args:
        path: CSV of serving runs, or what a benchmark wrote.

    Raises:
        DataError: The file cannot be read, or holds no serving points.

    """
    path, log = _checked_file(path)
    if log is not None and log.kind != "inference":
        raise DataError(f"{path}: holds {log.kind}, expected throughput against speed per user")
    table = with_chip_count(_csv_table(path)) if log is None else with_facts(path, log, ())
    if table.empty:
        raise DataError(f"{path}: holds a header and no row")
    columns = columns_known()["kinds"]["inference"]["targets"]
    if not any(target_column in table for target_column in columns):
        raise DataError(f"{path}: states no throughput, expected {' or '.join(columns)}")
    texts = {
        column_name: table[column_name] for column_name in table.columns if of_text(column_name)
    }
    return pd.DataFrame(texts | _columns_as_numbers(table, path)).assign(
        number=range(1, len(table) + 1)
    )


def _checked_rows(
    path: Path, stated_kind: str | None, table: pd.DataFrame
) -> tuple[str, pd.DataFrame]:
    """Return the kind and the rows of a table of texts, its numbers as floats."""
    kind = _measurement_kind(list(table.columns), path, stated_kind)
    needed = columns_known()["kinds"][kind]["needed"]
    targets = columns_known()["kinds"][kind]["targets"]
    missing = [column_name for column_name in needed if column_name not in table.columns]
    if missing:
        raise DataError(
            f"{path}:1: {kind} need the column {missing[0]!r}; there are "
            f"{', '.join(table.columns[:12])}"
        )
    if not any(target_column in table.columns for target_column in targets):
        raise DataError(f"{path}:1: {kind} need a measured column: {' or '.join(targets)}")
    if table.empty:
        raise DataError(f"{path}: holds a header and no row")
    return kind, table.assign(**_columns_as_numbers(table, path))


def _travelling(path: Path) -> Path:
    shipped = data_directory() / "measured" / f"{path.name.removesuffix('.csv.gz')}.csv.gz"
    return shipped if path.parent in PLACES and not is_there(path) and is_there(shipped) else path


def _check_file(path: Path) -> None:
    """Raise `DataError` for what is no readable CSV of sensible size."""
    if not is_there(path):
        shipped_names = sorted(
            shipped_path.name.removesuffix(".csv.gz")
            for shipped_path in (data_directory() / "measured").glob("*.csv.gz")
        )
        raise DataError(
            f"{path}: no such file; those that travel with the program are "
            f"{', '.join(shipped_names)}"
        )
    if path.is_dir():
        raise DataError(f"{path}: is a folder, expected a CSV of measurements")
    packed = path.suffix == ".gz"
    with open_regular_file(path) as content:
        size = os.fstat(content.fileno()).st_size
        if size == 0:
            raise DataError(f"{path}: is empty, expected a CSV of measurements")
        stream = gzip.GzipFile(fileobj=content) if packed else content
        try:
            start = stream.read(4096)
            read = len(start)
            # a small file may unpack to any size
            while packed and read <= LARGEST_FILE and (chunk := stream.read(CHUNK)):
                read += len(chunk)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise DataError(f"{path}: no whole gzip file, though its name says so") from None
    if (read if packed else size) > LARGEST_FILE:
        size_text = "unpacks to more" if packed else f"{size / 2**20:,.0f} MiB, more"
        raise DataError(
            f"{path}: {size_text} than the {LARGEST_FILE // 2**20} MiB a table of measurements may "
            "have; split it"
        )
    if b"\0" in start:
        raise DataError(f"{path}: holds NUL bytes, expected a CSV of measurements")


def _columns_as_numbers(table: pd.DataFrame, path: Path) -> dict[str, pd.Series[float]]:
    return {
        column_name: _to_numbers(table[column_name], column_name, path)
        for column_name in table.columns
        if not of_text(column_name)
    }


def _to_numbers(column: pd.Series[str], column_name: str, path: Path) -> pd.Series[float]:
    """Return a column as numbers, blank cells as NaN; any other text raises `DataError`."""
    words = {"": np.nan} | WORDS.get(column_name, {})
    numbers: pd.Series[float] = pd.to_numeric(
        column.str.strip().str.lower().map(lambda cell_text: words.get(cell_text, cell_text)),
        errors="coerce",
    )
    bad = (
        numbers.isna() | ~(np.isfinite(numbers) | column.str.strip().str.lower().isin(words))
    ) & (column != "")
    if bad.any():
        line = int(bad.to_numpy().argmax()) + 2
        unit = next(
            (word for end, word in SUFFIXES.items() if column_name.endswith(end)), "a number"
        )
        raise DataError(
            f"{path}:{line}: {column_name} is {column.iloc[line - 2]!r}, expected {unit}"
        )
    return numbers


def map_values(values: Iterable[Any], of: Callable[[Any], Any], kind: type = object) -> AnyArray:
    """Return an array of `of(value)` over `values`.

    `of` is called once per distinct value.
    """
    value_list = list(values)
    result_by_value = {value: of(value) for value in set(value_list)}
    return np.array([result_by_value[value] for value in value_list], dtype=kind)


def tiers(table: pd.DataFrame) -> AnyArray:
    """Return the tier that rows' notes begin with: A near the hardware, B and C held back.

    Software holds them back. Rows without a tier have an empty text.
    """
    notes = table.get("notes", pd.Series("", index=table.index)).astype(str)
    return np.asarray(notes.str.extract(r"^tier ([A-Z]);", expand=False).fillna(""), dtype=object)
