"""Check a built site in Chromium: no page is too tall, and everybody can read each of them.

`python -m tests.site_pages FOLDER` prints a line for each fault, and exits with 1 if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.report.chromium import BINARY, browser

SCREEN = {"width": 1440, "height": 900}  # pixels
TALLEST = 15  # screens
GRAVE = ("serious", "critical")  # impacts of what Axe finds
# figures are read by what is said of them
WITHOUT_MARKS = (
    "() => document.querySelectorAll('svg > :not(title, desc)').forEach(mark => mark.remove())"
)


def faults_of(page: Any, path: Path) -> Iterator[str]:
    """Yield the faults of a page: its height, and grave violations."""
    from axe_playwright_python.sync_playwright import Axe

    page.goto(path.as_uri())
    screens = page.evaluate("document.documentElement.scrollHeight") / SCREEN["height"]
    if screens > TALLEST:
        yield f"{path}: {screens:.1f} screens tall, {TALLEST} are allowed"
    page.evaluate(WITHOUT_MARKS)
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    for violation in violations:
        if violation["impact"] in GRAVE:
            yield f"{path}: {violation['id']}: {violation['nodes'][0]['html'][:120]}"


def main(folder: str) -> int:
    """Print the faults of every page below a folder, and return the exit code."""
    if BINARY is None:
        print("Chromium is not installed: the pages of the site are not checked")
        return 0
    paths = sorted(Path(folder).resolve().rglob("*.html"))
    with browser() as running:
        page = running.new_page(viewport=SCREEN)
        faults = [fault for path in paths for fault in faults_of(page, path)]
    print("\n".join(faults))
    return int(bool(faults) or not paths)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
