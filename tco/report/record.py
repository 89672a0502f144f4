"""An answer's record: each figure told once, by its key, its shape, how it is read and how people
see it.

JSON, its schema, the cells of a CSV and the rows of a table are renderings of a record;
`tco/cli/output.py` lists the forms they are printed in. Documents are the same bytes for the same
input on one machine, and the same figures to 1e-9 on any.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from tco import __version__
from tco.core.streams import CONTROLS
from tco.core.types import JsonMapping, JsonObject
from tco.report.table import Table, significant

if TYPE_CHECKING:
    from tco.catalog import Catalogue

# json itself writes those before as such
ESCAPES = {one: f"\\u{one:04x}" for one in CONTROLS if one >= 127}
LEFT_OUT = object()  # the value of a member that an object is without
NAMES: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    dict: "object",
    type(None): "null",
}


class Maybe(NamedTuple):
    """A shape that may be null, where Python has no type for it."""

    shape: Any


class Member(NamedTuple):
    """One figure of a record; its key has its unit as suffix.

    A shape is a type (`float`, `str | None`, a NamedTuple, `dict` of what is printed as it is), a
    `Record` of what lies within, `[shape]` for many, `{str: shape}` for many by name.
    """

    key: str
    shape: Any = str
    read: Callable[[Any], Any] | str | None = (
        # from what the record is of, such as by the path `point.speed`; left out: its member of
        # this name
        None
    )
    label: str | None = None  # the heading in tables, which show what has one
    # the text in tables, from what the record is of; or how many digits, or a format
    show: Callable[[Any], str] | int | str = 4
    unit: str | None = None  # where rows of it are exported
    csv: bool = True
    # a key that is left out where its value is LEFT_OUT, or none though its shape is never null
    optional: bool = False

    def of(self, one: Any) -> Any:
        """Return the value."""
        return named_in(one, self.key) if self.read is None else read_from(one, self.read)

    def text(self, one: Any) -> str:
        """Return the value as a table shows it."""
        if callable(self.show):
            return self.show(one)
        value = self.of(one)
        if isinstance(self.show, str) and value is not None:
            return self.show.format(value)
        return (
            value
            if isinstance(value, str)
            else significant(value, self.show if isinstance(self.show, int) else 0)
        )


class Record:
    """Ordered output fields of an object, or of many objects.

    A plain name adds a text member of this name. A record adds all of its members.
    """

    def __init__(self, *parts: Member | Record | str) -> None:
        self.members: tuple[Member, ...] = ()
        for part in parts:
            self.members += (
                part.members
                if isinstance(part, Record)
                else (Member(part) if isinstance(part, str) else part,)
            )

    def only(self, *keys: str) -> Record:
        """Return the record of some of its members, in this order."""
        named = {member.key: member for member in self.members}
        return Record(*(named[key] for key in keys))

    def read_via(self, read: Callable[[Any], Any] | str, prefix: str = "") -> Record:
        """Return the record as one of something that this is read from; where there is none of it
        its members have no value.
        """

        def member_via(member: Member) -> Member:
            show = (
                (lambda one: member.text(read_from(one, read)))
                if callable(member.show)
                else member.show
            )
            return member._replace(
                key=prefix + member.key,
                read=lambda one: (
                    None if (found := read_from(one, read)) is None else member.of(found)
                ),
                show=show,
            )

        return Record(*map(member_via, self.members))

    @property
    def header(self) -> tuple[str, ...]:
        """The columns of a CSV."""
        return tuple(member.key for member in self.members if member.csv)

    def json(self, one: Any) -> JsonObject:
        """Return the members of a JSON object."""
        found = {}
        for member in self.members:
            value = member.of(one)
            missing = (
                value is None
                and not isinstance(member.shape, Maybe)
                and type(None) not in shape_types(member.shape)
            )
            if not (member.optional and (missing or value is LEFT_OUT)):
                found[member.key] = json_value(value, member.shape)
        return found

    def cells(self, one: Any) -> list[Any]:
        """Return the cells of a row of a CSV: a flag as 1 or 0, names in one cell."""
        return [csv_value(member.of(one)) for member in self.members if member.csv]

    def table(
        self,
        many: Iterable[Any],
        title: str = "",
        above: Sequence[str] = (),
        below: Sequence[str] = (),
        last: Any = (),
    ) -> Table:
        """Return a table of what has a label, its numbers to the right; `last` are rows below those
        of the records.
        """
        shown = [member for member in self.members if member.label is not None]
        rows = [[member.text(one) for member in shown] for one in many]
        align = "".join("r" if is_numeric_shape(member.shape) else "l" for member in shown)
        return Table(
            [member.label or "" for member in shown], [*rows, *last], title, above, below, align
        )

    def schema(self) -> JsonObject:
        """Return the JSON Schema."""
        needed = [member.key for member in self.members if not member.optional]
        return {
            "type": "object",
            "required": needed,
            "properties": {member.key: json_schema_of(member.shape) for member in self.members},
        }


# by schema; one that several answers share has any of their forms
DOCUMENTS: dict[str, list[Document]] = {}


class Document(Record):
    """The record of a command's whole answer; `command` names its schema."""

    def __init__(self, command: str, *parts: Member | Record | str) -> None:
        super().__init__(*parts)
        self.command = command
        DOCUMENTS.setdefault(f"tco.{command}/1", []).append(self)

    def answer(
        self,
        catalogue: Catalogue,
        found: Any,
        tables: Callable[[], Sequence[Table]],
        rows: tuple[Record, Iterable[Any]],
        notes: Sequence[str] = (),
        texts: Mapping[str, Callable[[], str]] | None = None,
        of: Callable[[Any], JsonMapping] | JsonMapping | None = None,
    ) -> Answer:
        """Return the output of the command for `found`, in all formats.

        `rows` holds the record of the CSV columns, and the objects of its rows. `of` gives the
        context of all objects, or a function from an object to its context. Context that a row
        lacks stands in columns after the row's own, so that rows of many answers may share a file.
        """
        row, many = rows[0], list(rows[1])
        said = [of(one) if callable(of) else of or {} for one in many]
        more = [key for key in (said[0] if said else {}) if key not in row.header]
        cells = [
            [*row.cells(one), *(csv_value(its[key]) for key in more)]
            for one, its in zip(many, said, strict=True)
        ]
        return Answer(
            lambda: document(self.command, catalogue, self.json(found)),
            tables,
            (*row.header, *more),
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
    texts: Mapping[str, Callable[[], str]] = {}  # forms that this command has beside those of all


def document(command: str, catalogue: Catalogue, content: JsonObject) -> JsonObject:
    """Return the document of a command: schema, version, hash of the data, content.

    Args:
        command: Command in the name of the schema, such as `sweep`.
        catalogue: Catalogue whose data the hash covers.
        content: Content of the command.

    Returns:
        JSON object; `anchored` is added for a catalogue with measured runs as anchors.

    """
    found = {
        "schema": f"tco.{command}/1",
        "tco_version": __version__,
        "data_hash": catalogue.hash(),
        **content,
    }
    if catalogue.anchors:
        from tco.scenario.anchors import account_of

        found["anchored"] = ANCHORED.json(account_of(catalogue))
    return found


def to_json(content: JsonObject) -> str:
    """Return a document as JSON text that no terminal obeys.

    Args:
        content: Document of a command.

    Returns:
        Indented text with control characters escaped and a final line break.

    Raises:
        ValueError: A number is not finite, which is a defect of the program.

    """
    return (
        json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False).translate(ESCAPES) + "\n"
    )


