"""The best plans against published runs as a table, rows and a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tco.outputs.table import Table

if TYPE_CHECKING:
    from tco.studies.validation.envelopes import Envelope

COLUMNS = ("chip", "model", "formats", "input_tokens", "output_tokens", "configurations")
FIGURES = ("n", "median", "below_0.9", "below_0.75", "least")


def named(envelope: Envelope) -> list[Any]:
    """Return what the runs of an envelope serve."""
    lengths = (float(f"{envelope.prompt:.12g}"), float(f"{envelope.answer:.12g}"))
    return [envelope.chip, envelope.model, envelope.formats, *lengths, envelope.configurations]


def envelope_table(envelopes: Sequence[tuple[Envelope, dict[str, Any]]], whole: dict[str, Any]) -> Table:
    """Return a line for each envelope, and one for all."""

    def figures(found: dict[str, Any]) -> list[str]:
        return [str(found["n"]), *("-" if found[name] is None else f"{found[name]:.2f}" for name in FIGURES[1:])]

    rows = [[f"{one.chip}, {one.model}", one.formats, f"{one.prompt:,.0f}/{one.answer:,.0f}", *figures(found)] for one, found in envelopes]
    columns = ("best plan over published run", "formats", "tokens in/out", "runs", "median", "below 0.9", "below 0.75", "least")
    note = "Runs that no other run of their envelope beats, each configuration once; zero: no plan gives users that speed."
    return Table(columns, [*rows, ["all", "", "", *figures(whole)]], "", [], [note])


def envelope_rows(envelopes: Sequence[tuple[Envelope, dict[str, Any]]]) -> list[list[Any]]:
    """Return a row for each run."""
    return [[*named(one), run.speed, run.measured, run.best, run.ratio] for one, _ in envelopes for run in one.runs]


def envelope_document(path: str, envelopes: Sequence[tuple[Envelope, dict[str, Any]]], whole: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    made = [
        {**dict(zip(COLUMNS, named(one), strict=True)), **found, "runs": [{**run._asdict(), "ratio": run.ratio} for run in one.runs]}
        for one, found in envelopes
    ]
    return {"file": path, "summary": whole, "envelopes": made}
