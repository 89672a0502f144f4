"""`tco price`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result
    from tco.cli.emit import Answer


@command(app, "set", "variant")
def price(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    cash_flow: Annotated[bool, typer.Option("--cash-flow", help="Show what is paid month by month instead.")] = False,
) -> None:
    """Show the cost lines of one scenario, down to the chip-hour."""
    from tco.cli.emit import Answer
    from tco.cli.load import evaluate_all
    from tco.outputs.costs import HEADER, cost_document, cost_rows, cost_table
    from tco.outputs.document import document
    from tco.studies.state import state_of

    catalogue, (result,) = evaluate_all([scenario], given.data, given.settings, given.variant)
    notes = [*result.notes, *result.ages.notes]
    if cash_flow:
        answer = over_time(catalogue, result, notes)
    else:
        answer = Answer(
            lambda: document("price", catalogue, cost_document(result) | {"state": state_of(result)}),
            lambda: [cost_table(result)],
            HEADER,
            cost_rows(result),
            notes,
        )
    given.emit(answer)


def over_time(catalogue: Catalogue, result: Result, notes: list[str]) -> Answer:
    """Return the answer by month."""
    from tco.cli.emit import Answer
    from tco.outputs.costs import cost_document
    from tco.outputs.document import document
    from tco.outputs.payments import HEADER, payment_document, payment_rows, payment_table
    from tco.studies.money import money_of
    from tco.studies.state import state_of

    money = money_of(result, catalogue)
    return Answer(
        lambda: document("price", catalogue, cost_document(result) | payment_document(money) | {"state": state_of(result)}),
        lambda: [payment_table(result, money)],
        HEADER,
        payment_rows(money),
        [*notes, *money.notes],
    )