def json_number_or_none(value: Any) -> float | int | None:
    """Return a value as a JSON number, whole where it is whole; none for None and for what is no
    finite number.
    """
    if value is None:
        return None
    found = float(value)
    if not math.isfinite(found):
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def named_in(one: Any, name: str) -> Any:
    """Return a member of something by its name or, of a tuple, its place; of nothing there is
    none.
    """
    if one is None:
        return None
    return (
        one.get(name)
        if isinstance(one, Mapping)
        else one[int(name)]
        if name.isdigit()
        else getattr(one, name)
    )


def read_from(one: Any, read: Callable[[Any], Any] | str) -> Any:
    """Return a value read from `one` by a function or dotted path.

    A dotted path joins the names of members by points.
    """
    return reduce(named_in, read.split("."), one) if isinstance(read, str) else read(one)


def json_value(value: Any, shape: Any) -> Any:
    """Return a value as JSON has it; where its shape is never null, what is no finite number stays,
    and is refused as a defect.
    """
    if value is None:
        return None
    if isinstance(shape, Maybe):
        return json_value(value, shape.shape)
    if isinstance(shape, Record):
        return shape.json(value)
    if isinstance(shape, list):
        return [json_value(one, shape[0]) for one in value]
    if isinstance(shape, dict):
        (inner,) = shape.values()
        return {key: json_value(one, inner) for key, one in value.items()}
    if is_tuple(shape):
        return record_of(shape).json(value)
    kinds = shape_types(shape)
    if float not in kinds or isinstance(value, (str, bool)):
        return value
    found = json_number_or_none(value)
    return value if found is None and type(None) not in kinds else found


