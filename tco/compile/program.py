"""A program: the steps of a scenario, each once, with inputs by path.

The chain walks a scenario and its structure once while the program records: its steps are the calls
of formulas and the sums in it, those that are computed alike from the same steps being one,
whichever structure they are met in. Whoever asks for other numbers reads the program and walks
nothing. What the structure states is a number, or a row of numbers along an axis of plans: plans of
a search are asked for together.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import Formula, greatest, least, total
from tco.core.provenance import Input
from tco.core.trace import Node, Traced, paused
from tco.core.types import FloatArray, JsonObject

GATHERINGS = {"total": total, "least": least, "greatest": greatest}


class PlanNumbers(NamedTuple):
    """Numbers of the structure along one axis of plans."""

    axis: int
    numbers: FloatArray


class ProgramStep(NamedTuple):
    """A call of a formula, or a gathering of terms, and the steps whose results it takes."""

    function: Formula | str
    taken: tuple[int, ...]


class Recorded(Traced):
    """A value that a program has recorded, and the place of the step that gave it."""

    __slots__ = ("place",)

    def __init__(self, recorded_value: Any, index: int) -> None:
        super().__init__(recorded_value, Node(f"step {index}", recorded_value, "", ""))
        self.place = index


class Program:
    """Steps in order of computation, with leaves that are numbers, rows or varying inputs."""

    def __init__(self) -> None:
        self.steps: list[ProgramStep | None] = []  # none of a leaf
        self.values: list[Recorded] = []  # of every step, with the numbers it was met with first
        self.leaves: dict[int, float | PlanNumbers] = {}
        # by path, several leaves where the catalogue knows it at several dates
        self.inputs: dict[str, list[int]] = {}
        self.path_of: dict[int, str] = {}  # of the leaves that are inputs
        self.met: dict[Any, int] = {}
        self.workload_steps: set[int] = set()  # met first in a walk of the workload
        self.is_on_first_plan = False  # whether steps are computed for the first plan alone
        self.first_plan_steps: set[int] = set()  # computed so
        self.identities: list[bytes] = []  # of the steps, each by its function and what it takes

    def read(self, leaf_input: Input) -> Recorded:
        """The reading of a program: every input is a leaf of it."""
        return self.values[self.leaf(leaf_input.value, leaf_input.path)]

    def leaf(self, leaf_value: Any, path: str | None = None) -> int:
        """Return the index of a leaf; inputs of one path and number are the same leaf.

        So are equal numbers of the structure.
        """
        leaf_key = (
            (path, leaf_value.shape, leaf_value.tobytes())
            if isinstance(leaf_value, np.ndarray)
            else (path, float(leaf_value))
        )
        index = self.met.get(leaf_key)
        if index is None:
            index = self.met[leaf_key] = self.keep(None, leaf_value)
            self.leaves[index] = _number_or_row(leaf_value)
            if path is not None:
                self.inputs.setdefault(path, []).append(index)
                self.path_of[index] = path
        return index

    def keep(self, step: ProgramStep | None, step_value: Any) -> int:
        """Take in a step, and return its place."""
        self.steps.append(step)
        self.values.append(Recorded(step_value, len(self.values)))
        return len(self.values) - 1

    def step_index(self, recorded_value: Any) -> int:
        """Return the index of a value's step, or of a number of the structure."""
        return (
            recorded_value.place
            if isinstance(recorded_value, Recorded)
            else self.leaf(recorded_value)
        )

    def call(self, formula: Formula, arguments: tuple[Any, ...], named: JsonObject) -> Recorded:
        """Return the result of a formula, called unless it is known already."""
        if len(arguments) < len(formula.parameters):
            named_arguments = (
                formula.defaults | dict(zip(formula.parameters, arguments, strict=False)) | named
            )
            arguments = tuple(
                [named_arguments[parameter_name] for parameter_name in formula.parameters]
            )
        return self.step(formula, arguments, formula.function)

    def gather(self, operation: str, name: str, terms: Sequence[Any]) -> Any:
        """Return the sum, least or greatest of the terms.

        Plain terms give a plain number.
        """
        if not any(isinstance(term, Recorded) for term in terms):
            with paused():
                return GATHERINGS[operation](name, terms)
        with paused():
            return self.step(
                operation, terms, lambda *term_values: GATHERINGS[operation](name, term_values)
            )

    def step(
        self, function: Formula | str, takes: Sequence[Any], compute: Callable[..., Any]
    ) -> Recorded:
        """Return the result of `function` on `takes`, recorded in the program.

        `compute` runs only where the function first meets these values.
        """
        step_key = (
            function,
            tuple(
                [
                    argument.place if isinstance(argument, Recorded) else self.leaf(argument)
                    for argument in takes
                ]
            ),
        )
        index = self.met.get(step_key)
        if index is None:
            index = self.met[step_key] = self.keep(
                ProgramStep(*step_key), self._computed(step_key[1], compute)
            )
            if self.is_on_first_plan:
                self.first_plan_steps.add(index)
        elif index in self.first_plan_steps and not self.is_on_first_plan:
            self.first_plan_steps.remove(index)
            self.values[index].value = self._computed(step_key[1], compute)
        return self.values[index]

    def _computed(self, sources: Sequence[int], compute: Callable[..., Any]) -> Any:
        """Compute a step from the values of its sources."""
        source_values = [self.values[source].value for source in sources]
        if self.is_on_first_plan:
            source_values = [_of_first_plan(source_value) for source_value in source_values]
        return compute(*source_values)

    @contextmanager
    def on_first_plan(self) -> Iterator[None]:
        """Compute new steps for the first plan alone, whose numbers nothing but other steps takes.

        Numbers of all plans of both phases fill the memory.
        """
        self.is_on_first_plan = True
        try:
            yield
        finally:
            self.is_on_first_plan = False

    def needed(self, targets: Iterable[int], known_steps: Container[int] = ()) -> set[int]:
        """Return the places of all that some steps rest on, up to `known_steps`."""
        reached, pending = set[int](), [*targets]
        while pending:
            index = pending.pop()
            if index not in reached:
                reached.add(index)
                step = self.steps[index]
                pending += () if step is None or index in known_steps else step.taken
        return reached

    def workload_border(self, targets: Iterable[int], chosen_path: str) -> list[int]:
        """Return the places of the workload's results that some steps take directly.

        Numbers of plans, and the input `chosen_path` that a choice gives, count as such results.
        """
        border, reached, pending = set[int](), set[int](), [*targets]
        chosen = self.inputs.get(chosen_path, ())
        while pending:
            index = pending.pop()
            if index in reached:
                continue
            reached.add(index)
            step = self.steps[index]
            if step is None:
                if index in chosen or isinstance(self.leaves[index], PlanNumbers):
                    border.add(index)
            elif index in self.workload_steps:
                border.add(index)
            else:
                pending += step.taken
        return sorted(border)

    def number_at(self, leaf: int) -> float:
        """Return the number of an input as it was met first."""
        number: float = self.leaves[leaf]  # type: ignore[assignment]
        return number

    def identity(self, index: int) -> bytes:
        """Return a hash of the arithmetic of a step, in which inputs stand by path."""
        for missing in range(len(self.identities), len(self.steps)):
            self.identities.append(blake2b(self._described(missing), digest_size=16).digest())
        return self.identities[index]

    def _described(self, index: int) -> bytes:
        from tco.compile.recipe import recipe_hash  # what is cached is looked up without it

        step = self.steps[index]
        if step is not None:
            function = step.function
            operation = function.encode() if isinstance(function, str) else recipe_hash(function)
            sources = [self.identities[source] for source in step.taken]
            return b"".join([b"step ", operation, b" ", *sources])
        if (path := self.path_of.get(index)) is not None:
            return f"input {self.inputs[path].index(index)} {path}".encode()
        number = self.leaves[index]
        if isinstance(number, PlanNumbers):
            return b"plans %d " % number.axis + number.numbers.tobytes()
        return f"number {number!r}".encode()


def _of_first_plan(step_value: Any) -> Any:
    return step_value[(slice(1),) * step_value.ndim] if np.ndim(step_value) else step_value


def _number_or_row(leaf_value: Any) -> float | PlanNumbers:
    if not isinstance(leaf_value, np.ndarray) or leaf_value.size == 1:
        return float(leaf_value)
    (axis,) = (dimension for dimension, length in enumerate(leaf_value.shape) if length > 1)
    return PlanNumbers(axis, leaf_value.ravel())
