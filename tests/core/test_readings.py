"""Every reading of a formula (number, array, quantity, trace, equation) gives the golden value."""

from __future__ import annotations

import importlib
import math
import re
import statistics

import numpy as np
import pint

from tests.registry import (
    FORMULAS,
    ROWS,
    convert,
    each_formula,
    each_row,
    equation,
    over,
    registry,
    same_unit,
)
from tests.scenario_helpers import recording, walk

SPREAD = np.array([1.0, 0.93, 1.04, 0.99, 1.01])

# Another unit of each dimension, for every word that a declared unit is made of. Chips, racks and
# shares know only one.
OTHER = {
    "s": "ms",
    "h": "day",
    "year": "month",
    "month": "year",
    "byte": "GB",
    "m": "km",
    "TB": "GiB",
    "FLOP": "TFLOP",
    "PFLOP": "GFLOP",
    "token": "Mtoken",
    "Mtoken": "ktoken",
    "Ttoken": "Gtoken",
    "W": "kW",
    "MW": "W",
    "Wh": "kWh",
    "J": "kWh",
    "USD": "kUSD",
    "mm": "cm",
    "g": "kg",
}
ALONE = {"chip", "rack", "share", ""}


def same(value, expected, tolerance):
    return math.isclose(value, expected, rel_tol=tolerance, abs_tol=0.0)


def expected_value(row):
    """The golden value in the declared unit of the formula."""
    return convert(row.expected, row.unit, row.formula.unit)


def other_unit(text):
    """Return the same dimension in other units; a pure number becomes a percentage.

    'USD/chip/h' becomes 'kUSD/chip/day'.
    """
    words = set(re.findall(r"[A-Za-z]+", text))
    assert words <= OTHER.keys() | ALONE, (
        f"no other unit is named for {sorted(words - OTHER.keys() - ALONE)}"
    )
    return re.sub(r"[A-Za-z]+", lambda word: OTHER.get(word[0], word[0]), text) or "percent"


@each_row
def test_formula_of_numbers_gives_the_golden_value(row):
    value = row.formula.function(**row.inputs)
    assert same(float(value), expected_value(row), row.tolerance)


@each_row
def test_the_name_a_module_offers_is_the_formula(row):
    """Called through the decorator, as the program calls it, with the defaults left out."""
    explicit_inputs = {
        name: value
        for name, value in row.inputs.items()
        if name not in row.formula.defaults or value != row.formula.defaults[name]
    }
    offered = getattr(importlib.import_module(row.formula.function.__module__), row.formula.name)
    assert float(offered(**explicit_inputs)) == float(row.formula.function(**row.inputs))


@each_row
def test_formula_of_arrays_gives_the_golden_value(row):
    spread = {
        name: np.roll(SPREAD, input_index) * value
        for input_index, (name, value) in enumerate(row.inputs.items())
    }
    answer = row.formula.function(**spread)
    assert np.shape(answer) == SPREAD.shape
    for spread_index in range(len(SPREAD)):
        scalar_answer = float(
            row.formula.function(
                **{name: float(values[spread_index]) for name, values in spread.items()}
            )
        )
        assert same(float(answer[spread_index]), scalar_answer, 1e-13)


@each_row
def test_array_broadcasts(row):
    """Plans x draws: the first parameter as a column, the others as rows."""
    first, *_ = row.inputs
    spread = {
        name: (SPREAD[:, None] if name == first else SPREAD[None, :]) * value
        for name, value in row.inputs.items()
    }
    assert np.shape(row.formula.function(**spread)) in {(5, 5), (5, 1)}


