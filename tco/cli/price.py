"""`tco price`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "variant", "redact")
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
    from tco.outputs.payments import HEADER as PAYMENTS
    from tco.outputs.payments import payment_document, payment_rows, payment_table
    from tco.studies.state import state_of

    catalogue, (result,) = evaluate_all([scenario], given.data, given.settings, given.variant)
    paid = payment_document(result, given.redact) if cash_flow else {}
    given.emit(
        Answer(
            lambda: document("price", catalogue, cost_document(result, given.redact) | paid | ({} if given.redact else {"state": state_of(result)})),
            lambda: [payment_table(result, given.redact) if cash_flow else cost_table(result, given.redact)],
            PAYMENTS if cash_flow else HEADER,
            payment_rows(result, given.redact) if cash_flow else cost_rows(result, given.redact),
            [*result.notes, *result.ages.notes],
        ),
    )
