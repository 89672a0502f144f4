"""Scenario as a function from input values to metrics, its plan fixed or re-optimised.

Single values give a result, arrays give draws. What-ifs, break-even values, sweeps, sensitivity,
uncertainty and the curve over user speeds are all evaluations of this function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.types import Settings

if TYPE_CHECKING:
    from tco.core.inputs import Values
    from tco.scenario.beliefs import Dice, Range
    from tco.scenario.document import Scenario
    from tco.scenario.draw_case import ArraysWithUnits
    from tco.scenario.evaluate_samples import Draws
    from tco.scenario.resolved import ResolvedScenario
    from tco.scenario.result import Result
    from tco.scenario.structure import Structure


class ScenarioFunction(NamedTuple):
    """Scenario as a function from values by input path to metrics."""

    scenario: Scenario
    catalogue: Catalogue
    settings: Settings  # by input path; the values of a call replace them
    variant: Mapping[str, str] = {}
    structure: Structure | None = None  # fixed decisions; None decides anew at every point
    # plan, or axes of a plan by name, that is fixed without a structure; None searches the plan
    plan: Any = None
    ranges: Mapping[str, Range] = {}  # ranges of the drawn inputs, by path
    refuse: bool = True  # whether racks that do not fit their site raise an error
    workload: bool = True  # whether the workload is evaluated; False gives the cost alone

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the catalogue behind, which a worker reads where the function arrives."""
        from tco.evaluation.workers import folders_of

        catalogue_source = folders_of(self.catalogue), self.catalogue.anchors
        return _on_catalogue_here, (catalogue_source, self.scenario, *self[2:])

    def without(self, path: str) -> ScenarioFunction:
        """Return the function without the setting of an input."""
        settings = {
            setting_path: setting_value
            for setting_path, setting_value in self.settings.items()
            if setting_path != path
        }
        return self._replace(settings=settings)

    def inputs(self, input_values: Settings) -> ResolvedScenario:
        """Resolve the inputs at some values, on the fixed structure if there is one."""
        from tco.scenario.resolve import resolve_scenario

        settings = {**self.settings, **input_values}
        return resolve_scenario(
            self.catalogue, self.scenario, settings, dict(self.variant), self.structure
        )

    def result(self, input_values: Settings, trace: bool = False) -> Result:
        """Evaluate the scenario at one value of each input."""
        from tco.scenario.evaluate import evaluate

        return evaluate(
            self.scenario,
            {**self.settings, **input_values},
            self.plan if self.structure is None else None,
            structure=self.structure,
            catalogue=self.catalogue,
            variant=self.variant,
            trace=trace,
            refuse=self.refuse,
            workload=self.workload,
        )

    def searched(self, input_values: Settings) -> tuple[Result, frozenset[str]]:
        """Evaluate the scenario at one value of each input, and note what the plan rests on.

        Returns:
            Result, in which racks that do not fit their site have no cost; and the inputs that the
            search of the plan reads, none where the rates are stated.

        """
        from tco.scenario.evaluate import assemble_result
        from tco.scenario.run_chain import run

        inputs, readings, performance = self._rated(input_values)
        reads = _plan_inputs_of(inputs, readings)
        chain = run(inputs, readings, None, performance)
        return assemble_result(inputs, readings, chain, 0.0, trace=False, refuse=False), reads

    def plan_inputs(self) -> frozenset[str]:
        """Return the inputs that the search of the plan reads, none where the rates are stated."""
        inputs, readings, _ = self._rated({})
        return _plan_inputs_of(inputs, readings)

    def _rated(self, input_values: Settings) -> tuple[ResolvedScenario, Values, Any]:
        from tco.scenario.plan_records import plan_for
        from tco.scenario.workload import workload_kind

        inputs = self.inputs(input_values)
        readings = inputs.values()
        plan = plan_for(inputs.kind, self.plan)
        return inputs, readings, workload_kind(inputs).walk(inputs, readings, plan)

    def draws(
        self, input_values: ArraysWithUnits, solve: bool = True, speeds: Sequence[float] = ()
    ) -> Draws:
        """Evaluate the scenario at arrays of values, all of one length.

        Args:
            input_values: Array and unit of each input that differs between the points.
            solve: Whether the batch of a fixed plan is solved for the target.
            speeds: Further user speeds at which each point is evaluated, tokens/s per user.

        """
        from tco.scenario.evaluate_samples import evaluate_draws

        return evaluate_draws(
            self.scenario,
            {**self.settings, **input_values},
            structure=self.structure,
            catalogue=self.catalogue,
            variant=self.variant,
            solve=solve,
            speeds=speeds,
        )

    def sample(self, dice: Dice, speeds: Sequence[float] = ()) -> Draws:
        """Evaluate the scenario in random draws of all inputs with a range."""
        return self.draws(dice.settings(self.ranges), speeds=speeds)


