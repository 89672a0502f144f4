"""Read a saved result, and refuse a file that `Result.save` did not write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tco.catalog.accuracy import Standing
from tco.core.errors import DataError, KeptBackError, refuse_unknown
from tco.core.files import read_json
from tco.core.inputs import Readings
from tco.core.provenance import DIRECTNESS, RANK, Input, making
from tco.core.types import JsonObject, is_finite_number
from tco.cost.cash_flows import Flow
from tco.cost.ownership import Rebate
from tco.cost.price_dates import Ages
from tco.performance.profile import Report
from tco.scenario.metrics import METRICS
from tco.scenario.plan_records import plan_from
from tco.scenario.result import SAVED_AS, SAVED_TABLES, SAVED_TEXTS, SCHEMA, Result, origin_of
from tco.scenario.structure import Structure
from tco.scenario.workload import KINDS
from tco.system.bill import Bill, BillLine

# What each field of a record may hold; fields that are not named here are texts.
NUMBER, MAYBE, FLAG, LIST, SHOWN = (
    "a number",
    "a number or null",
    "true or false",
    "a list of texts",
    "a value and its unit, or null",
)
READINGS = "a table of numbers, or true or false"
KIND, DIRECT = f"one of {', '.join(RANK)}", f"one of {', '.join(DIRECTNESS)}"
MONTHS, YEARS = "a count of months", "a life in years of no more than a century"
FIELDS: dict[type, dict[str, str]] = {
    Flow: {
        **{
            "amount": NUMBER,
            "first_month": MONTHS,
            "life": YEARS,
            "recurrence": MONTHS,
            "residual": NUMBER,
        },
        **{"sources": LIST, "inputs": LIST, "overlay": FLAG, "usd_per_chip_hour": NUMBER},
    },
    BillLine: {
        **{
            "quantity": NUMBER,
            "unit_price": MAYBE,
            "extended": MAYBE,
            "power": NUMBER,
            "sources": LIST,
            "inputs": LIST,
        },
        **{"included_in": "a text or null", "overlay": FLAG},
    },
    Rebate: {"value": NUMBER, "sources": LIST, "inputs": LIST, "spend": MAYBE},
    Input: {
        "value": NUMBER,
        "low": MAYBE,
        "high": MAYBE,
        "shown": SHOWN,
        "overlay": FLAG,
        "kind": KIND,
        "directness": DIRECT,
    },
    Standing: {
        "validated_rows": NUMBER,
        "anchored_rows": NUMBER,
        "median": MAYBE,
        "left_out": MAYBE,
        "anchors": LIST,
    },
    Ages: {
        "later": NUMBER,
        "older": NUMBER,
        "notes": LIST,
        "hour_older": NUMBER,
        "hour_notes": LIST,
    },
}


HOLDS: dict[str, Callable[[Any], bool]] = {
    "a text": lambda cell_value: isinstance(cell_value, str),
    "a text or null": lambda cell_value: cell_value is None or isinstance(cell_value, str),
    NUMBER: is_finite_number,
    MAYBE: lambda cell_value: cell_value is None or is_finite_number(cell_value),
    MONTHS: lambda cell_value: (
        isinstance(cell_value, int) and is_finite_number(cell_value) and cell_value >= 0
    ),
    YEARS: lambda cell_value: is_finite_number(cell_value) and 0 < cell_value <= 100,
    FLAG: lambda cell_value: isinstance(cell_value, bool),
    LIST: lambda cell_value: (
        isinstance(cell_value, list) and all(isinstance(list_text, str) for list_text in cell_value)
    ),
    SHOWN: lambda cell_value: (
        cell_value is None
        or (
            isinstance(cell_value, list)
            and len(cell_value) == 2
            and is_finite_number(cell_value[0])
            and isinstance(cell_value[1], str)
        )
    ),
    KIND: lambda cell_value: cell_value in RANK,
    DIRECT: lambda cell_value: cell_value in DIRECTNESS,
    "a table": lambda cell_value: isinstance(cell_value, dict),
    "a table or null": lambda cell_value: cell_value is None or isinstance(cell_value, dict),
    "a list": lambda cell_value: isinstance(cell_value, list),
    "a table of texts": lambda cell_value: (
        isinstance(cell_value, dict)
        and all(isinstance(table_text, str) for table_text in cell_value.values())
    ),
    READINGS: lambda cell_value: (
        isinstance(cell_value, dict)
        and all(
            isinstance(reading, bool) or is_finite_number(reading)
            for reading in cell_value.values()
        )
    ),
    "a table of numbers": lambda cell_value: (
        isinstance(cell_value, dict)
        and all(is_finite_number(number) for number in cell_value.values())
    ),
    "a table of numbers or nulls": lambda cell_value: (
        isinstance(cell_value, dict)
        and all(number is None or is_finite_number(number) for number in cell_value.values())
    ),
}
TOP = {
    **dict.fromkeys(("tco_version", "data_hash", *SAVED_TEXTS, "order"), "a text"),
    **dict.fromkeys(("documents", "texts", "formulas"), "a table of texts"),
    **dict.fromkeys(
        ("overrides", "bounds", "shares", "inputs", "standing", "report", "ages"), "a table"
    ),
    **dict.fromkeys(("lines", "rebates"), "a list"),
    **dict.fromkeys(("plan", "bill"), "a table or null"),
    "metrics": "a table of numbers or nulls",
    "notes": LIST,
}

# What tables say beside the metrics, so no result is without it.
TEXTS = ("terms.date", "workload.kind", "workload.model", "workload.precision")
TERMS = ("terms.life", "terms.utilisation")
SHARES = ("hardware", "terms")
SUMS = ("chips", "tco_usd_per_chip_hour", "tco_gross_usd_per_chip_hour")  # of the lines of cost


def load_result(path: str | Path) -> Result:
    """Return the result of a file that `Result.save` wrote.

    Args:
        path: File of the result.

    Raises:
        DataError: The file cannot be read or is no saved result, or an answer that withholds the
            user's values would reveal the values in the file.

    """
    document, where = saved(Path(path)), str(path)
    _hold_result(document, where)
    report, overrides = document["report"], document["overrides"]
    input_records = records(Input, document["inputs"].values(), f"{where}: inputs")
    inputs = dict(zip(document["inputs"], input_records, strict=True))
    if making.get() and any(result_input.overlay for result_input in inputs.values()):
        raise KeptBackError(
            f"{where}: was saved with values of your own, and nothing can replace them; "
            "expected a scenario"
        )
    return Result(
        **{
            document_field: document[document_field]
            for document_field in (*SAVED_TEXTS, *SAVED_TABLES)
        },
        # a metric that is newer than the file has no value
        metrics={metric_name: document["metrics"].get(metric_name) for metric_name in METRICS},
        lines=[
            _cost_line(cells, inputs, f"{where}: lines {number}")
            for number, cells in enumerate(document["lines"], 1)
        ],
        bill=_bill_of(document["bill"], f"{where}: bill"),
        rebates=records(Rebate, document["rebates"], f"{where}: rebates"),
        serving=None,
        inputs=inputs,
        standing=_record(Standing, document["standing"], f"{where}: standing"),
        report=Report(
            report["plan"],
            report["search"],
            report.get("runner_up"),
            report["margin"],
            report["memory"],
            {},
        ),
        plan=plan_from(document["plan"], f"{where}: plan"),
        structure=_structure_from(document, where),
        origin=origin_of(
            *(document["documents"], overrides["set"], overrides["variant"]),
            *(document["data_hash"], document["formulas"], document["tco_version"]),
            ages=_record(Ages, document["ages"], f"{where}: ages"),
            shares=document["shares"],
        ),
    )


def _hold_result(document: JsonObject, where: str) -> None:
    """Check that a saved result holds what its kind of workload has."""
    hold(document, TOP, where)
    overrides = {"set": "a table of texts", "variant": "a table of texts"}
    hold(document["overrides"], overrides, f"{where}: overrides")
    hold(
        document["report"],
        {"plan": "a table", "search": "a table", "memory": "a table of numbers", "margin": MAYBE},
        f"{where}: report",
    )
    bounds = dict.fromkeys(document["bounds"], "a table of numbers")
    hold(document["bounds"], bounds, f"{where}: bounds")
    hold(document["texts"], dict.fromkeys(TEXTS, "a text"), f"{where}: texts")
    if (kind := KINDS.get(document["texts"]["workload.kind"])) is not None:
        hold(document["inputs"], dict.fromkeys(kind.inputs, "a table"), f"{where}: inputs")
    if document["bill"] is not None:
        hold(document["shares"], dict.fromkeys(SHARES, "a table of numbers"), f"{where}: shares")
        hold(document["inputs"], dict.fromkeys(TERMS, "a table"), f"{where}: inputs")
    if document["lines"]:
        hold(document["metrics"], dict.fromkeys(SUMS, "a number"), f"{where}: metrics")


def _structure_from(document: JsonObject, where: str) -> Structure | None:
    """Return the structure of a result; files of earlier versions hold none."""
    structure_table = document.get("structure")
    if structure_table is None:
        return None
    if not isinstance(structure_table, dict):
        raise DataError(f"{where}: structure is {str(structure_table)[:60]!r}, expected a table")
    hold(
        structure_table,
        {
            "alternatives": "a table of texts",
            "readings": READINGS,
            "compared": LIST,
            "choices": "a table",
        },
        f"{where}: structure",
    )
    system = document["system"]
    variant = document["overrides"]["variant"]
    plan = plan_from(document["plan"], f"{where}: plan")
    readings, compared = Readings(structure_table["readings"]), tuple(structure_table["compared"])
    return Structure(
        system,
        variant,
        document["texts"],
        structure_table["alternatives"],
        plan,
        readings,
        compared,
        structure_table["choices"],
    )


def saved(path: Path) -> JsonObject:
    """Return the document of a file of the right schema."""
    document = read_json(path, "a saved result")
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        kind = f"its schema is {schema!r}" if schema else "it states no schema"
        raise DataError(
            f"{path}: is no saved result: {kind}, expected {SCHEMA!r}, which `Result.save` writes"
        )
    return dict(document)


def hold(table: JsonObject, kinds_by_key: dict[str, str], where: str) -> None:
    """Refuse a table that lacks a key or has a wrong value.

    Args:
        table: Table to check; further keys pass.
        kinds_by_key: Kind of value by key, in the words of `HOLDS`.
        where: Place of the table, for the text of an error.

    Raises:
        DataError: A key is missing, or its value is of another kind.

    """
    for table_key, kind in kinds_by_key.items():
        if table_key not in table:
            raise DataError(
                f"{where}: the key {table_key!r} is missing, expected {kind}; save the result again"
            )
        if not HOLDS[kind](table[table_key]):
            raise DataError(
                f"{where}: {table_key} is {str(table[table_key])[:60]!r}, expected {kind}"
            )


def _record(cls: type, cells: Any, where: str) -> Any:
    """Return one record, its lists as tuples."""
    field_names = getattr(cls, "_fields", None) or cls.__slots__  # type: ignore[attr-defined]
    if not isinstance(cells, dict):
        raise DataError(f"{where}: {str(cells)[:60]!r}, expected a table")
    keys = [SAVED_AS.get(field_name, field_name) for field_name in field_names]
    hold(cells, {key: FIELDS[cls].get(key, "a text") for key in keys}, where)
    return cls(
        **{
            field_name: tuple(cells[key]) if isinstance(cells[key], list) else cells[key]
            for field_name, key in zip(field_names, keys, strict=True)
        }
    )


def records(cls: type, record_tables: Iterable[Any], where: str) -> list[Any]:
    """Return a list of records."""
    return [
        _record(cls, cells, f"{where} {number}") for number, cells in enumerate(record_tables, 1)
    ]


def _cost_line(cells: Any, inputs: dict[str, Input], where: str) -> Flow:
    flow: Flow = _record(Flow, cells, where)
    refuse_unknown("input", flow.inputs, inputs, where)
    return flow


def _bill_of(bill_table: JsonObject | None, where: str) -> Bill | None:
    """Return the bill; a chip alone has none."""
    if bill_table is None:
        return None
    hold(bill_table, {"lines": "a list", "price": NUMBER, "power": NUMBER}, where)
    return Bill(
        records(BillLine, bill_table["lines"], f"{where}: lines"),
        bill_table["price"],
        bill_table["power"],
    )
