"""Records: an answer's fields, each with its key, type, reading and heading, declared once.

JSON, the cells of a CSV and the rows of a table are renderings of a record. The fields
of a result class are members of its record, with the `Column` that the class gives them. Documents
are the same bytes for the same input on one machine, and the same figures to 1e-9 on any.
"""

from __future__ import annotations

import collections.abc
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, reduce
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from tco import __version__
from tco.core.columns import Column
from tco.core.streams import CONTROLS
from tco.core.types import JsonMapping, JsonObject, Quantity
from tco.report.table import Table, significant

if TYPE_CHECKING:
    from tco.catalog import Catalogue

# json escapes control characters below 127 itself
JSON_ESCAPES = {character: f"\\u{character:04x}" for character in CONTROLS if character >= 127}
LEFT_OUT = object()  # value of a member that an object is without
SCALARS = {str, bool, int, float, dict, NoneType}
PLAIN_COLUMN = Column()


class Maybe(NamedTuple):
    """Shape of a record, list or mapping that may be null."""

    shape: Any


class Member(NamedTuple):
    """One field of a record; its key has its unit as suffix.

    A shape is a type (`float`, `str | None`, a result class, `dict` of what is printed as it is), a
    `Record`, `[shape]` for a list, or `{str: shape}` for a mapping.
    """

    key: str
    shape: Any = str
    # function or dotted path, such as `point.speed`, that reads the value from a source object;
    # None reads the attribute or entry of this key
    read: Callable[[Any], Any] | str | None = None
    # heading in tables; a member without one has no column there
    label: str | None = None
    # significant digits, a format string, or a function of the source object
    show: Callable[[Any], str] | int | str = 4
    # unit of the exported column
    unit: str | None = None
    csv: bool = True
    # whether the key is left out where the value is LEFT_OUT, or None under a shape without null
    optional: bool = False

    def of(self, source: Any) -> Any:
        """Return the value in `source`."""
        return _read_field(source, self.key) if self.read is None else _read_from(source, self.read)

    def text(self, source: Any) -> str:
        """Return the value in `source` as a table shows it."""
        if callable(self.show):
            return self.show(source)
        member_value = self.of(source)
        if isinstance(self.show, str) and member_value is not None:
            return self.show.format(member_value)
        if isinstance(member_value, str):
            return member_value
        return significant(member_value, self.show if isinstance(self.show, int) else 0)

    def json_lacks(self, member_value: Any) -> bool:
        """Return whether an object is without this key at `member_value`."""
        if not self.optional:
            return False
        nullable = isinstance(self.shape, Maybe) or NoneType in union_types(self.shape)
        return member_value is LEFT_OUT or (member_value is None and not nullable)


class Record:
    """Ordered members of a source object.

    Args:
        parts: A plain name adds a text member of this name. A record adds its members, and a result
            class those of its fields. A member takes the place of an earlier one with its key.

    """

    members: tuple[Member, ...]

    def __init__(self, *parts: Member | Record | str | type) -> None:
        members: dict[str, Member] = {}
        for part in parts:
            if isinstance(part, Member):
                members[part.key] = part
            elif isinstance(part, str):
                members[part] = Member(part)
            else:
                record = part if isinstance(part, Record) else record_of(part)
                members |= {member.key: member for member in record.members}
        self.members = tuple(members.values())

    def only(self, *member_keys: str) -> Record:
        """Return the record of the members with these keys, in this order."""
        by_key = {member.key: member for member in self.members}
        return Record(*(by_key[member_key] for member_key in member_keys))

    def read_via(self, read: Callable[[Any], Any] | str, prefix: str = "") -> Record:
        """Return the record of an object from which `read` reads this record's source.

        Members have no value where `read` finds none.
        """

        def member_via(member: Member) -> Member:
            def value(source: Any) -> Any:
                inner = _read_from(source, read)
                return None if inner is None else member.of(inner)

            def text(source: Any) -> str:
                return member.text(_read_from(source, read))

            show = text if callable(member.show) else member.show
            return member._replace(key=prefix + member.key, read=value, show=show)

        return Record(*map(member_via, self.members))

    @property
    def header(self) -> tuple[str, ...]:
        """Columns of a CSV."""
        return tuple(member.key for member in self.members if member.csv)

    def json(self, source: Any) -> JsonObject:
        """Return the members of `source` as a JSON object."""
        member_values = ((member, member.of(source)) for member in self.members)
        return {
            member.key: json_value(member_value, member.shape)
            for member, member_value in member_values
            if not member.json_lacks(member_value)
        }

    def cells(self, source: Any) -> list[Any]:
        """Return the cells of a CSV row: a flag as 1 or 0, a list in one cell."""
        return [_csv_value(member.of(source)) for member in self.members if member.csv]

    def table(
        self,
        sources: Iterable[Any],
        title: str = "",
        above: Sequence[str] = (),
        below: Sequence[str] = (),
        last: Any = (),
    ) -> Table:
        """Return a table with a row for each source and a column for each label.

        Args:
            sources: Objects of the rows.
            title: Title of the table.
            above: Lines above the table.
            below: Lines below the table.
            last: Rows of texts below those of the sources.

        """
        labelled = [member for member in self.members if member.label is not None]
        table_rows = [[member.text(source) for member in labelled] for source in sources]
        align = "".join("r" if _is_numeric_shape(member.shape) else "l" for member in labelled)
        columns = [member.label or "" for member in labelled]
        return Table(columns, [*table_rows, *last], title, above, below, align)


