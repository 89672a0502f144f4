"""Programs of one scenario: each structure that draws get is traced once and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.core.types import JsonMapping, Settings
from tco.performance.serving.plans import ServingPlan
from tco.scenario.candidate_plans import every_plan
from tco.scenario.compiled import CompiledStructures
from tco.scenario.document import Scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.memo import typed_key
from tco.scenario.network_choice import SWITCH
from tco.scenario.recording import record_scenario
from tco.scenario.resolve import resolve_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.structure import Structure

ALL_PLANS = "all"  # each draw chooses among all serving plans
STRUCTURES_KEPT = 2**10  # structures found under settings of a draw


class TracedStructure(NamedTuple):
    """Program that holds a structure, and where its results are in the program."""

    compiled: CompiledStructures
    step_indices: list[dict[str, int]]  # by result; an entry per training plan, else one entry
    unset_paths: set[str]  # inputs without a value; the trace is wrong once they are drawn


class ScenarioPrograms:
    """Programs of one scenario under settings of a single value each.

    Args:
        catalogue: Documents, parts and rows.
        scenario: Document of the scenario.
        fixed: Settings that all draws share, by input path.
        variant: Variants of the system by key.

    """

    def __init__(
        self,
        catalogue: Catalogue,
        scenario: Scenario,
        fixed: JsonMapping,
        variant: Mapping[str, str],
    ) -> None:
        self.catalogue = catalogue
        self.scenario = scenario
        self.fixed = fixed
        self.variant = variant
        self.lock = Lock()  # draws of several threads extend the same programs
        self.arithmetics: dict[Any, Any] = {}  # arithmetic of the metrics, by question
        self.own_inputs = self.inputs(None, {})  # under the fixed settings alone
        self.is_shipped = self.own_inputs.is_shipped
        self.unit_of = cache(self.own_inputs.unit_of)
        self.structure_under = lru_cache(STRUCTURES_KEPT)(
            lambda settings, plan: structure_in(self.evaluate(dict(settings), plan))
        )
        self._compiled_by_plans: dict[Any, CompiledStructures] = {}
        self._plans_of_operators: dict[Any, ServingPlan] = {}
        self._traced_structures: dict[Any, TracedStructure] = {}

    def inputs(self, structure: Structure | None, settings: Settings) -> ResolvedScenario:
        """Return the inputs under further settings, on a structure if one is given."""
        return resolve_scenario(
            self.catalogue, self.scenario, {**self.fixed, **settings}, dict(self.variant), structure
        )

    def evaluate(self, settings: Settings, plan: Any = None) -> Result:
        """Evaluate the scenario under further settings of one value each.

        Args:
            settings: Settings by input path.
            plan: Plan of the workload; None searches for the best one.

        """
        return evaluate(
            self.scenario,
            {**self.fixed, **settings},
            plan,
            catalogue=self.catalogue,
            variant=self.variant,
        )

    @cached_property
    def centre(self) -> Result:
        """The result with every input at its value."""
        return self.evaluate({})

    def traced_structure(
        self,
        inputs: Callable[[Structure, Iterable[str]], ResolvedScenario],
        structure: Structure,
        drawn_paths: frozenset[str],
        plans: Any,
    ) -> TracedStructure:
        """Return the program of a structure, with the step indices of its results.

        Args:
            inputs: Function that resolves the scenario on a structure, with the given drawn inputs
                set to the value of one draw.
            structure: Discrete choices of some draws.
            drawn_paths: Paths of the inputs that vary between draws.
            plans: Training plans to choose among, or `ALL_PLANS` of serving; None for the plan of
                the structure.

        """
        program_key: tuple[Any, ...] = structure_key(structure, plans)
        if program_key not in self._traced_structures:
            self._traced_structures[program_key] = self._trace(
                inputs(structure, ()), structure, plans
            )
        drawn_without_value = drawn_paths & self._traced_structures[program_key].unset_paths
        if drawn_without_value:
            program_key = *program_key, drawn_without_value
            if program_key not in self._traced_structures:
                self._traced_structures[program_key] = self._trace(
                    inputs(structure, drawn_without_value), structure, plans
                )
        return self._traced_structures[program_key]

    def _trace(self, inputs: ResolvedScenario, structure: Structure, plans: Any) -> TracedStructure:
        candidate_plans: list[Any] = plans
        if plans is None:
            candidate_plans = [_without_batch(structure.plan)]
        elif plans is ALL_PLANS:
            candidate_plans = [every_plan(inputs, self._plans_of_operators)]
        is_serving = isinstance(candidate_plans[0], ServingPlan)
        compiled = self._compiled_by_plans.setdefault(
            typed_key(tuple(candidate_plans)),
            CompiledStructures(candidate_plans[0] if is_serving else None),
        )
        recordings = [record_scenario(compiled.program, inputs, plan) for plan in candidate_plans]
        return TracedStructure(
            compiled,
            [recording.step_indices for recording in recordings],
            set().union(*(recording.unset_paths for recording in recordings)),
        )


def structure_in(evaluated: Result) -> Structure:
    """Return the structure of an evaluation."""
    if evaluated.structure is None:
        raise ValueError("a result that was not evaluated has no structure")
    return evaluated.structure


def structure_key(structure: Structure, plans: Any) -> tuple[Any, ...]:
    """Return a hashable key that tells a structure from the others of its scenario.

    Args:
        structure: Discrete choices of some draws.
        plans: Training plans to choose among, or `ALL_PLANS` of serving; None for the plan of the
            structure.

    """
    if plans is None:
        plans_key = _without_batch(structure.plan)
    elif plans is ALL_PLANS:
        plans_key = plans
    else:
        plans_key = tuple(plans)
    return (
        structure.texts.get(SWITCH),
        tuple(sorted(structure.alternatives.items())),
        tuple(sorted(structure.readings.items())),
        typed_key(plans_key),
    )


def _without_batch(plan: Any) -> Any:
    if isinstance(plan, ServingPlan) and plan.engines is None:
        return plan._replace(decode=plan.decode._replace(sequences=1.0))
    return plan
