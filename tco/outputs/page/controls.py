"""The inputs of the what-if: what each is, where its slider begins and ends, and which stand open from the start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

from tco.catalog import Catalogue
from tco.catalog.rows import attributes
from tco.chain.inputs import bounds
from tco.chain.result import Result
from tco.outputs.cells import decides, own_unit, place_of
from tco.outputs.page.program import Program

OPEN = 12  # sliders that stand open
PREMISES = ("terms.life", "terms.rate", "terms.utilisation", "site.electricity_price")  # those of the first line, and what readers ask first
FACTOR = 2.0  # a slider goes at least to this many times the value, and to one over it
GEOMETRIC = 8.0  # a slider whose ends are so many times apart moves in steps of a factor


def controls_of(program: Program, results: Sequence[Result], catalogue: Catalogue, swings: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return every input of a program; those that stand open first, then by place. `swings` are paths, the strongest first, of each scenario."""
    strongest = (path for path in chain.from_iterable(zip_longest(*swings)) if path in program.inputs)
    first = list(dict.fromkeys(chain((path for path in PREMISES if path in program.inputs), strongest)))[:OPEN]
    rest = sorted((path for path in program.inputs if path not in first), key=place_of)
    return [control(program, path, results, catalogue) | {"open": path in first} for path in (*first, *rest)]


def control(program: Program, path: str, results: Sequence[Result], catalogue: Catalogue) -> dict[str, Any]:
    """Return one input, its numbers in the unit its file writes; several cells are values of several scenarios, which a setting makes alike."""
    given, cells, readers = program.inputs[path].given, program.inputs[path].cells, program.inputs[path].readers
    value, unit, factor = own_unit(program.leaves[cells[0]])
    least, most = (end / factor for end in bounds(path))
    low, high = (None if end is None else float(f"{end / factor:.12g}") for end in (given.low, given.high))
    begin, end = ends(value, low, high, least, most)
    group, _, rest = path.partition(".")
    known = attributes().get((group, rest.rpartition(".")[2]))
    return {
        "path": path,
        "cells": cells,
        "values": [own_unit(program.leaves[cell])[0] for cell in cells],
        "unit": unit,
        "factor": factor,
        "low": low,
        "high": high,
        "least": least,
        "most": most,
        "begin": begin,
        "end": end,
        "geometric": begin > 0 and end / begin > GEOMETRIC,
        "what": ": ".join(filter(None, (".".join(path.split(".")[1:-1]), known.description if known else ""))),
        "from": ", ".join(filter(None, (given.kind, given.as_of, catalogue.source_title(given.source)))),
        "own": given.overlay,
        "held": any(decides(results[at], path) for at in readers),
        "readers": [] if len(readers) == len(results) else [results[at].scenario for at in readers],
    }


def ends(value: float, low: float | None, high: float | None, least: float, most: float) -> tuple[float, float]:
    """Return where a slider begins and ends: at what is believed or further, within what the input may be."""
    one, other = sorted((value / FACTOR, value * FACTOR))
    begin = max(min(one, value if low is None else low), least)
    end = min(max(other, value if high is None else high), most)
    if begin == end:  # a value of nothing, of which nothing is believed
        end = min(begin + 1.0, most)
    return float(f"{begin:.6g}"), float(f"{end:.6g}")
