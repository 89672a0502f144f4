"""Catalogue lists and pages: parts, systems, models, scenarios, sources, agreements.

Scenarios are put together from sites, terms, workloads, clusters, perspectives and traffic. These
documents are listed and shown here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue, Source
from tco.catalog.halls import COOLING, in_each_hall
from tco.catalog.rows import ALTERNATIVE, CatalogueRow, attribute, to_input
from tco.core.errors import TcoError, unknown
from tco.core.files import read_csv
from tco.core.provenance import Input
from tco.core.types import JsonMapping, JsonObject
from tco.core.units import convert
from tco.report.record import Answer, Document, Member, Record, document, record_of
from tco.report.table import Table, significant

if TYPE_CHECKING:
    from tco.catalog.system_tree import System
    from tco.cost.ownership import Agreement, Worth
    from tco.scenario.result import Figures


class Shelf(NamedTuple):
    """Finder and record of the items of one catalogue list."""

    found: Callable[[Catalogue], Iterable[Any]]
    item: Record


class DocumentKind(NamedTuple):
    """A kind of document that scenarios are put together from."""

    one: str  # what one is called
    group: str  # what its values are inputs of
    texts: tuple[str, ...]  # what the list shows


KINDS = {  # by the name of their folder, and of their commands
    "sites": DocumentKind("site", "site", ("name", "base", "country", "tenure", "cooling", "grid")),
    "terms": DocumentKind("set of terms", "terms", ("name", "perspective", "date")),
    "workloads": DocumentKind("workload", "workload", ("name", "kind", "model", "precision")),
    "clusters": DocumentKind("cluster", "cluster", ("name", "switch", "port")),
    "perspectives": DocumentKind("perspective", "terms", ("name", "base", "owner", "pays")),
    "traffic": DocumentKind("traffic", "traffic", ("name", "promises")),
}


# ---------------------------------------------------------------- lists and checks
EVER = "2099"  # the date after all rows: each price is the latest
# a whole part, or what an assembly adds to parts that are priced for themselves
PRICED = (
    "price",
    "own_price",
)


def parts_listed(catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield every part with its latest price; one that is built up from silicon, or comes inside
    another, has none of its own.
    """
    from tco.cost.price_dates import source_table_name

    tables = [folder / "accelerators.csv" for folder in catalogue.folders]
    called = [
        row for path in tables if path.is_file() for _, row in read_csv(path, ("name", "part"))
    ]
    # the first name of each chip
    names, files, own = (
        {row["part"]: row["name"] for row in reversed(called)},
        dict[str, str](),
        set[str](),
    )
    for (part, _), rows in catalogue.part_rows.items():
        files.setdefault(part, source_table_name(rows[0].where))
        if any(row.overlay for row in rows):
            own.add(part)
    for part, known in sorted(catalogue.parts.items()):
        row = {"id": part, "name": names.get(part, ""), "shelf": files[part], "price_usd": None}
        row |= dict.fromkeys(("priced_as", "as_of", "kind", "source"), "")
        if priced_as := next((name for name in PRICED if catalogue.has_part_value(part, name)), ""):
            found = catalogue.part_input(part, priced_as, EVER)
            row |= {
                "price_usd": found.value,
                "priced_as": priced_as,
                "as_of": found.as_of,
                "kind": found.kind,
                "source": found.source,
            }
        yield row | {"attributes": len(known), "own": part in own}


