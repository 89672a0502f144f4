"""The long run, on all cores: `python -m tests.fuzz --arguments 100000 --files 10000`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.run import Failure, bounded, run

BLOCK = 100


def main() -> int:
    """Run both fuzzers, and write what came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arguments", type=int, default=1000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        "| what | cases | exit 0 | 1 | 2 | 3 | tracebacks, hangs, other codes |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    all_failures: list[Failure] = []
    with get_context("spawn").Pool(options.workers, bounded, maxtasksperchild=20) as pool:
        for kind, count in (("arguments", options.arguments), ("files", options.files)):
            blocks = [range(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK)]
            codes: Counter[int] = Counter()
            failures: list[Failure] = []
            for done, (block_codes, wrong) in enumerate(
                pool.imap(partial(run, kind, seed=options.seed), blocks), start=1
            ):
                codes += block_codes
                failures += wrong
                for failure in wrong:
                    print(f"{kind} {failure.number}: {failure.words}\n{failure.what}\n", flush=True)
                print(
                    f"{kind}: {min(done * BLOCK, count):,} of {count:,}, {len(failures)} failed",
                    file=sys.stderr,
                    flush=True,
                )
            cells = [
                kind,
                f"{count:,}",
                *(f"{codes[code]:,}" for code in range(4)),
                str(len(failures)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
            all_failures += failures
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return bool(all_failures)


if __name__ == "__main__":
    sys.exit(main())
