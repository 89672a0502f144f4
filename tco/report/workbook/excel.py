"""A formula as a spreadsheet writes it: its body run on symbols, in common functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tco.core.equation import Symbol, expression
from tco.core.formula import Formula

# characters of a formula, levels of functions in it, arguments of a function
LONGEST, DEEPEST, MOST = (
    8192,
    64,
    255,
)
INFIX = {"<": 0, "<=": 0, ">": 0, ">=": 0, "+": 1, "-": 1, "*": 2, "/": 2, "**": 3}
FUNCTIONS = {
    "max": "MAX",
    "min": "MIN",
    "sqrt": "SQRT",
    "exp": "EXP",
    "log": "LN",
    "floor": "INT",
    "select": "IF",
    "normal_cdf": "NORMSDIST",
}
# no spreadsheet has them: three terms of the series where the plain form would lose digits, to
# 1e-11; nought and too small are no error
NEAR_ONE = {
    "expm1": "IF(ABS({0})<1E-5,{0}*(1+{0}*(0.5+{0}/6)),EXP(MAX({0},-700))-1)",
    "log1p": "IF(ABS({0})<1E-5,{0}*(1-{0}*(0.5-{0}/3)),LN(MAX(1+{0},1E-300)))",
}
GATHERED = {"total": "SUM", "least": "MIN", "greatest": "MAX"}


def expression_with_precedence(literal_value: Any) -> tuple[str, int]:
    """Return a symbol's text and its outermost operation's rank.

    Names stand in braces, to be replaced by cells.
    """
    if not isinstance(literal_value, Symbol):
        literal_text = repr(float(literal_value)).removesuffix(".0").upper()
        return (f"({literal_text})", 9) if literal_text.startswith("-") else (literal_text, 9)
    operation, arguments = literal_value.operation, literal_value.arguments
    if operation == "name":
        return f"{{{arguments[0]}}}", 9
    if (
        operation == "**"
        and all(isinstance(argument, Symbol) for argument in arguments)
        and arguments[0].operation == "-"
    ):
        return _vanishing(*(expression_with_precedence(argument) for argument in arguments)), 9
    if operation in INFIX:
        return _infix(operation, *map(expression_with_precedence, arguments)), INFIX[operation]
    texts = [expression_with_precedence(argument)[0] for argument in arguments]
    if operation == "neg":  # a minus binds tighter in a spreadsheet than anywhere else
        return f"(-{_bracketed(*expression_with_precedence(arguments[0]))})", 9
    if operation == "ceil":
        return f"(-INT(-{_bracketed(*expression_with_precedence(arguments[0]))}))", 9
    if operation in NEAR_ONE:
        return NEAR_ONE[operation].format(_bracketed(*expression_with_precedence(arguments[0]))), 9
    if operation == "log2":
        return f"LOG({texts[0]},2)", 9
    return f"{FUNCTIONS[operation]}({','.join(texts)})", 9


def _bracketed(formula_text: str, rank: int) -> str:
    return formula_text if rank == 9 else f"({formula_text})"


def _infix(operation: str, left: tuple[str, int], right: tuple[str, int]) -> str:
    """Return two operands with their operation between them.

    Powers, which spreadsheets read from the left, keep all brackets.
    """
    rank = INFIX[operation]
    power = operation == "**"
    before = f"({left[0]})" if left[1] < rank or (power and left[1] == rank) else left[0]
    after = (
        f"({right[0]})"
        if right[1] < rank or (right[1] == rank and (power or operation in "-/"))
        else right[0]
    )
    return f"{before}{'^' if power else operation}{after}"


def _vanishing(base: tuple[str, int], exponent: tuple[str, int]) -> str:
    times = exponent[0] if exponent[1] > INFIX["*"] else f"({exponent[0]})"
    return f"EXP(MAX({times}*LN(MAX({base[0]},1E-300)),-700))"


@cache
def template(formula: Formula) -> str:
    """Return the body of a formula with the names of its parameters in braces."""
    return expression_with_precedence(expression(formula))[0]


def formula_call(formula: Formula, cells: Mapping[str, str]) -> str:
    """Return one call of a formula on cells or names."""
    return "=" + template(formula).format_map(cells)
