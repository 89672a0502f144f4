"""A formula printed for a spreadsheet gives its value within the limits of spreadsheets."""

from __future__ import annotations

import formulas
import numpy as np
import pytest

from tco.report.workbook.excel import expression_with_precedence, formula_call, template
from tests.registry import ROWS, Symbol, each_formula
from tests.report.helpers import DEEPEST, LONGEST

a, b, c = (Symbol("name", name) for name in "abc")


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        (a - (b - c), "{a}-({b}-{c})"),
        (a / (b * c), "{a}/({b}*{c})"),
        (-(a**2), "(-({a}^2))"),
        ((-a) ** 2, "(-{a})^2"),
        (a ** (b**c), "{a}^({b}^{c})"),
        ((a**b) ** c, "({a}^{b})^{c}"),
        (np.ceil(a / b), "(-INT(-({a}/{b})))"),
        (np.log2(a), "LOG({a},2)"),
        (np.log(a + 1e-9), "LN({a}+1E-09)"),
        ((1 - a) ** b, "EXP(MAX({b}*LN(MAX(1-{a},1E-300)),-700))"),
        (a * -0.5, "{a}*(-0.5)"),
    ],
)
def test_brackets_say_what_a_spreadsheet_would_read_otherwise(symbol, text):
    assert expression_with_precedence(symbol)[0] == text


def test_every_formula_computes_the_same_in_a_spreadsheet():
    """The `formulas` package computes the value of each formula on the inputs of the golden rows.

    The package knows nothing of this program.
    """
    compiled = {}
    for row in ROWS:
        row_formula = row.formula
        if row_formula.name not in compiled:
            compiled[row_formula.name] = (
                formulas.Parser()
                .ast(formula_call(row_formula, {name: name for name in row_formula.parameters}))[1]
                .compile()
            )
        inputs_by_name = {name.upper(): value for name, value in row.inputs.items()}
        value = np.asarray(
            compiled[row_formula.name](
                *(inputs_by_name[name] for name in compiled[row_formula.name].inputs)
            )
        ).ravel()[0]
        assert float(value) == pytest.approx(
            float(row_formula.function(**row.inputs)), rel=1e-9, abs=1e-290
        ), row.id


@each_formula
def test_a_formula_stays_within_the_limits(formula):
    longest = formula_call(
        formula, dict.fromkeys(formula.parameters, "performance_trainium_gemm_efficiency_bf16")
    )
    depth = deepest = 0
    for mark in longest:
        depth += {"(": 1, ")": -1}.get(mark, 0)
        deepest = max(deepest, depth)
    assert depth == 0
    assert deepest < DEEPEST
    assert len(longest) < LONGEST
    assert "_xlfn" not in longest
    assert set(template(formula)) <= set(
        "{}()+-*/^<>=,._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    )