def csv_value(value: Any) -> Any:
    """Return a value as a cell of a CSV."""
    if isinstance(value, (list, tuple)):
        return ";".join(map(str, value))
    return None if value is LEFT_OUT else int(value) if isinstance(value, bool) else value


def shape_types(shape: Any) -> tuple[Any, ...]:
    """Return the types of a simple shape."""
    return get_args(shape) if isinstance(shape, UnionType) else (shape,)


def is_numeric_shape(shape: Any) -> bool:
    """Say whether a shape is a number, or none."""
    return (
        isinstance(shape, (type, UnionType))
        and {float, int} & {*shape_types(shape)} != set()
        and str not in shape_types(shape)
    )


def is_tuple(shape: Any) -> bool:
    """Say whether a shape is a class of named members."""
    return isinstance(shape, type) and hasattr(shape, "_fields")


def record_of(shape: Any) -> Record:
    """Return the record of a class of named members, each by its name and type."""
    return Record(*(Member(name, kind) for name, kind in get_type_hints(shape).items()))


def json_schema_of(shape: Any) -> JsonObject:
    """Return the JSON Schema of a shape."""
    if isinstance(shape, Maybe):
        inner = json_schema_of(shape.shape)
        return {**inner, "type": sorted({"null", inner["type"]})}
    if isinstance(shape, Record):
        return shape.schema()
    if isinstance(shape, list):
        return {"type": "array", "items": json_schema_of(shape[0])}
    if isinstance(shape, dict):
        return {
            "type": "object",
            "additionalProperties": json_schema_of(next(iter(shape.values()))),
        }
    if is_tuple(shape):
        return record_of(shape).schema()
    if get_origin(shape) is Literal:
        return {"enum": list(get_args(shape))}
    names = sorted({NAMES[kind] for kind in shape_types(shape)})
    return {"type": names if len(names) > 1 else names[0]}


ANCHORED = Record(  # of answers that measured runs of one's own have moved
    Member("rows", int),
    Member("moved", float | None),
    Member("systems", {str: float}),
    Member(
        "rests_on",
        [Record("chip", "engine", "model", Member("formats", [str]), Member("rows", int))],
    ),
)
MOVED = ("compare", "perf", "price", "uncertainty")  # documents that say so


def published_schema(name: str) -> JsonObject:
    """Return the JSON Schema of the documents of a name."""
    head = {
        "schema": {"const": name},
        "tco_version": {"type": "string"},
        "data_hash": {"type": "string", "pattern": "^([0-9a-f]+|withheld)$"},
    }
    found = []
    for one in DOCUMENTS[name]:
        content = one.schema()
        if one.command in MOVED:
            content["properties"]["anchored"] = ANCHORED.schema()
        found.append(
            {
                **content,
                "required": [*head, *content["required"]],
                "properties": head | content["properties"],
            }
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **(found[0] if len(found) == 1 else {"anyOf": found}),
    }
