"""The program of the page: scenarios on all plans and perspectives, with JavaScript formulas.

What the script of the page moves are leaves of it; among the plans the script chooses anew, by the
same results as the draws of a range are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from tco.compile.lower import BATCH_PATH
from tco.compile.program import PlanNumbers, Program
from tco.core.equation import Symbol, expression
from tco.core.formula import REGISTRY, Formula, normal_form
from tco.core.provenance import Input
from tco.core.trace import recorded_by
from tco.core.types import JsonObject
from tco.evaluation.chip_prices import chip_of, chip_parts_price
from tco.evaluation.rent_statistics import with_one_rent_statistic
from tco.evaluation.scenario_function import Evaluation
from tco.performance.serving.plans import SEQUENCES, ServingPlan
from tco.report.cells import GROSS, GROSS_HOUR, HOUR, TOKENS
from tco.scenario.candidate_plans import every_plan
from tco.scenario.metrics import gross_token_cost
from tco.scenario.recording import METRIC, record_scenario
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result import Result
from tco.scenario.workload import job_on
from tco.system.bill import bill_of_materials

# operation -> how it is written; every operation keeps its brackets, so that what is rounded where
# stays as it is
WRITTEN = {
    **{sign: f"({{}}{sign}{{}})" for sign in ("<", "<=", ">", ">=", "+", "-", "*", "/")},
    **{
        "**": "Math.pow({},{})",
        "neg": "(-{})",
        "max": "Math.max({},{})",
        "min": "Math.min({},{})",
        "select": "({}?{}:{})",
    },
    **{
        function_name: f"Math.{function_name}({{}})"
        for function_name in ("sqrt", "exp", "expm1", "log", "log1p", "log2", "ceil", "floor")
    },
    "normal_cdf": "normal_cdf({})",
}
GATHERED = {  # the sum in the order of its terms, as the engine adds them
    "total": "(...terms)=>terms.reduce((sum,term)=>sum+term,0)",
    "least": "(...terms)=>terms.reduce((one,other)=>Math.min(one,other))",
    "greatest": "(...terms)=>terms.reduce((one,other)=>Math.max(one,other))",
}
WHO = "terms.perspective"
TRAINED = 4  # plans of a training job that the page chooses among
BEFORE_REBATES = (TOKENS, GROSS_HOUR, HOUR)  # what the cost of tokens before rebates follows from
DIVIDED = ("TP", "CP", "PP")  # how the chips of an engine divide: by tensors, by context, by stages
WHOLE = 2**53  # below which a float is a whole number to the last digit


# ---------------------------------------------------------------- formulas
def _javascript_expression(symbol_value: Any) -> str:
    if not isinstance(symbol_value, Symbol):
        return (
            repr(float(symbol_value)).removesuffix(".0")
            if symbol_value >= 0
            else f"({float(symbol_value)!r})"
        )
    if symbol_value.operation == "name":
        return _script_parameter_name(symbol_value.arguments[0])
    return WRITTEN[symbol_value.operation].format(
        *map(_javascript_expression, symbol_value.arguments)
    )


def _script_parameter_name(parameter: str) -> str:
    return f"${parameter}"


def function(formula_name: str) -> str:
    """Return a formula or a gathering by name as a function of its parameters, in their order."""
    if formula_name in GATHERED:
        return GATHERED[formula_name]
    formula = REGISTRY[formula_name]
    parameters = ",".join(map(_script_parameter_name, formula.parameters))
    return f"({parameters})=>{_javascript_expression(expression(formula))}"


def script(formula_names: Iterable[str]) -> str:
    """Return the functions of formulas in JavaScript, in the order of the page's numbering."""
    lines = [f"  {function(formula_name)}, // {formula_name}" for formula_name in formula_names]
    parameter = _script_parameter_name("x")
    normal_cdf = _javascript_expression(normal_form(Symbol("name", "x")))
    head = f"const normal_cdf = {parameter} => {normal_cdf};"
    return "\n".join([head, "const FORMULAS = [", *lines, "];"])


