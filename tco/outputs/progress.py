"""How far a long task is, on stderr: a bar on a terminal, elsewhere a line from time to time."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tco.foundation.streams import tell

if TYPE_CHECKING:
    from tco.studies.sweep.work import Progress

EVERY = 10.0  # seconds between two lines


class Bar:
    """Tells how many cases are done, how many a second, and how long the rest takes at that rate."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.told = quiet, time.monotonic()
        self.first: tuple[float, int] | None = None  # when the first cases were done, and how many: before that workers were starting
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Bar:
        if not self.quiet and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = TextColumn("{task.percentage:>3.0f} %"), BarColumn(None), TextColumn("{task.description}")
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("starting", total=None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tell(self, progress: Progress) -> None:
        """Tell how far it is; what was done before it began counts for no rate."""
        if self.quiet:
            return
        now, done = time.monotonic(), progress.found + progress.made
        text = f"{done:,} of {progress.cases:,} cases"
        if progress.made and self.first is None:
            self.first = now, progress.made
        elif self.first is not None and now > self.first[0]:
            rate = (progress.made - self.first[1]) / (now - self.first[0])
            text += f", {rate:,.0f} a second, {lasting((progress.cases - done) / rate)} left"
        if self.bar is not None:
            self.bar.update(self.task, description=text, completed=done, total=progress.cases)
        elif now - self.told >= EVERY:
            self.told = now
            tell(text)


def lasting(seconds: float) -> str:
    """Return a time as people say it."""
    for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"
