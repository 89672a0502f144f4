"""The software of a chip: its engine and libraries, its maturity, and unexplained time.

A family of chips shares its practice. Its software lies between what is public, which measured rows
show, and the best that anybody wrote by hand for such hardware: every chip is held to the same
best, and a parameter of practice lies at a share of the way to it, in logarithms.
`workload.software` says how far: `drawn`, unless something else is asked for: as far as it is
believed that an owner gets; `public`: what measured rows show by the scenario's date; `best`: what
is written by hand for such hardware; a month: what is public then; a family: all chips under the
practice of that one.

A run as it is configured, a plan as the model has it (`workload.as_deployed=0`) and a training step
take

    t = t_model (1 + f)(1 + c)(1 + e)(1 + m)(1 + k)(1 + r)

with what runs of a family of chips share, those of a chip, an engine, a model, a configuration of
all of these with its formats and its release, and what one run has alone. Each share is an input of
its owner, nought in itself, and as wide as measured runs lie off
(`tco.validation.unexplained`). Two systems share the draws of the owners they have in
common and no others, so that those cancel in their ratio and the rest does not. An owner nobody has
measured has the width of its level.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tco.catalog.catalogue import CONFIGURATION, RUN, Catalogue
from tco.catalog.rows import input_attributes
from tco.core.elementwise import elementwise_maximum, elementwise_minimum, exp
from tco.core.errors import DataError, refuse_unknown, unknown
from tco.core.formula import formula
from tco.core.inputs import Readable
from tco.core.memory import once_per_owner
from tco.core.own_values import question_quantity
from tco.core.provenance import Input, days_of, period
from tco.core.trace import scope
from tco.core.types import JsonObject, Quantity, Settings
from tco.core.units import Pure, Second
from tco.fabric.libraries import CollectiveLibrary, combined_library
from tco.performance.chip.families import family_of
from tco.performance.chip.formats import FORMATS, plain_weight_format

# the second is the name it has as an option of `compare`
SOFTWARE, ALIAS = (
    "workload.software",
    "workload.practice",
)
DRAWN, PUBLIC, THE_BEST = LEVELS = ("drawn", "public", "best")
ALSO = {"own": DRAWN, "mature": THE_BEST}  # other words for them
BY_DATE = "native"  # as the software has it by its date
# What software does by its date: training rests on it, and serving refuses words that are unknown.
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
FAMILY = "family"  # the engine of the chip's family
BEST = "best"  # owner of the best values of parameters of practice
REACH = "performance.owner.software_reach"  # how far an owner's software is on the way
DEPLOYED = "workload.as_deployed"  # nought where plans run as the model has them
APPROACH = "performance.public.approach"  # by which public software comes nearer to the best
# months from the release of a chip to the first software that was measured on one
YOUNGEST = "performance.public.youngest_port"
MORE = "efficiency"  # in the names of parameters of which more is better
MONTHS, DAYS = 12, 30  # of a year and of a month


# ---------------------------------------------------------------- engines and libraries
@once_per_owner
def _serving_families(catalogue: Catalogue) -> dict[str, JsonObject]:
    """Return the serving engines and collective libraries of each chip family.

    The key `engine` holds the engine that runs unless a workload names another engine.
    """
    return {
        engine_name: table
        for path in catalogue.folder_files("performance/engines.toml")
        for engine_name, table in catalogue.toml(path).items()
    }


class Untuned(NamedTuple):
    """Releases of an engine with kernels untuned for a chip: calendar months and slow-down."""

    since: float
    until: float
    factor: str  # path


def untuned_on(
    catalogue: Catalogue, family: str, chip: str, engine: str, stored: str
) -> tuple[Untuned, ...]:
    """Return an engine's releases with untuned kernels for a chip and format.

    Nobody had tuned the kernels of these releases for products of such weights on the chip.

    Args:
        catalogue: Holds the table of serving engines.
        family: Chip family whose engines are looked up.
        chip: Id of the chip.
        engine: Id of the serving engine.
        stored: Number format in which the weights are stored.

    Returns:
        Spans of releases in months of the calendar, each with the path of the factor by which
        passes take longer; empty for tuned kernels.

    Raises:
        DataError: The family is unknown.

    """
    return tuple(
        Untuned(
            _on_the_calendar(engine_row["since"]),
            _on_the_calendar(engine_row["until"]),
            f"performance.{engine_row['practice']}.untuned_factor",
        )
        for engine_row in served_by(catalogue, family).get("untuned", ())
        if engine == engine_row["engine"]
        and chip in engine_row["chips"]
        and stored in FORMATS
        and plain_weight_format(stored) == engine_row["weights"]
    )


def served_by(catalogue: Catalogue, family: str) -> JsonObject:
    """Return the serving engines and libraries of one chip family.

    Args:
        catalogue: Holds the table of serving engines.
        family: Id of the chip family.

    Returns:
        Table of the family in `performance/engines.toml`, such as `engine` and `libraries`.

    Raises:
        DataError: The family is unknown.

    """
    family_tables = _serving_families(catalogue)
    refuse_unknown("family of chips", [family], family_tables, "performance/engines.toml")
    return family_tables[family]


@once_per_owner
def serving_engines(catalogue: Catalogue) -> list[str]:
    """Return the serving engines whose practice the catalogue knows.

    Args:
        catalogue: Holds the calibration rows.

    Returns:
        Sorted ids: the owners of a `host_time` row, without the owner of the best values.

    """
    return sorted(
        {
            owner
            for owner, parameter_name in catalogue.calibration_rows
            if parameter_name == "host_time"
        }
        - {BEST}
    )


def serving_engine_id(catalogue: Catalogue, family: str, engine_name: str) -> str:
    """Return the id of a serving engine.

    Args:
        catalogue: Holds the engines and calibration rows.
        family: Chip family whose usual engine the name `family` stands for.
        engine_name: Id of an engine, or `family`.

    Raises:
        DataError: The engine is unknown, or the family of a `family` engine.

    """
    if engine_name == FAMILY:
        return str(served_by(catalogue, family)["engine"])
    engine_ids = serving_engines(catalogue)
    refuse_unknown("serving engine", [engine_name], engine_ids, "workload.engine")
    return engine_name


def library_of_engines(catalogue: Catalogue, family: str) -> CollectiveLibrary:
    """Return the collectives that serving engines use on a family of chips.

    Args:
        catalogue: Holds the engines and the collective libraries.
        family: Id of the chip family.

    Returns:
        Library with the algorithms of all libraries of the family.

    Raises:
        DataError: The family is unknown.

    """
    return combined_library(catalogue, map(str, served_by(catalogue, family)["libraries"]))


# ---------------------------------------------------------------- how far software reaches
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
    floor = elementwise_maximum(best, least)
    over = public / floor
    return floor * elementwise_minimum(over, 1) * elementwise_maximum(over, 1) ** gap


@formula("")
def reached_factor(public: Pure, best: Pure, gap: Pure, least: Pure = 1e-15) -> Quantity:
    """Slow-down factor between public and best software: f_b min(x, 1) max(x, 1)^g.

    x = f_p / f_b.
    """
    floor = elementwise_maximum(best, least)
    over = public / floor
    return floor * elementwise_minimum(over, 1) * elementwise_maximum(over, 1) ** gap


@formula("")
def reached_share(public: Pure, best: Pure, gap: Pure, least: Pure = 1e-15) -> Quantity:
    """Share of a peak between public and best software: e_b max(x, 1) min(x, 1)^g.

    x = e_p / e_b. It is never below the public share.
    """
    floor = elementwise_maximum(best, least)
    over = public / floor
    return floor * elementwise_maximum(over, 1) * elementwise_minimum(over, 1) ** gap


class SoftwareMaturity(NamedTuple):
    """Age of a software port and its gap to the best software."""

    # from the release of the chip to its software; none: the port has grown up
    months: Quantity | None = None
    # share of the way to the best that is left; none: all of it, which is public software
    gap: Any = None
    best: frozenset[str] = frozenset()  # parameters of practice of which the best is known
    untuned: tuple[Untuned, ...] = ()  # releases with kernels that nobody had tuned for the chip

    def of(self, input_values: Settings, path: str) -> Any:
        """Return a parameter of practice as this software has it."""
        public, parameter_name = input_values[path], path.rpartition(".")[2]
        if self.gap is None or parameter_name not in self.best:
            return public
        with scope("software", parameter_name):
            law = reached_factor
            if MORE in parameter_name:
                law = reached_share
            elif input_attributes()["performance", parameter_name].unit == "s":
                law = reached_time
            return law(public, input_values[f"performance.{BEST}.{parameter_name}"], self.gap)


MEASURED = SoftwareMaturity()  # of rows and kernels that were timed


def parse_software_name(catalogue: Catalogue, software_name: str) -> str:
    """Return the canonical software name: level, family, date or months.

    The months count from the release of the chip.

    Args:
        catalogue: Holds the chip families that serve.
        software_name: Level (`drawn`, `public`, `best`) or its synonym (`own`, `mature`), chip
            family, date such as 2026-02, or time such as `6 months`.

    Raises:
        DataError: The text is of no such form.

    """
    software_name = ALSO.get(software_name, software_name)
    families = _serving_families(catalogue)
    if (
        software_name not in LEVELS
        and software_name not in families
        and days_of(software_name) is None
        and _parse_months(software_name) is None
    ):
        raise unknown(
            "software",
            software_name,
            [*LEVELS, *families],
            f"{SOFTWARE} (or a month such as 2026-02)",
        )
    return software_name


def _parse_months(age_text: str) -> float | None:
    """Return a time such as '6 months' in months; None of anything else."""
    if not re.match(r"\d", age_text):
        return None
    try:
        return question_quantity(age_text, "month")
    except DataError:
        return None


def parse_calendar_month(date_text: str) -> float | None:
    """Return a date in months of the calendar, else None.

    A month without a day stands for its middle.

    Args:
        date_text: Date such as 2026-02 or 2026-02-15.

    Returns:
        12 times the year, plus the months of the year before, plus the day as a share of 30 days;
        None for a text of any other form.

    """
    date_match = re.fullmatch(r"(\d{4})-(\d{2})(?:-(\d{2}))?", date_text.strip())
    return (
        None
        if date_match is None
        else int(date_match[1]) * MONTHS
        + int(date_match[2])
        - 1
        + (int(date_match[3]) if date_match[3] else DAYS / 2) / DAYS
    )


def _on_the_calendar(date: str) -> float:
    """Return a date in months of the calendar, that of a year or a quarter by its middle."""
    if (month := parse_calendar_month(date)) is not None:
        return month
    first, last = period(date)
    return (
        sum(MONTHS * day.year + day.month - 1 + side for side, day in enumerate((first, last))) / 2
    )


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
    served_by(catalogue, family)
    parameter_names = [
        parameter_name for owner, parameter_name in catalogue.calibration_rows if owner == family
    ]
    paths = {
        parameter_name: f"performance.{chip_family}.{parameter_name}"
        for parameter_name in parameter_names
        if (chip_family, parameter_name) in catalogue.calibration_rows
    }
    return {
        path: catalogue.practice(family, parameter_name)._replace(path=path)
        for parameter_name, path in paths.items()
    }


def stated_by(catalogue: Catalogue, chip: str, software_name: str) -> dict[str, Input]:
    """Return the inputs that a software name states for a chip.

    Args:
        catalogue: Holds the calibration rows.
        chip: Id of the chip.
        software_name: Canonical software name, as `parse_software_name` returns.

    Returns:
        Inputs by path: none for `drawn`, and for a chip family the parameters of its practice. Any
        other name gives the reach on the way to the best software: 1 for `best`, else 0.

    Raises:
        DataError: The name is a chip family, and the chip is unknown.

    """
    if software_name == DRAWN:
        return {}
    if software_name in _serving_families(catalogue):
        return parameters_of_family(catalogue, chip, software_name)
    reach = float(software_name == THE_BEST)
    return {
        REACH: Input(
            REACH,
            reach,
            "ratio",
            reach,
            reach,
            source=f"{SOFTWARE}={software_name}",
            where=SOFTWARE,
        )
    }


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
    return (
        software_name
        if software_name in _serving_families(catalogue)
        else family_of(catalogue, chip)
    )


def resolve_software_maturity(
    catalogue: Catalogue, chip: str, software_name: str, date: str, input_values: Readable
) -> SoftwareMaturity:
    """Return port age in months and gap to the best software.

    For a chip that is not out by the date, or just out, the port is as old as the youngest measured
    port. Software of a stated month has its true age. Measured values stand until the end of their
    month. From then on public software comes nearer to the best.

    Args:
        catalogue: Holds the parts and calibration rows.
        chip: Id of the chip.
        software_name: Canonical software name: level, family, date or months.
        date: Date of the prices; the software is of this date unless `software_name` is a date.
        input_values: Values of the inputs by path.

    Returns:
        Age in months, and the share of the way to the best software that is left. The age is None
        for a chip without release date, unless `software_name` states months; the gap is None where
        measured values stand.

    Raises:
        DataError: `date` is no date of the calendar.

    """
    since = catalogue.practice("public", "approach").as_of
    dated = days_of(software_name) is not None
    age: Quantity | None
    age = None if dated else _parse_months(software_name)
    month = _on_the_calendar(software_name if dated else period(date).last.isoformat())
    if age is None and catalogue.has_part_value(chip, "released"):
        age = months_since(
            month, input_values[f"parts.{chip}.released"], 0 if dated else input_values[YOUNGEST]
        )
    reached = input_values.unless_zero(REACH)
    later = month - _on_the_calendar(period(since).last.isoformat())
    if reached is None and later <= 0:
        return MEASURED._replace(months=age)
    gap = gap_left(0.0 if reached is None else reached)
    best: frozenset[str] = catalogue.once(
        "best",
        lambda: frozenset(
            parameter_name for owner, parameter_name in catalogue.calibration_rows if owner == BEST
        ),
    )
    return SoftwareMaturity(
        age, gap_after(gap, input_values[APPROACH], later) if later > 0 else gap, best
    )


# ---------------------------------------------------------------- what nothing explains
# from what many runs share to what one has alone
OWNERS = (
    "family",
    "chip",
    "engine",
    "model",
    CONFIGURATION,
    RUN,
)
SERVING, TRAINING = "unexplained_serving", "unexplained_training"


@formula("", source="tco-calibration")
def time_beyond(
    family: Pure, chip: Pure, engine: Pure, model: Pure, configuration: Pure, run: Pure
) -> Quantity:
    """Unexplained time over modelled time: x = (1 + f)(1 + c)(1 + e)(1 + m)(1 + k)(1 + r) - 1."""
    return (1 + family) * (1 + chip) * (1 + engine) * (1 + model) * (1 + configuration) * (
        1 + run
    ) - 1


def unexplained_time_paths(
    catalogue: Catalogue,
    parameter_name: str,
    family: str,
    chip: str,
    engine: str,
    model: str,
    system: str,
) -> dict[str, str]:
    """Return the input paths of a scenario's unexplained time by level.

    A model built from its shape has the input of a model without rows.

    Args:
        catalogue: Holds the models.
        parameter_name: Name of the parameter, such as `unexplained_serving`.
        family: Chip family.
        chip: Id of the chip.
        engine: Id of the serving engine; empty leaves the level out.
        model: Id of the model.
        system: Id of the system.

    """
    system_owners = (f"{level}-{system}" for level in (CONFIGURATION, RUN))
    owners = (family, chip, engine, model if model in catalogue.models else "model", *system_owners)
    return {
        level: f"performance.{owner}.{parameter_name}"
        for level, owner in zip(OWNERS, owners, strict=True)
        if owner
    }


def unexplained(input_values: Readable, paths: dict[str, str]) -> Any:
    """Return the unexplained share of a pass: unexplained over explained time.

    Args:
        input_values: Values of the inputs by path.
        paths: Input paths by level, as `unexplained_time_paths` returns.

    Returns:
        Share as a number, an array or a traced value; None where every level is a plain 0.

    """
    shares = {
        level: share
        for level, path in paths.items()
        if (share := input_values.unless_zero(path)) is not None
    }
    return time_beyond(*(shares.get(level, 0.0) for level in OWNERS)) if shares else None
