"""The arithmetic of a formula: its single operations, and a hash of them."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from tco.core.formula import Formula, normal_form


class Recipe(NamedTuple):
    """The operations of a formula.

    Operands below zero are its parameters, from the last one on, others its operations before, or
    numbers.
    """

    operations: tuple[tuple[str, tuple[Any, ...]], ...]
    result: Any


@cache
def recipe_of(formula: Formula) -> Recipe:
    """Return the operations of a formula."""
    from tco.core.equation import Symbol, expression  # a cached kernel runs without it

    parameter_indices = {
        parameter_name: lower_symbol - len(formula.parameters)
        for lower_symbol, parameter_name in enumerate(formula.parameters)
    }
    operations: list[tuple[str, tuple[Any, ...]]] = []
    met: dict[int, int] = {}

    def lower_symbol(symbol_or_number: Any) -> Any:
        if not isinstance(symbol_or_number, Symbol):
            return float(symbol_or_number)
        if symbol_or_number.operation == "name":
            return parameter_indices[symbol_or_number.arguments[0]]
        if symbol_or_number.operation == "normal_cdf":
            return lower_symbol(normal_form(symbol_or_number.arguments[0]))
        if id(symbol_or_number) not in met:
            taken = tuple(lower_symbol(argument) for argument in symbol_or_number.arguments)
            met[id(symbol_or_number)] = len(operations)
            operations.append((symbol_or_number.operation, taken))
            live_symbols.append(symbol_or_number)  # an id is its own only while it lives
        return met[id(symbol_or_number)]

    live_symbols: list[Symbol] = []
    recipe_result = lower_symbol(expression(formula))
    return Recipe(tuple(operations), recipe_result)


@cache
def recipe_hash(formula: Formula) -> bytes:
    """Return a hash of the operations of a formula, the same on every machine."""
    return blake2b(repr(recipe_of(formula)).encode(), digest_size=16).digest()
