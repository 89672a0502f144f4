"""The structure of a scenario: all that is decided before anything is computed, in one record.

A plan, a part where the tree lists alternatives, and every input that was read as a plain number to decide which tiers, modules,
formats, operators or algorithms exist. With it given everything that follows is arithmetic, on numbers and arrays alike: what an
input was when the structure was decided still decides, whatever the input is now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.foundation.errors import DataError

if TYPE_CHECKING:
    from tco.catalog.systems import System
    from tco.chain.inputs import Inputs
    from tco.chain.scenario import Chain


class Structure(NamedTuple):
    """What the answer to a scenario is made of, and the inputs that decided it."""

    system: str
    variant: Mapping[str, str]
    texts: Mapping[str, str]  # inputs that are no numbers: model, formats, tenure, ...
    alternatives: Mapping[str, str]  # place of the tree -> the part that stands there
    plan: Any  # of the workload, as an evaluation found it; none where there is none
    readings: Mapping[str, float]  # inputs that were read as plain numbers to decide
    choices: Mapping[str, Any] = {}  # what they came to, for people

    def check(self, system: System, text: Callable[[str], str]) -> None:
        """Refuse to stand for another system, or for other inputs that are no numbers."""
        if system.id != self.system or dict(system.variant) != dict(self.variant):
            own, other = (named(name, variant) for name, variant in ((self.system, self.variant), (system.id, system.variant)))
            raise DataError(f"structure: it is that of {own}, not of {other}")
        for path, decided in self.texts.items():
            if text(path) != decided:
                raise DataError(f"structure: {path} is {text(path)!r}, it was {decided!r} when the structure was decided; hold a plan with `plan`")


def named(system: str, variant: Mapping[str, str]) -> str:
    """Return a system with its variants, as a command line names it."""
    return system + "".join(f"{'@' if not place else ','}{key}={value}" for place, (key, value) in enumerate(sorted(variant.items())))


def structure_of(inputs: Inputs, chain: Chain) -> Structure:
    """Return the structure that a chain was walked on: what it decided on its way, and what that came to."""
    return Structure(
        inputs.system.id,
        inputs.system.variant,
        dict(inputs.texts_used),
        inputs.alternatives,
        chain.serving.plan,
        dict(inputs.readings),
        {},
    )
