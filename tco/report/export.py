"""Results as tables for other programs: JSON, Parquet or a data package, numbers with units."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tco import __version__
from tco.catalog import Catalogue, Source
from tco.core.errors import library
from tco.core.types import JsonObject
from tco.report.assumptions import CONTEXT
from tco.report.comparison import COMPARISON_ROW
from tco.report.cost import LINE, cost_line_records
from tco.report.hardware import BILL
from tco.report.record import Member, Record, json_number_or_none, record_of, to_json
from tco.report.table import to_csv
from tco.sampling.median import DRAWN_COSTS, DrawnMetrics
from tco.scenario.metrics import METRICS
from tco.scenario.result import Result

DESCRIPTION = "datapackage.json"
ROW_UNIT = "as the column unit says"
TITLES = {
    "scenarios": "A row for each scenario: what it depends on, and every metric",
    "inputs": "Every input a scenario depends on, in the unit the formulas take",
    "bill": "Bills of materials of one scale-up domain, by leaves",
    "cost": "Cost lines, which sum to the cost of a chip-hour",
    "sources": "The sources that inputs, bills and costs name",
}
INPUT = Record(
    "path",
    Member("value", float, unit=ROW_UNIT),
    "unit",
    Member("low", float | None, unit=ROW_UNIT),
    Member("high", float | None, unit=ROW_UNIT),
    "as_of",
    "kind",
    "source",
    Member("own", read=lambda input_record: "own" if input_record.overlay else ""),
)


class ExportTable(NamedTuple):
    """One table: its columns, and its rows of texts, numbers and nothings."""

    columns: Sequence[Member]
    rows: Sequence[Sequence[Any]]

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return [column.key for column in self.columns]

    def objects(self) -> list[JsonObject]:
        """Return the rows by the names of their columns."""
        return [
            {
                column.key: json_number_or_none(cell) if column.unit else cell
                for column, cell in zip(self.columns, table_row, strict=True)
            }
            for table_row in self.rows
        ]


def _with_context(record: Record) -> Record:
    # of something paired with the result it is of
    scenario, *context = Record(*CONTEXT).read_via("1.context").members
    return Record(scenario, record, *context)


def _export_table(record: Record, sources: Iterable[Any]) -> ExportTable:
    columns = [member for member in record.members if member.csv]
    return ExportTable(columns, list(map(record.cells, sources)))


class ExportedScenario(NamedTuple):
    """A result, with the percentiles of its costs over draws."""

    result: Result
    drawn: DrawnMetrics


def _median_record(metric: str) -> Record:
    """Return the columns of a cost's median, P10 and P90, beside its base case."""
    unit = METRICS[metric].unit
    return Record(
        Member(f"median_{metric}", float | None, f"drawn.{metric}.p50", unit=unit),
        Member(f"{metric}_p10", float | None, f"drawn.{metric}.p10", unit=unit),
        Member(f"{metric}_p90", float | None, f"drawn.{metric}.p90", unit=unit),
    )


SCENARIO = Record(COMPARISON_ROW.read_via("result"), *map(_median_record, DRAWN_COSTS))


def tables_of(
    scenario_results: Sequence[Result], catalogue: Catalogue, drawn: Sequence[DrawnMetrics]
) -> dict[str, ExportTable]:
    """Return the tables of results by name.

    Args:
        scenario_results: Results of scenarios.
        catalogue: Holds the sources.
        drawn: Percentiles of the costs of each scenario.

    Returns:
        Tables `scenarios`, `inputs`, `bill`, `cost` and `sources`; the last holds only named
        sources.

    """
    inputs = [
        (input_record, scenario_result)
        for scenario_result in scenario_results
        for _, input_record in sorted(scenario_result.inputs.items())
    ]
    bill = [
        (line, scenario_result)
        for scenario_result in scenario_results
        if scenario_result.bill
        for line in scenario_result.bill.lines
    ]
    cost = [
        line for scenario_result in scenario_results for line in cost_line_records(scenario_result)
    ]
    named = {input_record.source for input_record, _ in inputs}
    named.update(*(line.sources for line, _ in bill), *(line.sources for line, _ in cost))
    sources = [
        source for source_name, source in sorted(catalogue.sources.items()) if source_name in named
    ]
    return {
        "scenarios": _export_table(SCENARIO, list(map(ExportedScenario, scenario_results, drawn))),
        "inputs": _export_table(_with_context(INPUT.read_via("0")), inputs),
        "bill": _export_table(_with_context(BILL.read_via("0")), bill),
        "cost": _export_table(_with_context(LINE), cost),
        "sources": _export_table(record_of(Source), sources),
    }


