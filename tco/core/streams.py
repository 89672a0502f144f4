"""Printing on standard output and standard error, to terminals, files and pipes."""

from __future__ import annotations

import sys

from tco.core.errors import UsageError
from tco.core.progress import clear_progress, end_progress

# Characters that move the cursor, break a row, colour a terminal or turn the writing direction.
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
BLANKS_BY_CONTROL = dict.fromkeys(CONTROLS, " ")


def printable_line(text: str) -> str:
    """Return a text on one line, without control characters.

    Args:
        text: Any text; a blank replaces each control character.

    """
    return text if text.isascii() and text.isprintable() else text.translate(BLANKS_BY_CONTROL)


def print_text(output_text: str) -> None:
    """Print a complete text on stdout.

    Files and pipes receive UTF-8 in every locale.

    Args:
        output_text: Text to print, with its line ends.

    Raises:
        UsageError: Stdout is closed, or cannot be written to, as on a full disk.
        BrokenPipeError: The reader of the pipe has ended.

    """
    end_progress()
    stream = sys.stdout
    if stream is None:
        raise UsageError("stdout: is closed, expected somewhere to print")
    try:
        if stream.isatty() or not hasattr(stream, "buffer"):
            stream.write(output_text)
        else:
            stream.flush()
            rest = memoryview(output_text.encode("utf-8"))
            while rest:  # an unbuffered stream may write only a part at a time
                rest = rest[stream.buffer.write(rest) :]
        stream.flush()
    except BrokenPipeError:  # the command line ends without a message
        raise
    except OSError as error:
        raise stdout_error(error) from None


def stdout_error(error: OSError) -> UsageError:
    """Return the error of a full or closed stdout, and set stdout to None.

    Without this, Python would try to write the rest of the buffer at its exit, and fail again.

    Args:
        error: Error of the failed write.

    """
    sys.stdout = None
    return UsageError(f"stdout: cannot be written ({error.strerror or error})")


def tell(message_text: str) -> None:
    """Print a text as one line on stderr.

    The program continues without a message where stderr is closed or full.

    Args:
        message_text: Text to print; a blank replaces each control character.

    """
    if sys.stderr is None:  # `print` would write to stdout instead, into the answer
        return
    clear_progress()
    try:
        print(printable_line(message_text), file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None
