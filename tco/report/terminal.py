"""Tables as text: folded to a width that is stated or a terminal's, else unbroken.

Lines are folded between words, never cut; columns that find no room beside the others stand below
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tco.core.streams import printable_line
from tco.report.table import PICK, TIE, Table, is_heading

COLOURS = {PICK: None, TIE: "yellow"}  # of the bold text of an emphasis
GAP, PIPED = 2, 3  # blanks between columns on a terminal and in a pipe
ENDLESS = 1 << 30  # the width of a pipe
WHOLE = 13  # characters up to which a number or a range stays on one line
LONG = 12  # characters from which a word is a path or an id, and may end a line inside
WORDS = re.compile(r" +|[^ ]+")
INSIDE = re.compile(r"(?<=[^\W\d_][/-])(?=.)|(?<=\w[/-])(?=[^\W\d_])|(?<=,)(?=[^\W\d])")


def to_text(table: Table, width: int | None, is_coloured: bool = False) -> str:
    """Return the table as text for a terminal or a pipe.

    Args:
        table: Rows with their title, and lines above and below.
        width: Characters of a line; None leaves lines unbroken, as for a pipe.
        is_coloured: Whether the terminal shows picks and ties in colour.

    Returns:
        Lines, each with a line end.

    """
    width = table.width if width is None else width
    if not is_coloured:
        table = table._replace(emphasis={})
    room, gap = (ENDLESS, PIPED) if width is None else (width, GAP)
    lines = [
        line
        for heading_text in (*([table.title] if table.title else []), *table.above)
        for line in folded(printable_line(heading_text), room)
    ]
    lines += grid(table, room, gap) if table.columns else []
    lines += [
        line for below_text in table.below for line in folded(printable_line(below_text), room)
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def grid(table: Table, width: int, gap: int) -> list[str]:
    """Return a table's rows in blocks of columns that fit the width, the first column in each."""
    cells = [
        [printable_line(cell) for cell in table_row] for table_row in (table.columns, *table.rows)
    ]
    columns = list(zip(*(cell_row for cell_row in cells if not is_heading(cell_row)), strict=True))
    least = [
        max(
            _narrowest(column[0]),
            *(_minimum_cell_width(cell, table.side(column_index)) for cell in column[1:]),
            0,
        )
        for column_index, column in enumerate(columns)
    ]
    lines: list[str] = []
    for block in _column_blocks(least, width, gap):
        sides = [table.side(column_index) for column_index in block]
        rooms = _fit_column_widths(
            [max(map(len, columns[column_index])) for column_index in block],
            [max(map(len, columns[column_index][1:]), default=0) for column_index in block],
            [least[column_index] for column_index in block],
            sides,
            width - gap * (len(block) - 1),
        )
        line_groups = [
            list(
                folded(cell_row[0], width)
                if is_heading(cell_row)
                else _row_lines(
                    [cell_row[column_index] for column_index in block],
                    rooms,
                    sides,
                    gap,
                    [table.emphasis.get((row_index, column_index)) for column_index in block],
                )
            )
            for row_index, cell_row in enumerate(cells, start=-1)
        ]
        line_groups.insert(1, ["─" * (sum(rooms) + gap * (len(rooms) - 1))])
        lines += [
            *([""] if lines else []),
            *(line for line_group in line_groups for line in line_group),
        ]
    return lines


def _minimum_cell_width(cell: str, side: str) -> int:
    """Return the least width of a cell; short numbers stay whole, texts fold between words."""
    return (
        len(cell)
        if side == "right"
        and len(cell) <= WHOLE
        and cell[:1] not in ("", " ")
        and any(map(str.isdigit, cell))
        else _narrowest(cell)
    )


def _narrowest(text: str) -> int:
    return _indent_of(text) + max((len(piece) for _, piece in _line_break_pieces(text)), default=0)


def _indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _line_break_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield (leading blanks, piece) pairs; a line may break after every piece."""
    gap = ""
    for word in WORDS.findall(text.strip(" ")):
        if word.startswith(" "):
            gap = word
            continue
        for piece in INSIDE.split(word) if len(word) > LONG else [word]:
            yield gap, piece
            gap = ""


def folded(text: str, width: int) -> list[str]:
    """Return the lines of a text folded to a width, with its indent before each.

    A piece longer than the width is broken.
    """
    indent = min(_indent_of(text), max(width - 1, 0))
    lines, line = [], " " * indent
    for gap, piece in _line_break_pieces(text):
        extended_line = line + (gap if line.strip() else "") + piece
        if len(extended_line) > width and line.strip():
            lines.append(line)
            extended_line = " " * indent + piece
        while len(extended_line) > width:
            lines.append(extended_line[:width])
            extended_line = " " * indent + extended_line[width:]
        line = extended_line
    return [*lines, line]


def _column_blocks(least: Sequence[int], width: int, gap: int) -> list[list[int]]:
    """Return which columns stand beside each other: as many as have the least room they need."""
    column_blocks: list[list[int]] = [[0]]
    for column_index in range(1, len(least)):
        together = [*column_blocks[-1], column_index]
        if (
            len(column_blocks[-1]) > 1
            and sum(least[block_column] + gap for block_column in together) - gap > width
        ):
            column_blocks.append([0, column_index])
        else:
            column_blocks[-1] = together
    return column_blocks


def _fit_column_widths(
    rooms: list[int], below_head: list[int], least: list[int], sides: Sequence[str], space: int
) -> list[int]:
    """Return the rooms of columns that fill no more than a space.

    The widest gives way first: of numbers, then of heads of texts, then of texts, and below what
    they need only where nothing else helps.
    """
    while sum(rooms) > space:
        wide = [
            column_index for column_index, room in enumerate(rooms) if room > least[column_index]
        ]
        wide = (
            [column_index for column_index in wide if sides[column_index] == "right"]
            or [
                column_index
                for column_index in wide
                if rooms[column_index] > below_head[column_index]
            ]
            or wide
            or [column_index for column_index, room in enumerate(rooms) if room > 1]
        )
        if not wide:
            break
        rooms[max(wide, key=lambda column_index: rooms[column_index])] -= 1
    return rooms


def _row_lines(
    cells: Sequence[str],
    rooms: Sequence[int],
    sides: Sequence[str],
    gap: int,
    emphases: Sequence[str | None],
) -> Iterator[str]:
    """Yield the lines of a row, its cells folded and beside each other."""
    columns = [folded(cell, room) for cell, room in zip(cells, rooms, strict=True)]
    for line_index in range(max(map(len, columns))):
        parts = [column[line_index] if line_index < len(column) else "" for column in columns]
        blanks = [" " * (room - len(part)) for part, room in zip(parts, rooms, strict=True)]
        coloured_parts = map(_coloured, parts, emphases)
        yield (" " * gap).join(
            part + blank if side == "left" else blank + part
            for part, blank, side in zip(coloured_parts, blanks, sides, strict=True)
        )


def _coloured(text: str, emphasis: str | None) -> str:
    if emphasis is None or not text:
        return text
    from typer import style

    return style(text, bold=True, fg=COLOURS[emphasis])