def systems_listed(catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield every system with its chip, cooling and the options of each variant; `check` names what
    is no table.
    """
    for name in catalogue.ids("systems"):
        said = catalogue.document("systems", name, "system")[1]
        variants = said.get("variants", {})
        options = {
            key: [one for one in some if one != "default"]
            for key, some in (variants.items() if isinstance(variants, dict) else ())
        }
        yield {
            "id": name,
            **{key: said.get(key, "") for key in ("name", "chip", "cooling")},
            "variants": options,
        }


def models_listed(catalogue: Catalogue) -> Iterator[Any]:
    """Yield every model with its size; one that is not read keeps its line, with the reason."""
    from tco.models.architecture import load_model

    for name in catalogue.models:
        try:
            model = load_model(catalogue, name)
            yield {
                key: getattr(model, key)
                for key in ("id", "parameters", "active_parameters", "layers", "context", "source")
            }
        except TcoError as error:
            yield {"id": name, "not_read": str(error)}


def scenarios_listed(catalogue: Catalogue) -> list[Any]:
    """Return every shipped scenario."""
    from tco.scenario.document import load_scenario

    return [load_scenario(catalogue, name) for name in catalogue.scenarios]


def agreements_listed(catalogue: Catalogue) -> list[Agreement]:
    """Return every agreement with a supplier."""
    from tco.cost.ownership import load_agreement

    return [load_agreement(catalogue, name) for name in catalogue.ids("rebates")]


def metrics_listed(_: Catalogue) -> list[dict[str, str]]:
    """Return all metrics: unit, which way is better, and what each is."""
    from tco.scenario.metrics import METRICS, is_worse

    better = {None: "", True: "less", False: "more"}
    return [
        {"id": name, "unit": one.unit, "better": better[is_worse(name, 1.0)], "what": one.label}
        for name, one in METRICS.items()
    ]


def documents_listed(folder: str, catalogue: Catalogue) -> Iterator[JsonObject]:
    """Yield the documents of a kind: some texts of each, and whether it is a person's own."""
    for name in catalogue.ids(folder):
        texts, _ = document_contents(catalogue, folder, name)
        said = {key: texts[key][0] for key in KINDS[folder].texts if key in texts}
        yield {
            "id": name,
            **said,
            "own": catalogue.is_overlay(catalogue.document(folder, name, KINDS[folder].one)[0]),
        }


OWN = Member("own", bool)
SOURCES = record_of(Source)
SHELVES = {
    "parts": Shelf(
        parts_listed,
        Record(
            *("id", "name", "shelf"),
            Member("price_usd", float | None),
            *("priced_as", "as_of", "kind", "source"),
            Member("attributes", int),
            OWN,
        ),
    ),
    "systems": Shelf(
        systems_listed, Record("id", "name", "chip", "cooling", Member("variants", {str: [str]}))
    ),
    "models": Shelf(
        models_listed,
        Record(
            "id",
            *(
                Member(name, int, optional=True)
                for name in ("parameters", "active_parameters", "layers", "context")
            ),
            *(Member(name, optional=True) for name in ("source", "not_read")),
        ),
    ),
    "scenarios": Shelf(
        scenarios_listed,
        Record(
            Member("id", read="name"),
            "title",
            "system",
            Record("site", "terms", "workload", "cluster").read_via("documents"),
        ),
    ),
    "sources": Shelf(lambda catalogue: catalogue.sources.values(), SOURCES),
    "rebates": Shelf(
        agreements_listed,
        Record(
            "id",
            "supplier",
            "holder",
            "kind",
            Member("from", read="begins"),
            Member("until", read="ends"),
        ),
    ),
    "metrics": Shelf(metrics_listed, Record("id", "unit", "better", "what")),
    **{
        name: Shelf(
            partial(documents_listed, name),
            Record("id", *(Member(key, str | None) for key in kind.texts), OWN),
        )
        for name, kind in KINDS.items()
    },
}
LISTS = {
    name: Document(f"{name}-list", Member("items", [shelf.item], lambda items: items))
    for name, shelf in SHELVES.items()
}
PUBLISHED = Record(
    *("kind", "scenario", "system", "metric", "unit"),
    *(
        Member("published", float),
        Member("tolerance", float | None),
        Member("low", float),
        Member("high", float),
    ),
    *(Member("computed", float | None), "source", "note", "reason", Member("ok", bool)),
    *("publisher", Member("rests_on_publishers", [str])),
)
CHECKS = {
    name: Document(
        *(
            f"{name}-check",
            Member("ok", bool, lambda found: not found["findings"]),
            Member("findings", [str]),
        ),
        *([Member("published", [PUBLISHED])] if name == "scenarios" else []),
    )
    for name in SHELVES
    if name != "metrics"
}
FINDING = Record(Member("finding", read=str, label="finding"))


def item_cell(value: Any) -> str | float:
    """Return a value of an item as a text; a number with a fraction stays one, for tables to
    round.
    """
    if isinstance(value, float):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key}={'|'.join(options)}" for key, options in value.items())
    return "" if value is None else str(value)


