"""Every figure shows the data it was given: as many marks, at places that are the scale of the
values, and words that lie apart.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from copy import copy
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tco import frontier, sensitivity, uncertainty
from tco.catalog.accuracy import accuracy_rows
from tco.catalog.labels import short_name
from tco.comparison.maps import Map, MapAxis
from tco.evaluation import evaluation
from tco.report.figures.cost import cost_figure, money_figure
from tco.report.figures.errors import errors_figure
from tco.report.figures.frontier import frontier_figure
from tco.report.figures.hardware import bom_figure, fabric_figure
from tco.report.figures.maps import map_figure
from tco.report.figures.performance import operators_figure, roofline_figure
from tco.report.figures.uncertainty import range_figure, tornado_figure
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
    return [one.result for one in evaluation.evaluate_each(evaluation.HEADLINE, None, {})]


@cache
def training():
    return evaluation.evaluate_each(["train-gpt3-175b-a100x64"], None, {}, priced=False)[0].result


@cache
def frontiers():
    return frontier(evaluation.HEADLINE)


@cache
def tornado():
    return sensitivity("trn3-nl32x2", "usd_per_million_output_tokens")


@cache
def fabrics():
    inputs = [system_of(name) for name in SYSTEMS]
    return [(one.system.name, fabric_of(one)) for one in inputs]


@cache
def bill(system="trn3-nl72x2"):
    return bill_of(system)


@cache
def drawn():
    return uncertainty("mi450x-ualoe72", "gb200-nvl72", samples=400)


@cache
def money():
    rent = {"money.rent": "3 USD/chip/h", "money.deposit": "0.2", "money.debt_share": "0.5"}
    (asked,) = evaluation.evaluate_each(["gb200-nvl72"], None, rent)
    return asked.result, money_of(asked.result, asked.catalogue)


def of_bill(width, system="trn3-nl72x2"):
    made = bill(system)
    return bom_figure(made.system, made.bill, made.date, width)


@cache
def field():
    """Return a field of three scenarios: one is best on the left, one on the right, one nowhere; in
    a corner none has an answer.
    """
    x, y = np.geomspace(1, 100, 9), np.linspace(0, 4, 5)
    left, right = (
        (10 + np.log10(x) * 3 + 0 * y[:, None]).tolist(),
        (16 - np.log10(x) * 3 + 0.1 * y[:, None]).tolist(),
    )
    left[0][0] = right[0][0] = None
    third = [[None if at == other == 0 else 99.0 for at in range(9)] for other in range(5)]
    axes = (
        MapAxis("site.electricity_price", "USD/kWh", 20.0, x.tolist()),
        MapAxis("terms.life", "year", 3.0, y.tolist()),
    )
    three = [
        replace(one, title=title)
        for one, title in zip(results(), ("GB200 NVL72", "MI450X", "nobody's"), strict=False)
    ]
    return Map(
        [one.title for one in three],
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
    return FIGURES[name](width)


def affine(places, values, tolerance=HUNDREDTH):
    """Say whether places are a straight line of values."""
    slope, start = np.polyfit(values, places, 1)
    return (
        np.abs(slope * np.asarray(values) + start - places).max() < tolerance * 3 and abs(slope) > 0
    )


def middle(mark):
    """Return the middle of a point, whatever its shape."""
    if mark.tag == "circle":
        return mark.at["cx"], mark.at["cy"]
    corners = np.array(mark.points)
    return tuple(corners.mean(axis=0))


def axes_of(svg):
    """Return what a reader of the numbers on both axes takes a place to be, in powers of ten: x,
    then y.
    """
    found = []
    for coordinate, anchor, shift in (("x", "middle", 0), ("y", "end", 4)):
        ticks = [
            one
            for one in marks(svg, "muted", tag="text")
            if one.element.get("text-anchor") == anchor and one.words.replace(",", "").isdigit()
        ]
        places = [one.at[coordinate] - shift for one in ticks]
        lines = [one.at[f"{coordinate}1"] for one in marks(svg, "axis", "grid", tag="line")]
        kept = [
            (at, float(one.words.replace(",", "")))
            for at, one in zip(places, ticks, strict=True)
            if min(abs(at - line) for line in lines) < 0.02
        ]
        assert len(kept) >= 2
        found.append(
            np.poly1d(np.polyfit([at for at, _ in kept], np.log10([value for _, value in kept]), 1))
        )
    return found


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
    assert " ".join(texts(svg)).startswith(title)
    assert len(description) > 60
    assert len(tipped(svg)) >= 4
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    # no script, no style, no picture
    assert tags <= {
        "svg",
        "title",
        "desc",
        "rect",
        "line",
        "polyline",
        "polygon",
        "circle",
        "text",
        "tspan",
    }
    assert "var(" not in svg
    assert "href" not in svg
    for mark in marks(svg):
        assert mark.look, mark
        edges = [
            (mark.at[x], mark.at[y])
            for x, y in (("x", "y"), ("cx", "cy"), ("x1", "y1"), ("x2", "y2"))
            if x in mark.at and y in mark.at
        ]
        for x, y in [*mark.points, *edges]:
            assert -1 <= x <= wide + 1, mark
            assert -1 <= y <= high + 1, mark
        assert all(value >= 0 for key, value in mark.at.items() if key in ("width", "height", "r"))


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("name", FIGURES)
def test_words_stay_within_the_figure_and_lie_over_no_others(name, width):
    found = boxes(svg_of(name, width))
    for words, left, _, right, _ in found:
        assert left >= -1, words
        assert right <= width + 1, words
    for (one, *a), (other, *b) in itertools.combinations(found, 2):
        assert a[2] <= b[0] + 1 or a[0] >= b[2] - 1 or a[3] <= b[1] + 1 or a[1] >= b[3] - 1, (
            one,
            other,
        )


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_data_gives_the_same_bytes(name):
    assert FIGURES[name](WIDE) == svg_of(name)


@pytest.mark.parametrize("name", FIGURES)
def test_no_word_is_too_small_to_read(name):
    assert min(one.at["font-size"] for one in marks(svg_of(name, NARROW), tag="text")) >= 11


# ---------------------------------------------------------------- of each
def test_cost_bars_are_as_long_as_what_is_paid():
    bars = [one for one in tipped(svg_of("cost")) if one.tag == "rect"]
    rows = defaultdict(list)
    for bar in bars:
        rows[bar.at["y"]].append(bar)
    values, lengths = [], []
    for result, row in zip(results(), rows.values(), strict=True):
        sums = defaultdict(float)
        for line in result.lines:
            sums[line.asset] += float(line.usd_per_chip_hour)
        kept = {asset: value for asset, value in sums.items() if value}
        assert [bar.tip.partition(":")[0] for bar in row] == list(kept)
        values += [abs(value) for value in kept.values()]
        lengths += [bar.at["width"] for bar in row]
        paid = [bar for bar, value in zip(row, kept.values(), strict=True) if value > 0]
        for one, other in itertools.pairwise(paid):
            assert one.at["x"] + one.at["width"] == pytest.approx(other.at["x"], abs=0.03)
    assert affine(lengths, values)
    for result in results():
        assert f"~{result.metrics['tco_usd_per_chip_hour']:.3g} net" in texts(svg_of("cost"))


@pytest.mark.parametrize(
    ("name", "result"), [("roofline", lambda: results()[0]), ("roofline of training", training)]
)
def test_operators_lie_under_the_roofs_where_their_work_and_traffic_put_them(name, result):
    svg, result = svg_of(name), result()
    dots = [one for one in tipped(svg) if one.look.startswith("dot-")]
    rows = [
        one for one in operators_of(result) if one.line.flops and one.line.bytes and one.line.time
    ]
    assert [dot.tip.partition(":")[0] for dot in dots] == [
        f"{one.phase}, {one.line.name}" for one in rows
    ]
    x, y = np.array([middle(dot) for dot in dots]).T
    intensity, rate = np.array(
        [(one.line.flops / one.line.bytes, one.line.flops / one.line.time / 1e12) for one in rows]
    ).T
    assert affine(x, np.log(intensity))
    assert affine(y, np.log(rate))
    to_x, to_y = axes_of(svg)
    assert [to_x(place) for place in x] == pytest.approx(np.log10(intensity), abs=2e-3)
    assert [to_y(place) for place in y] == pytest.approx(np.log10(rate), abs=2e-3)
    for at_x, at_y in marks(svg, "rule")[0].points:  # FLOP/s of a byte of memory
        assert 10 ** (to_y(at_y) - to_x(at_x)) == pytest.approx(
            result.metrics["hbm_byte_per_s"] / 1e12, rel=2e-3
        )
    precision = result.texts["workload.precision"]
    peaks = [10 ** to_y(one.points[0][1]) for one in marks(svg, "rule")[1:]]
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
        [middle(dot)[0] for dot, _ in round_ones],
        np.log([point.tokens_per_s_per_user for _, point in round_ones]),
    )
    assert affine(
        [middle(dot)[1] for dot, _ in round_ones],
        np.log([getattr(point, metric) for _, point in round_ones]),
    )
    sizes = [dot.at.get("r", 99) > 3 for dot in dots]
    assert sizes == [point.chosen for point in points]


def test_every_system_of_a_frontier_has_its_name():
    for width in (NARROW, WIDE):
        for one in frontiers():
            assert one.decode.result.title in texts(
                svg_of("frontier of usd_per_million_output_tokens", width)
            )


def test_what_a_plan_may_come_to_stands_beside_the_frontiers():
    ranges = [
        {"p10": 5.0, "p50": 8.0, "p90": 20.0},
        None,
        {"p10": 0.6, "p50": 1.0, "p90": 2.0},
        None,
    ]
    svg = frontier_figure(frontiers(), ranges=ranges)
    spans = [one for one in tipped(svg) if one.tag == "polyline"]
    assert [one.look for one in spans] == ["line-2", "line-3"]  # Trainium, NVIDIA
    _, to_y = axes_of(svg)
    assert [10 ** to_y(y) for one in spans for _, y in one.points] == pytest.approx(
        [5, 20, 0.6, 2], rel=5e-3
    )
    plot = max(mark.at["x2"] for mark in marks(svg, "grid"))
    assert all(x > plot for one in spans for x, _ in one.points)
    assert "P10 to P90" in texts(svg)
    assert "P10 to P90" not in texts(svg_of("frontier of usd_per_million_output_tokens"))


def test_systems_of_one_name_are_told_apart_by_their_scenarios():
    one, other = copy(frontiers()[0]), copy(frontiers()[0])
    night = replace(one.decode.result, scenario="trn3-nl32x2 at night")
    other.decode = other.prefill = replace(
        one.decode, asked=one.decode.asked._replace(result=night)
    )
    said = texts(frontier_figure([one, other]))
    assert "trn3-nl32x2" in said
    assert "trn3-nl32x2 at night" in said
    assert one.decode.result.title not in said


def test_a_frontier_without_a_point_says_why():
    (none,) = frontier(["trn3-nl72x2"], set={"workload.ttft": "0.001 s"})
    assert not none.points
    svg = frontier_figure([*frontiers()[:1], none])
    assert none.reason in " ".join(texts(svg))
    alone = frontier_figure([none])
    assert none.reason in " ".join(texts(alone))
    assert not marks(alone, "axis", "grid")


def test_the_bars_of_a_tornado_reach_from_the_middle_to_both_ends():
    found, svg = tornado(), svg_of("tornado")
    ends = [
        (one, side, end)
        for one in [swing for swing in found.swings if swing.swing != 0][:SHOWN]
        for side, end in (("low", one.at_low), ("high", one.at_high))
        if end is not None and end != found.centre
    ]
    bars = {bar.tip.rpartition(":")[0]: bar for bar in tipped(svg)}
    assert set(bars) == {f"{short_name(one.given.path)} at its {side}" for one, side, _ in ends}
    far = [
        bar.at["x"] + (bar.at["width"] if end > found.centre else 0)
        for (one, side, end) in ends
        for bar in [bars[f"{short_name(one.given.path)} at its {side}"]]
    ]
    assert affine(far, [end for _, _, end in ends])
    assert {bar.look for key, bar in bars.items() if key.endswith("low")} == {"fill-2"}


def test_a_tornado_without_an_answer_at_an_end_has_no_bar_there():
    found = replace(
        tornado(),
        swings=[
            tornado().swings[0]._replace(at_high=None, meets_high=False),
            *tornado().swings[1:],
        ],
    )
    svg = tornado_figure(found)
    path = found.swings[0].given.path
    assert f"{short_name(path)} at its high" not in " ".join(bar.tip for bar in tipped(svg))
    assert "! the workload's targets are not met there." in texts(svg)


def test_fabrics_show_injection_all_to_all_and_hops_of_every_scope():
    svg = svg_of("fabric")
    scopes = []
    for _, both in fabrics():
        same = (
            len(
                {
                    (one.chips, one.injection, one.all_to_all, one.hops_mean, one.hops_worst)
                    for one in both
                }
            )
            == 1
        )
        scopes += both[:1] if same else both
    injected = [one for one in tipped(svg) if "injection" in one.tip]
    reached = [one for one in tipped(svg) if "all-to-all" in one.tip]
    assert len(injected) == len(reached) == len(scopes)
    lengths = [one.at["width"] for one in (*injected, *reached)]
    assert affine(
        lengths,
        [
            float(value) / 1e9
            for value in (*(s.injection for s in scopes), *(s.all_to_all for s in scopes))
        ],
    )
    hops = [
        middle(one)[0]
        for word in ("on average", "at worst")
        for one in tipped(svg)
        if word in one.tip
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
    rectangles = tipped(of_bill(width, system))
    prices = sorted(float(line.extended) for line in lines)
    areas = sorted(one.at["width"] * one.at["height"] for one in rectangles)
    whole = sum(prices)
    assert len(rectangles) == len(lines)
    assert np.allclose(np.array(areas) / sum(areas), np.array(prices) / whole, atol=2e-4)
    left, right = (
        min(one.at["x"] for one in rectangles),
        max(one.at["x"] + one.at["width"] for one in rectangles),
    )
    top, bottom = (
        min(one.at["y"] for one in rectangles),
        max(one.at["y"] + one.at["height"] for one in rectangles),
    )
    assert sum(areas) == pytest.approx((right - left) * (bottom - top), rel=1e-3)
    for one, other in itertools.combinations(rectangles, 2):
        wide = min(one.at["x"] + one.at["width"], other.at["x"] + other.at["width"]) - max(
            one.at["x"], other.at["x"]
        )
        high = min(one.at["y"] + one.at["height"], other.at["y"] + other.at["height"]) - max(
            one.at["y"], other.at["y"]
        )
        assert wide < 0.03 or high < 0.03, (one.tip, other.tip)


@pytest.mark.parametrize(
    ("name", "result"), [("operators", lambda: results()[2]), ("operators of training", training)]
)
def test_the_bars_of_operators_are_their_shares(name, result):
    rows = operators_of(result())
    bars = tipped(svg_of(name))
    assert [bar.tip.partition(":")[0] for bar in bars] == [
        f"{one.phase}, {one.line.name}" for one in rows
    ]
    assert affine([bar.at["width"] for bar in bars], [one.share for one in rows])
    looks = {(one.line.bound, bar.look) for one, bar in zip(rows, bars, strict=True)}
    assert len(looks) == len({bound for bound, _ in looks}) == len({look for _, look in looks})


def test_the_histogram_counts_the_draws_and_is_cut_at_the_baseline():
    found, svg = drawn(), svg_of("range")
    many = found.sample.metrics["perf_per_tco_vs_baseline"]
    kept = many[np.isfinite(many)]
    bars = tipped(svg)
    shares = [float(bar.tip.rpartition(": ")[2].rstrip(" %")) for bar in bars]
    inside = np.percentile(kept, [0.5, 99.5])
    assert sum(shares) >= 100 * np.mean((kept >= inside[0]) & (kept <= inside[1])) - 0.1 * len(bars)
    assert affine([bar.at["height"] for bar in bars], shares, tolerance=2)
    worse = sum(share for share, bar in zip(shares, bars, strict=True) if bar.look == "fill-2")
    assert worse == pytest.approx(100 * np.mean((kept <= 1) & (kept >= inside[0])), abs=1.5)
    at_one = next(bar.at["x"] for bar in bars if bar.look == "fill-1")
    (line,) = marks(svg, "dashed")
    assert line.at["x1"] == pytest.approx(at_one, abs=0.02)


def test_the_errors_of_every_chip_are_drawn():
    rows = accuracy_rows(CATALOGUE, "chips")
    medians = [one for one in tipped(svg_of("errors")) if one.look == "dot-1"]
    assert len(medians) == len(rows)
    values = [float(one.tip.rpartition("error ")[2].rstrip(" %")) for one in medians]
    assert sorted(values) == pytest.approx(
        sorted(round(float(row["median_ape"]) * 100, 1) for row in rows), abs=0.06
    )
    assert affine([middle(one)[0] for one in medians], values, tolerance=0.2)
    assert len([one for one in tipped(svg_of("errors")) if one.look == "hollow"]) == sum(
        bool(row["left_out"]) for row in rows
    )


def test_money_shows_every_year_and_the_sum_of_all_payments():
    _, found = money()
    svg = svg_of("money")
    years = defaultdict(float)
    for one in found.payments:
        years[(-(-one.month // 12), float(one.usd) < 0)] += float(one.usd) / 1e6
    bars = tipped(svg)
    assert len(bars) == len(years)
    assert affine(
        [bar.at["height"] for bar in bars], [abs(usd) for _, usd in sorted(years.items())]
    )
    assert [bar.look == "fill-1" for bar in bars] == [
        below for (_, below), _ in sorted(years.items())
    ]
    (line,) = [one for one in marks(svg, "rule") if one.tag == "polyline"]
    zero = [one for one in marks(svg, "axis") if one.at["y1"] == one.at["y2"]][-1].at["y1"]
    tallest = max(bars, key=lambda bar: bar.at["height"])
    per_million = tallest.at["height"] / max(map(abs, years.values()))
    assert (zero - line.points[-1][1]) / per_million == pytest.approx(
        sum(float(one.usd) for one in found.payments) / 1e6, rel=1e-3
    )
    assert len(line.points) == 2 * len({one.month for one in found.payments})


def test_a_map_shows_in_every_cell_who_is_best_there():
    found, svg = field(), svg_of("map")
    figures, colours = np.array(found.values, dtype=float), vendor_colours(found.results)
    cells = [one for one in tipped(svg) if one.tag == "rect"]
    places = [(y, x) for y in range(5) for x in range(9) if not np.isnan(figures[:, y, x]).all()]
    assert len(cells) == len(places) == 44
    for cell, (y, x) in zip(cells, places, strict=True):
        best, second, _ = np.sort(figures[:, y, x])
        winner = int(np.nanargmin(figures[:, y, x]))
        assert cell.look == f"{'pale' if second / best - 1 < CLOSE else 'fill'}-{colours[winner]}"
        assert cell.tip.partition(": ")[2].startswith(found.results[winner].title)
    middles = {
        x: cell.at["x"] + cell.at["width"] / 2
        for cell, (y, x) in zip(cells, places, strict=True)
        if y == 2
    }
    assert affine(list(middles.values()), np.log([found.x.values[x] for x in middles]))
    heights = [
        cell.at["y"] + cell.at["height"] / 2
        for cell, (y, x) in zip(cells, places, strict=True)
        if x == 4
    ]
    assert affine(heights, found.y.values)
    (today,) = [one for one in tipped(svg) if one.tip == "today"]
    assert np.polyval(
        np.polyfit(np.log([found.x.values[x] for x in middles]), list(middles.values()), 1),
        np.log(20),
    ) == pytest.approx(middle(today)[0], abs=0.03)
    assert {"GB200 NVL72", "MI450X"} < set(texts(svg))
    assert "nobody's" not in texts(svg)


def test_a_map_of_more_is_better_takes_the_largest():
    turned = replace(field(), metric="output_tokens_per_s_per_chip")
    looks = {one.look for one in tipped(map_figure(turned)) if one.tag == "rect"}
    assert looks == {"fill-3"}


def test_a_map_whose_areas_are_too_small_for_their_names_has_a_legend():
    first, *others = field().results
    long = replace(
        field(),
        results=[
            replace(first, title="a name that is much longer than any area of the map is wide"),
            *others,
        ],
    )
    svg = map_figure(long, NARROW)
    assert "MI450X" in texts(svg)
    # both of Trainium
    assert [one.look for one in marks(svg, tag="polygon")][:2] == [
        "fill-2",
        "fill-6",
    ]


def test_one_figure_to_the_byte(file_regression):
    # of data that no catalogue moves
    file_regression.check(svg_of("map", NARROW), extension=".svg", basename="map")
