"""What `workload.software` says: how far the software of a scenario's chip reaches, between what is public and the best there is.

`drawn`, unless something else is asked for: anywhere between both, as far as is believed of the chip's family; `public`: what measured rows
show by the scenario's date; `best`: what is written by hand for such hardware; a month: what is public then; a family: all chips under the
practice of that one, as far as it is believed to reach.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tco.catalog import Catalogue
from tco.chain.texts import MONTHS, month_of, served_by, serving_families
from tco.foundation.errors import DataError, unknown
from tco.foundation.formula import formula
from tco.foundation.provenance import Input, days_of, period
from tco.foundation.units import Pure, parse_quantity
from tco.foundation.values import Values
from tco.performance.chip.formats import family_of
from tco.performance.chip.software import APPROACH, BEST, MEASURED, REACH, YOUNGEST, Reach, gap_after, gap_left

if TYPE_CHECKING:
    from tco.chain.inputs import Inputs

SOFTWARE, ALIAS = "workload.software", "workload.practice"  # the second is the name it has as an option of `compare`
DRAWN, PUBLIC, THE_BEST = LEVELS = ("drawn", "public", "best")
ALSO = {"own": DRAWN, "mature": THE_BEST}  # other words for them


@formula(unit="", source="tco-model")
def months_since(month: Pure, released: Pure, least: Pure) -> Any:
    """Months of the calendar from the release of a chip, a year with its part, to a month, and no fewer than some: max(m - 12 y, m_0)."""
    return np.maximum(month - 12 * released, least)


def named(catalogue: Catalogue, text: str) -> str:
    """Return what some software is called: a level, a family, a date, or months after a release; anything else raises `DataError`."""
    text = ALSO.get(text, text)
    families = serving_families(catalogue)
    if text not in LEVELS and text not in families and days_of(text) is None and months_of(text) is None:
        raise unknown("software", text, [*LEVELS, *families], f"{SOFTWARE} (or a month such as 2026-02)")
    return text


def months_of(text: str) -> float | None:
    """Return a time such as '6 months' in months; None of anything else."""
    if not re.match(r"\d", text):
        return None
    try:
        return parse_quantity(text, "month")
    except DataError:
        return None


def on_the_calendar(date: str) -> float:
    """Return a date in months of the calendar, that of a year or a quarter by its middle."""
    if (month := month_of(date)) is not None:
        return month
    first, last = period(date)
    return sum(MONTHS * day.year + day.month - 1 + side for side, day in enumerate((first, last))) / 2


def practised(catalogue: Catalogue, chip: str, family: str) -> dict[str, Input]:
    """Return what a chip reaches in the practice of another family, under the paths of its own; what that one has no word for stays."""
    own = family_of(catalogue, chip)
    served_by(catalogue, family)
    names = [name for owner, name in catalogue.calibration_rows if owner == family]
    paths = {name: f"performance.{own}.{name}" for name in names if (own, name) in catalogue.calibration_rows}
    return {path: catalogue.practice(family, name)._replace(path=path) for name, path in paths.items()}


def stated_by(catalogue: Catalogue, chip: str, text: str) -> dict[str, Input]:
    """Return the inputs that some software states of a chip: the whole practice of another family, or how far its own reaches."""
    if text == DRAWN:
        return {}
    if text in serving_families(catalogue):
        return practised(catalogue, chip, text)
    path, reach = f"performance.{family_of(catalogue, chip)}.{REACH}", float(text == THE_BEST)
    return {path: Input(path, reach, "ratio", reach, reach, source=f"{SOFTWARE}={text}", where=SOFTWARE)}


def practice_family(catalogue: Catalogue, chip: str, text: str) -> str:
    """Return the family in whose practice some software runs a chip: its own, unless another is named."""
    return text if text in serving_families(catalogue) else family_of(catalogue, chip)


def reach_of(inputs: Inputs, values: Values) -> Reach:
    """Return the software of a scenario: its age on the chip, and how much of the way to the best it has left.

    Of a chip that is not out by the date, or just out, the port is as old as the youngest that was measured; one of a month is as old as it is.
    """
    catalogue, chip, text = inputs.catalogue, inputs.system.chip, inputs.text(SOFTWARE)
    family, since = family_of(catalogue, chip), catalogue.practice(practice_family(catalogue, chip, text), REACH).as_of
    dated = days_of(text) is not None
    age, month = None if dated else months_of(text), on_the_calendar(text if dated else period(inputs.date).last.isoformat())
    if age is None and catalogue.has_part_value(chip, "released"):
        age = months_since(month, values[f"parts.{chip}.released"], 0 if dated else values[YOUNGEST])
    reached, later = values.unless_zero(f"performance.{family}.{REACH}"), month - on_the_calendar(since)
    if reached is None and later <= 0:
        return MEASURED._replace(months=age)
    gap = gap_left(0.0 if reached is None else reached)
    best = frozenset(name for owner, name in catalogue.calibration_rows if owner == BEST)
    return Reach(age, gap_after(gap, values[APPROACH], later) if later > 0 else gap, best)
