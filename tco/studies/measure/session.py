"""One session of measuring: the sweep of a kind on a device, as the columns and the rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tco.foundation.errors import DataError
from tco.studies.measure.group import library_name, measure_group
from tco.studies.measure.machine import Meter
from tco.studies.measure.pytorch import TorchKernels
from tco.studies.measure.rows import COLLECTIVE_COLUMNS, KERNEL_COLUMNS, Origin, collective_row, kernel_row
from tco.studies.measure.run import FULL, QUICK, Backend, Outcome, Shape, Timing, measure
from tco.studies.measure.sweeps import Collective, Kernel, collectives, kernels, rank_counts

Say = Callable[[str], None]


class Session(NamedTuple):
    """What is asked of a session, and whom it tells how far it is."""

    torch: Any
    device: str
    quick: bool
    accelerator: str
    date: str
    loud: bool
    say: Say

    def origin(self, library: str) -> Origin:
        """Return what the rows share."""
        return Origin(self.accelerator, library, self.date)


def kernel_session(asked: Session) -> tuple[Sequence[str], list[list[Any]]]:
    """Return the columns and the rows of a device's kernels."""
    with Meter(asked.device) as meter:
        return KERNEL_COLUMNS, kernel_rows(asked, TorchKernels(asked.torch, asked.device, meter))


def kernel_rows(asked: Session, backend: Backend[Kernel]) -> list[list[Any]]:
    """Return the rows of the kernels that a backend can run."""
    shapes = list(kernels(asked.device, asked.quick))
    found = watched(measure(backend, shapes, QUICK if asked.quick else FULL), len(shapes), asked.say)
    return rows_of(found, kernel_row, asked.origin(f"PyTorch {asked.torch.__version__}"), asked.say)


def collective_session(asked: Session) -> tuple[Sequence[str], list[list[Any]]]:
    """Return the columns and the rows of the collectives among a machine's devices; no row where there are fewer than two."""
    available = asked.torch.cuda.device_count() if asked.device == "cuda" else 2
    found: list[Outcome[Collective]] = []
    for ranks in rank_counts(asked.device, available, asked.quick):
        shapes = list(collectives(asked.device, ranks, asked.quick))
        asked.say(f"{len(shapes)} collectives over {ranks} ranks")
        found += measure_group(ranks, asked.device, shapes, QUICK if asked.quick else FULL, asked.loud)
    if not found:
        asked.say(f"note: collectives need two devices and PyTorch finds {available}: skipped, nothing is written")
        return COLLECTIVE_COLUMNS, []
    return COLLECTIVE_COLUMNS, rows_of(found, collective_row, asked.origin(library_name(asked.torch, asked.device)), asked.say)


def watched(found: Iterable[Outcome[Shape]], count: int, say: Say) -> Iterator[Outcome[Shape]]:
    """Yield outcomes, saying how far the sweep is."""
    for position, outcome in enumerate(found, start=1):
        say(f"{position}/{count} {outcome.shape}")
        yield outcome


def rows_of(found: Iterable[Outcome[Shape]], row: Callable[[Outcome[Shape], Timing, Origin], list[Any]], origin: Origin, say: Say) -> list[list[Any]]:
    """Return the rows of what was measured; what was not is said, and nothing at all raises `DataError`."""
    rows, failure = [], ""
    for outcome in found:
        if outcome.timing is None:
            failure = f"{outcome.shape}: not measured ({outcome.failure})"
            say(f"note: {failure}")
        else:
            rows.append(row(outcome, outcome.timing, origin))
    if not rows:
        raise DataError(f"nothing could be measured; the last was {failure}")
    return rows
