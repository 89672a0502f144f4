"""`tco report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Request, command

ENDINGS = (".html", ".htm")
FOLDER, MARK = "/", "tco-report.json"  # the end of a folder's name, and the file by which a folder of pages is known


@command(app, "set", usual=("data", "quiet", "redact"))
def report(
    given: Request,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to: FILE.html, or FOLDER/ for pages that a site may publish.")],
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

    folder = output.endswith(FOLDER)
    if not folder and Path(output).suffix.lower() not in ENDINGS:
        raise UsageError(f"--output {output}: unknown ending {Path(output).suffix!r}, expected {', '.join(ENDINGS)} or a folder/")
    names = list(dict.fromkeys(scenarios or HEADLINE))
    material = material_of(names, baseline, given.data, given.settings)
    refuse_namesakes([one.result for one in material.asked])
    made_by = ["tco", "report", *words_of(given, names, baseline), "--output", Path(output).name + FOLDER * folder]
    page = page_of(material, made_by, ["tco", "compare", *words_of(given, names, baseline), "--no-range"])
    pages = {output: page}
    if folder:
        from tco.outputs.page.gallery import gallery_of
        from tco.studies.comparison import ranking

        pages = gallery_of(page, material, ranking(given.settings, given.data))
    if given.texts["redact"]:
        from tco.cli.keeping import pages_without_own_values

        pages = pages_without_own_values(pages)
        page = next(iter(pages.values()))
    if folder:
        from tco.cli.export import write_folder
        from tco.outputs.record import to_json

        made = {name: written(one) for name, one in pages.items()}
        write_folder(Path(output), made | {MARK: to_json(dict(page.made) | {"pages": sorted(made)})}, MARK)
    else:
        write_atomically(Path(output), written(page))
    if not given.quiet:
        for note in page.notes:
            tell(f"note: {note}")


def words_of(given: Request, names: Sequence[str], baseline: str | None) -> list[str]:
    """Return what was asked for as words of a command line; a setting is a person's own value."""
    kept = {path: "..." if given.texts["redact"] else value for path, value in given.settings.items()}
    settings = [word for path, value in kept.items() for word in ("--set", f"{path}={value}")]
    return [*names, *settings, *(["--baseline", baseline] if baseline else []), *(["--data", str(given.data)] if given.data else [])]
