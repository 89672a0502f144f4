"""A scenario as its draws ask for it: all that an evaluation of them rests on, small enough to travel to a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tco.chain.draws import Draws, evaluate_draws
from tco.chain.inputs import Scenario, load_scenario
from tco.foundation.errors import DataError
from tco.studies.asking import Asked
from tco.studies.ranges import Array, Dice, Range, ranges_of, settings_of

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.chain.result import Result
    from tco.chain.structure import Structure


@dataclass(frozen=True, slots=True)
class Drawable:
    """A scenario whose inputs are drawn."""

    scenario: Scenario
    catalogue: Catalogue
    settings: Mapping[str, str]
    structure: Structure | None  # that draws hold; none: each decides its own
    ranges: dict[str, Range]
    variant: Mapping[str, str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels without its catalogue, which is read where it arrives."""
        from tco.studies.sweep.ground import folders_of

        return arrived, (self.scenario, folders_of(self.catalogue), dict(self.settings), self.structure, self.ranges, dict(self.variant))

    def evaluated(self, settings: Mapping[str, tuple[Array, str]]) -> Draws:
        """Evaluate it for many values of its inputs."""
        every = {**self.settings, **settings}
        return evaluate_draws(self.scenario, every, structure=self.structure, catalogue=self.catalogue, variant=self.variant)

    def drawn(self, dice: Dice) -> Draws:
        """Evaluate it in the draws that some dice give."""
        return self.evaluated(settings_of(self.ranges, {path: dice.places(one) for path, one in self.ranges.items()}))


def arrived(
    scenario: Scenario,
    folders: tuple[str, ...],
    settings: dict[str, str],
    structure: Structure | None,
    ranges: dict[str, Range],
    variant: dict[str, str],
) -> Drawable:
    """Return what has travelled, on the data that is found here."""
    from tco.studies.sweep.ground import catalogue_on

    return Drawable(scenario, catalogue_on(folders), settings, structure, ranges, variant)


def drawable(asked: Asked, hold: bool = False) -> Drawable:
    """Return a scenario ready to be drawn, with `hold` on its own plan; what has nothing to draw raises `DataError` with the reason."""
    if (why := why_undrawable(asked, hold)) is not None:
        raise DataError(f"{asked.name}: {why}")
    return drawable_of(load_scenario(asked.catalogue, asked.name), asked.catalogue, asked.settings, asked.result, hold)


def drawable_of(
    scenario: Scenario, catalogue: Catalogue, settings: Mapping[str, str], result: Result, hold: bool, variant: Mapping[str, str] | None = None
) -> Drawable:
    """Return a scenario ready to be drawn. What decides structure stays as it is where that is held: a plan is one of so many chips."""
    ranges = {path: one for path, one in ranges_of(result).items() if not (hold and one.steps)}
    return Drawable(scenario, catalogue, settings, result.structure if hold else None, ranges, variant or {})


def why_undrawable(asked: Asked, hold: bool = False) -> str | None:
    """Say why a scenario cannot be drawn, if so."""
    result = asked.result
    if asked.saved:
        return "it was saved on other data, and has no draws; name its scenario"
    if result.texts["workload.kind"] == "stated":
        return "its rates are stated, not computed: nothing of them is drawn"
    if hold and result.plan is None:
        return f"no plan meets the target at the centre, so there is none to hold: {result.serving.reason if result.serving else ''}"
    if result.costless:
        return f"it {result.costless}"
    return None if ranges_of(result) else "no input of it has a range"
