"""The room that words take: widths of characters, for lines that are broken, shortened, or kept apart."""

from __future__ import annotations

# Width of a character as a share of the size, of a wide common font: what is laid out by it fits in narrower ones too.
WIDTHS = {
    **dict.fromkeys("ijl'|", 0.28),
    **dict.fromkeys(" .,:;!/\\·", 0.34),
    **dict.fromkeys("()[]frtI", 0.42),
    **dict.fromkeys('csvxyzkJ-"*', 0.56),
    **dict.fromkeys("~+=<>−–×÷±≤≥", 0.84),
    **dict.fromkeys("mMW@—…", 0.99),
    **dict.fromkeys("w%", 0.86),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ&", 0.73),
}
USUAL = 0.635
BOLD = 1.12


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in pixels."""
    return sum(WIDTHS.get(character, USUAL) for character in text) * size * (BOLD if bold else 1.0)


def fitted(text: str, room: float, size: float, bold: bool = False) -> str:
    """Return a text, or its beginning where it is wider than some room; nothing where too little would be left of it."""
    if width_of(text, size, bold) <= room:
        return text
    for length in range(len(text) - 1, 2, -1):
        short = text[:length].rstrip(" -/.,") + "…"
        if width_of(short, size, bold) <= room:
            return short
    return ""


def wrapped(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """Return the lines of a text broken between words; a word that is wider than the room is shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold) <= room:
            lines[-1] = longer
        else:
            lines.append(fitted(word, room, size, bold) or word[:1])
    return lines
