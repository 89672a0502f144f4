"""The options commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Form(StrEnum):
    """How an answer is printed."""

    table = "table"
    csv = "csv"
    json = "json"
    md = "md"


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Replace an input, such as 'site.electricity_price=0.09 USD/kWh'. Repeatable."),
]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", metavar="KEY=VALUE", help="Choose a variant of the system, such as switch=gen2. Repeatable.")
]
Axes = Annotated[
    str | None, typer.Option("--plan", metavar="AXIS=N,...", help="Fix axes of the plan, such as tp=8,ep=1,batch=64; the others are searched.")
]
Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Your own data folder, laid over the shipped one.")]
Format = Annotated[Form, typer.Option("--format", help="How the answer is printed.")]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write to a file instead of stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No notes on stderr.")]
Redact = Annotated[bool, typer.Option("--redact", help="Leave out values that come from your own data folder.")]


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Return KEY=VALUE texts as a mapping; a malformed one raises `UsageError`."""
    from tco.foundation.errors import UsageError

    found = {}
    for text in texts or []:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise UsageError(f"{option} {text!r}: expected {'PATH' if option == '--set' else 'KEY'}=VALUE")
        found[key.strip()] = value.strip()
    return found


def axes(text: str | None) -> dict[str, str] | None:
    """Return the axes of a plan that AXIS=N,... fixes; a malformed one raises `UsageError`."""
    from tco.foundation.errors import UsageError

    if text is None:
        return None
    found: dict[str, str] = {}
    for one in text.split(","):
        name, sign, value = (part.strip() for part in one.partition("="))
        if not (sign and name and value):
            raise UsageError(f"--plan {text!r}: expected AXIS=N,..., such as tp=8,ep=1,batch=64")
        if name in found:
            raise UsageError(f"--plan {text!r}: {name} is given twice")
        found[name] = value
    return found
