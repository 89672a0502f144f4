"""`tco report`: a page of one comparison with figures and a what-if, or a folder of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tco.cli import app
from tco.cli.files import FOLDER, refuse_foreign_folder, refuse_namesakes, write_folder
from tco.cli.options import CommandRequest, command
from tco.core.errors import UsageError

if TYPE_CHECKING:
    from tco.report.page.page import ReportPage

PAGE_ENDINGS = (".html", ".htm")
FOLDER_MARK = "tco-report.json"  # file that every folder of pages holds


@command(app, "set", usual=("data", "quiet", "redact"))
def report(
    request: CommandRequest,
    output: str,
    scenarios: list[str] | None = None,
    baseline: str | None = None,
) -> None:
    """Write one page that stands alone, with figures and a what-if.

    The page has the pick, the sources, and a what-if that recalculates as inputs move.

    Options:
        output (--output -o FILE): Where to: FILE.html, or FOLDER/ for pages that a site may
            publish.

    """
    from tco.comparison.report_data import material_of
    from tco.evaluation.evaluation import HEADLINE
    from tco.report.page.report import report_page

    is_folder = output.endswith(FOLDER)
    if is_folder:
        refuse_foreign_folder(Path(output), FOLDER_MARK)  # before minutes of work
    elif Path(output).suffix.lower() not in PAGE_ENDINGS:
        raise UsageError(
            f"--output {output}: unknown ending {Path(output).suffix!r}, expected "
            f"{', '.join(PAGE_ENDINGS)} or a folder/"
        )
    scenario_names = list(dict.fromkeys(scenarios or HEADLINE))
    material = material_of(scenario_names, baseline, request.data, request.settings)
    refuse_namesakes([evaluation.result for evaluation in material.evaluations])
    words = request.words(scenario_names, baseline)
    output_name = Path(output).name + (FOLDER if is_folder else "")
    page = report_page(
        material,
        ["tco", "report", *words, "--output", output_name],
        ["tco", "compare", *words, "--no-range"],
    )
    report_name, pages = output, {output: page}
    if is_folder:
        from tco.comparison.ranking import ranking
        from tco.report.page.report import REPORT, gallery_of

        report_name = REPORT
        pages = gallery_of(page, material, ranking(request.settings, request.data))
    if request.redact:
        from tco.cli.redaction import pages_without_own_values

        pages = pages_without_own_values(pages)
    if is_folder:
        _write_gallery(Path(output), pages, report_name)
    else:
        _write_page(Path(output), pages[report_name])
    request.tell(pages[report_name].notes)


def _write_page(path: Path, page: ReportPage) -> None:
    from tco.core.files import write_atomically
    from tco.report.page.write import render_page

    write_atomically(path, render_page(page))


def _write_gallery(folder: Path, pages: Mapping[str, ReportPage], report_name: str) -> None:
    """Write pages by file name to a folder, with a mark that says what they were made of."""
    from tco.report.page.write import render_page
    from tco.report.record import to_json

    rendered_pages = {page_name: render_page(page) for page_name, page in pages.items()}
    provenance = dict(pages[report_name].provenance)
    mark_text = to_json(provenance | {"pages": sorted(rendered_pages)})
    write_folder(folder, rendered_pages | {FOLDER_MARK: mark_text}, FOLDER_MARK)
