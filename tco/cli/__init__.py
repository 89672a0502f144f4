"""The command line: thin commands that bring the rooms together."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tco import __version__


class Commands(TyperGroup):
    """A group whose commands end an error that is the user's to mend with one message and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error the user can mend is printed, not raised."""
        from tco.errors import TcoError

        try:
            return super().invoke(ctx)
        except TcoError as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(error.exit_code) from None
        except BrokenPipeError:  # the reader of the pipe has left, as `head` does
            sys.stderr.close()
            raise SystemExit(0) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="What a unit of AI work costs on a rack, and why. Every number can be opened: `tco explain SCENARIO METRIC`.",
)


def version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"tco {__version__}")
        raise typer.Exit


@app.callback()
def main(show_version: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False) -> None:
    """What a unit of AI work costs on a rack, and why."""


from tco.cli import (  # noqa: E402, F401 - the commands register themselves on `app`
    baseline,
    bom,
    calibrate,
    claims,
    collective,
    compare,
    diff,
    explain,
    fabric,
    frontier,
    init,
    measure,
    network,
    perf,
    price,
    shelves,
    validate,
)
