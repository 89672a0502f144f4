"""What the catalogue holds, listed and shown: parts, systems, models, scenarios, sources, agreements, and what scenarios are put together from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.catalogue import table_of
from tco.catalog.rows import ALTERNATIVE, Row, attribute, attributes, to_input
from tco.foundation.files import read_csv
from tco.foundation.provenance import SOURCED
from tco.outputs.record import Answer, Document, Member, Plain, Record, document
from tco.outputs.table import Table, significant

if TYPE_CHECKING:
    from tco.catalog.systems import System
    from tco.chain.result import Figures, Result
    from tco.economics.perspective import Agreement, Worth
    from tco.foundation.provenance import Input
    from tco.models.architecture import Architecture

OWN = Member("own", bool)
ORIGIN = (Member("as_of"), Member("kind"), Member("source"))


def texts(*keys: str) -> tuple[Member, ...]:
    """Return fields that are texts, some of which not every item has."""
    return tuple(Member(key, str | None) for key in keys)


# ---------------------------------------------------------------- lists and checks
ITEMS = {  # shelf -> an item of its list
    "parts": Record(
        *(
            Member("id"),
            Member("name"),
            Member("shelf"),
            Member("price_usd", float | None),
            Member("priced_as"),
            *ORIGIN,
            Member("attributes", int),
            OWN,
        )
    ),
    "systems": Record(Member("id"), Member("name"), Member("chip"), Member("cooling"), Member("variants", {str: [str]})),
    "models": Record(
        Member("id"),
        *(Member(name, int, optional=True) for name in ("parameters", "active_parameters", "layers", "context")),
        Member("source", optional=True),
        Member("not_read", optional=True),
    ),
    "scenarios": Record(*map(Member, ("id", "title", "system", "site", "terms", "workload", "cluster"))),
    "sources": Record(*map(Member, ("id", "title", "url", "date"))),
    "rebates": Record(*map(Member, ("id", "supplier", "holder", "kind", "from", "until"))),
    "sites": Record(Member("id"), *texts("name", "base", "tenure", "cooling", "grid"), OWN),
    "terms": Record(Member("id"), *texts("name", "perspective", "date"), OWN),
    "workloads": Record(Member("id"), *texts("name", "kind", "model", "precision"), OWN),
    "clusters": Record(Member("id"), *texts("name", "switch", "port"), OWN),
    "perspectives": Record(Member("id"), *texts("name", "base", "owner", "pays"), OWN),
    "metrics": Record(*map(Member, ("id", "unit", "better", "what"))),
}
LISTS = {name: Document(f"{name}-list", Member("items", [item], lambda items: items)) for name, item in ITEMS.items()}
PUBLISHED = Record(
    Member("kind"),
    *(Member(name) for name in ("scenario", "system", "metric", "unit")),
    Member("published", float),
    Member("tolerance", float | None),
    Member("low", float),
    Member("high", float),
    Member("computed", float | None),
    *(Member(name) for name in ("source", "note", "reason")),
    Member("ok", bool),
)
CHECKS = {
    name: Document(
        *(f"{name}-check", Member("ok", bool, lambda found: not found["findings"]), Member("findings", [str])),
        *([Member("published", [PUBLISHED])] if name == "scenarios" else []),
    )
    for name in ITEMS
    if name != "metrics"
}
FINDING = Record(Member("finding", read=str, label="finding"))


def cell(value: Any) -> str | float:
    """Return a value of an item as a text; a number with a fraction stays one, for tables to round."""
    if isinstance(value, float):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key}={'|'.join(options)}" for key, options in value.items())
    return "" if value is None else str(value)


def list_answer(name: str, catalogue: Catalogue, items: Sequence[Mapping[str, Any]]) -> Answer:
    """Return the items of a shelf, with a column for whatever any of them has."""
    keys = dict.fromkeys(key for item in items for key in item) or ("id",)
    row, rows = Record(*(Member(key, label=key, show=6) for key in keys)), [{key: cell(item.get(key)) for key in keys} for item in items]
    return LISTS[name].answer(catalogue, items, lambda: [row.table(rows, f"{len(items)} {name}")], (row, rows))


def check_answer(name: str, catalogue: Catalogue, findings: Sequence[str], published: Sequence[Any] = (), tables: Sequence[Table] = ()) -> Answer:
    """Return what a check found, and tables below the findings."""
    title = f"{name}: {len(findings)} findings" if findings else f"{name}: all in order"
    row = FINDING if findings else Record()
    found = {"findings": findings, "published": published}
    return CHECKS[name].answer(catalogue, found, lambda: [row.table(findings, title), *tables], (row, findings))


# ---------------------------------------------------------------- parts
EVER = "2099"  # the date after all rows: each price is the latest
PRICED = ("price", "own_price")  # a whole part, or what an assembly adds to parts that are priced for themselves


def part_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every part; one that is built up from silicon, or comes inside another, has no price of its own."""
    names = names_of(catalogue)
    files, own = dict[str, str](), set[str]()
    for (part, _), rows in catalogue.part_rows.items():
        files.setdefault(part, table_of(rows[0].where))
        if any(row.overlay for row in rows):
            own.add(part)
    return [
        {"id": part, "name": names.get(part, ""), "shelf": files[part], **price_of(catalogue, part), "attributes": len(known), "own": part in own}
        for part, known in sorted(catalogue.parts.items())
    ]


