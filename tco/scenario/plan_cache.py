"""On-disk cache of the plans that a search of a serving workload chose.

A search that reads none of a user's settings, such as prices, is the search without settings, and
is remembered as that one. Whatever the search read or decided is read and decided again where its
plans are remembered, so that notes and reports say the same.
"""

from __future__ import annotations

import json
import operator
from ast import literal_eval
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.core.array_cache import read_arrays, text_array, write_arrays
from tco.core.formula import in_use
from tco.core.provenance import making
from tco.core.types import AnyArray, JsonObject
from tco.performance.layer.operators import Operator
from tco.performance.serving.passes import PassResult
from tco.performance.serving.plan_choice import PlanChoice
from tco.performance.serving.plans import DecodePlan, PrefillPlan
from tco.scenario.memo import Walked, run_stage

if TYPE_CHECKING:
    from tco.core.inputs import Values
    from tco.performance.serving.result import Choices
    from tco.scenario.resolved import ResolvedScenario

PLANS = {"decode": DecodePlan, "prefill": PrefillPlan}
NUMBERS = "plans", "feasible", "margin", "reason"  # of a choice
NUMPY = "float64"


class SearchReads(NamedTuple):
    """Reads and decisions of a search."""

    inputs: list[str]  # paths, in the order of reading
    derived: dict[str, str]  # units by path
    asked_paths: list[str]  # of which only was asked whether they are set
    texts: dict[str, str]
    readings: dict[str, float]
    # module and name of a function, its paths and the representation of its further arguments
    decisions: list[tuple[str, str, list[str], str]]

    @classmethod
    def of_walk(cls, walk: Walked) -> SearchReads:
        """Return the reads of a walk in a form that JSON has."""
        decisions = [
            (decide.__module__, decide.__qualname__, [*paths], repr(rest))
            for decide, paths, rest in walk.readings.decisions
        ]
        inputs, derived, asked_paths = walk.reads
        return cls(
            [*inputs], derived, sorted(asked_paths), walk.texts, dict(walk.readings), decisions
        )

    def rests_on(self, path: str) -> bool:
        """Say whether a setting of a path may change the search."""
        return path in self.inputs or path in self.asked_paths or path in self.derived

    def repeat(self, inputs: ResolvedScenario, input_values: Values) -> None:
        """Read and decide the same again."""
        for path in self.inputs:
            input_values.input(path)
        input_values.derived_units |= self.derived
        input_values.looked.update(self.asked_paths)
        inputs.texts_used |= self.texts
        for path, reading in self.readings.items():
            if isinstance(reading, bool):
                input_values.exists(path)
            else:
                input_values.plain(path)
        for module_name, function_name, paths, arguments in self.decisions:
            decide = getattr(import_module(module_name), function_name)
            further = literal_eval(arguments)
            if decide is operator.gt and further == (0,):
                input_values.exists(paths[0])
            else:
                input_values.decided(decide, *paths, rest=further)


def recalled_choices(
    inputs: ResolvedScenario, input_values: Values, search: Callable[[], Choices]
) -> Choices:
    """Return the plans of a search, from the disk cache where they are known.

    Args:
        inputs: Resolved scenario of the search.
        input_values: Its inputs, as the search reads them.
        search: Chooses a plan for each phase among all plans.

    Returns:
        Choices by phase; those of the cache are without the matrix products of their passes.

    """
    if making.get() is not None or in_use() is not None or inputs.shape or inputs.saved_texts:
        return search()
    if inputs.structure is not None or not inputs.is_shipped:
        return search()
    read_before = {*input_values.inputs, *input_values.looked, *input_values.derived_units}

    def rests_on_settings(reads: SearchReads) -> bool:
        return any(path in read_before or reads.rests_on(path) for path in inputs.setting_values)

    # before the search, which adds to the readings
    keys = _key_of(inputs, is_set=False), _key_of(inputs, is_set=True)
    for is_set, cache_key in enumerate(keys):
        arrays = read_arrays([cache_key])
        if arrays is None:
            continue
        header = json.loads(arrays[0].tobytes(), object_hook=_unmarked_number)
        if header["reads"] is None:
            return search()
        reads = SearchReads(**header["reads"])
        if is_set or not rests_on_settings(reads):
            reads.repeat(inputs, input_values)
            remaining = iter(arrays[1:])
            return {
                phase: _unpacked_choice(phase, fields, remaining)
                for phase, fields in header["choices"].items()
            }
    walk = run_stage(inputs, input_values, search, ())
    searched_reads = SearchReads.of_walk(walk)
    is_repeatable = all(map(_is_repeatable, walk.readings.decisions))
    write_arrays(
        [keys[rests_on_settings(searched_reads)]],
        _packed(walk.stage_result, searched_reads if is_repeatable else None),
    )
    choices: Choices = walk.stage_result
    return choices


