"""What moved, and in which steps: the tables and documents of `tco baseline check` and `tco diff`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tco.chain.metrics import METRICS
from tco.outputs.table import Table, significant
from tco.studies.baseline import Drift
from tco.studies.difference import PROGRAM, Cause, Move, Step

HEADER = ("scenario", "metric", "unit", "old", "new", "change", "worse", "why")
DIFF_HEADER = ("what", "kind", "path", "old", "new", "change", "unit")
NAMED = 3  # causes of one step that a line names
FIRST = ("usd_per_million_output_tokens", "train_usd_per_trillion_tokens", "tco_usd_per_chip_hour", "capex_usd_per_chip")  # whose steps are shown


def percent(change: float | None) -> str:
    """Return a relative change as a percentage with its sign."""
    return "" if change is None else f"{change * 100:+.3g} %"


def together(causes: Sequence[Cause]) -> str:
    """Return the causes of one step in words."""
    more = f" and {len(causes) - NAMED} more" if len(causes) > NAMED else ""
    return "; ".join(cause.words() for cause in causes[:NAMED]) + more


def reasons(steps: Sequence[Step]) -> list[str]:
    """Return the causes of some steps in words."""
    return [cause.words() for step in steps for cause in step.causes]


def step_lines(move: Move) -> list[str]:
    """Return the steps of a metric, a line each: what it adds, in its unit and relative, and why."""
    unit = METRICS[move.metric].unit
    head = f"{move.metric} {mark(move.old)} -> {mark(move.new)} {unit}".rstrip() + f"  {percent(move.change)}".rstrip()
    cells = [(f"{step.difference:+.4g}", percent(None if step.ratio is None else step.ratio - 1), together(step.causes)) for step in move.steps]
    wide = [max((len(row[column]) for row in cells), default=0) for column in (0, 1)]
    return [head, *(f"  {first:>{wide[0]}}  {second:>{wide[1]}}  {why}" for first, second, why in cells)]


def shown_first(moved: Sequence[Move]) -> Move | None:
    """Return the move whose steps tell most: that of the cost of work, else the largest."""
    whole = {move.metric: move for move in moved if move.old is not None and move.new is not None}
    return next((whole[name] for name in FIRST if name in whole), max(whole.values(), key=lambda move: abs(move.change or 0), default=None))


def drift_table(name: str, scenarios: int, found: Sequence[Drift]) -> Table:
    """Return the table of `tco baseline check`."""
    if not found:
        return Table((), [], f"baseline {name}: {scenarios} scenarios, nothing moved")
    rows = [(d.scenario, d.move.metric, mark(d.move.old), mark(d.move.new), percent(d.move.change), verdict(d)) for d in found]
    below = ["Step by step, all earlier steps kept:"]
    for scenario in dict.fromkeys(d.scenario for d in found):
        below += [f"{scenario}: {line}" if not at else line for at, line in enumerate(why([d for d in found if d.scenario == scenario]))]
    title = f"baseline {name}: {len(found)} metrics moved"
    return Table(("scenario", "metric", "old", "new", "change", ""), rows, title, [], below, align="llrrrl")


def why(found: Sequence[Drift]) -> Iterator[str]:
    """Yield the steps of the metric that tells most, and what moved only others."""
    first = shown_first([d.move for d in found])
    told = [] if first is None else reasons(first.steps)
    if first is not None:
        yield from step_lines(first)
    rest = [cause for cause in dict.fromkeys(reasons([step for d in found for step in d.move.steps])) if cause not in told]
    if rest:
        yield f"  other metrics also: {'; '.join(rest)}" if first else f"  {'; '.join(rest)}"


def verdict(drift: Drift) -> str:
    """Return whether a drift is for the better."""
    return "" if drift.worse is None else "worse" if drift.worse else "better"


def drift_rows(found: Sequence[Drift]) -> list[list[Any]]:
    """Return the CSV rows."""
    return [
        [d.scenario, d.move.metric, METRICS[d.move.metric].unit, d.move.old, d.move.new, d.move.change, verdict(d), "; ".join(reasons(d.move.steps))]
        for d in found
    ]


def drift_document(name: str, found: Sequence[Drift]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    drift = [{"scenario": d.scenario, **move_document(d.move), "worse": d.worse, "why": reasons(d.move.steps)} for d in found]
    return {"name": name, "ok": not found, "drift": drift}


def move_document(move: Move) -> dict[str, Any]:
    """Return a metric that moved, its unit and its steps."""
    return {
        "metric": move.metric,
        "unit": METRICS[move.metric].unit,
        "old": move.old,
        "new": move.new,
        "change": move.change,
        "steps": step_documents(move.steps),
    }


def step_documents(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps as JSON members: what each adds to the metric, in its unit, and its factor."""
    return [{"causes": [cause_document(c) for c in step.causes], "difference": step.difference, "ratio": step.ratio} for step in steps]


