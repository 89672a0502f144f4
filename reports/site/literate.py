"""Tutorials and notebooks that run: what a page says to type is typed while the site is built, and
what comes out is what the reader sees.

A fenced block with a title is a file of the reader's folder, a `console` block holds command lines
after `$`; a line that must fail ends in `# exit N`. A `figure` block holds a command of `tco plot`,
in whose place its figure stands. Every page starts in an empty folder of its own. A command that
ends otherwise than the page says stops the build, as does a cell that raises.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tco.cli import app

BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL
)
COLUMNS = {"COLUMNS": "92", "NO_COLOR": "1"}


def filled(markdown: str) -> str:
    """Return a page with the output of its commands in place."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return BLOCK.sub(
            lambda found: _done(found.group(0), found["kind"], found["title"], found["body"]),
            markdown,
        )


def _done(block: str, kind: str, title: str | None, body: str) -> str:
    """Return a block as the page shows it: a file is written and stands under its name, commands
    are followed by what they print.
    """
    if title:
        path = Path(title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
        return f"`{title}`\n\n```{kind}\n{body}```"
    if kind == "figure":
        return drawn(body.strip())
    if kind != "console":
        return block
    return (
        "```console\n"
        + "\n".join(ran(line) for line in body.splitlines() if line.startswith("$ "))
        + "\n```"
    )


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


def drawn(command: str) -> str:
    """Return the figure that a command of `tco plot` draws, and the command below it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figure.svg")
        ran(f"$ {command} -o {path} --quiet")
        return f"{inside(path.read_text(encoding='utf-8'))}\n\n`{command} -o figure.svg`"


def inside(html: str) -> str:
    """Return HTML, a figure's too, as part of a page."""
    return f'<div markdown="0">{html}</div>'


# ---------------------------------------------------------------- notebooks
def noted(path: Path) -> str:
    """Return a notebook as a page: its words, its code, and what each cell shows, run from the
    first to the last in an empty folder.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            parts += (
                [source]
                if cell["cell_type"] == "markdown"
                else [f"```python\n{source}\n```", *shown(source, names)]
            )
    return "\n\n".join(parts) + "\n"


def shown(source: str, names: dict[str, Any]) -> Iterator[str]:
    """Run a cell, and yield what it prints and what its last expression comes to, as a notebook
    shows it.
    """
    tree, printed, last = ast.parse(source), io.StringIO(), None
    ends = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        last = None if ends is None else eval(compile(ends, "<cell>", "eval"), names)
    if said := printed.getvalue():
        yield f"```text\n{said}```"
    for how in ("_repr_svg_", "_repr_html_"):
        if hasattr(last, how):
            yield inside(getattr(last, how)())
            return
    if last is not None and not isinstance(last, int):  # how much was written to a file
        yield f"```text\n{last!r}\n```"
