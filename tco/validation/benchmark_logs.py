"""Read the files that benchmark tools write: nccl-tests, vllm, sglang, aiperf, GuideLLM, ...

`data/measured/formats.toml` lists the keys by which a format is recognised, and the keys under
which it states each column. A file becomes JSON records, a record becomes texts by dotted key, and
these become the columns that `read_measured` reads. Options of the command state what a file lacks:
the chip, tensor parallelism, ranks, the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tco.core.errors import DataError
from tco.core.files import data_directory, read_text, read_toml
from tco.core.provenance import measured_facts
from tco.core.types import JsonObject, TextMapping, is_whole_number

Record = dict[str, str]
NO = ("no", "false", "0", "")
TEXT = re.compile(r"'(.*)'")
CALCULATED = re.compile(r"(\S+) ([*/+]) (\S+)")
COLLECTIVE = re.compile(r"\b(\w+?)_perf(?:_mpi)?\b")
DEVICE = re.compile(r"^#\s+Rank\s+\d+\s.*?\bon\s+(\S+)\s+device\s+\d+\s+\[[^\]]+\]\s+(.+?)\s*$")
RUN_LINE = re.compile(r"^#\s*nThreads?:?\s+(\d+)\s+nGpus:?\s+(\d+)", re.MULTILINE)
HEADER_WORDS = {"size", "time", "busbw"}
# Operations as some programs spell them, in lower case, and as columns have them.
OPERATIONS = {
    "sendrecv": "send_recv",
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
}
ROUNDING = 0.02  # relative error of a ratio of printed bandwidths
# Words for columns that a prediction needs.
FACTS = {
    "accelerator": "the chip",
    "n_gpus": "the number of ranks",
    "op": "the operation",
    "model": "the model",
    "tp": "tensor parallelism",
    "date": "the month of the run",
}
POOLS = ("prefill_", "decode_")


class Log(NamedTuple):
    """Content of a benchmark file: its format, and a table in the columns of measured files."""

    title: str
    kind: str
    table: pd.DataFrame


@cache
def _formats() -> JsonObject:
    return read_toml(data_directory() / "measured" / "formats.toml")


def stated_columns() -> Record:
    """Return the columns that options of the command line state."""
    columns = {option: column for column, option in _formats()["options"].items()}
    return {columns[option]: option_text for option, option_text in measured_facts.get().items()}


def read_log(path: Path) -> Log | None:
    """Return the rows of a benchmark file; None for a table of measured rows.

    Args:
        path: File to read.

    Raises:
        DataError: The file is JSON of no known format, or holds no measurement.

    """
    log_text = read_text(path)
    if log_text.lstrip()[:1] in ("{", "["):
        outer_records = _json_records(path, log_text)
    elif re.search(r"^#.*\bbusbw\b", log_text, re.MULTILINE):
        outer_records = [_collective_log(path, log_text)]
    else:
        return None
    for layout in _formats()["formats"].values():
        records = [flat for outer in outer_records for flat in _inner_records(outer, layout)]
        if records and all(_has_marks(record, layout["marks"]) for record in records):
            return Log(layout["title"], layout["kind"], _measured_table(records, layout))
    titles = ", ".join(layout["title"] for layout in _formats()["formats"].values())
    record_keys = ", ".join(list(_flatten(outer_records[0]))[:12]) if outer_records else "none"
    raise DataError(
        f"{path}: is JSON of no known benchmark, with the keys {record_keys}; those of {titles} "
        "are read, and CSV in the columns of data/measured"
    )


def table_records(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of texts in measured columns, where its header is that of a format."""
    for layout in _formats()["formats"].values():
        header = dict.fromkeys(table.columns, "x")
        if _has_marks(header, layout["marks"]):
            return _measured_table(table.to_dict(orient="records"), layout)
    return table


def _measured_table(records: Sequence[TextMapping], layout: JsonObject) -> pd.DataFrame:
    """Return records of a format in measured columns, without those that are blank."""
    measured_rows = [_measured_row(record, layout["columns"]) for record in records]
    columns = [
        column_name
        for column_name in layout["columns"]
        if any(measured_row.get(column_name) for measured_row in measured_rows)
    ]
    cells = {
        column_name: [measured_row.get(column_name, "") for measured_row in measured_rows]
        for column_name in columns
    }
    return pd.DataFrame(cells, dtype=object)


def _json_records(path: Path, log_text: str) -> list[JsonObject]:
    """Return the objects of a JSON text: one, a list of them, or one a line."""
    try:
        document = json.loads(log_text)
    except json.JSONDecodeError:
        document = [
            _json_line(path, line, line_text)
            for line, line_text in enumerate(log_text.split("\n"), 1)
            if line_text.strip()
        ]
    except (RecursionError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error})") from None
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise DataError(f"{path}: item {number} is {record!r}, expected an object of results")
    return records