def shelf_list_answer(name: str, catalogue: Catalogue) -> Answer:
    """Return the items of a shelf, with a column for each property.

    Args:
        name: Name of the shelf, a key of `SHELVES`.
        catalogue: Holds the items.

    """
    found, members = list(SHELVES[name].found(catalogue)), SHELVES[name].item.members
    items = [
        {
            one.key: value
            for one in members
            if (value := one.of(item)) is not None or not one.optional
        }
        for item in found
    ]
    keys = dict.fromkeys(key for item in items for key in item) or ("id",)
    row, rows = (
        Record(*(Member(key, label=key, show=6) for key in keys)),
        [{key: item_cell(item.get(key)) for key in keys} for item in items],
    )
    return LISTS[name].answer(
        catalogue, found, lambda: [row.table(rows, f"{len(items)} {name}")], (row, rows)
    )


def check_answer(
    name: str, catalogue: Catalogue, findings: Sequence[str], figures: Sequence[Any]
) -> Answer:
    """Return the answer of a check: findings and published figures.

    The figures of publications stand below the findings, beside the computed values.

    Args:
        name: Name of the shelf, a key of `CHECKS`.
        catalogue: Holds the checked data.
        findings: Text of each finding; empty where all is in order.
        figures: Published figures with their computed values; empty for a check without figures.

    """
    title = f"{name}: {len(findings)} findings" if findings else f"{name}: all in order"
    row = FINDING if findings else Record()

    def tables() -> list[Table]:
        if not figures:
            return [row.table(findings, title)]
        from tco.evidence.published import KINDS as ORIGINS
        from tco.report.claims import published_table  # few checks have figures

        by_kind = {kind: [one for one in figures if one.kind == kind] for kind in ORIGINS}
        return [
            row.table(findings, title),
            *(published_table(kind, some) for kind, some in by_kind.items() if some),
        ]

    return CHECKS[name].answer(
        catalogue, {"findings": findings, "published": figures}, tables, (row, findings)
    )


# ---------------------------------------------------------------- parts
def row_label(row: JsonMapping) -> str:
    """Return the attribute of a row, in brackets where another row is used."""
    return f"({row['attribute']})" if row["use"] == ALTERNATIVE else str(row["attribute"])


def format_row_range(row: JsonMapping) -> str:
    """Return the range of a row in one cell."""
    return (
        ""
        if row["low"] is None or row["high"] is None
        else f"{significant(row['low'])} to {significant(row['high'])}"
    )


STATED = Record(  # what a row states, of a part or in a document
    Member("value", float | None, label="value", show=6),
    Member("unit", label="unit"),
    Member("low", float | None, label="low to high", show=format_row_range),
    Member("high", float | None),
    Member("as_of", label="as of"),
    Member("kind", label="kind", show=lambda row: row["kind"] + " (own)" * row.get("own", False)),
)
PART_ROW = Record(
    "part",
    Member("attribute", label="attribute", show=row_label),
    STATED,
    Member("directness", label="how direct"),
    Member("source", label="source"),
    *("use", "note"),
)
PART = Document("parts-show", "part", Member("rows", [PART_ROW]))


def part_row(catalogue: Catalogue, part: str, name: str, row: CatalogueRow) -> JsonObject:
    """Return a row of a part as it is written, with how direct it is."""
    near = catalogue.with_directness(
        to_input(row, f"parts.{part}.{name}", attribute("parts", name, row.where))
    ).directness
    numbers = {
        key: float(row.cells[key]) if row.cells.get(key, "") != "" else None
        for key in ("value", "low", "high")
    }
    own = {"own": row.overlay, "use": row.cells.get("use", "") or ("own" if row.overlay else "")}
    return {"part": part, "attribute": name, **row.cells, **numbers, "directness": near, **own}