# ---------------------------------------------------------------- recording
class Recording(Program):
    """The program of all scenarios of a page, with where its inputs come from."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Input] = {}

    def read(self, leaf_input: Input) -> Any:
        """The reading of a program, which remembers what it has read."""
        self.given.setdefault(leaf_input.path, leaf_input)
        return super().read(leaf_input)


class PayerScenario(NamedTuple):
    """A scenario under one perspective: the steps of its results, a set per plan with own steps."""

    results: Sequence[Mapping[str, int]]
    plans: Sequence[str]  # in words
    racks: float  # that a scale-up domain fills; zero where none stands anywhere
    none: str  # why it has no cost, whatever is moved
    # inputs that are not moved here: those that decide what exists, and that stand for what they
    # would be computed from
    fixed: Set[str]


def _payers_of(evaluations: Sequence[Evaluation]) -> list[dict[str, Evaluation]]:
    """Return every scenario by perspective, its own first; renters pay by one statistic."""
    payers_by_scenario = [{evaluation.result.texts[WHO]: evaluation} for evaluation in evaluations]
    for who in dict.fromkeys(
        who for evaluation in evaluations for who in evaluation.catalogue.ids("perspectives")
    ):
        indexed_evaluations = [
            (scenario_index, evaluation)
            for scenario_index, evaluation in enumerate(evaluations)
            if evaluation.result.bill and who not in payers_by_scenario[scenario_index]
        ]
        paid = [
            evaluation.with_settings({WHO: who}, refuse=False)
            for _, evaluation in indexed_evaluations
        ]
        for (scenario_index, _), payer_evaluation in zip(
            indexed_evaluations, with_one_rent_statistic(paid), strict=True
        ):
            payers_by_scenario[scenario_index][who] = payer_evaluation
    return payers_by_scenario


def _ways_of(
    recording: Recording, paid: Mapping[str, Evaluation]
) -> dict[str, list[PayerScenario]]:
    """Return a scenario by perspective, as it is and with a price of the whole chip.

    The latter applies where the chip's price is built up from parts.
    """
    own_evaluation, payer_group = next(iter(paid.values())), {}
    price = f"parts.{chip_of(own_evaluation.catalogue, own_evaluation.result)}.price"
    for who, evaluation in paid.items():
        payer_scenario = _record_payer_scenario(recording, evaluation, {}, evaluation.result)
        payer_group[who] = [payer_scenario._replace(fixed=payer_scenario.fixed - {price})]
        if (
            price in payer_scenario.fixed
            and not payer_scenario.none
            and (chip_price := chip_parts_price(evaluation)) is not None
        ):
            price_settings = {price: f"{chip_price.value!r} USD"}
            recording.given.setdefault(price, chip_price)
            payer_group[who].append(
                _record_payer_scenario(
                    recording,
                    evaluation,
                    price_settings,
                    evaluation.function(refuse=False).result(price_settings),
                )
            )
    return payer_group


def _record_payer_scenario(
    recording: Recording,
    evaluation: Evaluation,
    settings: Mapping[str, str],
    scenario_result: Result,
) -> PayerScenario:
    """Record a scenario with some settings."""
    structure, none = scenario_result.structure, ""
    inputs = evaluation.function()._replace(structure=structure).inputs(settings)
    plans, plan_outputs = _recorded_plans(inputs, scenario_result), []
    fixed = (
        {
            path
            for path, reading in structure.readings.items()
            if not reading or not isinstance(reading, bool)
        }
        if structure
        else set()
    )
    for plan in plans:
        output_steps, cut = record_scenario(recording, inputs, plan)
        plan_outputs.append(output_steps | _record_extra_outputs(recording, inputs, output_steps))
        fixed |= cut
    if f"{METRIC}{HOUR}" not in plan_outputs[0]:
        missed = "it has no cost" if scenario_result.bill is not None else none
        none = next(
            (
                note
                for note in scenario_result.notes
                if note.startswith(("does not fit", "cannot be priced"))
            ),
            missed,
        )
    return PayerScenario(
        plan_outputs, _decode_plan_labels(plans[0]), inputs.system.racks, none, fixed
    )


def _recorded_plans(inputs: ResolvedScenario, scenario_result: Result) -> Sequence[Any]:
    """Return the plans recorded for a scenario, by kind of workload.

    Serving has a single entry with all plans. Training has its quickest plans. Any other workload
    has the plan of `scenario_result`.
    """
    if inputs.kind == "serving":
        return [every_plan(inputs, {})]
    if inputs.kind == "training" and scenario_result.plan is not None:
        from tco.performance.training.search import search_training_plans

        job, reached, _ = job_on(inputs, inputs.values())
        return [
            candidate.plan for candidate in search_training_plans(job, reached, count=TRAINED).top
        ]
    return [scenario_result.plan]


def _decode_plan_labels(plan: Any) -> list[str]:
    """Return the plans that decode in words: the chips of an engine, and how they divide."""
    if not isinstance(plan, ServingPlan):
        return []
    plan_rows = zip(
        *(
            np.ravel(axis).tolist()
            for axis in np.broadcast_arrays(*plan.decode[: 1 + len(DIVIDED)])
        ),
        strict=True,
    )
    return [
        ", ".join(
            [
                f"{plan_row[0]:g} chips",
                *(
                    f"{axis_name} {size:g}"
                    for axis_name, size in zip(DIVIDED, plan_row[1:], strict=True)
                    if size > 1
                ),
            ]
        )
        for plan_row in plan_rows
    ]


def _record_extra_outputs(
    recording: Recording, inputs: ResolvedScenario, output_steps: Mapping[str, int]
) -> dict[str, int]:
    """Record what the page needs beside the metrics.

    It is what a domain draws and the position of a rack takes, and what tokens cost before rebates.
    """
    extra_outputs: JsonObject = {}
    with recorded_by(recording):
        if f"{METRIC}{HOUR}" in output_steps:
            input_values = inputs.values(recording.read)
            bill = bill_of_materials(
                inputs.system, input_values, inputs.catalogue, inputs.text("terms.yield")
            )
            extra_outputs |= {"power": bill.power, "position": input_values["site.rack_kw_max"]}
        if all(f"{METRIC}{metric_name}" in output_steps for metric_name in BEFORE_REBATES):
            extra_outputs[f"{METRIC}{GROSS}"] = gross_token_cost(
                *(
                    recording.values[output_steps[f"{METRIC}{metric_name}"]]
                    for metric_name in BEFORE_REBATES
                )
            )
        return {
            output_name: recording.step_index(output_value)
            for output_name, output_value in extra_outputs.items()
        }


# ---------------------------------------------------------------- what the script is given
class PageProgram(NamedTuple):
    """Program of the page's script: document, function names and input cells.

    The document has the cells and lines. `inputs` has the positions of the inputs among the cells.
    """

    document: JsonObject
    functions: list[str]  # names, as the lines number them
    # cells of an input by path, several where ways have values of their own
    inputs: dict[str, list[int]]
    leaf_inputs: Mapping[str, Input]


def program_of(
    evaluations: Sequence[Evaluation], shown_metrics: Container[str], more: Iterable[str]
) -> PageProgram:
    """Return the program of scenarios, with the shown metrics and `more` functions."""
    recording = Recording()
    payer_groups = [_ways_of(recording, paid) for paid in _payers_of(evaluations)]
    payer_scenarios = [
        payer_scenario
        for payer_group in payer_groups
        for price_variants in payer_group.values()
        for payer_scenario in price_variants
    ]
    outputs = [
        step_index
        for payer_scenario in payer_scenarios
        for names in payer_scenario.results
        for step_index in _script_outputs(names, shown_metrics).values()
    ]
    needed = sorted(recording.dependencies(outputs))
    leaves, steps = (
        [step_index for step_index in needed if (recording.steps[step_index] is None) is leaf]
        for leaf in (True, False)
    )
    cell = {step_index: cell_index for cell_index, step_index in enumerate([*leaves, *steps])}
    lines, functions = _number_lines(recording, steps, cell)
    for function_name in more:
        functions.setdefault(function_name, len(functions))
    fixed = set[str]().union(*(payer_scenario.fixed for payer_scenario in payer_scenarios))
    inputs = {
        path: [cell[step_index] for step_index in step_indices if step_index in cell]
        for path, step_indices in recording.inputs.items()
        if path not in fixed
    }
    # the same whoever pays
    plans = list(dict.fromkeys(tuple(payer_scenario.plans) for payer_scenario in payer_scenarios))
    document = {
        "leaves": [_script_number(recording.leaves[step_index]) for step_index in leaves],
        "lines": lines,
        "batch": next(iter(inputs.pop(BATCH_PATH, [])), None),
        "most": SEQUENCES[-1],
        "plans": plans,
        "ways": [
            {
                who: [
                    _payer_scenario_document(payer_scenario, cell, shown_metrics, plans)
                    for payer_scenario in price_variants
                ]
                for who, price_variants in payer_group.items()
            }
            for payer_group in payer_groups
        ],
    }
    return PageProgram(
        document,
        list(functions),
        {path: cells for path, cells in inputs.items() if cells},
        recording.given,
    )


def _number_lines(
    recording: Recording, steps: Sequence[int], cell: Mapping[int, int]
) -> tuple[list[tuple[int, ...]], dict[str, int]]:
    """Return the function and cells of each step, and the numbers of functions."""
    lines, functions = [], dict[str, int]()
    for step_index in steps:
        step: Any = recording.steps[step_index]
        function_name = step.function.name if isinstance(step.function, Formula) else step.function
        lines.append(
            (
                functions.setdefault(function_name, len(functions)),
                *(cell[argument_index] for argument_index in step.sources),
            )
        )
    return lines, functions


def _script_outputs(
    output_steps: Mapping[str, int], shown_metrics: Container[str]
) -> dict[str, int]:
    return {
        output_name.removeprefix(METRIC): step_index
        for output_name, step_index in output_steps.items()
        if not output_name.startswith(METRIC) or output_name.removeprefix(METRIC) in shown_metrics
    }


def _payer_scenario_document(
    payer_scenario: PayerScenario,
    cell: Mapping[int, int],
    shown_metrics: Container[str],
    plans: Sequence[tuple[str, ...]],
) -> JsonObject:
    """Return a way as the script reads it, its plans by their place among those of all."""
    plan_outputs = [
        {
            output_name: cell[step_index]
            for output_name, step_index in _script_outputs(output_steps, shown_metrics).items()
        }
        for output_steps in payer_scenario.results
    ]
    return {
        "results": plan_outputs,
        "plans": plans.index(tuple(payer_scenario.plans)),
        "racks": payer_scenario.racks,
        "none": payer_scenario.none,
    }


def _script_number(leaf: float | PlanNumbers) -> Any:
    """Return a leaf as JSON; of plans the axis, the distinct numbers and the index of each plan's.

    Many plans share few numbers, so that this form is half as long as a number for each plan.
    """
    if not isinstance(leaf, PlanNumbers):
        return _json_number(leaf)
    distinct, indices = np.unique(leaf.numbers, return_inverse=True)
    return [leaf.axis, list(map(_json_number, distinct.tolist())), indices.tolist()]


def shortest(json_value: Any) -> Any:
    """Return a value with its numbers, or those of a list, in the fewest digits."""
    if isinstance(json_value, list):
        return [shortest(nested_value) for nested_value in json_value]
    return _json_number(json_value) if isinstance(json_value, float) else json_value


def _json_number(number: float) -> float | None:
    if number == np.inf:
        return None
    return int(number) if number.is_integer() and abs(number) < WHOLE else number