def _plan_inputs_of(inputs: ResolvedScenario, readings: Values) -> frozenset[str]:
    return frozenset() if inputs.kind == "stated" else frozenset(readings.inputs)


def _on_catalogue_here(
    catalogue_source: tuple[tuple[str, ...], tuple[Any, ...]], scenario: Scenario, *fields: Any
) -> ScenarioFunction:
    from tco.evaluation.workers import catalogue_on

    return ScenarioFunction(scenario, catalogue_on(*catalogue_source), *fields)


class Evaluation(NamedTuple):
    """Scenario as the user asks for it, with its result."""

    name: str
    settings: Mapping[str, str]
    catalogue: Catalogue
    result: Result
    saved: bool = False  # whether the result was saved, and cannot be evaluated again
    variant: Mapping[str, str] = {}

    @property
    def scenario(self) -> Scenario:
        """Scenario as its file states it."""
        from tco.scenario.document import load_scenario

        return load_scenario(self.catalogue, self.name)

    def function(self, refuse: bool = True, workload: bool = True) -> ScenarioFunction:
        """Return the scenario as a function whose plan is re-optimised at every point.

        Args:
            refuse: Whether racks that do not fit their site are refused.
            workload: Whether a plan is searched; False asks for the cost of the chips only.

        """
        return ScenarioFunction(
            self.scenario,
            self.catalogue,
            self.settings,
            self.variant,
            refuse=refuse,
            workload=workload,
        )

    def drawn_function(self, hold: bool = False) -> ScenarioFunction:
        """Return the scenario as a function of the inputs that have a range.

        Args:
            hold: Whether the structure, such as the plan, stays as evaluated. The inputs that
                decide structure then keep their values.

        """
        from tco.scenario.beliefs import beliefs_of

        beliefs = beliefs_of(self.result)
        if not hold:
            return self.function()._replace(ranges=beliefs)
        ranges = {path: belief for path, belief in beliefs.items() if not belief.steps}
        return self.function()._replace(ranges=ranges, structure=self.result.structure)

    def with_settings(
        self, settings: Settings, refuse: bool = True, workload: bool = True
    ) -> Evaluation:
        """Evaluate the scenario again with more inputs replaced."""
        scenario_result = self.function(refuse, workload).result(settings)
        return self._replace(settings={**self.settings, **settings}, result=scenario_result)

    def why_undrawable(self, hold: bool = False) -> str | None:
        """Return the reason against drawing the inputs, or None.

        Args:
            hold: Whether the draws are to hold the plan of the evaluation.

        """
        from tco.scenario.beliefs import has_range

        scenario_result = self.result
        if self.saved:
            return "it was saved on other data, and has no draws; name its scenario"
        if scenario_result.texts["workload.kind"] == "stated":
            return "its rates are stated, not computed: nothing of them is drawn"
        if hold and scenario_result.plan is None:
            return (
                "no plan meets the target at the centre, so there is none to hold: "
                f"{scenario_result.serving.reason if scenario_result.serving else ''}"
            )
        if scenario_result.costless:
            return f"it {scenario_result.costless}"
        has_draws = any(has_range(result_input) for result_input in scenario_result.inputs.values())
        return None if has_draws else "no input of it has a range"

    def decides_structure(self, path: str) -> bool:
        """Say whether the number of an input decides structure.

        The low and the high of such an input have structures of their own.
        """
        structure = self.result.structure
        return structure is not None and not isinstance(structure.readings.get(path, True), bool)

    def metric(self, metric: str, scenario_result: Result | None = None) -> float:
        """Return a metric of the result, or of another result of the scenario.

        Raises:
            DataError: The metric has no value.

        """
        evaluated = scenario_result or self.result
        metric_value = evaluated.metrics[metric]
        if metric_value is None:
            from tco.scenario.result import why_absent

            why = why_absent(evaluated, metric)
            raise DataError(f"{metric} has no value for {self.scenario.name}: {why}")
        return float(metric_value)
