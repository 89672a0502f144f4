"""The sections of the page, in the order they are read: each says one thing with words, figures and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tco.catalog.accuracy import WORDS
from tco.catalog.accuracy import table as accuracies
from tco.chain.result import Result
from tco.outputs.comparison import comparison_table
from tco.outputs.costs import cost_table
from tco.outputs.curve import cost_rows, sure_rows, verdict_words
from tco.outputs.frontiers import frontier_table
from tco.outputs.hardware import fabric_table
from tco.outputs.page import drawings
from tco.outputs.page.page import Section
from tco.outputs.performance import OPERATOR, operators_of
from tco.outputs.ranges import drawn_words, range_rows
from tco.outputs.sensitivities import sensitivity_table
from tco.outputs.table import Table, significant
from tco.studies.reporting import Material

LARGEST = 12  # lines of a bill that are shown
COST_DIGITS = 3  # of a cost of the curve


def results_of(material: Material) -> list[Result]:
    """Return the results of the scenarios, in their order."""
    return [one.result for one in material.asked]


def sections_of(material: Material) -> list[Section]:
    """Return every section that has something to say."""
    made = (frontier, summary, order, cost, tornado, winners, roofline, fabric, bill, sources, validation)
    return [section for make in made for section in make(material)]


def summary(material: Material) -> Iterator[Section]:
    """Yield the comparison."""
    results = results_of(material)
    sure = material.sure if any(one.draws for one in material.sure) else ()
    table = comparison_table(results, material.baseline, (), range_rows(sure))
    yield Section("summary", "Side by side" if len(results) > 1 else "In figures", tables=[table._replace(title="", above=())])


def curve_table(material: Material) -> Table:
    """Return what the work costs at each speed, and how each system stands to the baseline there."""
    results = results_of(material)
    names = [result.scenario for result in results]
    costs = cost_rows(results, material.confidence.curve, COST_DIGITS)
    below = [*(["* the cheapest at this speed; none: no plan is as quick."] if len(names) > 1 else []), *drawn_words(material.sure)]
    return Table(("USD a million output tokens", *names), [*costs, *sure_rows(names, material.baseline, material.confidence)], "", (), below)


def regimes(material: Material) -> Iterator[Section]:
    """Yield the verdict by regime, and the curve it rests on."""
    words = verdict_words(material.confidence, results_of(material))
    yield Section("regimes", "By speed", words, tables=[curve_table(material)] if material.confidence.curve else [])


def order(material: Material) -> Iterator[Section]:
    """Yield what would turn the order: inputs by what they move, and where the ratio passes one."""
    rows = []
    for result, one in zip(results_of(material), material.sure, strict=True):
        for driver in one.drivers:
            value, unit = driver.shown if driver.shown and driver.shown[0] else (driver.value, driver.unit)
            scale = value / driver.value if driver.value else 1.0
            flip = "-" if driver.flips_at is None else f"~{significant(driver.flips_at * scale, 2)} {unit}".rstrip()
            rows.append((result.scenario, driver.path, f"{significant(value, 3)} {unit}".rstrip(), f"{driver.swing:+.2f}", flip))
    if rows:
        columns = ("scenario", "input", "today", "moves the ratio by", "order turns at")
        words = [
            f"The three inputs that move each ratio to {material.baseline} most, each alone from its P5 to its P95, "
            "and the value at which the order turns; "
            "a dash where it does not turn within that range.",
        ]
        below = [result.order for result in results_of(material)[:1] if result.order]
        yield Section("order", "What would change the order", words, tables=[Table(columns, rows, align="llrrr")], below=below)


def cost(material: Material) -> Iterator[Section]:
    """Yield where the money goes: the cost of a chip-hour by class of asset."""
    results = [result for result in results_of(material) if result.lines]
    if not results:
        return
    assets = list(dict.fromkeys(line.asset for result in results for line in result.lines))
    rows = []
    for asset in assets:
        sums = [sum(float(line.usd_per_chip_hour) for line in result.lines if line.asset == asset) for result in results]
        rows.append((asset, *("-" if not value else f"~{significant(value)}" for value in sums)))
    rows.append(("cost a chip-hour, net", *(f"~{significant(result.metrics['tco_usd_per_chip_hour'])}" for result in results)))
    stack = Table(("USD a chip-hour", *(result.scenario for result in results)), rows, "The stack in numbers")
    words = ["What an installed chip costs each hour, all year, by what is paid for."]
    folded = [stack, *(cost_table(result)._replace(above=()) for result in results)]
    yield Section("cost", "Where the money goes", words, drawings.cost_stack(results), folded=folded)


def roofline(material: Material) -> Iterator[Section]:
    """Yield where the time goes, operator by operator."""
    shown = OPERATOR.only("name", "phase", "time_us", "share", "bound", "of_bound")
    timed = [(result, operators_of(result)) for result in results_of(material)]
    tables = [shown.table(operators, f"{result.title}: time by operator") for result, operators in timed if operators]
    if tables:
        words = ["Every operator of the best plan: the time it takes and the bound that binds it."]
        yield Section("roofline", "Where the time goes", words, drawings.rooflines(results_of(material)), folded=tables, paper=False)


def frontier(material: Material) -> Iterator[Section]:
    """Yield what interactivity costs."""
    tables = [frontier_table(one) for one in material.frontiers if one.points]
    if tables:
        yield Section("frontier", "What speed costs", (), drawings.frontiers(material), [curve_table(material)], tables)


def tornado(material: Material) -> Iterator[Section]:
    """Yield what drives each answer."""
    tables = [sensitivity_table(one) for one in material.tornados]
    if tables:
        words = ["Every input alone at its P5 and at its P95, the plan held: those that move the answer most."]
        yield Section("tornado", "What drives the answer", words, drawings.tornados(material), folded=tables, paper=False)


def winners(material: Material) -> Iterator[Section]:
    """Yield who wins where: the two inputs that decide the closest contest, moved together."""
    field = material.field
    if field is None:
        return
    names = [result.scenario for result in field.results]
    tables = []
    for name, rows in zip(names, field.values, strict=True):
        cells = [(f"{significant(y, 3)} {field.y.unit}".rstrip(), *map(costly, row)) for y, row in zip(field.y.values, rows, strict=True)]
        heads = (field.y.path, *(f"{significant(x, 3)} {field.x.unit}".rstrip() for x in field.x.values))
        tables.append(Table(heads, cells, f"{name}: USD a million output tokens; across: {field.x.path}", align="r"))
    words = ["The two inputs that decide the closest contest, moved together within their ranges, the plan re-optimised in every cell."]
    yield Section("map", "Who wins where", words, drawings.winners(material), folded=tables, paper=False)


def costly(value: float | None) -> str:
    """Return a cost in a cell."""
    return "-" if value is None else f"~{significant(value, 3)}"


def fabric(material: Material) -> Iterator[Section]:
    """Yield hops and bandwidth of each scale-up fabric."""
    tables = [fabric_table(one.system, one.scopes) for one in material.fabrics]
    if tables:
        words = ["How far two chips of one scale-up domain lie apart, and what passes between them."]
        yield Section("fabric", "Hops and bandwidth", words, drawings.fabrics(material), folded=tables, paper=False)


def bill(material: Material) -> Iterator[Section]:
    """Yield what a world is made of: its dearest lines."""
    tables = []
    for result in results_of(material):
        if result.bill is None:
            continue
        whole = float(result.bill.price)
        lines = sorted((line for line in result.bill.lines if line.extended), key=lambda line: -float(line.extended))
        shown = [
            (
                line.part,
                significant(line.quantity, 6),
                significant(line.unit_price),
                significant(line.extended),
                f"{float(line.extended) / whole * 100:.1f} %",
                line.kind + (" (own)" if line.overlay else ""),
            )
            for line in lines[:LARGEST]
        ]
        rest = sum(float(line.extended) for line in lines[LARGEST:])
        if rest:
            shown.append((f"{len(lines) - LARGEST} more", "", "", significant(rest), f"{rest / whole * 100:.1f} %", ""))
        shown.append(("whole scale-up domain", "", "", significant(result.bill.price), "100 %", ""))
        tables.append(Table(("part", "quantity", "unit USD", "USD", "share", "kind"), shown, f"{result.title}: bill of materials", align="lrrrrl"))
    if tables:
        words = ["Every part of one whole scale-up domain, as large as its price."]
        yield Section("bom", "What it is made of", words, drawings.bills(material), folded=tables, paper=False)


def sources(material: Material) -> Iterator[Section]:
    """Yield what the numbers rest on, and how old that is."""
    found: dict[str, list[str]] = {}
    kinds: dict[str, list[str]] = {}
    for result in results_of(material):
        for given in result.inputs.values():
            known = kinds.setdefault(given.kind, [])
            if given.path not in known:
                known.append(given.path)
                found.setdefault(given.source, []).append(given.as_of)
    ages = [
        (result.scenario, f"{result.ages.later * 100:.1f} %", f"{result.ages.older * 100:.1f} %", *shares_of(result))
        for result in results_of(material)
    ]
    columns = ("scenario", "of the bill later than its date", "older than it may be", "hardware sourced", "estimated", "assumed")
    counted = ", ".join(f"{len(paths)} {kind}" for kind, paths in sorted(kinds.items(), key=lambda item: -len(item[1])))
    rows = [
        (material.catalogue.source_title(source), str(len(dates)), dated(dates), source_address(material, source))
        for source, dates in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    listed = Table(("source", "inputs", "as of", "address"), rows, "Every source", align="lrll")
    words = [f"Inputs by kind: {counted}."]
    yield Section("sources", "Sources and their age", words, tables=[Table(columns, ages, align="lrrrrr")], folded=[listed], paper=False)


def shares_of(result: Result) -> tuple[str, str, str]:
    """Return what of the hardware's price is sourced, estimated and assumed."""
    found = result.shares.get("hardware", {})
    sourced, estimated, assumed = (f"{found[name] * 100:.0f} %" if name in found else "-" for name in ("sourced", "estimate", "assumed"))
    return sourced, estimated, assumed


