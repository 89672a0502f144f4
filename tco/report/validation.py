"""Predictions beside measurements: the answers of `tco validate`, and the validation files."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from os.path import isdir  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.accuracy import FILES
from tco.catalog.accuracy import accuracy_rows as accuracy
from tco.core.errors import UsageError
from tco.core.files import read_csv, write_atomically
from tco.core.types import JsonMapping, JsonObject
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, to_csv, to_markdown
from tco.validation import back_test
from tco.validation.envelopes import Envelope, against_runs
from tco.validation.measured import read_measured
from tco.validation.run import Validation

if TYPE_CHECKING:
    from tco.core.inputs import Values
    from tco.validation.calibrate import Calibration

MOST_GROUPS = 12
ERRORS = ("median_ape", "mean_ape", "p90_ape", "bias", "spearman")
SCORE = Record(Member("n", int), *(Member(error_name, float | None) for error_name in ERRORS))
CURVES = Record(
    Member("n", int),
    *(Member(error_name, float | None) for error_name in ("p90_ape", "spearman", "spearman_p10")),
)
UNSTATED = Record(Member("n", int), Member("inside", int), Member("median_width", float | None))
CARD = Record(
    SCORE,
    Member("scored", int),
    Member("skipped", {str: int}),
    Member("curves", CURVES),
    Member("offline", SCORE),
    Member("ranges", UNSTATED),
    Member("by", {str: {str: SCORE}}),
    Member("left_out", {str: SCORE.only("n", "median_ape", "p90_ape", "spearman")}),
)
VALIDATION = Document(
    "validate",
    "file",
    "kind",
    CARD.read_via("card"),
    Member("rows", [dict], optional=True),
)
ROW = Record(Member("group", read="0"), Member("member", read="1"), SCORE.read_via("2"))


def validation_answer(
    catalogue: Catalogue, path: Path, validation: Validation, with_rows: bool
) -> Answer:
    """Return the prediction errors on the measurements of a file.

    The rows are the measurements where `with_rows`, else the scores of all groups.
    """
    content: JsonObject = {"file": str(path), "kind": validation.kind, "card": validation.card}
    csv_rows: tuple[Record, Sequence[Any]] = (ROW, _score_rows(validation.card))
    if with_rows:
        # nothing where nothing was predicted
        plain = validation.rows.astype(object).where(validation.rows.notna(), None)
        csv_rows = (
            Record(
                *(
                    Member(str(column_name), float | str | None)
                    for column_name in validation.rows.columns
                )
            ),
            plain.to_dict("records"),
        )
        # by names
        content["rows"] = [
            scored_row | {"unstated": scored_row["unstated"].split()}
            if "unstated" in scored_row
            else scored_row
            for scored_row in csv_rows[1]
        ]
    return VALIDATION.answer(
        catalogue,
        content,
        lambda: _validation_tables(path.name, validation.kind, validation.card),
        csv_rows,
    )


SCORES = ("median", "mean", "P90", "bias")
UNSEEN = {"accelerator": "chip"}
MEASURED = {  # column of a measured quantity -> words
    "tpot_ms_mean": "time per output token",
    "total_tput_tok_s_per_gpu": "tokens/s per chip, in and out",
    "output_tput_tok_s_per_gpu": "output tokens/s per chip",
    "decode_tput_tok_s_per_decode_gpu": "output tokens/s per decode chip",
    "prefill_tput_tok_s_per_prefill_gpu": "input tokens/s per prefill chip",
    "ttft_s_mean": "mean time to first token",
    "ttft_s_p90": "P90 of time to first token",
    "time_us": "time",
    "tflops": "TFLOP/s",
    "gb_s": "GB/s",
    "algbw_gb_s": "GB/s of the buffer",
    "step_time_s": "time of a training step",
    "tokens_s_per_accelerator": "tokens/s per chip",
    "model_tflops_per_accelerator": "model TFLOP/s per chip",
    "hw_tflops_per_accelerator": "executed TFLOP/s per chip",
}
GROUP_LABELS = {
    "accelerator": "chip",
    "source_id": "source",
    "framework": "software",
    "dtype": "number format",
    "op": "operation",
    "target": "measured quantity (column)",
    "tier": "tier (fitted: A)",
}
SCORE_COLUMNS = ("rows", *(f"{score_name}, %" for score_name in SCORES), "rank correlation")
SCORE_LEGEND = (
    "median, mean, P90: of the errors, which have no sign. bias: the median error with its sign; + "
    "is predicted too large. rank correlation: 1 where predictions and measurements have the same "
    "order. -: not computed."
)
UNSEEN_LEGEND = (
    "without its ...: each row is predicted by a fit that never saw its chip, model or source."
)
CURVE_LEGEND = (
    "shape of each curve: the errors of rows that differ in load or size alone, once their median "
    "error is taken out."
)
SKIPPED = {"suspect": "suspect: the file says so of the row"}  # reason -> words
UNSTATED_COLUMNS = re.compile(r"unstated ([\w ]+): (\w+(?:, \w+)*)")


def _score_rows(card: JsonObject) -> list[tuple[str, str, Any]]:
    """Return every score of a file: overall, left out of the fit, within a curve, and by group."""
    groups = {
        "all": {"": {**card, "n": card["scored"]}},
        "left_out": card["left_out"],
        "inside": {"curve": card["curves"]},
        **card["by"],
    }
    return [
        (group, member, score)
        for group, members in groups.items()
        for member, score in members.items()
    ]


def _one_decimal_percent(error_share: float | None) -> str:
    return "-" if error_share is None else f"{error_share * 100:z.1f}"


def _score_cells(label: str, score: JsonObject, count: str = "n") -> list[str]:
    """Return one line of scores."""
    rank = score.get("spearman")
    return [
        label,
        f"{int(score[count]):,}",
        *(_one_decimal_percent(score.get(error_name)) for error_name in ERRORS[:4]),
        "-" if rank is None else f"{rank:.3f}",
    ]


def _validation_tables(file_name: str, kind: str, card: JsonObject) -> list[Table]:
    """Return the overall score, the skipped rows with reasons, and the errors by group size."""
    tables = [_score_table(file_name, kind, card)]
    if card["skipped"]:
        reasons = sorted(card["skipped"].items(), key=lambda item: -item[1])
        skipped = [(f"{count:,}", _skip_words(reason)) for reason, count in reasons]
        tables.append(Table(("rows", "why they are skipped"), skipped, align="rl"))
    for group, parts in card["by"].items():
        if len(parts) > 1:
            tables.append(_group_table(group, parts, card["scored"]))
    return tables


def _group_table(group: str, parts: Mapping[str, JsonObject], scored: int) -> Table:
    """Return the scores of the largest parts of a group, and the count of rows in no part."""
    largest = sorted(parts.items(), key=lambda item: -item[1]["n"])[:MOST_GROUPS]
    score_rows = [
        _score_cells(
            f"{MEASURED[part]} ({part})" if group == "target" and part in MEASURED else part, score
        )
        for part, score in largest
    ]
    stated_rows = sum(score["n"] for score in parts.values())
    if stated_rows < scored:
        score_rows.append(["not stated", f"{scored - stated_rows:,}", *[""] * len(ERRORS)])
    below = []
    hidden = len(parts) - len(largest)
    if hidden:
        listed = sum(score["n"] for _, score in largest)
        below = [f"and {hidden} more, with {stated_rows - listed:,} rows; --format json has all"]
    return Table((GROUP_LABELS.get(group, group), *SCORE_COLUMNS), score_rows, below=below)


def _skip_words(reason: str) -> str:
    """Return the reason for skipping rows, with the columns that the file leaves empty."""
    if unstated := UNSTATED_COLUMNS.fullmatch(reason):
        return f"{unstated[1]} not stated: fill {unstated[2]}"
    return SKIPPED.get(reason, reason.replace("unknown-accelerator", "unknown chip", 1))


def _score_table(file_name: str, kind: str, card: JsonObject) -> Table:
    """Return the scores of all rows, of refits without some, and of curves."""
    score_rows = [_score_cells("all compared rows", card, "scored")]
    left_out = {what: score for what, score in card["left_out"].items() if what != "nothing"}
    score_rows += [
        _score_cells(f"  without its {UNSEEN.get(what, what)}", score)
        for what, score in left_out.items()
    ]
    curves, offline = card["curves"], card["offline"]
    if curves["n"]:
        label, _, *scores = _score_cells("  shape of each curve", curves)
        score_rows.append([label, f"{curves['n']:,} curves", *scores])
    if offline["n"]:
        score_rows.append(_score_cells("offline runs, apart", offline))
    reasons = "; the others are skipped, with the reason below" if card["skipped"] else ""
    above = [f"{card['scored']:,} of {card['n']:,} rows are compared{reasons}."]
    if card["scored"]:
        above.append(
            f"Half of the predictions are within {card['median_ape'] * 100:.1f} % of the "
            f"measurement, nine of ten within {card['p90_ape'] * 100:.1f} %."
        )
    below = [SCORE_LEGEND]
    below += [UNSEEN_LEGEND] if left_out else []
    if any(score["n"] > card["scored"] for score in left_out.values()):
        below[-1] += " Their rows are all that the fit rests on, not this file alone."
    below += [CURVE_LEGEND] if curves["n"] else []
    ranges = card["ranges"]
    if ranges["n"]:
        width = (ranges["median_width"] - 1) * 100
        below += [
            f"{ranges['n']:,} rows leave a setting open, so their prediction is a range. At the "
            f"median its upper end is {width:.0f} % above its lower end. "
            f"{ranges['inside']:,} of these measurements lie inside it; --rows gives both ends.",
        ]
    title = f"{file_name}: predictions against measurements of {kind}"
    return Table(("", *SCORE_COLUMNS), score_rows, title, above, below)


# ---------------------------------------------------------------- best plans against published runs
SHOWN = (
    ("alike", "same runs", "median"),
    ("alike", "error", "median_error"),
    ("alike_speed", "of their speed", "median_error"),
    ("", "best plan", "median"),
    ("", "below 0.9", "below_0.9"),
    ("", "least", "least"),
)


NAMED = Record(
    "chip",
    "model",
    "formats",
    Member("input_tokens", float, lambda envelope: float(f"{envelope.prompt:.12g}")),
    Member("output_tokens", float, lambda envelope: float(f"{envelope.answer:.12g}")),
    Member("configurations", int, lambda envelope: len(envelope.speed)),
)
RUN = Record(
    Member("tokens_per_s_per_user", float, "speed"),
    Member("measured_tokens_per_s_per_chip", float, "measured"),
    Member("alike_tokens_per_s_per_chip", float, "alike"),
    Member("ratio_alike", float),
    Member("speed_ratio_alike", float, "speed_ratio"),
    Member("best_tokens_per_s_per_chip", float | None, "best"),
    Member("ratio", float),
)
MEMBERS = Record(  # a run in the document
    *(Member(member_name, float) for member_name in ("speed", "measured", "alike", "speed_alike")),
    Member("best", float | None),
    *(Member(member_name, float) for member_name in ("ratio", "ratio_alike", "speed_ratio")),
)
RUN_ROW = Record(NAMED.read_via("0"), RUN.read_via("1"))
ENVELOPES = Document("validate", "file", Member("summary", dict), Member("envelopes", [dict]))


def envelopes_answer(
    catalogue: Catalogue, path: Path, input_values: Values, settings: Mapping[str, str]
) -> Answer:
    """Return the best plans against the published runs of each envelope.

    An envelope is the runs of one chip, model, set of formats and lengths. Raises `UsageError`
    where the file holds no serving runs.
    """
    kind, table = read_measured(path)
    if kind != "inference":
        raise UsageError(f"--envelopes: {path} holds {kind}, expected serving runs")
    envelopes, summary = against_runs(table, catalogue, input_values, settings)
    envelope_documents = [
        NAMED.json(envelope) | run_statistics | {"runs": list(map(MEMBERS.json, envelope.runs))}
        for envelope, run_statistics in envelopes
    ]
    content = {"file": str(path), "summary": summary, "envelopes": envelope_documents}
    run_rows = [(envelope, run) for envelope, _ in envelopes for run in envelope.runs]
    return ENVELOPES.answer(
        catalogue, content, lambda: [_envelope_table(envelopes, summary)], (RUN_ROW, run_rows)
    )


def _envelope_table(envelopes: Sequence[tuple[Envelope, JsonObject]], summary: JsonObject) -> Table:
    """Return a line for each envelope, and one for all."""

    def figures(run_statistics: JsonObject) -> list[str]:
        figure_values = [
            (run_statistics[part] if part else run_statistics)[figure_name]
            for part, _, figure_name in SHOWN
        ]
        return [
            str(run_statistics["n"]),
            *(
                "-" if figure_value is None else f"{figure_value:.2f}"
                for figure_value in figure_values
            ),
        ]

    envelope_rows = [
        [
            f"{envelope.chip}, {envelope.model}",
            envelope.formats,
            f"{envelope.prompt:,.0f}/{envelope.answer:,.0f}",
            *figures(run_statistics),
        ]
        for envelope, run_statistics in envelopes
    ]
    columns = (
        "predicted over published runs",
        "formats",
        "tokens in/out",
        "runs",
        *(title for _, title, _ in SHOWN),
    )
    return Table(
        columns,
        [*envelope_rows, ["all", "", "", *figures(summary)]],
        "",
        [],
        _envelope_notes(summary),
    )


def _envelope_notes(summary: JsonObject) -> list[str]:
    """Return notes on the envelope figures and on pairs of chips."""
    notes = [
        "Runs that no other run of their envelope beats, each configuration by its newest run, at "
        "the speed each gives users.",
        "Same runs: as they were configured and loaded, predicted by refits that never saw the "
        "chip; zero: none has that speed.",
        "Best plan: of the search, also of plans nobody has run; zero: no plan gives users that "
        "speed.",
    ]
    two = summary["ratio_of_two"]
    if two["pairs"]:
        notes.append(
            f"Two chips at one speed, by the same runs: order right in {two['right'] * 100:.0f} % "
            f"of {two['pairs']} pairs, "
            f"ratio off by {two['ratio_error'] * 100:.0f} % at the median. Runs off at random by "
            + "; ".join(
                f"{by['error'] * 100:.0f} %: {by['right'] * 100:.0f} %, "
                f"{by['ratio_error'] * 100:.0f} %"
                for by in two["off_at_random"]
            )
            + "."
        )
    return notes


# ---------------------------------------------------------------- rows against the ranges that
# other chips would have given them
EXPECTED = 0.8  # the share between P10 and P90 were belief and measurement of one distribution


def _share_member(member_key: str, coverage_field: str, label: str) -> Member:
    return Member(
        member_key,
        float,
        coverage_field,
        label,
        lambda coverage: f"{getattr(coverage, coverage_field) * 100:.0f} %",
    )


WIDTH = Member("median_width", float, "width", "P90/P10", "{:.2f}")
INSIDE = _share_member("inside", "inside", "inside P10-P90")
TESTED = Record(
    Member("chip", read="0", label="chip taken as unmeasured"),
    Record(
        Member("rows", int, label="rows", show="{:,}"),
        INSIDE,
        _share_member("below", "below", "below"),
        _share_member("above", "above", "above"),
        WIDTH,
        _share_member("inside_by_parameters_alone", "inside_by_parameters", "by parameters alone"),
    ).read_via("1"),
)
BACK_TEST = Document(
    "validate",
    "file",
    "kind",
    Member("draws", int),
    Member("expected_inside", float),
    Member("chips", [TESTED]),
    Member("summary", TESTED),
)


def back_test_answer(catalogue: Catalogue, path: Path, settings: dict[str, str]) -> Answer:
    """Return the rows per chip, and in all, that lie inside ranges made without that chip."""
    back_test_result, draws = back_test.back_test(path, catalogue, settings), back_test.DRAWS
    chips, summary = list(back_test_result.chips.items()), ("all", back_test_result.all_rows)
    content = {
        "file": str(path),
        "kind": back_test_result.kind,
        "draws": draws,
        "expected_inside": EXPECTED,
        "chips": chips,
        "summary": summary,
    }
    below = [
        f"{draws} draws of two causes: the software parameters of refits without the chip, and "
        "the errors of single runs on other chips.",
        f"{EXPECTED * 100:.0f} % inside would be exact. By parameters alone: had single rows no "
        "causes of their own.",
    ]
    chip_rows = [*chips, summary]
    return BACK_TEST.answer(
        catalogue,
        content,
        lambda: [TESTED.table(chip_rows, f"{path.name}: are the ranges right?", (), below)],
        (TESTED, chip_rows),
    )


# ---------------------------------------------------------------- pairs of chips against the ranges
# of their ratio
PAIRS = Record(Member("n", int, "rows", "pairs", "{:,}"), INSIDE, WIDTH)
OF_CHIP = Record(Member("chip", read="0", label="pairs with"), PAIRS.read_via("1"))
RATIOS = Document(
    "validate",
    "file",
    "kind",
    Member("draws", int),
    Member("expected_inside", float),
    Member("left_out", str),
    Member("ratios", dict),
)


def ratios_answer(catalogue: Catalogue, path: Path, settings: dict[str, str]) -> Answer:
    """Return predicted against measured ratios of two chips, with their ranges.

    Figures are of all pairs, and by chip.
    """
    back_test_result, draws = back_test.back_test_ratios(path, catalogue, settings), back_test.DRAWS
    by = {chip: PAIRS.json(coverage) for chip, coverage in back_test_result.chips.items()}
    ratio_document = PAIRS.json(back_test_result.all_rows) | {
        "median_off": back_test_result.median_off,
        "order": back_test_result.order,
        "by": {"accelerator": by},
    }
    ratio_document |= {
        "of_the_fit": next(
            {
                figure_name: float(accuracy_row[figure_name])
                for figure_name in ("pairs", "right", "ratio_error")
            }
            for accuracy_row in accuracy(catalogue, "orders")
        )
    }
    content = {
        "file": str(path),
        "kind": "inference",
        "draws": draws,
        "expected_inside": EXPECTED,
        "left_out": "accelerator",
        "ratios": ratio_document,
    }
    chip_rows = [*back_test_result.chips.items(), ("all", back_test_result.all_rows)]
    below = [
        f"Half of the predicted ratios are within {back_test_result.median_off * 100:.0f} % of the "
        f"measured ones. Of pairs that differ by 10 % or more, {back_test_result.order * 100:.1f} "
        "% have the right order.",
        "A pair: two chips with one model, formats, lengths and speed. A refit without the rows of "
        "a chip predicts it.",
        f"inside P10-P90: the measured ratio lies in the predicted range of {draws} draws; the "
        f"range promises {EXPECTED * 100:.0f} %. P90/P10: width of that range, at the median.",
    ]
    return RATIOS.answer(
        catalogue,
        content,
        lambda: [
            OF_CHIP.table(
                chip_rows, f"{path.name}: ratios of two chips, predicted and measured", (), below
            )
        ],
        (OF_CHIP, chip_rows),
    )


# ---------------------------------------------------------------- the account of one validation
SIZE, DPI = (5.2, 5.2), 110


def scatter(validation: Validation) -> bytes:
    """Return a PNG of predicted against measured rows, with lines at 1 and at factors of two."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scored_rows = validation.rows[validation.rows.skipped == ""]
    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for target_name, part in scored_rows.groupby("target"):
        axes.scatter(
            part.measured,
            part.predicted,
            s=6,
            alpha=0.35,
            linewidths=0,
            label=f"{target_name} ({len(part):,})",
            rasterized=True,
        )
    scored_values = np.concatenate([scored_rows.measured, scored_rows.predicted])
    low, high = float(scored_values.min()), float(scored_values.max())
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    for factor in (0.5, 2.0):
        axes.plot(
            [low, high], [low * factor, high * factor], color="grey", linewidth=0.6, linestyle="--"
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="measured",
        ylabel="predicted",
        title=f"{validation.kind}: {len(scored_rows):,} rows",
    )
    axes.legend(fontsize=7, loc="upper left", markerscale=2)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def write_report(validation: Validation, file_name: str, folder: Path) -> None:
    """Write `KIND.csv`, `KIND.md` and `KIND.png` into a folder."""
    picture = scatter(validation)
    page = "\n".join(
        to_markdown(table)
        for table in _validation_tables(file_name, validation.kind, validation.card)
    )
    if not isdir(folder):
        raise UsageError(f"{folder}: no such folder to write the report to")
    write_atomically(
        folder / f"{validation.kind}.csv",
        to_csv(ROW.header, list(map(ROW.cells, _score_rows(validation.card)))),
    )
    write_atomically(
        folder / f"{validation.kind}.md",
        f"{page.rstrip()}\n\n![Predicted against measured]({validation.kind}.png)\n",
    )
    write_atomically(folder / f"{validation.kind}.png", picture)


