"""The command line: thin commands that bring the rooms together."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_group

from tco import __version__
from tco.cli.help import Listing, Taught, help_position
from tco.core.errors import DataError, TcoError, UsageError, nearest
from tco.core.streams import print_text, stdout_error, tell

TOGETHER = {  # the module that registers some commands on `app`, where it has not the name of one
    "hardware": ("bom", "fabric", "network", "collective", "kernel"),
    "compare": ("compare", "frontier", "fleet", "gigawatt", "rents"),
    "explain": ("price", "perf", "explain", "inputs"),
    "baseline": ("baseline", "diff"),
    "uncertainty": ("uncertainty", "sensitivity", "solve", "sweep"),
    "evidence": ("claims", "validate", "calibrate", "measure"),
    "drafts": ("init", "parts", "systems", "models", "scenarios"),
    "catalogue": (
        "sources",
        "rebates",
        "sites",
        "terms",
        "workloads",
        "clusters",
        "perspectives",
        "metrics",
    ),
    "service": ("service", "traffic"),
    "export": ("export",),
    "report": ("report",),
    "plot": ("plot",),
    "curve": ("curve",),
}
MODULES = {
    command_name: module
    for module, command_names in TOGETHER.items()
    for command_name in command_names
}

FAULT = 70  # the exit code of a defect of the program
# objects between two searches for cycles, of which an answer makes few: to search more often takes
# a twentieth of its time
GARBAGE = 300_000
# numpy multiplies no large matrix here, and to start the threads of OpenBLAS takes six times as
# long as to start Python
THREADS, TIMING = "OPENBLAS_NUM_THREADS", "measure"  # the command that times a machine takes all
# else the last search walks all that was imported, a tenth of a light command
atexit.register(gc.freeze)


class Commands(Listing):
    """Group that loads a command's module on demand, and ends a user's error with one message."""

    debug = False

    def load(self, modules: Iterable[str]) -> None:
        """Load the commands of some modules; loading all takes a tenth of a command's time."""
        for module in dict.fromkeys(modules):
            import_module(f"tco.cli.{module}")
        self.commands.update(get_group(app).commands)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in one order whichever were read before."""
        self.load(MODULES.values())
        return sorted(super().list_commands(ctx), key=help_position)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name; an unknown one makes all names known, for the nearest."""
        if cmd_name != TIMING:
            os.environ.setdefault(THREADS, "1")
        if cmd_name not in self.commands:
            self.load([MODULES[cmd_name]] if cmd_name in MODULES else MODULES.values())
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error the user can mend is printed, not raised."""
        self.debug = ctx.params["debug"]
        try:
            with warnings.catch_warnings():
                # of numpy, which most commands start without
                warnings.simplefilter("error", RuntimeWarning)
                return super().invoke(ctx)
        except (TcoError, RuntimeWarning) as raised_error:
            error = (
                raised_error
                if isinstance(raised_error, TcoError)
                else DataError(f"no finite number comes out of these inputs: {raised_error}")
            )
            tell(f"error: {error}")
            raise SystemExit(error.exit_code) from None
        except BrokenPipeError:  # the reader of the pipe has left, as `head` does
            sys.stderr.close()
            raise SystemExit(0) from None

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program; its own fault ends in one line and a special exit code.

        With `--debug` it ends in its trace.
        """
        gc.set_threshold(GARBAGE)
        try:
            return super().main(*args, **options)
        except Exception as error:
            # whatever opens a file names it: this is help that stdout does not take
            if isinstance(error, OSError) and error.filename is None:
                unprinted = stdout_error(error)
                tell(f"error: {unprinted}")
                raise SystemExit(unprinted.exit_code) from None
            if self.debug:
                raise
            tell(f"fault: {type(error).__name__}: {error}")
            tell(
                f"This is a defect of tco {__version__}, not of your data. Please report it, with "
                "what `tco --debug COMMAND` prints."
            )
            raise SystemExit(FAULT) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # a terminal and a pipe show the same page, the commands first
    help="What a unit of AI work costs on a rack, and why. Every number can be opened: `tco "
    "explain SCENARIO METRIC`.",
)


def version(is_requested: bool) -> None:
    """Print the version and stop."""
    if is_requested:
        typer.echo(f"tco {__version__}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the whole trace of a fault of the program.")
    ] = False,
) -> None:
    """Price a unit of AI work on a rack, and explain the price."""


Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[COMMAND...]", help="The words of a command, such as: baseline check."),
]


@app.command(name="help", cls=Taught)
def show_help(ctx: typer.Context, words: Words = None) -> None:
    """Show the help of a command, as `tco COMMAND --help` does."""
    page: Any = ctx.find_root()
    for word in words or []:
        listing = page.command
        subcommand = listing.get_command(page, word) if hasattr(listing, "list_commands") else None
        if subcommand is None:
            command_names = listing.list_commands(page) if hasattr(listing, "list_commands") else []
            raise UsageError(
                f"{page.command_path} has no command {word!r}{nearest(word, command_names)}"
            )
        page = type(page)(subcommand, info_name=word, parent=page)
    print_text(f"{page.get_help()}\n")
