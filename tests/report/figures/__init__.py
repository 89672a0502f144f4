"""Figures as documents: their marks, read back from the SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from tests.report.helpers import text_width

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"


class Mark(NamedTuple):
    """A path, a marker or a line of words, with its corners in pixels."""

    tag: str
    style: dict[str, str]
    corners: list[tuple[float, float]]
    tip: str
    words: str

    @property
    def colour(self) -> str:
        """Its fill, black if none is stated, or else the colour of its line."""
        fill = self.style.get("fill", "#000000")
        return self.style.get("stroke", "") if fill == "none" else fill

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Its left, upper, right and lower end."""
        xs, ys = zip(*self.corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def width(self) -> float:
        """Its width in pixels."""
        return self.box[2] - self.box[0]

    @property
    def height(self) -> float:
        """Its height in pixels."""
        return self.box[3] - self.box[1]

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2


def path_corners(path: str) -> list[tuple[float, float]]:
    """Return the points of a path, those that bend a curve among them."""
    numbers = list(map(float, re.findall(r"-?[\d.]+", path)))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def style_of(element: ET.Element) -> dict[str, str]:
    """Return the style of an element by property."""
    pairs = (part.split(":") for part in element.get("style", "").split(";") if part)
    return {key.strip(): value.strip() for key, value in pairs}


def read_marks(parent: ET.Element, shapes: dict[str, str], tip: str) -> Iterator[Mark]:
    """Yield the marks below an element in the order they are drawn."""
    tip = parent.findtext(f"{SVG}title") or tip if parent.tag == f"{SVG}g" else tip
    for element in parent:
        tag, style = element.tag.removeprefix(SVG), style_of(element)
        if tag == "g":
            yield from read_marks(element, shapes, tip)
        elif tag == "path":
            yield Mark(tag, style, path_corners(element.get("d", "")), tip, "")
        elif tag in ("use", "text"):
            x, y = float(element.get("x", 0)), float(element.get("y", 0))
            shape = path_corners(shapes[element.get(HREF)[1:]]) if tag == "use" else [(0.0, 0.0)]
            corners = [(x + across, y + down) for across, down in shape]
            yield Mark(tag, style, corners, tip, element.text or "")


def marks(svg: str, *colours: str, tag: str | None = None) -> list[Mark]:
    """Return the marks of a figure in the order they are drawn, of some colours or of a tag."""
    root = ET.fromstring(svg)
    shapes = {path.get("id", ""): path.get("d", "") for path in root.iter(f"{SVG}path")}
    return [
        mark
        for mark in read_marks(root, shapes, "")
        if (not colours or mark.colour in colours) and (tag is None or mark.tag == tag)
    ]


def tipped(svg: str) -> list[Mark]:
    """Return the marks that say what they are: those of data."""
    return [mark for mark in marks(svg) if mark.tip]


def texts(svg: str) -> list[str]:
    """Return all lines of words."""
    return [mark.words for mark in marks(svg, tag="text")]


def boxes(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Return the room that every line of words takes: words, left, top, right, bottom."""
    text_boxes = []
    for mark in marks(svg, tag="text"):
        size = float(mark.style["font-size"].removesuffix("px"))
        bold = mark.style.get("font-weight") == "700"
        wide = text_width(mark.words, size, "bold" if bold else "normal")
        anchor = mark.style.get("text-anchor", "start")
        x, y = mark.corners[0]
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        text_boxes.append((mark.words, left, y - size * 0.75, left + wide, y + size * 0.2))
    return text_boxes
