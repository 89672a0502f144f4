"""Steps of the search, of kernels and of their runs on numbers that are made by hand."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tco.compile import execute, inverse
from tco.compile.execute import ScheduleRunner, best_rows, fork_map, kernel_outputs
from tco.compile.inverse import CLOSE, across, inverse_parabola
from tco.compile.lower import BATCH, BATCH_PATH, DRAW, PLANS, ArithmeticKernel, _weight
from tco.compile.program import PlanNumbers, Program, _number_or_row


# ---------------------------------------------------------------- search
def points(times, number_of):
    """Return numbers and times, each an array of one curve."""
    return [np.array([[number_of(time)], [time]]) for time in times]


@pytest.mark.parametrize("slope", [2.0, 0.3])
@pytest.mark.parametrize("bend", [0.0, 0.4, -0.2])
def test_a_number_that_is_a_parabola_of_its_time_is_solved_exactly(slope, bend):
    """The number is 5 + slope t + bend t^2, and the time looked for is nought."""

    def number_of(time):
        return 5 + slope * time + bend * slope * time**2

    near, far, third = points((-0.3, 0.2, -0.5), number_of)
    share, smooth = inverse_parabola((near[0], far[0], third[0]), (near[1], far[1], third[1]))
    assert smooth
    assert near[0] + share * (far[0] - near[0]) == pytest.approx(5.0)
    assert across(near, far, third) == pytest.approx(5.0)
    assert inverse._onward(tuple(points((0.2, 0.1, -0.1), number_of)), np.ones(1)) == (
        pytest.approx(5.0)
    )


def test_two_points_lead_along_their_line_and_a_single_one_along_a_power():
    near, before, none = np.array([[4.0], [0.5]]), np.array([[2.0], [0.1]]), np.full((2, 1), np.nan)
    # 2 for 0.4 of the time: back by 2.5
    assert inverse._onward((near, before, none), np.ones(1)) == pytest.approx(4 - 2.5)
    # a power p: the number is 4 for a time of 1.5, its slope 4 / (p 1.5)
    for power in (1.0, 0.5):
        expected = 4 - 0.5 * 4 / (power * 1.5)
        assert inverse._onward((near, none, none), np.array([power])) == pytest.approx(expected)


def test_three_points_of_a_step_are_not_smooth_and_the_middle_is_tried():
    near, far, third = (
        np.array([[number], [time]])
        for number, time in ((10.0, -1e-6), (20.0, 0.5), (19.0, 0.4999))
    )
    _, smooth = inverse_parabola((near[0], far[0], third[0]), (near[1], far[1], third[1]))
    assert not smooth
    assert across(near, far, third) == pytest.approx(15.0)
    # an end that nobody has looked at is tried itself
    far[1] = np.nan
    assert across(near, far, third) == pytest.approx(20.0)


def test_a_number_at_an_end_is_moved_off_it_by_half_of_what_is_near_enough():
    near, far, third = (
        np.array([[number], [time]]) for number, time in ((10.0, -1e-12), (20.0, 0.5), (5.0, -0.25))
    )
    assert across(near, far, third) == pytest.approx(10 + CLOSE / 2 * 20, rel=1e-9)


@pytest.mark.parametrize(
    ("onward", "quick", "slow", "tried"),
    [
        (12.0, (10.0, -0.1), (20.0, 0.3), 12.0),
        (25.0, (10.0, -0.1), (20.0, np.nan), 20.0),  # an end that was not looked at
        (25.0, (10.0, -0.1), (20.0, 0.3), 15.0),  # one that was
        (5.0, (10.0, np.nan), (20.0, 0.3), 10.0),
        (5.0, (10.0, -0.1), (20.0, 0.3), 15.0),
    ],
)
def test_what_is_tried_lies_between_the_ends(onward, quick, slow, tried):
    ends = (np.array(end)[:, None] for end in (quick, slow))
    assert inverse._inside_bracket(np.array([onward]), *ends).tolist() == [tried]


# ---------------------------------------------------------------- kernels
def kernel_of_inputs(*names):
    kernel = ArithmeticKernel(Program(), (), {})
    return kernel, *(kernel.input(name) for name in names)


def value_of(kernel, position, **drawn):
    (value,) = kernel_outputs(
        kernel,
        [position],
        kernel.values({name: np.array(draws) for name, draws in drawn.items()}),
        2,
    )
    return np.broadcast_to(value, 2).tolist()


A, B = [3.0, 5.0], [7.0, 2.0]


@pytest.mark.parametrize(
    ("operation", "number", "left"),
    [("+", 0.0, True), ("*", 1.0, True), ("+", 0.0, False), ("*", 1.0, False), ("-", 0.0, True),
     ("/", 1.0, True), ("**", 1.0, True)],
)  # fmt: skip
def test_a_neutral_number_adds_no_operation(operation, number, left):
    kernel, a = kernel_of_inputs("a")
    neutral = kernel.number(number)
    count = len(kernel.operation)
    assert kernel.put(operation, *((a, neutral) if left else (neutral, a))) == a
    assert len(kernel.operation) == count


@pytest.mark.parametrize(
    ("operation", "number", "expected"),
    [
        ("*", 0.0, [0.0, 0.0]),
        ("/", 0.0, [0.0, 0.0]),
        ("/", 1.0, [1 / 3, 0.2]),
        ("-", 1.0, [-2.0, -4.0]),
        ("-", 0.0, [-3.0, -5.0]),
        ("**", 2.0, [8.0, 32.0]),
        ("max", 4.0, [4.0, 5.0]),
        ("min", 4.0, [3.0, 4.0]),
        ("<", 4.0, [0.0, 1.0]),
    ],
)
def test_a_number_before_an_input_is_computed_as_it_stands(operation, number, expected):
    kernel, a = kernel_of_inputs("a")
    position = kernel.put(operation, kernel.number(number), a)
    assert value_of(kernel, position, a=A) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("operation", "number", "expected", "operations"),
    [
        ("/", 2.0, [1.5, 2.5], ["*"]),
        ("**", 2.0, [9.0, 25.0], ["*"]),
        ("**", 4.0, [81.0, 625.0], ["*", "*"]),
        ("**", 0.5, [3**0.5, 5**0.5], ["sqrt"]),
        ("**", 0.25, [3**0.25, 5**0.25], ["sqrt", "sqrt"]),
        ("**", 3.0, [27.0, 125.0], ["**"]),
        ("-", 2.0, [1.0, 3.0], ["-"]),
        ("<", 4.0, [1.0, 0.0], ["<"]),
        ("max", 4.0, [4.0, 5.0], ["max"]),
    ],
)
def test_an_operation_with_a_number_is_one_that_takes_least(
    operation, number, expected, operations
):
    kernel, a = kernel_of_inputs("a")
    position = kernel.put(operation, a, kernel.number(number))
    assert value_of(kernel, position, a=A) == pytest.approx(expected)
    assert [name for name in kernel.operation if name not in ("a", "number")] == operations


def test_shared_factors_are_taken_out_of_sums_and_extremes():
    """3 7 + 3 10 is 3 (7 + 10): two operations for three."""
    kernel, a, b = kernel_of_inputs("a", "b")
    ten = kernel.number(10.0)
    for gathered, inner, expected in (
        ("+", "*", [51.0, 60.0]),
        ("min", "+", [10.0, 7.0]),
        ("max", "+", [13.0, 15.0]),
    ):
        terms = [kernel.put(inner, a, b), kernel.put(inner, a, ten)]
        before = len(kernel.operation)
        position = kernel.gather(gathered, terms)
        assert value_of(kernel, position, a=A, b=B) == expected
        assert kernel.operation[position] == inner
        assert len(kernel.operation) == before + 2


def test_extremes_of_extremes_are_opened_and_sums_are_not():
    kernel, a, b, c = kernel_of_inputs("a", "b", "c")
    inner = kernel.put("max", a, b)
    assert kernel.opened("max", [inner, c, a]) == [a, b, c]
    assert kernel.opened("min", [inner, c]) == [inner, c]
    summed = kernel.put("+", a, b)
    assert kernel.opened("+", [summed, c]) == [summed, c]


def test_what_varies_by_batch_or_draw_weighs_more_than_plans():
    """A number weighs least, then plans of one or two axes, then draws, then both."""
    weights = [_weight(varies) for varies in (0, PLANS, PLANS | PLANS << 1, DRAW, DRAW | PLANS)]
    assert weights == sorted(weights)
    assert len(set(weights)) == len(weights)
    assert _weight(BATCH | DRAW)[0] > max(_weight(BATCH)[0], _weight(DRAW)[0])


def test_less_varying_factors_are_multiplied_first():
    """(a 2) 5 is a (2 5), so that each draw takes a single product."""
    kernel, a = kernel_of_inputs("a")
    position = kernel.put("*", kernel.put("*", a, kernel.number(2.0)), kernel.number(5.0))
    assert value_of(kernel, position, a=A) == [30.0, 50.0]
    assert len(kernel.schedule([position], [a]).lines) == 1


def test_a_row_of_plans_varies_on_its_axis():
    kernel, _ = kernel_of_inputs("a")
    positions = [kernel.leaf(PlanNumbers(axis, np.array([1.0, 2.0]))) for axis in (0, 1)]
    assert [kernel.axis(position) for position in positions] == [0, 1]
    assert kernel.leaf(PlanNumbers(0, np.array([4.0, 4.0]))) == kernel.number(4.0)


def test_what_feeds_draws_is_known_before_them():
    kernel, a, b = kernel_of_inputs("a", "b")
    plans = kernel.leaf(PlanNumbers(0, np.array([1.0, 2.0])))
    batch = kernel.input(BATCH_PATH)
    fixed = kernel.put("+", a, plans)
    target = kernel.put("*", kernel.put("+", fixed, batch), b)
    assert kernel.before(BATCH, [target]) == sorted([b, fixed])


def test_shared_operations_of_targets_are_found_once():
    kernel, a, b = kernel_of_inputs("a", "b")
    shared = kernel.put("+", a, b)
    first, second = kernel.put("*", shared, a), kernel.put("/", shared, b)
    assert kernel.common([[first], [second]], [a, b]) == [shared]
    assert kernel.common([[first], [first]], [a, b]) == [first]
    assert kernel.common([[first]], [a, b]) == []


@pytest.mark.parametrize("second", ["a", "b"])
def test_a_register_is_reused_once_though_an_operand_is_read_twice(second):
    kernel, a, b = kernel_of_inputs("a", "b")
    total = kernel.put("+", a, b)
    squared = kernel.put("*", total, total if second == "a" else b)
    difference = kernel.put("-", squared, a)
    expected = [
        (3 + 7) * (10 if second == "a" else 7) - 3,
        (5 + 2) * (7 if second == "a" else 2) - 5,
    ]
    assert value_of(kernel, difference, a=A, b=B) == expected


# ---------------------------------------------------------------- runs
def test_rows_are_the_best_of_those_that_meet_their_targets_or_else_of_the_fallback():
    score = np.array([[3.0, 9.0], [5.0, 1.0]])
    fallback = np.array([[-1.0, -2.0], [-4.0, -1.0]])
    meets = np.array([[True, False], [True, False]])
    rows, met = best_rows(score, fallback, meets, 2)
    assert (rows.tolist(), met.tolist()) == ([1, 1], [True, False])
    # a row for all draws, and one plan for all
    rows, met = best_rows(np.array([[3.0], [5.0]]), fallback, np.array([[True], [False]]), 2)
    assert (rows.tolist(), met.tolist()) == ([0, 0], [True, True])
    rows, met = best_rows(np.array([3.0, 4.0]), np.array(-1.0), np.array([True, False]), 2)
    assert (rows.tolist(), met.tolist()) == ([0, 0], [True, False])


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_shares_of_cores_are_all_items_each_with_its_place(monkeypatch, cores):
    monkeypatch.setattr(execute, "CORES", cores)
    monkeypatch.setattr(execute.threading, "active_count", lambda: 1)
    results = dict(fork_map(lambda item: (item * 10, os.getpid()), [1, 2, 3, 4, 5, 6, 7]))
    assert {index: result for index, (result, _) in results.items()} == {
        index: 10 * (index + 1) for index in range(7)
    }
    assert len({process for _, process in results.values()}) == cores


def test_a_run_in_pieces_gives_what_a_run_at_once_gives(monkeypatch):
    kernel, a = kernel_of_inputs("a")
    plans = kernel.leaf(PlanNumbers(0, np.array([1.0, 2.0])))
    target, plans_alone = kernel.put("*", a, plans), kernel.put("+", plans, kernel.number(1.0))
    draws = np.arange(11.0)
    values = kernel.values({"a": draws})
    schedule = kernel.schedule([target, plans_alone], values)
    at_once = ScheduleRunner(schedule, values, 11)()
    monkeypatch.setattr(execute, "CELLS", 8)  # two plans of four draws
    pieces = ScheduleRunner(schedule, values, 11)
    for outputs in (at_once, pieces()):
        np.testing.assert_array_equal(outputs[0], np.outer([1.0, 2.0], draws))
        np.testing.assert_array_equal(outputs[1], [[2.0], [3.0]])
    some_draws = pieces(np.array([9, 2]))
    np.testing.assert_array_equal(some_draws[0], [[9.0, 2.0], [18.0, 4.0]])
    most_draws = pieces(np.array([0, 1, 2, 3, 4, 5, 6, 7, 10]))
    np.testing.assert_array_equal(most_draws[0][0], [0, 1, 2, 3, 4, 5, 6, 7, 10])
    np.testing.assert_array_equal(most_draws[1], [[2.0], [3.0]])


def test_the_rows_of_arrays_are_their_plans():
    assert execute._candidate_count([np.zeros(5), np.zeros((3, 5)), np.zeros((2, 1))]) == 3
    assert execute._candidate_count([np.zeros(5), np.array(1.0)]) == 1


def test_a_leaf_of_plans_is_a_row_along_the_axis_that_has_several():
    assert _number_or_row(2.5) == 2.5
    assert _number_or_row(np.array(4.0)) == 4.0
    for axis, shape in enumerate(((2, 1), (1, 2))):
        row = _number_or_row(np.array([1.0, 2.0]).reshape(shape))
        assert (row.axis, row.numbers.tolist()) == (axis, [1.0, 2.0])


def test_steps_of_a_program_are_numbered_from_nought():
    program = Program()
    assert [program.append_step(None, 1.0), program.append_step(None, 2.0)] == [0, 1]


@pytest.mark.parametrize(("count", "sizes"), [(6, [6]), (7, [4, 3]), (8, [4, 4]), (9, [4, 4, 1])])
def test_draws_are_run_in_pieces_beyond_half_as_many_again(monkeypatch, count, sizes):
    """Eight numbers of two plans are four draws a piece, and up to six are run at once."""
    monkeypatch.setattr(execute, "CELLS", 8)
    kernel, a = kernel_of_inputs("a")
    plans = kernel.leaf(PlanNumbers(0, np.array([1.0, 2.0])))
    target = kernel.put("*", a, plans)
    values = kernel.values({"a": np.arange(float(count))})
    schedule = kernel.schedule([target], values)
    run, pieces = schedule.run, []

    def counted_run(leaf_values):
        pieces.append(leaf_values[a].shape[-1])
        return run(leaf_values)

    monkeypatch.setattr(schedule, "run", counted_run)
    (outputs,) = ScheduleRunner(schedule, values, count)()
    assert pieces == sizes
    np.testing.assert_array_equal(outputs, np.outer([1.0, 2.0], np.arange(count)))
