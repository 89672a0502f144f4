"""Equations as typeset mathematics: the symbols of a formula as MathML, which every browser of
today draws without help.
"""

from __future__ import annotations

from html import escape
from typing import Any

from tco.core.equation import Symbol, expression, literal
from tco.core.formula import Formula

SIGNS = {"+": "+", "-": "−", "*": "⋅", "<": "&lt;", "<=": "≤", ">": "&gt;", ">=": "≥"}
# a fraction needs brackets under a power alone
RANK = {
    "<": 0,
    "<=": 0,
    ">": 0,
    ">=": 0,
    "+": 1,
    "-": 1,
    "*": 2,
    "neg": 3,
    "/": 4,
    "**": 4,
}
TALL = 9  # the rank of what needs no brackets: names, numbers, roots, functions
NEAR_ONE = {  # what is computed without the difference is read with it
    "expm1": lambda x: Symbol("-", Symbol("exp", x), 1),
    "log1p": lambda x: Symbol("log", Symbol("+", 1, x)),
}
FENCES = {"ceil": ("⌈", "⌉"), "floor": ("⌊", "⌋")}


def mathml(formula: Formula) -> str:
    """Return a formula's equation, its own name on the left, as a MathML element."""
    body = _written(expression(formula))[0]
    return f'<math display="block"><mrow>{_name(formula.name)}<mo>=</mo>{body}</mrow></math>'


def _name(name: str) -> str:
    """Return the name of a quantity: upright words, a single letter in italics as is custom."""
    return f"<mi>{escape(name.replace('_', ' '))}</mi>"


def _written(value: Any) -> tuple[str, int]:
    """Return the elements of a value and the rank of its outermost operation."""
    if not isinstance(value, Symbol):
        return _number(value)
    operation, arguments = value.operation, value.arguments
    if operation == "name":
        return _name(arguments[0]), TALL
    if operation == "/":
        return f"<mfrac>{_row(arguments[0])}{_row(arguments[1])}</mfrac>", RANK["/"]
    if operation == "**":
        return f"<msup>{_bracketed(arguments[0], RANK['**'] + 1)}{_row(arguments[1])}</msup>", RANK[
            "**"
        ]
    if operation in NEAR_ONE:
        return _written(NEAR_ONE[operation](*arguments))
    if operation == "neg":
        return f"<mrow><mo>−</mo>{_bracketed(arguments[0], RANK['neg'])}</mrow>", RANK["neg"]
    if operation in SIGNS:
        rank = RANK[operation]
        left, right = (
            _bracketed(arguments[0], rank),
            _bracketed(arguments[1], rank + (operation == "-")),
        )
        return f"<mrow>{left}<mo>{SIGNS[operation]}</mo>{right}</mrow>", rank
    return _function(operation, arguments), TALL


def _function(operation: str, arguments: tuple[Any, ...]) -> str:
    """Return a function of some values, drawn as mathematics draws it."""
    if operation == "sqrt":
        return f"<msqrt>{_row(arguments[0])}</msqrt>"
    if operation == "exp":
        return f"<msup><mi>e</mi>{_row(arguments[0])}</msup>"
    if operation in FENCES:
        opened, closed = FENCES[operation]
        return f"<mrow><mo>{opened}</mo>{_row(arguments[0])}<mo>{closed}</mo></mrow>"
    if operation == "select":
        condition, yes, no = map(_row, arguments)
        cases = (
            f"<mtr><mtd>{yes}</mtd><mtd><mtext>if "
            f"</mtext>{condition}</mtd></mtr><mtr><mtd>{no}</mtd><mtd><mtext>otherwise</mtext></mtd></mtr>"
        )
        return (
            f'<mrow><mo stretchy="true">{{</mo><mtable columnalign="left">{cases}</mtable></mrow>'
        )
    name = {
        "log": "<mi>ln</mi>",
        "log2": "<msub><mi>log</mi><mn>2</mn></msub>",
        "normal_cdf": "<mi>Φ</mi>",
    }.get(operation, f"<mi>{operation}</mi>")
    inside = "<mo>,</mo>".join(map(_row, arguments))
    return f"<mrow>{name}<mo>(</mo>{inside}<mo>)</mo></mrow>"


def _row(value: Any) -> str:
    """Return a value as one element, wherever it stands."""
    text, _ = _written(value)
    return f"<mrow>{text}</mrow>"


def _bracketed(value: Any, rank: int) -> str:
    """Return a value as one element, in brackets where it binds less than what it stands in."""
    text, own = _written(value)
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>" if own < rank else f"<mrow>{text}</mrow>"


def _number(value: Any) -> tuple[str, int]:
    """Return a literal, a power of ten written as one; a negative one binds like a difference."""
    mantissa, _, exponent = literal(value).partition("e")
    sign, digits = ("<mo>−</mo>", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    if not exponent:
        return f"{sign}<mn>{digits}</mn>", RANK["neg"] if sign else TALL
    power = f"<mn>{int(exponent)}</mn>".replace("<mn>-", "<mo>−</mo><mn>")
    ten = f"<msup><mn>10</mn><mrow>{power}</mrow></msup>"
    return (f"{sign}{ten}" if digits == "1" else f"{sign}<mn>{digits}</mn><mo>⋅</mo>{ten}"), RANK[
        "*"
    ]
