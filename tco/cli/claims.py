"""`tco claims`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


class Verdict(StrEnum):
    """What a claim comes to."""

    holds = "holds"
    arithmetic = "arithmetic"
    not_shown = "not-shown"
    off = "off"
    contradicts = "contradicts"
    not_derivable = "not-derivable"


@command(app, "set")
def claims(
    given: Given,
    verdict: Annotated[Verdict | None, typer.Option(help="Only claims of this verdict.")] = None,
) -> None:
    """Check what published sources claim against parts and formulas; exit 1 if a verdict is not the one the ledger expects."""
    from tco.cli.load import catalogue_for
    from tco.outputs.claims import claims_answer
    from tco.studies.claims import check_claims

    catalogue = catalogue_for(None, given.data)
    found, notes = check_claims(catalogue, given.settings)
    given.emit(claims_answer(catalogue, [one for one in found if verdict in (None, one.verdict)], notes))
    if not all(one.as_expected for one in found):
        raise typer.Exit(1)
