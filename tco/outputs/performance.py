"""Performance of a scenario: the plan, each figure with its bound, time by operator, and what the search saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.chain.metrics import METRICS
from tco.chain.result import Result
from tco.foundation.provenance import making
from tco.outputs.comparison import plan_words, validation
from tco.outputs.document import number
from tco.outputs.structure import structure_document, structure_text
from tco.outputs.table import Table, significant
from tco.performance.profile import lines_of
from tco.performance.serving.axes import Axis
from tco.studies.gaps import figures

HEADER = ("phase", "name", "time_us", "share", "bound", "bound_time_us", "of_bound", "flops", "bytes", "launches")
REACHED = ("output_tokens_per_s_per_chip", "input_tokens_per_s_per_chip", "tokens_per_s_per_user", "ttft_s", "tpot_s", "step_s", "mfu")
CSV_HEADER = (*HEADER, "scenario", "system", "plan", *REACHED)  # each row of a CSV says of which answer it is
BAR = 24
MFU = "Model FLOPs: 6 a weight and token, attention causal, nothing computed again; over the dense peak of the format the forward pass computes in."


def operator_rows(result: Result) -> list[list[Any]]:
    """Return the CSV rows: the lines of every phase, the longest first."""
    rows = []
    for phase, made in result.report.phases.items():
        whole = float(made.time)
        for line in sorted(lines_of(made), key=lambda line: -line.time):
            ideal = None if line.ideal is None else line.ideal * 1e6
            rows.append(
                [phase, line.name, line.time * 1e6, line.time / whole, line.bound, ideal, line.of_bound, line.flops, line.bytes, line.launches]
            )
    return rows


def csv_rows(result: Result) -> list[list[Any]]:
    """Return the lines of every phase, each with the plan they are of, as `--plan` takes it, and what it reaches."""
    of = [result.scenario, result.system, plan_words(result.report.plan), *(result.metrics[name] for name in REACHED)]
    return [[*row, *of] for row in operator_rows(result)]


def performance_document(result: Result) -> dict[str, Any]:
    """Return the content of the JSON document."""
    rows = [dict(zip(HEADER, row, strict=True)) for row in operator_rows(result)]
    return {
        "scenario": result.scenario,
        "system": result.system,
        "kind": result.texts["workload.kind"],
        "plan": result.report.plan,
        "metrics": {name: number(value) for name, value in result.metrics.items()},
        "figures": figures(result),
        "operators": rows,
        "bounds": result.bounds,
        "validated": validation(result),
        "memory_bytes": result.report.memory,
        "search": result.report.search,
        "axes": [axis._asdict() for axis in result.axes],
        "across_domains": (result.serving.cuts if result.serving else {}) or None,
        "runner_up": result.report.runner_up,
        "margin": result.report.margin,
        "structure": structure_document(result.structure),
        "notes": result.notes,
    }


def plan_text(plan: dict[str, Any]) -> str:
    """Return a plan in one line."""
    return ", ".join(f"{name} {axis_text(value)}" for name, value in plan.items() if not isinstance(value, dict))


def axis_text(value: Any) -> str:
    """Return an axis of a plan as text: a flag, a whole number, or a mean."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def performance_tables(result: Result) -> list[Table]:
    """Return the figures, then a table of operators for each phase."""
    above = [f"Plan: {plan_text(result.report.plan)}"] if result.report.plan else []
    above.append(result.standing.text[0].upper() + result.standing.text[1:])
    search = result.report.search
    took = "" if making.get() else f", in {search['seconds']:.2f} s"  # no two makings of an answer take the same
    below = [f"Chosen among {search['plans']:,} plans, {search['feasible']:,} of which fit{took}."]
    if result.report.runner_up:
        below.append(
            f"Runner-up, {(result.report.margin or 0.0) * 100:.3g} % behind: {plan_text(differing(result.report.plan, result.report.runner_up))}"
        )
    if result.serving and result.serving.cuts:
        below.append(cuts_text(result.serving.cuts))
    if result.report.memory:
        used = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in result.report.memory.items() if size)
        below.append(f"Memory of the fullest chip, GB: {used}; {sum(result.report.memory.values()) / 1e9:.1f} in all.")
    if result.metrics["mfu"] is not None:
        below.append(MFU)
    below += structure_text(result.structure)
    rows = []
    for figure in figures(result):
        unit = METRICS[figure["metric"]].unit
        bound = f"{figure['bound']} {figure['bound_share'] * 100:.0f} %"
        gap = "-" if figure["gap"] is None else f"{significant(figure['gap'], 3)} x"
        rows.append((METRICS[figure["metric"]].label, f"~{significant(figure['value'])}", unit, bound, significant(figure["at_bound"]) or "-", gap))
    tables = [Table(("figure", "value", "unit", "bound by", "at that bound", "gap"), rows, result.title, above, below, "lrllrr")]
    if result.axes:
        tables.append(axes_table(result.axes))
    for phase, made in result.report.phases.items():
        whole = float(made.time)
        cells = [
            (name, significant(time / 1e3), f"{share * 100:.1f} %", bound, "-" if reached is None else f"{reached * 100:.0f} %", bar(share))
            for _, name, time, share, bound, _, reached, *_ in (row for row in operator_rows(result) if row[0] == phase)
        ]
        title = f"{phase}: {significant(whole * 1e3)} ms by operator"
        tables.append(Table(("operator", "ms", "share", "bound", "of the bound", ""), cells, title, [], [], "lrrlrl"))
    return tables


def cuts_text(cuts: dict[str, float]) -> str:
    """Return what the best plans reach by what lies across the racks of a world."""
    words = {"nothing": "each rack apart", "experts": "experts flat over all", "tensor": "tensor parallel", "context": "context parallel"}
    reached = ", ".join(f"{words[name]} {significant(rate) if rate else 'none fits'}" for name, rate in cuts.items())
    return f"Decode tokens/s/chip by what crosses the racks: {reached}."


def axes_table(axes: Sequence[Axis]) -> Table:
    """Return where the axes of the plan lie on the fabric."""
    rows = [
        (
            axis.phase,
            axis.name,
            str(axis.ranks),
            str(axis.domains),
            "network" if axis.hops is None else significant(axis.hops, 3),
            significant(axis.bytes / 1e9, 3),
            significant(axis.time_s * 1e3),
        )
        for axis in axes
    ]
    below = ["hops: devices on the way, on average. GB: what a chip hands to the axis' collectives in a step, over all layers."]
    return Table(("phase", "axis", "ranks", "domains", "hops", "GB", "ms"), rows, "Axes of the plan on the fabric", [], below, "llrrrrr")


def bar(share: float) -> str:
    """Return a share as a bar."""
    return "#" * round(share * BAR)


def differing(chosen: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return what a plan has that differs from the chosen one."""
    return {name: value for name, value in other.items() if chosen.get(name) != value}
