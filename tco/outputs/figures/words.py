"""The room that words take: widths of characters, for lines that are broken, shortened, or kept apart."""

from __future__ import annotations

from collections.abc import Sequence

# Hundredths of the size that each character from the space on takes in DejaVu Sans, plain and bold. Few fonts are wider: what fits in it fits.
PLAIN = """
32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 53 100 68 69 70 77 63 58 77 75 29 29 66 56 86 75
79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84
"""
BOLD = """
35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 58 100 77 76 73 83 68 68 82 84 37 37 77 64 100 84
85 73 85 77 72 68 81 77 110 77 72 73 46 37 46 84 50 50 67 72 59 72 68 44 72 71 34 34 67 34 104 71 69 72 72 49 60 48 71 65 92 65 65 58 71 37 71 84
"""
LEAST = 5  # characters that are left of a text at least
WIDEST = 1.0  # of the size, what any other character takes at most
WIDTHS, BOLD_WIDTHS = ({chr(32 + at): int(width) / 100 for at, width in enumerate(face.split())} for face in (PLAIN, BOLD))
WIDTHS["\u00a0"], BOLD_WIDTHS["\u00a0"] = WIDTHS[" "], BOLD_WIDTHS[" "]


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in pixels, or a little more."""
    widths = BOLD_WIDTHS if bold else WIDTHS
    return sum(widths.get(character, WIDEST) for character in text) * size


def fitted(text: str, room: float, size: float, bold: bool = False) -> str:
    """Return a text, or its beginning where it is wider than some room; nothing where too little would be left of it."""
    if width_of(text, size, bold) <= room:
        return text
    for length in range(len(text) - 1, LEAST - 1, -1):
        short = text[:length].rstrip(" -/.,") + "…"
        if width_of(short, size, bold) <= room:
            return short
    return ""


def distinct(titles: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """Return titles, or where two are alike or one is another's name, the names that tell apart what they stand for."""
    mistaken = any(title in names and title != name for title, name in zip(titles, names, strict=True))
    return names if mistaken or len(set(titles)) < len(titles) else titles


def wrapped(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """Return the lines of a text broken between words; a word that is wider than the room is shortened."""
    lines: list[str] = []
    for word in text.replace(" %", "\u00a0%").split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold) <= room:
            lines[-1] = longer
        else:
            lines.append(fitted(word, room, size, bold) or word[:1])
    return lines
