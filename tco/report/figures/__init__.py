"""Figures: one function for each, which takes results as data and gives an SVG document.

Every figure is drawn for a width in pixels: a page shows the one for `WIDE` on a screen and on
paper, the one for `NARROW` on a phone. A document stands alone with plain light colours; put into a
page beside `style.style_sheet()` it takes the colours of the page.
"""

WIDE, NARROW = 760, 360  # pixels
