"""Pages of catalogue entries: the answers of `show` for parts, systems, models and the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from tco.catalog import Catalogue, Source
from tco.catalog.rows import ALTERNATIVE, CatalogueRow, read_row
from tco.core.errors import unknown
from tco.core.types import JsonObject
from tco.report.document_pages import (
    ROW_COLUMNS,
    STATED_VALUE,
    StatedValue,
    document_answer,
    stated_cells,
    written_cells,
)
from tco.report.inputs import scenario_answer
from tco.report.record import Answer, Document, Member, Record, document, record_of
from tco.report.table import Table, significant

if TYPE_CHECKING:
    from tco.catalog.system_tree import System
    from tco.cost.ownership import Agreement, Worth
    from tco.scenario.result import Figures


# ---------------------------------------------------------------- parts
PART_ROW = STATED_VALUE.only(
    "part", "attribute", *ROW_COLUMNS, "directness", "source", "use", "note"
)
PART = Document("parts-show", "part", Member("rows", [PART_ROW]))


def _part_answer(catalogue: Catalogue, part: str) -> Answer:
    """Return every row of a part, with notes, sources and the systems that hold the part.

    Args:
        catalogue: Holds the rows.
        part: Id of the part.

    Raises:
        DataError: The part is unknown, or a row is wrong.

    """
    if part not in catalogue.parts:
        raise unknown("part", part, catalogue.parts)
    rows = [
        _part_row(catalogue, part, name, row)
        for (owner, name), catalogue_rows in catalogue.part_rows.items()
        if owner == part
        for row in catalogue_rows
    ]

    def tables() -> list[Table]:
        notes = [
            f"{row.attribute} {PART_ROW.only('value').members[0].text(row)} "
            f"{PART_ROW.only('unit').members[0].text(row)}".rstrip()
            + f": {row.note}"
            for row in rows
            if row.note
        ]
        sources = sorted({row.source for row in rows})
        used = [row for row in rows if not _why_unused(row, rows)]
        unused = [row for row in rows if _why_unused(row, rows)]
        above = [f"Systems with this part: {', '.join(_systems_with(catalogue, part)) or 'none'}"]
        values = PART_ROW.only("attribute", "value", "unit", "low", "as_of").table(
            used, f"Part {part}: values in use", above
        )
        origins = PART_ROW.only("attribute", "value", "kind", "directness", "source").table(
            rows, "Where each value comes from"
        )
        tables = [values._replace(align="lrlll"), origins._replace(align="lrlll")]
        if unused:
            unused_values = UNUSED_ROW.table(
                [(row, _why_unused(row, rows)) for row in unused],
                "Other values, not used at the latest price date",
                below=["until: a scenario with an earlier price date takes this value."],
            )
            tables.insert(1, unused_values._replace(align="lrllll"))
        lines = [
            *(["Notes", *notes] if notes else []),
            "Sources",
            *(f"{source}: {_source_text(catalogue, source)}" for source in sources),
        ]
        return [*tables, Table((), (), below=lines)]

    return PART.answer(catalogue, {"part": part, "rows": rows}, tables, (PART_ROW, rows))


def _why_unused(row: StatedValue, rows: Sequence[StatedValue]) -> str:
    """Return the reason for leaving a row out at the latest price date, or an empty text."""
    if row.use == ALTERNATIVE:
        return ALTERNATIVE
    rivals = [
        rival for rival in rows if rival.attribute == row.attribute and rival.use != ALTERNATIVE
    ]
    later_dates = [rival.as_of for rival in rivals if rival.as_of > row.as_of]
    return f"until {min(later_dates)}" if later_dates else ""


UNUSED_ROW = Record(
    PART_ROW.only("attribute", "value", "unit", "low", "as_of").read_via("0"),
    Member("why", label="use", read="1"),
)


def _part_row(catalogue: Catalogue, part: str, name: str, row: CatalogueRow) -> StatedValue:
    value = read_row(row, f"parts.{part}.{name}")
    return StatedValue(
        **stated_cells(row),
        part=part,
        attribute=name,
        directness=catalogue.with_directness(value).directness,
        use=row.cells.get("use", "") or ("own" if row.overlay else ""),
        is_own=row.overlay,
    )


def _source_text(catalogue: Catalogue, name: str) -> str:
    source = catalogue.sources.get(name)
    if source is None:
        return "not in the list of sources"
    return ", ".join(filter(None, (source.title, source.date, source.url)))


def _systems_with(catalogue: Catalogue, part: str) -> list[str]:
    """Return the systems in whose tree a part stands, or may stand in place of another."""
    from tco.catalog.system_tree import load_system

    systems = {name: load_system(catalogue, name) for name in catalogue.ids("systems")}
    return [
        name
        for name, system in systems.items()
        if part in system.quantity
        or any(part in options for options in system.alternatives.values())
    ]


# ---------------------------------------------------------------- systems
LEAF = Record(
    "path",
    Member("part", label="part", show=lambda leaf: "  " * leaf.path.count("/") + leaf.part),
    Member("quantity", float, label="in the scale-up domain", show=6),
)
SYSTEM = Document(
    "systems-show",
    Record(
        Member("system", read="id"),
        "name",
        "chip",
        Member("variant", {str: str}),
        Member("chips", float),
        Member("racks", float),
        Member("tree", [LEAF], "leaves"),
        Member("fabric", dict),
        "note",
    ).read_via("0"),
    Member(
        "figures",
        Record(Member("chip", {str: float | None}), Member("domain", {str: float | None})),
        "1",
    ),
    Member("notes", [str], "2"),
)


def _system_answer(catalogue: Catalogue, name: str, variant: Mapping[str, str]) -> Answer:
    """Return the tree of a system, with its chip and its scale-up domain.

    Args:
        catalogue: Holds the system.
        name: Id of the system.
        variant: Variants of the system by key.

    """
    from tco.scenario.resolve import system_inputs
    from tco.scenario.result import chip_figures

    inputs = system_inputs(catalogue, name, {}, variant)
    figures = chip_figures(inputs, inputs.values())
    system = inputs.system

    def tables() -> list[Table]:
        above = [
            f"{system.chips:g} {system.chip} in {system.racks:g} racks, {system.cooling}-cooled; "
            f"priced as {system.owner_pays}",
            f"variants in force: {system.variant_text or 'none'}",
            f"source: {catalogue.source_title(system.source)}",
        ]
        below = [note for note in (system.note, *inputs.notes) if note]
        tree = LEAF.table(system.leaves, system.name, above, below)
        return [tree, _figures_table(system, figures)]

    notes = [*inputs.notes, *figures.notes]
    return SYSTEM.answer(catalogue, (system, figures, notes), tables, (LEAF, system.leaves))


def _figures_table(system: System, figures: Figures) -> Table:
    peaks = [key.split("_")[1] for key in figures.chip if key.startswith("peak_")]
    # label, key, scale and key of the FLOP per byte read
    lines = [
        (f"dense {name.upper()} peak, PFLOP/s", f"peak_{name}_flop_per_s", 1e15, name)
        for name in peaks
    ]
    lines += [
        ("HBM, GB", "hbm_bytes", 1e9, ""),
        ("HBM of a logical device, GB", "logical_device_bytes", 1e9, ""),
        ("HBM bandwidth, TB/s", "hbm_byte_per_s", 1e12, ""),
    ]

    def scaled_text(scope: JsonObject, key: str, scale: float) -> str:
        value = scope.get(key)
        return "" if value is None else significant(float(value) / scale, 5)

    rows = [
        (
            label,
            scaled_text(figures.chip, key, scale),
            scaled_text(figures.domain, key, scale),
            significant(figures.chip.get(f"flop_per_byte_{name}")),
        )
        for label, key, scale, name in lines
        if key in figures.chip
    ]
    columns = ("", "chip", f"domain of {system.chips:g}", "FLOP/byte")
    return Table(columns, rows, below=figures.notes)


# ---------------------------------------------------------------- models
def _fact_text(fact: tuple[str, str | float]) -> str:
    value = fact[1]
    return significant(value, 6) if isinstance(value, float) else str(value)


# a pair of what is stated and its value
FACT = Record(
    Member("what", read="0", label="what"),
    Member("value", read="1", label="value", show=_fact_text),
)


def _layer_part(name: str) -> Callable[[Any], JsonObject | None]:
    return lambda block: None if (part := getattr(block, name)) is None else part._asdict()


BLOCK = Record(
    Member("layers", int),
    *(
        Member(name, dict | None, _layer_part(name))
        for name in ("attention", "feed_forward", "mixer")
    ),
    Member("others", int),
)
SIZES = Record(
    Member("model", read="id"),
    *(
        Member(f"{kind}parameters", int)
        for kind in ("", "active_", "expert_", "embedding_", "prediction_")
    ),
    *(Member(name, int) for name in ("layers", "hidden", "vocabulary", "context")),
    # layers of a draft head, which predict further tokens
    Member("draft_layers", int, "prediction_layers"),
    # numbers, not bytes
    Member("cached_per_token", float, "cached"),
    Member("held_per_sequence", float, "fixed_numbers_per_sequence"),
    # formats of the checkpoint, where its config states them
    Member("stored_formats", str, lambda model: model.stored.text if model.stored else ""),
    Member("reading", str),
    Member("unread_keys", [str], "unread"),
    "source",
    "note",
)
MODEL = Document("models-show", SIZES, Member("blocks", [BLOCK]))


def _model_answer(catalogue: Catalogue, name: str) -> Answer:
    """Return the shape of a model; each part of a kind of layer has a row."""
    from tco.models.architecture import load_model

    model = load_model(catalogue, name)
    rows = [(key, value) for key, value in SIZES.json(model).items() if value not in ("", 0, [])]
    rows = [(key, ", ".join(value) if isinstance(value, list) else value) for key, value in rows]
    for block, part in product(model.blocks, ("attention", "mixer", "feed_forward")):
        sizes = _layer_part(part)(block) or {}
        if text := ", ".join(f"{key} {value}" for key, value in sizes.items() if value):
            rows.append((f"{block.layers} x {part.replace('_', '-')}", text))
    return MODEL.answer(catalogue, model, lambda: [FACT.table(rows, model.id)], (FACT, rows))


# ---------------------------------------------------------------- sources
SOURCE = Document("sources-show", record_of(Source).read_via("0"), Member("values", [str], "1"))
SOURCE_FACT = Record(FACT.members[0], Member("which", read="1", label="which"))


def _source_answer(catalogue: Catalogue, name: str) -> Answer:
    """Return a source and every value of a part that is based on it."""
    if name not in catalogue.sources:
        raise unknown("source", name, catalogue.sources)
    source = catalogue.sources[name]
    paths = [
        f"parts.{part}.{attribute_name}"
        for (part, attribute_name), rows in catalogue.part_rows.items()
        for row in rows
        if row.cells["source"] == name
    ]
    facts = [*source._asdict().items(), *(("value", path) for path in paths)]
    return SOURCE.answer(
        catalogue,
        (source, paths),
        lambda: [SOURCE_FACT.table(facts, source.title)],
        (SOURCE_FACT, facts),
    )


# ---------------------------------------------------------------- agreements
WORTH = (
    "vested share of the warrant",
    "intrinsic value a share, USD",
    "Black-Scholes value a share, USD",
    "whole warrant over the spend that vests it, intrinsic",
    "whole warrant over the spend that vests it, Black-Scholes",
    "marginal rebate on further spend, intrinsic",
)
# shares of a whole, which tables show in per cent; the others are in USD
SHARES = (WORTH[0], *WORTH[3:])
TERM = Record(
    "path",
    Member("value", float),
    "unit",
    Member("low", float | None),
    Member("high", float | None),
    "as_of",
    "source",
)
AGREEMENT = Document(
    *("rebates-show", "agreement", "kind", "in force", "covers"),
    *(Member(name, float, optional=True) for name in WORTH),
    Member("terms", [TERM]),
    Member("given_back", float, optional=True),
    "note",
)


def _agreement_answer(catalogue: Catalogue, name: str, settings: Mapping[str, str]) -> Answer:
    """Return an agreement: its terms by path, its vesting and its worth.

    The key of the share price names the date of the worth.

    Args:
        catalogue: Holds the agreement.
        name: Id of the agreement.
        settings: Values of inputs by path; `terms.date` is the date of the worth.

    """
    from tco.cost.ownership import agreement_inputs, given_back, load_agreement, worth_of
    from tco.scenario.resolve import plain_inputs

    agreement = load_agreement(catalogue, name)
    inputs = plain_inputs(catalogue, settings)
    values, date = inputs.values(), inputs.date
    facts = _agreement_facts(agreement, date) | _worth_facts(worth_of(agreement, values), date)
    terms = [
        {"path": term.path, **written_cells(term)} for term in agreement_inputs(agreement, values)
    ]
    content = {"agreement": agreement.id, **facts, "note": agreement.note, "terms": terms}
    cells = [(key, content[key]) for key in (*facts, "note")]
    cells += [(term["path"], term["value"]) for term in terms]
    rows = [(fact, _worth_text(fact, value)) for fact, value in facts.items()]
    rows += [(term["path"], f"{significant(term['value'], 6)} {term['unit']}") for term in terms]
    discount = given_back(agreement, values)
    if discount is not None:
        share, label = float(discount), f"comes back of each dollar spent at {date}"
        content["given_back"] = share
        cells.append((label, share))
        rows.append((label, f"{significant(share * 100)} %"))
    title = f"{agreement.supplier} to {agreement.holder}"
    table = FACT.table(rows, title, (), [agreement.note] * bool(agreement.note))
    return Answer(
        lambda: document(AGREEMENT.command, catalogue, content), lambda: [table], FACT.header, cells
    )


def _agreement_facts(agreement: Agreement, date: str) -> JsonObject:
    lapsed = "" if agreement.in_force(date) else f", not at {date}"
    return {
        "kind": agreement.kind,
        "in force": f"{agreement.begins} to {agreement.ends}{lapsed}",
        "covers": ", ".join(agreement.parts),
    }


def _worth_facts(worth: Worth | None, date: str) -> JsonObject:
    if worth is None:
        return {}
    figures = [worth.vested, worth.intrinsic, worth.option]
    if worth.intrinsic_discount is not None:
        discount = float(worth.intrinsic_discount)
        figures += [discount, worth.option_discount, discount * (1 - float(worth.vested))]
    price = {f"share price {date}, USD": float(worth.share_price)}
    return price | dict(zip(WORTH, map(float, figures), strict=False))


def _worth_text(fact: str, value: str | float) -> str:
    if fact in SHARES:
        return f"{significant(float(value) * 100)} %"
    return _fact_text((fact, value))


# ---------------------------------------------------------------- any entry
def entry_answer(kind: str, catalogue: Catalogue, name: str, *choices: JsonObject) -> Answer:
    """Return the page of a catalogue entry.

    Args:
        kind: Kind of the entry, a key of `ENTRY_KINDS`.
        catalogue: Holds the entry.
        name: Id of the entry.
        choices: Values of the options of the kind, such as the settings by path.

    Raises:
        DataError: There is no such entry, or it is wrong.

    """
    pages: dict[str, Callable[..., Answer]] = {
        "parts": _part_answer,
        "systems": _system_answer,
        "models": _model_answer,
        "scenarios": scenario_answer,
        "sources": _source_answer,
        "rebates": _agreement_answer,
    }
    page = pages.get(kind, partial(document_answer, kind))
    return page(catalogue, name, *choices)
