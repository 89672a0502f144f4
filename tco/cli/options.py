"""The arguments and options that commands share: each is declared here, once.

A command that answers has `--data`, `--format`, `--output`, `--quiet` and `--redact`. It gets the
values of these and of the other options of `SHARED` as one `CommandRequest`. Types such as
`Scenario` declare parameters that it gets as they are.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from tco.cli.help import Taught
from tco.cli.output import (
    FORMS,
    emit,
    format_choices,
    render_answer,
    screen_for,
    telling_written,
)
from tco.core.errors import DataError, UsageError
from tco.core.progress import progress_line
from tco.core.provenance import anchoring, making, measured_facts
from tco.core.streams import tell
from tco.core.types import JsonMapping

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.evaluation.scenario_function import Evaluation
    from tco.report.record import Answer
    from tco.scenario.result import Result


def _completed(kind: str) -> Callable[[str], list[str]]:
    """Return a shell completion function for names of `kind`.

    The function gives the names that begin with the typed word.
    """

    def complete(incomplete: str) -> list[str]:
        from tco.cli.completion import completion_names

        return [
            completion_name
            for completion_name in completion_names(kind)
            if completion_name.startswith(incomplete)
        ]

    return complete


def name_argument(kind: str, help_text: str, metavar_text: str | None = None) -> Any:
    """Return the argument that names something of a kind, which the shell completes."""
    return typer.Argument(
        metavar=metavar_text, help=help_text, autocompletion=_completed(kind), show_default=False
    )


class OptionHeading(TypedDict):
    """The heading under which the help lists an option."""

    rich_help_panel: str


# Options stand together by what they do.
QUESTION = OptionHeading(rich_help_panel="What is asked")
DETAIL = OptionHeading(rich_help_panel="What is shown")
DRAWS = OptionHeading(rich_help_panel="Draws and workers")
WHAT_IF = OptionHeading(rich_help_panel="What if")
FACT = OptionHeading(rich_help_panel="What a file of measured runs does not state")
HOW = OptionHeading(rich_help_panel="How the answer is given")

Scenario = Annotated[
    str, name_argument("scenarios", "A scenario's name or file, or the id of a system.")
]
Scenarios = Annotated[
    list[str] | None,
    name_argument(
        "scenarios", "Names or files; default: the four headline racks.", "[SCENARIO]..."
    ),
]
Named = Annotated[
    list[str],
    name_argument(
        "scenarios",
        "Names or files of scenarios, or systems on the headline's terms.",
        "SCENARIO...",
    ),
]
System = Annotated[str, name_argument("systems", "A system's id; `tco systems list` shows them.")]
Baseline = Annotated[
    str | None, typer.Option(metavar="NAME", help="The scenario to compare with.", **QUESTION)
]
RatioTo = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="SCENARIO",
        help="What a ratio is relative to, gb200-nvl72 unless named.",
        **QUESTION,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="The metric that is asked for.",
        autocompletion=_completed("metrics"),
        **QUESTION,
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="This metric only. Repeatable.",
        autocompletion=_completed("metrics"),
        **DETAIL,
    ),
]
Samples = Annotated[int, typer.Option(metavar="N", help="How many draws.", **DRAWS)]
Seed = Annotated[
    int,
    typer.Option(
        metavar="S", min=0, help="Other seeds give other draws, the same seed the same.", **DRAWS
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Worker processes on this machine, each with blocks of cases or draws; none: this "
        "process alone.",
        **DRAWS,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="The workers of a Dask scheduler, tcp://HOST:8786.", **DRAWS
    ),
]
Starts = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="X",
        help="Where to begin to look, such as '96 GB', for each --vary; unless given a thirtieth "
        "of today's value, of two inputs a third, of a date its own.",
        **QUESTION,
    ),
]
Ends = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        metavar="Y",
        help="Where to end, for each; unless given thirty times today's, of two inputs three "
        "times, of a date two years on.",
        **QUESTION,
    ),
]
# of `tco compare`
Speeds = Annotated[
    str | None,
    typer.Option(
        metavar="N,...",
        help="Speeds in tokens/s per user; default: 20,30,50,75,100 and the workload's own.",
        **QUESTION,
    ),
]
Full = Annotated[
    bool,
    typer.Option("--full", help="Every figure at the workload's own speed, in groups.", **DETAIL),
]
Why = Annotated[
    bool,
    typer.Option(
        "--why",
        help="What moves the answer at which speeds, and what to measure to narrow it.",
        **DETAIL,
    ),
]
EvidenceRows = Annotated[
    bool,
    typer.Option("--evidence", help="Which measured rows notice what moves the answer.", **DETAIL),
]
CurveRows = Annotated[
    bool,
    typer.Option("--curve", help="With --format csv: a row for each scenario and speed.", **DETAIL),
]
HallPower = Annotated[
    str | None,
    typer.Option(
        metavar="POWER",
        help="Fill a site with each system, such as '20 MW' from the grid.",
        **WHAT_IF,
    ),
]
Practice = Annotated[
    str | None,
    typer.Option(
        metavar="FAMILY",
        help="Give all chips the software maturity of one family, such as nvidia; default: "
        "each its own.",
        **WHAT_IF,
    ),
]
WhatIf = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if",
        metavar="PATH=VALUE",
        help="Replace an input as --set does, with fixed plans and choices. Repeatable.",
        **WHAT_IF,
    ),
]
DrawRanges = Annotated[
    bool,
    typer.Option(
        "--range/--no-range",
        help="Draw the inputs within their ranges: how sure the answer is.",
        **DRAWS,
    ),
]
Choose = Annotated[
    str | None,
    typer.Option(
        metavar="A,B:0.5+C:0.5",
        help="Rate choices by their regret, each a scenario or a split of dollars.",
        **DETAIL,
    ),
]
WholeRacks = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How many racks whole instances are placed on; default: a fleet large enough to "
        "split freely.",
        **WHAT_IF,
    ),
]
CurveSeed = Annotated[int, typer.Option(min=0, help="Start of the random draws.", **DRAWS)]
Workloads = Annotated[
    bool,
    typer.Option(
        "--workloads", help="Which to choose for each of the shipped workloads.", **QUESTION
    ),
]
AllSystems = Annotated[
    bool,
    typer.Option(
        "--all", help="Rank every system by what the work costs, a line each.", **QUESTION
    ),
]
Vendor = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="With --all: the systems of one vendor, such as AMD.", **QUESTION
    ),
]
AirCooled = Annotated[
    bool, typer.Option("--air", help="With --all: the systems that air cools.", **QUESTION)
]


def _shared_option(
    kind: Any, *option_names: str, default: Any = None, **how: Any
) -> tuple[Any, Any]:
    return Annotated[kind, typer.Option(*option_names, **how)], default


REDACT = "TCO_REDACT"  # of the environment
ASKED = ("1", "true", "t", "yes", "y", "on")  # by which a switch is on there
# Name of an option in Python -> its type with its declaration, and its default, in the order of the
# help.
SHARED: dict[str, tuple[Any, Any]] = {
    "plan": _shared_option(
        *(str | None, "--plan"),
        metavar="AXIS=N,...",
        help="Fix axes of the plan, such as tp=8,ep=1,batch=64; the others are searched. Or take a "
        "saved result's plan.",
        **WHAT_IF,
    ),
    "set": _shared_option(
        *(list[str] | None, "--set"),
        metavar="PATH=VALUE",
        help="Replace an input, such as 'site.electricity_price=0.09 USD/kWh' or "
        "'parts.trn3.price=+20%'. Repeatable.",
        autocompletion=_completed("settings"),
        **WHAT_IF,
    ),
    "date": _shared_option(
        *(str | None, "--date"),
        metavar="YYYY-MM",
        help="At the prices of this month: terms.date.",
        **WHAT_IF,
    ),
    "anchor": _shared_option(
        *(Path | None, "--anchor"),
        metavar="FILE",
        help="Measured serving runs of your own, as benchmarks write them or in columns as `tco "
        "validate` reads them: they move the answer and its range.",
        **WHAT_IF,
    ),
    "chip": _shared_option(
        *(str | None, "--chip"),
        metavar="CHIP",
        help="Chip of measured runs whose file does not state it, such as h100-sxm.",
        **FACT,
    ),
    "model": _shared_option(
        *(str | None, "--model"), metavar="MODEL", help="Model of measured runs.", **FACT
    ),
    "tp": _shared_option(
        *(int | None, "--tp"), metavar="N", min=1, help="Chips of their tensor parallelism.", **FACT
    ),
    "measured": _shared_option(
        *(str | None, "--measured"), metavar="YYYY-MM", help="Month in which they ran.", **FACT
    ),
    "precision": _shared_option(
        *(str | None, "--precision"), metavar="FORMAT", help="Format of their weights.", **FACT
    ),
    "ranks": _shared_option(
        *(int | None, "--ranks"), metavar="N", min=2, help="Ranks of measured collectives.", **FACT
    ),
    "op": _shared_option(
        *(str | None, "--op"), metavar="OP", help="Their operation, such as all_gather.", **FACT
    ),
    "fabric": _shared_option(
        *(str | None, "--fabric"),
        metavar="NETWORK",
        help="Their network, of several nodes, such as '8x400G'.",
        **FACT,
    ),
    "hold": _shared_option(
        *(bool, "--hold/--replan"),
        default=False,
        help="Hold plan and structure as they are at the point; default: each draw, or value of "
        "an input, chooses its own.",
        **WHAT_IF,
    ),
    "variant": _shared_option(
        *(list[str] | None, "--variant"),
        metavar="KEY=VALUE",
        help="Choose a variant of the system, such as switch=gen2. Repeatable.",
        **WHAT_IF,
    ),
    "data": _shared_option(
        *(Path | None, "--data"),
        metavar="DIR",
        help="Your own data folder, laid over the shipped one; ./data is taken anyway.",
        **HOW,
    ),
    "form": _shared_option(
        format_choices(), "--format", default="table", help="How the answer is printed.", **HOW
    ),
    "output": _shared_option(
        Path | None,
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file, in the form of its ending.",
        **HOW,
    ),
    "quiet": _shared_option(
        bool,
        "--quiet",
        default=False,
        help="No notes on stderr.",
        **HOW,
    ),
    "redact": _shared_option(
        *(bool, "--redact"),
        default=False,
        envvar=REDACT,
        show_envvar=False,
        help="Withhold whatever rests on values of your own.",
        **HOW,
    ),
}
MOST_WARNINGS = 3
USUAL = ("data", "form", "output", "quiet", "redact")


# Options that state what a file of measured runs does not: of serving, and of collectives too.
SERVING_FACTS = ("chip", "model", "tp", "measured", "precision")
FACTS = (*SERVING_FACTS, "ranks", "op", "fabric")


class CommandRequest:
    """The shared options as the user gave them, checked.

    A shared option that the command does not take has its default.

    Args:
        texts: The shared options of the command line, by name.

    Raises:
        UsageError: An option is malformed. No answer is made then.

    """

    def __init__(self, texts: JsonMapping) -> None:
        self.texts = {option_name: default for option_name, (_, default) in SHARED.items()} | dict(
            texts
        )
        self.data: Path | None = self.texts["data"]
        self.form: str = _form_of(str(self.texts["form"]), self.texts["output"])
        self.quiet: bool = self.texts["quiet"]
        self.hold: bool = self.texts["hold"]
        self.redact: bool = self.texts["redact"]
        anchoring.set(self.texts["anchor"])
        facts = {
            fact_name: str(self.texts[fact_name])
            for fact_name in FACTS
            if self.texts[fact_name] is not None
        }
        measured_facts.set(facts)
        # The inputs that `--set` and `--date` replace, by path.
        self.settings: dict[str, str] = _parse_settings(self.texts["set"], self.texts["date"])
        # The variants that `--variant` chooses, by key.
        self.variant: dict[str, str] = parse_key_values(self.texts["variant"], "--variant")
        # The axes that `--plan` fixes, or the plan of a saved result.
        self.plan: Any = _parse_plan_axes(self.texts["plan"])

    @property
    def catalogue(self) -> Catalogue:
        """Shipped catalogue with the user's folders over it."""
        return self.catalogue_of(None)

    def catalogue_of(self, scenario: str | None, checked: bool = True) -> Catalogue:
        """Return the catalogue that a scenario sees."""
        from tco.evaluation.evaluation import catalogue_for

        return catalogue_for(scenario, self.data, checked)

    def evaluated(
        self, scenario_names: Sequence[str] | None, **how: Any
    ) -> tuple[Catalogue, list[Result]]:
        """Return the catalogue and the results of scenarios under the options.

        Without names they are those of the headline.
        """
        from tco.evaluation.evaluation import catalogue_of

        evaluations = self.evaluate_scenarios(scenario_names, **how)
        return catalogue_of(evaluations, self.data), [
            evaluation.result for evaluation in evaluations
        ]

    def evaluate_scenarios(
        self, scenario_names: Sequence[str] | None, **how: Any
    ) -> list[Evaluation]:
        """Return scenarios evaluated as the options say, each with what it was asked with."""
        from tco.evaluation.evaluation import HEADLINE, evaluate_each

        return evaluate_each(
            scenario_names or HEADLINE, self.data, self.settings, self.variant, self.plan, **how
        )

    def performed(self, scenario: str) -> tuple[Catalogue, Result]:
        """Return a scenario with a timed plan, and its catalogue; refuse one without a plan."""
        catalogue, (scenario_result,) = self.evaluated([scenario], priced=False)
        if scenario_result.texts["workload.kind"] == "stated":
            raise DataError(
                f"{scenario}: no model is run, its rates are stated: there is no plan and no time "
                "to show"
            )
        if scenario_result.serving is not None and scenario_result.serving.reason:
            raise DataError(f"{scenario}: {scenario_result.serving.reason}")
        if not scenario_result.report.phases:
            raise DataError(
                f"{scenario}: a saved answer, which keeps its plan but no operators; expected a "
                f"scenario such as {scenario_result.scenario}"
            )
        return catalogue, scenario_result

    def words(self, scenario_names: Sequence[str], baseline: str | None) -> list[str]:
        """Return the command-line words that repeat the request.

        With `--redact`, the value of a setting is not shown, because it is the user's own.
        """
        request_words = [*scenario_names]
        for option, key_values in (("--set", self.settings), ("--variant", self.variant)):
            request_words += [
                word
                for option_key, option_value in key_values.items()
                for word in (option, f"{option_key}={'...' if self.redact else option_value}")
            ]
        return [
            *request_words,
            *(["--baseline", baseline] if baseline else []),
            *(["--data", str(self.data)] if self.data else []),
        ]

    def emit(self, answer: Answer, failures: Sequence[Any] = ()) -> None:
        """Print or write an answer in the form that was asked for.

        Args:
            answer: Answer of the command.
            failures: Texts and numbers by which the command fails. With `--redact` those that rest
                on values of the user's own do not count.

        Raises:
            typer.Exit: There are failures; the exit code is 1.

        """
        if self.redact:
            from tco.cli.redaction import redact_answer

            answer, failures = redact_answer(answer, self.form, failures)
        emit(
            render_answer(answer, self.form, screen_for(self.texts["output"])), self.texts["output"]
        )
        self.tell(answer.notes)
        if failures:
            raise typer.Exit(1)

    def tell(self, notes: Iterable[str]) -> None:
        """Print notes to stderr, each once; warnings also where notes are not wanted."""
        for note in () if self.quiet else dict.fromkeys(notes):
            tell(f"note: {note}")
        warnings = self._own_warnings()
        for warning in warnings[:MOST_WARNINGS]:
            tell(f"warning: {warning}")
        if len(warnings) > MOST_WARNINGS:
            more = len(warnings) - MOST_WARNINGS
            tell(f"warning: nothing takes {more} more rows: tco parts check")

    def _own_warnings(self) -> list[str]:
        """Return sentences on the user's own rows that nothing takes."""
        if self.data is None and not Path("data").is_dir():
            return []
        from tco.catalog.overlay import untaken_rows

        return untaken_rows(self.catalogue_of(None, checked=False), self.settings.values())