def cause_document(cause: Cause) -> dict[str, Any]:
    """Return a cause as JSON members."""
    return {
        "cause": "program" if cause.program else "input",
        "kind": cause.kind,
        "path": cause.path,
        "old": cause.old,
        "new": cause.new,
        "unit": cause.unit,
    }


def diff_table(a: str, b: str, moved: Sequence[Move], why: Sequence[Cause], metrics: Sequence[str]) -> Table:
    """Return the table of `tco diff`: metrics first, then what differs, each old -> new; below, the steps of some metrics."""
    rows = [
        ("~" if m.old is not None and m.new is not None else sign(m.old), m.metric, f"{mark(m.old)} -> {mark(m.new)}", percent(m.change))
        for m in moved
    ]
    for kind in ("price", "quantity", "assumption", "data", *PROGRAM):
        some = [cause for cause in why if cause.kind == kind]
        if some:
            rows.append(("", kind.upper(), "", ""))
            rows += [(sign_of(c), c.path, f"{mark(c.old)} -> {mark(c.new)} {c.unit}".rstrip(), "") for c in some]
    formulas = sum(cause.kind == "formula" for cause in why)
    also = f" and {formulas} formulas" if formulas else ""
    title = f"{a} -> {b}: {len(moved)} metrics and {len(why) - formulas} inputs{also} differ" if rows else f"{a} and {b}: no difference"
    first = shown_first(moved)
    chosen = [move for move in moved if move.metric in metrics] if metrics else [first] if first else []
    below = [*(["Step by step, all earlier steps kept:"] if chosen else []), *(line for move in chosen for line in step_lines(move))]
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
        *(["metric", "", m.metric, m.old, m.new, m.change, METRICS[m.metric].unit] for m in moved),
        *(["input", c.kind, c.path, c.old, c.new, None, c.unit] for c in why),
    ]


def diff_document(a: str, b: str, moved: Sequence[Move], why: Sequence[Cause]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    return {
        "a": a,
        "b": b,
        "metrics": [move_document(move) for move in moved],
        "why": [cause_document(c) for c in why],
    }


KEPT_HEADER = ("scenario", "metric", "unit", "value")


def kept_rows(kept: dict[str, dict[str, Any]], metrics: Sequence[str]) -> list[list[Any]]:
    """Return the metrics a baseline keeps as CSV rows."""
    return [
        [name, metric, METRICS[metric].unit, state["metrics"][metric]]
        for name, state in kept.items()
        for metric in metrics
        if metric in state["metrics"]
    ]


def made_by(state: dict[str, Any]) -> str:
    """Return by which program, on which data a state was made."""
    dated = f", prices up to {state['data_date']}" if state.get("data_date") else ""
    return f"tco {state['tco_version']}, data {state['data_hash']}{dated}, {len(state['inputs'])} inputs, {len(state['formulas'])} formulas"


def kept_table(name: str, kept: dict[str, dict[str, Any]], metrics: Sequence[str]) -> Table:
    """Return the table of `tco baseline show`: a row for each metric, a column for each scenario."""
    found = [metric for metric in metrics if any(metric in state["metrics"] for state in kept.values())]
    rows = [(metric, METRICS[metric].unit, *(mark_kept(state["metrics"].get(metric)) for state in kept.values())) for metric in found]
    return Table(("metric", "unit", *kept), rows, f"baseline {name}", [f"{one}: {made_by(state)}" for one, state in kept.items()], align="ll")


def mark_kept(value: float | None) -> str:
    """Return a kept number, or a dash for none."""
    return "-" if value is None else significant(value, 6)


def kept_document(name: str, kept: dict[str, dict[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the content of the JSON document of `tco baseline show`."""
    made = ("system", "tco_version", "data_hash", "data_date")
    rows = [
        {
            "scenario": one,
            **{key: state.get(key) for key in made},
            "metrics": {metric: state["metrics"][metric] for metric in metrics if metric in state["metrics"]},
            "inputs": [{"path": path, "value": value, "unit": unit} for path, (value, unit) in state["inputs"].items()],
            "formulas": state["formulas"],
        }
        for one, state in kept.items()
    ]
    return {"name": name, "scenarios": rows}