def part_answer(catalogue: Catalogue, part: str) -> Answer:
    """Return every row of a part, the alternatives among them, what is to be said of each, and
    where they come from.
    """
    if part not in catalogue.parts:
        raise unknown("part", part, catalogue.parts)
    rows = [
        part_row(catalogue, part, name, row)
        for (owner, name), many in catalogue.part_rows.items()
        if owner == part
        for row in many
    ]

    def tables() -> list[Table]:
        notes = [
            f"{row_label(row)} {significant(row['value'], 6)} {row['unit']}".rstrip()
            + f": {row['note']}"
            for row in rows
            if row["note"]
        ]
        cited = []
        for source in sorted({row["source"] for row in rows}):
            found = catalogue.sources.get(source)
            told = (
                ", ".join(filter(None, (found.title, found.date, found.url)))
                if found
                else "not in the list of sources"
            )
            cited.append(f"{source}: {told}")
        below = [
            "Rows in brackets are alternatives: shown, not used.",
            *(["Notes:", *notes] if notes else []),
            "Sources:",
            *cited,
        ]
        above = [f"stands in: {', '.join(systems_with(catalogue, part)) or 'no system'}"]
        return [PART_ROW.table(rows, part, above, below)._replace(align="lrllllll")]

    return PART.answer(catalogue, {"part": part, "rows": rows}, tables, (PART_ROW, rows))


def systems_with(catalogue: Catalogue, part: str) -> list[str]:
    """Return the systems in whose tree a part stands, or may stand in place of another."""
    from tco.catalog.system_tree import load_system

    systems = {name: load_system(catalogue, name) for name in catalogue.ids("systems")}
    return [
        name
        for name, system in systems.items()
        if part in system.quantity or any(part in places for places in system.alternatives.values())
    ]


# ---------------------------------------------------------------- systems
LEAF = Record("path", "part", Member("quantity", float))
TREE = Record(
    Member("part", label="part", show=lambda leaf: "  " * leaf.path.count("/") + leaf.part),
    Member("quantity", float, label="in the scale-up domain", show=6),
)
FIGURES = Record(Member("chip", {str: float | None}), Member("domain", {str: float | None}))
SYSTEM = Document(
    "systems-show",
    Record(
        *(
            Member("system", read="id"),
            "name",
            "chip",
            Member("variant", {str: str}),
            Member("chips", float),
            Member("racks", float),
        ),
        *(Member("tree", [LEAF], "leaves"), Member("fabric", dict), "note"),
    ).read_via("0"),
    Member("figures", FIGURES, "1"),
    Member("notes", [str], lambda found: [*found[2], *found[1].notes]),
)


def system_answer(
    catalogue: Catalogue, system: System, figures: Figures, notes: Sequence[str]
) -> Answer:
    """Return the tree of a system, with its chip and its scale-up domain.

    Args:
        catalogue: Holds the source of the system.
        system: System to show.
        figures: Figures of the chip and the scale-up domain.
        notes: Notes below the tree, after the note of the system.

    """

    def tables() -> list[Table]:
        above = [
            f"{system.chips:g} {system.chip} in {system.racks:g} racks, {system.cooling}-cooled; "
            f"priced as {system.owner_pays}",
            "variants in force: "
            f"{' '.join(f'{k}={v}' for k, v in system.variant.items()) or 'none'}",
            f"source: {catalogue.source_title(system.source)}",
        ]
        below = [note for note in (system.note, *notes) if note]
        return [
            TREE.table(system.leaves, system.name, above, below),
            figures_table(system, figures),
        ]

    return SYSTEM.answer(catalogue, (system, figures, notes), tables, (LEAF, system.leaves))


def figures_table(system: System, figures: Figures) -> Table:
    """Return a table of peaks and memory per chip and per domain.

    The last column holds the FLOP per byte read.
    """
    rows: list[Sequence[str]] = []
    for name in (key.split("_")[1] for key in figures.chip if key.startswith("peak_")):
        key = f"peak_{name}_flop_per_s"
        peaks = [
            scaled_number_text(place.get(key), 1e15) for place in (figures.chip, figures.domain)
        ]
        rows.append(
            (
                f"dense {name.upper()} peak, PFLOP/s",
                *peaks,
                significant(figures.chip[f"flop_per_byte_{name}"]),
            )
        )
    memory = [("HBM, GB", "hbm_bytes", 1e9), ("HBM bandwidth, TB/s", "hbm_byte_per_s", 1e12)]
    if "logical_device_bytes" in figures.chip:
        memory.insert(1, ("HBM of a logical device, GB", "logical_device_bytes", 1e9))
    for label, key, scale in memory:
        rows.append(
            (
                label,
                *(
                    scaled_number_text(place.get(key), scale)
                    for place in (figures.chip, figures.domain)
                ),
                "",
            )
        )
    return Table(
        ("", "chip", f"domain of {system.chips:g}", "FLOP/byte"), rows, below=figures.notes
    )


