"""How sure a comparison is: drawn, or kept from when it was."""

from __future__ import annotations

from collections.abc import Sequence

from tco.studies.asking import Asked
from tco.studies.kept import kept
from tco.studies.verdict import Driver, Lead, Sureness


def sureness_of(asked: Sequence[Asked], baseline: str, hold: bool = False) -> list[Sureness]:
    """Return how sure each of some scenarios is against the one that is named as the baseline; with `hold` each on the plan of its point.

    The draws of shipped scenarios on shipped data never change, so they are kept until the program or its data does.
    """
    if any(one.settings or one.saved or one.name not in one.catalogue.scenarios or len(one.catalogue.folders) > 1 for one in asked):
        return drawn_anew(asked, baseline, hold)
    name = "-".join(["sureness", *(["held"] if hold else []), *(one.name for one in asked), baseline])
    plain = kept(name, lambda: [one._asdict() for one in drawn_anew(asked, baseline, hold)])
    return [
        Sureness(
            **{**one, "drivers": [Driver(*each) for each in one["drivers"]], "leads": {other: Lead(*lead) for other, lead in one["leads"].items()}}
        )
        for one in plain
    ]


def drawn_anew(asked: Sequence[Asked], baseline: str, hold: bool) -> list[Sureness]:
    """Draw the inputs of some scenarios."""
    from tco.studies.drawing import drawn  # what is kept is read without it

    return drawn(asked, baseline, hold)