def _json_line(path: Path, line: int, line_text: str) -> JsonObject:
    try:
        record: JsonObject = json.loads(line_text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}:{line}: broken JSON ({error}), expected the results of a benchmark"
        ) from None
    return record


def _collective_log(path: Path, log_text: str) -> JsonObject:
    """Return the text of nccl-tests as the JSON that the same program writes."""
    lines = log_text.split("\n")
    header = _collective_header(lines)
    if header is None:
        raise DataError(f"{path}: has no header with size, time and busbw, as nccl-tests prints it")
    size_results = []
    for number, line in enumerate(lines, 1):
        cells = line.split()
        if not cells or not cells[0].isdigit():
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{path}:{number}: {len(cells)} cells, expected {len(header)} ({' '.join(header)})"
            )
        # reversed: of columns of one name, out of place and in place, the first counts
        numbers = dict(zip(reversed(header), reversed(cells), strict=True))
        size_results.append(
            {
                "size": numbers["size"],
                "type": numbers.get("type", ""),
                "redop": numbers.get("redop", ""),
                "out_of_place": {
                    "time": numbers["time"],
                    "alg_bw": numbers.get("algbw", ""),
                    "bus_bw": numbers["busbw"],
                },
            }
        )
    if not size_results:
        raise DataError(f"{path}: holds the header of nccl-tests and no measurement")
    devices = [match for line in lines if (match := DEVICE.match(line))]
    run = RUN_LINE.search(log_text)
    return {
        "config": {"nthread": run[1], "ngpus": run[2]} if run else {},
        "args": [match[0] for line in lines if (match := COLLECTIVE.search(line))],
        "devices": [{"hostname": match[1], "device_info": match[2]} for match in devices],
        "results": size_results,
    }


def _collective_header(lines: Sequence[str]) -> list[str] | None:
    for line in lines:
        columns = line.lstrip("# ").split()
        if line.startswith("#") and set(columns) >= HEADER_WORDS:
            return columns
    return None


def _inner_records(outer: JsonObject, layout: JsonObject) -> Iterator[Record]:
    """Yield the flat records of a document, each with the facts that hold for all of them."""
    if (list_name := layout.get("inside")) is None:
        flat = _flatten(outer)
        prefix = f"{layout.get('flat', '')}."
        yield {record_key.removeprefix(prefix): cell for record_key, cell in flat.items()}
        return
    inner = outer.get(list_name)
    if not isinstance(inner, list):
        return
    shared = {
        f"outer.{record_key}": cell for record_key, cell in _flatten(outer, skip=list_name).items()
    }
    shared |= _collective_facts(outer, inner) if layout["kind"] == "collectives" else {}
    for record in inner:
        if isinstance(record, dict):
            yield shared | _flatten(record)


def _flatten(record: object, prefix: str = "", skip: str = "") -> Record:
    """Return texts by dotted key; a list counts by its first item, and a null is left out."""
    if isinstance(record, dict):
        items = [(str(item_key), item) for item_key, item in record.items() if item_key != skip]
    elif isinstance(record, list):
        items = [(str(number), item) for number, item in enumerate(record[:1])]
    else:
        return {} if record is None else {prefix: _cell_text(record)}
    flat: Record = {}
    for item_key, item in items:
        flat |= _flatten(item, f"{prefix}.{item_key}" if prefix else item_key)
    return flat


def _cell_text(cell_value: object) -> str:
    if isinstance(cell_value, bool):
        return "yes" if cell_value else "no"
    return repr(cell_value) if isinstance(cell_value, float) else str(cell_value)


def _collective_facts(outer: JsonObject, size_results: Sequence[JsonObject]) -> Record:
    """Return chip, ranks, nodes, operation and library of a log of collectives."""
    devices = [device for device in outer.get("devices") or [] if isinstance(device, dict)]
    device_names = {str(device.get("device_info", "")) for device in devices} - {""}
    hosts = {str(device.get("hostname", "")) for device in devices}
    facts: Record = {}
    if len(device_names) == 1:
        facts["device_name"] = device_names.pop()
        facts["library"] = "rccl" if "AMD" in facts["device_name"] else "nccl"
    config = _flatten(outer.get("config") or {})
    ranks = max(len(devices), _ranks_of_process(config))  # some logs list a part of the devices
    if ranks:
        facts |= {"rank_count": str(ranks), "node_count": str(max(len(hosts), 1))}
    match = COLLECTIVE.search(" ".join(map(str, outer.get("args") or [])))
    operation = (
        match[1] if match else config.get("collective") or _operation_of_ratio(size_results, ranks)
    )
    if operation:
        facts["operation"] = operation
    return facts


def _ranks_of_process(config: Record) -> int:
    """Return the ranks of one process, its threads times their chips; zero where unstated."""
    numbers = {re.sub("_", "", config_key.lower()): cell for config_key, cell in config.items()}
    chips, threads = numbers.get("ngpus", ""), numbers.get("nthread", numbers.get("nthreads", "1"))
    is_stated = is_whole_number(chips) and is_whole_number(threads)
    return int(chips) * int(threads) if is_stated else 0


