"""The options commands share: each is declared here, once, and a command names those it takes.

A command that answers has `--data`, `--format`, `--output`, `--quiet` and `--redact`; it gets what the user asked for as one `Request`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tco.cli.emit import FORMS, choices
from tco.cli.help import Taught
from tco.foundation.provenance import anchoring, making

if TYPE_CHECKING:
    from tco.outputs.record import Answer


def completed(kind: str) -> Callable[[str], list[str]]:
    """Return what completes a word: the names of some kind that begin as it does."""

    def complete(incomplete: str) -> list[str]:
        from tco.cli import completion

        return [name for name in getattr(completion, kind)() if name.startswith(incomplete)]

    return complete


WHAT_IF, HOW = "What if", "How the answer is given"  # headings of the shared options
COMPLETED = {  # name of a command's own argument -> what completes it
    **dict.fromkeys(("scenario", "scenarios", "a", "b"), "scenarios"),
    **{"system": "systems", "systems": "systems", "chip": "chips", "metric": "metrics", "study": "studies"},
}
# Name of an option in Python -> its type with its declaration, and its default, in the order of the help.
SHARED: dict[str, tuple[Any, Any]] = {
    "plan": (
        Annotated[
            str | None,
            typer.Option(
                "--plan",
                metavar="AXIS=N,...",
                help="Fix axes of the plan, such as tp=8,ep=1,batch=64; the others are searched. Or take a saved result's plan.",
                rich_help_panel=WHAT_IF,
            ),
        ],
        None,
    ),
    "set": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                metavar="PATH=VALUE",
                help="Replace an input, such as 'site.electricity_price=0.09 USD/kWh'. Repeatable.",
                autocompletion=completed("settings"),
                rich_help_panel=WHAT_IF,
            ),
        ],
        None,
    ),
    "anchor": (
        Annotated[
            Path | None,
            typer.Option(
                "--anchor",
                metavar="FILE.csv",
                help="Measured serving runs of your own, in columns as `tco validate` reads them: they move the answer and its range.",
                rich_help_panel=WHAT_IF,
            ),
        ],
        None,
    ),
    "hold": (
        Annotated[
            bool,
            typer.Option(
                "--hold/--replan",
                help="Hold plan and structure as they are at the point; left out: each draw, or value of an input, chooses its own.",
                rich_help_panel=WHAT_IF,
            ),
        ],
        False,
    ),
    "variant": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--variant", metavar="KEY=VALUE", help="Choose a variant of the system, such as switch=gen2. Repeatable.", rich_help_panel=WHAT_IF
            ),
        ],
        None,
    ),
    "data": (
        Annotated[
            Path | None,
            typer.Option(
                "--data", metavar="DIR", help="Your own data folder, laid over the shipped one; ./data is taken anyway.", rich_help_panel=HOW
            ),
        ],
        None,
    ),
    "form": (Annotated[choices(), typer.Option("--format", help="How the answer is printed.", rich_help_panel=HOW)], "table"),
    "output": (
        Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file, in the form of its ending.", rich_help_panel=HOW)
        ],
        None,
    ),
    "quiet": (Annotated[bool, typer.Option("--quiet", help="No notes on stderr.", rich_help_panel=HOW)], False),
    "redact": (
        Annotated[
            bool,
            typer.Option(
                "--redact", envvar="TCO_REDACT", show_envvar=False, help="Withhold whatever rests on values of your own.", rich_help_panel=HOW
            ),
        ],
        False,
    ),
}
USUAL = ("data", "form", "output", "quiet", "redact")


class Request:
    """What the user gave for the shared options; one that a command does not take has its default."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self.texts = {name: default for name, (_, default) in SHARED.items()} | dict(texts)
        self.data: Path | None = self.texts["data"]
        self.form: str = self.form_of(str(self.texts["form"]), self.texts["output"])
        self.quiet: bool = self.texts["quiet"]
        anchoring.set(self.texts["anchor"])

    @staticmethod
    def form_of(form: str, output: Path | None) -> str:
        """Return the form that an output's ending names; one that says nothing, or that no form has, raises `UsageError`."""
        from tco.foundation.errors import UsageError

        if output is None or not output.suffix or form not in FORMS:
            return form
        endings = {one.ending: name for name, one in FORMS.items()}
        named = endings.get(output.suffix.lower())
        if named is None:
            raise UsageError(f"--output {output}: unknown ending {output.suffix!r}, expected one of {', '.join(sorted(endings))}")
        if form not in (named, "table"):
            raise UsageError(f"--output {output}: ends in {output.suffix!r}, and --format is {form}")
        return named

    @property
    def settings(self) -> dict[str, str]:
        """The inputs `--set` replaces, by path."""
        return pairs(self.texts["set"], "--set")

    @property
    def variant(self) -> dict[str, str]:
        """The variants `--variant` chooses, by key."""
        return pairs(self.texts["variant"], "--variant")

    @property
    def plan(self) -> Any:
        """The axes or the plan that `--plan` fixes, if any."""
        return axes(self.texts["plan"])

    def states(self, states: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return what a baseline is to keep: all of some states, or with `--redact` what does not tell of own values."""
        if not self.texts["redact"]:
            return states
        from tco.cli.keeping import alike_states, shown

        self.texts["redact"] = False  # what is left to say are names
        kept: dict[str, dict[str, Any]] = shown({name: state | {"withheld": []} for name, state in states.items()}, alike_states)
        return kept

    def emit(self, answer: Answer) -> None:
        """Print or write an answer in the form that was asked for."""
        from tco.cli.emit import emit

        emit(answer, self.form, self.texts["output"], self.quiet, self.texts["redact"])


def command(
    group: typer.Typer, *takes: str, name: str | None = None, usual: tuple[str, ...] = USUAL, forms: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command: its first parameter is a `Request`, the others are its own, then come the shared options it `takes`.

    `usual` are those it has beside; `forms` are what its `--format` knows beside those of all.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        for one in own:
            if one.name in COMPLETED:
                one.annotation.__metadata__[0].autocompletion = completed(COMPLETED[one.name])
        shared = [option(one) for one in SHARED if one in takes or one in usual]
        if forms:
            shared = [
                one.replace(annotation=Annotated[choices(*forms), *one.annotation.__metadata__]) if one.name == "form" else one for one in shared
            ]

        def run(**texts: Any) -> None:
            mine = {one.name: texts.pop(one.name) for one in own}
            if not texts.get("redact"):
                function(Request(texts), **mine)
                return
            from tco.cli.keeping import keeping_back

            keeping_back(lambda: function(Request(texts), **mine))

        run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
        run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in (*own, *shared)}
        group.command(name, cls=Taught)(run)
        return function

    return register


def option(name: str) -> inspect.Parameter:
    """Return a shared option as a parameter."""
    annotation, default = SHARED[name]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Return KEY=VALUE texts as a mapping; a malformed one raises `UsageError`."""
    from tco.foundation.errors import UsageError

    found = {}
    for text in texts or []:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise UsageError(f"{option} {text!r}: expected {'PATH' if option == '--set' else 'KEY'}=VALUE")
        found[key.strip()] = value.strip()
    if one := making.get():
        one.said.update(found.items())
    return found


def axes(text: str | None) -> Any:
    """Return the axes of a plan that AXIS=N,... fixes, or the plan of a saved result; a malformed text raises `UsageError`."""
    from tco.foundation.errors import UsageError

    if text is None:
        return None
    if text.endswith(".json"):
        from tco.chain.saved import load_result

        plan = load_result(text).plan
        if plan is None:
            raise UsageError(f"--plan {text}: this result has no plan")
        return plan
    found: dict[str, str] = {}
    for one in text.split(","):
        name, sign, value = (part.strip() for part in one.partition("="))
        if not (sign and name and value):
            raise UsageError(f"--plan {text!r}: expected AXIS=N,..., such as tp=8,ep=1,batch=64")
        if name in found:
            raise UsageError(f"--plan {text!r}: {name} is given twice")
        found[name] = value
    return found