def price_of(catalogue: Catalogue, part: str) -> dict[str, Any]:
    """Return the latest price of a part, and what it rests on."""
    priced_as = next((name for name in PRICED if catalogue.has_part_value(part, name)), "")
    if not priced_as:
        return {"price_usd": None, "priced_as": "", "as_of": "", "kind": "", "source": ""}
    found = catalogue.part_input(part, priced_as, EVER)
    return {"price_usd": found.value, "priced_as": priced_as, "as_of": found.as_of, "kind": found.kind, "source": found.source}


def names_of(catalogue: Catalogue) -> dict[str, str]:
    """Return what accelerators are called: the first name of each."""
    found: dict[str, str] = {}
    for folder in catalogue.folders:
        path = folder / "accelerators.csv"
        if path.is_file():
            for _, row in read_csv(path, ("name", "part")):
                found.setdefault(row["part"], row["name"])
    return found


def span(low: float | None, high: float | None) -> str:
    """Return a range in one cell."""
    return f"{significant(low)} to {significant(high)}" if low is not None or high is not None else ""


def row_label(row: Mapping[str, Any]) -> str:
    """Return the attribute of a row, in brackets where another row is used."""
    return f"({row['attribute']})" if row["use"] == ALTERNATIVE else str(row["attribute"])


PART_ROW = Record(
    Member("part"),
    Member("attribute", label="attribute", show=row_label),
    Member("value", float | None, label="value", show=6),
    Member("unit", label="unit"),
    Member("low", float | None, label="low to high", show=lambda row: span(row["low"], row["high"])),
    Member("high", float | None),
    Member("as_of", label="as of"),
    Member("kind", label="kind", show=lambda row: row["kind"] + " (own)" * row["own"]),
    Member("directness", label="how direct"),
    Member("source", label="source"),
    Member("use"),
    Member("note"),
)
PART = Document("parts-show", Member("part"), Member("rows", [PART_ROW]))


def figure_of(row: Mapping[str, Any]) -> str:
    """Return the attribute of a row with its value."""
    return f"{row_label(row)} {significant(row['value'], 6)} {row['unit']}".rstrip()


def part_row(catalogue: Catalogue, part: str, name: str, row: Row) -> dict[str, Any]:
    """Return a row of a part as it is written, with how direct it is."""
    near = catalogue.with_directness(to_input(row, f"parts.{part}.{name}", attribute("parts", name, row.where))).directness
    numbers = {key: float(row.cells[key]) if row.cells.get(key, "") != "" else None for key in ("value", "low", "high")}
    own = {"own": row.overlay, "use": row.cells.get("use", "") or ("own" if row.overlay else "")}
    return {"part": part, "attribute": name, **row.cells, **numbers, "directness": near, **own}


