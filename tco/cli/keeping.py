"""Keeping own values back: a command runs twice, its own values as they are and moved, and shows what stands alike in both answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tco.foundation.errors import TcoError, UsageError
from tco.foundation.moved import DOWN, UP, own_values_moved
from tco.outputs.redaction import NOTE, WITHHELD, alike, alike_rows, alike_table, alike_text
from tco.outputs.table import Table

if TYPE_CHECKING:
    from tco.cli.emit import Answer
    from tco.outputs.page.page import Page, Section

UNSAID = "what is wrong rests on values of your own, and is withheld; it is told without --redact"
NOTHING: tuple[Any, ...] = ({}, [], [], [], [])  # what stands beside an answer that has no other making


class Made(Exception):  # noqa: N818 - it ends a run and is no error
    """The answer of the run with moved values, which ends there: nothing of it is printed or written."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


class KeptBackError(UsageError):
    """What cannot be shown without telling of own values; its own words tell nothing of them."""


_other: ContextVar[Any] = ContextVar("other", default=None)  # the answer of the run with moved values
_making: ContextVar[bool] = ContextVar("making", default=False)


def keeping_back(run: Callable[[], None]) -> None:
    """Run a command such that its answer, or the error it ends in, tells nothing of a person's own values."""
    answer, errors = other_answer(run)
    token = _other.set(answer)
    try:
        run()
    except KeptBackError:
        raise
    except TcoError as error:
        told = alike_text(str(error), errors[0] if errors else None)
        raise type(error)(UNSAID if told == WITHHELD else told) from None
    finally:
        _other.reset(token)


def other_answer(run: Callable[[], None]) -> tuple[Any, list[str]]:
    """Return the answer with own values moved up, or down where that cannot be answered, and the errors it ended in.

    An answer to neither has nothing in common with it.
    """
    errors: list[str] = []
    token = _making.set(True)
    try:
        for where in (UP, DOWN):
            try:
                with own_values_moved(where):
                    run()
            except Made as made:
                return made.answer, errors
            except TcoError as error:
                errors.append(str(error))
    finally:
        _making.reset(token)
    return NOTHING, errors


def without_own_values(answer: Answer, form: str) -> Answer:
    """Return an answer without what tells of own values; with moved values, end the run with what it came to."""
    own_form = answer.texts.get(form)
    document, rows = answer.json() if form == "json" else {}, [list(row) for row in answer.rows]
    tables = list(answer.tables()) if form in ("table", "md") else []
    made = (document, tables, rows, list(answer.notes), own_form().split("\n") if own_form else [])
    if _making.get():
        raise Made(made)
    document, tables, rows, notes, lines = (alike_part(*pair) for pair in zip(made, _other.get(), strict=True))
    notes += [NOTE] if (document, rows) != (made[0], made[2]) else []
    texts = {form: lambda: "\n".join(lines)} if own_form else {}
    return answer._replace(json=lambda: document, tables=lambda: tables, rows=rows, notes=notes, texts=texts)


def tables_without_own_values(tables: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the rows of some tables without what tells of own values; with moved values, end the run with them."""
    if _making.get():
        raise Made(tables)
    other = _other.get() if isinstance(_other.get(), dict) else {}
    return {name: alike_rows(rows, other.get(name, [])) for name, rows in tables.items()}


def figure_without_own_values(figure: str, notes: Sequence[str]) -> list[str]:
    """Return the notes of a figure without what tells of own values; a figure that does is refused, as no mark of it could stay where it is."""
    if _making.get():
        raise Made((figure, list(notes)))
    other, its_notes, *_ = _other.get()
    if figure != other:
        raise KeptBackError("--redact: this figure rests on values of your own, and a mark tells its value by its place; draw it without them")
    found: list[str] = alike(list(notes), its_notes)
    return found


def states_without_own_values(states: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the states of a baseline without what tells of own values; each names the metrics it withholds, which no check looks at."""
    if _making.get():
        raise Made(states)
    found = {}
    for name, state in states.items():
        other = (_other.get() or {}).get(name, {}) if isinstance(_other.get(), dict) else {}
        made = alike(state, other)
        for part in ("metrics", "inputs", "quantities"):
            made[part] = {key: value for key, value in made[part].items() if value == other.get(part, {}).get(key)}
        made["plan"] = state["plan"] if state["plan"] == other.get("plan") else None
        found[name] = made | {"withheld": [metric for metric in state["metrics"] if metric not in made["metrics"]]}
    return found


def alike_part(one: Any, other: Any) -> Any:
    """Return a document, tables, rows or texts without what differs."""
    if one and isinstance(one[0] if isinstance(one, list) else None, Table):
        return [alike_table(*pair) for pair in zip(one, other or [Table((), [])] * len(one), strict=False)]
    if isinstance(one, dict) or all(isinstance(entry, str) for entry in one):
        return alike(one, other)
    return alike_rows(one, other)


def page_without_own_values(page: Page) -> Page:
    """Return a page without what tells of own values: its words and tables as all others, figures and the what-if whole or not at all."""
    if _making.get():
        raise Made(page)
    other: Any = _other.get()
    if other is NOTHING:  # there is no other making: nothing is known to be safe
        return page._replace(verdict=WITHHELD, premises=[], sections=[], what_if=None, notes=[NOTE])
    sections = [alike_section(section, next((one for one in other.sections if one.id == section.id), None)) for section in page.sections]
    kept = page._replace(
        title=alike(page.title, other.title),
        verdict=alike(page.verdict, other.verdict),
        premises=alike(list(page.premises), list(other.premises)),
        sections=sections,
        what_if=page.what_if if page.what_if == other.what_if else None,
        notes=alike(list(page.notes), list(other.notes)),
    )
    return kept if kept == page else kept._replace(notes=[*kept.notes, NOTE])


def alike_section(one: Section, other: Section | None) -> Section:
    """Return a section without what differs from its other making."""
    if other is None:
        return one._replace(words=[WITHHELD], figures=[], tables=[], folded=[], below=[])
    tables, folded = (
        [alike_table(*pair) for pair in zip(mine, its, strict=False)] for mine, its in ((one.tables, other.tables), (one.folded, other.folded))
    )
    words, below = (alike(list(mine), list(its)) for mine, its in ((one.words, other.words), (one.below, other.below)))
    figures = [figure for figure, its in zip(one.figures, other.figures, strict=False) if figure == its]
    return one._replace(words=words, figures=figures, tables=tables, folded=folded, below=below)
