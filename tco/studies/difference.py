"""What changed between two results, and why: price, quantity, assumption or formula."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tco.foundation.errors import DataError
from tco.foundation.units import convert

PRICES = ("price", "own_price", "cost", "loss", "electricity_price", "usd_per_mw", "colo_usd_per_kw_month", "staff", "margin")

PROGRAM = ("version", "formula", "fit", "code")


class Cause(NamedTuple):
    """One thing that differs: an input, a text, a quantity or a formula."""

    kind: str  # of an input: price, quantity, assumption, data; of the program: version, formula, fit, code
    path: str
    old: Any
    new: Any
    unit: str

    def words(self) -> str:
        """Return the cause in one line."""
        if self.kind == "code":
            return "program changed: code that is no formula, no input differs"
        if self.kind == "formula":
            return f"program changed: formula {self.path} {'is new' if self.old is None else 'is gone' if self.new is None else 'is another'}"
        words = f"{self.kind} {self.path}".rstrip() + f": {show(self.old)} -> {show(self.new)} {self.unit}".rstrip()
        return f"program changed: {words}" if self.program else words

    @property
    def program(self) -> bool:
        """Say whether it is the program that differs: its code, or what is fitted with it, and no number that somebody looked up."""
        return self.kind in PROGRAM


class Step(NamedTuple):
    """What one change adds to a metric, all earlier ones kept; the differences of all steps sum to the whole, their ratios multiply to it."""

    causes: tuple[Cause, ...]
    difference: float  # in the unit of the metric
    ratio: float | None


class Move(NamedTuple):
    """One metric that differs, and the steps it moved in, where they were asked for."""

    metric: str
    old: float | None
    new: float | None
    change: float | None  # relative
    steps: tuple[Step, ...] = ()


def show(value: Any) -> str:
    """Return one side of a change."""
    return "absent" if value is None else f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


def differs(old: Any, new: Any, tolerance: float) -> bool:
    """Say whether two values differ by more than a relative tolerance."""
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return not math.isclose(old, new, rel_tol=tolerance, abs_tol=0.0)
    return bool(old != new)


def input_kind(path: str) -> str:
    """Return whether an input is a price or another assumption."""
    name = path.rpartition(".")[2]
    return "price" if path.startswith(("shares.",)) or any(name == p or name.endswith("_" + p) for p in PRICES) else "assumption"


def causes(old: dict[str, Any], new: dict[str, Any], tolerance: float = 1e-9) -> list[Cause]:
    """Return every input, text, quantity and formula that differs between two states."""
    found = [Cause("assumption", "system", old["system"], new["system"], "")] if old["system"] != new["system"] else []
    texts = sorted(old["texts"].keys() | new["texts"].keys())
    found += [Cause("assumption", path, a, b, "") for path in texts if (a := old["texts"].get(path)) != (b := new["texts"].get(path))]
    found += quantity_causes(old["quantities"], new["quantities"], tolerance)
    found += input_causes(old["inputs"], new["inputs"], tolerance)
    return found + formula_causes(old.get("formulas") or {}, new.get("formulas") or {}, alone=not found)


def quantity_causes(old: dict[str, float], new: dict[str, float], tolerance: float = 1e-9) -> list[Cause]:
    """Return the places of the tree where another number of parts stands."""
    pairs = ((path, old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys()))
    return [Cause("quantity", path, a, b, "") for path, a, b in pairs if differs(a, b, tolerance)]


def input_causes(old: dict[str, Any], new: dict[str, Any], tolerance: float = 1e-9) -> list[Cause]:
    """Return the inputs that differ, both sides in the unit the later one is written in."""
    found = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        unit = (after or before or [0, ""])[1] or (before or after or [0, ""])[1]  # a pure number may be set without its unit
        earlier, later = before and in_unit(before, unit), after and in_unit(after, unit)
        if differs(earlier, later, tolerance):
            found.append(Cause(input_kind(path), path, earlier, later, unit))
    return found


def in_unit(given: Any, unit: str) -> Any:
    """Return a number and its unit in another unit; where that cannot be, as a text."""
    value, own = given
    try:
        return convert(value, own, unit)
    except DataError:
        return f"{value:g} {own}"


def formula_causes(old: dict[str, str], new: dict[str, str], alone: bool) -> list[Cause]:
    """Return the formulas whose fingerprint differs; where nothing else does, also those that only one side rests on."""
    names = old.keys() | new.keys() if alone and old and new else old.keys() & new.keys()
    return [Cause("formula", name, old.get(name), new.get(name), "") for name in sorted(names) if old.get(name) != new.get(name)]


def moves(old: dict[str, Any], new: dict[str, Any], tolerance: float = 1e-9) -> list[Move]:
    """Return every metric that differs between two states."""
    before, after = old["metrics"], new["metrics"]
    found = []
    for name in [*before, *(name for name in after if name not in before)]:
        a, b = before.get(name), after.get(name)
        if differs(a, b, tolerance):
            found.append(Move(name, a, b, b / a - 1 if a and b is not None else None))
    return found
