"""An SVG document as a picture of points."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tco.foundation.errors import DataError

ZOOM = 2.0  # points for each pixel of the document: sharp on paper and on dense screens
FACE, FILES = "DejaVu Sans", ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")  # what matplotlib brings, the same on every machine


def png_of(svg: str) -> bytes:
    """Return the picture; without what draws it and the letters it draws with `DataError` says what to install."""
    letters = find_spec("matplotlib")
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        letters = None
    if letters is None:
        raise DataError("a figure as PNG needs resvg-py and matplotlib: pip install 'tco[report]', or write it as .svg")
    folder = Path(next(iter(letters.submodule_search_locations or ())), "mpl-data", "fonts", "ttf")
    fonts = [str(folder / name) for name in FILES]
    return bytes(svg_to_bytes(svg_string=svg, zoom=ZOOM, font_files=fonts, font_family=FACE, sans_serif_family=FACE, skip_system_fonts=True))
