"""A compiled program gives the values of the traced chain: each formula and each draw of scenarios.

The plan is fixed, or chosen again in each draw.
"""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco.compile.execute import CELLS, kernel_outputs
from tco.compile.lower import ArithmeticKernel
from tco.compile.program import Program
from tco.core.trace import recorded_by
from tests.catalogue import CATALOGUE
from tests.registry import ROWS, greatest, least, over, total
from tests.scenario_helpers import HEADLINE, Input

ROOM = {"site.rack_kw_max": "900 kW"}
TRAINING = (
    "llama-3.1-405b-training-gb200-nvl72",
    "llama-3.1-405b-training-trn3-nl72x2",
    "train-gpt3-175b-a100x64",
)
SPREAD = np.array([1.0, 0.93, 1.04, 0.99, 1.01])


def leaves(program, values, units):
    """Some values as inputs of a program."""
    return {
        name: program.read(Input(f"test.{name}", value, units[name]))
        for name, value in values.items()
    }


def kernel_of(program, varying, **results):
    kernel = ArithmeticKernel(program, varying, {})
    return kernel, {name: kernel.made[program.step_index(value)] for name, value in results.items()}


@over({row.id: row for row in ROWS})
def test_formula_compiled_into_steps_gives_the_value_of_the_formula(row):
    """With all inputs varying, with the first alone, and with none."""
    spread_inputs = {name: value * SPREAD for name, value in row.inputs.items()}
    for varying in (list(spread_inputs), list(spread_inputs)[:1], []):
        program = Program()
        with np.errstate(all="ignore"), recorded_by(program):
            formula_output = row.formula.function.__globals__[row.formula.name](
                **leaves(program, row.inputs, row.formula.parameters)
            )
        kernel, output_slots = kernel_of(
            program, [f"test.{name}" for name in varying], found=formula_output
        )
        with np.errstate(all="ignore"):
            (got,) = kernel_outputs(
                kernel,
                [output_slots["found"]],
                kernel.values({f"test.{name}": spread_inputs[name] for name in varying}),
                len(SPREAD),
            )
            expected_values = row.formula.function(
                **{
                    name: spread_inputs[name] if name in varying else value
                    for name, value in row.inputs.items()
                }
            )
        assert np.broadcast_to(got, len(SPREAD)) == pytest.approx(
            np.broadcast_to(expected_values, len(SPREAD)), rel=1e-12, abs=0, nan_ok=True
        )


def test_gatherings_of_the_same_terms_are_computed_once():
    units = dict.fromkeys("abc", "s")
    program = Program()
    with recorded_by(program):
        leaf_values = leaves(program, {"a": 1.0, "b": 2.0, "c": 3.0}, units)
        results = {
            name: how(name, [*leaf_values.values()])
            for name, how in (("total", total), ("least", least), ("greatest", greatest))
        }
        results["again"] = total("total of the same", [*leaf_values.values()])
    kernel, output_slots = kernel_of(program, ["test.b"], **results)
    assert output_slots["again"] == output_slots["total"]
    values = kernel.values({"test.b": np.array([0.5, 5.0])})
    outputs_by_name = dict(
        zip(output_slots, kernel_outputs(kernel, [*output_slots.values()], values, 2), strict=True)
    )
    assert outputs_by_name["total"].tolist() == [4.5, 9.0]
    assert outputs_by_name["least"].tolist() == [0.5, 1.0]
    assert outputs_by_name["greatest"].tolist() == [3.0, 5.0]
    # the sum of the others is known
    assert len(kernel.schedule([output_slots["total"]], values).lines) == 1


def test_kernel_of_some_rows_of_plans_gives_their_values_and_grows():
    program, plan_rows = Program(), np.array([[1.0], [2.0], [2.0], [5.0]])
    with recorded_by(program):
        drawn = program.read(Input("test.a", 1.0, "s"))
        first_total = total("first", [drawn, plan_rows])
        kernel, output_slots = kernel_of(program, ["test.a"], first=first_total)
        row_kernel = kernel.of_rows({0: np.array([3, 1])})
        next_total = total("again", [first_total, plan_rows])
    row_kernel.grow()
    values = row_kernel.values({"test.a": np.array([0.5, 10.0])})
    outputs = kernel_outputs(
        row_kernel,
        [output_slots["first"], row_kernel.made[program.step_index(next_total)]],
        values,
        2,
    )
    assert outputs[0].tolist() == [[5.5, 15.0], [2.5, 12.0]]
    assert outputs[1].tolist() == [[10.5, 20.0], [4.5, 14.0]]
    assert len(kernel.made) < len(row_kernel.made)


def test_a_step_met_on_the_first_plan_has_the_numbers_of_all_plans_when_these_are_walked():
    program, rows, columns = Program(), np.array([[1.0], [2.0]]), np.array([[3.0, 4.0, 5.0]])
    with recorded_by(program):
        with program.on_first_plan():
            first_plan = total("plans", [program.read(Input("test.a", 1.0, "s")), rows, columns])
            assert first_plan.value.tolist() == [[5.0]]
        again = total("plans", [program.read(Input("test.a", 1.0, "s")), rows, columns])
    assert program.step_index(again) == program.step_index(first_plan)
    assert again.value.tolist() == [[5.0, 6.0, 7.0], [6.0, 7.0, 8.0]]