def scaled_number_text(value: Any, scale: float) -> str:
    """Return a number in a larger unit; nothing for None."""
    return "" if value is None else significant(float(value) / scale, 5)


# ---------------------------------------------------------------- models
def fields(name: str) -> Callable[[Any], JsonObject | None]:
    """Return a reader of part `name` of a layer block.

    The reader returns the members of the part, or None where the block lacks the part.
    """
    return lambda block: None if (part := getattr(block, name)) is None else part._asdict()


BLOCK = Record(
    Member("layers", int),
    *(Member(name, dict | None, fields(name)) for name in ("attention", "feed_forward", "mixer")),
    Member("others", int),
)
SIZES = Record(
    Member("model", read="id"),
    *(
        Member(f"{kind}parameters", int)
        for kind in ("", "active_", "expert_", "embedding_", "prediction_")
    ),
    *(Member(name, int) for name in ("layers", "hidden", "vocabulary", "context")),
    Member("cached_per_token", float, "cached"),  # numbers, not bytes
    Member("held_per_sequence", float, "fixed_numbers_per_sequence"),
    "source",
    "note",
)
MODEL = Document("models-show", SIZES, Member("blocks", [BLOCK]))
SAID = Record(
    Member("what", read="0", label="what"),
    Member(
        "value",
        read="1",
        label="value",
        show=lambda row: significant(row[1], 6) if isinstance(row[1], float) else str(row[1]),
    ),
)


def model_answer(catalogue: Catalogue, name: str) -> Answer:
    """Return the shape of a model; in rows a kind of layer takes one for each part it has."""
    from tco.models.architecture import load_model

    model = load_model(catalogue, name)
    rows = [(key, value) for key, value in SIZES.json(model).items() if value not in ("", 0)]
    for block, part in product(model.blocks, ("attention", "mixer", "feed_forward")):
        if text := ", ".join(
            f"{key} {value}" for key, value in (fields(part)(block) or {}).items() if value
        ):
            rows.append((f"{block.layers} x {part.replace('_', '-')}", text))
    return MODEL.answer(catalogue, model, lambda: [SAID.table(rows, model.id)], (SAID, rows))


# ---------------------------------------------------------------- sources
SOURCE = Document("sources-show", SOURCES.read_via("0"), Member("values", [str], "1"))
USED = Record(Member("what", read="0", label="what"), Member("which", read="1", label="which"))


def source_answer(catalogue: Catalogue, source: str) -> Answer:
    """Return a source and every value based on it."""
    if source not in catalogue.sources:
        raise unknown("source", source, catalogue.sources)
    found = catalogue.sources[source]
    uses = [
        f"parts.{part}.{name}"
        for (part, name), rows in catalogue.part_rows.items()
        for row in rows
        if row.cells["source"] == source
    ]
    rows = [*found._asdict().items(), *(("value", path) for path in uses)]
    return SOURCE.answer(
        catalogue, (found, uses), lambda: [USED.table(rows, found.title)], (USED, rows)
    )


# ---------------------------------------------------------------- agreements
# what begins so is a share: people read it in per cent
PER_SHARE = (
    "vested share of the warrant",
    "whole warrant over",
    "marginal rebate",
)
WORTH = (
    *(
        "vested share of the warrant",
        "intrinsic value a share, USD",
        "Black-Scholes value a share, USD",
    ),
    *(
        "whole warrant over the spend that vests it, intrinsic",
        "whole warrant over the spend that vests it, Black-Scholes",
    ),
    "marginal rebate on further spend, intrinsic",
)
BACK = "comes back of each dollar spent"
REBATE = Document(
    *("rebates-show", "agreement", "kind", Member("in force"), "covers"),
    *(Member(name, float, optional=True) for name in WORTH),
    Member(
        "terms",
        [
            Record(
                "path",
                Member("value", float),
                "unit",
                Member("low", float | None),
                Member("high", float | None),
                "as_of",
                "source",
            )
        ],
    ),
    Member("given_back", float, optional=True),
    "note",
)


