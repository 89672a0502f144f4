"""The JSON Schema of a document, made of the shapes of its record."""

from __future__ import annotations

import json
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from tco.core.types import JsonObject
from tco.report.record import (
    ANCHORED,
    DOCUMENTS,
    Maybe,
    Record,
    is_result_class,
    record_of,
    union_types,
)

JSON_TYPES: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    dict: "object",
    NoneType: "null",
}


def record_schema(record: Record) -> JsonObject:
    """Return the JSON Schema of a record."""
    return {
        "type": "object",
        "required": [member.key for member in record.members if not member.optional],
        "properties": {member.key: _json_schema_of(member.shape) for member in record.members},
    }


def _json_schema_of(shape: Any) -> JsonObject:
    """Return the JSON Schema of a shape."""
    if isinstance(shape, Maybe):
        inner = _json_schema_of(shape.shape)
        return {**inner, "type": sorted({"null", inner["type"]})}
    if isinstance(shape, Record):
        return record_schema(shape)
    if isinstance(shape, list):
        return {"type": "array", "items": _json_schema_of(shape[0])}
    if isinstance(shape, dict):
        (inner_shape,) = shape.values()
        return {"type": "object", "additionalProperties": _json_schema_of(inner_shape)}
    if is_result_class(shape):
        return record_schema(record_of(shape))
    if get_origin(shape) is Literal:
        return {"enum": list(get_args(shape))}
    type_names = sorted({JSON_TYPES[kind] for kind in union_types(shape)})
    return {"type": type_names if len(type_names) > 1 else type_names[0]}


# commands whose documents say how anchors have moved them
ANCHORED_COMMANDS = ("compare", "perf", "price", "uncertainty")


def published_schema(schema_name: str) -> JsonObject:
    """Return the JSON Schema of the documents with this schema name."""
    head = {
        "schema": {"const": schema_name},
        "tco_version": {"type": "string"},
        "data_hash": {"type": "string", "pattern": "^([0-9a-f]+|withheld)$"},
    }
    schemas = []
    for command_document in DOCUMENTS[schema_name]:
        schema = record_schema(command_document)
        if command_document.command in ANCHORED_COMMANDS:
            schema["properties"]["anchored"] = record_schema(ANCHORED)
        schema["required"] = [*head, *schema["required"]]
        schema["properties"] = head | schema["properties"]
        schemas.append(schema)
    schemas.sort(key=json.dumps)  # whatever the order in which modules were imported
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": schema_name,
        **(schemas[0] if len(schemas) == 1 else {"anyOf": schemas}),
    }
