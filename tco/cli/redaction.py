"""Keeping own values back: a command makes its answer with others in their place, and shows what
stands alike in all makings.

What is shown is made without a person's own values, so it tells nothing of them, whoever knows how.
The command also runs with the values as they are: only whether it ends in an error, and with which
exit code, is taken from there. An answer that meets none of them is made once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import reduce
from typing import TYPE_CHECKING, Any

import typer

from tco.core.errors import KeptBackError, TcoError
from tco.core.provenance import UNTOLD, making
from tco.core.redaction_values import WAYS, WITHHELD, Making, made_with
from tco.core.types import JsonObject
from tco.report.record import Answer
from tco.report.redaction import NOTE, alike_text, redact_differences
from tco.report.table import Table

if TYPE_CHECKING:
    from tco.report.page.page import ReportPage

UNSAID = "what is wrong rests on values of your own, and is withheld; it is told without --redact"
# how far stand-ins lie from what is shipped: as far as there are answers
SPANS = (
    1000.0,
    30.0,
    4.0,
    1.5,
)


class CapturedAnswer(Exception):  # noqa: N818 - it ends a run and is no error
    """The answer of a making, which ends there: nothing of it is printed or written."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


class Others:
    """Answers and errors of the command runs with stand-in values."""

    def __init__(self, before: Others | None = None) -> None:
        self.answers: list[Any] = [*before.answers] if before else []
        self.errors: list[str] = [*before.errors] if before else []
        # the own values that had a stand-in
        self.met: set[str] = {*before.met} if before else set()


_others: ContextVar[Others] = ContextVar("others")


def keeping_back(run: Callable[[], None]) -> None:
    """Run a command such that its answer, or the error it ends in, tells nothing of a person's own
    values.
    """
    near = Others()
    _run_with_stand_ins(run, first := Making(0, near.met), near)
    if first.shown:
        return
    others = _others_of(run, near) if near.met else near
    token = _others.set(others)
    try:
        with warnings.catch_warnings():  # whether there is one tells of the values
            warnings.simplefilter("ignore")
            run()
    except (KeptBackError, typer.Exit, typer.Abort, OSError):
        raise
    except TcoError as error:
        raise type(error)(_redacted_error(str(error), others.errors)) from None
    except Exception:
        raise RuntimeError(UNSAID) from None
    finally:
        _others.reset(token)


def _others_of(run: Callable[[], None], near: Others) -> Others:
    """Return the makings of an answer beside the one that is `near`, with stand-ins as far away as
    all of them come to one.
    """
    # where what is near ends in an error, so does every other lot
    for span in SPANS[-1:] if near.errors else SPANS:
        found = Others(near)
        for number in range(1, len(WAYS)):
            # two values need all the ways, one needs three
            if (number == 3 and len(found.met) < 2) or (found.errors and span != SPANS[-1]):
                break
            _run_with_stand_ins(run, Making(number, found.met, span), found)
        if not found.errors:
            break
    return found


def _run_with_stand_ins(run: Callable[[], None], one: Making, found: Others) -> None:
    """Run a command with stand-ins, and note what it came to."""
    try:
        with made_with(one), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    except CapturedAnswer as made:
        found.answers.append(made.answer)
    except KeptBackError:
        raise
    except Exception as error:  # far-away values may end in any fault
        if one.shown:
            raise
        found.errors.append(str(error) if isinstance(error, TcoError) else UNSAID)


def _redacted_error(error: str, errors: list[str]) -> str:
    """Return the text of `error` that all failed stand-in runs share.

    Where `error` has another text, only a shared place before the colon is kept.
    """
    said = reduce(alike_text, errors) if errors else WITHHELD
    if said.endswith(UNTOLD):  # it was said where the value was read, and without it
        return said
    if said != WITHHELD and alike_text(said, error) == said:
        return said
    place, colon, _ = said.partition(": ")
    return f"{place}{colon}{UNSAID}" if colon and error.startswith(place + colon) else UNSAID


def release_answer(made: Any, combine: Callable[[Any, Any], Any] = redact_differences) -> Any:
    """Return the part of an answer that all stand-in runs share.

    In a stand-in run it raises `CapturedAnswer` if the run has met a person's own value, and
    returns the answer if not. Raises `KeptBackError` where fewer than two stand-in runs
    have an answer.
    """
    one: Making | None = making.get()
    if one is not None and one.met:
        raise CapturedAnswer(made)
    if one is not None:
        one.shown = True
        return made
    others = _others.get()
    if len(others.answers) < 2:
        why = others.errors[0] if len(set(others.errors)) == 1 else "there is no answer"
        raise KeptBackError(f"--redact: with other values in the place of yours: {why}")
    return reduce(combine, others.answers)


def _is_answer_withheld(kept: Any) -> bool:
    return making.get() is None and bool(kept != _others.get().answers[0])


def redact_answer(answer: Answer, form: str) -> Answer:
    """Return an answer without what tells of own values."""
    own_form = answer.texts.get(form)
    made = {
        "document": answer.json() if form == "json" else {},
        "tables": list(answer.tables()) if form in ("table", "md") and not own_form else [],
        "rows": Table(list(answer.header), [list(row) for row in answer.rows]),
        "notes": list(answer.notes),
        "lines": own_form().split("\n") if own_form else [],
    }
    kept = release_answer(made)
    notes = [note for note in kept["notes"] if note != WITHHELD] + (
        [NOTE] if _is_answer_withheld(kept) else []
    )
    texts = {form: lambda: "\n".join(kept["lines"])} if own_form else {}
    return Answer(
        lambda: kept["document"],
        lambda: kept["tables"],
        kept["rows"].columns,
        kept["rows"].rows,
        notes,
        texts,
    )


def figure_notes_without_own_values(figure: str, notes: list[str]) -> list[str]:
    """Return the notes of a figure without what tells of own values.

    Raises:
        KeptBackError: The figure tells of own values; no mark of it could stay where it is.

    """
    released, notes = release_answer(
        (figure, notes),
        lambda one, other: (
            one[0] if one[0] == other[0] else WITHHELD,
            redact_differences(one[1], other[1]),
        ),
    )
    if released != figure:
        raise KeptBackError(
            "--redact: this figure rests on values of your own, and a mark tells its value by its "
            "place; draw it without them"
        )
    return [note for note in notes if note != WITHHELD]


def alike_states(one: dict[str, JsonObject], other: dict[str, JsonObject]) -> dict[str, JsonObject]:
    """Return the states of a baseline without what differs; each names the metrics it withholds,
    which no check looks at.
    """
    found = {}
    for name, state in one.items():
        its = other.get(name, {})
        made = redact_differences(state, its)
        for part in ("metrics", "inputs", "quantities"):
            made[part] = {
                key: value
                for key, value in state[part].items()
                if value == its.get(part, {}).get(key)
            }
        made["plan"] = state["plan"] if state["plan"] == its.get("plan") else None
        gone = {
            *state.get("withheld", ()),
            *(metric for metric in state["metrics"] if metric not in made["metrics"]),
        }
        found[name] = made | {"withheld": sorted(gone)}
    return found


def pages_without_own_values(pages: dict[str, ReportPage]) -> dict[str, ReportPage]:
    """Return pages without what tells of own values: words and tables as all others, figures and
    the what-if whole or not at all.
    """
    kept: dict[str, ReportPage] = release_answer(pages)
    return (
        {name: page._replace(notes=[*page.notes, NOTE]) for name, page in kept.items() if page}
        if _is_answer_withheld(kept)
        else kept
    )
