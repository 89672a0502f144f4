"""The structure of a scenario: all that is decided before anything is computed, in one record.

A plan, a part where the tree lists alternatives, and every input that was read as a plain number to
decide which tiers, modules, formats, operators or algorithms exist. With it given everything that
follows is arithmetic, on numbers and arrays alike: what an input was when the structure was decided
still decides, whatever the input is now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.core.errors import DataError
from tco.core.inputs import Readable, Readings
from tco.performance.serving.plans import DecodePlan, PrefillPlan, ServingPlan
from tco.scenario.network_choice import CHEAPEST, network_design
from tco.scenario.workload import kind_of_plan, storage_and_compute_formats

if TYPE_CHECKING:
    from tco.catalog.system_tree import System
    from tco.scenario.evaluate import Chain
    from tco.scenario.resolve import Inputs


class Structure(NamedTuple):
    """What the answer to a scenario is made of, and the inputs that decided it."""

    system: str
    variant: Mapping[str, str]
    texts: Mapping[str, str]  # inputs that are no numbers: model, formats, tenure, ...
    alternatives: Mapping[str, str]  # place of the tree -> the part that stands there
    plan: Any  # of the workload, as an evaluation found it; none where there is none
    # inputs that were read to decide, as plain numbers, or true where only whether they are above
    # zero counts
    readings: Readings
    compared: tuple[str, ...] = ()  # inputs by which the alternatives were the cheapest
    choices: Mapping[str, Any] = {}  # what they came to, for people

    def variant_of(self, system: str, variant: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the variants to load a system with, its own unless others are asked for; another
        system raises `DataError`.
        """
        if system != self.system:
            raise DataError(f"structure: it is that of {self.system}, not of {system}")
        return self.variant if variant is None else variant

    def check(self, system: System, text: Callable[[str], str]) -> None:
        """Refuse to stand for other variants of the system, or for other inputs that are no
        numbers.
        """
        if dict(system.variant) != dict(self.variant):
            own, other = (
                system_with_variants(self.system, variant)
                for variant in (self.variant, system.variant)
            )
            raise DataError(f"structure: it is that of {own}, not of {other}")
        for path, decided in self.texts.items():
            if (asked := text(path)) != decided and not asked.startswith(CHEAPEST):
                raise DataError(
                    f"structure: {path} is {asked!r}, it was {decided!r} when the structure was "
                    "decided; hold a plan with `plan`"
                )


def system_with_variants(system: str, variant: Mapping[str, str]) -> str:
    """Return a system with its variants, as a command line names it."""
    return system + "".join(
        f"{'@' if not place else ','}{key}={value}"
        for place, (key, value) in enumerate(sorted(variant.items()))
    )


def structure_of(inputs: Inputs, values: Readable, chain: Chain) -> Structure:
    """Return the structure that a chain was walked on: the one that was given, or what was decided
    on the way.
    """
    plan, readings = chain.serving.plan, Readings(inputs.readings, inputs.readings.decisions)
    if inputs.structure is not None:
        return inputs.structure._replace(plan=plan, readings=readings)
    return Structure(
        inputs.system.id,
        inputs.system.variant,
        dict(inputs.texts_used),
        inputs.alternatives,
        plan,
        readings,
        tuple(inputs.compared),
        structural_choices(inputs, values, chain),
    )


def structural_choices(inputs: Inputs, values: Readable, chain: Chain) -> dict[str, Any]:
    """Return what the readings came to: the network, the formats, the operators of each phase, and
    the collectives offered.
    """
    found: dict[str, Any] = (
        {"formats": formats} if (formats := storage_and_compute_formats(inputs, values)) else {}
    )
    if chain.network is not None:
        parts = dict.fromkeys(line.part for line in chain.network.lines)
        found["network"] = {
            "design": network_design(inputs.system),
            "tiers": chain.network.tiers,
            "parts": list(parts),
        }
    found["operators"] = chain.serving.operators
    if (links := chain.serving.links) is not None:
        found["collectives"] = {
            "library": links.library.name,
            "in_network_reduction": bool(links.reduces),
        }
    return found


MAY_BE_ZERO = frozenset(
    (
        "cut",
        "expert_parallel",
        "order",
        "zero",
        "sequence_parallel",
        "overlap",
        "offload",
        "hybrid",
        "share",
        "drafts",
        "chosen",
    )
)


def plain_plan(plan: Any) -> Any:
    """Return a plan as tables of numbers and texts, phase by phase where it has some."""
    if hasattr(plan, "_asdict"):
        return {name: plain_plan(value) for name, value in plan._asdict().items()}
    return plan


def plan_from(found: Any, where: str = "plan") -> Any:
    """Return the record of a plan that `plain_plan` wrote, none of none; anything else raises
    `DataError`.
    """
    if found is None:
        return None
    kind = kind_of_plan(found)
    if kind == "serving":
        phases = {
            name: parse_plan_record(kind, found.get(name), f"{where}: {name}", {})
            for name, kind in (("decode", DecodePlan), ("prefill", PrefillPlan))
        }
        rest = {"stated": False, "flight": None} | {
            name: value for name, value in found.items() if name not in phases
        }
        free: dict[str, tuple[Any, ...] | None] = {
            "engines": None,
            "readers": None,
            "flight": None,
            "stated": (True, False),
        }
        return parse_plan_record(ServingPlan, phases | rest, where, free)
    if kind == "training":
        from tco.performance.training.plans import RECOMPUTE, SCHEDULES, TrainingPlan

        return parse_plan_record(
            TrainingPlan,
            {"chosen": 0} | dict(found),
            where,
            {"schedule": SCHEDULES, "recompute": RECOMPUTE, "share": None},
        )
    raise DataError(
        f"{where} is no plan: it is neither of serving nor of training; `Result.save` writes one"
    )


def plan_for(kind: str, plan: Any) -> Any:
    """Return the plan an evaluation of one kind of workload takes, axes that somebody fixes among
    them; that of the other kind raises `DataError`.
    """
    own = kind_of_plan(plan)
    found = plan_from(plan) if own and isinstance(plan, Mapping) else plan
    if own and own != kind:
        raise DataError(f"a plan of {own} is given, the workload is {kind}")
    return found


def parse_plan_record(
    kind: type, found: Any, where: str, other: Mapping[str, tuple[Any, ...] | None]
) -> Any:
    """Return a record of numbers; `other` fields take one of some words, or may be null."""
    names = kind._fields  # type: ignore[attr-defined]
    if not isinstance(found, Mapping) or set(found) != set(names):
        raise DataError(
            f"{where} is no plan: expected a table of {', '.join(names)}; `Result.save` writes one"
        )
    for name, value in found.items():
        words = other.get(name, ())
        if words:
            if value not in words:
                raise DataError(
                    f"{where}: {name} is {value!r}, expected one of {', '.join(map(str, words))}"
                )
        elif (
            not isinstance(value, tuple)
            and not (value is None and words is None)
            and not is_number_at_least(value, 0 if name in MAY_BE_ZERO else 1)
        ):
            raise DataError(
                f"{where}: {name} is {str(value)[:60]!r}, expected a number from "
                f"{0 if name in MAY_BE_ZERO else 1} on"
            )
    return kind(**found)


def is_number_at_least(value: Any, least: float) -> bool:
    """Say whether a value is a finite number that is not below the least."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value >= least
    )