def part_answer(catalogue: Catalogue, part: str) -> Answer:
    """Return every row of a part, the alternatives among them, what is to be said of each, and where they come from."""
    rows = [part_row(catalogue, part, name, row) for (owner, name), many in catalogue.part_rows.items() if owner == part for row in many]

    def tables() -> list[Table]:
        notes = [f"{figure_of(row)}: {row['note']}" for row in rows if row["note"]]
        cited = [f"{source}: {cited_as(catalogue, source)}" for source in sorted({row["source"] for row in rows})]
        below = ["Rows in brackets are alternatives: shown, not used.", *(["Notes:", *notes] if notes else []), "Sources:", *cited]
        above = [f"stands in: {', '.join(systems_with(catalogue, part)) or 'no system'}"]
        return [PART_ROW.table(rows, part, above, below)._replace(align="lrllllll")]

    return PART.answer(catalogue, {"part": part, "rows": rows}, tables, (PART_ROW, rows))


def systems_with(catalogue: Catalogue, part: str) -> list[str]:
    """Return the systems in whose tree a part stands, or may stand in place of another."""
    from tco.catalog.systems import load_system

    systems = {name: load_system(catalogue, name) for name in catalogue.ids("systems")}
    return [name for name, system in systems.items() if part in system.quantity or any(part in places for places in system.alternatives.values())]


def cited_as(catalogue: Catalogue, source: str) -> str:
    """Return title, date and address of a source."""
    found = catalogue.sources.get(source)
    return ", ".join(text for text in (found.title, found.date, found.url) if text) if found else "not in the list of sources"


# ---------------------------------------------------------------- systems
LEAF = Record(Member("path"), Member("part"), Member("quantity", float))
TREE = Record(
    Member("part", label="part", show=lambda leaf: "  " * leaf.path.count("/") + leaf.part),
    Member("quantity", float, label="in the scale-up domain", show=6),
)
FIGURES = Record(Member("chip", {str: float | None}), Member("domain", {str: float | None}))
SYSTEM = Document(
    "systems-show",
    *Record(
        Member("system", read="id"),
        Member("name"),
        Member("chip"),
        Member("variant", {str: str}),
        Member("chips", float),
        Member("racks", float),
        Member("tree", [LEAF], "leaves"),
        Member("fabric", Plain({"type": "object"})),
        Member("note"),
    ).within("0"),
    Member("figures", FIGURES, "1"),
    Member("notes", [str], lambda found: [*found[2], *found[1].notes]),
)


def system_answer(catalogue: Catalogue, system: System, figures: Figures, notes: Sequence[str]) -> Answer:
    """Return the tree of a system, and what its chip and its scale-up domain offer."""

    def tables() -> list[Table]:
        above = [
            f"{system.chips:g} {system.chip} in {system.racks:g} racks, {system.cooling}-cooled; priced as {system.owner_pays}",
            f"variants in force: {' '.join(f'{k}={v}' for k, v in system.variant.items()) or 'none'}",
            f"source: {catalogue.source_title(system.source)}",
        ]
        below = [note for note in (system.note, *notes) if note]
        return [TREE.table(system.leaves, system.name, above, below), figures_table(system, figures)]

    return SYSTEM.answer(catalogue, (system, figures, notes), tables, (LEAF, system.leaves))


