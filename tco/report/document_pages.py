"""Values and texts of catalogue documents, with base, country and halls, and their pages."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.halls import COOLING_KEY, site_sections
from tco.catalog.rows import CatalogueRow, stated_quantity
from tco.core.columns import Column
from tco.core.entry_kinds import DOCUMENT_KINDS
from tco.core.provenance import Input, making
from tco.core.redaction_values import WITHHELD
from tco.core.types import JsonObject
from tco.report.inputs import written_input
from tco.report.record import Answer, Document, Member, record_of
from tco.report.table import Table, input_text, input_unit

# a date after all rows, at which each dated value is the latest
LAST_DATE = "2099"
NUMBERS = ("value", "low", "high")
TEXTS = ("unit", "as_of", "kind", "source", "note")


def _stated_range_text(stated_value: StatedValue) -> str:
    if stated_value.value is None:
        return ""
    if (
        stated_value.low is None
        or stated_value.high is None
        or stated_value.low == stated_value.high
    ):
        return "fixed"
    return (
        f"{input_text(stated_value.attribute, stated_value.low, 4)} to "
        f"{input_text(stated_value.attribute, stated_value.high, 4)}"
    )


def _stated_value_text(stated_value: StatedValue) -> str:
    return input_text(stated_value.attribute, stated_value.value)


def _stated_unit(stated_value: StatedValue) -> str:
    return input_unit(stated_value.attribute, stated_value.unit)


class StatedValue(NamedTuple):
    """A value of a part or a document as its row states it."""

    value: Annotated[float | None, Column("value", _stated_value_text)]
    unit: Annotated[str, Column("unit", _stated_unit)]
    low: Annotated[float | None, Column("P5 to P95", _stated_range_text)]
    high: float | None
    as_of: Annotated[str, Column("as of")]
    kind: Annotated[
        str, Column("kind", lambda stated_value: stated_value.kind + " (own)" * stated_value.is_own)
    ]
    source: Annotated[str, Column("source")]
    note: str
    # input path of a document's value
    path: Annotated[str, Column("path")] = ""
    # document or country that states the value
    origin: Annotated[
        str,
        Column(
            "from",
            lambda stated_value: (
                f"{stated_value.origin}, {stated_value.hall} hall"
                if stated_value.hall
                else stated_value.origin
            ),
            key="from",
        ),
    ] = ""
    # cooling of the hall whose value it is; empty for all halls
    hall: str = ""
    part: str = ""
    attribute: Annotated[str, Column("attribute")] = ""
    directness: Annotated[str, Column("how direct")] = ""
    use: str = ""
    is_own: bool = False


STATED_VALUE = record_of(StatedValue)
ROW_COLUMNS = ("value", "unit", "low", "high", "as_of", "kind")
DOCUMENT_ROW = STATED_VALUE.only("path", *ROW_COLUMNS, "source", "from", "hall", "note")
PAGES = {
    folder: Document(
        f"{folder}-show", "id", Member("texts", {str: str}), Member("values", [DOCUMENT_ROW])
    )
    for folder in DOCUMENT_KINDS
}


class DocumentContents(NamedTuple):
    """Texts and values of a document, with those of its base and its country."""

    name: str
    # text and its origin, by key
    texts: dict[str, tuple[str, str]]
    # by path and hall; the hall is empty for a value of all halls
    values: dict[tuple[str, str], StatedValue]
    is_own: bool

    def state(self, stated_value: StatedValue) -> None:
        """Set a value; a value of all halls replaces those of single halls."""
        if not stated_value.hall:
            for value_key in [
                value_key for value_key in self.values if value_key[0] == stated_value.path
            ]:
                del self.values[value_key]
        self.values[stated_value.path, stated_value.hall] = stated_value


def document_answer(folder: str, catalogue: Catalogue, document_name: str) -> Answer:
    """Return the page of a document: texts above its values, notes below.

    Args:
        folder: Kind of the document, a key of `DOCUMENT_KINDS`.
        catalogue: Holds the document.
        document_name: Id of the document.

    """
    contents = document_contents(catalogue, folder, document_name)
    stated_values = list(contents.values.values())
    text_rows = [
        {
            "path": f"{DOCUMENT_KINDS[folder].group}.{text_key}",
            "value": document_text,
            "origin": origin,
        }
        for text_key, (document_text, origin) in contents.texts.items()
    ]
    texts = {text_key: document_text for text_key, (document_text, _) in contents.texts.items()}

    def tables() -> list[Table]:
        notes = [
            f"{stated_value.path}: {stated_value.note}"
            for stated_value in stated_values
            if stated_value.note
        ]
        above = [
            f"{text_key}: {document_text}"
            for text_key, document_text in texts.items()
            if document_text
        ]
        below = ["Notes:", *notes] if notes else []
        table = DOCUMENT_ROW.table(stated_values, document_name, above, below)
        return [table._replace(columns=table.columns if stated_values else (), align="lrllllll")]

    content = {"id": document_name, "texts": texts, "values": stated_values}
    return PAGES[folder].answer(
        catalogue, content, tables, (DOCUMENT_ROW, [*text_rows, *stated_values])
    )


def document_contents(catalogue: Catalogue, folder: str, document_name: str) -> DocumentContents:
    """Return the texts and values of a document.

    A site that picks no hall has the values of each hall.

    Args:
        catalogue: Holds the document.
        folder: Kind of the document, a key of `DOCUMENT_KINDS`.
        document_name: Id of the document.

    """
    contents = _read_contents(catalogue, folder, document_name)
    halls = list(dict.fromkeys(hall for _, hall in contents.values if hall))
    if COOLING_KEY in contents.texts:
        picked = ("", contents.texts[COOLING_KEY][0])
        picked_values = {
            value_key: stated_value
            for value_key, stated_value in contents.values.items()
            if value_key[1] in picked
        }
        return contents._replace(values=picked_values)
    if halls:
        contents.texts[COOLING_KEY] = ", ".join(halls), document_name
    return contents


def _read_contents(catalogue: Catalogue, folder: str, document_name: str) -> DocumentContents:
    kind = DOCUMENT_KINDS[folder]
    path, document = catalogue.document(folder, document_name, kind.noun)
    base = str(document.get("base", ""))
    is_own = catalogue.is_overlay(path)
    contents = DocumentContents(document_name, {}, {}, is_own)
    if base and base != document_name:
        contents = _read_contents(catalogue, folder, base)._replace(
            name=document_name, is_own=is_own
        )
    if "country" in document:
        country = str(document["country"])
        for input_path, country_input in catalogue.of_country(country, LAST_DATE).items():
            cells = written_cells(country_input)
            contents.state(StatedValue(**cells, path=input_path, origin=country))
    origin = document_name + is_own * " (own)"
    for hall, entries in site_sections(document, path):
        in_place = catalogue.in_place(folder, path, hall or None)
        for document_key, entry in entries.items():
            if isinstance(entry, dict) and "value" in entry:
                catalogue_row = CatalogueRow(entry, f"{path}:{document_key}", is_own)
                input_path = f"{kind.group}.{document_key}"
                cells = stated_cells(in_place(catalogue_row, input_path))
                contents.state(StatedValue(**cells, path=input_path, origin=origin, hall=hall))
            # a note of the user's own document is not shown
            elif not (is_own and document_key == "note"):
                document_text = (
                    ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry)
                )
                is_withheld = is_own and making.get() is not None
                contents.texts[document_key] = WITHHELD if is_withheld else document_text, origin
    return contents


def stated_cells(catalogue_row: CatalogueRow) -> JsonObject:
    """Return the cells of a row as fields of a `StatedValue`.

    Args:
        catalogue_row: Row as it is written.

    Raises:
        DataError: A value, low or high is no finite number.

    """
    stated = {
        column: stated_quantity(catalogue_row, column, catalogue_row.where) for column in NUMBERS
    }
    numbers = {column: quantity and quantity[0] for column, quantity in stated.items()}
    texts = {column: str(catalogue_row.cells.get(column, "")) for column in TEXTS}
    units = {quantity[1] for quantity in stated.values() if quantity} or {texts["unit"]}
    return numbers | texts | {"unit": units.pop()}


def written_cells(number: Input) -> JsonObject:
    """Return an input as fields of a `StatedValue`, in the unit it is written in."""
    written = written_input(number)
    return {column: getattr(written, column) for column in (*NUMBERS, *TEXTS)}
