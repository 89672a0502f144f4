"""Figures as documents: their marks, read back from the SVG."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree as ET

from tests.report.helpers import text_width

SVG = "{http://www.w3.org/2000/svg}"


class Mark(NamedTuple):
    """An element of a figure, its attributes with numbers where they are numbers."""

    tag: str
    look: str
    at: dict[str, float]
    points: list[tuple[float, float]]
    tip: str
    words: str
    element: ET.Element


def marks(svg: str, *looks: str, tag: str | None = None) -> list[Mark]:
    """Return the marks of a figure in the order they are drawn, those of some looks or of a tag."""
    found = []
    for element in ET.fromstring(svg).iter():
        name = element.tag.removeprefix(SVG)
        if name in ("svg", "title", "desc", "tspan"):
            continue
        at = {
            key: float(value) for key, value in element.items() if re.fullmatch(r"-?[\d.]+", value)
        }
        pairs = [tuple(map(float, pair.split(","))) for pair in element.get("points", "").split()]
        tip = element.findtext(f"{SVG}title") or ""
        found.append(
            Mark(
                name,
                element.get("class", ""),
                at,
                pairs,
                tip,
                "".join(element.itertext()) if name == "text" else "",
                element,
            )
        )
    return [
        one for one in found if (not looks or one.look in looks) and (tag is None or one.tag == tag)
    ]


def tipped(svg: str) -> list[Mark]:
    """Return the marks that say what they are: those of data."""
    return [one for one in marks(svg) if one.tip]


def texts(svg: str) -> list[str]:
    """Return all lines of words, each once."""
    return [one.words for one in marks(svg, tag="text") if one.element.get("aria-hidden") is None]


def boxes(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Return the room that every line of words takes: words, left, top, right, bottom."""
    found = []
    for one in marks(svg, tag="text"):
        if one.element.get("aria-hidden") is None:
            size, bold = one.at["font-size"], one.element.get("font-weight") == "bold"
            wide = text_width(one.element.text or "", size, bold) + sum(
                6 + text_width(tail.text or "", 11) for tail in one.element
            )
            left = (
                one.at["x"]
                - {"start": 0.0, "middle": wide / 2, "end": wide}[
                    one.element.get("text-anchor", "start")
                ]
            )
            found.append(
                (one.words, left, one.at["y"] - size * 0.75, left + wide, one.at["y"] + size * 0.2)
            )
    return found