def figures_table(system: System, figures: Figures) -> Table:
    """Return what one chip and the whole domain offer, and the FLOP a chip computes while a byte is read."""
    rows: list[Sequence[str]] = []
    for name in (key.split("_")[1] for key in figures.chip if key.startswith("peak_")):
        key = f"peak_{name}_flop_per_s"
        peaks = [scaled(place.get(key), 1e15) for place in (figures.chip, figures.domain)]
        rows.append((f"dense {name.upper()} peak, PFLOP/s", *peaks, significant(figures.chip[f"flop_per_byte_{name}"])))
    memory = [("HBM, GB", "hbm_bytes", 1e9), ("HBM bandwidth, TB/s", "hbm_byte_per_s", 1e12)]
    if "logical_device_bytes" in figures.chip:
        memory.insert(1, ("HBM of a logical device, GB", "logical_device_bytes", 1e9))
    for label, key, scale in memory:
        rows.append((label, *(scaled(place.get(key), scale) for place in (figures.chip, figures.domain)), ""))
    return Table(("", "chip", f"domain of {system.chips:g}", "FLOP/byte"), rows, below=figures.notes)


def scaled(value: Any, scale: float) -> str:
    """Return a number in a larger unit; nothing for None."""
    return "" if value is None else significant(float(value) / scale, 5)


# ---------------------------------------------------------------- models
BLOCK = Record(
    Member("layers", int),
    *(Member(name, Plain({"type": ["null", "object"]})) for name in ("attention", "feed_forward", "mixer")),
    Member("others", int),
)
SIZES = Record(
    Member("model", read="id"),
    *(Member(f"{kind}parameters", int) for kind in ("", "active_", "expert_", "embedding_", "prediction_")),
    *(Member(name, int) for name in ("layers", "hidden", "vocabulary", "context")),
    Member("cached_per_token", float, "cached"),  # numbers, not bytes
    Member("held_per_sequence", float, "held"),
    Member("source"),
    Member("note"),
)
MODEL = Document("models-show", *SIZES.members, Member("blocks", [BLOCK], lambda model: list(map(block_parts, model.blocks))))
SAID = Record(Member("what", read="0", label="what"), Member("value", read="1", label="value", show=lambda row: row_text(row[1])))


def row_text(value: Any) -> str:
    """Return a value of a page as its table shows it."""
    return significant(value, 6) if isinstance(value, float) else str(value)


def block_parts(block: Any) -> dict[str, Any]:
    """Return a kind of layer, its parts by their members."""
    return {name: part if isinstance(part, int | None) else part._asdict() for name, part in block._asdict().items()}


def model_answer(catalogue: Catalogue, model: Architecture) -> Answer:
    """Return the shape of a model; in rows a kind of layer takes one for each part it has."""
    rows = [(key, value) for key, value in SIZES.json(model).items() if value not in ("", 0)]
    for block in model.blocks:
        parts = {"attention": block.attention, "mixer": block.mixer, "feed-forward": block.feed_forward}
        shapes = {name: part._asdict() for name, part in parts.items() if part is not None}
        told = {name: ", ".join(f"{key} {value}" for key, value in shape.items() if value) for name, shape in shapes.items()}
        rows += [(f"{block.layers} x {name}", text) for name, text in told.items() if text]
    return MODEL.answer(catalogue, model, lambda: [SAID.table(rows, model.id)], (SAID, rows))


# ---------------------------------------------------------------- sources
SOURCE = Document("sources-show", *ITEMS["sources"].within("0"), Member("values", [str], "1"))
USED = Record(Member("what", read="0", label="what"), Member("which", read="1", label="which"))


def source_answer(catalogue: Catalogue, source: str) -> Answer:
    """Return a source and every value based on it."""
    found = catalogue.sources[source]
    uses = [f"parts.{part}.{name}" for (part, name), rows in catalogue.part_rows.items() for row in rows if row.cells["source"] == source]
    rows = [*found._asdict().items(), *(("value", path) for path in uses)]
    return SOURCE.answer(catalogue, (found, uses), lambda: [USED.table(rows, found.title)], (USED, rows))


# ---------------------------------------------------------------- agreements
PER_SHARE = ("vested share of the warrant", "whole warrant over", "marginal rebate")  # what begins so is a share: people read it in per cent
WORTH = (
    *("vested share of the warrant", "intrinsic value a share, USD", "Black-Scholes value a share, USD"),
    *("whole warrant over the spend that vests it, intrinsic", "whole warrant over the spend that vests it, Black-Scholes"),
    "marginal rebate on further spend, intrinsic",
)
REBATE = Document(
    *("rebates-show", Member("agreement"), Member("kind"), Member("in force"), Member("covers")),
    *(Member(name, float, optional=True) for name in WORTH),
    Member("note"),
)


