"""The sections of the page in reading order, each with words, figures and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from tco.catalog.accuracy import accuracy_rows as accuracies
from tco.catalog.labels import short_name
from tco.comparison.report_data import Material, variant_of
from tco.core.mappings import lists_by_key
from tco.core.provenance import Input
from tco.report.comparison import comparison_table
from tco.report.cost import cost_table
from tco.report.curve import cost_rows, cost_text, sureness_groups
from tco.report.figures.cost import cost_by_asset, cost_figure
from tco.report.figures.drawing import Drawing
from tco.report.figures.errors import errors_figure, measurement_kind_label
from tco.report.figures.frontier import COST, frontier_figure
from tco.report.figures.hardware import bom_figure, fabric_figure
from tco.report.figures.maps import map_figure
from tco.report.figures.performance import dots_of, roofline_figure, roofs_of
from tco.report.figures.style import NARROW, WIDE, with_page_colours
from tco.report.figures.uncertainty import tornado_figure
from tco.report.first_screen import advice_lines
from tco.report.frontier import frontier_table
from tco.report.hardware import fabric_table
from tco.report.page.page import Picture, Section
from tco.report.performance import OPERATOR, operators_of
from tco.report.ranges import drawn_words
from tco.report.sensitivity import plan_treatment, sensitivity_table
from tco.report.table import Table, fixed_digits, input_unit, significant

LARGEST = 12  # lines of a bill that are shown
HALF = 540  # pixels of a figure that stands beside another


def both(draw: Callable[..., Drawing], wide: float = WIDE) -> Picture:
    """Return a figure drawn for a wide window, and for a narrow one, which nobody points at."""
    return Picture(
        with_page_colours(draw(width=wide).svg()),
        with_page_colours(draw(width=NARROW).svg(tips=False)),
    )


def _paired_pictures(drawings: Sequence[Callable[..., Drawing]]) -> list[Picture]:
    return [both(draw, WIDE if len(drawings) == 1 else HALF) for draw in drawings]


def sections_of(material: Material) -> list[Section]:
    """Return every section that has something to say."""
    section_makers = (
        frontier_sections,
        _summary_sections,
        order_change_section,
        _cost_section,
        _tornado_sections,
        winners,
        _roofline_section,
        _fabric_sections,
        bill,
        sources,
        validation,
    )
    return [section for make in section_makers for section in make(material)]


def _summary_sections(material: Material) -> Iterator[Section]:
    """Yield the comparison."""
    scenario_results = material.results
    sure = material.sure if any(result_sureness.draws for result_sureness in material.sure) else ()
    table = comparison_table(scenario_results, material.baseline, (), sure)
    yield Section(
        "summary",
        "Side by side" if len(scenario_results) > 1 else "In figures",
        tables=[table._replace(title="", above=())],
    )


def _curve_table(material: Material) -> Table:
    """Return the table of cost by speed and comparison with the baseline."""
    scenario_results = material.results
    scenario_names = [scenario_result.scenario for scenario_result in scenario_results]
    below = [
        *(
            [
                "Costs are medians of the draws. * the pick at this speed, or every rack of a tie. "
                "none: no plan reaches the speed. Regret is the share of the spend that is lost "
                "against the cheapest rack of the draw."
            ]
            if len(scenario_names) > 1
            else []
        ),
        *drawn_words(material.sure),
    ]
    groups = {
        "Median cost, USD per million output tokens": cost_rows(
            scenario_results, material.confidence
        ),
        **sureness_groups(scenario_names, material.confidence),
    }
    grouped_rows: list[tuple[str, ...]] = []
    for heading, group_rows in groups.items():
        if heading and group_rows:
            grouped_rows.append((heading, *[""] * len(scenario_names)))
        grouped_rows += group_rows
    return Table(("by speed per user", *scenario_names), grouped_rows, "", (), below)


def regimes(material: Material) -> Iterator[Section]:
    """Yield the verdict by regime, and the curve it rests on."""
    words = advice_lines(material.confidence, material.results)
    yield Section(
        "regimes",
        "By speed",
        words,
        tables=[_curve_table(material)] if material.confidence.curve else [],
    )


def _points_table(material: Material) -> Table:
    """Return every point of the curve: its base case, and the median of its draws."""
    point_rows = []
    for curve_point in material.confidence.curve:
        costs = (
            curve_point.usd_per_million_output_tokens,
            curve_point.median_usd_per_million_output_tokens,
        )
        point_rows.append(
            (
                curve_point.scenario,
                f"{curve_point.tokens_per_s_per_user:g}",
                *(fixed_digits(cost, 4) or "none" for cost in costs),
            )
        )
    columns = (
        "scenario",
        "tokens/s per user",
        "base case, USD per million output tokens",
        "median of the draws",
    )
    return Table(columns, point_rows, "Every point of the curve", align="lrrr")


def order_change_section(material: Material) -> Iterator[Section]:
    """Yield the section on inputs that would change the ranking.

    The table gives the swing of each driver and the value at which the ranking changes. Without
    drivers there is no section.
    """
    driver_rows = []
    for scenario_result, result_sureness in zip(material.results, material.sure, strict=True):
        for driver in result_sureness.drivers:
            shown_value, unit = (
                driver.catalogue_value
                if driver.catalogue_value and driver.catalogue_value[0]
                else (driver.value, driver.unit)
            )
            unit = input_unit(driver.path, unit)
            scale = shown_value / driver.value if driver.value else 1.0
            flip = (
                "-"
                if driver.flips_at is None
                else f"~{fixed_digits(driver.flips_at * scale, 3)} {unit}".rstrip()
            )
            driver_rows.append(
                (
                    scenario_result.scenario,
                    short_name(driver.path),
                    f"{fixed_digits(shown_value, 3)} {unit}".rstrip(),
                    f"{driver.swing:+.2f}",
                    flip,
                )
            )
    if driver_rows:
        columns = ("scenario", "input", "base case", "moves the ratio by", "order changes at")
        words = [
            f"The three inputs that most move the performance per TCO over {material.baseline}.",
            "Each input moves alone from its P5 to its P95. A dash: the order stays within it.",
        ]
        yield Section(
            "order",
            "What would change the order",
            words,
            tables=[Table(columns, driver_rows, align="llrrr")],
        )


def _cost_section(material: Material) -> Iterator[Section]:
    """Yield the section on cost per chip-hour by class of asset."""
    scenario_results = [
        scenario_result for scenario_result in material.results if scenario_result.lines
    ]
    if not scenario_results:
        return
    sums = [cost_by_asset(scenario_result) for scenario_result in scenario_results]
    assets = dict.fromkeys(asset for asset_costs in sums for asset in asset_costs)
    asset_rows = [
        (
            asset,
            *(
                f"~{cost_text(float(asset_cost))}"
                if (asset_cost := asset_costs.get(asset))
                else "-"
                for asset_costs in sums
            ),
        )
        for asset in assets
    ]
    asset_rows.append(
        (
            "cost per chip-hour, net",
            *(
                f"~{cost_text(scenario_result.metrics['tco_usd_per_chip_hour'])}"
                for scenario_result in scenario_results
            ),
        )
    )
    stack = Table(
        ("USD per chip-hour", *(scenario_result.scenario for scenario_result in scenario_results)),
        asset_rows,
        "Cost per chip-hour by class",
    )
    words = ["The cost of an installed chip in each hour of the year, in the base case."]
    folded = [
        stack,
        *(cost_table(scenario_result)._replace(above=()) for scenario_result in scenario_results),
    ]
    yield Section(
        "cost",
        "Where the money goes",
        words,
        [both(partial(cost_figure, scenario_results))],
        folded=folded,
    )


def _roofline_section(material: Material) -> Iterator[Section]:
    """Yield the section on operator times and their binding bounds."""
    operator_record = OPERATOR.only("name", "phase", "time_us", "share", "bound", "of_bound")
    timed = [
        (scenario_result, operators_of(scenario_result)) for scenario_result in material.results
    ]
    tables = [
        operator_record.table(operators, f"{scenario_result.title}: time by operator")
        for scenario_result, operators in timed
        if operators
    ]
    if tables:
        words = ["Every operator of the best plan: its time and the bound that limits it."]
        roofed = [
            partial(roofline_figure, scenario_result)
            for scenario_result in material.results
            if dots_of(scenario_result) and roofs_of(scenario_result)
        ]
        yield Section(
            "roofline",
            "Where the time goes",
            words,
            _paired_pictures(roofed),
            folded=tables,
            paper=False,
        )


def frontier_sections(material: Material) -> Iterator[Section]:
    """Yield the section on cost by speed for each system.

    The figure shows the cost range of the workload's plan.
    """
    drawn_frontiers = [frontier for frontier in material.frontiers if frontier.points]
    if drawn_frontiers:
        sure = {
            scenario_result.scenario: result_sureness
            for scenario_result, result_sureness in zip(
                material.results, material.sure, strict=True
            )
        }
        ranges = [sure[frontier.decode.result.scenario].range(COST) for frontier in drawn_frontiers]
        figures = [both(partial(frontier_figure, drawn_frontiers, ranges=ranges))]
        yield Section(
            "frontier",
            "What speed costs",
            (),
            figures,
            [_curve_table(material)],
            [_points_table(material), *map(frontier_table, drawn_frontiers)],
        )


def _tornado_sections(material: Material) -> Iterator[Section]:
    """Yield the section on the inputs that move each answer most."""
    tables = [sensitivity_table(tornado) for tornado in material.tornados]
    if tables:
        words = [
            "Each input moves alone to its P5 and to its P95; all others stay in the base case.",
            f"The plan is {plan_treatment(material.tornados[0])} at each end.",
        ]
        figures = _paired_pictures(
            [partial(tornado_figure, tornado) for tornado in material.tornados]
        )
        yield Section(
            "tornado", "What drives the answer", words, figures, folded=tables, paper=False
        )


def winners(material: Material) -> Iterator[Section]:
    """Yield the section on the cheapest scenario over two varied inputs.

    The two inputs decide the closest contest and are varied together.
    """
    field = material.field
    if field is None:
        return
    scenario_names = [scenario_result.scenario for scenario_result in field.results]
    tables = []
    for scenario_name, grid_rows in zip(scenario_names, field.values, strict=True):
        costs = [
            [
                "-" if np.isnan(cost_value) else f"~{significant(cost_value, 3)}"
                for cost_value in grid_row
            ]
            for grid_row in grid_rows
        ]
        cells = [
            (f"{significant(y, 3)} {field.y.unit}".rstrip(), *row_costs)
            for y, row_costs in zip(field.y.values, costs, strict=True)
        ]
        heads = (
            short_name(field.y.path),
            *(f"{significant(x, 3)} {field.x.unit}".rstrip() for x in field.x.values),
        )
        tables.append(
            Table(
                heads,
                cells,
                f"{scenario_name}: USD per million output tokens in the base case; across: "
                f"{short_name(field.x.path)}",
                align="r",
            )
        )
    words = [
        "The two inputs that decide between the closest racks move together within their ranges. "
        "The plan is re-optimised in every cell; all other inputs stay in the base case."
    ]
    yield Section(
        "map",
        "Which rack is cheapest where",
        words,
        [both(partial(map_figure, field))],
        folded=tables,
        paper=False,
    )


def _fabric_sections(material: Material) -> Iterator[Section]:
    """Yield hops and bandwidth of each scale-up fabric."""
    tables = [fabric_table(fabric.system, fabric.scopes) for fabric in material.fabrics]
    if tables:
        words = ["Hops between two chips of one scale-up domain, and the bandwidth between them."]
        figures = [
            both(
                partial(
                    fabric_figure,
                    [(fabric.system.name, fabric.scopes) for fabric in material.fabrics],
                )
            )
        ]
        yield Section("fabric", "Hops and bandwidth", words, figures, folded=tables, paper=False)


def bill(material: Material) -> Iterator[Section]:
    """Yield the section with bills of materials of whole scale-up domains.

    Each table lists the `LARGEST` dearest lines and sums the rest.
    """
    tables, drawn = [], []
    systems = {
        (fabric.system.id, str(fabric.system.variant)): fabric.system for fabric in material.fabrics
    }
    for evaluation, scenario_result in zip(material.evaluations, material.results, strict=True):
        if scenario_result.bill is None:
            continue
        if system := systems.get((scenario_result.system, str(variant_of(evaluation)))):
            drawn.append(
                partial(
                    bom_figure, system, scenario_result.bill, scenario_result.texts["terms.date"]
                )
            )
        bill_price = float(scenario_result.bill.price)
        lines = sorted(
            (line for line in scenario_result.bill.lines if line.extended),
            key=lambda line: -float(line.extended),
        )
        bill_rows = [
            (
                line.part,
                significant(line.quantity, 6),
                significant(line.unit_price),
                significant(line.extended),
                f"{float(line.extended) / bill_price * 100:.1f} %",
                line.kind + (" (own)" if line.overlay else ""),
            )
            for line in lines[:LARGEST]
        ]
        rest = sum(float(line.extended) for line in lines[LARGEST:])
        if rest:
            share = f"{rest / bill_price * 100:.1f} %"
            bill_rows.append((f"{len(lines) - LARGEST} more", "", "", significant(rest), share, ""))
        bill_rows.append(
            ("whole scale-up domain", "", "", significant(scenario_result.bill.price), "100 %", "")
        )
        tables.append(
            Table(
                ("part", "quantity", "unit USD", "USD", "share", "kind"),
                bill_rows,
                f"{scenario_result.title}: bill of materials",
                align="lrrrrl",
            )
        )
    if tables:
        words = ["Every part of one scale-up domain; its area is its price."]
        yield Section(
            "bom", "What it is made of", words, _paired_pictures(drawn), folded=tables, paper=False
        )


def sources(material: Material) -> Iterator[Section]:
    """Yield the section on the sources of inputs and their age."""
    distinct_inputs: dict[tuple[str, str], Input] = {}  # by kind and path
    for input_record in (
        input_record
        for scenario_result in material.results
        for input_record in scenario_result.inputs.values()
    ):
        distinct_inputs.setdefault((input_record.kind, input_record.path), input_record)
    dates = lists_by_key(
        (input_record.source, input_record.as_of) for input_record in distinct_inputs.values()
    )
    ages = []
    for scenario_result in material.results:
        shares = scenario_result.shares.get("hardware", {})
        kinds = (
            f"{shares[kind_name] * 100:.0f} %" if kind_name in shares else "-"
            for kind_name in ("sourced", "estimate", "assumed")
        )
        ages.append(
            (
                scenario_result.scenario,
                f"{scenario_result.ages.later * 100:.1f} %",
                f"{scenario_result.ages.older * 100:.1f} %",
                *kinds,
            )
        )
    columns = (
        "scenario",
        "prices later than the date",
        "prices older than their limit",
        "hardware price: sourced",
        "estimated",
        "assumed",
    )
    listed = _sources_table(material, dates)
    kinds_of_inputs = Counter(kind for kind, _ in distinct_inputs)
    counted = Table(
        ("kind of source", "inputs"),
        [(kind, str(count)) for kind, count in kinds_of_inputs.most_common()],
        "Inputs by kind",
        align="lr",
    )
    yield Section(
        "sources",
        "Sources and their age",
        ["The table gives shares of the hardware's price."],
        tables=[Table(columns, ages, align="lrrrrr")],
        folded=[counted, listed],
        paper=False,
    )


def _sources_table(material: Material, dates: Mapping[str, Sequence[str]]) -> Table:
    """Return the table of sources from the dates of their inputs."""
    source_rows = []
    for source, source_dates in sorted(dates.items(), key=lambda item: (-len(item[1]), item[0])):
        when = sorted(filter(None, source_dates)) or [""]
        as_of = when[0] if when[0] == when[-1] else f"{when[0]} to {when[-1]}"
        known_as = material.catalogue.sources.get(source)
        source_rows.append(
            (
                material.catalogue.source_title(source),
                str(len(source_dates)),
                as_of,
                known_as.url if known_as else "",
            )
        )
    return Table(
        ("source", "inputs", "as of", "address"), source_rows, "Every source", align="lrll"
    )


def validation(material: Material) -> Iterator[Section]:
    """Yield the section on model errors by chip on published measurements.

    Chips of this report come first.
    """
    accuracy_rows = accuracies(material.catalogue, "chips")
    ours = {fabric.system.chip for fabric in material.fabrics} | {
        anchor
        for scenario_result in material.results
        for anchor in scenario_result.standing.anchors
    }
    error_rows = []
    for accuracy_row in sorted(
        accuracy_rows,
        key=lambda accuracy_row: (
            accuracy_row["part"] not in ours,
            accuracy_row["part"],
            accuracy_row["kind"],
        ),
    ):
        errors = (
            f"{float(accuracy_row[error_name]) * 100:.0f} %" if accuracy_row[error_name] else "-"
            for error_name in ("median_ape", "p90_ape", "left_out")
        )
        error_rows.append(
            (
                accuracy_row["part"],
                measurement_kind_label(accuracy_row["kind"]),
                f"{int(accuracy_row['n']):,}",
                *errors,
                "yes" if accuracy_row["part"] in ours else "",
            )
        )
    table = Table(
        (
            "chip",
            "measured",
            "published runs",
            "median error",
            "P90 error",
            "chip unseen in the fit",
            "evidence of this report",
        ),
        error_rows,
        "Errors by chip",
        align="llrrrrl",
    )
    of_report = [row for row in accuracy_rows if row["part"] in ours] or accuracy_rows
    yield Section(
        "validation",
        "How accurate it is",
        ["The figure shows the chips of this report, and those that stand in for them."],
        [both(partial(errors_figure, of_report))] if accuracy_rows else [],
        [_evidence_table(material)],
        folded=[table],
    )


def _evidence_table(material: Material) -> Table:
    """Return the published runs that each scenario is checked on, and their median error."""
    evidence_rows = []
    for scenario_result in material.results:
        standing = scenario_result.standing
        unchecked = "none" if standing.unmeasured == "prior" else standing.unmeasured
        stand_ins = ", ".join(standing.anchors)
        evidence_rows.append(
            (
                scenario_result.scenario,
                f"{standing.validated_rows:,}" if standing.validated_rows else unchecked,
                "-" if standing.median is None else f"{standing.median * 100:.0f} %",
                f"{standing.anchored_rows:,} of {stand_ins}" if stand_ins else "-",
            )
        )
    columns = ("scenario", "published runs", "median error", "runs of stand-in chips")
    below = ["An error of 50 % and more does not prove a figure."]
    return Table(columns, evidence_rows, "", (), below, "lrrl")
