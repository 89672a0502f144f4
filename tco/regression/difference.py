"""Differences between two results, by cause: price, quantity, assumption or formula.

Results are compared as states. A state holds the metrics and everything they depend on. It is small
enough to keep, plain enough to compare, and complete enough to evaluate again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.core.errors import DataError
from tco.core.provenance import making
from tco.core.types import JsonMapping, JsonObject
from tco.core.units import convert
from tco.scenario.metrics import AGAINST_BASELINE
from tco.scenario.plan_records import plan_from
from tco.scenario.result import Result
from tco.scenario.saved import hold, is_finite_number
from tco.scenario.structure import plain_plan

if TYPE_CHECKING:
    from tco.catalog import Catalogue

STATE = {  # what a state is made of
    **dict.fromkeys(("tco_version", "data_hash", "system"), "a text"),
    **dict.fromkeys(
        ("documents", "variant", "alternatives", "texts", "formulas"), "a table of texts"
    ),
    **dict.fromkeys(("metrics", "quantities"), "a table of numbers"),
    "rebates": "a list of texts",
    "plan": "a table or null",
    "inputs": "a table",
}


def round_saved_number(value: float) -> float:
    """Return a number at the 12 significant digits files keep."""
    return float(f"{value:.12g}")


def state_of(result: Result, fingerprints: bool = True) -> JsonObject:
    """Return metrics, request and inputs of a result in stable order.

    Metrics against a baseline are left out, because each comparison computes these metrics anew.

    Args:
        result: Result of a scenario.
        fingerprints: Whether to add fingerprints of the formulas, which take a trace.

    Returns:
        State as tables, texts and numbers, with the keys of `STATE`; inputs stand in the units of
        their rows or settings. The key `own` lists inputs of the user, where the user has any.

    """
    origin, own = (
        result.origin,
        sorted(path for path, given in result.inputs.items() if given.overlay),
    )
    return {
        **({"own": own} if own else {}),  # the inputs that are a person's own
        "tco_version": origin.version if origin else "",
        "data_hash": origin.data_hash() if origin else "",
        "system": result.system,
        "documents": dict(sorted(origin.documents.items())) if origin else {},
        "variant": dict(sorted(origin.variant.items())) if origin else {},
        "rebates": [rebate.path.removeprefix("rebates.") for rebate in result.rebates],
        "plan": plain_plan(result.plan),
        "alternatives": dict(sorted(result.structure.alternatives.items()))
        if result.structure
        else {},
        "metrics": {
            name: round_saved_number(value)
            for name, value in result.metrics.items()
            if value is not None and name not in AGAINST_BASELINE
        },
        "texts": dict(sorted(result.texts.items())),
        "quantities": quantities_by_path(result.bill),
        "inputs": {
            path: list(given.shown or (given.value, given.unit))
            for path, given in sorted(result.inputs.items())
        },
        "formulas": dict(sorted(origin.formulas().items())) if origin and fingerprints else {},
    }


def quantities_by_path(bill: Any) -> dict[str, float]:
    """Return quantities of the bill's parts, by path in the system tree.

    The result is empty without a bill.
    """
    return {
        path: round_saved_number(quantity)
        for path, quantity in sorted(
            (line.path, line.quantity) for line in (bill.lines if bill else ())
        )
    }


def refuse_broken(state: Any, where: str) -> None:
    """Refuse what is no state, or lacks a part of one."""
    if not isinstance(state, dict):
        raise DataError(f"{where}: {str(state)[:60]!r}, expected a table")
    hold(state, STATE, where)
    plan_from(state["plan"], f"{where}: plan")
    if making.get() and state.get("own") and "withheld" not in state:
        raise DataError(
            f"{where}: was saved with values of your own, and nothing can stand in their place; "
            "save it with --redact"
        )
    for path, given in state["inputs"].items():
        if not (
            isinstance(given, list)
            and len(given) == 2
            and is_finite_number(given[0])
            and isinstance(given[1], str)
        ):
            raise DataError(
                f"{where}: {path} is {str(given)[:60]!r}, expected a number and its unit"
            )


class Again(NamedTuple):
    """A state evaluated anew."""

    metrics: dict[str, float]
    quantities: dict[str, float]


def reevaluate_state(state: JsonMapping, kept: Mapping[str, str], catalogue: Catalogue) -> Again:
    """Evaluate a state with today's program and data: what it was asked for, on texts and
    quantities as `kept`.
    """
    from tco.scenario.document import Scenario
    from tco.scenario.evaluate import run
    from tco.scenario.resolve import resolve_scenario

    asked = Scenario(
        "kept",
        "kept",
        state["system"],
        dict(state["documents"]),
        tuple(state["rebates"]),
        dict(state["variant"]),
        {},
        "kept",
    )
    inputs = resolve_scenario(catalogue, asked, {}, {}, kept=kept)
    chain = run(inputs, inputs.values())
    return Again(
        {name: float(value) for name, value in chain.metrics.items() if value is not None},
        quantities_by_path(chain.bill),
    )


PRICES = (
    "price",
    "own_price",
    "cost",
    "loss",
    "electricity_price",
    "usd_per_mw",
    "colo_usd_per_kw_month",
    "staff",
    "margin",
)

PROGRAM = ("version", "formula", "fit", "code")


class ChangeCause(NamedTuple):
    """One thing that differs: an input, a text, a quantity or a formula."""

    # of an input: price, quantity, assumption, data; of the program: version, formula, fit, code
    kind: str
    path: str
    old: Any
    new: Any
    unit: str

    def words(self) -> str:
        """Return the cause in one line."""
        if self.kind == "code":
            return "program changed: code that is no formula, no input differs"
        if self.kind == "formula":
            return (
                f"program changed: formula {self.path} "
                f"{'is new' if self.old is None else 'is gone' if self.new is None else 'is another'}"
            )
        words = (
            f"{self.kind} {self.path}".rstrip()
            + f": {show(self.old)} -> {show(self.new)} {self.unit}".rstrip()
        )
        return f"program changed: {words}" if self.program else words

    @property
    def program(self) -> bool:
        """Say whether it is the program that differs: its code, or what is fitted with it, and no
        number that somebody looked up.
        """
        return self.kind in PROGRAM


class ChangeContribution(NamedTuple):
    """Contribution of a change to the difference of a metric.

    All earlier changes stay in force. The differences of all steps sum to the whole difference, and
    their ratios multiply to the whole ratio.
    """

    causes: tuple[ChangeCause, ...]
    difference: float  # in the unit of the metric
    ratio: float | None


class Move(NamedTuple):
    """One metric that differs, and the steps it moved in, where they were asked for."""

    metric: str
    old: float | None
    new: float | None
    change: float | None  # relative
    steps: tuple[ChangeContribution, ...] = ()


def show(value: Any) -> str:
    """Return one side of a change."""
    return (
        "absent"
        if value is None
        else f"{value:.6g}"
        if isinstance(value, (int, float))
        else str(value)
    )


def differs(old: Any, new: Any, tolerance: float) -> bool:
    """Say whether two values differ by more than a relative tolerance."""
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return not math.isclose(old, new, rel_tol=tolerance, abs_tol=0.0)
    return bool(old != new)


def input_kind(path: str) -> str:
    """Return whether an input is a price or another assumption."""
    name = path.rpartition(".")[2]
    return (
        "price"
        if path.startswith(("shares.",)) or any(name == p or name.endswith("_" + p) for p in PRICES)
        else "assumption"
    )


def causes(old: JsonObject, new: JsonObject, tolerance: float = 1e-9) -> list[ChangeCause]:
    """Return every input, text, quantity and formula that differs between two states."""
    found = (
        [ChangeCause("assumption", "system", old["system"], new["system"], "")]
        if old["system"] != new["system"]
        else []
    )
    texts = sorted(old["texts"].keys() | new["texts"].keys())
    found += [
        ChangeCause("assumption", path, a, b, "")
        for path in texts
        if (a := old["texts"].get(path)) != (b := new["texts"].get(path))
    ]
    found += quantity_causes(old["quantities"], new["quantities"], tolerance)
    found += input_causes(old["inputs"], new["inputs"], tolerance)
    return found + formula_causes(
        old.get("formulas") or {}, new.get("formulas") or {}, alone=not found
    )


def quantity_causes(
    old: dict[str, float], new: dict[str, float], tolerance: float = 1e-9
) -> list[ChangeCause]:
    """Return the places of the tree where another number of parts stands."""
    pairs = ((path, old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys()))
    return [
        ChangeCause("quantity", path, a, b, "") for path, a, b in pairs if differs(a, b, tolerance)
    ]


def input_causes(old: JsonObject, new: JsonObject, tolerance: float = 1e-9) -> list[ChangeCause]:
    """Return the inputs that differ, both sides in the unit the later one is written in."""
    found = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        # a pure number may be set without its unit
        unit = (after or before or [0, ""])[1] or (before or after or [0, ""])[1]
        earlier, later = (
            before and value_in_unit_or_text(before, unit),
            after and value_in_unit_or_text(after, unit),
        )
        if differs(earlier, later, tolerance):
            found.append(ChangeCause(input_kind(path), path, earlier, later, unit))
    return found


def value_in_unit_or_text(given: Any, unit: str) -> Any:
    """Return a number and its unit in another unit; where that cannot be, as a text."""
    value, own = given
    try:
        return convert(value, own, unit)
    except DataError:
        return f"{value:g} {own}"


def formula_causes(old: dict[str, str], new: dict[str, str], alone: bool) -> list[ChangeCause]:
    """Return the formulas whose fingerprint differs; where nothing else does, also those that only
    one side rests on.
    """
    names = old.keys() | new.keys() if alone and old and new else old.keys() & new.keys()
    return [
        ChangeCause("formula", name, old.get(name), new.get(name), "")
        for name in sorted(names)
        if old.get(name) != new.get(name)
    ]


def changed_metrics(old: JsonObject, new: JsonObject, tolerance: float = 1e-9) -> list[Move]:
    """Return every metric that differs between two states."""
    before, after = old["metrics"], new["metrics"]
    found = []
    for name in [*before, *(name for name in after if name not in before)]:
        a, b = before.get(name), after.get(name)
        if differs(a, b, tolerance):
            found.append(Move(name, a, b, b / a - 1 if a and b is not None else None))
    return found
