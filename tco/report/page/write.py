"""Write the page as one file with its style, script and numbers, which loads nothing else."""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tco.core.streams import printable_line
from tco.core.types import JsonMapping
from tco.report.figures.style import properties
from tco.report.page.page import ReportPage
from tco.report.page.program import script as script_of

HERE = Path(__file__).resolve().parent
# Whatever somebody's names and notes may hold, the page runs its own script alone and loads nothing
# from anywhere.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src "
    "'unsafe-inline'; script-src {scripts}"
)


@cache
def _environment() -> Any:
    """Return the Jinja environment that renders the templates.

    It escapes every text.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = lambda plain_text: printable_line(str(plain_text))
    environment.filters["breakable"] = lambda breakable_text: Markup("/<wbr>").join(
        map(escape, printable_line(str(breakable_text)).split("/"))
    )
    environment.filters["hyphened"] = lambda hyphened_text: Markup("-<wbr>").join(
        map(escape, printable_line(str(hyphened_text)).split("-"))
    )
    return environment


def render_page(page: ReportPage) -> str:
    """Return a report page as HTML text.

    Args:
        page: Content of the page, with the data of its what-if part if there is any.

    Returns:
        A document that runs no script but its own, if any, and loads nothing.

    """
    from markupsafe import Markup

    program = page.what_if and "\n".join(
        [
            '"use strict";',
            script_of(page.what_if.functions),
            _read_page_asset("engine.js"),
            _read_page_asset("whatif.js"),
        ]
    )
    script = Markup(program or "")
    page_html: str = (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            policy=POLICY.format(scripts=f"'sha256-{_digest(script)}'" if script else "'none'"),
            style=Markup(_colours() + _read_page_asset("style.css")),
            script=script,
            data=Markup("" if page.what_if is None else embedded(page.what_if.document)),
            markup=Markup,
        )
    )
    return page_html


def _colours() -> str:
    return (
        f":root{{{properties(dark=False)}}}\n@media screen and (prefers-color-scheme: "
        f"dark){{:root{{{properties(dark=True)}}}}}\n"
    )


def _read_page_asset(asset_name: str) -> str:
    return (HERE / asset_name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")


def embedded(document: JsonMapping) -> str:
    """Return a document as JSON in which nothing ends the element it stands in."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
