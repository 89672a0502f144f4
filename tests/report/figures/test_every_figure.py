"""Every figure shows its data: as many marks, at places on the scale, with words apart."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from copy import copy
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tco import frontier, sensitivity, uncertainty
from tco.catalog.accuracy import accuracy_rows
from tco.catalog.labels import short_name
from tco.comparison.input_lines import lines_of
from tco.comparison.maps import Map, MapAxis
from tco.evaluation import evaluation
from tco.report.figures.cost import cost_figure
from tco.report.figures.errors import errors_figure
from tco.report.figures.frontier import frontier_figure
from tco.report.figures.hardware import bom_figure, fabric_figure
from tco.report.figures.input_lines import lines_figure
from tco.report.figures.maps import map_figure
from tco.report.figures.money import money_figure
from tco.report.figures.performance import operators_figure, roofline_figure
from tco.report.figures.style import GRID, INK, LIGHT, MUTED
from tco.report.figures.uncertainty import range_figure, tornado_figure
from tco.report.page.sections import winners
from tco.report.performance import operators_of
from tests.catalogue import CATALOGUE
from tests.report.figures import SVG, boxes, marks, texts, tipped
from tests.report.helpers import WIDE, vendor_colours
from tests.scenario_helpers import bill_of, fabric_of, system_of
from tests.study_helpers import money_of

NARROW = 360
SHOWN = 12  # inputs of a tornado
CLOSE = 0.1  # a lead below which a cell of a map is pale
# interactivity
AGAINST = (
    "usd_per_million_output_tokens",
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_facility_mw",
)

SYSTEMS = ("trn3-nl32x2", "gb200-nvl72", "trn2-nl32x2-3d", "tpuv7-cube64")
HUNDREDTH = 0.011  # of a pixel, as places are written


@cache
def results():
    return [
        headline_evaluation.result
        for headline_evaluation in evaluation.evaluate_each(evaluation.HEADLINE, None, {})
    ]


@cache
def training():
    return evaluation.evaluate_each(["train-gpt3-175b-a100x64"], None, {}, priced=False)[0].result


@cache
def frontiers():
    return frontier(evaluation.HEADLINE)


@cache
def tornado_sensitivity():
    ends = ("20 token/s", "80 token/s")
    names = ("trn3-nl32x2", "gb200-nvl72")
    return lines_of(names, "workload.interactivity", "usd_per_million_output_tokens", ends, steps=4)


@cache
def tornado():
    return sensitivity("trn3-nl32x2", "usd_per_million_output_tokens")


@cache
def fabrics():
    inputs = [system_of(name) for name in SYSTEMS]
    return [(system_inputs.system.name, fabric_of(system_inputs)) for system_inputs in inputs]


@cache
def bill(system="trn3-nl72x2"):
    return bill_of(system)


@cache
def drawn():
    return uncertainty("mi450x-ualoe72", "gb200-nvl72", samples=400)


@cache
def money():
    rent = {"money.rent": "3 USD/chip/h", "money.deposit": "0.2", "money.debt_share": "0.5"}
    (rent_evaluation,) = evaluation.evaluate_each(["gb200-nvl72"], None, rent)
    return rent_evaluation.result, money_of(rent_evaluation.result, rent_evaluation.catalogue)


def of_bill(width, system="trn3-nl72x2"):
    system_bill = bill(system)
    return bom_figure(system_bill.system, system_bill.bill, system_bill.date, width)


@cache
def field():
    """Return a map of three scenarios: one is best on the left, one on the right, one nowhere.

    In a corner none has an answer.
    """
    x, y = np.geomspace(1, 100, 9), np.linspace(0, 4, 5)
    left, right = (
        (10 + np.log10(x) * 3 + 0 * y[:, None]).tolist(),
        (16 - np.log10(x) * 3 + 0.1 * y[:, None]).tolist(),
    )
    left[0][0] = right[0][0] = None
    third = [
        [None if column_index == row_index == 0 else 99.0 for column_index in range(9)]
        for row_index in range(5)
    ]
    axes = (
        MapAxis("site.electricity_price", "USD/kWh", 20.0, x.tolist()),
        MapAxis("terms.life", "year", 3.0, y.tolist()),
    )
    three = [
        replace(result, title=title)
        for result, title in zip(results(), ("GB200 NVL72", "MI450X", "nobody's"), strict=False)
    ]
    return Map(
        [result.title for result in three],
        "usd_per_million_output_tokens",
        *axes,
        np.array([left, right, third], dtype=float),
        three,
    )


FIGURES = {
    "frontier with ranges": lambda width: frontier_figure(
        frontiers(), width=width, ranges=[{"p10": 0.4, "p90": 30.0}] * 4
    ),
    "map": lambda width: map_figure(field(), width),
    "line": lambda width: lines_figure(tornado_sensitivity(), width),
    "cost": lambda width: cost_figure(results(), width),
    "roofline": lambda width: roofline_figure(results()[0], width),
    "roofline of training": lambda width: roofline_figure(training(), width),
    "operators": lambda width: operators_figure(results()[2], width),
    "operators of training": lambda width: operators_figure(training(), width),
    **{
        f"frontier of {metric}": lambda width, metric=metric: frontier_figure(
            frontiers(), metric, width
        )
        for metric in AGAINST
    },
    "tornado": lambda width: tornado_figure(tornado(), width),
    "range": lambda width: range_figure(drawn(), width),
    "fabric": lambda width: fabric_figure(fabrics(), width),
    "bom": of_bill,
    "money": lambda width: money_figure(*money(), width),
    "errors": lambda width: errors_figure(accuracy_rows(CATALOGUE, "chips"), width),
}


@cache
def svg_of(name, width=WIDE):
    return FIGURES[name](width).svg()


def affine(positions, values, tolerance=HUNDREDTH):
    """Say whether places are a straight line of values."""
    slope, start = np.polyfit(values, positions, 1)
    return (
        np.abs(slope * np.asarray(values) + start - positions).max() < tolerance * 3
        and abs(slope) > 0
    )


def axes_of(svg):
    """Return the scales of both axes by their printed numbers, in powers of ten: x, then y."""
    axis_scales = []
    lines = [mark for mark in marks(svg, GRID) if len(mark.corners) == 2]
    for side, anchor in ((0, "middle"), (1, "end")):
        upright = [line for line in lines if line.box[side + 2] == line.box[side]]
        grid_positions = sorted({line.corners[0][side] for line in upright})
        ticks = [
            mark
            for mark in marks(svg, MUTED, tag="text")
            if mark.style.get("text-anchor") == anchor and re.fullmatch(r"[\d,.]+", mark.words)
        ]
        near = [
            min(
                grid_positions,
                key=lambda position, tick=mark.corners[0][side]: abs(position - tick),
            )
            for mark in ticks
        ]
        values = [float(mark.words.replace(",", "")) for mark in ticks]
        assert len(values) >= 2
        assert len(set(near)) == len(near)
        axis_scales.append(np.poly1d(np.polyfit(near, np.log10(values), 1)))
    return axis_scales


# ---------------------------------------------------------------- of all
@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_document_that_stands_alone_and_says_what_it_shows(name, width):
    svg = svg_of(name, width)
    root = ET.fromstring(svg)
    _, _, wide, high = map(float, root.get("viewBox").split())
    assert (wide, float(root.get("width"))) == (width, width)
    assert root.get("role") == "img"
    title, description = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
    heading = [mark.words for mark in marks(svg, tag="text") if mark.style["font-size"] == "15px"]
    assert " ".join(heading) == title
    assert len(description) > 60
    assert len(tipped(svg)) >= 4
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    # no script, no style sheet, no picture
    assert tags <= {"svg", "title", "desc", "defs", "g", "path", "use", "text"}
    assert "var(" not in svg
    assert "url(" not in svg
    identifiers = re.findall(r' id="([^"]*)"', svg)
    assert len(set(identifiers)) == len(identifiers)
    assert set(re.findall(r'href="([^"]*)"', svg)) == {f"#{name}" for name in identifiers}
    for mark in marks(svg):
        assert mark.colour.startswith("#"), mark
        left, top, right, bottom = mark.box
        assert left >= -1, mark
        assert top >= -1, mark
        assert right <= wide + 1, mark
        assert bottom <= high + 1, mark


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("name", FIGURES)
def test_words_stay_within_the_figure_and_lie_over_no_others(name, width):
    text_boxes = boxes(svg_of(name, width))
    for words, left, _, right, _ in text_boxes:
        assert left >= -1, words
        assert right <= width + 1, words
    for (first_words, *a), (second_words, *b) in itertools.combinations(text_boxes, 2):
        assert a[2] <= b[0] + 1 or a[0] >= b[2] - 1 or a[3] <= b[1] + 1 or a[1] >= b[3] - 1, (
            first_words,
            second_words,
        )


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_data_gives_the_same_bytes(name):
    assert FIGURES[name](WIDE).svg() == svg_of(name)


# figures that a test of every run makes pixels of
RASTERED = ("cost", "map", "range")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in RASTERED else pytest.mark.thorough)
        for name in FIGURES
    ],
)
def test_the_same_data_gives_the_same_pixels(name):
    assert FIGURES[name](WIDE).png() == FIGURES[name](WIDE).png()


@pytest.mark.parametrize("name", FIGURES)
def test_no_word_is_too_small_to_read(name):
    sizes = [mark.style["font-size"] for mark in marks(svg_of(name, NARROW), tag="text")]
    assert min(float(size.removesuffix("px")) for size in sizes) >= 11


# ---------------------------------------------------------------- of each
def test_cost_bars_are_as_long_as_what_is_paid():
    rows = defaultdict(list)
    for bar in tipped(svg_of("cost")):
        rows[bar.box[1]].append(bar)
    values, lengths = [], []
    for result, row in zip(results(), rows.values(), strict=True):
        sums = defaultdict(float)
        for line in result.lines:
            sums[line.asset] += float(line.usd_per_chip_hour)
        paid_by_asset = {asset: value for asset, value in sums.items() if value}
        assert [bar.tip.partition(":")[0] for bar in row] == list(paid_by_asset)
        values += [abs(value) for value in paid_by_asset.values()]
        lengths += [bar.width for bar in row]
        paid = [bar for bar, value in zip(row, paid_by_asset.values(), strict=True) if value > 0]
        for left_bar, right_bar in itertools.pairwise(paid):
            assert left_bar.box[2] == pytest.approx(right_bar.box[0], abs=0.03)
    assert affine(lengths, values)
    for result in results():
        assert f"~{result.metrics['tco_usd_per_chip_hour']:.3g} net" in texts(svg_of("cost"))


@pytest.mark.parametrize(
    ("name", "result"), [("roofline", lambda: results()[0]), ("roofline of training", training)]
)
def test_operators_lie_under_the_roofs_where_their_work_and_traffic_put_them(name, result):
    svg, result = svg_of(name), result()
    dots = tipped(svg)
    rows = [
        operator
        for operator in operators_of(result)
        if operator.line.flops and operator.line.bytes and operator.line.time
    ]
    assert [dot.tip.partition(":")[0] for dot in dots] == [
        f"{operator.phase}, {operator.line.name}" for operator in rows
    ]
    x, y = np.array([dot.middle for dot in dots]).T
    intensity, rate = np.array(
        [
            (
                operator.line.flops / operator.line.bytes,
                operator.line.flops / operator.line.time / 1e12,
            )
            for operator in rows
        ]
    ).T
    assert affine(x, np.log(intensity))
    assert affine(y, np.log(rate))
    to_x, to_y = axes_of(svg)
    assert [to_x(pixel) for pixel in x] == pytest.approx(np.log10(intensity), abs=2e-3)
    assert [to_y(pixel) for pixel in y] == pytest.approx(np.log10(rate), abs=2e-3)
    roofs = [mark.corners for mark in marks(svg, INK, tag="path") if len(mark.corners) == 3]
    for at_x, at_y in roofs[0][:2]:  # FLOP/s of a byte of memory
        assert 10 ** (to_y(at_y) - to_x(at_x)) == pytest.approx(
            result.metrics["hbm_byte_per_s"] / 1e12, rel=2e-3
        )
    precision = result.texts["workload.precision"]
    peaks = [10 ** to_y(corners[2][1]) for corners in roofs]
    assert any(
        peak == pytest.approx(result.metrics[f"peak_{precision}_flop_per_s"] / 1e12, rel=2e-3)
        for peak in peaks
    )


@pytest.mark.parametrize("metric", AGAINST)
def test_every_point_of_every_frontier_is_drawn(metric):
    points = [point for frontier in frontiers() for point in frontier.points]
    dots = tipped(svg_of(f"frontier of {metric}"))
    assert len(dots) == len(points)
    round_ones = [(dot, point) for dot, point in zip(dots, points, strict=True) if not point.chosen]
    assert affine(
        [dot.middle[0] for dot, _ in round_ones],
        np.log([point.tokens_per_s_per_user for _, point in round_ones]),
    )
    assert affine(
        [dot.middle[1] for dot, _ in round_ones],
        np.log([getattr(point, metric) for _, point in round_ones]),
    )
    sizes = [dot.width > 6 for dot in dots]
    assert sizes == [point.chosen for point in points]


def test_every_system_of_a_frontier_has_its_name():
    for width in (NARROW, WIDE):
        for system_frontier in frontiers():
            assert system_frontier.decode.result.title in texts(
                svg_of("frontier of usd_per_million_output_tokens", width)
            )


def test_what_a_plan_may_come_to_stands_beside_the_frontiers():
    ranges = [
        {"p10": 5.0, "p50": 8.0, "p90": 20.0},
        None,
        {"p10": 0.6, "p50": 1.0, "p90": 2.0},
        None,
    ]
    svg = frontier_figure(frontiers(), ranges=ranges).svg()
    spans = [mark for mark in tipped(svg) if ": P10 " in mark.tip and mark.tag == "path"]
    assert [mark.colour for mark in spans] == [LIGHT[1], LIGHT[2]]  # Trainium, NVIDIA
    _, to_y = axes_of(svg)
    assert [10 ** to_y(y) for span in spans for _, y in span.corners] == pytest.approx(
        [5, 20, 0.6, 2], rel=5e-3
    )
    plot = max(mark.box[2] for mark in marks(svg, GRID))
    assert all(span.box[0] > plot for span in spans)
    assert "P10 to P90" in texts(svg)
    assert "P10 to P90" not in texts(svg_of("frontier of usd_per_million_output_tokens"))


def test_a_frontier_names_every_line_beside_it_or_in_its_legend():
    for width in (NARROW, WIDE):
        svg = svg_of("frontier of usd_per_million_output_tokens", width)
        lines = [mark for mark in marks(svg, tag="path") if len(mark.corners) > 5 and not mark.tip]
        for system_frontier in frontiers():
            (name,) = [box for box in boxes(svg) if box[0] == system_frontier.decode.result.title]
            for line in lines:
                for x, y in line.corners:
                    assert not (name[1] < x < name[3] and name[2] < y < name[4])


def test_systems_of_one_name_are_told_apart_by_their_scenarios():
    day_frontier, night_frontier = copy(frontiers()[0]), copy(frontiers()[0])
    night = replace(day_frontier.decode.result, scenario="trn3-nl32x2 at night")
    night_frontier.decode = night_frontier.prefill = replace(
        day_frontier.decode, evaluation=day_frontier.decode.evaluation._replace(result=night)
    )
    figure_texts = texts(frontier_figure([day_frontier, night_frontier]).svg())
    assert "trn3-nl32x2" in figure_texts
    assert "trn3-nl32x2 at night" in figure_texts
    assert day_frontier.decode.result.title not in figure_texts


def test_a_frontier_without_a_point_says_why():
    (none,) = frontier(["trn3-nl72x2"], set={"workload.ttft": "0.001 s"})
    assert not none.points
    svg = frontier_figure([*frontiers()[:1], none]).svg()
    assert none.reason in " ".join(texts(svg))
    single_svg = frontier_figure([none]).svg()
    assert none.reason in " ".join(texts(single_svg))
    assert not marks(single_svg, GRID)


def test_the_bars_of_a_tornado_reach_from_the_middle_to_both_ends():
    tornado_result, svg = tornado(), svg_of("tornado")
    ends = [
        (input_swing, side, end)
        for input_swing in [swing for swing in tornado_result.swings if swing.swing != 0][:SHOWN]
        for side, end in (("low", input_swing.at_low), ("high", input_swing.at_high))
        if end is not None and end != tornado_result.centre
    ]
    bars = {bar.tip.rpartition(":")[0]: bar for bar in tipped(svg)}
    assert set(bars) == {
        f"{short_name(input_swing.input_record.path)} at its {side}"
        for input_swing, side, _ in ends
    }
    far = [
        bar.box[2 if end > tornado_result.centre else 0]
        for (input_swing, side, end) in ends
        for bar in [bars[f"{short_name(input_swing.input_record.path)} at its {side}"]]
    ]
    assert affine(far, [end for _, _, end in ends])
    assert {bar.colour for key, bar in bars.items() if key.endswith("low")} == {LIGHT[1]}


def test_a_tornado_without_an_answer_at_an_end_has_no_bar_there():
    tornado_result = replace(
        tornado(),
        swings=[
            tornado().swings[0]._replace(at_high=None, meets_high=False),
            *tornado().swings[1:],
        ],
    )
    svg = tornado_figure(tornado_result).svg()
    path = tornado_result.swings[0].input_record.path
    assert f"{short_name(path)} at its high" not in " ".join(bar.tip for bar in tipped(svg))
    assert "! the workload's targets are not met there." in texts(svg)


def test_fabrics_show_injection_all_to_all_and_hops_of_every_scope():
    svg = svg_of("fabric")
    scopes = []
    for _, both in fabrics():
        same = (
            len(
                {
                    (
                        scope.chips,
                        scope.injection,
                        scope.all_to_all,
                        scope.hops_mean,
                        scope.hops_worst,
                    )
                    for scope in both
                }
            )
            == 1
        )
        scopes += both[:1] if same else both
    injected = [mark for mark in tipped(svg) if "injection" in mark.tip]
    reached = [mark for mark in tipped(svg) if "all-to-all" in mark.tip]
    assert len(injected) == len(reached) == len(scopes)
    lengths = [mark.width for mark in (*injected, *reached)]
    assert affine(
        lengths,
        [
            float(value) / 1e9
            for value in (*(s.injection for s in scopes), *(s.all_to_all for s in scopes))
        ],
    )
    hops = [
        mark.middle[0]
        for word in ("on average", "at most")
        for mark in tipped(svg)
        if word in mark.tip
    ]
    assert affine(
        hops,
        [
            float(value)
            for value in (*(s.hops_mean for s in scopes), *(s.hops_worst for s in scopes))
        ],
    )


@pytest.mark.parametrize("system", ["trn3-nl72x2", "gb200-nvl72", "h100-hgx8"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_areas_of_a_bill_are_its_prices_and_fill_the_map(system, width):
    lines = [
        line
        for line in bill(system).bill.lines
        if line.extended is not None and float(line.extended) > 0
    ]
    rectangles = tipped(of_bill(width, system).svg())
    prices = sorted(float(line.extended) for line in lines)
    areas = sorted(rectangle.width * rectangle.height for rectangle in rectangles)
    total_price = sum(prices)
    assert len(rectangles) == len(lines)
    assert np.allclose(np.array(areas) / sum(areas), np.array(prices) / total_price, atol=2e-4)
    lefts, tops, rights, bottoms = np.array([rectangle.box for rectangle in rectangles]).T
    room = (rights.max() - lefts.min()) * (bottoms.max() - tops.min())
    assert sum(areas) == pytest.approx(room, rel=1e-3)
    for first_rectangle, second_rectangle in itertools.combinations(rectangles, 2):
        wide = min(first_rectangle.box[2], second_rectangle.box[2]) - max(
            first_rectangle.box[0], second_rectangle.box[0]
        )
        high = min(first_rectangle.box[3], second_rectangle.box[3]) - max(
            first_rectangle.box[1], second_rectangle.box[1]
        )
        assert wide < 0.03 or high < 0.03, (first_rectangle.tip, second_rectangle.tip)


@pytest.mark.parametrize(
    ("name", "result"), [("operators", lambda: results()[2]), ("operators of training", training)]
)
def test_the_bars_of_operators_are_their_shares(name, result):
    rows = operators_of(result())
    bars = tipped(svg_of(name))
    assert [bar.tip.partition(":")[0] for bar in bars] == [
        f"{operator.phase}, {operator.line.name}" for operator in rows
    ]
    assert affine([bar.width for bar in bars], [operator.share for operator in rows])
    looks = {(operator.line.bound, bar.colour) for operator, bar in zip(rows, bars, strict=True)}
    assert len(looks) == len({bound for bound, _ in looks}) == len({look for _, look in looks})


def test_the_histogram_counts_the_draws_and_is_cut_at_the_baseline():
    sample_result, svg = drawn(), svg_of("range")
    drawn_ratios = sample_result.sample.metrics["perf_per_tco_vs_baseline"]
    finite_ratios = drawn_ratios[np.isfinite(drawn_ratios)]
    bars = tipped(svg)
    shares = [float(bar.tip.rpartition(": ")[2].rstrip(" %")) for bar in bars]
    inside = np.percentile(finite_ratios, [0.5, 99.5])
    assert sum(shares) >= 100 * np.mean(
        (finite_ratios >= inside[0]) & (finite_ratios <= inside[1])
    ) - 0.1 * len(bars)
    assert affine([bar.height for bar in bars], shares, tolerance=2)
    worse = sum(share for share, bar in zip(shares, bars, strict=True) if bar.colour == LIGHT[1])
    assert worse == pytest.approx(
        100 * np.mean((finite_ratios <= 1) & (finite_ratios >= inside[0])), abs=1.5
    )
    at_one = next(bar.box[0] for bar in bars if bar.colour == LIGHT[0])
    (line,) = [mark for mark in marks(svg) if "stroke-dasharray" in mark.style]
    assert line.box[0] == pytest.approx(at_one, abs=0.02)


def test_the_errors_of_every_chip_are_drawn():
    rows = accuracy_rows(CATALOGUE, "chips")
    medians = [mark for mark in tipped(svg_of("errors")) if mark.colour == LIGHT[0]]
    assert len(medians) == len(rows)
    values = [float(mark.tip.rpartition("error ")[2].rstrip(" %")) for mark in medians]
    assert sorted(values) == pytest.approx(
        sorted(round(float(row["median_ape"]) * 100, 1) for row in rows), abs=0.06
    )
    assert affine([mark.middle[0] for mark in medians], values, tolerance=0.2)
    assert len([mark for mark in tipped(svg_of("errors")) if mark.colour == LIGHT[1]]) == sum(
        bool(row["left_out"]) for row in rows
    )


def test_money_without_payments_has_axes_and_no_line():
    scenario_result, cash_flow = money()
    svg = money_figure(scenario_result, cash_flow._replace(payments=[]), WIDE).svg()
    assert "0 million USD paid in the end, less what comes in; in month 0 0." in svg
    assert tipped(svg) == []


def test_money_shows_every_year_and_the_sum_of_all_payments():
    _, cash_flow = money()
    svg = svg_of("money")
    years = defaultdict(float)
    for payment in cash_flow.payments:
        years[(-(-payment.month // 12), float(payment.usd) < 0)] += float(payment.usd) / 1e6
    bars = tipped(svg)
    assert len(bars) == len(years)
    assert affine([bar.height for bar in bars], [abs(usd) for _, usd in sorted(years.items())])
    assert [bar.colour == LIGHT[0] for bar in bars] == [below for _, below in sorted(years)]
    (line,) = [mark for mark in marks(svg, INK, tag="path") if len(mark.corners) > 9]
    zero = bars[0].box[3]
    tallest = max(bars, key=lambda bar: bar.height)
    per_million = tallest.height / max(map(abs, years.values()))
    assert (zero - line.corners[-1][1]) / per_million == pytest.approx(
        sum(float(payment.usd) for payment in cash_flow.payments) / 1e6, rel=1e-3
    )
    assert len(line.corners) == 2 * len({payment.month for payment in cash_flow.payments}) + 1


def test_table_of_a_map_has_a_dash_where_a_scenario_has_no_answer():
    (section,) = winners(SimpleNamespace(field=field()))
    assert [table.rows[0][1] for table in section.folded] == ["-", "-", "-"]
    assert not any("~-" in cell for table in section.folded for row in table.rows for cell in row)


def test_a_map_shows_in_every_cell_who_is_best_there():
    field_map, svg = field(), svg_of("map")
    figures = np.array(field_map.values, dtype=float)
    colours = [LIGHT[number - 1] for number in vendor_colours(field_map.results)]
    *cells, today = tipped(svg)
    answered_cells = [
        (y, x) for y in range(5) for x in range(9) if not np.isnan(figures[:, y, x]).all()
    ]
    assert len(cells) == len(answered_cells) == 44
    for cell, (y, x) in zip(cells, answered_cells, strict=True):
        best, second, _ = np.sort(figures[:, y, x])
        winner = int(np.nanargmin(figures[:, y, x]))
        assert cell.colour == colours[winner]
        assert ("opacity" in cell.style) == (second / best - 1 < CLOSE)
        assert cell.tip.partition(": ")[2].startswith(field_map.results[winner].title)
    middles = {
        x: cell.middle[0] for cell, (y, x) in zip(cells, answered_cells, strict=True) if y == 2
    }
    assert affine(list(middles.values()), np.log([field_map.x.values[x] for x in middles]))
    heights = [cell.middle[1] for cell, (y, x) in zip(cells, answered_cells, strict=True) if x == 4]
    assert affine(heights, field_map.y.values)
    assert today.tip == "base case"
    assert np.polyval(
        np.polyfit(np.log([field_map.x.values[x] for x in middles]), list(middles.values()), 1),
        np.log(20),
    ) == pytest.approx(today.middle[0], abs=0.03)
    assert {"GB200 NVL72", "MI450X"} < set(texts(svg))
    assert "nobody's" not in texts(svg)


def test_a_map_of_more_is_better_takes_the_largest():
    turned = replace(field(), metric="output_tokens_per_s_per_chip")
    colours = {cell.colour for cell in tipped(map_figure(turned).svg()) if cell.tip != "base case"}
    assert colours == {LIGHT[2]}


def test_a_long_name_is_shortened_in_the_legend_of_a_map():
    first, *other_results = field().results
    long = replace(
        field(),
        results=[
            replace(first, title="a name that is much longer than any figure of a phone is wide"),
            *other_results,
        ],
    )
    svg = map_figure(long, NARROW).svg()
    assert "MI450X" in texts(svg)
    assert any(words.startswith("a name that is") and words[-1] == "…" for words in texts(svg))
    assert all(right <= NARROW for _, _, _, right, _ in boxes(svg))
    legend = [mark for mark in marks(svg, tag="use") if not mark.tip]
    assert [mark.colour for mark in legend] == [LIGHT[1], LIGHT[5]]  # both of Trainium


def test_points_of_a_line_lie_at_the_scale_of_their_values():
    dots = [mark for mark in tipped(svg_of("line")) if mark.tag == "use"]
    points = tornado_sensitivity().points
    assert len(dots) == len(points) == 10  # four values and today's, of two systems
    pixels = np.array([mark.middle for mark in dots])
    coordinates = np.array([(point.value, point.metric) for point in points])
    for values, shifts, direction in zip(coordinates.T, pixels.T, (1, -1), strict=True):
        slope, base = np.polyfit(values, shifts, 1)
        assert np.sign(slope) == direction
        assert shifts == pytest.approx(base + slope * values, abs=0.5)


def test_the_line_of_the_base_case_is_named_and_an_axis_without_zero_is_said():
    def drawn_lines(path, ends):
        names = ("trn3-nl32x2", "gb200-nvl72")
        svg = lines_figure(
            lines_of(names, path, "usd_per_million_output_tokens", ends, steps=4)
        ).svg()
        return texts(svg), " ".join(texts(svg))

    without_zero = "The vertical axis does not start at 0."
    words, text = drawn_lines("parts.trn3.price", ("3000 USD", "6000 USD"))
    assert "base case" in words
    assert without_zero in text
    words, text = drawn_lines("terms.life", ("1 year", "15 year"))
    assert "0" in words  # a number of the axis
    assert without_zero not in text
    words, _ = drawn_lines("parts.trn3.price", ("5000 USD", "6000 USD"))
    assert "base case" not in words  # it lies outside


def test_map_is_drawn_to_the_byte_as_kept(file_regression):
    # of data that no catalogue moves
    file_regression.check(svg_of("map", NARROW), extension=".svg", basename="map")
