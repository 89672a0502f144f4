"""Case of drawn inputs: the programs of a scenario, and arrays for some of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.inputs import Values, given_of
from tco.core.provenance import making
from tco.core.types import AnyArray, JsonMapping, JsonObject, Settings
from tco.performance.deployment import FLEET, OPERATED_BY
from tco.scenario.document import Scenario, load_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.scenario_programs import ScenarioPrograms, structure_in
from tco.scenario.structure import Structure, variants_under
from tco.scenario.workload import workload_kind

# Arrays of numbers with their unit, by input path.
ArraysWithUnits = Mapping[str, tuple[AnyArray, str]]
SCENARIOS_KEPT = 16  # scenarios under settings, whose programs a catalogue keeps


@dataclass(frozen=True, slots=True)
class Case:
    """The programs of a scenario under settings of one value, and the arrays of its draws."""

    programs: ScenarioPrograms
    drawn: ArraysWithUnits

    @property
    def count(self) -> int:
        """Number of draws."""
        return len(next(iter(self.drawn.values()))[0])

    def inputs_at_draw(self, draw: int, paths: Iterable[str]) -> dict[str, tuple[float, str]]:
        """Return the number and unit of some drawn inputs in one draw."""
        return {path: (float(self.drawn[path][0][draw]), self.drawn[path][1]) for path in paths}

    def at_one_value(self, structure: Structure, paths: Iterable[str]) -> ResolvedScenario:
        """Return the inputs on a structure, with some drawn inputs set to the value of a draw."""
        return self.programs.inputs(structure, self.inputs_at_draw(0, paths))

    @property
    def numbers_set(self) -> dict[str, float]:
        """Settings of one value that are numbers, in the units of their inputs."""
        inputs = self.programs.own_inputs
        input_values = inputs.values()
        return {
            path: float(input_values.input(path).value)
            for path in self.programs.fixed
            if path in inputs.setting_values and path not in self.drawn
        }

    def input_arrays(self) -> dict[str, AnyArray]:
        """Return an array over the draws for each drawn input and each setting of one value."""
        arrays = {path: array for path, (array, _) in self.drawn.items()}
        return arrays | {
            path: np.full(self.count, number) for path, number in self.numbers_set.items()
        }

    def settings_key(self, centre: Result | None) -> str:
        """Return the key of what decides the arithmetic: scenario, variant and some settings.

        A setting that only changes a number of the arithmetic is not part of the key. Such are
        prices, inputs that the scenario does not read, and figures of parts and software. A
        setting that decides structure is part of the key. Figures of parts and software also are
        for an operator other than a fleet, since they decide its plans.

        Args:
            centre: Result with every input at its value; None where the structure is held.

        """
        programs, numbers = self.programs, self.numbers_set
        read_inputs = {} if centre is None else centre.inputs
        readings = {} if centre is None else structure_in(centre).readings
        is_fleet = programs.own_inputs.text(OPERATED_BY) == FLEET

        def is_leaf(path: str) -> bool:
            is_unread = path not in read_inputs
            is_price = is_unread or read_inputs[path].unit.startswith("USD")
            is_figure = is_fleet and path.startswith(("parts.", "performance."))
            return path in numbers and path not in readings and (is_price or is_figure)

        settings = [
            (path, str(setting_text))
            for path, setting_text in sorted(programs.fixed.items())
            if not is_leaf(path)
        ]
        return repr((programs.scenario, sorted(programs.variant.items()), settings))

    def check_values(self, inputs: ResolvedScenario, input_values: Values) -> None:
        """Raise `DataError` for drawn values that are out of bounds or that no workload takes."""
        for path in self.drawn:
            input_values.input(path)
        workload_kind(inputs).judge(inputs, input_values)


def case_of_settings(
    catalogue: Catalogue,
    scenario: str | Path | Scenario,
    settings: Settings,
    structure: Structure | None,
    variant: Mapping[str, str] | None,
) -> Case:
    """Return the case of a scenario and its settings.

    Args:
        catalogue: Documents, parts and rows.
        scenario: Id, file or document of the scenario.
        settings: Settings by input path; those that are arrays are drawn.
        structure: Structure that all draws hold; None without one.
        variant: Variants of the system by key; None for those of the structure.

    Raises:
        DataError: No setting is an array, or the arrays differ in length.

    """
    document = load_scenario(catalogue, scenario)
    array_settings = {path: setting for path, setting in settings.items() if is_array(setting)}
    programs = programs_of(
        catalogue,
        document,
        {path: setting for path, setting in settings.items() if path not in array_settings},
        variants_under(structure, document.system, variant),
    )
    return Case(programs, _sampled_input_arrays(programs, array_settings))


def programs_of(
    catalogue: Catalogue, scenario: Scenario, fixed: JsonObject, variant: dict[str, str]
) -> ScenarioPrograms:
    """Return the programs of a scenario under settings; the catalogue keeps the latest ones."""
    cached_programs: dict[str, ScenarioPrograms] = catalogue.once("programs", dict)
    programs_key = repr((scenario, sorted(fixed.items()), sorted(variant.items()), making.get()))
    programs = cached_programs.pop(programs_key, None)
    if programs is None:
        programs = ScenarioPrograms(catalogue, scenario, fixed, variant)
    cached_programs[programs_key] = programs
    for old_key in list(cached_programs)[:-SCENARIOS_KEPT]:
        cached_programs.pop(old_key, None)
    return programs


def is_array(setting: Any) -> bool:
    """Return whether a setting is an array, with its unit or alone."""
    if isinstance(setting, str):
        return False
    has_unit = isinstance(setting, tuple) and len(setting) == 2
    try:
        return bool(np.ndim(setting[0] if has_unit else setting))
    except ValueError:  # rows of different lengths, which are an error later
        return False


def _sampled_input_arrays(
    programs: ScenarioPrograms, array_settings: JsonMapping
) -> ArraysWithUnits:
    """Return the arrays of settings with the units of their inputs.

    Raises:
        DataError: There is no array, or the arrays differ in length.

    """
    if not array_settings:
        raise DataError("nothing is drawn: give at least one input as an array")
    drawn = {
        path: (given_of(path, setting, programs.unit_of).array, programs.unit_of(path))
        for path, setting in array_settings.items()
    }
    shapes = {path: np.shape(array) for path, (array, _) in drawn.items()}
    if len({*shapes.values()}) > 1 or len(next(iter(shapes.values()))) != 1:
        shapes_text = ", ".join(
            f"{path} has {'x'.join(map(str, shape))}" for path, shape in shapes.items()
        )
        raise DataError(
            f"draws need one row of values for each input, all of one length: {shapes_text}"
        )
    return drawn
