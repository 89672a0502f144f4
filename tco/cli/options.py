"""The arguments and options that commands share: each is declared here, once.

A command that answers has `--data`, `--format`, `--output`, `--quiet` and `--redact`. It gets the
values of these and of the other options of `shared_options` as one `CommandRequest`. A parameter of
its function with a name of `shared_parameters`, such as `scenario`, is declared there.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from tco.cli.descriptions import described_parameters
from tco.cli.help import WRITTEN_BY, Taught
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


def name_argument(kind: str) -> Any:
    """Return the argument that names something of a kind, which the shell completes."""
    return typer.Argument(autocompletion=_completed(kind), show_default=False)


REDACT = "TCO_REDACT"  # of the environment
ASKED = ("1", "true", "t", "yes", "y", "on")  # by which a switch is on there

Settings = Annotated[list[str] | None, typer.Option(autocompletion=_completed("settings"))]


def shared_options(
    *,
    plan: str | None = None,
    set: Settings = None,  # noqa: A002 - the name of the option
    date: str | None = None,
    anchor: Path | None = None,
    chip: str | None = None,
    model: str | None = None,
    tp: Annotated[int | None, typer.Option(min=1)] = None,
    measured: str | None = None,
    precision: str | None = None,
    ranks: Annotated[int | None, typer.Option(min=2)] = None,
    op: str | None = None,
    fabric: str | None = None,
    hold: bool = False,
    variant: list[str] | None = None,
    data: Path | None = None,
    form: str = "table",
    output: Path | None = None,
    quiet: bool = False,
    redact: Annotated[bool, typer.Option(envvar=REDACT, show_envvar=False)] = False,
) -> None:
    """Declare the options that commands share, in the order of the help.

    What if:
        plan (AXIS=N,...): Fix axes of the plan, such as tp=8,ep=1,batch=64; the others are
            searched. Or take a saved result's plan.
        set (PATH=VALUE): Replace an input, such as 'site.electricity_price=0.09 USD/kWh' or
            'parts.trn3.price=+20%'. Repeatable.
        date (YYYY-MM): At the prices of this month: terms.date.
        anchor (FILE): Measured serving runs of your own, as benchmarks write them or in
            columns as `tco validate` reads them: they move the answer and its range.
        hold (--hold/--replan): Hold plan and structure as they are at the point; default:
            each draw, or value of an input, chooses its own.
        variant (KEY=VALUE): Choose a variant of the system, such as switch=gen2.
            Repeatable.

    What a file of measured runs does not state:
        chip (CHIP): Chip of measured runs whose file does not state it, such as h100-sxm.
        model (MODEL): Model of measured runs.
        tp (N): Chips of their tensor parallelism.
        measured (YYYY-MM): Month in which they ran.
        precision (FORMAT): Format of their weights.
        ranks (N): Ranks of measured collectives.
        op (OP): Their operation, such as all_gather.
        fabric (NETWORK): Their network, of several nodes, such as '8x400G'.

    How the answer is given:
        data (DIR): Your own data folder, laid over the shipped one; ./data is taken anyway.
        form (--format): How the answer is printed.
        output (--output -o FILE): Write to a file, in the form of its ending.
        quiet: No notes on stderr.
        redact: Withhold whatever rests on values of your own.

    """


def shared_parameters(
    *,
    scenario: Annotated[str, name_argument("scenarios")],
    scenarios: Annotated[list[str] | None, name_argument("scenarios")],
    named_scenarios: Annotated[list[str], name_argument("scenarios")],
    system: Annotated[str, name_argument("systems")],
    baseline: str | None,
    ratio_to: str | None,
    metric: Annotated[str, typer.Option(autocompletion=_completed("metrics"))],
    metrics: Annotated[list[str] | None, typer.Option(autocompletion=_completed("metrics"))],
    samples: int,
    seed: Annotated[int, typer.Option(min=0)],
    workers: int | None,
    cluster: str | None,
) -> None:
    """Declare the parameters that several functions of commands have by the same name.

    Arguments:
        scenario: A scenario's name or file, or the id of a system.
        scenarios ([SCENARIO]...): Names or files; default: the four headline racks.
        named_scenarios (SCENARIO...): Names or files of scenarios, or systems on the headline's
            terms.
        system: A system's id; `tco systems list` shows them.

    What is asked:
        baseline (NAME): The scenario to compare with.
        ratio_to (--baseline SCENARIO): What a ratio is relative to, gb200-nvl72 unless named.
        metric (METRIC): The metric that is asked for.

    What is shown:
        metrics (--metric METRIC): This metric only. Repeatable.

    Draws and workers:
        samples (N): How many draws.
        seed (S): Other seeds give other draws, the same seed the same.
        workers (N): Worker processes on this machine, each with blocks of cases or draws; none:
            this process alone.
        cluster (ADDRESS): The workers of a Dask scheduler, tcp://HOST:8786.

    """


SHARED, PARAMETERS = (
    {parameter.name: parameter for parameter in described_parameters(declaration)[1]}
    for declaration in (shared_options, shared_parameters)
)
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
        self.texts = {
            option_name: parameter.default for option_name, parameter in SHARED.items()
        } | dict(texts)
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

    def require_form(self, option: str, *forms: str) -> None:
        """Raise `UsageError` for an option that has no effect in the form of the answer."""
        if self.form not in forms:
            raise UsageError(
                f"{option} has no effect with --format {self.form}; it goes with --format "
                f"{', '.join(forms[:-1])} or {forms[-1]}"
            )

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
        writer = WRITTEN_BY.get(output.suffix.lower().removeprefix("."))
        raise UsageError(
            f"--output {output}: unknown ending {output.suffix!r}, expected one of "
            f"{', '.join(sorted(endings))}" + (f"; `{writer}` writes it" if writer else "")
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

    Its first parameter is a `CommandRequest`; its own follow, as its docstring describes them, then
    the shared options it `takes`.

    `usual` are those it has beside; `forms` are what its `--format` knows beside those of all.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        called_by = name or function.__name__
        words, (_, *own_parameters) = described_parameters(function)
        command_parameters = [_declared_parameter(parameter) for parameter in own_parameters]
        options = _select_options(command_parameters, takes, usual, forms)

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

        run.__name__, run.__doc__, run.__module__ = function.__name__, words, function.__module__
        run_parameters = [*command_parameters, *options.values()]
        run.__signature__ = inspect.Signature(run_parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in run_parameters}
        group.command(name, cls=Taught)(run)
        return function

    return register


def _declared_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter with its declaration, which several commands may share."""
    if get_origin(parameter.annotation) is Annotated or parameter.name not in PARAMETERS:
        return parameter
    return parameter.replace(annotation=PARAMETERS[parameter.name].annotation)


def _select_options(
    command_parameters: Iterable[inspect.Parameter],
    takes: tuple[str, ...],
    usual: tuple[str, ...],
    forms: tuple[str, ...],
) -> dict[str, inspect.Parameter]:
    """Return a command's shared options by name."""
    dated = (
        ("date",)
        if "set" in takes and "date" not in {parameter.name for parameter in command_parameters}
        else ()
    )
    facts = SERVING_FACTS if "anchor" in takes else ()
    options = {
        option_name: parameter
        for option_name, parameter in SHARED.items()
        if option_name in (*takes, *facts, *usual, *dated)
    }
    if form := options.get("form"):
        choices: Any = Annotated[format_choices(*forms), *form.annotation.__metadata__]
        options["form"] = form.replace(annotation=choices)
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
