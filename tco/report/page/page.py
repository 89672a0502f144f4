"""The page before it is written: sections of words, figures and tables, and the what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tco.core.types import JsonMapping
from tco.report.table import Table


class Picture(NamedTuple):
    """A figure for a wide window and paper, and the same for a narrow one."""

    wide: str
    narrow: str


class Section(NamedTuple):
    """One question and its answer; `folded` tables open on demand, since a figure says the same."""

    id: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    folded: Sequence[Table] = ()
    paper: bool = True  # whether print has it


class WhatIf(NamedTuple):
    """Data and functions of the what-if script of the page."""

    document: JsonMapping
    functions: Sequence[str]


class ReportPage(NamedTuple):
    """All that is said."""

    title: str
    verdict: Sequence[str]  # the first is the headline
    premises: Sequence[str]
    sections: Sequence[Section]
    what_if: WhatIf | None
    provenance: Sequence[tuple[str, str]]  # by what, of which data, with which command
    notes: Sequence[str]
    links: Mapping[str, str] = {}  # what leads to another page -> that page
