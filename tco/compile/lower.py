"""The arithmetic of a program for some inputs that vary, all others being the numbers they are.

Formulas are taken apart into single operations of numpy: what rests on numbers alone is computed
when the kernel is made, equal operations are one, powers become products and roots, and a product
or a sum takes first what varies least. Each operation is known by the axes it varies on: the draws,
the batch that is solved for, and those of plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tco.compile.program import PlanNumbers, Program
from tco.core.equation import Symbol, expression
from tco.core.formula import Formula, normal_form
from tco.core.types import JsonMapping, JsonObject

BATCH_PATH = "plan.batch"  # the input that a speed is solved for
DRAW, BATCH = 1, 2  # axes an operation may vary on; beyond them a bit for each axis of plans
PLANS = 4
ABSENT = -1  # place of a step that a kernel leaves out

GATHERED = {"total": "+", "least": "min", "greatest": "max"}
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "log": np.log,
    "log2": np.log2,
    "ceil": np.ceil,
    "floor": np.floor,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "select": np.where,
}
# operations whose terms may share what they take
SHARING = {
    "+": ("*",),
    "min": ("+", "max"),
    "max": ("+", "min"),
}
# changes nothing on the right, and where sides may change on the left
NEUTRAL = {
    "+": 0.0,
    "-": 0.0,
    "*": 1.0,
    "/": 1.0,
    "**": 1.0,
}
EITHER_WAY = frozenset(("+", "*", "max", "min"))
CONDITIONS = frozenset(("<", "<=", ">", ">="))
POWERS: dict[float, str] = {2.0: "square", 4.0: "square square", 0.5: "root", 0.25: "root root"}


class Recipe(NamedTuple):
    """The operations of a formula: operands below zero are its parameters, from the last one on,
    others its operations before, or numbers.
    """

    operations: tuple[tuple[str, tuple[Any, ...]], ...]
    result: Any


@cache
def _recipe(formula: Formula) -> Recipe:
    """Return the operations of a formula."""
    names = {
        name: lower_symbol - len(formula.parameters)
        for lower_symbol, name in enumerate(formula.parameters)
    }
    found: list[tuple[str, tuple[Any, ...]]] = []
    met: dict[int, int] = {}

    def lower_symbol(value: Any) -> Any:
        if not isinstance(value, Symbol):
            return float(value)
        if value.operation == "name":
            return names[value.arguments[0]]
        if value.operation == "normal_cdf":
            return lower_symbol(normal_form(value.arguments[0]))
        if id(value) not in met:
            taken = tuple(lower_symbol(one) for one in value.arguments)
            met[id(value)] = len(found)
            found.append((value.operation, taken))
            kept.append(value)  # an id is its own only while it lives
        return met[id(value)]

    kept: list[Symbol] = []
    result = lower_symbol(expression(formula))
    return Recipe(tuple(found), result)


def _weight(varies: int) -> tuple[int, int]:
    return varies & (BATCH | DRAW), varies.bit_count()


def given_step(step: int) -> str:
    """Return the path of the input that stands for a step whose results are given."""
    return f"step {step}"


class ArithmeticKernel:
    """Operations in order, each once: `taken` are the places of what it takes, `varies` the axes it
    varies on, `numbers` what is known already.
    """

    def __init__(
        self,
        program: Program,
        varying: Iterable[str],
        plans: Mapping[int, Any],
        given_steps: Iterable[int] = (),
        targets: Iterable[int] | None = None,
    ) -> None:
        self.operation: list[str] = []
        self.taken: list[tuple[int, ...]] = []
        self.varies: list[int] = []
        self.numbers: dict[int, Any] = {}
        self.inputs: dict[str, int] = {}
        self.met: dict[Any, int] = {}
        self.schedules: dict[Any, Schedule] = {}
        self.borders: dict[Any, list[int]] = {}
        self.shared: dict[Any, list[int]] = {}
        self.program, self.varying, self.plans = program, frozenset(varying), plans
        # steps of the program whose results are given, as inputs by `given_step`
        self.given_steps = frozenset(given_steps)
        # steps of the program that are taken in; None takes all, also those to come
        self.needed_steps = None if targets is None else program.needed(targets, self.given_steps)
        self.made: list[int] = []  # place of each step of the program
        self.grow()

    def grow(self) -> None:
        """Take in the steps that the program has got since."""
        leaves = {
            place: self.input(path)
            for path, places in self.program.inputs.items()
            if path in self.varying
            for place in places
        }
        made = self.made
        for place in range(len(made), len(self.program.steps)):
            step = self.program.steps[place]
            if self.needed_steps is not None and place not in self.needed_steps:
                made.append(ABSENT)
            elif place in self.given_steps:
                made.append(self.input(given_step(place)))
            elif step is None:
                made.append(
                    leaves[place] if place in leaves else self.leaf(self.program.leaves[place])
                )
            elif isinstance(step.function, Formula):
                made.append(self.call(step.function, [made[one] for one in step.taken]))
            else:
                made.append(self.gather(GATHERED[step.function], [made[one] for one in step.taken]))

    def pruned(self, targets: Iterable[int]) -> tuple[ArithmeticKernel, dict[int, int]]:
        """Return a kernel of what leads to `targets` alone, and where each position went.

        It takes in no more steps of a program.
        """
        needed = sorted(self.needed(targets, ()))
        position_of = {position: index for index, position in enumerate(needed)}
        fields = {
            "operation": [self.operation[position] for position in needed],
            "taken": [[position_of[term] for term in self.taken[position]] for position in needed],
            "varies": [self.varies[position] for position in needed],
            "numbers": {
                position_of[position]: self.numbers[position]
                for position in needed
                if position in self.numbers
            },
            "inputs": {
                path: position_of[position]
                for path, position in self.inputs.items()
                if position in position_of
            },
        }
        return ArithmeticKernel.from_json(fields), position_of

    def to_json(self) -> JsonObject:
        """Return the operations as numbers and texts; numbers of plans have no such form."""
        names = "operation", "taken", "varies", "numbers", "inputs"
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, fields: JsonMapping) -> ArithmeticKernel:
        """Return a kernel of operations that `to_json` gave, without a program."""
        kernel = cls(Program(), (), {})
        kernel.operation, kernel.varies = fields["operation"], fields["varies"]
        kernel.taken = [tuple(terms) for terms in fields["taken"]]
        kernel.numbers = {int(position): number for position, number in fields["numbers"].items()}
        kernel.inputs = fields["inputs"]
        return kernel

    # ---------------------------------------------------------------- making
    def input(self, path: str) -> int:
        """Return the place of an input that varies."""
        if path not in self.inputs:
            self.inputs[path] = self.add(path, (), BATCH if path == BATCH_PATH else DRAW)
        return self.inputs[path]

    def leaf(self, number: float | PlanNumbers) -> int:
        """Return the place of a number of the structure, or of those of the plans that are asked
        for.
        """
        if not isinstance(number, PlanNumbers):
            return self.number(number)
        some = number.numbers[self.plans.get(number.axis, slice(None))]
        return self.number(some, PLANS << number.axis)

    def number(self, value: Any, varies: int = 0) -> int:
        """Return the place of a number, or of a row of numbers along an axis of plans: one number
        where they are all the same.
        """
        if isinstance(value, np.ndarray) and value.ndim and (value == value[0]).all():
            value, varies = float(value[0]), 0
        key = ("number", varies, value.tobytes() if varies else float(value))
        if key not in self.met:
            self.met[key] = place = self.add("number", (), varies)
            self.numbers[place] = value if varies else float(value)
        return self.met[key]

    def add(self, operation: str, taken: tuple[int, ...], varies: int) -> int:
        """Return the place of a new operation."""
        self.operation.append(operation)
        self.taken.append(taken)
        self.varies.append(varies)
        return len(self.operation) - 1

    def call(self, formula: Formula, taken: Sequence[int]) -> int:
        """Return the place of what a formula gives."""
        numbers = self.numbers
        if all(one in numbers for one in taken):
            axes = {self.varies[one] for one in taken} - {0}
            if len(axes) < 2:
                found = formula.function(*[numbers[one] for one in taken])
                return self.number(found, axes.pop() if axes else 0)
        made: list[int] = []
        operations, result = _recipe(formula)
        for operation, operands in operations:
            places = []
            for one in operands:
                if type(one) is float:
                    places.append(self.number(one))
                else:
                    places.append(taken[one] if one < 0 else made[one])
            made.append(self.put(operation, *places))
        return (
            self.number(result)
            if type(result) is float
            else taken[result]
            if result < 0
            else made[result]
        )

    def gather(self, operation: str, terms: Sequence[int]) -> int:
        """Return the place of a sum, a least or a greatest: what terms share is taken once, and
        those that vary least come first.

        x a + x b is x (a + b), min(x + a, x + b) is x + min(a, b), and min(max(x, a), max(x, b)) is
        max(x, min(a, b)).
        """
        terms = self.opened(operation, terms)
        for within in SHARING[operation]:
            takers: dict[int, list[int]] = {}
            for term in terms:
                if self.operation[term] == within:
                    for one in {*self.taken[term]}:
                        takers.setdefault(one, []).append(term)
            shared = max(
                takers, key=lambda one: (len(takers[one]), _weight(self.varies[one])), default=None
            )
            if shared is not None and len(some := takers[shared]) > 1:
                others = [sum(self.taken[term]) - shared for term in some]  # of a pair
                terms = [
                    *(term for term in terms if term not in some),
                    self.put(within, shared, self.gather(operation, others)),
                ]
                return self.gather(operation, terms)
        terms = sorted(terms, key=lambda one: (self.varies[one].bit_count(), self.varies[one]))
        found = terms[0]
        for one in terms[1:]:
            found = self.put(operation, found, one)
        return found

    def opened(self, operation: str, terms: Sequence[int]) -> list[int]:
        """Return terms, those of a least or a greatest among them one by one."""
        found = list[int]()
        for term in terms:
            found += (
                self.opened(operation, self.taken[term])
                if self.operation[term] == operation != "+"
                else [term]
            )
        return found if operation == "+" else [*dict.fromkeys(found)]

    def put(self, operation: str, *taken: int) -> int:
        """Return the place of an operation: computed at once of numbers, and without what changes
        nothing.
        """
        numbers, varies = self.numbers, 0
        for one in taken:
            varies |= self.varies[one]
        if all(one in numbers for one in taken) and varies & (varies - 1) == 0:
            with np.errstate(all="ignore"):
                return self.number(OPERATIONS[operation](*[numbers[one] for one in taken]), varies)
        if (same := self.simpler(operation, taken)) is not None:
            return same
        if (apart := self.reassociate(operation, taken, varies)) is not None:
            return apart
        if operation in EITHER_WAY and taken[0] > taken[1]:
            taken = taken[1], taken[0]
        key = (operation, taken)
        if key not in self.met:
            self.met[key] = self.add(operation, taken, varies)
        return self.met[key]

    def plain(self, place: int) -> float | None:
        """Return the one number that stands in a place; none where it varies."""
        return self.numbers.get(place) if not self.varies[place] else None

    def simpler(self, operation: str, taken: tuple[int, ...]) -> int | None:
        """Return the place of what an operation comes to that is none, or a quicker one; none where
        it stays.
        """
        one, other = taken[0], taken[-1]
        first, last = self.plain(one), self.plain(other)
        if operation == "select":
            return None if first is None else taken[1] if first else taken[2]
        if last is not None and last == NEUTRAL.get(operation):
            return one
        if operation in EITHER_WAY and first is not None and first == NEUTRAL.get(operation):
            return other
        if operation in ("*", "/") and first == 0:
            return one
        if operation == "*" and last == 0:
            return other
        if operation == "/" and last is not None:
            return self.put("*", one, self.number(1 / last))
        if operation == "**" and last in POWERS:
            for how in POWERS[last].split():
                one = self.put("*", one, one) if how == "square" else self.put("sqrt", one)
            return one
        return one if operation in ("max", "min") and one == other else None

    def reassociate(self, operation: str, taken: tuple[int, ...], varies: int) -> int | None:
        """Return the place of a product, sum, least or greatest whose terms that vary less are
        taken by themselves; none where none does.

        (x c) d is x (c d) and x / d is x (1 / d): what varies most is touched once.
        """
        if operation == "/" and self.varies[taken[1]] != varies:
            return self.put("*", taken[0], self.put("/", self.number(1.0), taken[1]))
        if operation not in EITHER_WAY:
            return None
        for one, other in (taken, taken[::-1]):
            if self.operation[one] == operation:
                least, most = sorted(self.taken[one], key=lambda place: _weight(self.varies[place]))
                if _weight(self.varies[least] | self.varies[other]) < _weight(self.varies[one]):
                    return self.put(operation, most, self.put(operation, least, other))
        return None

    # ---------------------------------------------------------------- running
    def axis(self, place: int) -> int:
        """Return the axis of plans that a place varies on."""
        return (self.varies[place] // PLANS).bit_length() - 1

    def values(self, drawn: JsonMapping) -> dict[int, Any]:
        """Return the numbers that are known, and those of inputs that vary: draws on the last axis,
        plans on the one before.
        """
        known = {
            place: value[:, None] if self.varies[place] else np.array(value)
            for place, value in self.numbers.items()
        }
        return known | {
            self.inputs[path]: value for path, value in drawn.items() if path in self.inputs
        }

    def before(self, axes: int, wanted: Sequence[int]) -> list[int]:
        """Return the places that do not vary on some axes, and that what does rests on directly, or
        that are wanted themselves.
        """
        key = axes, tuple(wanted)
        if key not in self.borders:
            found, seen, stack = set[int](), set[int](), list(wanted)
            while stack:
                place = stack.pop()
                if place in seen:
                    continue
                seen.add(place)
                if not self.varies[place] & axes:
                    found.add(place)
                else:
                    stack.extend(self.taken[place])
            self.borders[key] = sorted(found - self.numbers.keys())
        return self.borders[key]

    def needed(self, wanted: Iterable[int], given: Container[int]) -> set[int]:
        """Return the places that lead to what is wanted: operations, and what they begin with,
        which is given or known.
        """
        found, stack, numbers = set[int](), list(wanted), self.numbers
        while stack:
            place = stack.pop()
            if place not in found:
                found.add(place)
                if place not in given and place not in numbers:
                    stack += self.taken[place]
        return found

    def common(self, asked: Sequence[Sequence[int]], given: Iterable[int]) -> list[int]:
        """Return the places that several of some results rest on, and that what only one of them
        rests on takes.
        """
        key = tuple(map(tuple, asked)), frozenset(given)
        if key not in self.shared:
            begin = key[1] | self.numbers.keys()
            lines = [self.needed(wanted, begin) - begin for wanted in key[0]]
            times = Counter(place for own in lines for place in own)
            met = [
                {*wanted}.union(*(self.taken[place] for place in own if times[place] == 1))
                for wanted, own in zip(key[0], lines, strict=True)
            ]
            self.shared[key] = sorted({place for one in met for place in one if times[place] > 1})
        return self.shared[key]

    def schedule(self, wanted: Sequence[int], given: Iterable[int]) -> Schedule:
        """Return the operations that lead from what is given to what is wanted."""
        key = (tuple(wanted), frozenset(given))
        if key not in self.schedules:
            self.schedules[key] = Schedule(self, *key)
        return self.schedules[key]


class ScheduledOperation(NamedTuple):
    """An operation of a schedule: where what it takes stands, where its result goes, and whose
    memory that takes over, if any's.
    """

    function: Callable[..., Any]
    one: int
    other: int | None
    third: int | None
    into: int
    reused: bool


class Schedule:
    """Operations that lead from what is given to what is wanted.

    They work on registers: the result of the last one that takes an array stands in its memory, and
    a register that nobody reads any more goes to the next.
    """

    def __init__(
        self, kernel: ArithmeticKernel, wanted: Sequence[int], given: frozenset[int]
    ) -> None:
        needed = kernel.needed(wanted, given)
        own, stay = needed - given - kernel.numbers.keys(), set(wanted)
        places = sorted(own)  # that are computed
        last = {one: place for place in places for one in kernel.taken[place]}
        self.leaves = sorted(needed - own)
        register = {place: at for at, place in enumerate(self.leaves)}
        self.size, free = len(register), list[int]()
        self.lines: list[ScheduledOperation] = []
        for place in places:
            taken, operation = kernel.taken[place], kernel.operation[place]
            done = [
                one
                for one in dict.fromkeys(taken)
                if last[one] == place and one in own and one not in stay
            ]
            alike = [
                one
                for one in done
                if kernel.varies[one] == kernel.varies[place]
                and kernel.operation[one] not in CONDITIONS
            ]
            reused = bool(alike) and operation not in CONDITIONS and operation != "select"
            read = [register[one] for one in taken]
            if reused:
                register[place] = register[alike[0]]
            elif free:
                register[place] = free.pop()
            else:
                register[place], self.size = self.size, self.size + 1
            free += [register[one] for one in done if register[one] != register[place]]
            one, other, third = (*read, None, None)[:3]
            self.lines.append(
                ScheduledOperation(
                    OPERATIONS[operation], int(one or 0), other, third, register[place], reused
                )
            )
        self.wanted = [register[place] for place in wanted]

    def run(self, values: Mapping[int, Any]) -> list[Any]:
        """Return the values at the wanted places, computed from leaf `values`."""
        found: list[Any] = [values[place] for place in self.leaves]
        found += [None] * (self.size - len(found))
        for function, one, other, third, into, reused in self.lines:
            if other is None:
                found[into] = (
                    function(found[one], out=found[into]) if reused else function(found[one])
                )
            elif third is not None:
                found[into] = function(found[one], found[other], found[third])
            elif reused:
                function(found[one], found[other], out=found[into])
            else:
                found[into] = function(found[one], found[other])
        return [found[place] for place in self.wanted]