# documents by the name of their schema; several documents may share one
DOCUMENTS: dict[str, list[Document]] = {}


class Document(Record):
    """The record of a command's whole answer.

    Args:
        command: Name of the command in the schema, such as `sweep`.
        parts: Members, as those of a `Record`.

    """

    def __init__(self, command: str, *parts: Member | Record | str | type) -> None:
        super().__init__(*parts)
        self.command = command
        DOCUMENTS.setdefault(f"tco.{command}/1", []).append(self)

    def answer(
        self,
        catalogue: Catalogue,
        source: Any,
        tables: Callable[[], Sequence[Table]],
        csv_rows: tuple[Record, Iterable[Any]],
        notes: Sequence[str] = (),
        texts: Mapping[str, Callable[[], str]] | None = None,
        of: Callable[[Any], JsonMapping] | JsonMapping | None = None,
    ) -> Answer:
        """Return the output of the command for `source`, in all formats.

        Args:
            catalogue: Catalogue of the answer.
            source: Object that the document reads.
            tables: Function that makes the tables.
            csv_rows: Record of the CSV columns, and the source objects of its rows.
            notes: Lines for the error stream.
            texts: Functions that make further formats, by name.
            of: Context of all rows, or a function from a row's source to its context. Context that
                a row lacks stands in columns after the row's own, so that rows of many answers may
                share a file.

        """
        row_record, sources = csv_rows[0], list(csv_rows[1])
        contexts = [of(row_source) if callable(of) else of or {} for row_source in sources]
        context_keys = [
            context_key
            for context_key in (contexts[0] if contexts else {})
            if context_key not in row_record.header
        ]
        cells = [
            [
                *row_record.cells(row_source),
                *(_csv_value(context[context_key]) for context_key in context_keys),
            ]
            for row_source, context in zip(sources, contexts, strict=True)
        ]
        return Answer(
            lambda: document(self.command, catalogue, self.json(source)),
            tables,
            (*row_record.header, *context_keys),
            cells,
            notes,
            texts or {},
        )


class Answer(NamedTuple):
    """Output of a command in every format, made only on request."""

    json: Callable[[], JsonObject]
    tables: Callable[[], Sequence[Table]]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    notes: Sequence[str] = ()
    # formats of this command beside those of all commands
    texts: Mapping[str, Callable[[], str]] = {}


def document(command: str, catalogue: Catalogue, content: JsonObject) -> JsonObject:
    """Return the document of a command: schema, version, hash of the data, content.

    Args:
        command: Command in the name of the schema, such as `sweep`.
        catalogue: Catalogue whose data the hash covers.
        content: Content of the command.

    Returns:
        JSON object; `anchored` is added for a catalogue with measured runs as anchors.

    """
    head = {
        "schema": f"tco.{command}/1",
        "tco_version": __version__,
        "data_hash": catalogue.hash(),
    }
    if not catalogue.anchors:
        return head | content
    from tco.scenario.anchors import account_of

    return head | content | {"anchored": ANCHORED.json(account_of(catalogue))}