def dated(dates: Sequence[str]) -> str:
    """Return the first and the last of some dates."""
    known = sorted(filter(None, dates))
    if not known:
        return ""
    return known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"


def source_address(material: Material, source: str) -> str:
    """Return where a source is found, if it says so."""
    found = material.catalogue.sources.get(source)
    return found.url if found else ""


def validation(material: Material) -> Iterator[Section]:
    """Yield how well the model does on published measurements, chip by chip; those of this report first."""
    rows = accuracies(material.catalogue, "chips")
    ours = {one.system.chip for one in material.fabrics} | {anchor for result in results_of(material) for anchor in result.standing.anchors}
    shown = []
    for row in sorted(rows, key=lambda row: (row["part"] not in ours, row["part"], row["kind"])):
        errors = (f"{float(row[name]) * 100:.0f} %" if row[name] else "-" for name in ("median_ape", "p90_ape", "left_out"))
        kind = WORDS.get(row["kind"].rpartition("_")[2], row["kind"])
        shown.append((row["part"], kind, f"{int(row['n']):,}", *errors, "yes" if row["part"] in ours else ""))
    table = Table(
        ("chip", "measured", "rows", "median error", "P90 error", "leave-one-chip-out", "anchors this report"),
        shown,
        "Errors by chip",
        align="llrrrrl",
    )
    words = [f"{result.scenario}: {result.standing.text}." for result in results_of(material)]
    yield Section("validation", "How accurate it is", list(dict.fromkeys(words)), drawings.errors(rows), folded=[table])
