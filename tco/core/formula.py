"""Formulas: plain functions that take numbers, arrays, quantities with units, or traced values.

A formula may use only `+ - * / **`, comparisons inside `select`, `np.maximum minimum sqrt exp expm1
log log1p log2 ceil floor`, and the helpers of this module. A small difference of nearly equal
numbers is computed directly: `expm1(x)` for exp(x) - 1, and `log1p(x)` for log(1 + x).

A formula is elementwise and free of branches, so the same code serves a float, a million draws, a
pint quantity and the symbols from which its equation is printed. Its parameters and its result have
units. Arithmetic between formulas is not allowed, because a recorded trace has one node for each
formula call.
"""

from __future__ import annotations

import importlib
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import cache, cached_property, lru_cache, reduce, wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from tco.core import units
from tco.core.elementwise import (
    as_array,
    ceil,
    elementwise_maximum,
    elementwise_minimum,
    exp,
    sqrt,
    where,
)
from tco.core.errors import DataError
from tco.core.types import JsonObject, Quantity

P = ParamSpec("P")
R = TypeVar("R")

REGISTRY: dict[str, Formula] = {}  # every formula by name
# Size of an array from which its memory costs more time than a function call.
MANY = 2**11
# Types that Python compares ten times as fast as numpy.
NUMBERS = frozenset((float, int, np.float64))


class Recorder(Protocol):
    """Interface of a trace while it is recorded (`tco.core.trace`)."""

    def call(self, formula: Formula, arguments: tuple[Any, ...], named: JsonObject) -> Any:
        """Call a formula and keep a node of it."""

    def gather(self, operation: str, name: str, terms: Sequence[Quantity]) -> Quantity:
        """Keep a node of a sum, a least or a greatest."""


class Formula:
    """Record of a formula: name, units, defaults, source and text.

    Args:
        function: Function whose parameters are annotated with their units.
        unit: Unit of the result.
        source: Id of the source of the equation.
        textbook_equation: Equation as the field writes it, with the parameter names; empty where
            the code reads as well.
        textbook_unit: Unit as the field writes it, such as 1/month of an interest; empty for
            `unit`.

    """

    def __init__(
        self,
        function: Callable[..., Any],
        unit: str,
        source: str,
        textbook_equation: str = "",
        textbook_unit: str = "",
    ) -> None:
        self.function = function
        self.textbook_equation = textbook_equation
        self.textbook_unit = textbook_unit
        self.name = function.__name__
        self.unit = unit
        self.source = source
        annotations = function.__annotations__
        code = function.__code__
        parameter_names = code.co_varnames[: code.co_argcount]
        self.parameters: dict[str, str] = {
            parameter_name: getattr(units, annotations[parameter_name]).__metadata__[0]
            for parameter_name in parameter_names
        }
        default_values = function.__defaults__ or ()
        self.defaults: dict[str, float] = dict(
            zip(
                parameter_names[len(parameter_names) - len(default_values) :],
                default_values,
                strict=True,
            )
        )

    @cached_property
    def text(self) -> str:
        """Docstring of the function, its summary on one line."""
        summary, *paragraphs = inspect.cleandoc(self.function.__doc__ or "").split("\n\n")
        return "\n\n".join([" ".join(summary.split()), *paragraphs])

    def __reduce__(self) -> tuple[Callable[[str, str], Formula], tuple[str, str]]:
        """Pickle the name alone, so that a trace uses the formulas of the program that reads it."""
        return _formula_of, (self.function.__module__, self.name)


# Recorder in use in this thread or task; None while no trace is recorded.
RECORDER: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
in_use = RECORDER.get


def _formula_of(module: str, formula_name: str) -> Formula:
    if formula_name not in REGISTRY:
        importlib.import_module(module)
    return REGISTRY[formula_name]


