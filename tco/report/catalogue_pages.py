"""Pages of catalogue entries: the answers of `show` for parts, systems, models and the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from tco.catalog import Catalogue, Source
from tco.catalog.labels import part_label, short_name
from tco.catalog.rows import ALTERNATIVE, CatalogueRow, read_row
from tco.core.errors import unknown
from tco.core.provenance import period
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
from tco.report.table import Table, headed, input_unit, significant

if TYPE_CHECKING:
    from tco.catalog.system_tree import System
    from tco.cost.ownership import Agreement, Worth
    from tco.scenario.chip_figures import ChipFigures


# ---------------------------------------------------------------- parts
PART_ROW = STATED_VALUE.only(
    "part", "attribute", *ROW_COLUMNS, "directness", "source", "use", "note"
)
VALUE = PART_ROW.only("value", "low", "kind", "as_of", "source")
UNUSED_VALUE = PART_ROW.only("value", "source")
MONEY, RENTS = "price and cost", "rent"  # of which `tco rents` tells
MAIN_GROUPS = {  # a chip's main values: all in USD, and these
    "speed, memory and power": (
        *("peak_bf16", "peak_fp8", "peak_fp4", "hbm_capacity", "hbm_bandwidth"),
        *("scale_up_bandwidth", "scale_out_bandwidth", "tdp"),
    ),
    MONEY: (),
    "dates": ("released", "general_availability", "first_volume", "bring_up"),
}
PART = Document("parts-show", "part", Member("rows", [PART_ROW]))


def _part_answer(catalogue: Catalogue, part: str, price_date: str | None) -> Answer:
    """Return every row of a part, with notes, sources and the systems that hold the part.

    Args:
        catalogue: Holds the rows.
        part: Id of the part.
        price_date: Month whose values the table shows first; None for that of `tco compare`.

    Raises:
        DataError: The part is unknown, or a row is wrong.

    """
    if part not in catalogue.parts:
        raise unknown("part", part, catalogue.parts)
    part_rows = [
        _part_row(catalogue, part, attribute_name, catalogue_row)
        for (owner, attribute_name), catalogue_rows in catalogue.part_rows.items()
        if owner == part
        for catalogue_row in catalogue_rows
    ]

    def tables() -> list[Table]:
        is_chip = any(part_row.attribute == "tdp" for part_row in part_rows)
        shown_rows = [row for row in part_rows if not is_chip or _main_group(row)]
        shown_date = price_date or _headline_date(catalogue)
        rest = [] if is_chip else _note_lines(catalogue, part_rows, shown_date)
        if hidden := len(part_rows) - len(shown_rows):
            rest = [f"{hidden} more values, notes and sources: tco parts show {part} --format csv."]
        systems = _systems_with(catalogue, part)
        if any(part_row.attribute.startswith(RENTS) for part_row in part_rows):
            rest.append(f"Rents: tco rents {part}.")
        if systems:
            rest.append(f"Paths that --set takes: tco inputs {systems[-1]} {part}.")
        other_date = _other_date(shown_rows, shown_date)
        above = [
            f"Systems with this part: {', '.join(systems) or 'none'}",
            f"Another price date: tco parts show {part} --date {other_date}."
            if other_date
            else "These values are the same at every price date.",
        ]
        if is_chip and systems and not any(row.attribute == "price" for row in part_rows):
            above.append(
                f"{part} has no price of its own. Its price per chip is built up from wafer, "
                f"packaging, HBM and the other costs here: tco inputs {systems[-1]} {part} price."
            )
        reason = "" if price_date else ", the price date of `tco compare`"
        title = f"Part {part_label(part)}: values at {shown_date}{reason}"
        values_table, *unused_tables = _value_tables(part, shown_rows, shown_date)
        tables = [values_table._replace(title=title, above=above), *unused_tables]
        return [*tables[:-1], tables[-1]._replace(below=[*tables[-1].below, *rest])]

    return PART.answer(catalogue, {"part": part, "rows": part_rows}, tables, (PART_ROW, part_rows))


def _main_group(part_row: StatedValue) -> str:
    """Return the group of a chip's main values that a value belongs to, or an empty text."""
    if part_row.unit.startswith("USD") and not part_row.attribute.startswith(RENTS):
        return MONEY
    groups = (group for group, names in MAIN_GROUPS.items() if part_row.attribute in names)
    return next(groups, "")


