"""Equations of formulas, as text: a formula that is called with symbols returns its equation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from numpy.lib.mixins import NDArrayOperatorsMixin

from tco.core.formula import Formula

_PRECEDENCE = {"<": 0, "<=": 0, ">": 0, ">=": 0, "+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "**": 4}
_UFUNCS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "true_divide": "/",
    "divide": "/",
    "power": "**",
    "negative": "neg",
    "maximum": "max",
    "minimum": "min",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_FUNCTIONS = {"sqrt", "exp", "expm1", "log", "log1p", "log2", "ceil", "floor"}


class Symbol(NDArrayOperatorsMixin):
    """Name, or operation on symbols and numbers, without a conversion to bool, float or int."""

    __slots__ = ("arguments", "operation")

    def __init__(self, operation: str, *arguments: Any) -> None:
        self.operation = operation
        self.arguments = arguments

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Symbol:
        function_name = ufunc.__name__
        operation = _UFUNCS.get(function_name) or (
            function_name if function_name in _FUNCTIONS else None
        )
        if method != "__call__" or kwargs or operation is None:
            raise TypeError(f"{function_name} is not among the functions a formula may use")
        return Symbol(operation, *inputs)

    def apply(self, function: str) -> Symbol:
        """Return the symbol of a function applied to this symbol."""
        return Symbol(function, self)

    def select(self, yes: Any, no: Any) -> Symbol:
        """Return the symbol of `select(self, yes, no)`."""
        return Symbol("select", self, yes, no)

    def _refuse(self) -> Any:
        raise TypeError(
            "a formula may not branch on a value or turn it into a Python number; use select, "
            "np.maximum, np.minimum"
        )

    __bool__ = __float__ = __int__ = __index__ = _refuse
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return _render(self)[0]


def literal(plain_number: Any) -> str:
    """Return the text of a number with at most twelve digits, or with all digits if inexact."""
    short = f"{plain_number:.12g}"
    return short if float(short) == plain_number else repr(float(plain_number))


def _render(symbol_or_number: Any) -> tuple[str, int]:
    """Return the text of a value and the precedence of its outermost operation."""
    if not isinstance(symbol_or_number, Symbol):
        return literal(symbol_or_number), 9
    operation = symbol_or_number.operation
    arguments = symbol_or_number.arguments
    if operation == "name":
        return str(arguments[0]), 9
    rank = _PRECEDENCE.get(operation)
    if rank is None:
        argument_texts = [_render(argument)[0] for argument in arguments]
        return f"{operation}({', '.join(argument_texts)})", 9
    texts = []
    for position, argument in enumerate(arguments):
        argument_text, argument_rank = _render(argument)
        # Brackets are needed in a - (b - c), a / (b * c), (a ** b) ** c and -(a + b).
        needs_brackets = argument_rank < rank or (
            argument_rank == rank
            and (position == 1 if operation in "-/" else position == 0 and operation == "**")
        )
        texts.append(f"({argument_text})" if needs_brackets else argument_text)
    if operation == "neg":
        return f"-{texts[0]}", rank
    return f" {operation} ".join(texts), rank


def expression(formula: Formula) -> Any:
    """Return the formula's body as a symbol over its parameter names.

    Args:
        formula: The formula, whose function is called with symbols.

    Returns:
        A `Symbol`; a number where the body does not depend on the parameters.

    """
    return formula.function(
        *(Symbol("name", parameter_name) for parameter_name in formula.parameters)
    )


@cache
def equation(formula: Formula) -> str:
    """Return the formula's equation as the code computes it.

    Args:
        formula: The formula.

    Returns:
        Text such as 'max(flops / compute_rate, bytes / bandwidth)'.

    """
    body = expression(formula)
    return str(body)


@cache
def fingerprint(formula: Formula) -> str:
    """Return a short hash of a formula: its equation, units and defaults."""
    import hashlib  # most answers need no fingerprints

    parts = (
        equation(formula),
        formula.unit,
        *(f"{parameter_name} {unit}" for parameter_name, unit in formula.parameters.items()),
    )
    defaults = (
        f"{parameter_name} {default_value!r}"
        for parameter_name, default_value in formula.defaults.items()
    )
    return hashlib.sha256("\n".join((*parts, *defaults)).encode()).hexdigest()[:12]


def fingerprints(formulas: Iterable[Formula]) -> dict[str, str]:
    """Return the fingerprint of every formula by its name.

    Args:
        formulas: Formulas with distinct names.

    Returns:
        Short hashes; a hash changes with equation, units and defaults.

    """
    return {formula.name: fingerprint(formula) for formula in formulas}
