"""How the workbook looks: colours with a meaning, number formats by unit, pages that print."""

from __future__ import annotations

from typing import Any

INK, PAPER, LINE, GREY = "#1F2A44", "#FFFFFF", "#C9CED8", "#6B7280"
INPUT, OWN, FIXED = "#FFF9DB", "#FFD9B3", "#EEF0F4"
LOOKS: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 16, "font_color": INK},
    "subtitle": {"font_color": GREY, "italic": True},
    "section": {"bold": True, "font_size": 12, "font_color": INK, "bottom": 2, "bottom_color": INK},
    "head": {"bold": True, "font_color": PAPER, "bg_color": INK, "text_wrap": True, "valign": "vcenter", "align": "right"},
    "head-text": {"bold": True, "font_color": PAPER, "bg_color": INK, "text_wrap": True, "valign": "vcenter", "align": "left"},
    "text": {},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "strong": {"bold": True},
    "weak": {"font_color": GREY, "indent": 1},
    "number": {},
    "weak-number": {"font_color": GREY},
    "total": {"bold": True, "top": 1},
    "input": {"font_color": "#0000C0", "bg_color": INPUT, "border": 1, "border_color": LINE, "locked": False},
    "own": {"font_color": "#0000C0", "bg_color": OWN, "bold": True, "border": 1, "border_color": LINE, "locked": False},
    "fixed": {"bg_color": FIXED},
    "fixed-text": {"bg_color": FIXED, "align": "right", "valign": "top", "text_wrap": True},
}


def number_format(unit: str, *values: float) -> str:
    """Return how some numbers of a unit are written together: money with cents or whole dollars, counts whole, the rest by size of the largest."""
    size = max((abs(float(value)) for value in values), default=0.0)
    money = unit.startswith("USD")
    if size and (size < 1e-3 or (size >= 1e7 and not money)):
        return "0.000E+00"
    if money:
        return "#,##0" if size >= 1000 else "#,##0.00" if size >= 10 else "0.0000"
    if all(float(value).is_integer() for value in values):
        return "#,##0"
    return "#,##0.0" if size >= 100 else "0.00" if size >= 10 else "0.0000"


class Looks:
    """The formats of a workbook, each made once."""

    def __init__(self, workbook: Any) -> None:
        self.workbook = workbook
        self.made: dict[tuple[str, str], Any] = {}

    def __call__(self, look: str, numbers: str = "") -> Any:
        """Return the format of a look, with a number format."""
        key = look, numbers
        if key not in self.made:
            self.made[key] = self.workbook.add_format(LOOKS[look] | ({"num_format": numbers} if numbers else {}))
        return self.made[key]


def page(sheet: Any, last_row: int, last_column: int, head: int, left: int, footer: str, upright: bool = False) -> None:
    """Set a sheet up for reading and for paper: its head and first columns stay, it is one page wide, and the head is on every page."""
    sheet.hide_gridlines(2)
    sheet.freeze_panes(head, left)
    if not upright:
        sheet.set_landscape()
    sheet.set_paper(9)
    sheet.fit_to_pages(1, 0)
    sheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
    sheet.print_area(0, 0, last_row, last_column)
    if head:
        sheet.repeat_rows(0, head - 1)
    sheet.set_footer(f"&L{footer}&C&A&R&P / &N")
