"""The line of progress, on a terminal of the system and in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

SLOW = """
import time
import typer
from tco.cli import app
from tco.cli.options import command
from tco.compile.execute import fork_map
from tco.core.progress import named_step

@command(app)
def slow(request):
    \"\"\"Sleep in this process and in its copies.\"\"\"
    with named_step("sleeping"):
        time.sleep({seconds})
        print(sorted(fork_map(lambda number: time.sleep(0.1) or number, range(4))))

app(["slow", *{options!r}], prog_name="tco")
"""


def said_on_terminal(seconds, *options, **environment):
    """Return the stderr of a command on a terminal, and its stdout in a pipe."""
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SLOW.format(seconds=seconds, options=options)],
        stdout=subprocess.PIPE,
        stderr=side,
        env={**os.environ, "TERM": "xterm", **environment},
    ) as process:
        os.close(side)
        answer = process.stdout.read().decode()
        assert process.wait(30) == 0
    text = b""
    try:
        while part := os.read(terminal, 4096):
            text += part
    except OSError:  # the other side is closed
        pass
    os.close(terminal)
    return text.decode(), answer


def test_progress_is_shown_after_two_seconds_and_cleared():
    text, answer = said_on_terminal(2.2)
    assert "2 s: sleeping" in text
    assert text.endswith("\r\x1b[K")
    assert answer == "[(0, 0), (1, 1), (2, 2), (3, 3)]\n"


@pytest.mark.parametrize(
    ("seconds", "options", "environment"),
    [(0.2, (), {}), (2.2, ("--quiet",), {}), (2.2, (), {"TERM": "dumb"})],
    ids=["soon done", "quiet", "dumb terminal"],
)
def test_progress_is_silent_where_nobody_waits_for_it(seconds, options, environment):
    assert said_on_terminal(seconds, *options, **environment)[0] == ""


def test_progress_is_silent_in_a_pipe():
    done = subprocess.run(
        [sys.executable, "-c", SLOW.format(seconds=2.2, options=())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
