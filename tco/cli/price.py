"""`tco price`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Data, Form, Format, Output, Quiet, Redact, Settings, Variants, pairs


@app.command()
def price(
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    settings: Settings = None,
    variant: Variants = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
    redact: Redact = False,
    cash_flow: Annotated[bool, typer.Option("--cash-flow", help="Show what is paid month by month instead.")] = False,
) -> None:
    """Show the cost lines of one scenario, down to the chip-hour."""
    from tco.cli.emit import Answer, emit
    from tco.cli.load import evaluate_all
    from tco.outputs.costs import HEADER, cost_document, cost_rows, cost_table
    from tco.outputs.document import document
    from tco.outputs.payments import HEADER as PAYMENTS
    from tco.outputs.payments import payment_document, payment_rows, payment_table
    from tco.studies.state import state_of

    catalogue, (result,) = evaluate_all([scenario], data, pairs(settings, "--set"), pairs(variant, "--variant"))
    paid = payment_document(result, redact) if cash_flow else {}
    emit(
        Answer(
            lambda: document("price", catalogue, cost_document(result, redact) | paid | ({} if redact else {"state": state_of(result)})),
            lambda: [payment_table(result, redact) if cash_flow else cost_table(result, redact)],
            PAYMENTS if cash_flow else HEADER,
            payment_rows(result, redact) if cash_flow else cost_rows(result, redact),
            [*result.notes, *result.ages.notes],
        ),
        form.value,
        output,
        quiet,
    )
