"""Results as tables for other programs, each number with its unit: one JSON document, Parquet, and
a data package.
"""

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
    *(Member(end, float | None, unit=ROW_UNIT) for end in ("low", "high")),
    *("as_of", "kind", "source"),
    Member("own", read=lambda given: "own" if given.overlay else ""),
)


class ExportTable(NamedTuple):
    """One table: its columns, and its rows of texts, numbers and nothings."""

    fields: Sequence[Member]
    rows: Sequence[Sequence[Any]]

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return [field.key for field in self.fields]

    def objects(self) -> list[JsonObject]:
        """Return the rows by the names of their columns."""
        return [
            {
                field.key: json_number_or_none(cell) if field.unit else cell
                for field, cell in zip(self.fields, row, strict=True)
            }
            for row in self.rows
        ]


def of_scenario(record: Record) -> Record:
    """Return the record of something with the result it is of."""
    scenario, *others = Record(*CONTEXT).read_via(lambda one: one[1].context).members
    return Record(scenario, record, *others)


def export_table(record: Record, many: Iterable[Any]) -> ExportTable:
    """Return the table of many of one record."""
    return ExportTable(
        [field for field in record.members if field.csv], list(map(record.cells, many))
    )


def tables_of(results: Sequence[Result], catalogue: Catalogue) -> dict[str, ExportTable]:
    """Return the tables of some results by name.

    Args:
        results: Results of scenarios.
        catalogue: Holds the sources.

    Returns:
        Tables `scenarios`, `inputs`, `bill`, `cost` and `sources`; the last holds only named
        sources.

    """
    inputs = [(given, result) for result in results for _, given in sorted(result.inputs.items())]
    bill = [(line, result) for result in results if result.bill for line in result.bill.lines]
    cost = [line for result in results for line in cost_line_records(result)]
    named = {given.source for given, _ in inputs}
    named |= {source for line, _ in bill for source in line.sources} | {
        source for line, _ in cost for source in line.sources
    }
    sources = [source for name, source in sorted(catalogue.sources.items()) if name in named]
    return {
        "scenarios": export_table(COMPARISON_ROW, results),
        "inputs": export_table(of_scenario(INPUT.read_via("0")), inputs),
        "bill": export_table(of_scenario(BILL.read_via("0")), bill),
        "cost": export_table(of_scenario(LINE), cost),
        "sources": export_table(record_of(Source), sources),
    }


def package_files(tables: Mapping[str, ExportTable], data_hash: str) -> dict[str, str]:
    """Return the files of a data package by name, its description last.

    Args:
        tables: Tables by name; a table without rows is left out.
        data_hash: Hash of the data behind the tables.

    Returns:
        Texts by file name: a CSV per table, then the description as JSON.

    """
    kept = {name: table for name, table in tables.items() if table.rows}
    files = {f"{name}.csv": to_csv(table.header, table.rows) for name, table in kept.items()}
    return files | {DESCRIPTION: to_json(description(kept, data_hash))}


def description(tables: Mapping[str, ExportTable], data_hash: str) -> JsonObject:
    """Return the description of a data package: a Table Schema for each table, with a unit for each
    number.
    """
    return {
        "profile": "tabular-data-package",
        "name": "tco-export",
        "title": "Total cost of ownership",
        "version": __version__,
        "data_hash": data_hash,
        "resources": [
            {
                "profile": "tabular-data-resource",
                "name": name,
                "path": f"{name}.csv",
                "title": TITLES[name],
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "schema": {"fields": fields_of(table), "missingValues": [""]},
            }
            for name, table in tables.items()
        ],
    }


def fields_of(table: ExportTable) -> list[dict[str, str]]:
    """Return columns as a Table Schema has them."""
    kinds = (
        {"type": "number", "unit": field.unit} if field.unit else {"type": "string"}
        for field in table.fields
    )
    return [{"name": field.key, **kind} for field, kind in zip(table.fields, kinds, strict=True)]


def export_document(tables: Mapping[str, ExportTable], baseline: str) -> JsonObject:
    """Return the content of the JSON document of an export.

    Args:
        tables: Tables of `tables_of` by name.
        baseline: Scenario that the other scenarios are held against.

    Returns:
        The baseline, a row per scenario with its metrics, inputs, bill and cost, the sources, and
        the units by field.

    """
    rows = []
    for record in tables["scenarios"].objects():
        metrics = {name: record.pop(name) for name in METRICS}
        row = record | {"metrics": metrics}
        for name in ("inputs", "bill", "cost"):
            mine = [one for one in tables[name].objects() if one["scenario"] == record["scenario"]]
            row[name] = [
                {key: value for key, value in one.items() if key not in CONTEXT} for one in mine
            ]
        rows.append(row)
    units = {
        field.key: field.unit for table in tables.values() for field in table.fields if field.unit
    }
    return {
        "baseline": baseline,
        "rows": rows,
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
    pa, parquet = (library(name, "Parquet", "sweep") for name in ("pyarrow", "pyarrow.parquet"))

    fields, columns = [], []
    for at, column in enumerate(table.fields):
        kind, metadata = (
            (pa.float64(), {"unit": column.unit}) if column.unit else (pa.string(), None)
        )
        cells = [row[at] for row in table.rows]
        fields.append(pa.field(column.key, kind, metadata=metadata))
        columns.append(
            pa.array(
                [
                    cell if cell is None else float(cell) if column.unit else str(cell)
                    for cell in cells
                ],
                kind,
            )
        )
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), stream)
    return stream.getvalue()
