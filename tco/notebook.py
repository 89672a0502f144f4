"""Notebook interface: scenario comparisons with figures, a report page and tables.

`compare` returns a `Comparison`. Its methods `plot`, `report` and `export` run the commands of the
same names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tco.core.errors import UsageError
from tco.core.notebook_display import html_of
from tco.evaluation import side_by_side as study
from tco.evaluation.cost_changes import CostChange, cost_changes
from tco.evaluation.evaluation import HEADLINE, evaluate_each
from tco.scenario.result import Result

OF_MANY = ("frontier", "cost", "fabric")  # figures of several scenarios
OF_ONE = ("tornado", "range", "roofline", "operators", "bom", "money")


class SvgFigure(str):
    """An SVG document, which a notebook draws."""

    def _repr_svg_(self) -> str:
        """Return the drawing."""
        return str(self)


class Comparison(study.ScenarioComparison):
    """Scenarios side by side: `results` with metrics, and the command line's answers."""

    command_words: Sequence[str] = ()  # the scenarios as words of a command line, with what was set
    changes: Sequence[CostChange] = ()  # what `set` changed in the base cases; empty without it

    @property
    def line(self) -> str:
        """Line with the cost of work of each scenario, before and with what was set."""
        if not self.changes:
            return super().line
        costs = (
            f"{change.scenario} {_cost_words(change.before)} -> {_cost_words(change.after)} "
            f"(change {change.words})"
            for change in self.changes
        )
        return f"{study.rated_by(self.results)}: {'; '.join(costs)}; baseline {self.baseline}"

    def changes_to_frame(self) -> Any:
        """Return the base cases before and with what was set, and their change in per cent."""
        import pandas as pd

        change_rows = [
            (change.scenario, change.before, change.after, change.percent)
            for change in self.changes
        ]
        columns = ["scenario", "before", "after", "change_percent"]
        return pd.DataFrame(change_rows, columns=columns).set_index("scenario")

    def _repr_html_(self) -> str:
        """Show the changes above all metrics, in a notebook."""
        metrics_html = html_of(self.table(), self.line)
        if not self.changes:
            return metrics_html
        binding_notes = " ".join(note for change in self.changes for note in change.notes)
        return (
            html_of(self.changes_to_frame(), "What was set changes", binding_notes) + metrics_html
        )

    def plot(self, kind: str = "frontier", width: int = 760) -> SvgFigure:
        """Return a figure of `tco plot`: `frontier` (cost against speed), `cost` or `fabric`.

        `cost` shows a chip-hour by what is paid for.

        Of a single scenario it may be `tornado`, `range`, `roofline`, `operators`, `bom` or
        `money`, too.
        """
        figure_kinds = (*OF_MANY, *(OF_ONE if len(self.results) == 1 else ()))
        if kind not in figure_kinds:
            raise UsageError(
                f"plot({kind!r}): expected {', '.join(map(repr, figure_kinds))}; a comparison of "
                "one scenario has those of one, too"
            )
        with TemporaryDirectory() as folder:
            path = Path(folder, "figure.svg")
            self.write("plot", kind, "--width", str(width), "-o", str(path))
            return SvgFigure(path.read_text(encoding="utf-8"))

    def report(self, path: str | Path) -> None:
        """Write the page of `tco report`, a file `.html` or a folder whose name ends in `/`."""
        self.write("report", "--baseline", self.baseline, "-o", str(path))

    def export(self, path: str | Path) -> None:
        """Write the tables of `tco export`, by the ending of `path`.

        `.xlsx` has live formulas; `.csv`, `.json`, `.parquet` and a folder whose name ends in `/`
        hold values.
        """
        self.write("export", "--baseline", self.baseline, "-o", str(path))

    def write(self, *words: str) -> None:
        """Run a command on these scenarios."""
        if not self.command_words:
            raise UsageError(
                f"tco {words[0]} evaluates its scenarios again, and this comparison is of results: "
                "compare them by name"
            )
        _commanded(*words, *self.command_words)


def compare(
    scenarios: str | Sequence[str | Path | Result] = HEADLINE,
    baseline: str | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - the name users know from the command line
    data: Path | None = None,
) -> Comparison:
    """Return scenarios side by side; `set` replaces inputs of all of them.

    With `set` the comparison shows each base case before and after; it makes no draws.

    Args:
        scenarios: Names or files of scenarios, or results.
        baseline: Name of the scenario for ratios; None for the usual baseline.
        set: Values by input path, as texts.
        data: Folder of a person's own data.

    Raises:
        DataError: A name, path or value is unknown, or there is no scenario.
        UsageError: `set` is given beside a saved result.

    >>> round(compare(["gb200-nvl72"]).results[0].metrics["chips"])
    72
    """
    scenario_list = [scenarios] if isinstance(scenarios, str) else scenarios
    evaluations = evaluate_each(scenario_list, data, dict(set or {}), refuse=False)
    comparison = Comparison(
        *study.compare_results([evaluation.result for evaluation in evaluations], baseline)
    )
    if set:
        comparison.changes = cost_changes(evaluations, comparison.results, data)
    settings = [
        word
        for path, input_value in (set or {}).items()
        for word in ("--set", f"{path}={input_value}")
    ]
    scenario_names = [
        str(scenario) for scenario in scenario_list if not isinstance(scenario, Result)
    ]
    comparison.command_words = (
        [*scenario_names, *settings, *(["--data", str(data)] if data else [])]
        if len(scenario_names) == len(scenario_list)
        else ()
    )
    return comparison


def _cost_words(cost: float | None) -> str:
    return "none" if cost is None else f"{cost:.4g}"


def _commanded(*words: str) -> None:
    """Run a command as the command line does, quietly; what is wrong is raised."""
    from typer import Context
    from typer.main import get_command

    from tco.cli import app

    command: Any = get_command(app)
    rest = [*words, "--quiet"]
    while hasattr(command, "commands"):
        command = command.get_command(Context(command), rest.pop(0))
    command.main(args=rest, prog_name="tco", standalone_mode=False)
