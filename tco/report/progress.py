"""Progress of a study of many cases.

A terminal shows it in the line of progress. Elsewhere a line is printed from time to time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tco.core.progress import name_step, takes_progress
from tco.core.streams import tell

if TYPE_CHECKING:
    from tco.evaluation.workers import Progress

EVERY = 10.0  # seconds between two lines


class Bar:
    """Progress line: the finished cases, their rate, and the remaining time at that rate."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.told = quiet, time.monotonic()
        # when the first cases were done, and how many: before that workers were starting
        self.first: tuple[float, int] | None = None
        self.moves = not quiet and takes_progress()

    def tell(self, progress: Progress) -> None:
        """Tell how far it is; what was done before it began counts for no rate."""
        now, done = time.monotonic(), progress.cases_before + progress.cases_made
        progress_text = f"{done:,} of {progress.cases:,} cases"
        if progress.cases_made and self.first is None:
            self.first = now, progress.cases_made
        elif self.first is not None and now > self.first[0]:
            rate = (progress.cases_made - self.first[1]) / (now - self.first[0])
            progress_text += (
                f", {rate:,.0f} a second, {_lasting((progress.cases - done) / rate)} left"
            )
        if self.moves:
            name_step(f"{done / max(progress.cases, 1):.0%} {progress_text}")
        elif not self.quiet and now - self.told >= EVERY:
            self.told = now
            tell(progress_text)


def _lasting(seconds: float) -> str:
    for size, unit_name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit_name}"
    return f"{seconds:.0f} s"
