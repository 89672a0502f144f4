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
    depth: Annotated[int, typer.Option(min=1, help="How many levels of the tree the table form prints.")] = 99,
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
    from tco.foundation.errors import DataError, unknown
    from tco.outputs.document import document
    from tco.outputs.explanation import HEADER, explanation_document, explanation_lines, explanation_rows
    from tco.outputs.table import Table

    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    catalogue = catalogue_for(scenario, data)
    result = evaluate(scenario, pairs(settings, "--set"), axes(plan), catalogue=catalogue, variant=pairs(variant, "--variant"), trace=True)
    root = result.nodes.get(metric)
    if root is None:
        raise DataError(f"{metric} has no value for {scenario}: {'; '.join(result.notes) or 'it belongs to another kind of workload'}")
    own = frozenset(path for path, given in result.inputs.items() if given.overlay)
    lines = explanation_lines(metric, root, catalogue, depth, redact, own)
    emit(
        Answer(
            lambda: document("explain", catalogue, {"scenario": result.scenario, **explanation_document(metric, root, catalogue, redact, own)}),
            lambda: [Table((), [], f"{result.title}: {METRICS[metric].label}", list(lines))],
            HEADER,
            explanation_rows(root, catalogue, redact, own),
            result.notes,
        ),
        form.value,
        output,
        quiet,
    )
