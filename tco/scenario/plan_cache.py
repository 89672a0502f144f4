"""On-disk cache of the plans that a search of a serving workload chose.

A search that reads none of the user's settings gives the plans of the search without settings, so
it is cached as that one. Prices are such settings. A cached search repeats its reads and decisions,
so that notes and reports are the same.
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
from tco.scenario.memo import StageResult, run_stage

if TYPE_CHECKING:
    from tco.core.inputs import Values
    from tco.performance.serving.result import Choices
    from tco.scenario.resolved import ResolvedScenario

PLANS = {"decode": DecodePlan, "prefill": PrefillPlan}
CHOICE_FIELDS = ("plans", "feasible", "margin", "reason")  # fields of a choice that JSON has
NUMPY_MARK = "float64"  # key that marks a number of numpy in JSON


class SearchReads(NamedTuple):
    """Reads and decisions of a search, in a form that JSON has."""

    inputs: list[str]  # paths of inputs, in the order of reading
    derived: dict[str, str]  # units of derived inputs, by path
    asked_paths: list[str]  # inputs of which the search only asked whether they are set
    texts: dict[str, str]  # inputs without a number
    readings: dict[str, float]  # inputs that decided structure
    # for each decision: module and name of its function, input paths, and further arguments as text
    decisions: list[tuple[str, str, list[str], str]]

    @classmethod
    def of_search(cls, search_result: StageResult) -> SearchReads:
        """Return the reads of a search that has run as a stage."""
        decisions = [
            (decide.__module__, decide.__qualname__, [*paths], repr(arguments))
            for decide, paths, arguments in search_result.readings.decisions
        ]
        inputs, derived, asked_paths = search_result.reads
        return cls(
            inputs=[*inputs],
            derived=derived,
            asked_paths=sorted(asked_paths),
            texts=search_result.texts,
            readings=dict(search_result.readings),
            decisions=decisions,
        )

    def is_affected_by(self, path: str) -> bool:
        """Return whether a setting of a path may change the search."""
        return path in self.inputs or path in self.asked_paths or path in self.derived

    def repeat(self, inputs: ResolvedScenario, input_values: Values) -> None:
        """Repeat the reads and decisions of the search.

        Args:
            inputs: Scenario that records the texts.
            input_values: Inputs that record the reads and decisions.

        """
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
            further_arguments = literal_eval(arguments)
            if decide is operator.gt and further_arguments == (0,):
                input_values.exists(paths[0])
            else:
                input_values.decided(decide, *paths, rest=further_arguments)


def recalled_choices(
    inputs: ResolvedScenario, input_values: Values, search: Callable[[], Choices]
) -> Choices:
    """Return the plans of a search, from the disk cache where they are known.

    Args:
        inputs: Resolved scenario of the search.
        input_values: Inputs that the search reads.
        search: Chooses a plan for each phase among all plans.

    Returns:
        Choices by phase. The passes of cached choices lack their matrix products.

    """
    if making.get() is not None or in_use() is not None or inputs.shape or inputs.saved_texts:
        return search()
    if inputs.structure is not None or not inputs.is_shipped:
        return search()
    earlier_reads = {*input_values.inputs, *input_values.looked, *input_values.derived_units}

    def depends_on_settings(reads: SearchReads) -> bool:
        return any(
            path in earlier_reads or reads.is_affected_by(path) for path in inputs.setting_values
        )

    # The search adds to the readings, so the keys are made before it.
    key_without_settings = _search_key(inputs, with_settings=False)
    key_with_settings = _search_key(inputs, with_settings=True)
    for cache_key in (key_without_settings, key_with_settings):
        arrays = read_arrays([cache_key])
        if arrays is None:
            continue
        header = json.loads(arrays[0].tobytes(), object_hook=_unmarked_number)
        if header["reads"] is None:
            return search()
        reads = SearchReads(**header["reads"])
        if cache_key == key_with_settings or not depends_on_settings(reads):
            reads.repeat(inputs, input_values)
            remaining = iter(arrays[1:])
            return {
                phase: _unpacked_choice(phase, fields, remaining)
                for phase, fields in header["choices"].items()
            }
    search_result = run_stage(inputs, input_values, search, ())
    reads = SearchReads.of_search(search_result)
    is_repeatable = all(map(_is_repeatable, search_result.readings.decisions))
    write_arrays(
        [key_with_settings if depends_on_settings(reads) else key_without_settings],
        _packed_choices(search_result.stage_value, reads if is_repeatable else None),
    )
    choices: Choices = search_result.stage_value
    return choices


def _search_key(inputs: ResolvedScenario, *, with_settings: bool) -> bytes:
    """Return the cache key of a search; the cache adds code and data to every key."""
    readings = [(path, reading, type(reading)) for path, reading in inputs.readings.items()]
    fields = (
        inputs.scenario,
        inputs.system.id,
        sorted(inputs.variant.items()),
        sorted(inputs.alternatives.items()),
        sorted(inputs.texts.items()),
        inputs.training_chips,
        sorted(readings, key=repr),
        sorted(inputs.setting_values.items()) if with_settings else [],
    )
    return repr(fields).encode()


def _is_repeatable(decision: tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]]) -> bool:
    """Return whether JSON can name the function of a decision and hold its arguments."""
    decide, _, arguments = decision
    try:
        named_function = getattr(import_module(decide.__module__), decide.__qualname__)
        parsed_arguments = literal_eval(repr(arguments))
    except (AttributeError, SyntaxError, ValueError):
        return False
    return named_function is decide and parsed_arguments == arguments


def _packed_choices(choices: Choices, reads: SearchReads | None) -> list[AnyArray]:
    """Return a header with the numbers and texts of choices, followed by their arrays."""
    header: JsonObject = {"reads": reads and reads._asdict(), "choices": {}}
    arrays: list[AnyArray] = []
    for phase, choice in choices.items():
        axes = () if choice.axes is None else choice.axes
        header["choices"][phase] = {
            **{field: _mark_numbers(getattr(choice, field)) for field in CHOICE_FIELDS},
            "plan": choice.plan,
            "place": choice.plan_index,
            "axes": len(axes),
            "pass": _pass_fields(choice.plan_pass),
        }
        if axes:
            arrays += [np.asarray(choice.best), *map(np.asarray, axes)]
    return [text_array(json.dumps(header, default=lambda number: number.item())), *arrays]


def _unpacked_choice(phase: str, fields: JsonObject, arrays: Iterator[AnyArray]) -> PlanChoice:
    """Return the choice of a phase; its arrays are the next ones."""
    plan_type = PLANS[phase]
    numbers = {field: fields[field] for field in CHOICE_FIELDS}
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
    """Return the fields of a pass, with operators that lack their matrix products."""
    if pass_result is None:
        return None
    operators = [
        [*pass_operator._replace(products=None)] for pass_operator in pass_result.operators
    ]
    fields = pass_result._replace(operators=operators, single_prompt=None)  # type: ignore[arg-type]
    return [*map(_mark_numbers, fields[:-1]), _pass_fields(pass_result.single_prompt)]


def _pass_of_fields(fields: list[Any] | None) -> PassResult | None:
    if fields is None:
        return None
    time, memory, operators, per_token, per_prompt, single_prompt = fields
    restored = [_operator_of_fields(operator_fields) for operator_fields in operators]
    return PassResult(time, memory, restored, per_token, per_prompt, _pass_of_fields(single_prompt))


def _operator_of_fields(fields: list[Any]) -> Operator:
    return Operator._make(tuple(field) if isinstance(field, list) else field for field in fields)


def _mark_numbers(field: Any) -> Any:
    """Return a field in which numbers of numpy are marked.

    They divide by zero without an error, so they must come back as numbers of numpy.
    """
    if isinstance(field, np.float64):
        return {NUMPY_MARK: float(field)}
    return [*map(_mark_numbers, field)] if isinstance(field, list | tuple) else field


def _unmarked_number(fields: JsonObject) -> Any:
    return np.float64(fields[NUMPY_MARK]) if fields.keys() == {NUMPY_MARK} else fields
