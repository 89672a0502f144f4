"""Lists of the catalogue: parts, systems, models, scenarios, sources, documents and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tco.catalog import Catalogue, Source
from tco.catalog.rows import CatalogueRow
from tco.core.columns import Column
from tco.core.entry_kinds import DOCUMENT_KINDS
from tco.core.errors import TcoError
from tco.core.files import read_csv
from tco.core.provenance import Input
from tco.core.types import JsonObject
from tco.report.document_pages import LAST_DATE, DocumentContents, document_contents
from tco.report.record import Answer, Document, Member, Record, record_of

if TYPE_CHECKING:
    from tco.cost.ownership import Agreement
    from tco.scenario.document import Scenario


NO_PRICE = Input("", None, "", kind="")


class PartEntry(NamedTuple):
    """A part with its latest price, in USD."""

    id: str
    name: str
    # table that states the part
    shelf: str
    # None for a part that is built up from silicon, or comes inside another part
    price_usd: float | None
    # attribute that holds the price
    priced_as: str
    as_of: str
    kind: str
    source: str
    # number of attributes
    attributes: int
    is_own: Annotated[bool, Column(key="own")]


class MetricEntry(NamedTuple):
    """A metric of results."""

    id: str
    unit: str
    better: str
    what: str


class EntryList(NamedTuple):
    """The list of a kind of entry: its items and their record."""

    items: Callable[[Catalogue], Iterable[Any]]
    record: Record


def _list_parts(catalogue: Catalogue) -> Iterator[PartEntry]:
    """Yield every part by id."""
    from tco.cost.price_dates import source_table_name

    names = _chip_names(catalogue)
    rows_by_part: dict[str, list[CatalogueRow]] = {}
    for (part, _), rows in catalogue.part_rows.items():
        rows_by_part.setdefault(part, []).extend(rows)
    for part, attributes in sorted(catalogue.parts.items()):
        # of a whole part, or of what an assembly adds to parts with prices of their own
        priced_as = next((name for name in ("price", "own_price") if name in attributes), "")
        price = catalogue.part_input(part, priced_as, LAST_DATE) if priced_as else NO_PRICE
        yield PartEntry(
            part,
            names.get(part, ""),
            source_table_name(rows_by_part[part][0].where),
            price.value,
            priced_as,
            price.as_of,
            price.kind,
            price.source,
            len(attributes),
            any(row.overlay for row in rows_by_part[part]),
        )


def _chip_names(catalogue: Catalogue) -> dict[str, str]:
    names: dict[str, str] = {}
    for folder in catalogue.folders:
        path = folder / "accelerators.csv"
        if path.is_file():
            for _, row in read_csv(path, ("name", "part")):
                names.setdefault(row["part"], row["name"])
    return names


def _list_systems(catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield every system, also one whose file lacks a key or has malformed variants."""
    from tco.catalog.system_tree import variant_options

    for name in catalogue.ids("systems"):
        document = catalogue.document("systems", name, "system")[1]
        variants = document.get("variants")
        options = variant_options(variants) if isinstance(variants, dict) else {}
        texts = dict.fromkeys(("name", "chip", "cooling"), "")
        yield {**texts, **document, "id": name, "variants": options}


def _list_models(catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield every model; one that cannot be read has only its id and the reason."""
    from tco.models.architecture import load_model

    for name in catalogue.models:
        try:
            model = load_model(catalogue, name)
            yield {key: getattr(model, key) for key in ("id", *MODEL_SIZES, "source")}
        except TcoError as error:
            yield {"id": name, "not_read": str(error)}


def _list_scenarios(catalogue: Catalogue) -> list[Scenario]:
    from tco.scenario.document import load_scenario

    return [load_scenario(catalogue, name) for name in catalogue.scenarios]


def _list_agreements(catalogue: Catalogue) -> list[Agreement]:
    from tco.cost.ownership import load_agreement

    return [load_agreement(catalogue, name) for name in catalogue.ids("rebates")]


def _list_documents(folder: str, catalogue: Catalogue) -> list[DocumentContents]:
    return [document_contents(catalogue, folder, name) for name in catalogue.ids(folder)]


def _list_metrics(_: Catalogue) -> list[MetricEntry]:
    """Return every metric."""
    from tco.scenario.metrics import METRICS, is_worse

    better = {None: "", True: "less", False: "more"}
    return [
        MetricEntry(name, metric.unit, better[is_worse(name, 1.0)], metric.label)
        for name, metric in METRICS.items()
    ]


MODEL_SIZES = ("parameters", "active_parameters", "layers", "context")
LISTS = {
    "parts": EntryList(_list_parts, record_of(PartEntry)),
    "systems": EntryList(
        _list_systems, Record("id", "name", "chip", "cooling", Member("variants", {str: [str]}))
    ),
    "models": EntryList(
        _list_models,
        Record(
            "id",
            *(Member(name, int, optional=True) for name in MODEL_SIZES),
            *(Member(name, optional=True) for name in ("source", "not_read")),
        ),
    ),
    "scenarios": EntryList(
        _list_scenarios,
        Record(
            Member("id", read="name"),
            "title",
            "system",
            Record("site", "terms", "workload", "cluster").read_via("documents"),
        ),
    ),
    "sources": EntryList(lambda catalogue: catalogue.sources.values(), record_of(Source)),
    "rebates": EntryList(
        _list_agreements,
        Record(
            "id",
            "supplier",
            "holder",
            "kind",
            Member("from", read="begins"),
            Member("until", read="ends"),
        ),
    ),
    "metrics": EntryList(_list_metrics, record_of(MetricEntry)),
    **{
        folder: EntryList(
            partial(_list_documents, folder),
            Record(
                Member("id", read="name"),
                *(Member(key, str | None, f"texts.{key}.0") for key in kind.texts),
                Member("own", bool, "is_own"),
            ),
        )
        for folder, kind in DOCUMENT_KINDS.items()
    },
}
LIST_DOCUMENTS = {
    name: Document(f"{name}-list", Member("items", [entries.record], lambda items: items))
    for name, entries in LISTS.items()
}


def list_answer(name: str, catalogue: Catalogue) -> Answer:
    """Return the list of a kind of entry, with a column for each member.

    Args:
        name: Name of the kind, a key of `LISTS`.
        catalogue: Holds the entries.

    """
    items = list(LISTS[name].items(catalogue))
    columns = Record(
        *(
            _text_column(member)
            for member in LISTS[name].record.members
            if not member.optional or any(member.of(item) is not None for item in items)
        )
    )
    return LIST_DOCUMENTS[name].answer(
        catalogue, items, lambda: [columns.table(items, f"{len(items)} {name}")], (columns, items)
    )


def _text_column(member: Member) -> Member:
    return Member(member.key, read=lambda item: _cell(member.of(item)), label=member.key, show=6)


def _cell(value: Any) -> str | float:
    # a number with a fraction stays one, for tables to round
    if isinstance(value, float):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key}={'|'.join(options)}" for key, options in value.items())
    return "" if value is None else str(value)
