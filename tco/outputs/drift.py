"""What moved: the tables and documents of `tco baseline check` and `tco diff`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.outputs.table import Table, significant
from tco.studies.baseline import Drift
from tco.studies.difference import Cause, Move

HEADER = ("scenario", "metric", "old", "new", "change", "why")
DIFF_HEADER = ("what", "kind", "path", "old", "new", "change", "unit")
FORMULA = "formula or model structure: no input differs"


def reasons(why: Sequence[Cause]) -> list[str]:
    """Return the causes in words; where no input differs the formulas themselves must."""
    return [cause.words() for cause in why] or [FORMULA]


def percent(change: float | None) -> str:
    """Return a relative change as a percentage with its sign."""
    return "" if change is None else f"{change * 100:+.3g} %"


def drift_table(name: str, scenarios: int, found: Sequence[Drift]) -> Table:
    """Return the table of `tco baseline check`."""
    if not found:
        return Table((), [], f"baseline {name}: {scenarios} scenarios, nothing moved")
    rows = [(d.scenario, d.move.metric, significant(d.move.old, 6), significant(d.move.new, 6), percent(d.move.change)) for d in found]
    below = []
    for scenario in dict.fromkeys(d.scenario for d in found):
        why = next(d.why for d in found if d.scenario == scenario)
        below += [f"{scenario}:", *(f"  ~ {line}" for line in reasons(why))]
    return Table(("scenario", "metric", "old", "new", "change"), rows, f"baseline {name}: {len(found)} metrics moved", [], below, align="ll")


def drift_rows(found: Sequence[Drift]) -> list[list[Any]]:
    """Return the CSV rows."""
    return [[d.scenario, d.move.metric, d.move.old, d.move.new, d.move.change, "; ".join(reasons(d.why))] for d in found]


def drift_document(name: str, found: Sequence[Drift]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    drift = [
        {"scenario": d.scenario, "metric": d.move.metric, "old": d.move.old, "new": d.move.new, "change": d.move.change, "why": reasons(d.why)}
        for d in found
    ]
    return {"name": name, "ok": not found, "drift": drift}


def diff_table(a: str, b: str, moved: Sequence[Move], why: Sequence[Cause]) -> Table:
    """Return the table of `tco diff`: metrics first, then causes, each old -> new."""
    rows = [
        ("~" if m.old is not None and m.new is not None else sign(m.old), m.metric, f"{mark(m.old)} -> {mark(m.new)}", percent(m.change))
        for m in moved
    ]
    for kind in ("price", "quantity", "assumption", "formula"):
        some = [cause for cause in why if cause.kind == kind]
        if some:
            rows.append(("", kind.upper(), "", ""))
            rows += [(sign_of(c), c.path, f"{mark(c.old)} -> {mark(c.new)} {c.unit}".rstrip(), "") for c in some]
    formulas = sum(cause.kind == "formula" for cause in why)
    also = f" and {formulas} formulas" if formulas else ""
    title = f"{a} -> {b}: {len(moved)} metrics and {len(why) - formulas} inputs{also} differ" if rows else f"{a} and {b}: no difference"
    below = [] if why or not moved else [f"Why: {FORMULA}."]
    return Table(("", "metric or input", "old -> new", "change") if rows else (), rows, title, [], below, align="lll")


def sign(old: Any) -> str:
    """Return + for what is new, - for what is gone."""
    return "+" if old is None else "-"


def sign_of(cause: Cause) -> str:
    """Return +, - or ~ for a cause."""
    return "~" if cause.old is not None and cause.new is not None else sign(cause.old)


def mark(value: Any) -> str:
    """Return one side of a change."""
    return "absent" if value is None else significant(value, 6) if isinstance(value, (int, float)) else str(value)


def diff_rows(moved: Sequence[Move], why: Sequence[Cause]) -> list[list[Any]]:
    """Return the CSV rows."""
    return [
        *(["metric", "", m.metric, m.old, m.new, m.change, ""] for m in moved),
        *(["input", c.kind, c.path, c.old, c.new, None, c.unit] for c in why),
    ]


def diff_document(a: str, b: str, moved: Sequence[Move], why: Sequence[Cause]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    return {
        "a": a,
        "b": b,
        "metrics": [{"metric": m.metric, "old": m.old, "new": m.new, "change": m.change} for m in moved],
        "why": [{"kind": c.kind, "path": c.path, "old": c.old, "new": c.new, "unit": c.unit} for c in why],
    }