def rebate_answer(
    catalogue: Catalogue,
    agreement: Agreement,
    worth: Worth | None,
    date: str,
    terms: Sequence[Input],
    back: Any,
) -> Answer:
    """Return an agreement: its terms by path, its vesting and its worth.

    The key of the share price names the date of the worth.

    Args:
        catalogue: Catalogue of the answer.
        agreement: Agreement to show.
        worth: Worth of the right at `date`; None for an agreement without a warrant of known terms.
        date: Date of the worth, in ISO form.
        terms: Inputs of the agreement.
        back: Share of each dollar spent that comes back, from 0 to 1; None for an agreement that
            states no such share.

    """
    rows = rebate_rows(agreement, worth, date)
    title = f"{agreement.supplier} to {agreement.holder}"

    def words(name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        return (
            f"{significant(value * 100)} %" if name.startswith(PER_SHARE) else significant(value, 6)
        )

    *said, (_, note) = rows
    stated = [
        (one.path, f"{significant(cells['value'], 6)} {cells['unit']}")
        for one in terms
        for cells in [given_cells(one)]
    ]
    share = [] if back is None else [(f"{BACK} at {date}", f"{significant(float(back) * 100)} %")]
    shown = Table(
        ("what", "value"),
        [*((name, words(name, value)) for name, value in said), *stated, *share],
        title,
        (),
        [note] * bool(note),
        "ll",
    )
    content = {
        "agreement": agreement.id,
        **dict(rows),
        "terms": [{"path": one.path, **given_cells(one)} for one in terms],
    }
    content |= {} if back is None else {"given_back": float(back)}
    cells = [
        *rows,
        *((one.path, given_cells(one)["value"]) for one in terms),
        *((name, float(back)) for name, _ in share),
    ]
    return Answer(
        lambda: document(REBATE.command, catalogue, content), lambda: [shown], SAID.header, cells
    )


def rebate_rows(agreement: Agreement, worth: Worth | None, date: str) -> list[tuple[str, Any]]:
    """Return an agreement's page as rows."""
    rows: list[tuple[str, Any]] = [
        ("kind", agreement.kind),
        (
            "in force",
            f"{agreement.begins} to "
            f"{agreement.ends}{'' if agreement.in_force(date) else f', not at {date}'}",
        ),
        ("covers", ", ".join(agreement.parts)),
    ]
    if worth is not None:
        figures = [worth.vested, worth.intrinsic, worth.option]
        if worth.intrinsic_discount is not None:
            whole = float(worth.intrinsic_discount)
            figures += [whole, worth.option_discount, whole * (1 - float(worth.vested))]
        rows += [
            (f"share price {date}, USD", float(worth.share_price)),
            *zip(WORTH, map(float, figures), strict=False),
        ]
    return [*rows, ("note", agreement.note)]


# ---------------------------------------------------------------- what scenarios are put together
# from
VALUE = Record(
    Member("path", label="path"),
    STATED,
    Member("source", label="source"),
    Member(
        "from",
        label="from",
        show=lambda row: f"{row['from']}, {row['hall']} hall" if row["hall"] else row["from"],
    ),
    "hall",  # of a site's values: the cooling of the hall they are of, empty of all halls
    "note",
)
PAGES = {
    name: Document(f"{name}-show", "id", Member("texts", {str: str}), Member("values", [VALUE]))
    for name in KINDS
}


def page_answer(folder: str, catalogue: Catalogue, name: str) -> Answer:
    """Return the page of a document: its texts, each with where it is said, above its values, what
    is to be said of each below.
    """
    said, values = document_contents(catalogue, folder, name)
    nothing, group = dict.fromkeys(VALUE.header, ""), KINDS[folder].group
    above = [
        nothing | {"path": f"{group}.{key}", "value": text, "from": where}
        for key, (text, where) in said.items()
    ]
    content = {
        "id": name,
        "texts": {key: text for key, (text, _) in said.items()},
        "values": values,
    }

    def tables() -> list[Table]:
        notes = [f"{row['path']}: {row['note']}" for row in values if row["note"]]
        texts = [f"{key}: {text}" for key, (text, _) in said.items() if text]
        shown = VALUE.table(values, name, texts, ["Notes:", *notes] if notes else [])
        return [shown._replace(columns=shown.columns if values else (), align="lrllllll")]

    return PAGES[folder].answer(catalogue, content, tables, (VALUE, [*above, *values]))


def given_cells(given: Input) -> JsonObject:
    """Return an input as the cells of its row."""
    value, unit = given.shown or (given.value, given.unit)
    ends = {
        name: None if end is None else convert(end, given.unit, unit)
        for name, end in (("low", given.low), ("high", given.high))
    }
    return {
        "value": value,
        **ends,
        "unit": unit,
        **{name: getattr(given, name) for name in ("as_of", "kind", "source", "note")},
    }


Texts = dict[str, tuple[str, str]]  # key -> text and where it is stated
# path and hall -> row; the hall is empty of what all halls share
StatedRows = dict[tuple[str, str], JsonObject]


def document_contents(
    catalogue: Catalogue, folder: str, name: str
) -> tuple[Texts, list[JsonObject]]:
    """Return the texts of a document and the rows of its values.

    Those of the document it is `base`d on stand below its own. A site has a row for each hall.
    """
    texts, rows = stated_in(catalogue, folder, name)
    halls = list(dict.fromkeys(hall for _, hall in rows if hall))
    if COOLING in texts:
        rows = {key: row for key, row in rows.items() if key[1] in ("", texts[COOLING][0])}
    elif halls:
        texts[COOLING] = ", ".join(halls), name
    return texts, list(rows.values())


def stated_in(catalogue: Catalogue, folder: str, name: str) -> tuple[Texts, StatedRows]:
    """Return the texts and rows of a document with inherited entries.

    Entries of the document override entries of its base and of its country.
    """
    kind = KINDS[folder]
    path, document = catalogue.document(folder, name, kind.one)
    base = str(document.get("base", ""))
    texts, rows = stated_in(catalogue, folder, base) if base and base != name else ({}, {})
    is_own = catalogue.is_overlay(path)
    where = name + is_own * " (own)"
    if "country" in document:
        country = str(document["country"])
        for input_path, given in catalogue.of_country(country, EVER).items():
            rows = without_path(rows, input_path)
            rows[input_path, ""] = {
                "path": input_path,
                "from": country,
                "hall": "",
                **given_cells(given),
            }
    for hall, stated in in_each_hall(document, path):
        in_place = catalogue.in_place(folder, path, hall or None)
        for key, entry in stated.items():
            if not (isinstance(entry, dict) and "value" in entry):
                if not (is_own and key == "note"):  # one's own notes stay there
                    texts[key] = (
                        ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry),
                        where,
                    )
                continue
            cells = in_place(
                CatalogueRow(entry, f"{path}:{key}", is_own), kind.group, "", key
            ).cells
            input_path = f"{kind.group}.{key}"
            if not hall:
                rows = without_path(rows, input_path)
            rows[input_path, hall] = {
                "path": input_path,
                "from": where,
                "hall": hall,
                **cells_shown(cells),
            }
    return texts, rows


def without_path(rows: StatedRows, path: str) -> StatedRows:
    """Return rows without those of an input that is stated anew for all halls."""
    return {key: row for key, row in rows.items() if key[0] != path}


def cells_shown(cells: JsonMapping) -> JsonObject:
    """Return the cells of a document's value as a row shows them."""
    numbers = {
        column: None if cells.get(column) in (None, "") else float(cells[column])
        for column in ("value", "low", "high")
    }
    return numbers | {
        column: str(cells.get(column, "")) for column in ("unit", "as_of", "kind", "source", "note")
    }


def entry_answer(shelf: str, catalogue: Catalogue, name: str) -> Answer:
    """Return the page of an item of a shelf.

    Args:
        shelf: Name of the shelf: `parts`, `models`, `sources` or a folder of documents.
        catalogue: Holds the item.
        name: Id of the item.

    Raises:
        DataError: The shelf has no item of this id.

    """
    pages = {"parts": part_answer, "models": model_answer, "sources": source_answer}
    return pages[shelf](catalogue, name) if shelf in pages else page_answer(shelf, catalogue, name)
