"""Traces: values that know how they were computed, and the graph of their nodes.

While a trace is recorded, every formula call adds one node. A traced value raises an error for
arithmetic outside a formula, so no step of a computation can be missing from the graph. It also
cannot be converted to a bool, a float or an int.

Every node has a unique id in its trace. The id of an input is its path. The id of another node is
its place and its name, such as `cost/servers/compute-tray/trn3/per_chip_hour`; `scope` opens a
place. Ids do not depend on values, so an id names the same quantity in every explanation, file and
workbook.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from tco.core.formula import RECORDER, Formula, Recorder, greatest, in_use, least, total
from tco.core.provenance import Input
from tco.core.types import JsonObject
from tco.core.units import same_unit

STRUCTURE = "structure"  # source of a count that the system, model or plan states

# Place of new nodes in this thread or task.
PLACE: ContextVar[str] = ContextVar("place", default="")


class _Nowhere:
    """Context manager of `scope` while no trace is recorded, which does nothing."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        pass


NOWHERE = _Nowhere()


class _Scope:
    """Context manager that opens a place of the trace."""

    __slots__ = ("names", "token")

    def __init__(self, scope_names: tuple[str, ...]) -> None:
        self.names = tuple(scope_name.replace(" ", "-") for scope_name in scope_names)
        self.token: Token[str] | None = None

    def __enter__(self) -> None:
        outer_place = PLACE.get()
        names = (outer_place, *self.names) if outer_place else self.names
        self.token = PLACE.set("/".join(names))

    def __exit__(self, *_: object) -> None:
        if self.token is not None:
            PLACE.reset(self.token)


def scope(*scope_names: str) -> _Scope | _Nowhere:
    """Return a context manager that opens a place below the current place.

    Nodes made in the place carry its name. Without a trace the context manager does nothing.

    Args:
        scope_names: Parts of the place from the outside in; spaces become hyphens.

    """
    recorder = in_use()
    if recorder is None:
        return NOWHERE
    return _Scope(scope_names) if isinstance(recorder, TraceRecorder) else NOWHERE


