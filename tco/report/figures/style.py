"""Colours of figures: one for each system and series, the same in every file and page.

A figure is drawn in plain light colours. A page puts custom properties in their places, so that it
is dark where the screen is. People who do not see all colours can tell the series apart. Each
series stands out from its paper by 3:1 or more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tco.scenario.result import Result

WIDE, NARROW = 760, 360  # pixels: for a screen and paper, and for a phone
LIGHT = ("#137eea", "#e66117", "#082d1d", "#b983a0", "#2b1aa5", "#663a09", "#6c5b54", "#8e8ace")
DARK = ("#37acef", "#f19851", "#2c7345", "#eabdc3", "#5c53e9", "#a55918", "#747480", "#d9ccf8")
# positions of the series on which white words are read better than black ones, light or dark
DEEP = {2, 4, 5, 6}
# family of chips -> numbers of its colours
HUES = {
    "trainium": (2, 6),
    "nvidia": (3, 7),
    "amd": (4, 8),
    "tpu": (1, 5),
}
OTHERS = (5, 1)
INK, MUTED, GRID, PAPER = "#1b1d21", "#54585f", "#dfe2e6", "#ffffff"
GROUNDS = {  # custom property -> its colour in a light page and on paper, and in a dark page
    "ink": (INK, "#eceef1"),
    "muted": (MUTED, "#a9afb8"),
    "grid": (GRID, "#353a42"),
    "paper": (PAPER, "#14171c"),
}
# black and white that stay as they are when ink and paper change places
BLACK, WHITE = "#000000", "#fefefe"
PALETTE = GROUNDS | {
    f"series-{number}": pair for number, pair in enumerate(zip(LIGHT, DARK, strict=True), start=1)
}
VARIABLES = {light: f"var(--{colour_name})" for colour_name, (light, _) in PALETTE.items()}


def colours_of(series_names: Iterable[str]) -> dict[str, str]:
    """Return names with the colours of series; beyond the last colour they begin anew."""
    return dict(zip(series_names, cycle(LIGHT), strict=False))


def ink_on(colour: str) -> str:
    """Return black or white, whichever is read better on the colour of a series."""
    return WHITE if LIGHT.index(colour) in DEEP else BLACK


def vendor_colours(scenario_results: Sequence[Result]) -> list[int]:
    """Return the number of the colour of each system, from 1.

    A family of chips has always the same colour, and its second system the other hue.
    """
    counts: dict[str, int] = {}
    numbers = []
    for scenario_result in scenario_results:
        family = next(
            (
                path.split(".")[1]
                for path in scenario_result.inputs
                if path.startswith("performance.") and path.endswith(".launch_time")
            ),
            "",
        )
        hues = HUES.get(family, OTHERS)
        numbers.append(hues[counts.get(family, 0) % len(hues)])
        counts[family] = counts.get(family, 0) + 1
    return numbers


def properties(dark: bool) -> str:
    """Return the declarations of all custom properties, for a light or a dark page."""
    return "".join(f"--{colour_name}:{pair[dark]};" for colour_name, pair in PALETTE.items())


def with_page_colours(svg: str) -> str:
    """Return a figure that takes its colours from the page that it stands in."""
    return re.sub("#[0-9a-f]{6}", lambda colour: VARIABLES.get(colour[0], colour[0]), svg)
