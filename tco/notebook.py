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
from tco.evaluation import side_by_side as study
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
    """Scenarios side by side: `results` with their metrics, and what the command line makes of the
    same question.
    """

    asked: Sequence[str] = ()  # the scenarios as words of a command line, with what was set

    def plot(self, kind: str = "frontier", width: int = 760) -> SvgFigure:
        """Return a figure of `tco plot`: `frontier`, cost against tokens/s per user, `cost`, what a
        chip-hour costs by what is paid for, or `fabric`.

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
        """Write the tables of `tco export`: `.xlsx` (live formulas), `.csv`, `.json`, `.parquet`,
        or a folder whose name ends in `/`.
        """
        self.write("export", "--baseline", self.baseline, "-o", str(path))

    def write(self, *words: str) -> None:
        """Run a command on these scenarios."""
        if not self.asked:
            raise UsageError(
                f"tco {words[0]} evaluates its scenarios again, and this comparison is of results: "
                "compare them by name"
            )
        _commanded(*words, *self.asked)


def compare(
    scenarios: str | Sequence[str | Path | Result] = HEADLINE,
    baseline: str | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - the name users know from the command line
    data: Path | None = None,
) -> Comparison:
    """Return scenarios side by side; `set` replaces inputs of all of them.

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
    comparison = Comparison(
        *study.compare_results(
            [
                evaluation.result
                for evaluation in evaluate_each(scenario_list, data, dict(set or {}), refuse=False)
            ],
            baseline,
        )
    )
    settings = [
        word
        for path, input_value in (set or {}).items()
        for word in ("--set", f"{path}={input_value}")
    ]
    scenario_names = [
        str(scenario) for scenario in scenario_list if not isinstance(scenario, Result)
    ]
    comparison.asked = (
        [*scenario_names, *settings, *(["--data", str(data)] if data else [])]
        if len(scenario_names) == len(scenario_list)
        else ()
    )
    return comparison


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
