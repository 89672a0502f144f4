"""A scenario that is asked many times with other inputs, and the metric that is read off: its own, or a ratio to a baseline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np

from tco.catalog import Catalogue
from tco.chain.absent import why_absent
from tco.chain.comparable import apart
from tco.chain.inputs import HEADLINE_SYSTEM, Scenario, load_scenario
from tco.chain.metrics import AGAINST_BASELINE, METRICS, perf_per_tco
from tco.chain.result import Result
from tco.chain.scenario import evaluate
from tco.foundation.errors import DataError, unknown
from tco.studies.asking import catalogue_for
from tco.studies.unmoved import unmoved

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """A scenario with the user's settings, and what it comes to with them."""

    catalogue: Catalogue
    scenario: Scenario
    settings: dict[str, str]
    variant: dict[str, str]
    centre: Result

    def evaluate(self, more: Mapping[str, Any], **how: Any) -> Result:
        """Evaluate the scenario with some inputs replaced."""
        return evaluate(self.scenario, {**self.settings, **more}, catalogue=self.catalogue, variant=self.variant, **how)

    def metric(self, result: Result, metric: str) -> Any:
        """Return a metric of an answer; one without a value raises `DataError`."""
        value = result.metrics[metric]
        if value is None:
            raise DataError(f"{metric} has no value for {self.scenario.name}: {why_absent(result, metric)}")
        return value


def side_of(name: str, data: Path | None, settings: Mapping[str, str], variant: Mapping[str, str]) -> Side:
    """Return a scenario by name, evaluated; settings that another scenario knows may say nothing to it."""
    catalogue = catalogue_for(name if isfile(name) else None, data)
    scenario = load_scenario(catalogue, name)
    ask = partial(evaluate, scenario, catalogue=catalogue, variant=variant)
    centre = ask(dict(settings))
    centre.notes += unmoved(centre, settings, settings, ask)
    return Side(catalogue, scenario, dict(settings), dict(variant), centre)


def sides_of(
    name: str, metric: str, data: Path | None, settings: Mapping[str, str], variant: Mapping[str, str], baseline: str | None
) -> tuple[str, Sequence[Side]]:
    """Return what is read off each side, and the sides: the scenario, and for a ratio the baseline it is to. An unknown metric raises `DataError`."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    own = side_of(name, data, settings, variant)
    if metric not in AGAINST_BASELINE:
        if baseline is not None:
            raise DataError(f"--baseline {baseline}: {metric} is held against none; {', '.join(AGAINST_BASELINE)} is")
        return metric, [own]
    other = side_of(baseline or HEADLINE_SYSTEM, data, settings, {})
    if (why := apart(own.centre, other.centre)) is not None:
        raise DataError(f"{metric} of {name} says nothing: {why}; --baseline names another")
    return AGAINST_BASELINE[metric], [own, other]


def joined(values: Sequence[Any]) -> Any:
    """Return the metric that the user asked for: that of the scenario itself, or the ratio of the baseline's to it."""
    own, *other = values
    return perf_per_tco(other[0], own) if other else own
