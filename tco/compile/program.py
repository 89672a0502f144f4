"""A program: the arithmetic of a scenario as a list of steps, recorded once and run many times.

While a program records, the chain of a scenario is evaluated once. Every call of a formula becomes
a step, and so does every sum, least or greatest of terms. A step names its function and its
sources, the steps whose values it takes. Steps with the same function and the same sources are one
step, so structures of a scenario that share arithmetic share steps.

Leaves are steps without a function: an input at a path, a number of the structure, or a row of
numbers, one for each plan of a search. `tco.compile.lower` turns a program into a kernel, which
computes the steps for many draws of the inputs without another evaluation of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
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
    """One number of the structure for each plan of a search."""

    axis: int  # of the arrays of plans; other phases of the workload have other axes
    numbers: FloatArray


class ProgramStep(NamedTuple):
    """Function of a step, and the indices of the steps whose values it takes."""

    function: Formula | str  # a text is a key of `GATHERINGS`
    sources: tuple[int, ...]


class Recorded(Traced):
    """Value of a step, and the index of the step in its program."""

    __slots__ = ("index",)

    def __init__(self, recorded_value: Any, index: int) -> None:
        super().__init__(recorded_value, Node(f"step {index}", recorded_value, "", ""))
        self.index = index


class Program:
    """Steps in order of computation; a step is known by its index."""

    def __init__(self) -> None:
        self.steps: list[ProgramStep | None] = []  # None for a leaf
        self.values: list[Recorded] = []  # of every step, at the first numbers of its leaves
        self.leaves: dict[int, float | PlanNumbers] = {}  # by index
        # indices by path; the catalogue may have several numbers of a path, at several dates
        self.inputs: dict[str, list[int]] = {}
        self.path_of: dict[int, str] = {}  # path by index, for the leaves that are inputs
        self.workload_steps: set[int] = set()  # indices of the steps that rate the workload
        self.is_on_first_plan = False  # whether new steps are computed for the first plan alone
        self.first_plan_steps: set[int] = set()  # indices of the steps that were computed so
        self._leaf_indices: dict[Hashable, int] = {}  # by path and number
        self._step_indices: dict[Hashable, int] = {}  # by function and sources
        self._identities: list[bytes] = []  # of the first steps, as far as they were asked for

    def read(self, leaf_input: Input) -> Recorded:
        """Return the value of an input, which becomes a leaf."""
        return self.values[self.find_or_add_leaf(leaf_input.value, leaf_input.path)]

    def find_or_add_leaf(self, leaf_value: Any, path: str | None = None) -> int:
        """Return the index of a leaf.

        Args:
            leaf_value: Number, or array of numbers of plans.
            path: Path of an input; None for a number of the structure.

        """
        leaf_key: Hashable
        if isinstance(leaf_value, np.ndarray):
            leaf_key = (path, leaf_value.shape, leaf_value.tobytes())
        else:
            leaf_key = (path, float(leaf_value))
        index = self._leaf_indices.get(leaf_key)
        if index is None:
            index = self._leaf_indices[leaf_key] = self.append_step(None, leaf_value)
            self.leaves[index] = _number_or_row(leaf_value)
            if path is not None:
                self.inputs.setdefault(path, []).append(index)
                self.path_of[index] = path
        return index

    def append_step(self, step: ProgramStep | None, step_value: Any) -> int:
        """Append a step, or a leaf without a step, and return its index."""
        index = len(self.steps)
        self.steps.append(step)
        self.values.append(Recorded(step_value, index))
        return index

    def step_index(self, recorded_value: Any) -> int:
        """Return the index of a value's step; a plain number becomes a leaf."""
        if isinstance(recorded_value, Recorded):
            return recorded_value.index
        return self.find_or_add_leaf(recorded_value)

    def call(self, formula: Formula, arguments: tuple[Any, ...], named: JsonObject) -> Recorded:
        """Return the result of a formula as a step.

        Args:
            formula: Formula to call.
            arguments: Arguments by position.
            named: Arguments by name.

        """
        if len(arguments) < len(formula.parameters):
            positional = dict(zip(formula.parameters, arguments, strict=False))
            argument_of = formula.defaults | positional | named
            arguments = tuple([argument_of[parameter] for parameter in formula.parameters])
        return self.find_or_add_step(formula, arguments, formula.function)

    def gather(self, operation: str, name: str, terms: Sequence[Any]) -> Any:
        """Return the sum, least or greatest of terms as a step.

        Args:
            operation: Key of `GATHERINGS`.
            name: Name of the result in a trace.
            terms: Recorded values and plain numbers; the result of plain numbers alone is plain.

        """

        def gather_values(*term_values: Any) -> Any:
            # the functions of `GATHERINGS` call the recorder in use, which is this program
            with paused():
                return GATHERINGS[operation](name, term_values)

        if any(isinstance(term, Recorded) for term in terms):
            return self.find_or_add_step(operation, terms, gather_values)
        return gather_values(*terms)

    def find_or_add_step(
        self, function: Formula | str, arguments: Sequence[Any], compute: Callable[..., Any]
    ) -> Recorded:
        """Return the value of a step.

        Args:
            function: Function of the step.
            arguments: Recorded values and plain numbers.
            compute: Computes the value from plain arguments; runs only if the step is new.

        """
        sources = tuple([self.step_index(argument) for argument in arguments])
        index = self._step_indices.get((function, sources))
        if index is None:
            step = ProgramStep(function, sources)
            index = self.append_step(step, self._step_value(sources, compute))
            self._step_indices[function, sources] = index
            if self.is_on_first_plan:
                self.first_plan_steps.add(index)
        elif index in self.first_plan_steps and not self.is_on_first_plan:
            self.first_plan_steps.remove(index)
            self.values[index].value = self._step_value(sources, compute)
        return self.values[index]

    def _step_value(self, sources: Sequence[int], compute: Callable[..., Any]) -> Any:
        source_values = [self.values[source].value for source in sources]
        if self.is_on_first_plan:
            source_values = [_of_first_plan(source_value) for source_value in source_values]
        return compute(*source_values)

    @contextmanager
    def on_first_plan(self) -> Iterator[None]:
        """Compute the values of new steps for the first plan alone.

        Use it where nothing but later steps reads the values. Metrics combine the plans of all
        phases, and their values for all combinations would fill the memory.
        """
        self.is_on_first_plan = True
        try:
            yield
        finally:
            self.is_on_first_plan = False

    def dependencies(self, targets: Iterable[int], known_steps: Container[int] = ()) -> set[int]:
        """Return the indices of steps that have to be computed, or read, for some targets.

        Args:
            targets: Indices of the steps to compute; they are part of the result.
            known_steps: Steps whose values are known, so that their sources are left out.

        """
        visited, pending = set[int](), [*targets]
        while pending:
            index = pending.pop()
            if index in visited:
                continue
            visited.add(index)
            step = self.steps[index]
            if step is not None and index not in known_steps:
                pending += step.sources
        return visited

    def workload_border(self, targets: Iterable[int], choice_path: str) -> list[int]:
        """Return the workload's results that targets depend on directly, as sorted indices.

        Targets such as metrics follow from these results without the other steps of the workload.
        A leaf counts as a result if it has a number for each plan, or is the input at
        `choice_path`.

        Args:
            targets: Indices of the steps to compute.
            choice_path: Path of the input that the choice of a plan sets.

        """
        border, visited, pending = set[int](), set[int](), [*targets]
        choice_leaves = self.inputs.get(choice_path, ())
        while pending:
            index = pending.pop()
            if index in visited:
                continue
            visited.add(index)
            step = self.steps[index]
            if step is None:
                if index in choice_leaves or isinstance(self.leaves[index], PlanNumbers):
                    border.add(index)
            elif index in self.workload_steps:
                border.add(index)
            else:
                pending += step.sources
        return sorted(border)

    def input_number(self, index: int) -> float:
        """Return the number that an input had when it became a leaf."""
        number: float = self.leaves[index]  # type: ignore[assignment]  # inputs are no rows
        return number

    def identity(self, index: int) -> bytes:
        """Return a hash of all arithmetic up to a step; inputs count by path, not by number."""
        for next_index in range(len(self._identities), len(self.steps)):
            description = self._step_description(next_index)
            self._identities.append(blake2b(description, digest_size=16).digest())
        return self._identities[index]

    def _step_description(self, index: int) -> bytes:
        from tco.compile.recipe import recipe_hash  # cached draws are looked up without it

        step = self.steps[index]
        if step is not None:
            function = step.function
            operation = function.encode() if isinstance(function, str) else recipe_hash(function)
            sources = [self._identities[source] for source in step.sources]
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
