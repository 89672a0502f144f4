"""Functions `evaluate` and `evaluate_draws` of `tco` in Python, which take relative settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from tco.catalog import load_catalogue
from tco.evaluation.relative_settings import is_relative, with_absolute_settings
from tco.evaluation.scenario_function import ScenarioFunction
from tco.scenario import evaluate as single
from tco.scenario import evaluate_samples
from tco.scenario.document import load_scenario
from tco.scenario.draw_case import is_array
from tco.scenario.structure import variants_under

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
NAMES = ("__name__", "__qualname__", "__doc__")  # pickles find the function in this module


def _with_relative_settings(
    function: Callable[Arguments, Returned],
) -> Callable[Arguments, Returned]:
    """Return the function of a scenario and its settings, which takes settings such as `+20%`."""
    signature = inspect.signature(function)

    @wraps(function, assigned=NAMES)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Returned:
        bound = signature.bind(*arguments, **named)
        options = bound.arguments
        settings = options.get("set") or {}
        if not any(map(is_relative, settings.values())):
            return function(*arguments, **named)
        catalogue = options.get("catalogue") or load_catalogue()
        named_scenario = options["scenario"]
        scenario = load_scenario(catalogue, named_scenario)
        arrays = {path: setting for path, setting in settings.items() if is_array(setting)}
        unchanged = ScenarioFunction(
            scenario,
            catalogue,
            {path: setting for path, setting in settings.items() if path not in arrays},
            variants_under(options.get("structure"), scenario.system, options.get("variant")),
            refuse=options.get("refuse", True),
        )
        name = scenario.name if named_scenario is scenario else str(named_scenario)
        options["set"] = {**arrays, **with_absolute_settings(name, unchanged).settings}
        return function(*bound.args, **bound.kwargs)

    return call


evaluate = _with_relative_settings(single.evaluate)
evaluate_draws = _with_relative_settings(evaluate_samples.evaluate_draws)
