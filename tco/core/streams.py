"""The two streams of a program: an answer goes to stdout to its last byte or is an error, what is
said beside it goes to stderr if that takes it.
"""

from __future__ import annotations

import sys

from tco.core.errors import UsageError

# What would move the cursor, break a row or colour a terminal, and what turns the direction of all
# that follows.
CONTROLS = (
    *range(32),
    127,
    *range(128, 160),
    0x61C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
BLANKS = dict.fromkeys(CONTROLS, " ")


def printable_line(text: str) -> str:
    """Return a text on one line, without characters that a terminal or a table would obey."""
    return text if text.isascii() and text.isprintable() else text.translate(BLANKS)


def put(text: str) -> None:
    """Print a text on stdout to its last byte; an output that takes less (a full disk, a closed
    one) raises `UsageError`.
    """
    stream = sys.stdout
    if stream is None:
        raise UsageError("stdout: is closed, expected somewhere to print")
    try:
        if stream.isatty() or not hasattr(stream, "buffer"):
            stream.write(text)
        else:  # files and pipes hold the same bytes whatever the locale
            stream.flush()
            rest = memoryview(text.encode("utf-8"))
            while rest:  # an unbuffered stream may take a part only
                rest = rest[stream.buffer.write(rest) :]
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise full(error) from None


def full(error: OSError) -> UsageError:
    """Return the error of a stdout that took no more; what is left in its buffer would fail once
    more at the end, so it is let go.
    """
    sys.stdout = None
    return UsageError(f"stdout: cannot be written ({error.strerror or error})")


def tell(text: str) -> None:
    """Print a text as one line on stderr; one that is closed or full changes neither the answer nor
    how the program ends.
    """
    if sys.stderr is None:  # `print` would take stdout in its place, and spoil the answer
        return
    try:
        print(printable_line(text), file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None