def formula(
    unit: str,
    source: str = "tco-model",
    textbook_equation: str = "",
    textbook_unit: str = "",
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a function as a formula, with its unit and its source.

    Args:
        unit: Unit of the result.
        source: Id of the source of the equation; the default is this program.
        textbook_equation: Equation as the field writes it, for `tco explain`.
        textbook_unit: Unit as the field writes it, for `tco explain`.

    Returns:
        Decorator; a call of the decorated function is a node while a trace is recorded. The
        decorator raises `ValueError` for a name that is registered already.

    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        record = Formula(function, unit, source, textbook_equation, textbook_unit)
        if record.name in REGISTRY:
            raise ValueError(f"formula {record.name!r} is defined twice")
        REGISTRY[record.name] = record

        def call(*arguments: P.args, **named: P.kwargs) -> R:
            recorder = in_use()
            if recorder is None:
                return function(*arguments, **named)
            formula_result: R = recorder.call(record, arguments, named)
            return formula_result

        call.__doc__ = function.__doc__
        call.__name__ = function.__name__
        call.__module__ = function.__module__
        call.__wrapped__ = function  # type: ignore[attr-defined]
        return call

    return register


def total(node_name: str, terms: Sequence[Quantity]) -> Quantity:
    """Return the sum of any number of terms, as a single node.

    Args:
        node_name: Name of the node in a trace.
        terms: Numbers or arrays of the same unit.

    Returns:
        Sum in the unit of the terms; 0.0 without terms.

    """
    recorder = in_use()
    if recorder is not None:
        return recorder.gather("total", node_name, terms)
    return reduce(operator.add, terms) if len(terms) else 0.0


def least(node_name: str, candidates: Sequence[Quantity]) -> Quantity:
    """Return the smallest of several candidates of the same unit, as a single node.

    The time of the fastest algorithm, for example, is such a node.

    Args:
        node_name: Name of the node in a trace.
        candidates: Numbers or arrays of the same unit, at least one.

    Returns:
        Elementwise minimum in the unit of the candidates.

    """
    recorder = in_use()
    if recorder is not None:
        return recorder.gather("least", node_name, candidates)
    return reduce(elementwise_minimum, candidates)


def greatest(node_name: str, candidates: Sequence[Quantity]) -> Quantity:
    """Return the largest of several candidates of the same unit, as a single node.

    The time that binds, for example, is such a node.

    Args:
        node_name: Name of the node in a trace.
        candidates: Numbers or arrays of the same unit, at least one.

    Returns:
        Elementwise maximum in the unit of the candidates.

    """
    recorder = in_use()
    if recorder is not None:
        return recorder.gather("greatest", node_name, candidates)
    return reduce(elementwise_maximum, candidates)


def least_over(
    node_name: str,
    candidates: tuple[tuple[float, ...], ...],
    compute: Callable[..., Quantity],
    *arguments: Quantity,
) -> Quantity:
    """Return the least result of a function over rows of plain numbers.

    The result is that of `least` over `compute(*candidate, *arguments)`, in a single call.

    The candidates are stacked on a new first axis: each number of a candidate becomes an array of
    shape (candidates, 1, ..., 1), which broadcasts against all arguments. The minimum is taken over
    the first axis. Each candidate is computed by a separate call while a trace is recorded and for
    large arrays; the result is the same.

    Args:
        node_name: Name of the node in a trace.
        candidates: Rows of plain numbers, the first arguments of `compute`.
        compute: Elementwise function of a candidate and the arguments.
        *arguments: Numbers or arrays that broadcast together.

    Returns:
        Minimum, in the joint shape of the arguments.

    """
    axes, size = extent(arguments)
    if in_use() is not None or size > MANY:
        return least(node_name, [compute(*candidate, *arguments) for candidate in candidates])
    stacked = as_array(compute(*_stacked(candidates, axes), *arguments))
    smallest: Quantity = np.minimum.reduce(stacked)
    return smallest


def extent(values: Iterable[Any]) -> tuple[int, int]:
    """Return the largest number of axes and the largest number of elements among values.

    Args:
        values: Arrays, or values of any other type, which have no axes and one element.

    """
    axes = 0
    size = 1
    for value in values:
        if isinstance(value, np.ndarray):
            axes = max(axes, value.ndim)
            size = max(size, value.size)
    return axes, size


def stack_terms(terms: Sequence[Any], axes: int) -> Any:
    """Return values stacked on a new first axis.

    Args:
        terms: Numbers or arrays that broadcast together.
        axes: Largest number of axes of the terms and of other values in the same calculation.

    Returns:
        Array of shape (terms, 1, ..., 1, *shape of a term), with `axes` axes after the first.

    """
    shapes = {term.shape for term in terms if isinstance(term, np.ndarray)}
    if not shapes:
        return np.array(terms, dtype=float).reshape(-1, *[1] * axes)
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    stacked_terms = np.empty((len(terms), *shape))
    for term_index, term in enumerate(terms):
        stacked_terms[term_index] = term
    return stacked_terms.reshape(len(terms), *[1] * (axes - len(shape)), *shape)


@cache
def _stacked(candidates: tuple[tuple[float, ...], ...], axes: int) -> tuple[Any, ...]:
    """Return an array for each position in a candidate, with the candidates on the first axis."""
    return tuple(
        np.array(column, dtype=float).reshape(-1, *([1] * axes))
        for column in zip(*candidates, strict=True)
    )


def select(condition: Any, yes: Quantity, no: Quantity) -> Quantity:
    """Return `yes` where the condition holds, else `no`.

    Both are evaluated, so a divisor must not be zero where it is not selected.

    Args:
        condition: Flag, array of flags or symbol.
        yes: Number or array for a condition that holds.
        no: Number or array for a condition that does not hold.

    """
    if condition is True or condition is False or isinstance(condition, np.bool_):
        return yes if condition else no
    if hasattr(condition, "select"):  # a symbol
        chosen: Quantity = condition.select(yes, no)
        return chosen
    return where(condition, yes, no)


def maximum(left_term: Quantity, right_term: Quantity) -> Quantity:
    """Return the larger of two numbers or arrays, as `np.maximum`.

    Plain numbers give a plain number, in less time.

    Args:
        left_term: First number or array.
        right_term: Second number or array, in the unit of the first.

    """
    if type(left_term) in NUMBERS and type(right_term) in NUMBERS:
        return left_term if left_term >= right_term else right_term
    return elementwise_maximum(left_term, right_term)


def minimum(left_term: Quantity, right_term: Quantity) -> Quantity:
    """Return the smaller of two numbers or arrays, as `np.minimum`.

    Plain numbers give a plain number, in less time.

    Args:
        left_term: First number or array.
        right_term: Second number or array, in the unit of the first.

    """
    if type(left_term) in NUMBERS and type(right_term) in NUMBERS:
        return left_term if left_term <= right_term else right_term
    return elementwise_minimum(left_term, right_term)


def somewhere(condition: Any) -> bool:
    """Return whether a condition on structure holds for at least one plan.

    An example is a condition on the sizes of groups.

    Args:
        condition: Flag of a single plan, or array of flags over many plans.

    """
    return (
        bool(np.count_nonzero(condition)) if isinstance(condition, np.ndarray) else bool(condition)
    )


def everywhere(condition: Any) -> bool:
    """Return whether a condition on structure holds for every plan.

    Args:
        condition: Flag of a single plan, or array of flags over many plans.

    """
    return (
        np.count_nonzero(condition) == condition.size
        if isinstance(condition, np.ndarray)
        else bool(condition)
    )


def ceil_ratio(numerator: Quantity, denominator: Quantity) -> Quantity:
    """Return `numerator` over `denominator`, rounded up: ceil(a/b - 1e-9).

    The 1e-9 keeps a rounding error from adding a whole unit.

    Args:
        numerator: Number or array.
        denominator: Number or array, not zero.

    """
    rounded_ratio = ceil(numerator / denominator - 1e-9)
    return float(rounded_ratio) if type(rounded_ratio) is np.float64 else rounded_ratio


# Coefficients of Hart's rational form of the upper tail of the normal distribution (1968, algorithm
# 5666), the highest power first.
_TAIL_NUMERATOR = (
    0.0352624965998911,
    0.700383064443688,
    6.37396220353165,
    33.912866078383,
    112.079291497871,
    221.213596169931,
    220.206867912376,
)
_TAIL_DENOMINATOR = (
    0.0883883476483184,
    1.75566716318264,
    16.064177579207,
    86.7807322029461,
    296.564248779674,
    637.333633378831,
    793.826512519948,
    440.413735824752,
)


def normal_cdf(x: Quantity) -> Quantity:
    """Return the cumulative distribution of the standard normal, to 1e-14.

    It uses Hart's rational form, and a continued fraction beyond 7.07.

    Args:
        x: Standard normal deviate: a number, an array or a symbol.

    Returns:
        Probability from 0 to 1, of the shape of `x`; for a symbol, a call of `normal_cdf` by name.

    """
    symbol: Any = x
    if hasattr(symbol, "select"):  # an equation shows the call by name
        named: Quantity = symbol.apply("normal_cdf")
        return named
    return normal_form(x)


def normal_form(x: Quantity) -> Quantity:
    """Return the standard normal distribution in elementary operations.

    `normal_cdf` uses these operations. They also take symbols, for targets that have no function
    of the normal distribution.

    Args:
        x: Standard normal deviate: a number, an array or a symbol.

    Returns:
        Probability from 0 to 1, of the shape of `x`; for a symbol, the expression.

    """
    z = elementwise_maximum(x, -x)
    near = elementwise_minimum(z, 7.07)
    numerator: Any = 0.0
    for coefficient in _TAIL_NUMERATOR:
        numerator = numerator * near + coefficient
    denominator: Any = 0.0
    for coefficient in _TAIL_DENOMINATOR:
        denominator = denominator * near + coefficient
    far = elementwise_minimum(elementwise_maximum(z, 7.07), 37.0)
    fraction = far + 1 / (far + 2 / (far + 3 / (far + 4 / (far + 0.65))))
    tail = exp(-z * z / 2) * select(
        z < 7.07, numerator / denominator, 1 / (fraction * sqrt(2 * np.pi))
    )
    return select(x >= 0, 1 - tail, tail)


class Known(dict[tuple[Any, ...], Any]):
    """Cache of pure results, by name and by the numbers and small arrays that decide them."""

    kept_state: Any = None  # objects that stay alive as long as the cache

    def of(
        self, result_name: tuple[str, ...], rests: Iterable[Any], compute: Callable[[], Any]
    ) -> Any:
        """Return the result of `compute()`, which is computed once for equal numbers.

        Args:
            result_name: Name of the result.
            rests: Numbers and arrays that decide the result.
            compute: Function that computes the result.

        Returns:
            The result; None for large arrays and in a trace, for which nothing is cached.

        """
        if in_use() is not None:
            return None
        key_parts: list[Any] = [*result_name]
        for rest in rests:
            if isinstance(rest, np.ndarray):
                if rest.size > MANY:
                    return None
                key_parts += (rest.shape, rest.tobytes())
            else:
                key_parts.append(rest)
        full_key = tuple(key_parts)
        kept_answer = self.get(full_key)
        if kept_answer is None:
            if len(self) >= MANY:  # an answer needs a few dozen, so most are of earlier answers
                self.clear()
            kept_answer = self[full_key] = compute()
        return kept_answer


def known_on(rests: tuple[Any, ...], kept_state: Any) -> Known:
    """Return the cache of results for equal values.

    Equal numbers share a cache. Arrays get an empty cache, and so does every call in a trace.

    Args:
        rests: Numbers or arrays that decide the results.
        kept_state: Objects whose `id` is among the values. The cache keeps them alive, so that no
            other object gets the same id.

    """
    try:
        known_answers = _known_on_numbers(rests) if in_use() is None else Known()
    except TypeError:  # arrays have no hash
        known_answers = Known()
    known_answers.kept_state = kept_state
    return known_answers


@lru_cache(maxsize=32)
def _known_on_numbers(_: tuple[Any, ...]) -> Known:
    return Known()


Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def finite(function: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
    """Return a function that raises an error for array arithmetic without a finite result.

    The error settings of the caller are not changed.

    Args:
        function: Function to guard.

    Returns:
        Function of the same signature, which raises `DataError` for a division by zero, an overflow
        or an invalid operation in numpy.

    """

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Found:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            try:
                return function(*arguments, **named)
            except FloatingPointError as error:
                raise DataError(f"no finite number comes out of these inputs: {error}") from error

    return call
