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

    chip_names = _chip_names(catalogue)
    rows_by_part: dict[str, list[CatalogueRow]] = {}
    for (part, _), catalogue_rows in catalogue.part_rows.items():
        rows_by_part.setdefault(part, []).extend(catalogue_rows)
    for part, attributes in sorted(catalogue.parts.items()):
        # of a whole part, or of what an assembly adds to parts with prices of their own
        priced_as = next(
            (
                price_attribute
                for price_attribute in ("price", "own_price")
                if price_attribute in attributes
            ),
            "",
        )
        price = catalogue.part_input(part, priced_as, LAST_DATE) if priced_as else NO_PRICE
        yield PartEntry(
            part,
            chip_names.get(part, ""),
            source_table_name(rows_by_part[part][0].where),
            price.value,
            priced_as,
            price.as_of,
            price.kind,
            price.source,
            len(attributes),
            any(catalogue_row.overlay for catalogue_row in rows_by_part[part]),
        )


def _chip_names(catalogue: Catalogue) -> dict[str, str]:
    chip_names: dict[str, str] = {}
    for path in catalogue.folder_files("accelerators.csv"):
        for _, chip_row in read_csv(path, ("name", "part")):
            chip_names.setdefault(chip_row["part"], chip_row["name"])
    return chip_names


def _list_systems(catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield every system, also one whose file lacks a key or has malformed variants."""
    from tco.catalog.system_tree import variant_options

    for system_id in catalogue.ids("systems"):
        document = catalogue.document("systems", system_id, "system")[1]
        variants = document.get("variants")
        options = variant_options(variants) if isinstance(variants, dict) else {}
        texts = dict.fromkeys(("name", "chip", "cooling"), "")
        yield {**texts, **document, "id": system_id, "variants": options}


def _list_models(catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield every model; one that cannot be read has only its id and the reason."""
    from tco.models.architecture import load_model

    for model_id in catalogue.models:
        try:
            model = load_model(catalogue, model_id)
            yield {
                model_key: getattr(model, model_key) for model_key in ("id", *MODEL_SIZES, "source")
            }
        except TcoError as error:
            yield {"id": model_id, "not_read": str(error)}


def _list_scenarios(catalogue: Catalogue) -> list[Scenario]:
    from tco.scenario.document import load_scenario

    return [load_scenario(catalogue, scenario_name) for scenario_name in catalogue.scenarios]


def _list_agreements(catalogue: Catalogue) -> list[Agreement]:
    from tco.cost.ownership import load_agreement

    return [load_agreement(catalogue, agreement_id) for agreement_id in catalogue.ids("rebates")]


def _list_documents(folder: str, catalogue: Catalogue) -> list[DocumentContents]:
    return [
        document_contents(catalogue, folder, document_name)
        for document_name in catalogue.ids(folder)
    ]


def _list_metrics(_: Catalogue) -> list[MetricEntry]:
    """Return every metric."""
    from tco.scenario.metrics import METRICS, is_worse

    better = {None: "", True: "less", False: "more"}
    return [
        MetricEntry(metric_name, metric.unit, better[is_worse(metric_name, 1.0)], metric.label)
        for metric_name, metric in METRICS.items()
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
            *(Member(size_name, int, optional=True) for size_name in MODEL_SIZES),
            *(Member(member_name, optional=True) for member_name in ("source", "not_read")),
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
                *(Member(text_key, str | None, f"texts.{text_key}.0") for text_key in kind.texts),
                Member("own", bool, "is_own"),
            ),
        )
        for folder, kind in DOCUMENT_KINDS.items()
    },
}
LIST_DOCUMENTS = {
    entry_kind: Document(
        f"{entry_kind}-list", Member("items", [entries.record], lambda items: items)
    )
    for entry_kind, entries in LISTS.items()
}


def list_answer(entry_kind: str, catalogue: Catalogue) -> Answer:
    """Return the list of a kind of entry, with a column for each member.

    Args:
        entry_kind: Name of the kind, a key of `LISTS`.
        catalogue: Holds the entries.

    """
    items = list(LISTS[entry_kind].items(catalogue))
    columns = Record(
        *(
            _text_column(member)
            for member in LISTS[entry_kind].record.members
            if not member.optional or any(member.of(item) is not None for item in items)
        )
    )
    return LIST_DOCUMENTS[entry_kind].answer(
        catalogue,
        items,
        lambda: [columns.table(items, f"{len(items)} {entry_kind}")],
        (columns, items),
    )


def _text_column(member: Member) -> Member:
    return Member(member.key, read=lambda item: _cell(member.of(item)), label=member.key, show=6)


def _cell(member_value: Any) -> str | float:
    # a number with a fraction stays one, for tables to round
    if isinstance(member_value, float):
        return member_value
    if isinstance(member_value, dict):
        return " ".join(
            f"{variant_key}={'|'.join(options)}" for variant_key, options in member_value.items()
        )
    return "" if member_value is None else str(member_value)