# ---------------------------------------------------------------- the files of data/accuracy, kind
# by kind
def write_accuracy(folder: Path, calibrations: Mapping[str, Calibration], date: str) -> None:
    """Write the errors of calibrations into the files of a folder.

    Rows of all other kinds stay in the files.

    Args:
        folder: Folder of the files of accuracies.
        calibrations: Calibration by kind.
        date: Date that the rows of errors carry.

    Raises:
        DataError: A file of the folder is malformed.
        UsageError: The folder does not exist, or a file cannot be written.

    """
    if not isdir(folder):
        raise UsageError(f"{folder}: no such folder")
    rows_by_file: dict[str, list[Sequence[Any]]] = {
        file_stem: [
            [kind, group_key, *_round_figures(error_figures, figures), date]
            for kind, fit in calibrations.items()
            for group_key, error_figures in getattr(fit, of).items()
        ]
        for file_stem, of, figures in (
            ("kinds", "accuracy", ("n", "median_ape", "p90_ape", "spearman")),
            ("chips", "chips", ("n", "median_ape", "p90_ape", "left_out")),
        )
    } | {
        "orders": [
            [kind, *_round_figures(fit.order, ("pairs", "right", "ratio_error")), date]
            for kind, fit in calibrations.items()
            if fit.order
        ],
        # the parameters of every refit, so that each left-out figure can be computed again
        # without a fit
        "left_out": [
            [kind, refit.left_out, refit.member, path, float(f"{parameter_value:.9g}")]
            for kind, fit in calibrations.items()
            for refit in fit.refits
            for path, parameter_value in refit.values.items()
        ],
    }
    for file_stem, file_rows in rows_by_file.items():
        path, columns = folder / f"{file_stem}.csv", FILES[file_stem]
        other_kind_rows = (
            [
                list(accuracy_row.values())
                for _, accuracy_row in read_csv(path, columns)
                if accuracy_row["kind"] not in calibrations
            ]
            if path.is_file()
            else []
        )
        ordered: list[Sequence[Any]] = sorted(
            [*other_kind_rows, *file_rows], key=lambda accuracy_row: str(accuracy_row[0])
        )
        write_atomically(path, to_csv(columns, ordered))


def _round_figures(error_figures: JsonMapping, figure_names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(
        round(error_figures[figure_name], 4)
        if isinstance(error_figures[figure_name], float)
        else error_figures[figure_name]
        for figure_name in figure_names
    )
