"""What the catalogue holds: the lists and pages of parts, systems, models, scenarios and sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tco.catalog import Catalogue
from tco.catalog.rows import ALTERNATIVE, Row, attribute, to_input
from tco.catalog.systems import System, load_system
from tco.economics.rebates import Agreement, Worth
from tco.models.architecture import Architecture
from tco.models.layers import Block
from tco.outputs.document import number
from tco.outputs.table import Table, significant

if TYPE_CHECKING:
    from tco.chain.figures import Figures

PART_HEADER = ("part", "attribute", "value", "unit", "low", "high", "as_of", "kind", "directness", "source", "use", "note")


def rows_of_part(catalogue: Catalogue, part: str) -> list[tuple[str, Row]]:
    """Return the rows of a part with their attributes, in file order."""
    return [(name, row) for (owner, name), rows in catalogue.part_rows.items() if owner == part for row in rows]


def part_cells(catalogue: Catalogue, part: str, name: str, row: Row) -> list[Any]:
    """Return the raw cells of a row, with how direct it is."""
    cells = row.cells
    near = catalogue.with_directness(to_input(row, f"parts.{part}.{name}", attribute("parts", name, row.where))).directness
    numbers = [float(cells[key]) if cells.get(key, "") != "" else None for key in ("value", "low", "high")]
    use = cells.get("use", "") or ("own" if row.overlay else "")
    return [part, name, numbers[0], cells["unit"], numbers[1], numbers[2], cells["as_of"], cells["kind"], near, cells["source"], use, cells["note"]]


def part_table(catalogue: Catalogue, part: str) -> Table:
    """Return the page of one part: every row, the alternatives among them, what is to be said of each, and where they come from."""
    rows: list[Sequence[str]] = []
    notes, sources = [], dict[str, None]()
    for name, row in rows_of_part(catalogue, part):
        cells = part_cells(catalogue, part, name, row)
        low, high = significant(cells[4]), significant(cells[5])
        span = f"{low} to {high}" if low or high else ""
        label = f"({name})" if cells[10] == ALTERNATIVE else name
        value = significant(cells[2], 6)
        rows.append((label, value, cells[3], span, cells[6], cells[7] + (" (own)" if row.overlay else ""), cells[8], cells[9]))
        notes += [f"{f'{label} {value} {cells[3]}'.rstrip()}: {cells[11]}"] if cells[11] else []
        sources[cells[9]] = None
    held = [f"stands in: {', '.join(systems_with(catalogue, part)) or 'no system'}"]
    cited = [f"{source}: {cited_as(catalogue, source)}" for source in sorted(sources)]
    below = ["Rows in brackets are alternatives: shown, not used.", *(["Notes:", *notes] if notes else []), "Sources:", *cited]
    return Table(("attribute", "value", "unit", "low to high", "as of", "kind", "how direct", "source"), rows, part, held, below, "lrllllll")


def systems_with(catalogue: Catalogue, part: str) -> list[str]:
    """Return the systems in whose tree a part stands, or may stand in place of another."""
    systems = {name: load_system(catalogue, name) for name in catalogue.ids("systems")}
    return [name for name, system in systems.items() if part in system.quantity or any(part in places for places in system.alternatives.values())]


def cited_as(catalogue: Catalogue, source: str) -> str:
    """Return title, date and address of a source."""
    found = catalogue.sources.get(source)
    return ", ".join(text for text in (found.title, found.date, found.url) if text) if found else "not in the list of sources"


def system_table(catalogue: Catalogue, system: System, notes: Sequence[str] = ()) -> Table:
    """Return the page of one system: its tree and its variants."""
    rows = [("  " * leaf.path.count("/") + leaf.part, significant(leaf.quantity, 6)) for leaf in system.leaves]
    above = [
        f"{system.chips:g} {system.chip} in {system.racks:g} racks, {system.cooling}-cooled; priced as {system.owner_pays}",
        f"variants in force: {' '.join(f'{k}={v}' for k, v in system.variant.items()) or 'none'}",
        f"source: {catalogue.source_title(system.source)}",
    ]
    return Table(("part", "in the scale-up domain"), rows, system.name, above, [note for note in (system.note, *notes) if note])


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


def figures_document(figures: Figures) -> dict[str, Any]:
    """Return the figures of chip and domain as numbers."""
    return {
        place: {name: None if value is None else number(value) for name, value in values.items()}
        for place, values in (("chip", figures.chip), ("domain", figures.domain))
    }


def system_item(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """Return a system's entry in the list."""
    variants = document.get("variants", {})
    options = {key: [o for o in branches if o != "default"] for key, branches in (variants.items() if isinstance(variants, dict) else ())}
    return {"id": name, **{key: document.get(key, "") for key in ("name", "chip", "cooling")}, "variants": options}  # `check` names what is missing


