"""`tco price`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Request, Scenario, command
from tco.foundation.errors import UsageError


@command(app, "set", "anchor", "variant")
def price(
    given: Request,
    scenario: Scenario,
    cash_flow: Annotated[bool, typer.Option("--cash-flow", help="Show what is paid month by month instead.")] = False,
    swap: Annotated[
        str | None, typer.Option(metavar="KEY=VALUE@MONTH", help="With --cash-flow: another variant from a month on, such as switch=gen2@24.")
    ] = None,
) -> None:
    """Show the cost lines of one scenario, down to the chip-hour."""
    from tco.outputs.costs import price_answer
    from tco.studies.evaluation import evaluate_each
    from tco.studies.money import money_of, swap_of

    catalogue, (result,) = given.evaluated([scenario], workload=cash_flow or given.form == "json")
    if swap is not None and not cash_flow:
        raise UsageError("--swap is of the money by month: add --cash-flow")
    money = None
    if swap is not None:
        chosen = swap_of(swap)
        (after,) = evaluate_each([scenario], given.data, given.settings, given.variant | {chosen.key: chosen.value})
        money = money_of(result, catalogue, after.result, chosen.month)
    elif cash_flow:
        money = money_of(result, catalogue)
    given.emit(price_answer(catalogue, result, money))
