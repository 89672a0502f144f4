"""Difference of two states: metrics that moved, and causes (price, quantity, assumption, formula).

Every comparison of results compares their states: `tco diff`, a baseline with today, and each step
of a walk from one state to the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tco.core.errors import DataError
from tco.core.types import JsonMapping
from tco.core.units import convert

# A number, a text, or None of what is new or gone.
Side = float | str | None
TOLERANCE = 1e-9  # relative
# ends of the names of prices; `_price` is also that of `own_price` and `electricity_price`
PRICE_ENDS = (
    "_price",
    "_cost",
    "_loss",
    "_usd_per_mw",
    "_colo_usd_per_kw_month",
    "_staff",
    "_margin",
)
# kinds of causes in the program: its code, or values that are fitted with it
PROGRAM_KINDS = ("version", "formula", "fit", "code")


class ChangeCause(NamedTuple):
    """One thing that differs: an input, a text, a quantity or a formula."""

    # for an input: price, quantity, assumption, data; for the program: version, formula, fit, code;
    # for another system: asked, cost, performance
    kind: str
    path: str
    old: Side = None
    new: Side = None
    unit: str = ""

    def words(self) -> str:
        """Return the cause in one line."""
        prefix = "program changed: " if self.program else ""
        if self.kind == "code":
            return f"{prefix}code that is no formula, no input differs"
        if self.kind == "formula":
            change = "is another"
            if self.old is None:
                change = "is new"
            elif self.new is None:
                change = "is gone"
            return f"{prefix}formula {self.path} {change}"
        head = f"{self.kind} {self.path}".rstrip()
        side_values = f"{side_text(self.old)} -> {side_text(self.new)} {self.unit}".rstrip()
        return f"{prefix}{head}: {side_values}"

    @property
    def program(self) -> bool:
        """Whether the program differs, and no number that somebody looked up."""
        return self.kind in PROGRAM_KINDS


class ChangeContribution(NamedTuple):
    """Contribution of a change to the difference of a metric, all earlier changes kept.

    The differences of all steps sum to the whole difference, and their ratios multiply to the whole
    ratio.
    """

    causes: tuple[ChangeCause, ...]
    start: float  # in the unit of the metric
    end: float
    # values that the change puts in place, by path, as `--set` takes them
    settings: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """Paths of the causes as one text."""
        return " and ".join(cause.path for cause in self.causes)

    @property
    def last_cause(self) -> ChangeCause:
        """Cause with which the metric moved."""
        return self.causes[-1]

    @property
    def difference(self) -> float:
        """Change of the metric by this step."""
        return self.end - self.start

    @property
    def ratio(self) -> float | None:
        """Ratio of the metric after the step to the metric before."""
        return self.end / self.start if self.start else None


class Move(NamedTuple):
    """One metric that differs, with its steps where a walk has them."""

    metric: str
    old: float | None
    new: float | None
    change: float | None  # relative
    steps: tuple[ChangeContribution, ...] = ()

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both sides of the metric; None where one side lacks it."""
        return None if self.old is None or self.new is None else (self.old, self.new)


class StateDifference(NamedTuple):
    """Everything that differs between two states."""

    moves: list[Move]
    versions: list[ChangeCause]  # version of the program
    data: list[ChangeCause]  # hash of the data
    system: list[ChangeCause]
    variant: list[ChangeCause]
    texts: list[ChangeCause]
    quantities: list[ChangeCause]
    inputs: list[ChangeCause]
    # formulas of either side; none where one side knows no formulas
    formulas: list[ChangeCause]

    @property
    def shared_formulas(self) -> list[ChangeCause]:
        """Formulas of both sides whose fingerprint differs."""
        return [cause for cause in self.formulas if None not in (cause.old, cause.new)]

    @property
    def causes(self) -> list[ChangeCause]:
        """Every input, text, quantity and formula that differs.

        A formula of one side alone counts where nothing else differs.
        """
        causes = [*self.system, *self.texts, *self.quantities, *self.inputs]
        return causes + (self.shared_formulas if causes else self.formulas)


def compare_states(old: JsonMapping, new: JsonMapping) -> StateDifference:
    """Compare two states.

    Args:
        old: State before the change.
        new: State after the change.

    """

    def changes_of(kind: str, state_key: str, prefix: str = "") -> list[ChangeCause]:
        before, after = (
            {"": state[state_key]} if isinstance(state[state_key], str) else state[state_key]
            for state in (old, new)
        )
        return [
            ChangeCause(kind, prefix + path, before.get(path), after.get(path))
            for path in sorted(before.keys() | after.keys())
            if differs(before.get(path), after.get(path))
        ]

    has_formulas = old["formulas"] and new["formulas"]
    return StateDifference(
        changed_metrics(old["metrics"], new["metrics"]),
        changes_of("version", "tco_version"),
        changes_of("data", "data_hash"),
        changes_of("assumption", "system", "system"),
        changes_of("assumption", "variant", "variant "),
        changes_of("assumption", "texts"),
        changes_of("quantity", "quantities"),
        _changed_inputs(old["inputs"], new["inputs"]),
        changes_of("formula", "formulas") if has_formulas else [],
    )


def changed_metrics(
    old: Mapping[str, float], new: Mapping[str, float], tolerance: float = TOLERANCE
) -> list[Move]:
    """Return the metrics that differ by more than a relative tolerance.

    Args:
        old: Values before the change, by metric.
        new: Values after the change, by metric.
        tolerance: Greatest relative difference of equal values.

    """
    moves = []
    for metric in dict.fromkeys((*old, *new)):
        before, after = old.get(metric), new.get(metric)
        if differs(before, after, tolerance):
            change = after / before - 1 if before and after is not None else None
            moves.append(Move(metric, before, after, change))
    return moves


def _changed_inputs(old: JsonMapping, new: JsonMapping) -> list[ChangeCause]:
    """Return the inputs that differ, both sides in the unit of the later one."""
    causes = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        # a pure number may be set without its unit
        units = [quantity[1] for quantity in (after, before) if quantity]
        unit = next(filter(None, units), "")
        earlier, later = value_in_unit_or_text(before, unit), value_in_unit_or_text(after, unit)
        if differs(earlier, later):
            causes.append(ChangeCause(_input_kind(path), path, earlier, later, unit))
    return causes


def _input_kind(path: str) -> str:
    input_name = "_" + path.rpartition(".")[2]
    is_price = path.startswith("shares.") or input_name.endswith(PRICE_ENDS)
    return "price" if is_price else "assumption"


def value_in_unit_or_text(quantity: Sequence[Any] | None, unit: str) -> Side:
    """Return a quantity in another unit, or as a text where that cannot be.

    Args:
        quantity: Value and its unit; None, which is returned, where a state has no such input.
        unit: Unit of the returned number.

    """
    if quantity is None:
        return None
    quantity_value, source_unit = quantity
    try:
        converted: Side = convert(quantity_value, source_unit, unit)
    except DataError:
        return f"{quantity_value:g} {source_unit}"
    return converted


def differs(old: Side, new: Side, tolerance: float = TOLERANCE) -> bool:
    """Say whether two values differ by more than a relative tolerance."""
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return not math.isclose(old, new, rel_tol=tolerance, abs_tol=0.0)
    return old != new


def side_text(side_value: Side) -> str:
    """Return one side of a change as text."""
    if side_value is None:
        return "absent"
    return side_value if isinstance(side_value, str) else f"{side_value:.6g}"
