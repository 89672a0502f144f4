"""The command line, run in process wherever text and exit code suffice."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from typer import testing

from tco.cli import app, output

__all__ = ["output"]  # what tests of several files ask for

# building the tree of commands takes longer than most commands do
testing._get_command = cache(testing._get_command)

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
SCHEMAS = Path(__file__).parents[2] / "reports" / "schema"
ENVIRONMENT = {"NO_COLOR": "1", "TERM": "dumb"}


def tco(*arguments: str, **environment: str) -> testing.Result:
    """Run a command and return exit code, stdout and stderr.

    An exception that is no exit fails the test.
    """
    done = testing.CliRunner().invoke(
        app,
        [str(argument) for argument in arguments],
        env={**ENVIRONMENT, **environment},
        prog_name="tco",
    )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    """Run a command with `--format json` and return its document.

    The document keeps to its published schema.
    """
    done = tco(*arguments, "--format", "json")
    assert done.exit_code == code, done.stderr

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    json_document: dict[str, Any] = json.loads(done.stdout, parse_constant=refuse)
    assert [
        error.json_path for error in schema_of(json_document["schema"]).iter_errors(json_document)
    ] == []
    return json_document


@cache
def schema_of(name: str) -> Draft202012Validator:
    """Return the validator of the published schema of a name."""
    path = SCHEMAS / f"{name.replace('/', '-')}.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))