def _operation_of_ratio(size_results: Sequence[JsonObject], ranks: int) -> str:
    """Return the operation that follows from bus over algorithm bandwidth; else an empty text.

    For n ranks the ratio is 2 (n - 1) / n of an all-reduce alone. It is (n - 1) / n of a
    reduce-scatter, which has a reduction, and of an all-gather and an all-to-all, which have none.
    """
    ratios = []
    for size_result in size_results:
        times = size_result.get("out_of_place")
        if isinstance(times, dict) and float(times.get("alg_bw") or 0) > 1:
            ratios.append(float(times["bus_bw"]) / float(times["alg_bw"]))
    if ranks <= 2 or not ratios:
        return ""
    ratio, share = sorted(ratios)[len(ratios) // 2], (ranks - 1) / ranks
    is_reduced = str(size_results[0].get("redop", "none")) not in ("none", "")
    if abs(ratio / (2 * share) - 1) < ROUNDING:
        return "all_reduce"
    if abs(ratio / share - 1) < ROUNDING and is_reduced:
        return "reduce_scatter"
    return ""


def _has_marks(record: TextMapping, marks: Sequence[str]) -> bool:
    return all(any(mark_key in record for mark_key in mark.split("|")) for mark in marks)


def _measured_row(record: TextMapping, columns: Mapping[str, Sequence[str]]) -> Record:
    measured_row = {
        column: next(
            (cell for spelling_name in spellings if (cell := _cell_of(record, spelling_name))), ""
        )
        for column, spellings in columns.items()
    }
    if operation := measured_row.get("op"):
        measured_row["op"] = OPERATIONS.get(operation.lower(), operation)
    if "date" in measured_row:
        measured_row["date"] = _written_date(measured_row["date"])
    if measured_row.get("concurrency") == "" and record.get("request_rate") == "inf":
        measured_row["concurrency"] = "unlimited"
    if measured_row.get("disaggregated", "").lower() in NO:
        return {
            column_name: cell
            for column_name, cell in measured_row.items()
            if not column_name.startswith(POOLS)
        }
    pool_chips = [measured_row.get(f"{pool}gpus", "") for pool in POOLS]
    if all(pool_chips):
        measured_row["n_gpus"] = f"{sum(map(float, pool_chips)):g}"
    return measured_row


def _written_date(date_text: str) -> str:
    """Return a date as year, month and day: of an ISO date, of digits, or of epoch seconds."""
    if match := re.match(r"(20\d\d)-?(\d\d)-?(\d\d)(?!\d)", date_text):
        return "-".join(match.groups())
    if re.fullmatch(r"\d{10}(\.\d+)?", date_text):
        return datetime.fromtimestamp(float(date_text), UTC).date().isoformat()
    return date_text


def _cell_of(record: TextMapping, spelling: str) -> str:
    """Return the cell of a spelling: a key, a text in quotes, or a calculation of keys."""
    if match := TEXT.fullmatch(spelling):
        return match[1]
    if not (match := CALCULATED.fullmatch(spelling)):
        return record.get(spelling, "")
    try:
        left, right = (
            float(operand_name if operand_name.isdigit() else record.get(operand_name, ""))
            for operand_name in match.group(1, 3)
        )
    except ValueError:
        return ""
    if match[2] == "/":
        return repr(left / right) if right else ""
    return repr(left * right if match[2] == "*" else left + right)


def with_chip_count(table: pd.DataFrame) -> pd.DataFrame:
    """Return serving rows with the chips of their tensor and pipeline parallelism, if unstated."""
    if "n_gpus" in table or "tp" not in table:
        return table
    chips = pd.to_numeric(table["tp"], errors="coerce")
    if "pp" in table:
        chips = chips * pd.to_numeric(table["pp"], errors="coerce").fillna(1)
    return table.assign(n_gpus=chips.map("{:g}".format))


def with_facts(path: Path, log: Log, needed: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the rows of a log with the columns that options state, and the number of chips.

    Args:
        path: File of the log, for errors.
        log: Its rows.
        needed: Columns that must be stated; None takes those of a prediction.

    Raises:
        DataError: Neither log nor options state a needed column; the error names its option.

    """
    table = with_chip_count(log.table.assign(**stated_columns()))
    missing = [
        column_name
        for column_name in (_formats()["asked"][log.kind] if needed is None else needed)
        if column_name not in table or (table[column_name] == "").any()
    ]
    if missing:
        options = _formats()["options"]
        words = ", ".join(FACTS.get(column_name, column_name) for column_name in missing)
        asked_options = " ".join(
            f"--{options[column_name]} ..." for column_name in missing if column_name in options
        )
        raise DataError(f"{path}: {log.title} does not state {words}; add {asked_options}")
    return table
