"""Kinds of catalogue entries: parts, systems, models, sites, terms and others.

The commands `list`, `show` and `check` of a kind, their help and their answers follow from its row
here.
"""

from __future__ import annotations

from typing import NamedTuple


class EntryKind(NamedTuple):
    """A kind of entry, named after its folder and its commands."""

    noun: str
    page: str  # content of the page of an entry, as the help describes it
    argument: str = "name"  # argument of `show` in the usage line
    options: tuple[str, ...] = ()  # shared options of `show`
    group: str = ""  # group of inputs to which the values of a document belong
    texts: tuple[str, ...] = ()  # keys of a document whose texts the list of documents shows


def _document_kind(noun: str, group: str, *texts: str) -> EntryKind:
    page = f"what a {noun} states, as written, with the ranges and sources"
    return EntryKind(noun, page, group=group, texts=("name", *texts))


DOCUMENT_KINDS = {
    "sites": _document_kind("site", "site", "base", "country", "tenure", "cooling", "grid"),
    "terms": _document_kind("set of terms", "terms", "perspective", "date"),
    "workloads": _document_kind("workload", "workload", "kind", "model", "precision"),
    "clusters": _document_kind("cluster", "cluster", "switch", "port"),
    "perspectives": _document_kind("perspective", "terms", "base", "owner", "pays"),
    "traffic": _document_kind("traffic", "traffic", "promises"),
}
ENTRY_KINDS = {
    "parts": EntryKind(
        "part",
        "the values of a part at a price date, and those of other dates and sources",
        options=("date",),
    ),
    "systems": EntryKind(
        "system",
        "the tree of a system, and what its chip and its scale-up domain offer",
        "system",
        ("variant",),
    ),
    "models": EntryKind("model", "the shape of a model"),
    "scenarios": EntryKind(
        "scenario", "every input a scenario depends on, with its range and source", "scenario"
    ),
    "sources": EntryKind("source", "a source and every value based on it"),
    "rebates": EntryKind(
        "agreement",
        "an agreement: its terms, what has vested, and what its right is worth at the date (--set "
        "terms.date=2026-02)",
        "agreement",
        ("set",),
        "rebates",
    ),
    **DOCUMENT_KINDS,
}
