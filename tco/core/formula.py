"""Formulas: plain functions of numbers, written once and read as number, array, quantity or trace.

A formula may use only `+ - * / **`, comparisons inside `select`, `np.maximum minimum sqrt exp expm1
log log1p log2 ceil floor`, and the helpers of this module. What is small beside what it is the
difference of is computed as such: `expm1(x)` for exp(x) - 1, `log1p(x)` for log(1 + x), never one
near number less another. It is elementwise and branch-free, so the same code serves a float, a
million draws, a pint quantity and the symbols its equation is printed from. Its parameters and its
result carry units; arithmetic between formulas is not allowed: while a trace is recorded, one
formula call is one node.
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

REGISTRY: dict[str, Formula] = {}


class Recorder(Protocol):
    """Interface of a trace while it is recorded (`tco.core.trace`)."""

    def call(self, formula: Formula, arguments: tuple[Any, ...], named: JsonObject) -> Any:
        """Call a formula and keep a node of it."""

    def gather(self, operation: str, name: str, terms: Sequence[Quantity]) -> Quantity:
        """Keep a node of a sum, a least or a greatest."""


class Formula:
    """Record of a formula: name, units, defaults, source and text.

    The units are of the result and of the parameters.
    """

    def __init__(self, function: Callable[..., Any], unit: str, source: str) -> None:
        self.function = function
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


# The recorder in use in this thread or task, if any: the one flag a formula call tests.
RECORDER: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
in_use = RECORDER.get


def _formula_of(module: str, formula_name: str) -> Formula:
    if formula_name not in REGISTRY:
        importlib.import_module(module)
    return REGISTRY[formula_name]


def formula(unit: str, source: str = "tco-model") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a function as a formula, with its unit and its source.

    Args:
        unit: Unit of the result.
        source: Id of the source of the equation; without one the equation is this program's own.

    Returns:
        Decorator; a call of the decorated function is a node while a trace is recorded. The
        decorator raises `ValueError` for a name that is registered already.

    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        record = Formula(function, unit, source)
        if record.name in REGISTRY:
            raise ValueError(f"formula {record.name!r} is defined twice")
        REGISTRY[record.name] = record

        def call(*arguments: P.args, **named: P.kwargs) -> R:
            recorder = in_use()
            if recorder is None:
                return function(*arguments, **named)
            formula_result: R = recorder.call(record, arguments, named)
            return formula_result

        call.__doc__, call.__name__, call.__module__ = (
            function.__doc__,
            function.__name__,
            function.__module__,
        )
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

    The choice of the cheapest algorithm is such a node.

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

    The bound that binds is such a node.

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


MANY = 2**11  # numbers of an array that is large beside the cost of a call


def least_over(
    node_name: str,
    candidates: tuple[tuple[float, ...], ...],
    compute: Callable[..., Quantity],
    *arguments: Quantity,
) -> Quantity:
    """Return the least result of a function over rows of plain numbers.

    The result is that of `least` over `compute(*candidate, *arguments)`, in a single call.

    The candidates are stacked on an axis in front of all axes of the arguments: each number of a
    candidate becomes an array of shape (candidates, 1, ..., 1) with as many ones as the argument of
    most axes has axes, so it broadcasts against arguments of any shape. The minimum is taken over
    the first axis. While a trace is recorded, and where arrays are so large that a call costs less
    than the memory of all candidates, each candidate has a call of its own; the result is the same.

    Args:
        node_name: Name of the node in a trace.
        candidates: Rows of plain numbers, which open the arguments of `compute`.
        compute: Elementwise function of a candidate and the arguments.
        *arguments: Numbers or arrays that broadcast together.

    Returns:
        Minimum, of the shape that the arguments broadcast to.

    """
    axes, size = extent(arguments)
    if in_use() is not None or size > MANY:
        return least(node_name, [compute(*candidate, *arguments) for candidate in candidates])
    stacked = as_array(compute(*_stacked(candidates, axes), *arguments))
    smallest: Quantity = np.minimum.reduce(stacked)
    return smallest


def extent(values: Iterable[Any]) -> tuple[int, int]:
    """Return the most axes, and the most numbers, that any of some values has.

    Args:
        values: Arrays, or values of any other type, which count as zero axes and a single number.

    Returns:
        Number of axes and number of elements, each the largest of all values.

    """
    axes, size = 0, 1
    for value in values:
        if isinstance(value, np.ndarray):
            axes, size = max(axes, value.ndim), max(size, value.size)
    return axes, size


def stack_terms(terms: Sequence[Any], axes: int) -> Any:
    """Return values stacked on a new axis in front of all others.

    Args:
        terms: Numbers or arrays that broadcast together.
        axes: Most axes of the terms and of the values in the same calculation.

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
    """Return each number of the candidates as an array whose first axis is theirs."""
    return tuple(
        np.array(column, dtype=float).reshape(-1, *([1] * axes))
        for column in zip(*candidates, strict=True)
    )


