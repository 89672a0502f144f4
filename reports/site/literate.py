"""Tutorials that run: what a page says to type is typed while the site is built, and what comes out is what the reader sees.

A fenced block with a title is a file of the reader's folder, a `console` block holds command lines after `$`; a line that must fail
ends in `# exit N`. Every page starts in an empty folder of its own. A command that ends otherwise than the page says stops the build.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

from typer.testing import CliRunner

from tco.cli import app

BLOCK = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL)
COLUMNS = {"COLUMNS": "92", "NO_COLOR": "1"}


def filled(markdown: str) -> str:
    """Return a page with the output of its commands in place."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return BLOCK.sub(lambda found: _done(found.group(0), found["kind"], found["title"], found["body"]), markdown)


def _done(block: str, kind: str, title: str | None, body: str) -> str:
    """Return a block as the page shows it: a file is written and stands under its name, commands are followed by what they print."""
    if title:
        path = Path(title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
        return f"`{title}`\n\n```{kind}\n{body}```"
    if kind != "console":
        return block
    return "```console\n" + "\n".join(ran(line) for line in body.splitlines() if line.startswith("$ ")) + "\n```"


def ran(line: str) -> str:
    """Return a command line and what it prints."""
    typed, _, code = line.removeprefix("$ ").partition("  # exit ")
    program, *words = shlex.split(typed)
    if program == "cd":
        os.chdir(words[0])
        return line
    done = CliRunner(env=COLUMNS).invoke(app, words)
    if program != "tco" or done.exit_code != int(code or 0):
        raise RuntimeError(f"{typed}: exit {done.exit_code}\n{done.output}")
    return f"$ {typed}\n{done.output}".rstrip() + "\n"
