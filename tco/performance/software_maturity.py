"""Software maturity: how near a chip's kernels and engine come to the best hand-written software.

A *practice* is the set of software parameters of one chip family, such as its launch time and the
share of the peak that its kernels reach. Each parameter has a public value, which measured runs
show, and a best value, which somebody reached by hand on such hardware (the practice `best`). The
software of a scenario lies between the two, interpolated in logarithms:

    parameter = best (public / best)^gap,   gap = (1 - reach) exp(-approach max(months, 0))

`reach` is the share of the way to the best that the buyer's own software covers. `months` counts
from the newest measured run: since then public software has come nearer to the best.

`workload.software` names the software of a scenario:

- `drawn` (default): the reach is uncertain, so every draw takes a value of its own;
- `public`: the reach is 0;
- `best`: the reach is 1;
- a month such as `2026-02`: public software of that month;
- an age such as `6 months`: public software that long after the release of the chip;
- a chip family such as `amd`: the chip under the practice of that family.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tco.catalog.catalogue import Catalogue
from tco.catalog.rows import input_attributes
from tco.core.calendar_months import calendar_month
from tco.core.elementwise import elementwise_maximum, elementwise_minimum, exp
from tco.core.errors import DataError, unknown
from tco.core.formula import formula
from tco.core.inputs import Readable
from tco.core.memory import once_per_owner
from tco.core.own_values import question_quantity
from tco.core.provenance import Input, days_of, period
from tco.core.trace import scope
from tco.core.types import Quantity, Settings
from tco.core.units import Pure, Second
from tco.performance.chip.families import family_of
from tco.performance.serving_engines import (
    BEST_PRACTICE,
    UntunedPeriod,
    served_by,
    serving_families,
)

SOFTWARE = "workload.software"
SOFTWARE_ALIAS = "workload.practice"  # the same input, by its name as an option of `compare`
DRAWN = "drawn"
PUBLIC = "public"
BEST_LEVEL = "best"
SOFTWARE_LEVELS = (DRAWN, PUBLIC, BEST_LEVEL)
LEVEL_SYNONYMS = {"own": DRAWN, "mature": BEST_LEVEL}

REACH = "performance.owner.software_reach"  # share of the way to the best, 0 to 1
APPROACH = "performance.public.approach"  # share of the gap that public software closes in a month
# months from the release of a chip to the earliest software that was measured on one
YOUNGEST_PORT_AGE = "performance.public.youngest_port"
EFFICIENCY = "efficiency"  # in the names of the parameters of which more is better

# Inputs that choose the software of a training step. With `BY_DATE` the step runs what is usual at
# the scenario's date. Serving reads none of them, but refuses unknown words.
SOFTWARE_CHOICES = (
    "workload.attention",
    "workload.dropout",
    "workload.expert_kernels",
    "workload.trained",
    "workload.gradient_sums",
    "workload.stage_transfers",
    "workload.programs",
    "workload.loss",
)
BY_DATE = "native"


@formula("")
def months_since(month: Pure, released: Pure, least: Pure) -> Quantity:
    """Calendar months from a chip's release to a month, at least m_0: max(m - 12 y, m_0).

    The release y is a year with its fraction.
    """
    return elementwise_maximum(month - 12 * released, least)


@formula("")
def gap_left(reach: Pure) -> Quantity:
    """Share of the way from public software to the best that is left: g = 1 - r."""
    return 1 - reach


@formula("")
def gap_after(gap: Pure, approach: Pure, months: Pure) -> Quantity:
    """Gap to the best software after m months of approach: g exp(-a m)."""
    return gap * exp(-approach * elementwise_maximum(months, 0))


@formula("s")
def reached_time(public: Second, best: Second, gap: Pure, least: Second = 1e-15) -> Quantity:
    """Time between that of public and of best software: t_b min(x, 1) max(x, 1)^g.

    x = t_p / t_b, t_b > 0. It is never above the public time.
    """
    positive_best = elementwise_maximum(best, least)
    ratio = public / positive_best
    return positive_best * elementwise_minimum(ratio, 1) * elementwise_maximum(ratio, 1) ** gap


@formula("")
def reached_factor(public: Pure, best: Pure, gap: Pure, least: Pure = 1e-15) -> Quantity:
    """Slow-down factor between public and best software: f_b min(x, 1) max(x, 1)^g.

    x = f_p / f_b.
    """
    positive_best = elementwise_maximum(best, least)
    ratio = public / positive_best
    return positive_best * elementwise_minimum(ratio, 1) * elementwise_maximum(ratio, 1) ** gap


@formula("")
def reached_share(public: Pure, best: Pure, gap: Pure, least: Pure = 1e-15) -> Quantity:
    """Share of a peak between public and best software: e_b max(x, 1) min(x, 1)^g.

    x = e_p / e_b. It is never below the public share.
    """
    positive_best = elementwise_maximum(best, least)
    ratio = public / positive_best
    return positive_best * elementwise_maximum(ratio, 1) * elementwise_minimum(ratio, 1) ** gap


class SoftwareMaturity(NamedTuple):
    """Age of the software on a chip, and its gap to the best software."""

    # months from the release of the chip; None for a port that is mature
    months: Quantity | None = None
    # share of the way from public to best that is left; None takes the public values
    gap: Quantity | None = None
    best_parameters: frozenset[str] = frozenset()  # names of those with a known best value
    untuned: tuple[UntunedPeriod, ...] = ()  # of the engine on this chip

    def parameter(self, input_values: Settings, path: str) -> Quantity:
        """Return a software parameter at this maturity.

        Args:
            input_values: Values of the inputs by path.
            path: Input path of the public value, such as `performance.nvidia.launch_time`.

        """
        public: Quantity = input_values[path]
        parameter_name = path.rpartition(".")[2]
        if self.gap is None or parameter_name not in self.best_parameters:
            return public
        with scope("software", parameter_name):
            best = input_values[f"performance.{BEST_PRACTICE}.{parameter_name}"]
            if EFFICIENCY in parameter_name:
                return reached_share(public, best, self.gap)
            if input_attributes()["performance", parameter_name].unit == "s":
                return reached_time(public, best, self.gap)
            return reached_factor(public, best, self.gap)


# public software as it was measured, without any change since
MEASURED = SoftwareMaturity()


def canonical_software_name(catalogue: Catalogue, software_name: str) -> str:
    """Return the software name that a synonym stands for, or the name itself.

    Args:
        catalogue: Holds the chip families that serve.
        software_name: Level (`drawn`, `public`, `best`) or its synonym (`own`, `mature`), chip
            family, date such as 2026-02, or age such as `6 months`.

    Raises:
        DataError: The text is of no such form.

    """
    software_name = LEVEL_SYNONYMS.get(software_name, software_name)
    known_names = [*SOFTWARE_LEVELS, *serving_families(catalogue)]
    is_date_or_age = days_of(software_name) is not None or _age_in_months(software_name) is not None
    if software_name not in known_names and not is_date_or_age:
        expected = f"{SOFTWARE} (or a month such as 2026-02)"
        raise unknown("software", software_name, known_names, expected)
    return software_name


def _age_in_months(age_text: str) -> float | None:
    """Return an age such as '6 months' in months; None for any other text."""
    if not re.match(r"\d", age_text):
        return None
    try:
        return question_quantity(age_text, "month")
    except DataError:
        return None


def practice_family(catalogue: Catalogue, chip: str, software_name: str) -> str:
    """Return the family in whose practice software runs a chip.

    Args:
        catalogue: Holds the chip families.
        chip: Id of the chip.
        software_name: Canonical software name.

    Returns:
        The family that `software_name` names, else the chip's own family.

    Raises:
        DataError: `software_name` names no family, and the chip is unknown.

    """
    if software_name in serving_families(catalogue):
        return software_name
    return family_of(catalogue, chip)


def parameters_of_family(catalogue: Catalogue, chip: str, family: str) -> dict[str, Input]:
    """Return a chip's software parameters under the practice of another family.

    A parameter without a row in `family` is left out and so keeps its value.

    Args:
        catalogue: Holds the calibration rows.
        chip: Id of the chip.
        family: Chip family whose practice applies.

    Returns:
        Inputs by path; the paths are those of the chip's own family.

    Raises:
        DataError: The chip or the family is unknown.

    """
    chip_family = family_of(catalogue, chip)
    served_by(catalogue, family)  # refuses an unknown family
    parameters = {}
    for practice, parameter_name in catalogue.calibration_rows:
        if practice == family and (chip_family, parameter_name) in catalogue.calibration_rows:
            path = f"performance.{chip_family}.{parameter_name}"
            parameters[path] = catalogue.practice(family, parameter_name)._replace(path=path)
    return parameters


def inputs_of_software(catalogue: Catalogue, chip: str, software_name: str) -> dict[str, Input]:
    """Return the inputs that a software name sets for a chip.

    Args:
        catalogue: Holds the calibration rows.
        chip: Id of the chip.
        software_name: Canonical software name, as `canonical_software_name` returns.

    Returns:
        Inputs by path: none for `drawn`, and for a chip family the parameters of its practice. Any
        other name sets the reach: 1 for `best`, else 0.

    Raises:
        DataError: The name is a chip family, and the chip is unknown.

    """
    if software_name == DRAWN:
        return {}
    if software_name in serving_families(catalogue):
        return parameters_of_family(catalogue, chip, software_name)
    reach = 1.0 if software_name == BEST_LEVEL else 0.0
    reach_input = Input(
        path=REACH,
        value=reach,
        unit="ratio",
        low=reach,
        high=reach,
        source=f"{SOFTWARE}={software_name}",
        where=SOFTWARE,
    )
    return {REACH: reach_input}


@once_per_owner
def _best_parameters(catalogue: Catalogue) -> frozenset[str]:
    return frozenset(
        parameter_name
        for practice, parameter_name in catalogue.calibration_rows
        if practice == BEST_PRACTICE
    )


def resolve_software_maturity(
    catalogue: Catalogue, chip: str, software_name: str, date: str, input_values: Readable
) -> SoftwareMaturity:
    """Return the age of a scenario's software and its gap to the best software.

    Args:
        catalogue: Holds the parts and calibration rows.
        chip: Id of the chip.
        software_name: Canonical software name: level, family, date or age.
        date: Date of the prices; the software is of this date unless `software_name` is a date.
        input_values: Values of the inputs by path.

    Returns:
        `months` is None for a chip without a release date, unless `software_name` states an age.
        `gap` is None for public software up to the month of the newest measured run.

    Raises:
        DataError: `date` is no date of the calendar.

    """
    newest_run_date = catalogue.practice("public", "approach").as_of
    is_dated = days_of(software_name) is not None
    month = calendar_month(software_name if is_dated else period(date).last.isoformat())
    age: Quantity | None = None if is_dated else _age_in_months(software_name)
    if age is None and catalogue.has_part_value(chip, "released"):
        released = input_values[f"parts.{chip}.released"]
        # a chip that is just out or not yet out has software as old as the earliest measured port
        least_age = 0 if is_dated else input_values[YOUNGEST_PORT_AGE]
        age = months_since(month, released, least_age)
    reach = input_values.unless_zero(REACH)
    months_of_approach = month - calendar_month(period(newest_run_date).last.isoformat())
    if reach is None and months_of_approach <= 0:
        return MEASURED._replace(months=age)
    gap = gap_left(0.0 if reach is None else reach)
    if months_of_approach > 0:
        gap = gap_after(gap, input_values[APPROACH], months_of_approach)
    return SoftwareMaturity(age, gap, _best_parameters(catalogue))
