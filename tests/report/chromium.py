"""Open a page from its file in a browser, and record its complaints and requests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDE, PHONE = {"width": 1400, "height": 1000}, {"width": 390, "height": 844}
PAPER = {"width": 696, "height": 1000}  # pixels: A4 without its margins
BINARY = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@contextmanager
def browser() -> Iterator[Any]:
    """Start the machine's Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright_driver:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        running = playwright_driver.chromium.launch(executable_path=BINARY, args=sandbox)
        yield running
        running.close()


class Opened:
    """A page in a window of its own, with all its requests and complaints."""

    def __init__(self, running: Any, path: Path, size: dict[str, int], **how: Any) -> None:
        self.page = running.new_page(viewport=size, **how)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on(
            "console",
            lambda console_message: (
                self.complaints.append(console_message.text)
                if console_message.type in ("error", "warning")
                else None
            ),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "dialog",
            lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()),
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)
        self.settle()

    def settle(self) -> None:
        """Wait until what was moved is shown, and is in the address."""
        self.page.evaluate(
            "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => "
            "requestAnimationFrame(done)), 220))"
        )

    def type(self, path: str, value: float) -> None:
        """Type a value into the field of an input, opening it by search where it is not open."""
        field = self.page.locator(f'input[type=number][aria-label^="{path},"]')
        if not field.count():
            self.page.fill("#search", path)
            self.page.locator("#found button").first.click()
        field.fill(repr(value))

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return the table of the what-if at full precision, by scenario and metric."""
        return self.page.evaluate(
            """() => { const found = {};
            for (const cell of document.querySelectorAll("#whatif-table td"))
              if (cell.dataset.value) {
                const metrics = found[DATA.scenarios[cell.dataset.scenario]] ??= {};
                metrics[cell.dataset.metric] = Number(cell.dataset.value);
              }
            return found; }"""
        )

    def everything(self) -> dict[str, dict[str, float]]:
        """Return every metric that the page has computed."""
        return self.page.evaluate(
            """() => Object.fromEntries(NOW.map((found, at) => [DATA.scenarios[at],
            Object.fromEntries(
              Object.entries(found).filter(([, value]) => Number.isFinite(value)))]))"""
        )

    @property
    def command(self) -> str:
        """The command that gives the same."""
        return self.page.inner_text("#whatif-command")