def select(condition: Any, yes: Quantity, no: Quantity) -> Quantity:
    """Return `yes` where the condition holds, else `no`. Both are evaluated: guard divisors.

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


# what Python compares in a tenth of the time a call of numpy takes
NUMBERS = frozenset((float, int, np.float64))


def maximum(left_term: Quantity, right_term: Quantity) -> Quantity:
    """Return the larger of two numbers or arrays, as `np.maximum`.

    Plain numbers stay plain, and take less time.

    Args:
        left_term: First number or array.
        right_term: Second number or array, in the unit of the first.

    """
    if type(left_term) in NUMBERS and type(right_term) in NUMBERS:
        return left_term if left_term >= right_term else right_term
    return elementwise_maximum(left_term, right_term)


def minimum(left_term: Quantity, right_term: Quantity) -> Quantity:
    """Return the smaller of two numbers or arrays, as `np.minimum`.

    Plain numbers stay plain, and take less time.

    Args:
        left_term: First number or array.
        right_term: Second number or array, in the unit of the first.

    """
    if type(left_term) in NUMBERS and type(right_term) in NUMBERS:
        return left_term if left_term <= right_term else right_term
    return elementwise_minimum(left_term, right_term)


def somewhere(condition: Any) -> bool:
    """Say whether a condition on structure holds for at least one plan.

    Such a condition is on the sizes of groups, for example.

    Args:
        condition: Flag of a single plan, or array of flags over many plans.

    """
    return (
        bool(np.count_nonzero(condition)) if isinstance(condition, np.ndarray) else bool(condition)
    )


def everywhere(condition: Any) -> bool:
    """Say whether a condition on structure holds for every plan.

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


# Hart's rational form of the upper tail of the normal distribution (1968, algorithm 5666), from the
# highest power down.
_TAIL_OVER = (
    0.0352624965998911,
    0.700383064443688,
    6.37396220353165,
    33.912866078383,
    112.079291497871,
    221.213596169931,
    220.206867912376,
)
_TAIL_UNDER = (
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

    The form is Hart's rational form, and a continued fraction beyond 7.07.

    Args:
        x: Standard normal deviate: a number, an array or a symbol.

    Returns:
        Probability from 0 to 1, of the shape of `x`; for a symbol, a call of `normal_cdf` by name.

    """
    symbol: Any = x
    if hasattr(symbol, "select"):  # an equation names it
        named: Quantity = symbol.apply("normal_cdf")
        return named
    return normal_form(x)


def normal_form(x: Quantity) -> Quantity:
    """Return the standard normal distribution in elementary operations.

    `normal_cdf` is computed in this form. The form takes symbols too, for targets without a normal
    distribution.

    Args:
        x: Standard normal deviate: a number, an array or a symbol.

    Returns:
        Probability from 0 to 1, of the shape of `x`; for a symbol, the expression.

    """
    z = elementwise_maximum(x, -x)
    near = elementwise_minimum(z, 7.07)
    over: Any = 0.0
    for coefficient in _TAIL_OVER:
        over = over * near + coefficient
    under: Any = 0.0
    for coefficient in _TAIL_UNDER:
        under = under * near + coefficient
    far = elementwise_minimum(elementwise_maximum(z, 7.07), 37.0)
    fraction = far + 1 / (far + 2 / (far + 3 / (far + 4 / (far + 0.65))))
    tail = exp(-z * z / 2) * select(z < 7.07, over / under, 1 / (fraction * sqrt(2 * np.pi)))
    return select(x >= 0, 1 - tail, tail)


class Known(dict[tuple[Any, ...], Any]):
    """Cache of pure results by name, numbers and small arrays, while all else is equal."""

    kept_state: Any = None

    def of(
        self, result_name: tuple[str, ...], rests: Iterable[Any], compute: Callable[[], Any]
    ) -> Any:
        """Return the result of `compute()`, kept under `result_name` and `rests`.

        The result is computed once for equal numbers. It is None where nothing is kept: for large
        arrays, and in a trace.
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
            if len(self) >= MANY:  # an answer asks for some dozens: these are of others, long ago
                self.clear()
            kept_answer = self[full_key] = compute()
        return kept_answer


def known_on(rests: tuple[Any, ...], kept_state: Any) -> Known:
    """Return the cache of results that rest on the values `rests`.

    Equal numbers share a cache. Arrays get an empty cache, and so does every call in a trace.

    Args:
        rests: Numbers or arrays that the results rest on.
        kept_state: Objects that numbers of `rests` stand for by `id`. They stay as long as the
            numbers are among the last numbers of a call.

    """
    try:
        known_answers = _of_numbers(rests) if in_use() is None else Known()
    except TypeError:  # arrays have no hash
        known_answers = Known()
    known_answers.kept_state = kept_state
    return known_answers


@lru_cache(maxsize=32)
def _of_numbers(_: tuple[Any, ...]) -> Known:
    return Known()


Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def finite(function: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
    """Return a function that refuses array arithmetic without a finite result.

    The error settings of the caller stay as they are.

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
