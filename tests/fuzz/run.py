"""Run one case after another in process; collect tracebacks, unknown exit codes and hangs."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from tests.cli import app, testing
from tests.fuzz import arguments, files

ROOM = 8 * 2**30  # bytes that no case of the long run may take
PATIENCE = 10  # seconds of the processor that no case may take, whatever else it does
# of commands that evaluate dozens of scenarios, where the cache knows none of their plans
LONGER = {"claims": 40, "report": 40}
KNOWN = frozenset((0, 1, 2, 3))


class Failure(NamedTuple):
    """A case that must not be: its number, what was asked, what came."""

    number: int
    words: list[str]
    what: str


class TooLong(BaseException):
    """A case that has had its time: no handler of the program may take it for its own."""


def bounded() -> None:
    """Hold a worker to its memory, and to warnings being faults."""
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))


def ring(*_: object) -> None:
    """End a case that takes too long."""
    raise TooLong


def patience(words: list[str]) -> int:
    """Return the seconds of the processor that a command may take."""
    return LONGER.get(words[0], PATIENCE) if words else PATIENCE


def outcome(words: list[str]) -> tuple[int | None, str]:
    """Run a command; return its exit code, or none and what went wrong."""
    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, patience(words))
    try:
        done = testing.CliRunner(env={"NO_COLOR": "1", "COLUMNS": "80"}).invoke(
            app, words, prog_name="tco"
        )
    except TooLong:
        return None, "took too long"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return None, "".join(traceback.format_exception(done.exception))[-1500:]
    if done.exit_code not in KNOWN or "Traceback" in done.output:
        return None, f"exit {done.exit_code}: {done.output[-600:]}"
    return done.exit_code, ""


def prepared(folder: Path) -> None:
    """Put into a folder what argument lists speak of."""
    for name in ("data", "empty"):
        (folder / name).mkdir()
    (folder / "here.toml").write_text(
        'system = "gb200-nvl72"\nworkload = "chat"\nterms = "hyperscaler-2025-12"\nsite = '
        '"us-hyperscale"\n'
    )
    (folder / "here.json").write_text(files.saved("result"))
    (folder / "here.csv").write_text(
        "accelerator,op,dtype,m,n,k,tflops\nH100 SXM,gemm,bf16,4096,4096,4096,600\n"
    )


def run(kind: str, numbers: Iterable[int], seed: int = 0) -> tuple[Counter[int], list[Failure]]:
    """Run the cases of some numbers, each in its folder; return the exit codes and the failures.

    The exit codes are counted.
    """
    codes: Counter[int] = Counter()
    failures = []
    os.environ["XDG_CACHE_HOME"] = tempfile.gettempdir()
    for number in numbers:
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        try:
            with chdir(folder):
                if kind == "files":
                    words = files.write_damaged(number, folder, seed)
                else:
                    prepared(folder)
                    words = arguments.draw_arguments(number, seed)
                code, what = outcome(words)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if code is None:
            failures.append(Failure(number, words, what))
        else:
            codes[code] += 1
    return codes, failures