class Node:
    """Node of the graph: an input, a formula call, or the sum, least or greatest of terms."""

    __slots__ = (
        "formula",
        "given",
        "id",
        "inputs",
        "kind",
        "name",
        "note",
        "operation",
        "path",
        "source",
        "stated_quantity",
        "unit",
        "value",
    )

    def __init__(self, node_name: str, node_value: Any, unit: str, source: str) -> None:
        self.name = node_name
        self.id = node_name  # replaced by a unique id of the recorder
        self.value = node_value
        self.unit = unit
        self.source = source
        self.formula: Formula | None = None
        self.operation: str | None = None  # "total", "least" or "greatest" of the inputs
        self.inputs: list[tuple[str, Node]] = []
        self.path: str | None = None  # input path, as in `--set`
        self.given: Input | None = None  # the input of a leaf, with its provenance
        self.kind: str | None = None
        self.note: str = ""
        # Value and unit as the catalogue writes them.
        self.stated_quantity: tuple[float, str] | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no inputs."""
        return not self.inputs


class Traced:
    """Value with the node that computed it."""

    __slots__ = ("node", "value")

    def __init__(self, plain_value: Any, node: Node) -> None:
        self.value = plain_value
        self.node = node

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(f"arithmetic on the traced value {self.node.name!r} outside a formula")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _refuse
    )
    __floordiv__ = __mod__ = __abs__ = _refuse
    __pow__ = __rpow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __float__ = __int__ = __index__ = _refuse
    __array_ufunc__ = None

    def __array_function__(self, *_: Any) -> Any:
        self._refuse()


class TraceRecorder:
    """Recorder of a trace, which adds a node for every formula call and every sum of terms."""

    def __init__(self) -> None:
        self._coefficients: dict[tuple[str, str], Node] = {}
        self._counts: dict[tuple[Any, ...], Node] = {}
        self._id_counts: dict[str, int] = {}  # number of nodes that would have had the same id

    def leaf(
        self,
        node_name: str,
        node_value: Any,
        unit: str,
        source: str,
        kind: str,
        path: str | None = None,
    ) -> Traced:
        """Return a traced value whose node has no inputs."""
        node = Node(node_name, node_value, unit, source)
        node.kind = kind
        node.path = path
        node.id = self._unique(path or node_name)
        return Traced(node_value, node)

    def call(self, formula: Formula, arguments: tuple[Any, ...], named: JsonObject) -> Traced:
        """Call the formula on plain values and return the result with its node."""
        argument_values = dict(zip(formula.parameters, arguments, strict=False)) | named
        plain: JsonObject = {}
        node = Node(formula.name, None, formula.unit, formula.source)
        node.formula = formula
        for parameter_name, unit in formula.parameters.items():
            if parameter_name in argument_values:
                argument = argument_values[parameter_name]
                if isinstance(argument, Traced):
                    if not same_unit(argument.node.unit, unit):
                        raise TypeError(
                            f"{formula.name}({parameter_name}) takes {unit!r}, got "
                            f"{argument.node.name!r} in {argument.node.unit!r}"
                        )
                    plain[parameter_name] = argument.value
                    node.inputs.append((parameter_name, argument.node))
                else:
                    plain[parameter_name] = argument
                    node.inputs.append(
                        (parameter_name, self._structural(parameter_name, argument, unit))
                    )
            else:
                plain[parameter_name] = formula.defaults[parameter_name]
                node.inputs.append(
                    (parameter_name, self._coefficient(formula, parameter_name, unit))
                )
        node.value = formula.function(**plain)
        node.id = self._placed(formula.name)
        return Traced(node.value, node)

    def gather(self, operation: str, name: str, terms: Sequence[Any]) -> Any:
        """Return the sum, least or greatest of the terms as a node.

        Plain terms give a plain number.
        """
        gathering = {"total": total, "least": least, "greatest": greatest}[operation]
        traced = [term for term in terms if isinstance(term, Traced)]
        if not traced:
            with paused():
                return gathering(name, terms)
        unit = traced[0].node.unit
        node = Node(name, None, unit, STRUCTURE)
        node.operation = operation
        term_values = []
        for position, term in enumerate(terms):
            if isinstance(term, Traced):
                if not same_unit(term.node.unit, unit):
                    raise TypeError(f"{name} gathers {unit!r} and {term.node.unit!r}")
                node.inputs.append((term.node.path or _below(PLACE.get(), term.node), term.node))
                term_values.append(term.value)
            else:
                node.inputs.append(
                    (f"term_{position + 1}", self._structural(f"term_{position + 1}", term, unit))
                )
                term_values.append(term)
        with paused():
            gathered_value = gathering(name, term_values)
        node.value = gathered_value
        node.id = self._placed(name)
        return Traced(gathered_value, node)

    def _structural(self, node_name: str, node_value: Any, unit: str) -> Node:
        """Return the leaf of a count; a place has one leaf for each name, value and unit."""
        count_key = (PLACE.get(), node_name, unit, _hashable(node_value))
        node = self._counts.get(count_key)
        if node is None:
            node = self._counts[count_key] = Node(node_name, node_value, unit, STRUCTURE)
            node.kind = "derived"
            node.id = self._placed(node_name)
        return node

    def _coefficient(self, formula: Formula, parameter_name: str, unit: str) -> Node:
        node = self._coefficients.get((formula.name, parameter_name))
        if node is None:
            node = Node(parameter_name, formula.defaults[parameter_name], unit, formula.source)
            node.kind = "derived"
            node.id = self._unique(f"constants/{formula.name}/{parameter_name}")
            self._coefficients[formula.name, parameter_name] = node
        return node

    def _placed(self, node_name: str) -> str:
        """Return the unique id of a new node in the current place."""
        current_place = PLACE.get()
        return self._unique(f"{current_place}/{node_name}" if current_place else node_name)

    def _unique(self, wanted_name: str) -> str:
        """Return a unique id: the wanted name, with a number where another node has the name."""
        count = self._id_counts[wanted_name] = self._id_counts.get(wanted_name, 0) + 1
        return wanted_name if count == 1 else self._unique(f"{wanted_name}-{count}")


def _hashable(plain_value: Any) -> Any:
    """Return a hashable key of a plain value; the key of a number does not depend on its type."""
    if not hasattr(plain_value, "tobytes"):
        return plain_value
    if plain_value.ndim == 0:
        return plain_value.item()
    return plain_value.shape, plain_value.tobytes()


def _below(parent_place: str, node: Node) -> str:
    """Return the label of a term in a sum made at `parent_place`.

    The label is the part of the term's own place below `parent_place`, else the term's name.
    """
    inner = node.id.removeprefix(f"{parent_place}/").rpartition("/")[0]
    return inner or node.name


@contextmanager
def recording() -> Iterator[TraceRecorder]:
    """Record a trace while the block runs.

    Returns:
        Context manager that gives the new recorder.

    """
    with recorded_by(trace := TraceRecorder()):
        yield trace


@contextmanager
def recorded_by(recorder: Recorder) -> Iterator[None]:
    """Let a recorder keep the nodes computed while the block runs.

    Nodes of other threads and tasks are left out.

    Args:
        recorder: Recorder in use during the block; the earlier recorder is back in use afterwards.

    """
    token = RECORDER.set(recorder)
    try:
        yield
    finally:
        RECORDER.reset(token)


@contextmanager
def paused() -> Iterator[None]:
    """Stop the recording while the block runs, to compute with plain values.

    Returns:
        Context manager; the earlier recorder is back in use after the block.

    """
    token = RECORDER.set(None)
    try:
        yield
    finally:
        RECORDER.reset(token)


def untraced_value(traced_or_plain: Any) -> Any:
    """Return the number behind a traced value, else the value as given.

    Args:
        traced_or_plain: Traced value, number or array.

    """
    return traced_or_plain.value if isinstance(traced_or_plain, Traced) else traced_or_plain


def walk(*roots: Node) -> Iterator[Node]:
    """Yield every node of the graph from `roots` downwards, each once.

    Args:
        roots: Nodes to start from, in this order.

    """
    seen_nodes: set[int] = set()
    stack = [*reversed(roots)]
    while stack:
        node = stack.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        yield node
        stack.extend(inner for _, inner in reversed(node.inputs))
