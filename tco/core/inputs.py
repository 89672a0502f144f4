"""Mapping of inputs by path: every quantity of an evaluation is read as `values[path]`.

A path is a dotted name such as `parts.trn3.tdp` or `site.electricity_price`. Its value is a float,
an array, a quantity or a traced leaf; the mapping decides which. Derived values have paths too:
`values.derived(path, unit, compute)` computes a value, unless the user has set the path. Then the
user's value replaces the computation.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tco.core.errors import DataError, unknown
from tco.core.formula import everywhere, somewhere
from tco.core.own_values import setting_input
from tco.core.provenance import Given, Input, check_bounds, worst
from tco.core.trace import Traced, TraceRecorder, paused, scope
from tco.core.types import JsonObject
from tco.core.units import convert, is_pure

# Results of decisions, by deciding function, paths of its inputs and its further arguments.
Decisions = Mapping[tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]], Any]
T = TypeVar("T")
Reader = Callable[[Input], Any]
Rule = Callable[[Callable[[str], Any]], Any]  # computes a value from a look-up of inputs by path
DERIVED = "tco-model"  # source of values that follow from other inputs


def following(formula: Callable[..., Any], *terms: float | str) -> Rule:
    """Return the rule that applies a formula to numbers and inputs.

    Args:
        formula: Function of the terms.
        *terms: Numbers, or paths of the inputs to look up.

    Returns:
        Function from a look-up by path to the value of the formula.

    """
    return lambda look_up: formula(
        *(look_up(term) if isinstance(term, str) else term for term in terms)
    )


def as_number(source_input: Input) -> Any:
    """Return the number of an input, or the array of many values.

    Args:
        source_input: Input to read.

    Returns:
        Value of the input, in the input's unit.

    """
    return source_input.value


def as_traced(trace: TraceRecorder) -> Reader:
    """Return the reading that makes every input a leaf of a trace.

    Args:
        trace: Recorder that takes the leaves.

    Returns:
        Function from an input to its leaf.

    """

    def read(source_input: Input) -> Traced:
        leaf = trace.leaf(
            source_input.path,
            source_input.value,
            source_input.unit,
            source_input.source,
            source_input.kind,
            source_input.path,
        )
        leaf.node.given = source_input
        leaf.node.stated_quantity = source_input.stated_quantity
        leaf.node.note = source_input.note
        return leaf

    return read


class Readings(dict[str, float]):
    """Inputs that decided the structure, by path, and the decisions.

    A value is a number, or a flag where only the sign of the input was read.
    """

    def __init__(
        self, recorded_values: Mapping[str, float] | None = None, decisions: Decisions | None = None
    ) -> None:
        super().__init__(recorded_values or {})
        self.decisions = dict(decisions or {})

    def take(self, other_readings: Readings) -> None:
        """Add the inputs and decisions of other readings."""
        self.update(other_readings)
        self.decisions |= other_readings.decisions

    def decide_alike(self, other_values: Mapping[str, float]) -> bool:
        """Return whether other values of these inputs lead to the same decisions.

        The value of an input without a recorded decision must be equal.
        """
        all_values = {**self, **other_values}
        decision_paths = {path for _, paths, _ in self.decisions for path in paths}
        if any(
            other_value != self[path]
            for path, other_value in other_values.items()
            if path in self and path not in decision_paths
        ):
            return False
        return all(
            decide(*[all_values[path] for path in paths], *rest) == decided_value
            for (decide, paths, rest), decided_value in self.decisions.items()
        )


class Readable(JsonObject):
    """Values by path, computed on first use, for a scenario, a trace or measured rows."""

    @abstractmethod
    def structure(self, path: str) -> float:
        """Return an input as a number that decides which parts, operators or formats exist."""

    def decided(self, decide: Callable[..., T], *paths: str, rest: tuple[Any, ...] = ()) -> T:
        """Return `decide` applied to plain numbers at `paths` and to `rest`.

        The structure depends on the decision only, and not on the numbers themselves.
        """
        return decide(*[self.structure(path) for path in paths], *rest)

    def exists(self, path: str) -> bool:
        """Return whether an input is positive, which decides whether its subject exists."""
        return self.structure(path) > 0

    def has(self, path: str) -> bool:
        """Return whether the user has set this path."""
        return path in self

    def unless_zero(self, path: str) -> Any:
        """Return an input, or None where it is a plain zero that changes nothing.

        An array or a traced value is always returned, since other values of it may not be zero.
        """
        input_value = self[path]
        return None if isinstance(input_value, float | int) and not input_value else input_value


class Reads(NamedTuple):
    """Inputs that a calculation read, in the order of reading."""

    inputs: dict[str, Input]  # by path
    derived: dict[str, str]  # units of derived values, by path
    looked: set[str]  # paths for which the calculation checked whether the user has set them


class Values(Readable):
    """Inputs by path, resolved on first use, with the user's settings over the catalogue."""

    def __init__(
        self,
        resolve: Callable[[str], Input],
        read: Reader = as_number,
        given_values: Mapping[str, Given] | None = None,
        bounds: Callable[[str], tuple[float, float]] = lambda _: (-math.inf, math.inf),
        unit_of: Callable[[str], str] | None = None,
        follows: Mapping[str, Rule] | None = None,
        readings: Readings | None = None,
    ) -> None:
        super().__init__()
        self.resolve = resolve
        self.unit_of = unit_of or (lambda path: resolve(path).unit)
        self.bounds = bounds
        self.read = read
        self.given = dict(given_values or {})
        self.inputs: dict[str, Input] = {}  # inputs read so far, by path
        self.derived_units: dict[str, str] = {}  # units of derived values so far, by path
        self.looked: set[str] = set()  # paths that were checked for a setting so far
        self.follows = follows or {}  # rules of paths whose values follow from others unless set
        self.readings = Readings() if readings is None else readings

    def __missing__(self, path: str) -> Any:
        if path in self.follows and (rule := self.rule(path)) is not None:
            with scope(*path.split(".")):
                input_value = self[path] = self.derived(
                    path, self.unit_of(path), lambda: rule(self.__getitem__)
                )
            return input_value
        input_value = self[path] = self.read(self.input(path))
        return input_value

    def rule(self, path: str) -> Rule | None:
        """Return the rule of a derived path; None for an input and for a path that the user set."""
        self.looked.add(path)
        return None if path in self.given else self.follows.get(path)

    def input(self, path: str) -> Input:
        """Return the input of a path with its provenance.

        Raises:
            DataError: The path is unknown.

        """
        stated_input = self.inputs.get(path)
        if stated_input is None:
            if path in self.given:
                stated_input = self.override(path, self.unit_of(path), self.given[path])
            elif path in self.follows:
                return Input(
                    path, self.number(path), self.unit_of(path), kind="derived", source=DERIVED
                )
            else:
                stated_input = self.resolve(path)
            self.inputs[path] = stated_input
        return stated_input

    def grounds(self, paths: Iterable[str]) -> tuple[str, tuple[str, ...], bool]:
        """Return the evidence for a figure that is computed from inputs.

        Returns:
            Weakest kind of evidence, sources, and whether at least one input is the user's own.

        """
        input_list = [self.input(path) for path in paths]
        return (
            worst([input_value.kind for input_value in input_list]),
            tuple(dict.fromkeys(input_value.source for input_value in input_list)),
            any(input_value.overlay for input_value in input_list),
        )

    def structure(self, path: str) -> float:
        """Return an input as a number that decides which parts, operators or formats exist."""
        return self.decided(float, path)

    def decided(self, decide: Callable[..., T], *paths: str, rest: tuple[Any, ...] = ()) -> T:
        """Return and record the decision of `decide` on `paths` and `rest`.

        `decide` receives the inputs as plain numbers. `readings` holds the decision and these
        numbers.
        """
        decision = self.readings.decisions[decide, paths, rest] = decide(
            *[self.plain(path) for path in paths], *rest
        )
        return decision

    def plain(self, path: str) -> float:
        """Return an input as a plain number; a number in `readings` stays as it was read."""
        recorded_value = self.readings.get(path)
        if recorded_value is None or isinstance(recorded_value, bool):
            recorded_value = self.number(path)
            if isinstance(recorded_value, np.ndarray):
                raise DataError(
                    f"{path} decides what exists and has {recorded_value.size} values: give one "
                    "value, or the structure to evaluate them on"
                )
            self.readings[path] = recorded_value
        return recorded_value

    def exists(self, path: str) -> bool:
        """Return whether an input is positive, which decides whether its subject exists.

        The reading is recorded, as in `structure`.
        """
        recorded_value = self.readings.get(path)
        if recorded_value is None:
            is_positive = self.number(path) > 0
            if somewhere(is_positive) != everywhere(is_positive):
                raise DataError(
                    f"{path} decides what exists and is zero in some of {is_positive.size} values: "
                    "give the structure to evaluate them on"
                )
            recorded_value = self.readings[path] = somewhere(is_positive)
        decision = self.readings.decisions[operator.gt, (path,), (0,)] = recorded_value > 0
        return decision

    def number(self, path: str) -> Any:
        """Return the value of an input or of a derived path as a number or an array."""
        rule = self.rule(path) if path in self.follows else None
        if rule is None:
            return self.input(path).value
        with paused():
            return rule(self.number)

    def override(self, path: str, unit: str, given_value: Given) -> Input:
        """Return a setting's input for a path, checked for unit, finiteness and bounds."""
        if given_value.array is not None:
            overriding_input = Input(
                path=path,
                value=given_value.array,
                unit=unit,
                kind=given_value.kind,
                source=given_value.source,
                where=given_value.where,
            )
            minimum, maximum = self.bounds(path)
            for extreme_value in (float(given_value.array.min()), float(given_value.array.max())):
                if not minimum <= extreme_value <= maximum:
                    check_bounds(overriding_input._replace(value=extreme_value), minimum, maximum)
            return overriding_input
        return setting_input(path, given_value, unit, self.bounds(path), lambda: self.unset(path))

    def unset(self, path: str) -> float | None:
        """Return the value of a path without the user's setting, or None if it has no value."""
        try:
            with paused():
                if path in self.follows:
                    return float(self.follows[path](self.number))
                return float(self.resolve(path).value)
        except DataError:
            return None

    def has(self, path: str) -> bool:
        """Return whether the user has set this path."""
        self.looked.add(path)
        return path in self.given

    def derived(self, path: str, unit: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a named derived quantity, computed or set by the user."""
        self.derived_units[path] = unit
        if path in self.given:
            if path not in self.inputs:
                self.inputs[path] = self.override(path, unit, self.given[path])
                self[path] = self.read(self.inputs[path])
            return self[path]
        derived_value = compute()
        if isinstance(derived_value, Traced) and derived_value.node.path is None:
            derived_value.node.path = path
        return derived_value

    def reads_of(self, compute: Callable[[], Any]) -> tuple[Any, Reads]:
        """Return the result of `compute()`, and all reads during the call.

        The call starts as if nothing had been read before.
        """
        earlier_values = dict(self)
        earlier_reads = Reads(self.inputs, self.derived_units, self.looked)
        self.clear()
        self.inputs, self.derived_units, self.looked = {}, {}, set()
        try:
            computed = compute()
        finally:
            reads = Reads(self.inputs, self.derived_units, self.looked)
            self.inputs, self.derived_units, self.looked = earlier_reads
            self.update(earlier_values)
            self.take(reads)
        return computed, reads

    def take(self, reads: Reads) -> None:
        """Add the reads of another calculation on the same inputs."""
        self.inputs = self.inputs | reads.inputs
        self.derived_units |= reads.derived
        self.looked |= reads.looked

    def check_given(self, is_known_path: Callable[[str], bool]) -> list[str]:
        """Return the paths that the user has set without effect.

        Raises:
            DataError: A path is unknown.

        """
        unused = [path for path in self.given if path not in self.inputs]
        for path in unused:
            if not is_known_path(path):
                raise unknown("input path", path, [*self.inputs, *self.derived_units], "--set")
        return unused


def given_of(path: str, setting: Any, unit_of: Callable[[str], str]) -> Given:
    """Return a setting as a text, or as an array in the input's unit for many numbers.

    Args:
        path: Input path of the setting.
        setting: Text such as `5 GB`, a number or numbers without a unit, or a pair (numbers, unit).
        unit_of: Function from an input path to its unit.

    Raises:
        DataError: The setting has another form, lacks a unit, or has a unit of another kind.

    """
    if isinstance(setting, str):
        return Given(setting)
    number, unit = setting if isinstance(setting, tuple) and len(setting) == 2 else (setting, "")
    try:
        number_array = np.asarray(number, dtype=float)
    except (TypeError, ValueError):
        number_array = None
    if number_array is None or not number_array.size or not isinstance(unit, str):
        raise DataError(
            f"{path}: {setting!r} is no setting; expected a text such as '5 GB', (numbers, unit), "
            "or a pure number"
        )
    expected_unit = unit_of(path)
    if not unit and not is_pure(expected_unit):
        number_text = "numbers" if number_array.ndim else repr(float(number_array))
        raise DataError(
            f"{path}: {number_text} without a unit, expected {expected_unit!r} or another of its "
            f"kind, such as ({number_text}, {expected_unit!r})"
        )
    if not number_array.ndim:
        return Given(f"{float(number_array)!r} {unit}".strip())
    try:
        converted_numbers = convert(number_array, unit, expected_unit)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return Given(f"{number_array.size} values", array=converted_numbers)


def joint_array_shape(given_values: Mapping[str, Given]) -> tuple[int, ...]:
    """Return the joint shape of the arrays among the settings.

    Args:
        given_values: Settings by input path.

    Returns:
        Shape to which all arrays broadcast; empty where every setting is a single number.

    Raises:
        DataError: The shapes do not fit together.

    """
    shapes = {
        path: given_value.array.shape
        for path, given_value in given_values.items()
        if given_value.array is not None
    }
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        shapes_text = ", ".join(
            f"{path} has {'x'.join(map(str, shape))}" for path, shape in shapes.items()
        )
        raise DataError(
            f"inputs that are asked together need one number of values each: {shapes_text}"
        ) from None