def to_json(content: JsonObject) -> str:
    """Return a document as JSON text that no terminal obeys.

    Args:
        content: Document of a command.

    Returns:
        Indented text with control characters escaped and a final line break.

    Raises:
        ValueError: A number is not finite, which is a defect of the program.

    """
    json_text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return json_text.translate(JSON_ESCAPES) + "\n"


def json_number_or_none(raw_number: Any) -> float | int | None:
    """Return a value as a JSON number, whole where it is whole.

    Args:
        raw_number: A number, None, or a value that is no finite number; these give None.

    """
    if raw_number is None:
        return None
    number = float(raw_number)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _read_field(source: Any, field_name: str) -> Any:
    if source is None:
        return None
    if isinstance(source, Mapping):
        return source.get(field_name)
    return source[int(field_name)] if field_name.isdigit() else getattr(source, field_name)


def _read_from(source: Any, read: Callable[[Any], Any] | str) -> Any:
    return reduce(_read_field, read.split("."), source) if isinstance(read, str) else read(source)


def json_value(raw_value: Any, shape: Any) -> Any:
    """Return a value as JSON has it.

    Under a shape without null, a number that is not finite stays and is refused as a defect.
    """
    if raw_value is None:
        return None
    if isinstance(shape, Maybe):
        return json_value(raw_value, shape.shape)
    if isinstance(shape, Record):
        return shape.json(raw_value)
    if isinstance(shape, list):
        return [json_value(entry, shape[0]) for entry in raw_value]
    if isinstance(shape, dict):
        (inner_shape,) = shape.values()
        return {
            member_key: json_value(entry, inner_shape) for member_key, entry in raw_value.items()
        }
    if is_result_class(shape):
        return record_of(shape).json(raw_value)
    types = union_types(shape)
    if float not in types or isinstance(raw_value, (str, bool)):
        return raw_value
    number = json_number_or_none(raw_value)
    return raw_value if number is None and NoneType not in types else number


def _csv_value(cell_value: Any) -> Any:
    if isinstance(cell_value, (list, tuple)):
        return ";".join(map(str, cell_value))
    if cell_value is LEFT_OUT:
        return None
    return int(cell_value) if isinstance(cell_value, bool) else cell_value


def union_types(shape: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the shape alone."""
    return get_args(shape) if isinstance(shape, UnionType) else (shape,)


def _is_numeric_shape(shape: Any) -> bool:
    types = union_types(shape)
    is_type = isinstance(shape, (type, UnionType))
    return is_type and bool({float, int} & {*types}) and str not in types


def is_result_class(shape: Any) -> bool:
    """Return whether a shape is a NamedTuple or a dataclass."""
    return isinstance(shape, type) and (hasattr(shape, "_fields") or is_dataclass(shape))


@cache
def record_of(result_class: type) -> Record:
    """Return the record of a result class.

    Args:
        result_class: NamedTuple or dataclass whose fields may carry a `Column`.

    """
    members = []
    for field_name, hint in get_type_hints(result_class, include_extras=True).items():
        metadata = getattr(hint, "__metadata__", ())
        column = next((entry for entry in metadata if isinstance(entry, Column)), PLAIN_COLUMN)
        if not column.hidden:
            presentation = (column.label, column.show, column.unit, column.csv, column.optional)
            key = column.key or field_name
            members.append(Member(key, _shape_of(hint), field_name, *presentation))
    return Record(*members)


def _shape_of(hint: Any) -> Any:
    """Return the shape of a type hint, such as `[str]` of `Sequence[str]`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _shape_of(arguments[0])
    if origin in (list, tuple, collections.abc.Sequence):
        return [_shape_of(arguments[0])]
    if origin in (dict, collections.abc.Mapping):
        return dict if arguments[1] is Any else {str: _shape_of(arguments[1])}
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        if len(inner) == 1 and inner[0] not in SCALARS:
            inner_shape = _shape_of(inner[0])
            return dict | None if inner_shape is dict else Maybe(inner_shape)
    return float if hint is Quantity else hint


# answers that anchors, measured runs of the user's own, have moved
ANCHORED = Record(
    Member("rows", int),
    Member("moved", float | None),
    Member("systems", {str: float}),
    Member(
        "rests_on",
        [Record("chip", "engine", "model", Member("formats", [str]), Member("rows", int))],
    ),
)
