"""Styles of figures: colours of marks in files and in web pages.

Each mark names a look. A look is a plain light colour in a file and a custom property in a page.

A presentation attribute gives way to any rule of a style sheet, so a single document serves files
and pages. People who do not see all colours can tell the series apart. Each series stands out from
its paper by 3:1 or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tco.scenario.result import Result

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
SMALL, BODY, TITLE = 11, 12, 15  # pixels
CLASS = "tco-figure"
LIGHT = ("#137EEA", "#E66117", "#082D1D", "#B983A0", "#2B1AA5", "#663A09", "#6C5B54", "#8E8ACE")
DARK = ("#37ACEF", "#F19851", "#2C7345", "#EABDC3", "#5C53E9", "#A55918", "#888888", "#D9CCF8")
# on which white words are read better than black ones
DEEP = {
    "#082D1D",
    "#2B1AA5",
    "#663A09",
    "#6C5B54",
    "#2C7345",
    "#5C53E9",
    "#A55918",
}
SERIES = len(LIGHT)
# family of chips -> numbers of its colours
HUES = {
    "trainium": (2, 6),
    "nvidia": (3, 7),
    "amd": (4, 8),
    "tpu": (1, 5),
}
OTHERS = (5, 1)
BLACK, WHITE = "#000000", "#FFFFFF"
GROUNDS = {  # custom property -> its colour in a light page and on paper, and in a dark page
    "ink": ("#1B1D21", "#ECEEF1"),
    "muted": ("#54585F", "#A9AFB8"),
    "grid": ("#DFE2E6", "#353A42"),
    "paper": ("#FFFFFF", "#14171C"),
}


class Look(NamedTuple):
    """Style of a mark: painted property, custom property, colour and fixed attributes.

    The colour fills the property `paints`; a page sets the custom property `variable`.
    """

    paints: str
    variable: str
    colour: str
    attributes: str = ""


def ink_on(colour: str) -> str:
    """Return black or white, whichever is read better on a colour."""
    return WHITE if colour in DEEP else BLACK


def looks() -> dict[str, Look]:
    """Return every look by its name."""
    found = {
        "ink": Look("fill", "ink", GROUNDS["ink"][0]),
        "muted": Look("fill", "muted", GROUNDS["muted"][0]),
        "paper": Look("fill", "paper", GROUNDS["paper"][0]),
        "hollow": Look("stroke", "ink", GROUNDS["ink"][0], ' fill="none" stroke-width="1"'),
        "halo": Look(
            "stroke",
            "paper",
            GROUNDS["paper"][0],
            ' fill="none" stroke-width="3" stroke-linejoin="round"',
        ),
        "gap": Look("stroke", "paper", GROUNDS["paper"][0], ' fill="none" stroke-width="1"'),
        "grid": Look("stroke", "grid", GROUNDS["grid"][0], ' fill="none" stroke-width="1"'),
        "axis": Look("stroke", "muted", GROUNDS["muted"][0], ' fill="none" stroke-width="1"'),
        "rule": Look("stroke", "ink", GROUNDS["ink"][0], ' fill="none" stroke-width="1.5"'),
        "dashed": Look(
            "stroke",
            "muted",
            GROUNDS["muted"][0],
            ' fill="none" stroke-width="1" stroke-dasharray="4 3"',
        ),
    }
    for at, colour in enumerate(LIGHT, start=1):
        found[f"fill-{at}"] = Look("fill", f"series-{at}", colour)
        found[f"dot-{at}"] = Look("fill", f"series-{at}", colour, ' fill-opacity="0.85"')
        found[f"pale-{at}"] = Look("fill", f"series-{at}", colour, ' fill-opacity="0.55"')
        found[f"on-{at}"] = Look("fill", f"on-series-{at}", ink_on(colour))
        found[f"line-{at}"] = Look(
            "stroke",
            f"series-{at}",
            colour,
            ' fill="none" stroke-width="2" stroke-linejoin="round"',
        )
        found[f"band-{at}"] = Look("fill", f"series-{at}", colour, ' fill-opacity="0.16"')
    return found


LOOKS = looks()


def series(at: int) -> int:
    """Return the number of the colour of a series, counted from nought; beyond the last they begin
    anew.
    """
    return at % SERIES + 1


def vendor_colours(results: Sequence[Result]) -> list[int]:
    """Return the number of the colour of each system: of a family of chips always the same, its
    second system in its other hue.
    """
    met: dict[str, int] = {}
    found = []
    for result in results:
        family = next(
            (
                path.split(".")[1]
                for path in result.inputs
                if path.startswith("performance.") and path.endswith(".launch_time")
            ),
            "",
        )
        hues = HUES.get(family, OTHERS)
        found.append(hues[met.get(family, 0) % len(hues)])
        met[family] = met.get(family, 0) + 1
    return found


def mark_attributes(look: str) -> str:
    """Return the attributes of a mark: its class, and what it looks like where there is no style
    sheet.
    """
    one = LOOKS[look]
    return f' class="{look}" {one.paints}="{one.colour}"{one.attributes}'


def properties(dark: bool) -> str:
    """Return the declarations of all custom properties, for a light page and paper, or for a dark
    one.
    """
    found = {f"--{name}": pair[dark] for name, pair in GROUNDS.items()}
    for at, colour in enumerate(DARK if dark else LIGHT, start=1):
        found |= {f"--series-{at}": colour, f"--on-series-{at}": ink_on(colour)}
    return "".join(f"{name}:{colour};" for name, colour in found.items())


def style_sheet() -> str:
    """Return the rules by which figures take the custom properties of the page they stand in; those
    it lacks keep the light colours.
    """
    rules = [f".{CLASS}{{width:100%;height:auto;display:block}}"]
    rules += [
        f".{CLASS} .{name}{{{one.paints}:var(--{one.variable},{one.colour})}}"
        for name, one in LOOKS.items()
    ]
    return "\n".join(rules) + "\n"