def rebate_answer(catalogue: Catalogue, agreement: Agreement, worth: Worth | None, date: str) -> Answer:
    """Return an agreement: its terms, what has vested, and what its right is worth at a date, which the key of its share price names."""
    rows = rebate_rows(agreement, worth, date)
    title = f"{agreement.supplier} to {agreement.holder}"

    def words(name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        return f"{significant(value * 100)} %" if name.startswith(PER_SHARE) else significant(value, 6)

    *said, (_, note) = rows
    shown = Table(("what", "value"), [(name, words(name, value)) for name, value in said], title, (), [note] if note else [], "ll")
    content = {"agreement": agreement.id, **dict(rows)}
    return Answer(lambda: document(REBATE.command, catalogue, content), lambda: [shown], SAID.header, rows)


def rebate_rows(agreement: Agreement, worth: Worth | None, date: str) -> list[tuple[str, Any]]:
    """Return an agreement's page as rows."""
    rows: list[tuple[str, Any]] = [
        ("kind", agreement.kind),
        ("in force", f"{agreement.begins} to {agreement.ends}{'' if agreement.in_force(date) else f', not at {date}'}"),
        ("covers", ", ".join(agreement.parts)),
    ]
    if worth is not None:
        figures = [worth.vested, worth.intrinsic, worth.option]
        if worth.intrinsic_discount is not None:
            whole = float(worth.intrinsic_discount)
            figures += [whole, worth.option_discount, whole * (1 - float(worth.vested))]
        rows += [(f"share price {date}, USD", float(worth.share_price)), *zip(WORTH, map(float, figures), strict=False)]
    return [*rows, ("note", agreement.note)]


# ---------------------------------------------------------------- what scenarios are put together from
VALUE = Record(
    Member("path", label="path"),
    Member("value", float | None, label="value", show=6),
    Member("unit", label="unit"),
    Member("low", float | None, label="low to high", show=lambda row: span(row["low"], row["high"]) if None not in (row["low"], row["high"]) else ""),
    Member("high", float | None),
    Member("as_of", label="as of"),
    Member("kind", label="kind"),
    Member("source", label="source"),
    Member("from", label="from"),
    Member("note"),
)
PAGES = {
    name: Document(f"{name}-show", Member("id"), Member("texts", {str: str}), Member("values", [VALUE]))
    for name in ("sites", "terms", "workloads", "clusters", "perspectives")
}


def page_answer(kind: str, group: str, catalogue: Catalogue, name: str, said: Mapping[str, tuple[str, str]], values: Sequence[Any]) -> Answer:
    """Return the page of a document: its texts, each with where it is said, above its values, what is to be said of each below."""
    rows = [dict.fromkeys(VALUE.header, "") | {"path": f"{group}.{key}", "value": text, "from": where} for key, (text, where) in said.items()]
    content = {"id": name, "texts": {key: text for key, (text, _) in said.items()}, "values": values}

    def tables() -> list[Table]:
        notes = [f"{row['path']}: {row['note']}" for row in values if row["note"]]
        above = [f"{key}: {text}" for key, (text, _) in said.items() if text]
        shown = VALUE.table(values, name, above, ["Notes:", *notes] if notes else [])
        return [shown._replace(columns=shown.columns if values else (), align="lrllllll")]

    return PAGES[kind].answer(catalogue, content, tables, (VALUE, [*rows, *values]))


# ---------------------------------------------------------------- what a scenario rests on
class Stated(NamedTuple):
    """An input of a scenario, a text or a number."""

    path: str
    value: Any
    unit: str = ""
    low: float | None = None
    high: float | None = None
    as_of: str = ""
    kind: str = ""
    source: str = ""
    own: int = 0


def number_text(row: Stated) -> str:
    """Return the value of an input as a text, marked where it is an estimate."""
    weak = "~" if row.kind and row.kind not in SOURCED else ""
    return row.value if isinstance(row.value, str) else weak + significant(row.value, 6)


INPUT = Record(
    Member("path", label="path"),
    Member("value", float | str, label="value", show=number_text),
    Member("unit", label="unit"),
    Member("low", float | None, label="low", show=6),
    Member("high", float | None, label="high", show=6),
    Member("as_of", label="as_of"),
    Member("kind", label="kind", show=lambda row: f"{row.kind} (own)" if row.own else row.kind),
    Member("source", label="source"),
    Member("own", int),
)
INPUTS = Document("inputs", Member("scenario"), Member("inputs", [INPUT]))
OF_SCENARIO = INPUT.only(*INPUT.header[:-1])
SCENARIO = Document("scenarios-show", Member("scenario"), Member("title"), Member("inputs", [OF_SCENARIO]))


def stated(result: Result, as_written: bool = True) -> list[Stated]:
    """Return what a result rests on, texts first; numbers in the unit they are written in, as `--set` takes them, or in that of the formulas."""
    said = [Stated(path, text) for path, text in sorted(result.texts.items())]
    return said + [number_stated(given, as_written) for _, given in sorted(result.inputs.items())]


def listed(catalogue: Catalogue, result: Result) -> list[Stated]:
    """Return what a result rests on, and what its money by month, delays and swaps would besides."""
    money = catalogue.document_inputs("defaults", "money", "money", "money")
    return stated(result) + [number_stated(given, True) for path, given in sorted(money.items()) if path not in result.inputs]


def named(rows: Sequence[Stated], words: Sequence[str], chip: str) -> list[Stated]:
    """Return the inputs that all words tell of, in any order: by the path first, then by what the attribute is or is also called.

    What belongs to the chip of a system is told of by `chip` too.
    """
    asked = " ".join(words).lower().split()

    def told(path: str) -> str:
        group, _, rest = path.partition(".")
        part, _, name = rest.rpartition(".")
        known = attributes().get((group, name))
        return f"{path} {known.description if known else ''} {known.also if known else ''} {'chip' if part == chip else ''}".lower()

    found = [row for row in rows if all(word in told(row.path) for word in asked)]
    return sorted(found, key=lambda row: not all(word in row.path.lower() for word in asked))


def number_stated(given: Input, as_written: bool) -> Stated:
    """Return an input that is a number."""
    value, unit = (given.shown if as_written else None) or (given.value, given.unit)
    scale = value / given.value if given.value else 1.0
    low, high = (None if end is None else end * scale for end in (given.low, given.high))
    return Stated(given.path, value, unit, low, high, given.as_of, given.kind, given.source, int(given.overlay))


def inputs_answer(catalogue: Catalogue, result: Result, rows: Sequence[Stated]) -> Answer:
    """Return some inputs of a scenario."""
    content = {"scenario": result.scenario, "inputs": rows}
    return INPUTS.answer(catalogue, content, lambda: [inputs_table(result, rows)], (INPUT, rows), result.notes, of=result.context)


def scenario_answer(catalogue: Catalogue, result: Result) -> Answer:
    """Return every input a scenario depends on."""
    rows = stated(result, as_written=False)
    content = {"scenario": result.scenario, "title": result.title, "inputs": rows}
    return SCENARIO.answer(catalogue, content, lambda: [inputs_table(result, stated(result))], (OF_SCENARIO, rows), of=result.context)


def inputs_table(result: Result, rows: Sequence[Stated]) -> Table:
    """Return inputs as a table: an estimate is marked, and a value of one's own named."""
    below = [f"{len(rows)} inputs; ~ an estimate or an assumption. Replace one: tco compare --set 'PATH=VALUE UNIT'."]
    return INPUT.table(rows, result.title, (), below)._replace(align="lrlrrlll")
