"""`tco collective`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Data, Form, Format, Output, Quiet, Settings, Variants, pairs


@app.command()
def collective(
    system: Annotated[str, typer.Argument(help="A system's id; `tco systems list` shows them.")],
    operation: Annotated[
        str, typer.Option("--op", help="all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or send-recv.")
    ] = "all-reduce",
    size: Annotated[str, typer.Option(help="The whole buffer, as nccl-tests counts it: 64KiB, 1MiB, 1GB.")] = "1MiB",
    largest: Annotated[str | None, typer.Option("--to", help="Also every doubling up to this size, each by its best algorithm.")] = None,
    ranks: Annotated[int | None, typer.Option(min=2, help="Chips that take part; none: one scale-up world.")] = None,
    settings: Settings = None,
    variant: Variants = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Time a collective on a system by every algorithm its fabric allows."""
    from tco.chain.connections import links_of_system
    from tco.chain.inputs import system_inputs
    from tco.cli.emit import Answer, emit
    from tco.cli.load import catalogue_for
    from tco.fabric.algorithms import half_rate, timings
    from tco.foundation.units import parse_quantity
    from tco.foundation.values import as_number
    from tco.outputs.collectives import HEADER, collective_document, collective_tables
    from tco.outputs.document import document
    from tco.outputs.table import significant
    from tco.studies.collectives import Measured, candidate_rows, doublings

    catalogue = catalogue_for(None, data)
    inputs = system_inputs(catalogue, system, pairs(settings, "--set"), pairs(variant, "--variant"))
    values = inputs.values(as_number)
    links = links_of_system(inputs, values)
    count = ranks or int(inputs.system.chips)
    buffer = parse_quantity(spaced(size), "byte")
    ends = float(links.latencies.ends)

    def timed(one: float) -> list[Measured]:
        return candidate_rows(operation, count, one, timings(links, operation, count, one), ends)

    rows = timed(buffer)
    sweep = [timed(one)[0] for one in doublings(buffer, parse_quantity(spaced(largest), "byte"))] if largest else []
    facts = [f"{operation} of {size}{f' to {largest}' if largest else ''} over {count} chips; {links.domain} chips a domain"]
    shown = sweep or rows
    half = float(half_rate(links, operation, count, rows[0].algorithm))
    facts.append(f"{rows[0].algorithm} reaches half of its rate with {significant(half / 1e6, 3)} MB")
    emit(
        Answer(
            lambda: document("collective", catalogue, collective_document(system, operation, count, half, rows, sweep)),
            lambda: collective_tables(inputs.system.name, facts, shown, bool(sweep)),
            HEADER,
            [row.row for row in shown],
            [f"{path} is set, but this collective does not rest on it" for path in inputs.unused(values)],
        ),
        form.value,
        output,
        quiet,
    )


def spaced(text: str) -> str:
    """Return '64KiB' as '64 KiB'."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    return f"{number} {text[len(number) :].strip()}".strip()