def _form_of(form: str, output: Path | None) -> str:
    """Return the form of an output's ending, or else `form`; a mismatch raises `UsageError`."""
    if output is None or not output.suffix or form not in FORMS:
        return form
    endings = {rendering.ending: form_name for form_name, rendering in FORMS.items()}
    named = endings.get(output.suffix.lower())
    if named is None:
        raise UsageError(
            f"--output {output}: unknown ending {output.suffix!r}, expected one of "
            f"{', '.join(sorted(endings))}"
        )
    if form not in (named, "table"):
        raise UsageError(f"--output {output}: ends in {output.suffix!r}, and --format is {form}")
    return named


def command(
    group: typer.Typer,
    *takes: str,
    name: str | None = None,
    usual: tuple[str, ...] = USUAL,
    forms: tuple[str, ...] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command.

    Its first parameter is a `CommandRequest`; its own follow, then the shared options it `takes`.

    `usual` are those it has beside; `forms` are what its `--format` knows beside those of all.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        called_by = name or function.__name__
        _, *command_parameters = inspect.signature(function, eval_str=True).parameters.values()
        options = _select_options(command_parameters, takes, usual, forms)
        more = [
            inspect.Parameter(
                option_name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for option_name, (kind, default) in options.items()
        ]

        def run(**texts: Any) -> None:
            command_arguments = {
                parameter.name: texts.pop(parameter.name) for parameter in command_parameters
            }
            _refuse_facts_of_nothing(texts)
            if "redact" not in options and os.environ.get(REDACT, "").lower() in ASKED:
                raise UsageError(
                    f"{REDACT} is set, and `tco {called_by}` has no --redact: what it writes "
                    "cannot withhold your own values; unset it"
                )
            output = command_arguments.get("output") or texts.get("output")
            quiet = bool(texts.get("quiet"))
            with telling_written(output, quiet), progress_line(quiet):
                # what a request states of anchors and measurements ends with it
                copy_context().run(_answer_command, function, texts, command_arguments)

        run.__name__, run.__doc__, run.__module__ = (
            function.__name__,
            function.__doc__,
            function.__module__,
        )
        run_parameters = [*command_parameters, *more]
        run.__signature__ = inspect.Signature(run_parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in run_parameters}
        group.command(name, cls=Taught)(run)
        return function

    return register


def _select_options(
    command_parameters: Iterable[inspect.Parameter],
    takes: tuple[str, ...],
    usual: tuple[str, ...],
    forms: tuple[str, ...],
) -> dict[str, tuple[Any, Any]]:
    """Return the declarations of a command's shared options, by name."""
    dated = (
        ("date",)
        if "set" in takes and "date" not in {parameter.name for parameter in command_parameters}
        else ()
    )
    facts = SERVING_FACTS if "anchor" in takes else ()
    options = {
        option_name: SHARED[option_name]
        for option_name in SHARED
        if option_name in (*takes, *facts, *usual, *dated)
    }
    if forms:
        options["form"] = (
            Annotated[format_choices(*forms), *options["form"][0].__metadata__],
            options["form"][1],
        )
    return options


def _answer_command(
    function: Callable[..., None],
    texts: JsonMapping,
    arguments: JsonMapping,
) -> None:
    """Call a command's function with its request; with `--redact` nothing tells of own values."""
    if not texts.get("redact"):
        function(CommandRequest(texts), **arguments)
        return
    from tco.cli.redaction import keeping_back

    keeping_back(lambda: function(CommandRequest(texts), **arguments))


def _refuse_facts_of_nothing(texts: JsonMapping) -> None:
    """Refuse facts of measured runs where `--anchor` could name their file and names none."""
    stated = [fact_name for fact_name in FACTS if texts.get(fact_name) is not None]
    if stated and texts.get("anchor", "") is None:
        raise UsageError(
            f"--{stated[0]} is of measured runs, and none are named; add --anchor FILE"
        )


def _parse_settings(texts: list[str] | None, date: str | None) -> dict[str, str]:
    """Return the inputs that `--set` and `--date` replace, by path.

    Raises:
        UsageError: A setting has no path or no value, or the date is no month.

    """
    settings = parse_key_values(texts, "--set")
    if date is None:
        return settings
    if not re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", date):
        raise UsageError(f"--date {date!r}: expected a month, such as 2026-09")
    return settings | parse_key_values([f"terms.date={date}"], "--date")


def parse_key_values(texts: list[str] | None, option: str) -> dict[str, str]:
    """Return KEY=VALUE texts as a mapping; a malformed one raises `UsageError`."""
    key_values = {}
    for pair_text in texts or []:
        key_text, sign, value_text = pair_text.partition("=")
        if not sign or not key_text.strip() or not value_text.strip():
            raise UsageError(
                f"{option} {pair_text if making.get() is None else '...'!r}: expected "
                f"{'PATH' if option == '--set' else 'KEY'}=VALUE"
            )
        key_values[key_text.strip()] = value_text.strip()
    if current_making := making.get():
        current_making.typed_settings.update(key_values.items())
    return key_values


def _parse_plan_axes(axes_text: str | None) -> Any:
    """Return the plan axes of AXIS=N,... or of a saved result's plan.

    A malformed text raises `UsageError`.
    """
    if axes_text is None:
        return None
    if axes_text.endswith(".json"):
        from tco.scenario.saved import load_result

        plan = load_result(axes_text).plan
        if plan is None:
            raise UsageError(f"--plan {axes_text}: this result has no plan")
        # who states a plan means it as it is
        return plan._replace(chosen=0) if hasattr(plan, "chosen") else plan
    plan_axes: dict[str, str] = {}
    for axis_text in axes_text.split(","):
        axis_name, sign, axis_value = (part.strip() for part in axis_text.partition("="))
        if not (sign and axis_name and axis_value):
            raise UsageError(
                f"--plan {axes_text!r}: expected AXIS=N,..., such as tp=8,ep=1,batch=64"
            )
        if axis_name in plan_axes:
            raise UsageError(f"--plan {axes_text!r}: {axis_name} is given twice")
        plan_axes[axis_name] = axis_value
    return plan_axes
