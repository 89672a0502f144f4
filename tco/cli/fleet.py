"""`tco fleet`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set")
def fleet(
    given: Given,
    waves: Annotated[list[str], typer.Argument(metavar="SCENARIO:POWER[:DATE]...", help="What is bought, such as 'trn3-nl72x2:500 MW:2026-06'.")],
    power: Annotated[str | None, typer.Option(metavar="POWER", help="What all of them share, such as '2.2 GW'.")] = None,
) -> None:
    """Fill one power with several systems bought at their dates: racks, chips, price and tokens of each and of all."""
    from tco.cli.emit import Answer
    from tco.outputs.document import document
    from tco.outputs.fleets import HEADER, fleet_document, fleet_rows, fleet_table
    from tco.studies.evaluation import catalogue_of
    from tco.studies.fleet import fleet_of, wave_of

    found = fleet_of([wave_of(text) for text in waves], power, given.data, given.settings)
    given.emit(
        Answer(
            lambda: document("fleet", catalogue_of(found.asked, given.data), fleet_document(found)),
            lambda: [fleet_table(found)],
            HEADER,
            fleet_rows(found),
            [f"{one.name}: {note}" for one in found.asked for note in (*one.result.notes, *one.result.ages.notes)],
        )
    )
