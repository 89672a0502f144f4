"""Tables in the forms other programs read: one JSON document, Parquet, and a data package with the unit of every number."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from tco import __version__
from tco.chain.metrics import METRICS
from tco.outputs.document import number, to_json
from tco.outputs.records import TITLES, UNITS, Records
from tco.outputs.table import to_csv

DESCRIPTION = "datapackage.json"


def package_files(tables: Mapping[str, Records], data_hash: str) -> dict[str, str]:
    """Return the files of a data package by name, its description last."""
    kept = {name: table for name, table in tables.items() if table.rows}
    files = {f"{name}.csv": to_csv(table.header, table.rows) for name, table in kept.items()}
    return files | {DESCRIPTION: to_json(description(kept, data_hash))}


def description(tables: Mapping[str, Records], data_hash: str) -> dict[str, Any]:
    """Return the description of a data package: a Table Schema for each table, with a unit for each number."""
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
                "schema": {"fields": [field(column) for column in table.header], "missingValues": [""]},
            }
            for name, table in tables.items()
        ],
    }


def field(name: str) -> dict[str, str]:
    """Return a column as a Table Schema has it."""
    if name not in UNITS:
        return {"name": name, "type": "string"}
    return {"name": name, "type": "number", "unit": UNITS[name]}


def export_document(tables: Mapping[str, Records], baseline: str) -> dict[str, Any]:
    """Return the content of the JSON document: the scenarios, each with what belongs to it, and the units."""
    rows = []
    for record in objects(tables["scenarios"]):
        mine = {name: record.pop(name) for name in METRICS}
        parts = {name: [one for one in objects(tables[name]) if one.pop("scenario") == record["scenario"]] for name in ("inputs", "bill", "cost")}
        rows.append({**record, "metrics": mine, **parts})
    units = {name: UNITS[name] for table in tables.values() for name in table.header if name in UNITS}
    return {"baseline": baseline, "rows": rows, "sources": objects(tables["sources"]), "units": units}


def objects(table: Records) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of their columns."""
    return [{name: number(cell) if name in UNITS else cell for name, cell in zip(table.header, row, strict=True)} for row in table.rows]


def parquet_of(table: Records) -> bytes:
    """Return a table as Parquet, numbers as doubles with their unit beside the name."""
    import pyarrow as pa
    from pyarrow import parquet

    fields, columns = [], []
    for name, unit, cells in table.columns():
        kind, metadata = (pa.float64(), {"unit": unit}) if unit is not None else (pa.string(), None)
        fields.append(pa.field(name, kind, metadata=metadata))
        columns.append(pa.array([cell if cell is None else float(cell) if unit is not None else str(cell) for cell in cells], kind))
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), stream)
    return stream.getvalue()
