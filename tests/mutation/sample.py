"""Leave all but a sample of the mutants of a cosmic-ray session out: `python tests/mutation/sample.py SESSION COUNT [SEED]`."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import WorkerOutcome, WorkResult

# A type that is written differently, or a decorator that goes, changes no figure and is no mutant of a formula.
IDLE = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr_")


def main(session: str, count: str, seed: str = "0") -> None:
    """Mark as skipped whatever the sample leaves out."""
    with use_db(Path(session), WorkDB.Mode.open) as work:
        items = sorted(work.work_items, key=lambda item: item.job_id)
        telling = [item for item in items if not any(change.operator_name.startswith(IDLE) for change in item.mutations)]
        telling.sort(
            key=lambda item: [(str(change.module_path), change.start_pos, change.operator_name, change.occurrence) for change in item.mutations]
        )
        kept = {item.job_id for item in Random(seed).sample(telling, min(int(count), len(telling)))}
        work.set_multiple_results([item.job_id for item in items if item.job_id not in kept], WorkResult(WorkerOutcome.SKIPPED))
        print(f"{len(kept)} of {len(telling)} mutants are kept")


if __name__ == "__main__":
    main(*sys.argv[1:])