def _key_of(inputs: ResolvedScenario, *, is_set: bool) -> bytes:
    """Return the key of a search with or without the settings, beside the code and the data."""
    readings = [(path, reading, type(reading)) for path, reading in inputs.readings.items()]
    fields = (
        inputs.scenario,
        inputs.system.id,
        sorted(inputs.variant.items()),
        sorted(inputs.alternatives.items()),
        sorted(inputs.texts.items()),
        inputs.taken,
        sorted(readings, key=repr),
        sorted(inputs.setting_values.items()) if is_set else [],
    )
    return repr(fields).encode()


def _is_repeatable(decision: tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]]) -> bool:
    """Say whether a decision has a function with a name, and arguments of plain numbers."""
    decide, _, arguments = decision
    try:
        named_function = getattr(import_module(decide.__module__), decide.__qualname__)
        further = literal_eval(repr(arguments))
    except (AttributeError, SyntaxError, ValueError):
        return False
    return named_function is decide and further == arguments


def _packed(choices: Choices, reads: SearchReads | None) -> list[AnyArray]:
    """Return choices as arrays, after a header of their numbers and texts."""
    header: JsonObject = {"reads": reads and reads._asdict(), "choices": {}}
    arrays: list[AnyArray] = []
    for phase, choice in choices.items():
        axes = () if choice.axes is None else choice.axes
        header["choices"][phase] = {
            **{field: _marked(getattr(choice, field)) for field in NUMBERS},
            "plan": choice.plan,
            "place": choice.plan_index,
            "axes": len(axes),
            "pass": _pass_fields(choice.plan_pass),
        }
        if axes:
            arrays += [np.asarray(choice.best), *map(np.asarray, axes)]
    return [text_array(json.dumps(header, default=lambda number: number.item())), *arrays]


def _unpacked_choice(phase: str, fields: JsonObject, arrays: Iterator[AnyArray]) -> PlanChoice:
    """Return the choice of a phase, whose arrays come next."""
    plan_type = PLANS[phase]
    numbers = {field: fields[field] for field in NUMBERS}
    plan = None if fields["plan"] is None else plan_type(*fields["plan"])
    phase_pass = _pass_of_fields(fields["pass"])
    choice = PlanChoice(plan, **numbers, plan_pass=phase_pass, plan_index=tuple(fields["place"]))
    if not fields["axes"]:
        return choice
    best = next(arrays)
    axes: list[Any] = [next(arrays) for _ in range(fields["axes"])]
    columns = [axis if axis.ndim else axis.item() for axis in axes]
    return choice._replace(best=best, axes=plan_type(*columns))


def _pass_fields(pass_result: PassResult | None) -> list[Any] | None:
    """Return the fields of a pass, those of its operators without their products."""
    if pass_result is None:
        return None
    operators = [
        [*pass_operator._replace(products=None)] for pass_operator in pass_result.operators
    ]
    fields = pass_result._replace(operators=operators, single_prompt=None)  # type: ignore[arg-type]
    return [*map(_marked, fields[:-1]), _pass_fields(pass_result.single_prompt)]


def _pass_of_fields(fields: list[Any] | None) -> PassResult | None:
    if fields is None:
        return None
    time, memory, operators, per_token, per_prompt, single_prompt = fields
    restored = [_operator_of_fields(operator_fields) for operator_fields in operators]
    return PassResult(time, memory, restored, per_token, per_prompt, _pass_of_fields(single_prompt))


def _operator_of_fields(fields: list[Any]) -> Operator:
    return Operator._make(tuple(field) if isinstance(field, list) else field for field in fields)


def _marked(field: Any) -> Any:
    """Return a field with numbers of numpy marked, which divide by zero without an error."""
    if isinstance(field, np.float64):
        return {NUMPY: float(field)}
    return [*map(_marked, field)] if isinstance(field, list | tuple) else field


def _unmarked_number(fields: JsonObject) -> Any:
    return np.float64(fields[NUMPY]) if fields.keys() == {NUMPY} else fields
