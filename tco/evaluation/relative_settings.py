"""Settings relative to the value of an input, such as `+20%`, as absolute settings."""

from __future__ import annotations

import re
from typing import Any

from tco.core.errors import DataError
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction

RELATIVE = re.compile(r"([+-]\d+(?:\.\d+)?)\s*%")  # a change of an input, such as +20%


def is_relative(setting: Any) -> bool:
    """Say whether a setting is a change of an input in per cent."""
    return _change(setting) is not None


def _change(setting: Any) -> re.Match[str] | None:
    return RELATIVE.fullmatch(setting.strip()) if isinstance(setting, str) else None


def with_absolute_settings(scenario_name: str, function: ScenarioFunction) -> ScenarioFunction:
    """Replace settings such as `+20%` by the changed value of the input in this scenario.

    The price of a chip that the scenario lacks, and that only its parts give, is left as it is.

    Args:
        scenario_name: Name or path of the scenario.
        function: The scenario with all of its settings.

    Raises:
        DataError: The path is unknown, or the input is no number.

    """
    factors: dict[str, float] = {}
    fixed: dict[str, Any] = {}
    for path, setting in function.settings.items():
        if change := _change(setting):
            factors[path] = 1 + float(change[1]) / 100
        else:
            fixed[path] = setting
    if not factors:
        return function
    from tco.evaluation.varied_input import varied_input  # few settings are relative
    from tco.scenario.choices import DOCUMENTS, TEXTS

    unchanged = function._replace(settings=fixed)
    catalogue, variant = function.catalogue, function.variant
    evaluation = Evaluation(scenario_name, fixed, catalogue, unchanged.result({}), variant=variant)
    for path, factor in factors.items():
        if path in TEXTS or path in DOCUMENTS:
            raise DataError(
                f"--set: {path}={function.settings[path]}: {path} is no number; set it as a whole"
            )
        varied, _ = varied_input([evaluation], path)
        base_value, unit = varied.value, varied.unit
        if base_value is None:  # nothing here rests on it
            try:
                unread = unchanged.inputs({}).resolve(path)
            except DataError:
                continue
            base_value, unit = unread.value, unread.unit
        fixed[path] = f"{base_value * factor!r} {unit}"
    return function._replace(settings=fixed)
