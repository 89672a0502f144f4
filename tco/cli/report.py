"""`tco report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Request, command

ENDINGS = (".html", ".htm")


@command(app, "set", usual=("data", "quiet", "redact"))
def report(
    given: Request,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to: FILE.html.")],
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Names or files; none: the four headline racks.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario the others are compared with.")] = None,
) -> None:
    """Write one page that stands alone: the verdict, figures, sources, and a what-if that recalculates as inputs move."""
    from tco.cli.export import refuse_namesakes
    from tco.cli.load import HEADLINE
    from tco.foundation.errors import UsageError
    from tco.foundation.files import write_atomically
    from tco.foundation.streams import tell
    from tco.outputs.page.report import page_of
    from tco.outputs.page.write import written
    from tco.studies.reporting import material_of

    if Path(output).suffix.lower() not in ENDINGS:
        raise UsageError(f"--output {output}: unknown ending {Path(output).suffix!r}, expected {' or '.join(ENDINGS)}")
    names = list(dict.fromkeys(scenarios or HEADLINE))
    material = material_of(names, baseline, given.data, given.settings)
    refuse_namesakes([one.result for one in material.asked])
    made_by = ["tco", "report", *words_of(given, names, baseline), "--output", Path(output).name]
    page = page_of(material, made_by, ["tco", "compare", *words_of(given, names, baseline), "--no-range"])
    if given.texts["redact"]:
        from tco.cli.keeping import page_without_own_values

        page = page_without_own_values(page)
    write_atomically(Path(output), written(page))
    if not given.quiet:
        for note in page.notes:
            tell(f"note: {note}")


def words_of(given: Request, names: Sequence[str], baseline: str | None) -> list[str]:
    """Return what was asked for as words of a command line; a setting is a person's own value."""
    kept = {path: "..." if given.texts["redact"] else value for path, value in given.settings.items()}
    settings = [word for path, value in kept.items() for word in ("--set", f"{path}={value}")]
    return [*names, *settings, *(["--baseline", baseline] if baseline else []), *(["--data", str(given.data)] if given.data else [])]