def system_document(system: System) -> dict[str, Any]:
    """Return a system's page as a document."""
    return {
        "system": system.id,
        "name": system.name,
        "chip": system.chip,
        "variant": system.variant,
        "chips": number(system.chips),
        "racks": number(system.racks),
        "tree": [{"path": leaf.path, "part": leaf.part, "quantity": number(leaf.quantity)} for leaf in system.leaves],
        "fabric": system.fabric,
        "note": system.note,
    }


def model_document(model: Architecture) -> dict[str, Any]:
    """Return a model's page as a document; caches and states count numbers, not bytes."""
    return {
        "model": model.id,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "expert_parameters": model.expert_parameters,
        "embedding_parameters": model.embedding_parameters,
        "prediction_parameters": model.prediction_parameters,
        "layers": model.layers,
        "hidden": model.hidden,
        "vocabulary": model.vocabulary,
        "context": model.context,
        "cached_per_token": model.cached,
        "held_per_sequence": model.held,
        "source": model.source,
        "note": model.note,
        "blocks": [
            {key: part if isinstance(part, int | None) else part._asdict() for key, part in block._asdict().items()} for block in model.blocks
        ],
    }


def block_document(block: Block) -> dict[str, Any]:
    """Return a kind of layer and its parts as JSON members."""
    return {name: part if isinstance(part, int | None) else part._asdict() for name, part in block._asdict().items()}


def model_rows(model: Architecture) -> list[list[Any]]:
    """Return a model's page as rows; a kind of layer takes one row for each part it has."""
    rows: list[list[Any]] = [[key, value] for key, value in model_document(model).items() if key != "blocks" and value not in ("", 0)]
    for block in model.blocks:
        parts = {"attention": block.attention, "mixer": block.mixer, "feed-forward": block.feed_forward}
        shapes = {name: part._asdict() for name, part in parts.items() if part is not None}
        texts = {name: ", ".join(f"{key} {value}" for key, value in shape.items() if value) for name, shape in shapes.items()}
        rows += [[f"{block.layers} x {name}", text] for name, text in texts.items() if text]
    return rows


SHARES = ("vested share of the warrant", "whole warrant over", "marginal rebate")  # what begins so is a share: people read it in per cent


def rebate_table(rows: Sequence[Sequence[Any]], title: str) -> Table:
    """Return an agreement's page, shares in per cent and its note below."""
    *said, (_, note) = rows

    def words(name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        return f"{significant(value * 100)} %" if name.startswith(SHARES) else significant(value, 6)

    cells = [(name, words(name, value)) for name, value in said]
    return Table(("what", "value"), cells, title, (), [note] if note else [], "ll")


def rebate_rows(agreement: Agreement, worth: Worth | None, date: str) -> list[list[Any]]:
    """Return an agreement's page as rows."""
    rows: list[list[Any]] = [
        ["kind", agreement.kind],
        ["in force", f"{agreement.begins} to {agreement.ends}{'' if agreement.in_force(date) else f', not at {date}'}"],
        ["covers", ", ".join(agreement.parts)],
    ]
    if worth is not None:
        rows += [
            [f"share price {date}, USD", float(worth.share_price)],
            ["vested share of the warrant", float(worth.vested)],
            ["intrinsic value a share, USD", float(worth.intrinsic)],
            ["Black-Scholes value a share, USD", float(worth.option)],
        ]
        if worth.intrinsic_discount is not None:
            rows += [
                ["whole warrant over the spend that vests it, intrinsic", float(worth.intrinsic_discount)],
                ["whole warrant over the spend that vests it, Black-Scholes", float(worth.option_discount)],
                ["marginal rebate on further spend, intrinsic", float(worth.intrinsic_discount) * (1 - float(worth.vested))],
            ]
    return [*rows, ["note", agreement.note]]
