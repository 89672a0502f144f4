"""`tco price`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tco.cli import app
from tco.cli.options import Given, command

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result
    from tco.cli.emit import Answer
    from tco.studies.money import Money


@command(app, "set", "variant")
def price(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    cash_flow: Annotated[bool, typer.Option("--cash-flow", help="Show what is paid month by month instead.")] = False,
    swap: Annotated[
        str | None, typer.Option(metavar="KEY=VALUE@MONTH", help="With --cash-flow: another variant from a month on, such as switch=gen2@24.")
    ] = None,
) -> None:
    """Show the cost lines of one scenario, down to the chip-hour."""
    from tco.cli.load import evaluate_all
    from tco.foundation.errors import UsageError
    from tco.studies.money import money_of, swap_of

    catalogue, (result,) = evaluate_all([scenario], given.data, given.settings, given.variant, workload=cash_flow or given.form == "json")
    notes = [*result.notes, *result.ages.notes]
    if not cash_flow:
        if swap is not None:
            raise UsageError("--swap is of the money by month: add --cash-flow")
        given.emit(by_line(catalogue, result, notes))
        return
    if swap is None:
        given.emit(over_time(catalogue, result, money_of(result, catalogue), notes))
        return
    chosen = swap_of(swap)
    _, (after,) = evaluate_all([scenario], given.data, given.settings, given.variant | {chosen.key: chosen.value})
    given.emit(over_time(catalogue, result, money_of(result, catalogue, after, chosen.month), notes))


def whole(catalogue: Catalogue, result: Result, content: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a scenario's cost, and its state, by which another answer is held against it."""
    from tco.outputs.costs import cost_document
    from tco.outputs.document import document
    from tco.studies.state import state_of

    return document("price", catalogue, cost_document(result) | content | {"state": state_of(result)})


def by_line(catalogue: Catalogue, result: Result, notes: list[str]) -> Answer:
    """Return the answer by cost line."""
    from tco.cli.emit import Answer
    from tco.outputs.costs import HEADER, cost_rows, cost_table

    return Answer(lambda: whole(catalogue, result, {}), lambda: [cost_table(result)], HEADER, cost_rows(result), notes)


def over_time(catalogue: Catalogue, result: Result, money: Money, notes: list[str]) -> Answer:
    """Return the answer by month."""
    from tco.cli.emit import Answer
    from tco.outputs.payments import HEADER, payment_document, payment_rows, payment_table

    return Answer(
        lambda: whole(catalogue, result, payment_document(money)),
        lambda: [payment_table(result, money)],
        HEADER,
        payment_rows(money),
        [*notes, *money.notes],
    )
