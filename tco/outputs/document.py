"""JSON documents: one schema per command, the same bytes for the same input on one machine, the same figures to 1e-9 on any."""

from __future__ import annotations

import json
import math
from typing import Any

from tco import __version__
from tco.catalog import Catalogue
from tco.foundation.streams import CONTROLS

ESCAPES = {one: f"\\u{one:04x}" for one in CONTROLS if one >= 127}  # json itself writes those before as such


def document(command: str, catalogue: Catalogue, content: dict[str, Any]) -> dict[str, Any]:
    """Return a command's document: its schema and version, the hash of the data, then its content."""
    return {"schema": f"tco.{command}/1", "tco_version": __version__, "data_hash": catalogue.hash(), **content}


def to_json(content: dict[str, Any]) -> str:
    """Return a document as text that no terminal obeys; a number that is not finite is a defect and raises `ValueError`."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False).translate(ESCAPES) + "\n"


def number(value: Any) -> float | int | None:
    """Return a value as a JSON number, whole where it is whole; none for None and for what is no finite number."""
    if value is None:
        return None
    plain = float(value)
    if not math.isfinite(plain):
        return None
    return int(plain) if plain.is_integer() and abs(plain) < 2**53 else plain
