"""The command line, run in process wherever text and exit code suffice."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from tco.cli import app

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
ENVIRONMENT = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"}


def tco(*arguments: str, **environment: str) -> Result:
    """Run a command and return exit code, stdout and stderr; an exception that is no exit is the test's failure."""
    done = CliRunner().invoke(app, [str(one) for one in arguments], env={**ENVIRONMENT, **environment}, prog_name="tco")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    """Run a command with `--format json` and return its document."""
    done = tco(*arguments, "--format", "json")
    assert done.exit_code == code, done.stderr

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    found: dict[str, Any] = json.loads(done.stdout, parse_constant=refuse)
    return found
