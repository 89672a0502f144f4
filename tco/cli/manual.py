"""`tco help`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tco.cli import app
from tco.cli.help import Taught

Words = Annotated[list[str] | None, typer.Argument(metavar="[COMMAND...]", help="The words of a command, such as: baseline check.")]


@app.command(name="help", cls=Taught)
def show_help(ctx: typer.Context, words: Words = None) -> None:
    """Show the help of a command, as `tco COMMAND --help` does."""
    from tco.foundation.errors import UsageError, nearest
    from tco.foundation.streams import put

    page: Any = ctx.find_root()
    for word in words or []:
        listing = page.command
        found = listing.get_command(page, word) if hasattr(listing, "list_commands") else None
        if found is None:
            known = listing.list_commands(page) if hasattr(listing, "list_commands") else []
            raise UsageError(f"{page.command_path} has no command {word!r}{nearest(word, known)}")
        page = type(page)(found, info_name=word, parent=page)
    put(f"{page.get_help()}\n")
