"""Withhold own values: a command computes with stand-ins and shows what is equal for all.

The command never computes with the values themselves. What it prints and writes, the error it ends
in and its exit code follow from stand-ins, so they tell nothing of the values, whoever knows how.
An answer that meets no own value is made once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from tco.core.errors import DataError, KeptBackError, TcoError
from tco.core.provenance import UNTOLD, making
from tco.core.redaction_values import DIRECTIONS, WITHHELD, Making, made_with
from tco.core.types import JsonObject
from tco.report.record import Answer
from tco.report.redaction import WITHHELD_NOTE, redact_differences, redact_text
from tco.report.table import Table

if TYPE_CHECKING:
    from tco.report.page.page import ReportPage

UNSAID = "what is wrong rests on values of your own, and is withheld; it is told without --redact"
IN_PLACE = "--redact: with other values in the place of yours"
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


class FigureAnswer(NamedTuple):
    """A figure, which is shown as a whole or not at all, and its notes."""

    svg: str
    notes: list[str]


class StandInRuns:
    """Answers and errors of the command runs with stand-in values."""

    def __init__(self, run: Callable[[], None], before: StandInRuns | None = None) -> None:
        self.run = run  # runs the command
        self.are_complete = False  # no further run changes what their answers share
        self.answers: list[Any] = [*before.answers] if before else []
        self.errors: list[TcoError] = [*before.errors] if before else []
        # the makings of the answers: caches tell makings apart while they exist
        self.makings: list[Making] = [*before.makings] if before else []
        # the own values that had a stand-in
        self.own_paths: set[str] = {*before.own_paths} if before else set()


_stand_in_runs: ContextVar[StandInRuns] = ContextVar("stand_in_runs")


def keeping_back(run: Callable[[], None]) -> None:
    """Run a command such that its answer, or the error it ends in, tells nothing of own values.

    Args:
        run: Runs the command; it calls `release_answer` before it prints or writes anything.

    Raises:
        KeptBackError: Fewer than two stand-in runs have an answer.
        TcoError: The run with values near the shipped ones ended in an error.

    """
    near = StandInRuns(run)
    token = _stand_in_runs.set(near)
    try:
        _run_with_stand_ins(first := Making(0, near.own_paths), near)
        if first.is_printed:
            return
        # the near run has no answer to show: one of the far runs is made again for it
        runs = _complete_runs(near)
        _stand_in_runs.set(runs)
        with made_with(runs.makings[0]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    finally:
        _stand_in_runs.reset(token)


def _complete_runs(near: StandInRuns) -> StandInRuns:
    """Return the near run with the far ones, of which at least two have an answer."""
    runs = _far_runs(near) if near.own_paths else near
    if len(runs.answers) < 2:
        raise _error_of(runs, near)
    runs.are_complete = True
    return runs


def _error_of(runs: StandInRuns, near: StandInRuns) -> TcoError:
    """Return the error of a command whose stand-in runs have no answer to show."""
    if near.errors:
        error = near.errors[0]
        if not near.own_paths:
            return error
        return type(error)(_redacted_error(list(map(str, runs.errors))))
    texts = {str(error) for error in runs.errors}
    return KeptBackError(f"{IN_PLACE}: {texts.pop() if len(texts) == 1 else 'there is no answer'}")


def _far_runs(near: StandInRuns) -> StandInRuns:
    """Return the runs with far stand-ins, as far away as all runs end without an error."""
    # where what is near ends in an error, so does every other lot
    for span in SPANS[-1:] if near.errors else SPANS:
        runs = StandInRuns(near.run, near)
        for number in range(1, len(DIRECTIONS)):
            # two values need all the directions, one needs three
            if (number == 3 and len(runs.own_paths) < 2) or (runs.errors and span != SPANS[-1]):
                break
            _run_with_stand_ins(Making(number, runs.own_paths, span), runs)
            if _have_different_figures(runs.answers):
                return runs
        if not runs.errors:
            break
    return runs


def _have_different_figures(answers: Sequence[Any]) -> bool:
    """Say whether answers are figures that rest on own values, whatever further runs give."""
    return len({answer.svg for answer in answers if isinstance(answer, FigureAnswer)}) > 1


def _run_with_stand_ins(current: Making, runs: StandInRuns) -> None:
    """Run a command with stand-ins, and note what it came to."""
    try:
        with made_with(current), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs.run()
    except CapturedAnswer as captured:
        runs.answers.append(captured.answer)
        runs.makings.append(current)
    except KeptBackError:
        raise
    except Exception as error:  # far-away values may end in any fault
        if isinstance(error, (typer.Exit, OSError)) and (
            current.is_printed or not current.own_paths
        ):
            raise
        if not isinstance(error, TcoError) and (current.is_printed or not current.own_paths):
            raise RuntimeError(UNSAID) from None
        if current.is_printed:
            raise
        runs.errors.append(error if isinstance(error, TcoError) else DataError(UNSAID))


def _redacted_error(errors: Sequence[str]) -> str:
    """Return the text that the errors of all failed stand-in runs share.

    Where they share no text, only a shared place before the colon is kept.
    """
    shared = reduce(redact_text, errors) if len(errors) > 1 else WITHHELD
    if shared.endswith(UNTOLD):  # it was said where the value was read, and without it
        return shared
    if shared != WITHHELD:
        return f"{IN_PLACE}: {shared}"
    error_location, colon, _ = errors[0].partition(": ")
    is_shared = bool(colon) and all(error.startswith(error_location + colon) for error in errors)
    return f"{error_location}{colon}{UNSAID}" if is_shared else UNSAID


def release_answer(answer: Any, combine: Callable[[Any, Any], Any] = redact_differences) -> Any:
    """Return the part of an answer that all stand-in runs share.

    A run that has met no own value of a person returns its answer. Otherwise the near run waits
    here for the far runs, which end here in `CapturedAnswer`.
    """
    runs, current = _stand_in_runs.get(), making.get()
    if not current.own_paths:
        current.is_printed = True
        return answer
    if not runs.are_complete:
        if current.number:
            raise CapturedAnswer(answer)
        runs.answers.append(answer)
        runs.makings.append(current)
        runs = _complete_runs(runs)
        _stand_in_runs.set(runs)
        current.is_printed = True
    return reduce(combine, runs.answers)


def _is_answer_withheld(shared: Any) -> bool:
    runs = _stand_in_runs.get()
    return bool(runs.answers) and bool(shared != runs.answers[0])


def redact_answer(
    answer: Answer, form: str, failures: Sequence[Any]
) -> tuple[Answer, Sequence[Any]]:
    """Return an answer and its failures without what tells of own values.

    Args:
        answer: Answer of a command.
        form: Form in which the answer is printed.
        failures: Texts and numbers by which the command fails; those stay that all stand-in runs
            share.

    """
    own_form = answer.texts.get(form)
    content = {
        "document": answer.json() if form == "json" else {},
        "tables": list(answer.tables()) if form in ("table", "md") and not own_form else [],
        "rows": Table(list(answer.header), [list(answer_row) for answer_row in answer.rows]),
        "notes": list(answer.notes),
        "lines": own_form().split("\n") if own_form else [],
        "failures": list(failures),
    }
    shared = release_answer(content, _shared_content)
    notes = [note for note in shared["notes"] if note != WITHHELD] + (
        [WITHHELD_NOTE] if _is_answer_withheld(shared) else []
    )
    texts = {form: lambda: "\n".join(shared["lines"])} if own_form else {}
    redacted = Answer(
        lambda: shared["document"],
        lambda: shared["tables"],
        shared["rows"].columns,
        shared["rows"].rows,
        notes,
        texts,
    )
    return redacted, shared["failures"]


def _shared_content(content: JsonObject, counterpart: JsonObject) -> JsonObject:
    """Return content without its differences; a failure stays as it is or not at all."""
    failures = [failure for failure in content["failures"] if failure in counterpart["failures"]]
    shared: JsonObject = redact_differences(content, counterpart)
    return shared | {"failures": failures}


def figure_notes_without_own_values(figure: str, notes: list[str]) -> list[str]:
    """Return the notes of a figure without what tells of own values.

    Raises:
        KeptBackError: The figure tells of own values; no mark of it could stay where it is.

    """
    released = release_answer(FigureAnswer(figure, notes), _shared_figure)
    if released.svg != figure:
        raise KeptBackError(
            "--redact: this figure rests on values of your own, and a mark tells its value by its "
            "place; draw it without them"
        )
    return [note for note in released.notes if note != WITHHELD]


def _shared_figure(content: FigureAnswer, counterpart: FigureAnswer) -> FigureAnswer:
    """Return a figure that is equal in both answers, with their equal notes."""
    svg = content.svg if content.svg == counterpart.svg else WITHHELD
    return FigureAnswer(svg, redact_differences(content.notes, counterpart.notes))


def redact_states(
    states: dict[str, JsonObject], counterpart_states: dict[str, JsonObject]
) -> dict[str, JsonObject]:
    """Return a baseline's states without differences, with the names of withheld metrics.

    No check looks at withheld metrics.
    """
    shared_states = {}
    for scenario_name, state in states.items():
        counterpart = counterpart_states.get(scenario_name, {})
        shared_state = redact_differences(state, counterpart)
        for part in ("metrics", "inputs", "quantities"):
            shared_state[part] = {
                figure_name: figure_value
                for figure_name, figure_value in state[part].items()
                if figure_value == counterpart.get(part, {}).get(figure_name)
            }
        shared_state["plan"] = state["plan"] if state["plan"] == counterpart.get("plan") else None
        gone = {
            *state.get("withheld", ()),
            *(metric for metric in state["metrics"] if metric not in shared_state["metrics"]),
        }
        shared_states[scenario_name] = shared_state | {"withheld": sorted(gone)}
    return shared_states


def pages_without_own_values(pages: dict[str, ReportPage]) -> dict[str, ReportPage]:
    """Return pages without own values; figures and the what-if are whole or left out."""
    shared_pages: dict[str, ReportPage] = release_answer(pages)
    return (
        {
            page_name: page._replace(notes=[*page.notes, WITHHELD_NOTE])
            for page_name, page in shared_pages.items()
            if page
        }
        if _is_answer_withheld(shared_pages)
        else shared_pages
    )
