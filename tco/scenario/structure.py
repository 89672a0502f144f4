"""The structure of a scenario: all discrete choices that precede its arithmetic, in one record.

The structure has the plan, the parts chosen among alternatives, and every input that decided which
tiers, modules, formats, operators or algorithms exist. Under a given structure an evaluation is
arithmetic, on numbers and arrays alike. The inputs keep the values that decided, even if they are
set to other values later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.core.errors import DataError
from tco.core.inputs import Readings
from tco.scenario.choices import CHEAPEST

if TYPE_CHECKING:
    from tco.catalog.system_tree import System


class Structure(NamedTuple):
    """Structural choices of a scenario, with the inputs behind the choices."""

    system: str  # id
    variant: Mapping[str, str]  # variants of the system, by key
    texts: Mapping[str, str]  # inputs without a number: model, formats, tenure, ...
    alternatives: Mapping[str, str]  # part chosen at each place of the tree with alternatives
    plan: Any  # plan of the workload; None without one
    # inputs that decided: a number, or a boolean where only being above zero counts
    readings: Readings
    compared: tuple[str, ...] = ()  # inputs that were compared to choose the alternatives
    choices: Mapping[str, Any] = {}  # the choices in words, for people

    def check(self, system: System, text_at_path: Callable[[str], str]) -> None:
        """Raise `DataError` if the structure is that of other variants or other text inputs.

        Args:
            system: System of the scenario that is to hold the structure.
            text_at_path: Gives the text inputs of that scenario.

        """
        if dict(system.variant) != dict(self.variant):
            decided_system, current_system = (
                _system_with_variants(self.system, variant)
                for variant in (self.variant, system.variant)
            )
            raise DataError(f"structure: it is that of {decided_system}, not of {current_system}")
        for path, decided_text in self.texts.items():
            current_text = text_at_path(path)
            if current_text != decided_text and not current_text.startswith(CHEAPEST):
                raise DataError(
                    f"structure: {path} is {current_text!r}, it was {decided_text!r} when the "
                    "structure was decided; hold a plan with `plan`"
                )


def variants_under(
    structure: Structure | None, system: str, variant: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the variants to load a system with.

    Args:
        structure: Structure of an earlier result; None without one.
        system: Id of the system.
        variant: Requested variants by key; None takes those of the structure.

    Raises:
        DataError: The structure is that of another system.

    """
    if structure is None:
        return dict(variant or {})
    if system != structure.system:
        raise DataError(f"structure: it is that of {structure.system}, not of {system}")
    return dict(structure.variant if variant is None else variant)


def _system_with_variants(system: str, variant: Mapping[str, str]) -> str:
    return system + "".join(
        f"{'@' if not variant_index else ','}{variant_key}={variant_value}"
        for variant_index, (variant_key, variant_value) in enumerate(sorted(variant.items()))
    )


def plain_plan(plan: Any) -> Any:
    """Return a plan as tables of numbers and texts, by phase.

    Args:
        plan: A plan, a tuple of plans by phase, or the value of an axis.

    Returns:
        A dictionary by field for a named tuple; any other object unchanged.

    """
    if hasattr(plan, "_asdict"):
        return {
            field_name: plain_plan(field_value)
            for field_name, field_value in plan._asdict().items()
        }
    return plan
