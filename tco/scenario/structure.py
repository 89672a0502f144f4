"""The structure of a scenario: all that is decided before anything is computed, in one record.

A plan, a part where the tree lists alternatives, and every input that was read as a plain number to
decide which tiers, modules, formats, operators or algorithms exist. With it given everything that
follows is arithmetic, on numbers and arrays alike: what an input was when the structure was decided
still decides, whatever the input is now.
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

    def check(self, system: System, text_at_path: Callable[[str], str]) -> None:
        """Refuse to hold for other variants of the system, or for other text inputs."""
        if dict(system.variant) != dict(self.variant):
            decided_system, current_system = (
                _system_with_variants(self.system, variant)
                for variant in (self.variant, system.variant)
            )
            raise DataError(f"structure: it is that of {decided_system}, not of {current_system}")
        for path, decided in self.texts.items():
            if (current_text := text_at_path(path)) != decided and not current_text.startswith(
                CHEAPEST
            ):
                raise DataError(
                    f"structure: {path} is {current_text!r}, it was {decided!r} when the structure "
                    "was decided; hold a plan with `plan`"
                )


def variants_under(
    structure: Structure | None, system: str, variant: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the variants to load a system with: given ones, else those of the structure.

    Args:
        structure: Decisions of an earlier result; None for none.
        system: Id of the system.
        variant: Variants that are asked for.

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
