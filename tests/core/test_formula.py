"""Requirements of every formula, and the helpers that formulas are made of."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tco.core.formula import formula, least_over, normal_cdf
from tests.catalogue import CATALOGUE
from tests.registry import (
    FORMULAS,
    REGISTRY,
    WRONG,
    ceil_ratio,
    each_formula,
    greatest,
    least,
    read_rows,
    select,
    total,
    unit_table,
)
from tests.scenario_helpers import recording


def test_import_of_all_modules_registers_the_formulas():
    assert len(FORMULAS) >= 90


def test_every_formula_has_a_golden_value():
    lacking = sorted(REGISTRY.keys() - {row["formula"] for row in read_rows("formulas.csv")})
    assert not lacking, f"no row in tests/golden/formulas.csv for {', '.join(lacking)}"


def test_every_golden_value_has_its_formula_and_inputs():
    assert WRONG == []


def test_every_golden_value_says_where_it_comes_from():
    assert [row["formula"] for row in read_rows("formulas.csv") if not row["source"].strip()] == []


@each_formula
def test_source_is_listed(formula):
    assert formula.source in CATALOGUE.sources


@each_formula
def test_text_names_the_quantity_and_its_equation(formula):
    """A line that names the quantity, then an equation: after a colon, or with an equals sign."""
    words, colon, equation = formula.text.splitlines()[0].partition(":")
    assert len(words) >= 10
    assert "=" in formula.text or (colon and equation.strip(" .")), "the text states no equation"


@each_formula
def test_units_are_in_the_table(formula):
    table = unit_table()
    assert [
        text for text in (*formula.parameters.values(), formula.unit) if text not in table
    ] == []


@each_formula
def test_every_parameter_has_a_unit_by_name(formula):
    assert formula.function.__code__.co_argcount == len(formula.parameters)
    assert all(isinstance(text, str) for text in formula.parameters.values())


def test_a_formula_is_defined_once():
    with pytest.raises(ValueError, match="defined twice"):
        formula(unit="USD", source="tco-model")(REGISTRY["extended_price"].function)


def test_an_unknown_unit_name_is_refused_at_definition():
    def wrong(x):
        return x

    wrong.__annotations__ = {"x": "Furlong"}
    with pytest.raises(AttributeError, match="Furlong"):
        formula(unit="s", source="tco-model")(wrong)
    assert "wrong" not in REGISTRY


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_gatherings_of_numbers_equal_the_builtins(terms):
    # one after the other: `sum` adds more closely from Python 3.12 on
    assert total("t", terms) == reduce(add, terms)
    assert least("l", terms) == min(terms)
    assert greatest("g", terms) == max(terms)


def test_gatherings_are_elementwise():
    a, b = np.array([1.0, 5.0]), np.array([3.0, 2.0])
    assert total("t", [a, b]).tolist() == [4, 7]
    assert least("l", [a, b]).tolist() == [1, 2]
    assert greatest("g", [a, b]).tolist() == [3, 5]


@pytest.mark.parametrize(
    ("condition", "expected"), [(True, 1), (False, 2), (np.True_, 1), (np.False_, 2)]
)
def test_select_of_a_number_is_a_number(condition, expected):
    assert select(condition, 1, 2) == expected
    assert not isinstance(select(condition, 1, 2), np.ndarray)


def test_select_of_an_array_is_elementwise():
    x = np.array([1.0, 2.0, 3.0])
    assert select(x > 2, x, -x).tolist() == [-1, -2, 3]


@given(st.integers(1, 10**6), st.floats(1e-3, 1e12))
def test_ceil_ratio_of_a_rounding_error_above_an_integer_is_that_integer(count, size):
    """A whole multiple that rounding has pushed over a whole number needs no further piece."""
    assert ceil_ratio(count * size * (1 + 2e-16), size) == count


@pytest.mark.parametrize(("numerator", "expected"), [(10, 2), (10.1, 3), (15, 3), (0, 0)])
def test_ceil_ratio_covers(numerator, expected):
    assert ceil_ratio(numerator, 5) == expected


@given(st.floats(-8, 8))
def test_normal_cdf_agrees_with_scipy(x):
    assert normal_cdf(x) == pytest.approx(scipy.stats.norm.cdf(x), rel=1e-13, abs=1e-14)


def test_normal_cdf_takes_arrays():
    x = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(
        normal_cdf(x), [normal_cdf(float(deviate)) for deviate in x], rtol=1e-14
    )


@pytest.mark.parametrize(
    "shapes",
    [((), ()), ((7,), ()), ((5, 1), (1, 6)), ((3, 4, 5), (5,)), ((3, 1), (50_000,))],
    ids=str,
)
def test_stacked_candidates_cost_the_same_as_candidates_in_turn(shapes):
    """Candidates stacked on an axis in front give the same least cost as candidates taken in turn.

    A trace takes them in turn. The arguments may have any number of axes.
    """
    generator = np.random.default_rng(5)
    x_values, y_values = (generator.uniform(1, 9, shape) if shape else 3.7 for shape in shapes)
    candidates = ((1.0, 3.0), (2.0, 1.0), (4.0, 0.5))

    def cost(a, b, x, y):
        return a * x + ceil_ratio(y, b)

    stacked_cost = least_over("cost", candidates, cost, x_values, y_values)
    in_turn = least("cost", [cost(*candidate, x_values, y_values) for candidate in candidates])
    with recording():
        traced = least_over("cost", candidates, cost, x_values, y_values)
    assert np.shape(stacked_cost) == np.broadcast_shapes(*shapes)
    assert np.array_equal(stacked_cost, in_turn)
    assert np.array_equal(traced, in_turn)
