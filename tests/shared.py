"""Share long computations between the workers of a test session."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tco.core.file_lock import hold_lock
from tco.core.files import replace_file

T = TypeVar("T")
# the session's own folder, which workers inherit; a test may set another for its commands
SESSION_CACHE = Path(os.environ["XDG_CACHE_HOME"])


def shared_by_workers(answer_name: str, make: Callable[[], T]) -> T:
    """Return the answer of `make`, from the first worker of a session to ask.

    Args:
        answer_name: File name of the answer, the same for the same question.
        make: Makes the answer, which others read back from a pickle.

    """
    path = SESSION_CACHE / f"{answer_name}.pickle"
    with hold_lock(path):
        if not path.exists():
            replace_file(path, pickle.dumps(make()))
        answer: T = pickle.loads(path.read_bytes())
    return answer
