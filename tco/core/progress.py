"""Progress of a long command: a line on stderr, which is shown only on a terminal.

A timer signal writes the line in the main thread. The module starts no thread, so that workers may
be forked; the workers have no timer.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
FIRST_LINE_DELAY = 2.0  # s
REFRESH_INTERVAL = 1.0  # s
USUAL_WIDTH = 80  # characters, where the terminal reports no width
CLEAR_LINE = "\r\x1b[K"  # control characters that clear the current line of a terminal
# Names of the current steps, the outermost step first.
_steps: ContextVar[tuple[str, ...]] = ContextVar("steps", default=())


def with_progress(items: Sequence[T], describe: Callable[[T], str]) -> Iterator[T]:
    """Yield items, each as a step of the progress line with its number.

    Args:
        items: Items to process in this order.
        describe: Returns the text of a step for an item, such as "drawing gb200-nvl72".

    """
    outer = _steps.get()
    for number, item in enumerate(items, 1):
        count = f" ({number} of {len(items)})" if len(items) > 1 else ""
        _steps.set((*outer, f"{describe(item)}{count}"))
        yield item
    _steps.set(outer)


@contextmanager
def named_step(step_text: str) -> Iterator[None]:
    """Name a step of the progress line while a block runs."""
    outer = _steps.get()
    _steps.set((*outer, step_text))
    try:
        yield
    finally:
        _steps.set(outer)


def name_step(step_text: str) -> None:
    """Replace all named steps by one step."""
    _steps.set((step_text,))


class _ProgressLine:
    """Line on a terminal with the elapsed time and the current steps of a command."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.is_visible = False

    def write(self, *_: object) -> None:
        seconds = time.monotonic() - self.start
        line_text = f"{seconds:.0f} s: {', '.join(_steps.get()) or 'working'}"
        width = (os.get_terminal_size(2).columns or USUAL_WIDTH) - 1
        self.is_visible = True
        # Not through `sys.stderr`, since the signal may interrupt a write to it.
        os.write(2, f"{CLEAR_LINE}{line_text[:width]}".encode())

    def clear(self) -> None:
        if self.is_visible:
            self.is_visible = False
            os.write(2, CLEAR_LINE.encode())


_lines: list[_ProgressLine] = []


def takes_progress() -> bool:
    """Return whether stderr is a terminal that shows a line of progress."""
    if sys.stderr is None or not hasattr(signal, "setitimer") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return sys.stderr.fileno() == 2 and os.isatty(2)
    except (OSError, ValueError):
        return False


@contextmanager
def progress_line(is_quiet: bool) -> Iterator[None]:
    """Show a line of progress on a terminal while a block runs, after a delay."""
    if is_quiet or _lines or not takes_progress():
        yield
        return
    line = _ProgressLine()
    previous = signal.signal(signal.SIGALRM, line.write)
    _lines.append(line)
    signal.setitimer(signal.ITIMER_REAL, FIRST_LINE_DELAY, REFRESH_INTERVAL)
    try:
        yield
    finally:
        end_progress()
        signal.signal(signal.SIGALRM, previous)


def end_progress() -> None:
    """Clear the line of progress and show no further line, before the answer is printed."""
    if _lines:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _lines.pop().clear()


def clear_progress() -> None:
    """Clear the line of progress until the next one, before another text is printed."""
    if _lines:
        _lines[-1].clear()
