"""Formulas in rows: arithmetic on numbers with units, over a scope's names and functions.

Python's parser reads a formula, and this module evaluates only numbers, names, calls and
arithmetic. Names may contain dots and hyphens, as in `parts.trn3.peak_fp8`, `gb200-nvl72` and
`trn3-nl32x2@switch=gen2`, so a minus sign needs spaces around it.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, NamedTuple, Protocol

from tco.core.errors import DataError, unknown
from tco.core.formula import Formula
from tco.core.units import dimension_text, unit

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:[-.]\w+)*(?:@\w+=[\w-]+)?")
# Factor of a dimension as `dimension_text` writes it.
FACTOR = re.compile(r"(/ )?(\[\w+\])(?: \*\* ([\d.]+))?")
LONGEST_FORMULA = 2000  # characters
# Operators whose operands must have the same dimension.
SAME_DIMENSION_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mod: operator.mod}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **SAME_DIMENSION_OPERATORS,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
# Functions of numbers of any unit, all of the same dimension.
GATHERING_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "round": round,
}


class DimensionedQuantity(NamedTuple):
    """Number in base units with its dimension."""

    value: float
    powers: Mapping[str, float] = {}  # by base dimension; empty for a pure number


class ExpressionScope(Protocol):
    """Names and functions that a formula may use."""

    # Functions that return amounts, by name. A parameter with the annotation `str` takes a name.
    # Any other parameter takes a number in the unit of its annotation.
    functions: dict[str, Callable[..., Any]]

    def named(self, name: str) -> DimensionedQuantity:
        """Return the amount of `name`.

        Raises:
            DataError: The name is unknown.

        """

    def text(self, name: str) -> str:
        """Return the text of `name`, for a function that takes a text and not an amount."""

    def check(self, parameter: str, name: str) -> None:
        """Raise `DataError` for a name that a parameter does not know."""


def amount(base_value: float, unit_text: str) -> DimensionedQuantity:
    """Return a number in base units as an amount with a dimension.

    Args:
        base_value: Number in base units.
        unit_text: Unit, read for its dimension only.

    Raises:
        DataError: The text is not a unit.

    """
    return DimensionedQuantity(base_value, _powers_of(unit(unit_text).dimension))


def _powers_of(dimension: str) -> dict[str, float]:
    return {
        dimension_name: (-1 if below else 1) * float(power or 1)
        for below, dimension_name, power in FACTOR.findall(dimension)
    }


def _dimension_product(
    powers: Mapping[str, float], other_powers: Mapping[str, float], exponent: float
) -> dict[str, float]:
    """Return the powers of a dimension times another dimension to an exponent."""
    product_powers = {
        dimension_name: powers.get(dimension_name, 0.0)
        + exponent * other_powers.get(dimension_name, 0.0)
        for dimension_name in {**powers, **other_powers}
    }
    return {dimension_name: power for dimension_name, power in product_powers.items() if power}


def evaluate_formula(
    formula_text: str, scope: ExpressionScope, place_of: Callable[[int], str]
) -> DimensionedQuantity:
    """Return the amount and dimension of the formula `formula_text`.

    Args:
        formula_text: Formula as written in a row, ASCII only.
        scope: Names and functions that the formula may use.
        place_of: Returns the place of a character of the formula, for errors.

    Raises:
        DataError: The formula cannot be read, or a name, function or unit is wrong.

    """
    return ExpressionEvaluator(formula_text, scope, place_of).formula_amount()


def amount_in_unit(
    evaluated: DimensionedQuantity, unit_text: str, place_of: Callable[[int], str]
) -> float:
    """Return the formula's amount `evaluated` in the unit `unit_text`.

    Args:
        evaluated: Amount in base units, with its dimension.
        unit_text: Unit of the result; an empty text for a pure number.
        place_of: Returns the place of a character of the formula, for errors.

    Raises:
        DataError: The amount has another dimension, or the text is not a unit.

    """
    target_unit = unit(unit_text)
    if evaluated.powers != _powers_of(target_unit.dimension):
        raise DataError(
            f"{place_of(0)}: the formula gives {dimension_text(evaluated.powers)}, shown in "
            f"{unit_text or '1'!r} ({target_unit.dimension})"
        )
    return evaluated.value / target_unit.factor


class ExpressionEvaluator:
    """Evaluation of one formula.

    Args:
        formula_text: Formula as written in a row.
        scope: Names and functions that the formula may use.
        place_of: Returns the place of a character of the formula, for errors.

    """

    def __init__(
        self, formula_text: str, scope: ExpressionScope, place_of: Callable[[int], str]
    ) -> None:
        self.text = formula_text
        self.scope = scope
        self.place = place_of

    def formula_amount(self) -> DimensionedQuantity:
        """Return the amount and dimension of the whole formula."""
        if not self.text.isascii() or len(self.text) > LONGEST_FORMULA:
            raise DataError(
                f"{self.place(0)}: expected a formula of at most {LONGEST_FORMULA:,} ASCII "
                "characters"
            )
        # The replacement has the same length, so that offsets stay valid.
        plain = NAME.sub(lambda name_match: re.sub(r"[-.@=]", "_", name_match[0]), self.text)
        try:
            return self.of(ast.parse(plain, mode="eval").body)
        except SyntaxError as error:
            raise DataError(
                f"{self.place((error.offset or 1) - 1)}: broken formula ({error.msg})"
            ) from None
        except (OverflowError, RecursionError, MemoryError):
            raise DataError(
                f"{self.place(0)}: a formula nested too deeply, or a number beyond 1e308"
            ) from None

    def fault(self, node: Any, what: str) -> DataError:
        """Return an error that names the place of a node."""
        return DataError(f"{self.place(node.col_offset)}: {what}")

    def source(self, node: ast.expr) -> str:
        """Return the formula's text for `node`, without quotes."""
        return self.text[node.col_offset : node.end_col_offset].strip("'\"")

    def of(self, node: ast.expr) -> DimensionedQuantity:
        """Return the amount and dimension of the syntax node `node`."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return DimensionedQuantity(float(value))
            case ast.Name():
                evaluated: DimensionedQuantity = self.ask_scope(
                    node, lambda: self.scope.named(self.source(node))
                )
                return evaluated
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.operator_result(
                    node, ast.Mult, DimensionedQuantity(-1.0), self.of(operand)
                )
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return self.operator_result(node, type(op), self.of(left), self.of(right))
            case ast.Call(func=ast.Name()):
                return self.call_result(node)
        raise self.fault(
            node,
            f"{self.source(node)!r} is no number, name, call, or sum, product or power of them",
        )

    def ask_scope(self, node: ast.expr, ask: Callable[[], Any]) -> Any:
        """Return the scope's answer to `ask()`.

        An error of the scope is raised again with the place of `node`.
        """
        try:
            return ask()
        except DataError as error:
            raise self.fault(node, str(error)) from None

    def operator_result(
        self,
        node: ast.expr,
        kind: type[ast.operator],
        left: DimensionedQuantity,
        right: DimensionedQuantity,
    ) -> DimensionedQuantity:
        """Return the result of an arithmetic operator on two amounts."""
        powers = left.powers
        if kind in SAME_DIMENSION_OPERATORS:
            self.refuse_other_dimension(node, right, powers)
        elif kind is ast.Pow:
            self.refuse_other_dimension(node, right, {})
            powers = _dimension_product({}, powers, right.value)
        else:
            powers = _dimension_product(powers, right.powers, 1 if kind is ast.Mult else -1)
        joined_value = OPERATORS[kind](left.value, right.value)
        if isinstance(joined_value, complex):
            raise self.fault(node, "a root of a number below zero")
        return DimensionedQuantity(joined_value, powers)

    def refuse_other_dimension(
        self, node: ast.expr, evaluated: DimensionedQuantity, powers: Mapping[str, float]
    ) -> None:
        """Raise `DataError` for an amount of another dimension than expected."""
        if evaluated.powers != powers:
            raise self.fault(
                node,
                f"{self.source(node)!r}: {dimension_text(evaluated.powers)}, expected "
                f"{dimension_text(powers)}",
            )

    def call_result(self, node: ast.Call) -> DimensionedQuantity:
        """Return the amount and dimension of a function call."""
        function_name = self.source(node.func)
        if function_name not in GATHERING_FUNCTIONS:
            if function_name not in self.scope.functions:
                raise unknown(
                    "function",
                    function_name,
                    [*self.scope.functions, *GATHERING_FUNCTIONS],
                    self.place(node.col_offset),
                )
            return self.scope_function_result(
                node, function_name, self.scope.functions[function_name]
            )
        amounts = [self.of(argument) for argument in node.args]
        if not amounts or node.keywords or (function_name == "round") != (len(amounts) == 1):
            arguments = "number" if function_name == "round" else "number, number, ..."
            raise self.fault(node, f"expected {function_name}({arguments})")
        for argument, amount in zip(node.args, amounts, strict=True):
            self.refuse_other_dimension(argument, amount, amounts[0].powers)
        return DimensionedQuantity(
            float(GATHERING_FUNCTIONS[function_name](*(amount.value for amount in amounts))),
            amounts[0].powers,
        )

    def scope_function_result(
        self, node: ast.Call, function_name: str, function: Callable[..., Any]
    ) -> DimensionedQuantity:
        """Return the amount of a call of a function of the scope."""
        expected = signature(function)
        settings = {
            self.text[word.col_offset : word.col_offset + len(word.arg)]: word.value
            for word in node.keywords
            if word.arg
        }
        try:
            bound_arguments = expected.bind(*node.args, **settings).arguments
            complete = all(
                parameter.name in bound_arguments
                for parameter in expected.parameters.values()
                if parameter.kind is Parameter.VAR_POSITIONAL
            )
        except TypeError:
            complete = False
        if not complete:
            names = (str(parameter).partition(":")[0] for parameter in expected.parameters.values())
            raise self.fault(node, f"expected {function_name}({', '.join(names)})")
        argument_values: list[Any] = []
        texts: dict[str, str] = {}
        for parameter_name, nodes in bound_arguments.items():
            parameter = expected.parameters[parameter_name]
            if parameter.kind is Parameter.VAR_KEYWORD:
                texts = {
                    path: self.scope.text(self.source(setting_node))
                    for path, setting_node in nodes.items()
                }
            else:
                argument_values += [
                    self.argument(parameter, node)
                    for node in (nodes if parameter.kind is Parameter.VAR_POSITIONAL else [nodes])
                ]
        returned_amount: DimensionedQuantity = self.ask_scope(
            node, lambda: function(*argument_values, **texts)
        )
        return returned_amount

    def argument(self, parameter: Parameter, node: ast.expr) -> Any:
        """Return the argument of a parameter: a known name, or a number of the parameter's unit."""
        if parameter.annotation == "str":
            argument_name = self.source(node)
            self.ask_scope(node, lambda: self.scope.check(parameter.name, argument_name))
            return argument_name
        evaluated = self.of(node)
        expected_powers = {}
        if parameter.annotation != "float":
            expected_powers = _powers_of(unit(parameter.annotation).dimension)
        self.refuse_other_dimension(node, evaluated, expected_powers)
        return evaluated.value


def formula_row_function(formula: Formula) -> Callable[..., DimensionedQuantity]:
    """Return a formula of the program as a function that rows may call.

    The arguments of the function are in the units of the formula.

    Args:
        formula: Record of a formula of the program.

    Returns:
        Function of positional arguments that gives an amount; its signature states the units and
        defaults of the parameters.

    """

    def call(*argument_values: Any) -> DimensionedQuantity:
        return amount(formula.function(*argument_values), formula.unit)

    kind, missing = Parameter.POSITIONAL_ONLY, Parameter.empty
    parameters = [
        Parameter(
            parameter_name,
            kind,
            annotation=unit_text,
            default=formula.defaults.get(parameter_name, missing),
        )
        for parameter_name, unit_text in formula.parameters.items()
    ]
    typed_signature = signature(call).replace(parameters=parameters)
    call.__signature__ = typed_signature  # type: ignore[attr-defined]
    return call