def _value_tables(part: str, part_rows: Sequence[StatedValue], price_date: str) -> list[Table]:
    """Return the values in use at a date, grouped, and those that are not in use then."""

    def cells(part_row: StatedValue, record: Record) -> list[str]:
        label = short_name(f"parts.{part}.{part_row.attribute}").removeprefix(f"{part} ")
        unit = input_unit(part_row.attribute, part_row.unit)
        return [headed(label, unit), *(member.text(part_row) for member in record.members)]

    used = [row for row in part_rows if not _why_unused(row, part_rows, price_date)]
    value_rows: list[list[str]] = []
    for group in ("", *MAIN_GROUPS):
        group_rows = [part_row for part_row in used if _main_group(part_row) == group]
        heading = [[group, *[""] * len(VALUE.members)]] if group and group_rows else []
        value_rows += [*heading, *(cells(part_row, VALUE) for part_row in group_rows)]
    heads = [member.label or "" for member in VALUE.members]
    legend = [
        "P5 to P95: 9 of 10 draws lie between them. fixed: all draws take the value. kind: how the "
        "value is known; a derived one is computed from its source."
    ]
    tables = [Table(("", *heads), value_rows, below=legend, align="lrllll")]
    unused_rows = [
        [*cells(part_row, UNUSED_VALUE), reason, part_row.note]
        for part_row in part_rows
        if (reason := _why_unused(part_row, part_rows, price_date))
    ]
    if unused_rows:
        heads = [member.label or "" for member in UNUSED_VALUE.members]
        below = [
            "alternative: what another source states. from, until: date from or until which the "
            "value is used."
        ]
        title = f"Values that are not used at {price_date}"
        columns = ("", *heads, "use", "note")
        tables.append(Table(columns, unused_rows, title, below=below, align="lrlll"))
    return tables


def _note_lines(
    catalogue: Catalogue, part_rows: Sequence[StatedValue], price_date: str
) -> list[str]:
    """Return the notes on the values in use at a date, and the sources of all values."""
    value, unit = (PART_ROW.only(name).members[0].text for name in ("value", "unit"))
    notes = [
        f"{row.attribute} {value(row)} {unit(row)}".rstrip() + f": {row.note}"
        for row in part_rows
        if row.note and not _why_unused(row, part_rows, price_date)
    ]
    sources = sorted({part_row.source for part_row in part_rows})
    return [
        *(["Notes", *notes] if notes else []),
        "Sources",
        *(f"{source}: {_source_text(catalogue, source)}" for source in sources),
    ]


def _why_unused(part_row: StatedValue, part_rows: Sequence[StatedValue], price_date: str) -> str:
    """Return the reason for leaving a row out at a date, or an empty text."""
    if part_row.use == ALTERNATIVE:
        return ALTERNATIVE
    series = sorted(
        (
            rival
            for rival in part_rows
            if rival.attribute == part_row.attribute and rival.use != ALTERNATIVE
        ),
        key=lambda rival: (_first_day(rival), rival.as_of),
    )
    position = series.index(part_row)
    last_day = period(price_date, "--date").last
    if position and _first_day(part_row) > last_day:
        return f"from {part_row.as_of}"
    later = series[position + 1 : position + 2]
    is_over = later and _first_day(later[0]) <= last_day
    return f"until {later[0].as_of}" if is_over else ""


def _first_day(part_row: StatedValue) -> date:
    return period(part_row.as_of).first if part_row.as_of else date.min


def _other_date(part_rows: Sequence[StatedValue], price_date: str) -> str:
    """Return the latest month of a value that a date does not use, or an empty text."""
    months = [
        _first_day(part_row).isoformat()[:7]
        for part_row in part_rows
        if _why_unused(part_row, part_rows, price_date) not in ("", ALTERNATIVE)
    ]
    return max(months, default="")


def _headline_date(catalogue: Catalogue) -> str:
    """Return the price date of `tco compare`."""
    from tco.scenario.document import HEADLINE_DOCUMENTS

    _, terms = catalogue.document("terms", HEADLINE_DOCUMENTS["terms"], "terms")
    return str(terms["date"])


