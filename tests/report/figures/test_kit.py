"""Parts of figures: round ticks, words that fit, colours that everybody can tell apart."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco.report.figures import style
from tco.report.figures.drawing import (
    MARKERS,
    TICK_ROOM,
    Drawing,
    Labels,
    scale_by_ratios,
    shortened,
    styled,
    tip,
)
from tests.report.figures import boxes, marks, texts
from tests.report.helpers import text_width


# ---------------------------------------------------------------- scales
@settings(deadline=None, max_examples=40)
@given(st.floats(1e-6, 1e9), st.floats(1.5, 1e5), st.sampled_from([360, 760, 1200]))
def test_a_scale_of_ratios_holds_its_values_and_ticks_at_few_round_numbers(low, span, width):
    drawing = Drawing("ratios", "", width)
    axes = drawing.axes(200)
    scale_by_ratios(axes.xaxis, [low, low * span])
    start, end = axes.get_xlim()
    assert start < low
    assert end > low * span
    ticks = [tick for tick in axes.get_xticks() if start <= tick <= end]
    assert 1 <= len(ticks) <= axes.bbox.width / TICK_ROOM + 1
    for tick in ticks:
        digits = f"{tick:.9e}".split("e")[0].rstrip("0").rstrip(".")
        assert len(digits) <= 4


def test_equal_ratios_are_equal_distances():
    axes = Drawing("ratios", "", 400).axes(200)
    scale_by_ratios(axes.xaxis, [1, 1000])
    pixel_positions = axes.transData.transform([(value, 0) for value in (1, 10, 100, 1000)])[:, 0]
    assert np.diff(pixel_positions) == pytest.approx([np.diff(pixel_positions)[0]] * 3)


# ---------------------------------------------------------------- words
WORDS = st.text("ilWMaeq0123456789,.@-", min_size=1, max_size=14)


@settings(deadline=None, max_examples=60)
@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60),
    st.floats(20, 300),
)
def test_fitted_words_are_within_their_width(text, room):
    short = shortened(text, room)
    assert text_width(short) <= room
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@settings(deadline=None, max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=60), st.sampled_from([360, 760]))
def test_lines_are_broken_between_words_and_lose_none(words, width):
    drawing = Drawing("lines", "", width)
    drawing.paragraphs(" ".join(words))
    svg = drawing.svg()
    assert " ".join(texts(svg)[1:]) == " ".join(words)
    assert all(right <= width for _, _, _, right, _ in boxes(svg))


def test_number_and_its_percent_sign_stay_on_one_line():
    drawing = Drawing("lines", "", 360)
    drawing.paragraphs(" and ".join(["1,234,567 USD (86 %)"] * 9))
    assert not any(line.startswith("%") for line in texts(drawing.svg()))


def test_empty_line_adds_nothing():
    drawing = Drawing("lines", "", 360)
    bottom = drawing.bottom
    drawing.paragraphs("")
    assert drawing.bottom == bottom


def test_words_of_a_figure_are_kept_as_they_are():
    words = 'of id="x" clip-path="y" 1.23456'
    drawing = Drawing("words", "", 760)
    drawing.paragraphs(words)
    assert words in texts(drawing.svg())


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
    coded = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    x, y, z = TO_XYZ @ np.clip(SIGHT[sight] @ linear, 0, 1) / np.array([0.9505, 1, 1.089])
    f = [np.cbrt(ratio) if ratio > 0.008856 else 7.787 * ratio + 16 / 116 for ratio in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("palette", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_everybody_can_tell_the_series_apart(palette, sight):
    for first_colour, second_colour in itertools.combinations(palette, 2):
        assert np.linalg.norm(lab(first_colour, sight) - lab(second_colour, sight)) > 20, (
            first_colour,
            second_colour,
        )


def contrast(first_colour, second_colour):
    """Return the contrast of two colours, from 1 to 21.

    The guidelines for accessible content define it.
    """

    def luminance(colour):
        parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    low, high = sorted((luminance(first_colour), luminance(second_colour)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_marks_and_words_stand_out_from_their_ground(dark):
    paper = style.GROUNDS["paper"][dark]
    for position, colour in enumerate(style.DARK if dark else style.LIGHT):
        assert contrast(colour, paper) >= 3  # of graphics
        ink = max("#000000", "#FFFFFF", key=lambda candidate_ink: contrast(candidate_ink, colour))
        chosen = style.ink_on(style.LIGHT[position])  # the same on paper and on a dark page
        assert {"#000000": style.BLACK, "#FFFFFF": style.WHITE}[ink] == chosen
        assert contrast(chosen, colour) >= 4.5  # of words
    for ink in ("ink", "muted"):
        assert contrast(style.GROUNDS[ink][dark], paper) >= 4.5


def test_contrast_of_black_and_white_is_21_and_of_equal_colours_1():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


@styled
def test_a_figure_in_a_page_takes_every_colour_from_it():
    drawing = Drawing("colours", "", 400)
    drawing.legend(style.colours_of(map(str, range(8))))
    page = style.with_page_colours(drawing.svg())
    declared = style.properties(dark=False), style.properties(dark=True)
    used = set(re.findall(r"var\(--([\w-]+)\)", page))
    assert {f"series-{number}" for number in range(1, 9)} | {"ink", "paper"} <= used
    assert not re.search("#[0-9a-f]{6}", page)
    assert all(f"--{name}:#" in sheet for name in used for sheet in declared)
    assert f"--series-1:{style.LIGHT[0]};" in declared[0]
    assert f"--series-1:{style.DARK[0]};" in declared[1]


# ---------------------------------------------------------------- the drawing
@styled
def test_words_that_are_markup_stay_words():
    drawing = Drawing("A < B &\x07C", 'said "so"', 400)
    axes = drawing.axes(100)
    tip(axes.plot(0.5, 0.5, "o"), 'x < "y"')
    axes.text(0.1, 0.1, "<script>")
    svg = drawing.svg()
    assert "<script" not in svg
    assert {"A < B & C", "<script>"} <= set(texts(svg))
    assert [mark.tip for mark in marks(svg) if mark.tip] == ['x < "y"']
    assert not [mark for mark in marks(drawing.svg(tips=False)) if mark.tip]


@styled
def test_a_legend_breaks_its_rows_and_shortens_its_words():
    drawing = Drawing("legend", "", 360)
    entries = {
        "a system whose prompts are read by another of a very long name": style.LIGHT[0],
        "short": style.LIGHT[1],
        "too": style.INK,
        "w" * 30: style.LIGHT[2],
    }
    drawing.legend(entries, MARKERS)
    svg = drawing.svg()
    room = boxes(svg)
    assert all(right <= 360 for _, _, _, right, _ in room)
    for (_, *a), (_, *b) in itertools.combinations(room, 2):
        assert a[2] <= b[0] or a[0] >= b[2] or a[3] <= b[1] or a[1] >= b[3]
    assert [mark.colour for mark in marks(svg, tag="use")] == list(entries.values())


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=25))
def test_names_stand_over_no_other_and_over_no_point(points):
    axes = Drawing("names", "", 360).axes(200)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    labels = Labels(axes)
    for point in points:
        labels.keep_clear([point], 3)
    placed = [point for point in points if labels.place_label([point], "a name", 6)]
    named = labels.boxes[len(points) :]
    assert len(named) == len(placed)
    for first_box, second_box in itertools.combinations(named, 2):
        assert not first_box.overlaps(second_box)
    pixels = axes.transData.transform(points)
    for box in named:
        assert not any(box.contains(x, y) for x, y in pixels)
        assert axes.bbox.contains(*box.min)
        assert axes.bbox.contains(*box.max)