@over(
    {
        f"{row.id}, {'scaled' if scaled else 'declared'}": (row, scaled)
        for row in ROWS
        for scaled in (False, True)
    }
)
def test_formula_of_quantities_gives_the_golden_value(case):
    """Pint computes the golden value from quantities, whatever the size of their units."""
    row, scaled = case
    quantity = registry().Quantity
    input_quantities = {}
    for name, unit in row.formula.parameters.items():
        input_quantity = quantity(row.inputs[name], unit or "dimensionless")
        if scaled and unit:
            input_quantity = input_quantity.to(other_unit(unit))
            assert (
                set(re.findall(r"[A-Za-z]+", unit)) <= ALONE
                or input_quantity.units != quantity(1, unit).units
            )
        input_quantities[name] = input_quantity
    answer = (
        quantity(row.formula.function(**input_quantities))
        .to(row.formula.unit or "dimensionless")
        .magnitude
    )
    assert same(float(answer), expected_value(row), max(row.tolerance, 1e-12))


def notices_dimension(row, wrong_input):
    """Tell whether a row fails when one of its inputs has another dimension.

    Pint then refuses, or answers in another unit.
    """
    quantity = registry().Quantity
    units = row.formula.parameters
    input_quantities = {
        name: quantity(row.inputs[name], unit or "dimensionless")
        * quantity(1, "kg" if name == wrong_input else "")
        for name, unit in units.items()
    }
    try:
        answer = quantity(row.formula.function(**input_quantities))
    except (
        pint.DimensionalityError,
        ValueError,
    ):  # pint says ValueError where it cannot compare with a plain number
        return True
    return not answer.check(quantity(1, row.formula.unit or "dimensionless").dimensionality)


@over(
    {formula.name: formula for formula in FORMULAS if any(row.formula is formula for row in ROWS)}
)
def test_a_wrong_dimension_does_not_pass(formula):
    """For every parameter at least one golden row notices a wrong dimension.

    For `select` it is the row of the parameter's branch.
    """
    rows = [row for row in ROWS if row.formula is formula]
    assert [
        name for name in formula.parameters if not any(notices_dimension(row, name) for row in rows)
    ] == []


@each_row
def test_traced_formula_gives_the_golden_value(row):
    with recording() as trace:
        leaves = {
            name: trace.leaf(
                name, row.inputs[name], unit, "a source", "measured", f"parts.x.{name}"
            )
            for name, unit in row.formula.parameters.items()
        }
        answer = trace.call(row.formula, (), leaves)
    assert float(answer.value) == float(row.formula.function(**row.inputs))
    computed_nodes = [node for node in walk(answer.node) if not node.is_leaf]
    assert computed_nodes == [answer.node]
    assert (answer.node.formula, answer.node.unit, answer.node.source) == (
        row.formula,
        row.formula.unit,
        row.formula.source,
    )
    assert [(name, node.unit) for name, node in answer.node.inputs] == list(
        row.formula.parameters.items()
    )
    assert all(node is leaves[name].node for name, node in answer.node.inputs)


@each_row
def test_trace_of_plain_numbers(row):
    """Counts of the structure and defaults of the equation become leaves with units."""
    explicit_inputs = {
        name: value for name, value in row.inputs.items() if name not in row.formula.defaults
    }
    with recording() as trace:
        answer = trace.call(row.formula, (), explicit_inputs)
    for name, node in answer.node.inputs:
        assert node.is_leaf
        assert node.value == (
            explicit_inputs[name] if name in explicit_inputs else row.formula.defaults[name]
        )
        assert same_unit(node.unit, row.formula.parameters[name])
        assert node.source


PYTHON = {
    "select": lambda condition, yes, no: yes if condition else no,
    "normal_cdf": statistics.NormalDist().cdf,
    "max": max,
    "min": min,
    **{
        name: getattr(math, name)
        for name in ("sqrt", "exp", "expm1", "log", "log1p", "log2", "ceil", "floor")
    },
}


@each_row
def test_printed_equation_gives_the_golden_value(row):
    """The printed equation, run as Python on the same inputs, is the formula."""
    text = equation(row.formula)
    value = eval(text, {"__builtins__": {}}, {**PYTHON, **row.inputs})
    assert same(float(value), expected_value(row), max(row.tolerance, 1e-11))


@each_formula
def test_equation_uses_every_parameter(formula):
    words = set(re.findall(r"[A-Za-z_]\w*", equation(formula)))
    assert formula.parameters.keys() <= words
