"""Figures of records that are made by hand: heights of bars, names of bars, pixels of a picture."""

from __future__ import annotations

import math
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from tco import DataError
from tco.report.figures import uncertainty as ranges
from tco.report.figures.drawing import Drawing, styled
from tco.report.figures.maps import _leads_of
from tests.report.figures import boxes, texts
from tests.scenario_helpers import result

COST = "usd_per_million_output_tokens"


# ---------------------------------------------------------------- pictures
def test_a_png_has_two_points_for_each_pixel_of_the_figure():
    drawing = Drawing("a picture", "", 400)
    drawing.axes(100)
    width, height = struct.unpack(">II", drawing.png()[16:24])
    svg_size = drawing.svg().split('viewBox="0 0 ')[1].split('"')[0].split()
    assert [width, height] == [2 * float(size) for size in svg_size]


@styled
def test_rows_of_bars_stand_their_height_below_each_other_each_under_its_name():
    drawing = Drawing("rows", "", 400)
    above = drawing.bottom
    axes = drawing.rows(["first", "second", "third"], 34.0, details=["1 to 2"])
    axes.barh([0, 1, 2], [1, 2, 3])
    name_boxes = {box[0]: box for box in boxes(drawing.svg())}
    tops = [name_boxes[name][2] for name in ("first", "second", "third")]
    assert np.diff(tops) == pytest.approx([34.0, 34.0], abs=0.1)
    assert above < tops[0] < above + 34
    assert name_boxes["1 to 2"][3] == pytest.approx(400 - 12, abs=12)


# ---------------------------------------------------------------- draws
def drawn(draws, baseline=None):
    """Draws of a cost, without the half of an evaluation that no figure reads."""
    return SimpleNamespace(
        metric_names=[COST],
        sample=SimpleNamespace(metrics={COST: np.array(draws)}, meets=np.ones(len(draws), bool)),
        evaluation=SimpleNamespace(result=result("gb200-nvl72"), name="gb200-nvl72"),
        baseline=baseline,
        drawn={},
        seed=7,
    )


def test_bars_of_a_histogram_add_up_to_all_draws_in_per_cent():
    """Draws from 1 to 4 at equal ratios; the outermost half per cent at each end is not shown."""
    draws = 4 ** (np.arange(1000) / 999)
    axes = bars_of(draws)
    heights = [bar.get_height() for bar in axes.patches]
    assert sum(heights) == pytest.approx(100.0, abs=1.0)
    assert len(heights) in {40, 41, 42}
    # at equal ratios every bar but the outermost holds as many
    assert heights[1:-1] == pytest.approx([99.0 / 40] * len(heights[1:-1]), abs=0.11)
    edges = [bar.get_x() for bar in axes.patches]
    assert np.diff(np.log(edges)) == pytest.approx([math.log(4**0.99) / 40] * (len(edges) - 1))


def bars_of(draws):
    axes = None
    real = ranges._draw_histogram

    def keep_axes(histogram_axes, *rest):
        nonlocal axes
        axes = histogram_axes
        real(histogram_axes, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_draw_histogram", keep_axes)
        drawing = ranges.range_figure(drawn(draws))
    words = " ".join(texts(drawing.svg()))
    assert f"{len(draws):,} draws" in words
    return axes


def test_draws_that_are_all_alike_have_no_histogram():
    with pytest.raises(DataError, match="has no range among the 3 draws"):
        ranges.range_figure(drawn([2.0, 2.0, 2.0, math.inf]))


@pytest.mark.parametrize(
    ("compared", "colours"),
    [(True, [ranges.WORSE, ranges.BETTER]), (False, [ranges.BETTER, ranges.BETTER])],
)
def test_costlier_bars_are_coloured_only_beside_a_baseline(compared, colours):
    axes = Drawing("bars", "", 400).axes(100)
    edges, shares = np.array([0.5, 1.0, 2.0]), np.array([30.0, 70.0])
    ranges._draw_histogram(axes, edges, shares, {"p50": 1.2}, compared)
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [
        colour.lower() for colour in colours
    ]
    # the percentile above the bars, and parity where something is compared
    assert [line.get_xdata()[0] for line in axes.lines] == [1.2, 1][: 1 + compared]
    assert axes.lines[0].get_ydata()[0] == pytest.approx(70 * 1.06)


def swing_of(at_low, at_high):
    return SimpleNamespace(at_low=at_low, at_high=at_high, meets_low=True, meets_high=True)


@pytest.mark.parametrize(
    ("at_low", "at_high", "named"),
    [
        (1.5, 3.0, ["1.50", "3.00"]),  # one end on each side: both are named
        (2.2, 3.0, ["3.00"]),  # both on the right: the farther is named
        (1.0, 1.9, ["1.00"]),
        (2.0, 2.5, ["2.50"]),  # an end where nothing moves has no bar
    ],
)
def test_the_farther_of_two_ends_on_a_side_is_named(at_low, at_high, named):
    drawing = Drawing("swings", "", 400)
    axes = drawing.rows(["price"], 34.0)
    ranges._draw_swing(axes, 0, swing_of(at_low, at_high), "price", 2.0)
    assert sorted(note.get_text() for note in axes.texts) == named
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    ends = [end for end in (at_low, at_high) if end != 2.0]
    assert spans == sorted((2.0, end) for end in ends)


# ---------------------------------------------------------------- maps
@pytest.mark.parametrize(
    ("metric", "values", "lead"),
    [
        (COST, [2.0, 3.0, 5.0], 0.5),  # the second costs half as much again
        ("output_tokens_per_s_per_chip", [200.0, 300.0, 150.0], 0.5),
        (COST, [2.0, math.nan, math.nan], math.nan),
    ],
)
def test_a_lead_is_what_the_second_costs_more_or_makes_less(metric, values, lead):
    field = SimpleNamespace(metric=metric, values=np.array(values)[:, None, None])
    assert _leads_of(field).ravel() == pytest.approx([lead], nan_ok=True)