def _part_row(
    catalogue: Catalogue, part: str, attribute_name: str, catalogue_row: CatalogueRow
) -> StatedValue:
    part_input = read_row(catalogue_row, f"parts.{part}.{attribute_name}")
    return StatedValue(
        **stated_cells(catalogue_row),
        part=part,
        attribute=attribute_name,
        directness=catalogue.with_directness(part_input).directness,
        use=catalogue_row.cells.get("use", "") or ("own" if catalogue_row.overlay else ""),
        is_own=catalogue_row.overlay,
    )


def _source_text(catalogue: Catalogue, source_id: str) -> str:
    source = catalogue.sources.get(source_id)
    if source is None:
        return "not in the list of sources"
    return ", ".join(filter(None, (source.title, source.date, source.url)))


def _systems_with(catalogue: Catalogue, part: str) -> list[str]:
    """Return the systems in whose tree a part stands, or may stand in place of another."""
    from tco.catalog.system_tree import load_system

    systems = {
        system_id: load_system(catalogue, system_id) for system_id in catalogue.ids("systems")
    }
    return [
        system_id
        for system_id, system in systems.items()
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


def _system_answer(catalogue: Catalogue, system_id: str, variant: Mapping[str, str]) -> Answer:
    """Return the tree of a system, with its chip and its scale-up domain.

    Args:
        catalogue: Holds the system.
        system_id: Id of the system.
        variant: Variants of the system by key.

    """
    from tco.scenario.chip_figures import chip_figures
    from tco.scenario.resolve import system_inputs

    inputs = system_inputs(catalogue, system_id, {}, variant)
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


def _figures_table(system: System, figures: ChipFigures) -> Table:
    peaks = [chip_key.split("_")[1] for chip_key in figures.chip if chip_key.startswith("peak_")]
    # label, key, scale and key of the FLOP per byte read
    lines = [
        (
            f"dense {format_name.upper()} peak, PFLOP/s",
            f"peak_{format_name}_flop_per_s",
            1e15,
            format_name,
        )
        for format_name in peaks
    ]
    lines += [
        ("HBM, GB", "hbm_bytes", 1e9, ""),
        ("HBM of a logical device, GB", "logical_device_bytes", 1e9, ""),
        ("HBM bandwidth, TB/s", "hbm_byte_per_s", 1e12, ""),
    ]

    def scaled_text(scope: JsonObject, figure_key: str, scale: float) -> str:
        figure_value = scope.get(figure_key)
        return "" if figure_value is None else significant(float(figure_value) / scale, 5)

    figure_rows = [
        (
            label,
            scaled_text(figures.chip, figure_key, scale),
            scaled_text(figures.domain, figure_key, scale),
            significant(figures.chip.get(f"flop_per_byte_{format_name}")),
        )
        for label, figure_key, scale, format_name in lines
        if figure_key in figures.chip
    ]
    columns = ("", "chip", f"domain of {system.chips:g}", "FLOP/byte")
    return Table(columns, figure_rows, below=figures.notes)


# ---------------------------------------------------------------- models
def _fact_text(fact: tuple[str, str | float]) -> str:
    fact_value = fact[1]
    return significant(fact_value, 6) if isinstance(fact_value, float) else str(fact_value)


# a pair of what is stated and its value
FACT = Record(
    Member("what", read="0", label="what"),
    Member("value", read="1", label="value", show=_fact_text),
)


def _layer_part(part_name: str) -> Callable[[Any], JsonObject | None]:
    return lambda block: None if (part := getattr(block, part_name)) is None else part._asdict()


BLOCK = Record(
    Member("layers", int),
    *(
        Member(part_name, dict | None, _layer_part(part_name))
        for part_name in ("attention", "feed_forward", "mixer")
    ),
    Member("others", int, "other_weights"),
)
SIZES = Record(
    Member("model", read="id"),
    *(
        Member(f"{kind}parameters", int)
        for kind in ("", "active_", "expert_", "embedding_", "prediction_")
    ),
    *(Member(size_name, int) for size_name in ("layers", "hidden", "vocabulary", "context")),
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


def _model_answer(catalogue: Catalogue, model_id: str) -> Answer:
    """Return the shape of a model; each part of a kind of layer has a row."""
    from tco.models.architecture import load_model

    model = load_model(catalogue, model_id)
    fact_rows = [
        (size_key, size_value)
        for size_key, size_value in SIZES.json(model).items()
        if size_value not in ("", 0, [])
    ]
    fact_rows = [
        (size_key, ", ".join(size_value) if isinstance(size_value, list) else size_value)
        for size_key, size_value in fact_rows
    ]
    for block, part in product(model.blocks, ("attention", "mixer", "feed_forward")):
        sizes = _layer_part(part)(block) or {}
        if sizes_text := ", ".join(
            f"{size_key} {size_value}" for size_key, size_value in sizes.items() if size_value
        ):
            fact_rows.append((f"{block.layers} x {part.replace('_', '-')}", sizes_text))
    return MODEL.answer(
        catalogue, model, lambda: [FACT.table(fact_rows, model.id)], (FACT, fact_rows)
    )


# ---------------------------------------------------------------- sources
SOURCE = Document("sources-show", record_of(Source).read_via("0"), Member("values", [str], "1"))
SOURCE_FACT = Record(FACT.members[0], Member("which", read="1", label="which"))


def _source_answer(catalogue: Catalogue, source_id: str) -> Answer:
    """Return a source and every value of a part that is based on it."""
    if source_id not in catalogue.sources:
        raise unknown("source", source_id, catalogue.sources)
    source = catalogue.sources[source_id]
    paths = [
        f"parts.{part}.{attribute_name}"
        for (part, attribute_name), catalogue_rows in catalogue.part_rows.items()
        for row in catalogue_rows
        if row.cells["source"] == source_id
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
    *(Member(worth_name, float, optional=True) for worth_name in WORTH),
    Member("terms", [TERM]),
    Member("given_back", float, optional=True),
    "note",
)


def _agreement_answer(
    catalogue: Catalogue, agreement_id: str, settings: Mapping[str, str]
) -> Answer:
    """Return an agreement: its terms by path, its vesting and its worth.

    The key of the share price names the date of the worth.

    Args:
        catalogue: Holds the agreement.
        agreement_id: Id of the agreement.
        settings: Values of inputs by path; `terms.date` is the date of the worth.

    """
    from tco.cost.ownership import agreement_inputs, given_back, load_agreement, worth_of
    from tco.scenario.resolve import plain_inputs

    agreement = load_agreement(catalogue, agreement_id)
    inputs = plain_inputs(catalogue, settings)
    input_values, date = inputs.values(), inputs.date
    facts = _agreement_facts(agreement, date) | _worth_facts(
        worth_of(agreement, input_values), date
    )
    terms = [
        {"path": term.path, **written_cells(term)}
        for term in agreement_inputs(agreement, input_values)
    ]
    content = {"agreement": agreement.id, **facts, "note": agreement.note, "terms": terms}
    cells = [(fact_key, content[fact_key]) for fact_key in (*facts, "note")]
    cells += [(term["path"], term["value"]) for term in terms]
    fact_rows = [(fact, _worth_text(fact, fact_value)) for fact, fact_value in facts.items()]
    fact_rows += [
        (term["path"], f"{significant(term['value'], 6)} {term['unit']}") for term in terms
    ]
    discount = given_back(agreement, input_values)
    if discount is not None:
        share, label = float(discount), f"comes back of each dollar spent at {date}"
        content["given_back"] = share
        cells.append((label, share))
        fact_rows.append((label, f"{significant(share * 100)} %"))
    title = f"{agreement.supplier} to {agreement.holder}"
    table = FACT.table(fact_rows, title, (), [agreement.note] * bool(agreement.note))
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


def _worth_text(fact: str, fact_value: str | float) -> str:
    if fact in SHARES:
        return f"{significant(float(fact_value) * 100)} %"
    return _fact_text((fact, fact_value))


# ---------------------------------------------------------------- any entry
def entry_answer(
    kind: str, catalogue: Catalogue, entry_id: str, *choices: JsonObject | str | None
) -> Answer:
    """Return the page of a catalogue entry.

    Args:
        kind: Kind of the entry, a key of `ENTRY_KINDS`.
        catalogue: Holds the entry.
        entry_id: Id of the entry.
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
    return page(catalogue, entry_id, *choices)
