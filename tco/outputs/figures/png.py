"""An SVG document as a picture of points."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tco.foundation.errors import DataError

ZOOM = 2.0  # points for each pixel of the document: sharp on paper and on dense screens
FACE, FILES = "DejaVu Sans", ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")  # what matplotlib brings, the same on every machine


def png_of(svg: str) -> bytes:
    """Return the picture; without what draws it `DataError` says what to install."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise DataError("a figure as PNG needs resvg-py: pip install 'tco[report]', or write it as .svg") from None
    found = find_spec("matplotlib")
    fonts = [str(Path(next(iter(found.submodule_search_locations or ())), "mpl-data", "fonts", "ttf", name)) for name in FILES] if found else []
    return bytes(svg_to_bytes(svg_string=svg, zoom=ZOOM, font_files=fonts, font_family=FACE, sans_serif_family=FACE, skip_system_fonts=bool(fonts)))
