"""Symbols print an equation with the brackets it needs and refuse what no formula may use."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tco.core.equation import fingerprint, fingerprints
from tests.registry import (
    FORMULAS,
    REGISTRY,
    Formula,
    Symbol,
    ceil_ratio,
    each_formula,
    equation,
    select,
)

A, B, C = (Symbol("name", name) for name in "abc")


@pytest.mark.parametrize(
    ("built_expression", "text"),
    [
        (A + B * C, "a + b * c"),
        (A + B + C, "a + b + c"),
        (A + B - C, "a + b - c"),
        (A * B * C, "a * b * c"),
        ((A + B) * C, "(a + b) * c"),
        (A - (B - C), "a - (b - c)"),
        (A - B - C, "a - b - c"),
        (A / (B * C), "a / (b * c)"),
        (A / B * C, "a / b * c"),
        (A * (B / C), "a * b / c"),
        ((A**B) ** C, "(a ** b) ** c"),
        (A ** (B**C), "a ** b ** c"),
        (A ** (B + C), "a ** (b + c)"),
        (-(A + B), "-(a + b)"),
        (-A * B, "-a * b"),
        ((-A) ** B, "(-a) ** b"),
        (-(A**B), "-a ** b"),
        (A**-B, "a ** (-b)"),
        (1 + A, "1 + a"),
        (1 - A, "1 - a"),
        (2.5 * A, "2.5 * a"),
        (1 / A, "1 / a"),
        (2**A, "2 ** a"),
        (A + np.float64(2.0), "a + 2"),
        (np.float64(2.0) * A, "2 * a"),
        (np.maximum(A, 0 * B), "max(a, 0 * b)"),
        (np.minimum(A, B) + np.sqrt(C), "min(a, b) + sqrt(c)"),
        (np.log2(A) + np.log(B) - np.exp(C), "log2(a) + log(b) - exp(c)"),
        (ceil_ratio(A, B) + np.floor(C), "ceil(a / b - 1e-09) + floor(c)"),
        (select(A > B, A, B), "select(a > b, a, b)"),
        (select(A <= 0.0, -A, A * 2), "select(a <= 0, -a, a * 2)"),
    ],
)
def test_text(built_expression, text):
    assert str(built_expression) == text


@pytest.mark.parametrize(
    "use",
    [
        bool,
        float,
        int,
        lambda x: max(x, A),
        lambda x: x and A,
        lambda x: [1][x],
        np.sin,
        np.maximum.reduce,
        lambda x: x // 2,
    ],
)
def test_a_symbol_refuses(use):
    with pytest.raises(TypeError):
        use(B)


def test_a_known_equation():
    assert (
        equation(REGISTRY["yearly_energy"])
        == "it_power * load_factor * pue * hours_per_year * price"
    )


@each_formula
def test_an_equation_is_the_same_twice(formula):
    assert equation(formula) == equation(formula)


def written(text, unit="USD", defaults=(1.0,)):
    """A formula of a text that nobody registers."""
    names = {"function": None}
    exec(
        f"def priced(price: USD, share: Pure = 1.0):\n    return {text}",
        {"USD": None, "Pure": None},
        names,
    )
    function = names["priced"]
    function.__annotations__ = {"price": "USD", "share": "Pure"}
    function.__defaults__ = defaults
    return Formula(function, unit, "tco-model")


def test_a_fingerprint_is_of_what_a_formula_computes():
    usual = fingerprint(written("price * share"))
    assert fingerprint(written("(price * share)")) == usual
    changed_formulas = [
        written("share * price"),
        written("price * share * 2"),
        written("price * share", unit="USD/year"),
        written("price * share", defaults=(2.0,)),
    ]
    assert len({usual, *map(fingerprint, changed_formulas)}) == 5


def test_fingerprints_tell_formulas_apart():
    formula_fingerprints = fingerprints(FORMULAS)
    assert formula_fingerprints.keys() == {formula.name for formula in FORMULAS}
    assert all(re.fullmatch("[0-9a-f]{12}", text) for text in formula_fingerprints.values())