def draws_of(name, count, seed=3):
    """Draws of every input that has a range, in logarithm between its ends and its value."""
    base, generator = tco.evaluate(name, ROOM, catalogue=CATALOGUE), np.random.default_rng(seed)
    structural_paths = {
        path for path, reading in base.structure.readings.items() if not isinstance(reading, bool)
    }
    drawn = {}
    for path, base_input in base.inputs.items():
        if (
            base_input.low is not None
            and base_input.low < base_input.high
            and path not in structural_paths
        ):
            share = generator.uniform(-1, 1, count)
            drawn_values = np.where(
                share < 0,
                base_input.value + (base_input.value - base_input.low) * share,
                base_input.value + (base_input.high - base_input.value) * share,
            )
            drawn[path] = (drawn_values, base_input.unit)
    return base, drawn


@pytest.mark.parametrize("name", [*HEADLINE, *TRAINING])
def test_draws_equal_the_chain_evaluated_for_each_draw(name):
    base, drawn = draws_of(name, 3)
    drawn_result = tco.evaluate_draws(
        name, ROOM | drawn, structure=base.structure, catalogue=CATALOGUE
    )
    for draw_index in range(3):
        plan = base.plan
        if drawn_result.sequences is not None:
            plan = plan._replace(
                decode=plan.decode._replace(sequences=float(drawn_result.sequences[draw_index]))
            )
        single_draw = {
            path: (float(drawn_values[draw_index]), unit)
            for path, (drawn_values, unit) in drawn.items()
        }
        single_result = tco.evaluate(
            name, ROOM | single_draw, plan, structure=base.structure, catalogue=CATALOGUE
        )
        for metric, value in single_result.metrics.items():
            assert value is None or value == pytest.approx(
                drawn_result.metrics[metric][draw_index], rel=1e-11
            ), metric


@pytest.mark.parametrize("name", HEADLINE)
def test_chosen_batch_leaves_no_room_for_a_larger_one(name):
    """A batch larger by a thousandth is late, exceeds the memory, makes less or is above the limit.

    It makes less where it needs one more step of tiles. The limit is the most that any group
    decodes.
    """
    base, drawn = draws_of(name, 200)
    drawn_result = tco.evaluate_draws(
        name, ROOM | drawn, structure=base.structure, catalogue=CATALOGUE
    )
    speed, target = (
        drawn_result.metrics["tokens_per_s_per_user"],
        base.inputs["workload.interactivity"].value,
    )
    just = drawn_result.meets & (speed <= target * (1 + 2e-6))
    assert just.sum() > 0.3 * drawn_result.meets.sum()
    for draw_index in np.flatnonzero(drawn_result.meets & ~just)[:3]:
        single_draw = {
            path: (float(drawn_values[draw_index]), unit)
            for path, (drawn_values, unit) in drawn.items()
        }
        plan = base.plan._replace(
            decode=base.plan.decode._replace(
                sequences=float(drawn_result.sequences[draw_index]) * 1.001
            )
        )
        more = tco.evaluate(
            name, ROOM | single_draw, plan, structure=base.structure, catalogue=CATALOGUE
        )
        late = more.metrics["tokens_per_s_per_user"] < target
        less = more.metrics["output_tokens_per_s_per_chip"] <= drawn_result.metrics[
            "output_tokens_per_s_per_chip"
        ][draw_index] * (1 + 1e-6)
        assert (
            late
            or less
            or float(more.serving.decode.memory) > 0.9 * float(one_memory(more))
            or drawn_result.sequences[draw_index] >= 1024
        )


def one_memory(result):
    """The HBM of a chip."""
    return result.metrics["hbm_bytes"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["trn3-nl32x2", "gb200-nvl72"])
def test_no_other_plan_is_better_than_the_one_chosen(name):
    """All plans, each held, against the choice among all of them."""
    base, drawn = draws_of(name, 4)
    free = tco.evaluate_draws(name, ROOM | drawn, catalogue=CATALOGUE)
    rate, decode = "output_tokens_per_s_per_chip", base.serving.choices["decode"].axes
    best = np.zeros(4)
    for row in range(len(decode.chips)):
        plan = decode._make(
            float(np.ravel(axis)[row if np.size(axis) == len(decode.chips) else 0])
            for axis in decode
        )
        held_structure = base.structure._replace(
            plan=base.plan._replace(decode=plan._replace(sequences=8.0))
        )
        held_result = tco.evaluate_draws(
            name, ROOM | drawn, structure=held_structure, catalogue=CATALOGUE
        )
        best = np.maximum(best, np.where(held_result.meets, held_result.metrics[rate], 0.0))
    assert np.all(free.metrics[rate] >= best * (1 - 1e-5))


def test_many_draws_are_run_in_pieces():
    base, drawn = draws_of("trn3-nl32x2", 3 * CELLS + 7)
    all_draws = tco.evaluate_draws(
        "trn3-nl32x2", ROOM | drawn, structure=base.structure, catalogue=CATALOGUE
    )
    last = {path: (drawn_values[-9:], unit) for path, (drawn_values, unit) in drawn.items()}
    part = tco.evaluate_draws(
        "trn3-nl32x2", ROOM | last, structure=base.structure, catalogue=CATALOGUE
    )
    for metric, metric_values in all_draws.metrics.items():
        if metric_values is not None:
            assert metric_values[-9:] == pytest.approx(part.metrics[metric], rel=1e-9), metric
