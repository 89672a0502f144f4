"""Commands print the kept forms: on terminals of 80 and 120 columns, in a pipe, as Markdown.

Figures move with every price: what is held here is the form, which words stand where, and how lines
fold.
"""

from __future__ import annotations

import re

import pytest

from tests.cli import output, tco

COMMANDS = {
    "compare": ("compare", "trn3-nl72x2", "gb200-nvl72", "--no-range"),
    "compare-six": (
        "compare",
        "trn3-nl72x2",
        "gb200-nvl72",
        "h200-hgx8",
        "b200-hgx8",
        "mi355x-8",
        "moe-3t-decode-gb200-nvl72",
        "--no-range",
    ),
    "price": ("price", "h200-hgx8"),
    "bom": ("bom", "h200-hgx8"),
    "fabric": ("fabric", "trn3-nl72x2"),
    "network": ("network", "--switch", "12.8T", "--port", "100G", "--tiers", "3"),
    "inputs": ("inputs", "gb200-nvl72", "terms"),
    "parts": ("parts", "show", "connectx-7"),
    "rebates": ("rebates", "show", "astera-2022"),
    "metrics": ("metrics", "list"),
}
WIDTHS = {"80": 80, "120": 120, "pipe": None}


def form(text: str) -> str:
    """Return a text with a # for every number and two blanks between columns.

    Figures move, labels and folds do not.
    """
    lines = [
        re.sub(r"(?<![A-Za-z\d-])-?\d[\d,.]*(e[-+]\d+)?", "#", line).rstrip()
        for line in text.splitlines()
    ]
    return (
        "\n".join(re.sub(r"(?<=\S) {2,}", "  ", re.sub("─+", "─", line)) for line in lines) + "\n"
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_keeps_its_form(name, width, monkeypatch, file_regression):
    monkeypatch.setattr(output, "screen_width", lambda: WIDTHS[width])
    text = tco(*COMMANDS[name]).stdout
    if WIDTHS[width]:
        assert max(map(len, text.splitlines())) <= WIDTHS[width]
    file_regression.check(form(text), basename=f"{name}-{width}")
