"""A scenario as it was asked for, with its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.types import Settings

if TYPE_CHECKING:
    from tco.scenario.document import Scenario
    from tco.scenario.result import Result


class Evaluation(NamedTuple):
    """A scenario as it was asked for, and what it comes to."""

    name: str
    settings: Mapping[str, str]
    catalogue: Catalogue
    result: Result
    saved: bool = False  # a result that was kept, and cannot be asked anew
    variant: Mapping[str, str] = {}

    @property
    def scenario(self) -> Scenario:
        """The scenario as its file states it."""
        from tco.scenario.document import load_scenario

        return load_scenario(self.catalogue, self.name)

    def again(self, settings: Settings, plan: Any = None, **how: Any) -> Result:
        """Evaluate it with more inputs replaced."""
        from tco.scenario.evaluate import evaluate

        return evaluate(
            self.scenario,
            {**self.settings, **settings},
            plan,
            catalogue=self.catalogue,
            variant=self.variant,
            **how,
        )

    def metric(self, metric: str, result: Result | None = None) -> float:
        """Return a metric of its result, or of another of it; one without a value raises
        `DataError`.
        """
        found = result or self.result
        value = found.metrics[metric]
        if value is None:
            from tco.scenario.result import why_absent

            raise DataError(
                f"{metric} has no value for {self.scenario.name}: {why_absent(found, metric)}"
            )
        return float(value)
