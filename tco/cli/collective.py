"""`tco collective`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "variant")
def collective(
    given: Given,
    system: Annotated[str, typer.Argument(help="A system's or a chip's id; `tco systems list` shows them.")],
    operation: Annotated[
        str, typer.Option("--op", help="all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, send-recv, dispatch or combine.")
    ] = "all-reduce",
    size: Annotated[str, typer.Option(help="The whole buffer, as nccl-tests counts it: 64KiB, 1MiB, 1GB.")] = "1MiB",
    largest: Annotated[str | None, typer.Option("--to", help="Also every doubling up to this size, each by its best algorithm.")] = None,
    ranks: Annotated[int | None, typer.Option(min=2, help="Chips that take part; left out: one scale-up domain.")] = None,
    per_domain: Annotated[
        int | None, typer.Option(min=1, help="Chips of each scale-up domain that take part; left out: as many as it holds.")
    ] = None,
    library: Annotated[
        str | None, typer.Option(help="The library whose algorithms are open: nccl, rccl, deepep, best, ...; left out: the family's.")
    ] = None,
    algorithm: Annotated[str | None, typer.Option(help="Take this algorithm of the library, not its quickest.")] = None,
    tokens: Annotated[float, typer.Option(min=0, help="Tokens of a rank, of dispatch and combine.")] = 128,
    hidden: Annotated[float, typer.Option(min=1, help="Elements of a token.")] = 7168,
    topk: Annotated[float, typer.Option(min=1, help="Experts of a token.")] = 8,
    precision: Annotated[str, typer.Option(help="Format of the tokens on the wire: fp8 or bf16.")] = "bf16",
    sms: Annotated[float | None, typer.Option(min=1, help="Cores that copy tokens; left out: as many as the library takes.")] = None,
    groups: Annotated[str | None, typer.Option(metavar="D/G", help="Routing limited to D of G groups of experts, such as 4/8.")] = None,
) -> None:
    """Time a collective on a system by every algorithm its fabric allows.

    The quickest that the library offers is the answer; what it does not offer is shown beside it.
    """
    from tco.chain.connections import links_of_system
    from tco.chain.inputs import system_inputs
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.fabric.algorithms import OPERATIONS, half_rate
    from tco.fabric.experts import Tokens
    from tco.fabric.library import EXCHANGES, library_of, offering, token_size
    from tco.fabric.links import group_of, placed
    from tco.foundation.errors import DataError, UsageError
    from tco.foundation.values import as_number
    from tco.outputs.collectives import HEADER, collective_document, collective_tables
    from tco.outputs.document import document
    from tco.outputs.table import significant
    from tco.studies.collectives import Measured, candidate_rows, doublings, limited

    if system in OPERATIONS:
        raise UsageError(f"{system} is an operation, and the system stands first: tco collective gb200-nvl72 --op {system}")
    catalogue = catalogue_for(None, given.data)
    inputs = system_inputs(catalogue, system, given.settings, given.variant)
    values = inputs.values(as_number)
    links = links_of_system(inputs, values, library_of(catalogue, library.split("+")) if library else None)
    count, most = ranks or int(inputs.system.chips), values.number("cluster.chips")
    if count > max(most, inputs.system.chips):
        raise DataError(f"--ranks {count}: the cluster has {most:,.0f} chips (cluster.chips); expected 2 to {most:.0f}, or --set cluster.chips")
    group = placed(count, per_domain) if per_domain else group_of(links, count)
    if per_domain and per_domain > links.domain:
        raise DataError(f"--per-domain: {per_domain} chips, but a scale-up domain of {system} has {links.domain:g}")
    exchanges = operation in EXCHANGES
    if exchanges and largest:
        raise DataError(f"--to: {operation} has tokens, not sizes; ask for one --tokens at a time")
    drawn, all_groups = limited(groups) if groups else (0, 0)

    def timed(one: float) -> list[Measured]:
        size: float | Tokens = one
        if exchanges:
            size = Tokens(tokens, token_size(links.library, precision, hidden), topk, all_groups, drawn, sms)
        return candidate_rows(links, operation, group, size, algorithm)

    buffer = buffer_of(size, "--size")
    rows = timed(buffer)
    sweep = [timed(one)[0] for one in doublings(buffer, buffer_of(largest, "--to"))] if largest else []
    what = f"{tokens:g} tokens a rank" if exchanges else f"{size}{f' to {largest}' if largest else ''}"
    by = offering(catalogue, links.library, operation, rows[0].algorithm)
    whose = "" if library else " (of the family's chips; --library takes another)"
    facts = [
        f"{operation} of {what} over {count} chips; {group.per_domain:g} chips a domain",
        f"library: {links.library.name}{whose}" + ("" if by.id == links.library.id else f"; {rows[0].algorithm} is of {by.name}"),
    ]
    shown, half = sweep or rows, None
    if not exchanges:
        half = float(half_rate(links, operation, group, rows[0].algorithm))
        facts.append(f"{rows[0].algorithm} reaches half of its rate with {significant(half / 1e6, 3)} MB")
    given.emit(
        Answer(
            lambda: document("collective", catalogue, collective_document(system, operation, count, links.library.id, by.id, half, rows, sweep)),
            lambda: collective_tables(inputs.system.name, facts, shown, bool(sweep)),
            HEADER,
            [row.row for row in shown],
            [f"{path} is set, but this collective does not rest on it" for path in inputs.unused(values)],
        ),
    )


def buffer_of(text: str, option: str) -> float:
    """Return the bytes of a buffer; one that is negative, or counted in bits, raises `UsageError`."""
    from tco.foundation.errors import UsageError
    from tco.foundation.units import parse_quantity

    if text.strip().endswith("b"):
        raise UsageError(f"{option}: {text!r} counts bits, and a buffer has bytes, such as {text.strip()[:-1]}B")
    size = parse_quantity(text, "byte")
    if size < 0:
        raise UsageError(f"{option}: {text!r} is negative, expected a buffer such as 64KiB")
    return size
