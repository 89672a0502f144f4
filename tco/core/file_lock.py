"""A lock on a file that several programs change: read, change and write without a lost update.

The lock is a file beside the one that changes, made with `O_EXCL`, which every system knows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tco.core.errors import UsageError

STALE = 60.0  # seconds after which the program that made a lock no longer runs
PATIENCE = 150.0  # seconds to wait for a lock
PAUSE = 0.01  # seconds between two tries


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock on a file, for as long as one reading and one writing take.

    Args:
        path: File to change; its folder exists.

    Raises:
        UsageError: The folder cannot be written to, or another program keeps the lock.

    """
    lock = path.with_name(f".{path.name}.lock")
    deadline = time.monotonic() + PATIENCE
    try:
        while not _create(lock):
            _remove_stale(lock)
            if time.monotonic() > deadline:
                raise UsageError(
                    f"{path}: another program has been changing it for {PATIENCE:g} s; delete "
                    f"{lock} if none does"
                )
            time.sleep(PAUSE)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror or error})") from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _create(lock: Path) -> bool:
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    except PermissionError:  # on Windows also while another program removes it
        if lock.exists():
            return False
        raise
    return True


def _remove_stale(lock: Path) -> None:
    """Remove the lock of a program that was killed; a second lock lets one program do so."""
    if not _is_stale(lock):
        return
    second_lock = lock.with_name(f"{lock.name}.stale")
    if not _create(second_lock):
        return
    try:
        if _is_stale(lock):
            lock.unlink(missing_ok=True)
    finally:
        second_lock.unlink(missing_ok=True)


def _is_stale(lock: Path) -> bool:
    try:
        return time.time() - lock.stat().st_mtime > STALE
    except FileNotFoundError:
        return False
