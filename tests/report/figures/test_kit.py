"""The kit: scales that keep order, ticks that are round, words that fit, colours that all can tell
apart.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tco.report.figures.scales import Linear, Log, separated_positions
from tco.report.figures.svg import (
    Drawing,
    Labels,
    box_of,
    format_coordinate,
    truncate_to_width,
    wrapped,
)

from tco.report.figures import style
from tests.report.helpers import text_width

SHAPES = ("circle", "square", "diamond", "triangle")

NUMBERS = st.floats(-1e9, 1e9)
ABOVE_NOUGHT = st.floats(1e-6, 1e12)


def is_round(value):
    """Say whether a number is 1, 2, 3 or 5 times a power of ten, or a multiple of such a step of
    few digits.
    """
    digits = f"{abs(value):.12e}".split("e")[0].rstrip("0").rstrip(".")
    return value == 0 or len(digits) <= 4


# ---------------------------------------------------------------- scales
@given(st.lists(NUMBERS, min_size=2), st.integers(2, 12))
def test_a_linear_scale_spans_its_values_and_its_ticks_are_even_and_few(values, most):
    if max(values) - min(values) < 1e-6 * max(1.0, *map(abs, values)):
        return
    scale = Linear.over(values, 10, 200)
    assert scale.position_of(min(values)) == pytest.approx(10)
    assert scale.position_of(max(values)) == pytest.approx(200)
    ticks = scale.ticks(most)
    assert len(ticks) <= most + 1
    slack = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - slack <= tick <= scale.high + slack for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[:1])


@given(st.lists(NUMBERS, min_size=1), st.integers(2, 10))
def test_the_ends_of_a_rounded_scale_are_ticks(values, most):
    scale = Linear.rounded(values, 0, 100, most)
    slack = 1e-6 * (scale.high - scale.low)
    assert scale.low <= min(values) + slack
    assert scale.high >= max(values) - slack
    assert scale.high > scale.low


@given(st.lists(ABOVE_NOUGHT, min_size=1), st.integers(2, 10))
def test_a_scale_of_ratios_holds_its_values_and_ticks_at_round_numbers(values, most):
    scale = Log.over(values, 300, 20)
    assert all(20 <= scale.position_of(value) <= 300 for value in values)
    ticks = scale.ticks(most)
    assert len(ticks) <= most
    assert all(is_round(tick) and scale.holds(tick) for tick in ticks)
    for low, high in itertools.pairwise(ticks):
        assert scale.position_of(low) > scale.position_of(high)  # it grows upwards


def test_equal_ratios_are_equal_distances():
    scale = Log(1, 1000, 0, 300)
    assert [scale.position_of(value) for value in (1, 10, 100, 1000)] == pytest.approx(
        [0, 100, 200, 300]
    )
    assert scale.ticks(4) == [1, 10, 100, 1000]
    assert scale.ticks(10) == pytest.approx([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    # a range in which no 1, 2 or 5 lies
    assert Log(210, 290, 0, 300).ticks(5) == pytest.approx([220, 240, 260, 280])


@given(st.lists(st.floats(0, 400), min_size=1, max_size=12))
def test_places_that_are_spread_lie_apart_in_their_order(places):
    found = separated_positions(places, 20, 0, 400)
    for (one, its), (other, next_one) in itertools.pairwise(
        sorted(zip(places, found, strict=True))
    ):
        assert its <= next_one if one < other else True
    assert all(high - low >= 20 - 1e-6 for low, high in itertools.pairwise(sorted(found)))
    assert -1e-6 <= min(found) <= max(found) <= 400 + 1e-6


def test_a_place_that_has_room_stays():
    assert separated_positions([10, 100, 105], 20, 0, 200) == pytest.approx([10, 92.5, 112.5])


# ---------------------------------------------------------------- words
SAMPLES = [
    "What a chip-hour costs",
    "AWS Trainium3 NL72x2 Switched",
    "performance.trainium.stream_efficiency",
    "1,234,567 USD (86 %)",
    "MMWW @@ iill",
]


@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize("text", SAMPLES)
def test_words_take_the_room_that_a_wide_font_gives_them(text, bold):
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal", size=100)
    wide, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    assert text_width(text, 100, bold) == pytest.approx(wide, rel=0.02)


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60),
    st.floats(5, 300),
)
def test_what_is_fitted_fits(text, room):
    found = truncate_to_width(text, room, 12)
    assert text_width(found, 12) <= room
    assert found in (text, "") or (found.endswith("…") and text.startswith(found[:-1]))


@given(st.lists(st.text("abc xyz", min_size=1, max_size=9), max_size=20), st.floats(60, 300))
def test_lines_are_broken_between_words_and_lose_none(parts, room):
    text = " ".join(parts)
    lines = wrapped(text, room, 11)
    assert all(text_width(line, 11) <= room for line in lines)
    assert " ".join(lines).split() == text.split()


def test_a_number_keeps_its_percent():
    assert wrapped("utilisation 80 %", text_width("utilisation 80", 11) + 1, 11) == [
        "utilisation",
        "80\u00a0%",
    ]


# ---------------------------------------------------------------- colours
# Machado, Oliveira, Fernandes 2009: what is seen without one kind of cones, in linear RGB
SIGHT = {
    "all": np.eye(3),
    "no red": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no blue": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, sight):
    """Return a colour as somebody sees it, in CIE L*a*b*."""
    coded = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    x, y, z = TO_XYZ @ np.clip(SIGHT[sight] @ linear, 0, 1) / np.array([0.9505, 1, 1.089])
    f = [np.cbrt(one) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("palette", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_everybody_can_tell_the_series_apart(palette, sight):
    for one, other in itertools.combinations(palette, 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) > 20, (one, other)


def contrast(one, other):
    """The contrast of two colours, from 1 to 21, as the guidelines for accessible content define
    it.
    """

    def luminance(colour):
        parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_marks_and_words_stand_out_from_their_ground(dark):
    paper = style.GROUNDS["paper"][dark]
    for colour in style.DARK if dark else style.LIGHT:
        assert contrast(colour, paper) >= 3  # of graphics
        ink = max("#000000", "#FFFFFF", key=lambda one: contrast(one, colour))
        assert style.ink_on(colour) == ink
        assert contrast(ink, colour) >= 4.5  # of words
    for ink in ("ink", "muted"):
        assert contrast(style.GROUNDS[ink][dark], paper) >= 4.5


def test_the_extremes_of_contrast():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


def test_every_look_takes_the_colour_of_its_page():
    sheet = style.style_sheet()
    declared = style.properties(dark=False), style.properties(dark=True)
    for name, look in style.LOOKS.items():
        assert (
            f".{style.CLASS} .{name}{{{look.paints}:var(--{look.variable},{look.colour})}}" in sheet
        )
        assert all(f"--{look.variable}:#" in page for page in declared)
    assert f"--series-1:{style.LIGHT[0]};" in declared[0]
    assert f"--series-1:{style.DARK[0]};" in declared[1]


# ---------------------------------------------------------------- the drawing
@given(st.floats(-1e5, 1e5))
def test_a_place_is_short_and_exact_to_a_hundredth(value):
    assert math.isclose(float(format_coordinate(value)), value, abs_tol=0.0051)
    assert "e" not in format_coordinate(value)
    assert format_coordinate(-1e-9) == "0"


def test_words_that_are_markup_stay_words():
    drawing = Drawing("A < B &\x07C", 'said "so"', 400)
    drawing.rectangle(0, 0, 10, 10, "fill-1", "x < y")
    drawing.text((0, 0), "<script>", tail="& more")
    from tests.report.figures import marks, texts

    svg = drawing.svg()
    assert "<script" not in svg
    assert texts(svg) == ["A < B & C", "<script>& more"]
    assert [one.tip for one in marks(svg, "fill-1")] == ["x < y"]


def test_a_legend_breaks_its_rows_and_its_words():
    from tests.report.figures import boxes, marks

    drawing = Drawing("legend", "", 360)
    entries = [
        ("fill-1", "a system whose prompts are read by another of a long name"),
        ("fill-2", "short"),
        ("hollow", "too"),
        ("fill-3", "w" * 30),
    ]
    drawing.legend(entries, SHAPES)
    svg = drawing.svg()
    found = boxes(svg)
    assert all(right <= 352 for _, _, _, right, _ in found)
    for (_, *a), (_, *b) in itertools.combinations(found, 2):
        assert a[2] <= b[0] or a[0] >= b[2] or a[3] <= b[1] or a[1] >= b[3]
    assert [one.look for one in marks(svg) if one.tag in ("circle", "polygon")] == [
        look for look, _ in entries
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shapes_of_one_radius_are_alike_in_size(shape):
    from tests.report.figures import marks

    drawing = Drawing("shapes", "", 400)
    drawing.mark((100, 100), 10, "fill-1", shape=shape)
    (mark,) = marks(drawing.svg(), "fill-1")
    if shape == "circle":
        assert (mark.at["cx"], mark.at["cy"], mark.at["r"]) == (100, 100, 10)
    else:
        assert {round(math.dist(corner, (100, 100)), 1) for corner in mark.points} == {13.0}


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 200)), min_size=1, max_size=25))
def test_names_stand_over_no_other_and_over_no_point(points):
    labels = Labels(Drawing("", "", 300), (0, 0, 300, 200))
    for at in points:
        labels.keep_clear(at, 3)
    placed = [at for at in points if labels.name(at, 3, "a name")]
    named = labels.taken[len(points) :]
    assert len(named) == len(placed)
    for one, other in itertools.combinations(named, 2):
        assert one[2] <= other[0] or one[0] >= other[2] or one[3] <= other[1] or one[1] >= other[3]
    for box in named:
        for x, y in points:
            assert not (box[0] < x < box[2] and box[1] < y < box[3])


def test_a_box_of_words_lies_where_its_anchor_says():
    left, _, right, _ = box_of((100, 50), 40, 10, "middle")
    assert (left, right) == (79, 121)
    assert box_of((100, 50), 40, 10, "end")[2] == 101
