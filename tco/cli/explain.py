"""`tco explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Axes, Data, Form, Format, Output, Quiet, Redact, Settings, Variants, axes, pairs


@app.command()
def explain(
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    metric: Annotated[str, typer.Argument(help="A metric's name, such as tco_usd_per_chip_hour.")],
    depth: Annotated[int | None, typer.Option(min=1, help="How many levels of the tree to open; the table form opens three.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Open the whole tree.")] = False,
    plan: Axes = None,
    settings: Settings = None,
    variant: Variants = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
    redact: Redact = False,
) -> None:
    """Open a number: its equation, its inputs and their sources, down to the catalogue."""
    from tco.chain.metrics import METRICS
    from tco.chain.scenario import evaluate
    from tco.cli.emit import Answer, emit
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import DataError, UsageError, unknown
    from tco.outputs.document import document
    from tco.outputs.explanation import HEADER, SHALLOW, View, explanation_document, explanation_lines, explanation_rows
    from tco.outputs.structure import structure_document, structure_text
    from tco.outputs.table import Table

    if everything and depth is not None:
        raise UsageError(f"--depth {depth} and --all exclude each other")
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    catalogue = catalogue_for(scenario, data)
    result = evaluate(scenario, pairs(settings, "--set"), axes(plan), catalogue=catalogue, variant=pairs(variant, "--variant"), trace=True)
    root = result.nodes.get(metric)
    if root is None:
        raise DataError(f"{metric} has no value for {scenario}: {'; '.join(result.notes) or 'it belongs to another kind of workload'}")
    own = frozenset(path for path, given in result.inputs.items() if given.overlay)
    view = View(catalogue, depth, redact, own)
    short = view._replace(depth=SHALLOW) if depth is None and not everything else view
    decided = {"structure": structure_document(result.structure, own if redact else ())}
    title = f"{result.title}: {METRICS[metric].label}"
    below = [] if short.depth is None else [f"{short.depth} levels; --depth {short.depth + 1} opens one more, --all everything."]
    below += structure_text(result.structure)
    emit(
        Answer(
            lambda: document("explain", catalogue, {"scenario": result.scenario, **explanation_document(metric, root, view), **decided}),
            lambda: [Table((), [], title, list(explanation_lines(metric, root, short)), below)],
            HEADER,
            explanation_rows(root, view),
            result.notes,
        ),
        form.value,
        output,
        quiet,
    )
