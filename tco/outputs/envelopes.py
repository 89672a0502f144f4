"""The best plans against published runs as a table, rows and a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tco.outputs.table import Table

if TYPE_CHECKING:
    from tco.studies.validation.envelopes import Envelope

COLUMNS = ("chip", "model", "formats", "input_tokens", "output_tokens", "configurations")
RUN_COLUMNS = (
    "tokens_per_s_per_user",
    "measured_tokens_per_s_per_chip",
    "alike_tokens_per_s_per_chip",
    "ratio_alike",
    "speed_ratio_alike",
    "best_tokens_per_s_per_chip",
    "ratio",
)
SHOWN = (
    ("alike", "same runs", "median"),
    ("alike", "error", "median_error"),
    ("alike_speed", "of their speed", "median_error"),
    ("", "best plan", "median"),
    ("", "below 0.9", "below_0.9"),
    ("", "least", "least"),
)


def named(envelope: Envelope) -> list[Any]:
    """Return what the runs of an envelope serve."""
    lengths = (float(f"{envelope.prompt:.12g}"), float(f"{envelope.answer:.12g}"))
    return [envelope.chip, envelope.model, envelope.formats, *lengths, len(envelope.speed)]


def envelope_table(envelopes: Sequence[tuple[Envelope, dict[str, Any]]], whole: dict[str, Any]) -> Table:
    """Return a line for each envelope, and one for all."""

    def figures(found: dict[str, Any]) -> list[str]:
        shown = [(found[part] if part else found)[name] for part, _, name in SHOWN]
        return [str(found["n"]), *("-" if value is None else f"{value:.2f}" for value in shown)]

    rows = [[f"{one.chip}, {one.model}", one.formats, f"{one.prompt:,.0f}/{one.answer:,.0f}", *figures(found)] for one, found in envelopes]
    columns = ("predicted over published runs", "formats", "tokens in/out", "runs", *(title for _, title, _ in SHOWN))
    return Table(columns, [*rows, ["all", "", "", *figures(whole)]], "", [], notes_of(whole))


def notes_of(whole: dict[str, Any]) -> list[str]:
    """Say what the figures are, and how two chips stand to each other."""
    notes = [
        "Runs that no other run of their envelope beats, each configuration by its newest run, at the speed each gives users.",
        "Same runs: as they were configured and loaded, predicted by refits that never saw the chip; zero: none has that speed.",
        "Best plan: of the search, also of plans nobody has run; zero: no plan gives users that speed.",
    ]
    two = whole["ratio_of_two"]
    if two["pairs"]:
        notes.append(
            f"Two chips at one speed, by the same runs: order right in {two['right'] * 100:.0f} % of {two['pairs']} pairs, "
            f"ratio off by {two['ratio_error'] * 100:.0f} % at the median. Runs off at random by "
            + "; ".join(f"{by['error'] * 100:.0f} %: {by['right'] * 100:.0f} %, {by['ratio_error'] * 100:.0f} %" for by in two["off_at_random"])
            + "."
        )
    return notes


def envelope_rows(envelopes: Sequence[tuple[Envelope, dict[str, Any]]]) -> list[list[Any]]:
    """Return a row for each run."""
    return [
        [*named(one), run.speed, run.measured, run.alike, run.ratio_alike, run.speed_ratio, run.best, run.ratio]
        for one, _ in envelopes
        for run in one.runs
    ]


def envelope_document(path: str, envelopes: Sequence[tuple[Envelope, dict[str, Any]]], whole: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    made = [
        {
            **dict(zip(COLUMNS, named(one), strict=True)),
            **found,
            "runs": [{**run._asdict(), "ratio": run.ratio, "ratio_alike": run.ratio_alike, "speed_ratio": run.speed_ratio} for run in one.runs],
        }
        for one, found in envelopes
    ]
    return {"file": path, "summary": whole, "envelopes": made}
