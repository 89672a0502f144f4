"""The arithmetic of a program for some inputs that vary, all others being the numbers they are.

Formulas are taken apart into single operations of numpy: what rests on numbers alone is computed
when the kernel is made, equal operations are one, powers become products and roots, and a product
or a sum takes first what varies least. Each operation is known by the axes it varies on: the draws,
the batch that is solved for, and those of plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from tco.compile.program import PlanNumbers, Program
from tco.compile.recipe import recipe_of
from tco.core.formula import Formula
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
# function, slots of up to three operands and of the result, and whether its memory is reused:
# a plain tuple is unpacked the quickest
ScheduledOperation = tuple[Callable[..., Any], int, int | None, int | None, int, bool]
POWERS: dict[float, str] = {2.0: "square", 4.0: "square square", 0.5: "root", 0.25: "root root"}


def _weight(varies: int) -> tuple[int, int]:
    return varies & (BATCH | DRAW), varies.bit_count()


def _number_key(number_or_row: Any, varies: int) -> tuple[Any, ...]:
    return "number", varies, number_or_row.tobytes() if varies else float(number_or_row)


class ArithmeticKernel:
    """Unique operations in order: their operands (`taken`), axes (`varies`) and known numbers."""

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
        # steps of the program whose results are given, as inputs `step INDEX`
        self.given_steps = frozenset(given_steps)
        # steps of the program that are taken in; None takes all, also those to come
        self.needed_steps = (
            None if targets is None else program.dependencies(targets, self.given_steps)
        )
        self.made: list[int] = []  # place of each step of the program
        self.grow()

    def grow(self) -> None:
        """Take in the steps that the program has got since."""
        leaves = {
            index: self.input(path)
            for path, indices in self.program.inputs.items()
            if path in self.varying
            for index in indices
        }
        positions = self.made
        for index in range(len(positions), len(self.program.steps)):
            step = self.program.steps[index]
            if self.needed_steps is not None and index not in self.needed_steps:
                positions.append(ABSENT)
            elif index in self.given_steps:
                positions.append(self.input(f"step {index}"))
            elif step is None:
                positions.append(
                    leaves[index] if index in leaves else self.leaf(self.program.leaves[index])
                )
            elif isinstance(step.function, Formula):
                positions.append(
                    self.call(step.function, [positions[source] for source in step.sources])
                )
            else:
                positions.append(
                    self.gather(
                        GATHERED[step.function], [positions[source] for source in step.sources]
                    )
                )

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

    def of_rows(self, plan_rows: Mapping[int, Any]) -> ArithmeticKernel:
        """Return the kernel of some rows of plans, by axis, from a kernel of all plans."""
        kernel = copy(self)
        for field_name, field in vars(self).items():
            if isinstance(field, list | dict):
                setattr(kernel, field_name, copy(field))
        kernel.plans = plan_rows
        kernel.met = {key: position for key, position in self.met.items() if key[0] != "number"}
        for position, number_or_row in self.numbers.items():
            if varies := self.varies[position]:
                rows = plan_rows.get(self.axis(position), slice(None))
                kernel.numbers[position] = number_or_row[rows]
            number_key = _number_key(kernel.numbers[position], varies)
            kernel.met.setdefault(number_key, position)
        return kernel

    def to_json(self) -> JsonObject:
        """Return the operations as numbers and texts; numbers of plans have no such form."""
        field_names = "operation", "taken", "varies", "numbers", "inputs"
        return {field_name: getattr(self, field_name) for field_name in field_names}

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
        """Return the position of a number of the structure, or of the selected plans' numbers."""
        if not isinstance(number, PlanNumbers):
            return self.number(number)
        plan_numbers = number.numbers[self.plans.get(number.axis, slice(None))]
        return self.number(plan_numbers, PLANS << number.axis)

    def number(self, number_or_row: Any, varies: int = 0) -> int:
        """Return the position of a number, or of a row along an axis of plans.

        A row of equal numbers is a single number.
        """
        if (
            isinstance(number_or_row, np.ndarray)
            and number_or_row.ndim
            and (number_or_row == number_or_row[0]).all()
        ):
            number_or_row, varies = float(number_or_row[0]), 0
        number_key = _number_key(number_or_row, varies)
        if number_key not in self.met:
            self.met[number_key] = position = self.add("number", (), varies)
            self.numbers[position] = number_or_row if varies else float(number_or_row)
        return self.met[number_key]

    def add(self, operation: str, taken: tuple[int, ...], varies: int) -> int:
        """Return the place of a new operation."""
        self.operation.append(operation)
        self.taken.append(taken)
        self.varies.append(varies)
        return len(self.operation) - 1

    def call(self, formula: Formula, taken: Sequence[int]) -> int:
        """Return the place of what a formula gives."""
        numbers = self.numbers
        if all(position in numbers for position in taken):
            axes = {self.varies[position] for position in taken} - {0}
            if len(axes) < 2:
                formula_value = formula.function(*[numbers[position] for position in taken])
                return self.number(formula_value, axes.pop() if axes else 0)
        step_positions: list[int] = []
        operations, recipe_result = recipe_of(formula)

        def position_of(operand: float) -> int:
            if not isinstance(operand, int):
                return self.number(operand)
            return taken[operand] if operand < 0 else step_positions[operand]

        for operation, operands in operations:
            step_positions.append(self.put(operation, *map(position_of, operands)))
        return position_of(recipe_result)

    def gather(self, operation: str, terms: Sequence[int]) -> int:
        """Return the position of a sum, least or greatest, with shared factors taken out.

        Terms that vary least come first.

        x a + x b is x (a + b), min(x + a, x + b) is x + min(a, b), and min(max(x, a), max(x, b)) is
        max(x, min(a, b)).
        """
        terms = self.opened(operation, terms)
        for inner_operation in SHARING[operation]:
            takers: dict[int, list[int]] = {}
            for term in terms:
                if self.operation[term] == inner_operation:
                    for position in {*self.taken[term]}:
                        takers.setdefault(position, []).append(term)
            shared = max(
                takers,
                key=lambda position: (len(takers[position]), _weight(self.varies[position])),
                default=None,
            )
            if shared is not None and len(sharing_terms := takers[shared]) > 1:
                partner_positions = [
                    sum(self.taken[term]) - shared for term in sharing_terms
                ]  # of a pair
                terms = [
                    *(term for term in terms if term not in sharing_terms),
                    self.put(inner_operation, shared, self.gather(operation, partner_positions)),
                ]
                return self.gather(operation, terms)
        terms = sorted(terms, key=lambda term: (self.varies[term].bit_count(), self.varies[term]))
        gathered_position = terms[0]
        for position in terms[1:]:
            gathered_position = self.put(operation, gathered_position, position)
        return gathered_position

    def opened(self, operation: str, terms: Sequence[int]) -> list[int]:
        """Return terms, those of a least or a greatest among them one by one."""
        opened_terms = list[int]()
        for term in terms:
            opened_terms += (
                self.opened(operation, self.taken[term])
                if self.operation[term] == operation != "+"
                else [term]
            )
        return opened_terms if operation == "+" else [*dict.fromkeys(opened_terms)]

    def put(self, operation: str, *taken: int) -> int:
        """Return the position of an operation, folded if constant and dropped if without effect."""
        operation_key = operation, taken
        put_position = self.met.get(operation_key)
        if put_position is not None:
            return put_position
        numbers, varies, is_constant = self.numbers, 0, True
        for position in taken:
            varies |= self.varies[position]
            is_constant = is_constant and position in numbers
        if is_constant and varies & (varies - 1) == 0:
            with np.errstate(all="ignore"):
                return self.number(
                    OPERATIONS[operation](*[numbers[position] for position in taken]), varies
                )
        put_position = self.simpler(operation, taken)
        if put_position is None:
            put_position = self.reassociate(operation, taken, varies)
        if put_position is None:
            put_position = (
                self.put(operation, taken[1], taken[0])
                if operation in EITHER_WAY and taken[0] > taken[1]
                else self.add(operation, taken, varies)
            )
        self.met[operation_key] = put_position
        return put_position

    def plain(self, position: int) -> float | None:
        """Return the one number that stands in a place; none where it varies."""
        return self.numbers.get(position) if not self.varies[position] else None

    def simpler(self, operation: str, taken: tuple[int, ...]) -> int | None:
        """Return the position of a simpler equal operation, or None."""
        left, right = taken[0], taken[-1]
        first, last = self.plain(left), self.plain(right)
        if operation == "select":
            return None if first is None else taken[1] if first else taken[2]
        if last is not None and last == NEUTRAL.get(operation):
            return left
        if operation in EITHER_WAY and first is not None and first == NEUTRAL.get(operation):
            return right
        if operation in ("*", "/") and first == 0:
            return left
        if operation == "*" and last == 0:
            return right
        if operation == "/" and last is not None:
            return self.put("*", left, self.number(1 / last))
        if operation == "**" and last in POWERS:
            for how in POWERS[last].split():
                left = self.put("*", left, left) if how == "square" else self.put("sqrt", left)
            return left
        return left if operation in ("max", "min") and left == right else None

    def reassociate(self, operation: str, taken: tuple[int, ...], varies: int) -> int | None:
        """Return the position of an operation whose less varying terms come first, or None.

        (x c) d is x (c d) and x / d is x (1 / d): what varies most is touched once.
        """
        if operation == "/" and self.varies[taken[1]] != varies:
            return self.put("*", taken[0], self.put("/", self.number(1.0), taken[1]))
        if operation not in EITHER_WAY:
            return None
        for inner, outer in (taken, taken[::-1]):
            if self.operation[inner] == operation:
                least, most = sorted(
                    self.taken[inner], key=lambda position: _weight(self.varies[position])
                )
                if _weight(self.varies[least] | self.varies[outer]) < _weight(self.varies[inner]):
                    return self.put(operation, most, self.put(operation, least, outer))
        return None

    # ---------------------------------------------------------------- running
    def axis(self, position: int) -> int:
        """Return the axis of plans that a place varies on."""
        return (self.varies[position] // PLANS).bit_length() - 1

    def values(self, drawn: JsonMapping) -> dict[int, Any]:
        """Return the known numbers and the values of varying inputs.

        Draws are on the last axis, plans on the one before.
        """
        known_numbers = {
            position: number_or_row[:, None] if self.varies[position] else np.array(number_or_row)
            for position, number_or_row in self.numbers.items()
        }
        return known_numbers | {
            self.inputs[path]: drawn_value
            for path, drawn_value in drawn.items()
            if path in self.inputs
        }

    def before(self, axes: int, targets: Sequence[int]) -> list[int]:
        """Return positions that do not vary on `axes` and feed those that do, or are targets."""
        border_key = axes, tuple(targets)
        if border_key not in self.borders:
            border, reached, stack = set[int](), set[int](), list(targets)
            while stack:
                position = stack.pop()
                if position in reached:
                    continue
                reached.add(position)
                if not self.varies[position] & axes:
                    border.add(position)
                else:
                    stack.extend(self.taken[position])
            self.borders[border_key] = sorted(border - self.numbers.keys())
        return self.borders[border_key]

    def needed(self, targets: Iterable[int], given_positions: Container[int]) -> set[int]:
        """Return the positions that lead to the targets: operations and their given leaves."""
        reached, stack, numbers = set[int](), list(targets), self.numbers
        while stack:
            position = stack.pop()
            if position not in reached:
                reached.add(position)
                if position not in given_positions and position not in numbers:
                    stack += self.taken[position]
        return reached

    def common(
        self, target_lists: Sequence[Sequence[int]], given_positions: Iterable[int]
    ) -> list[int]:
        """Return the positions that several target lists share, or that feed unshared ones."""
        shared_key = tuple(map(tuple, target_lists)), frozenset(given_positions)
        if shared_key not in self.shared:
            begin = shared_key[1] | self.numbers.keys()
            lines = [self.needed(targets, begin) - begin for targets in shared_key[0]]
            times = Counter(position for line in lines for position in line)
            met = [
                {*targets}.union(
                    *(self.taken[position] for position in line if times[position] == 1)
                )
                for targets, line in zip(shared_key[0], lines, strict=True)
            ]
            self.shared[shared_key] = sorted(
                {step for met_positions in met for step in met_positions if times[step] > 1}
            )
        return self.shared[shared_key]

    def schedule(self, targets: Sequence[int], given_positions: Iterable[int]) -> Schedule:
        """Return the operations that lead from what is given to what is wanted."""
        schedule_key = (tuple(targets), frozenset(given_positions))
        if schedule_key not in self.schedules:
            self.schedules[schedule_key] = Schedule(self, *schedule_key)
        return self.schedules[schedule_key]


class Schedule:
    """Operations that lead from what is given to what is wanted.

    They work on registers: the result of the last one that takes an array stands in its memory, and
    a register that nobody reads any more goes to the next.
    """

    def __init__(
        self, kernel: ArithmeticKernel, targets: Sequence[int], given_positions: frozenset[int]
    ) -> None:
        taken_by, operations, varies = kernel.taken, kernel.operation, kernel.varies
        needed = kernel.needed(targets, given_positions)
        computed_positions = needed - given_positions - kernel.numbers.keys()
        computed_order = sorted(computed_positions)
        last = {term: position for position in computed_order for term in taken_by[position]}
        done_by: dict[int, list[int]] = {}  # what nobody reads any more, by its last reader
        for term in computed_positions.difference(targets):
            done_by.setdefault(last[term], []).append(term)
        self.leaves = sorted(needed - computed_positions)
        register = {position: index for index, position in enumerate(self.leaves)}
        self.size, free = len(register), list[int]()
        self.lines: list[ScheduledOperation] = []
        for position in computed_order:
            operation, done = operations[position], done_by.get(position, ())
            reused_term = None
            if done and operation not in CONDITIONS and operation != "select":
                for term in done:
                    if varies[term] == varies[position] and operations[term] not in CONDITIONS:
                        reused_term = term
                        break
            read = [register[term] for term in taken_by[position]]
            if reused_term is not None:
                register[position] = register[reused_term]
            elif free:
                register[position] = free.pop()
            else:
                register[position], self.size = self.size, self.size + 1
            for term in done:
                if term != reused_term:
                    free.append(register[term])
            reused = reused_term is not None
            first, second, third = (*read, None, None)[:3]
            operands = int(first or 0), second, third
            self.lines.append((OPERATIONS[operation], *operands, register[position], reused))
        self.wanted = [register[position] for position in targets]

    def run(self, leaf_values: Sequence[Any]) -> list[Any]:
        """Return the values at the wanted places, computed from those of `leaves`."""
        registers = [*leaf_values, *[None] * (self.size - len(leaf_values))]
        for function, first, second, third, into, reused in self.lines:
            if second is None:
                registers[into] = (
                    function(registers[first], out=registers[into])
                    if reused
                    else function(registers[first])
                )
            elif third is not None:
                registers[into] = function(registers[first], registers[second], registers[third])
            elif reused:
                function(registers[first], registers[second], out=registers[into])
            else:
                registers[into] = function(registers[first], registers[second])
        return [registers[register] for register in self.wanted]