def package_files(tables: Mapping[str, ExportTable], data_hash: str) -> dict[str, str]:
    """Return the files of a data package by name, its description last.

    Args:
        tables: Tables by name; a table without rows is left out.
        data_hash: Hash of the data behind the tables.

    Returns:
        Texts by file name: a CSV per table, then the description as JSON.

    """
    filled = {table_name: table for table_name, table in tables.items() if table.rows}
    files = {
        f"{table_name}.csv": to_csv(table.header, table.rows)
        for table_name, table in filled.items()
    }
    return files | {DESCRIPTION: to_json(_description(filled, data_hash))}


def _description(tables: Mapping[str, ExportTable], data_hash: str) -> JsonObject:
    """Describe a data package: a Table Schema for each table, with a unit for each number."""
    return {
        "profile": "tabular-data-package",
        "name": "tco-export",
        "title": "Total cost of ownership",
        "version": __version__,
        "data_hash": data_hash,
        "resources": [
            {
                "profile": "tabular-data-resource",
                "name": table_name,
                "path": f"{table_name}.csv",
                "title": TITLES[table_name],
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "schema": {"fields": list(map(_field, table.columns)), "missingValues": [""]},
            }
            for table_name, table in tables.items()
        ],
    }


def _field(column: Member) -> dict[str, str]:
    # as a Table Schema has it
    kind = {"type": "number", "unit": column.unit} if column.unit else {"type": "string"}
    return {"name": column.key, **kind}


def export_document(tables: Mapping[str, ExportTable], baseline: str) -> JsonObject:
    """Return the content of the JSON document of an export.

    Args:
        tables: Tables of `tables_of` by name.
        baseline: Scenario that the other scenarios are held against.

    Returns:
        The baseline, a row per scenario with its metrics, inputs, bill and cost, the sources, and
        the units by field.

    """
    scenario_rows = []
    for scenario_row in tables["scenarios"].objects():
        scenario_row["metrics"] = {
            metric_name: scenario_row.pop(metric_name) for metric_name in METRICS
        }
        for table_name in ("inputs", "bill", "cost"):
            scenario_row[table_name] = [
                {
                    column_key: cell_value
                    for column_key, cell_value in line.items()
                    if column_key not in CONTEXT
                }
                for line in tables[table_name].objects()
                if line["scenario"] == scenario_row["scenario"]
            ]
        scenario_rows.append(scenario_row)
    units = {
        column.key: column.unit
        for table in tables.values()
        for column in table.columns
        if column.unit
    }
    return {
        "baseline": baseline,
        "rows": scenario_rows,
        "sources": tables["sources"].objects(),
        "units": units,
    }


def parquet_of(table: ExportTable) -> bytes:
    """Return a table as Parquet bytes.

    Numbers are doubles, with their unit beside the name of the column.

    Args:
        table: Table to write; a column with a unit holds numbers, any other column texts.

    Raises:
        UsageError: The library pyarrow is not installed.

    """
    pa, parquet = (
        library(library_name, "Parquet", "sweep") for library_name in ("pyarrow", "pyarrow.parquet")
    )

    fields, arrays = [], []
    for position, column in enumerate(table.columns):
        kind, metadata = (
            (pa.float64(), {"unit": column.unit}) if column.unit else (pa.string(), None)
        )
        cells = (table_row[position] for table_row in table.rows)
        column_values = [
            cell if cell is None else float(cell) if column.unit else str(cell) for cell in cells
        ]
        fields.append(pa.field(column.key, kind, metadata=metadata))
        arrays.append(pa.array(column_values, kind))
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), stream)
    return stream.getvalue()
