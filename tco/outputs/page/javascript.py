"""A formula as the page's script has it: its own body, run on symbols and printed in JavaScript, whose numbers are those of Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tco.foundation.equation import Symbol, expression
from tco.foundation.formula import REGISTRY, normal_form

WRITTEN = {  # operation -> how it is written; every operation keeps its brackets, so that what is rounded where stays as it is
    **{sign: f"({{}}{sign}{{}})" for sign in ("<", "<=", ">", ">=", "+", "-", "*", "/")},
    **{"**": "Math.pow({},{})", "neg": "(-{})", "max": "Math.max({},{})", "min": "Math.min({},{})", "select": "({}?{}:{})"},
    **{name: f"Math.{name}({{}})" for name in ("sqrt", "exp", "expm1", "log", "log1p", "log2", "ceil", "floor")},
    "normal_cdf": "normal_cdf({})",
}
GATHERED = {  # the sum in the order of its terms, as the engine adds them
    "total": "(...terms)=>terms.reduce((sum,term)=>sum+term,0)",
    "least": "(...terms)=>terms.reduce((one,other)=>Math.min(one,other))",
    "greatest": "(...terms)=>terms.reduce((one,other)=>Math.max(one,other))",
}


def printed(value: Any) -> str:
    """Return a symbol as an expression."""
    if not isinstance(value, Symbol):
        return repr(float(value)).removesuffix(".0") if value >= 0 else f"({float(value)!r})"
    if value.operation == "name":
        return named(value.arguments[0])
    return WRITTEN[value.operation].format(*map(printed, value.arguments))


def named(parameter: str) -> str:
    """Return the name of a parameter as the script has it, which is no word of the language."""
    return f"${parameter}"


def function(name: str) -> str:
    """Return a formula or a gathering by name as a function of its parameters, in their order."""
    if name in GATHERED:
        return GATHERED[name]
    formula = REGISTRY[name]
    return f"({','.join(map(named, formula.parameters))})=>{printed(expression(formula))}"


def script(names: Iterable[str]) -> str:
    """Return the functions of some formulas, one a line, as the list the program of the page numbers them by."""
    lines = [f"  {function(name)}, // {name}" for name in names]
    return "\n".join([f"const normal_cdf = {named('x')} => {printed(normal_form(Symbol('name', 'x')))};", "const FORMULAS = [", *lines, "];"])
