"""`tco price | perf | explain | inputs`: cost, plan, time, numbers and inputs of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import CommandRequest, command, name_argument
from tco.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from tco.comparison.cash_flow import Money, SystemUpgrade
    from tco.core.trace import Node
    from tco.evaluation.scenario_function import Evaluation
    from tco.scenario.result import Result


@command(app, "set", "anchor", "variant")
def price(
    request: CommandRequest,
    scenario: str,
    cash_flow: bool = False,
    swap: str | None = None,
) -> None:
    """Show the cost lines of one scenario, down to the chip-hour.

    What is shown:
        cash_flow: Show what is paid month by month instead.
        swap (KEY=VALUE@MONTH): With --cash-flow: another variant from a month on, such as
            switch=gen2@24.

    """
    if swap is not None and not cash_flow:
        raise UsageError("--swap changes the money by month: add --cash-flow")
    from tco.report.cost import price_answer
    from tco.sampling.median import drawn_chip_hour

    upgrade = None
    if swap is not None:
        from tco.comparison.cash_flow import swap_of

        upgrade = swap_of(swap)
    rates = cash_flow or request.form == "json"
    (evaluation,) = request.evaluate_scenarios([scenario], workload=rates)
    if not rates and evaluation.result.texts["workload.kind"] == "training":
        (evaluation,) = request.evaluate_scenarios([scenario])  # days and cost of the whole job
    catalogue, scenario_result = evaluation.catalogue, evaluation.result
    money = _money_by_month(request, evaluation, upgrade) if cash_flow else None
    drawn = drawn_chip_hour(evaluation)
    request.emit(price_answer(catalogue, scenario_result, money, drawn))


def _money_by_month(
    request: CommandRequest, evaluation: Evaluation, upgrade: SystemUpgrade | None
) -> Money:
    """Return the money of a scenario by month, with another variant from a month on."""
    from tco.comparison.cash_flow import money_of
    from tco.evaluation.evaluation import evaluate_each

    if upgrade is None:
        return money_of(evaluation.result, evaluation.catalogue)
    (after,) = evaluate_each(
        [evaluation.name],
        request.data,
        request.settings,
        request.variant | {upgrade.key: upgrade.value},
    )
    return money_of(evaluation.result, evaluation.catalogue, after.result, upgrade.month)


@command(app, "plan", "set", "anchor", "variant")
def perf(request: CommandRequest, scenario: str) -> None:
    """Show the best parallel plan and its time by operator and bound."""
    from tco.report.performance import performance_answer

    request.emit(performance_answer(*request.performed(scenario)))


@command(app, "plan", "set", "variant")
def explain(
    request: CommandRequest,
    scenario: str,
    metric: Annotated[
        str | None,
        name_argument("metrics"),
    ] = None,
    ratio_to: str | None = None,
    depth: Annotated[int | None, typer.Option(min=1)] = None,
    everything: bool = False,
) -> None:
    """Open a number: its equation, its inputs and their sources.

    JSON holds the whole tree unless --depth is given; `tco price SCENARIO --format json` has the
    figures alone.

    Arguments:
        metric: A metric that `tco metrics list` shows, or the name of a cell that an explanation
            shows, or of an input.

    What is shown:
        depth: How many levels of the tree to open; the table form opens three.
        everything (--all): Open the whole tree.

    """
    if metric is None:
        raise UsageError(
            f"METRIC is missing: tco explain {scenario} tco_usd_per_chip_hour; `tco metrics list` "
            "shows what there is to explain"
        )
    if everything and depth is not None:
        raise UsageError(f"--depth {depth} and --all exclude each other")
    from tco.report.explanation import SHALLOW, View, explanation_answer
    from tco.sampling.median import drawn_metric
    from tco.scenario.metrics import METRICS

    if scenario in METRICS:
        raise UsageError(
            f"{scenario} is a metric, and the scenario stands first: tco explain {metric} "
            f"{scenario}"
        )
    evaluation, baseline, root = _explained(request, scenario, metric, ratio_to)
    line_kinds = {f"cost/{line.path}/per_chip_hour": line.kind for line in evaluation.result.lines}
    view = View(evaluation.catalogue, depth, line_kinds)
    short = view._replace(depth=SHALLOW) if depth is None and not everything else view
    drawn = drawn_metric(evaluation, metric, reference=baseline)
    request.emit(explanation_answer(evaluation, baseline, metric, root, view, short, drawn))


def _explained(
    request: CommandRequest, scenario: str, metric: str, baseline: str | None
) -> tuple[Evaluation, Evaluation | None, Node]:
    """Return the scenario, the baseline of a ratio, and the trace node of the number."""
    from tco.evaluation.evaluation import own_and_baseline
    from tco.evaluation.side_by_side import ratio_node
    from tco.scenario.metrics import AGAINST_BASELINE, METRICS, PERFORMANCE

    if metric in AGAINST_BASELINE or baseline is not None:
        if request.plan:
            raise UsageError(f"--plan: {metric} is of two scenarios, each with its own plan")
        what_if = (request.data, request.settings, request.variant)
        cost, evaluations = own_and_baseline(scenario, metric, *what_if, baseline, trace=True)
        for evaluation in evaluations:
            _traced_root(evaluation.result, evaluation.name, cost)
        evaluation, reference = evaluations
        return evaluation, reference, ratio_node(evaluation.result, reference.result, cost)
    # the cost of racks needs no workload, but a stated plan is always checked
    needs_workload = bool(request.plan) or metric not in METRICS or metric in PERFORMANCE
    (evaluation,) = request.evaluate_scenarios(
        [scenario], priced=False, trace=True, workload=needs_workload
    )
    return evaluation, None, _traced_root(evaluation.result, scenario, metric)


def _traced_root(scenario_result: Result, scenario: str, metric: str) -> Node:
    """Return the trace node of a metric or a cell; what has none raises `DataError`."""
    from tco.core.trace import walk
    from tco.scenario.metrics import METRICS, unknown_metric
    from tco.scenario.result import why_absent

    if not scenario_result.nodes:
        raise DataError(
            f"{scenario}: a saved answer keeps its numbers, not how they were made; expected a "
            f"scenario such as {scenario_result.scenario}"
        )
    cells = {node.id: node for node in walk(*scenario_result.nodes.values())}
    if (root := scenario_result.nodes.get(metric) or cells.get(metric)) is not None:
        return root
    if metric not in METRICS:
        raise unknown_metric(metric, cells)
    if (counted := scenario_result.metrics.get(metric)) is not None:
        raise DataError(
            f"{metric} is {counted:g} for {scenario}: counted in the tree of its system, not "
            "computed; `tco systems show` opens that"
        )
    raise DataError(f"{metric} has no value for {scenario}: {why_absent(scenario_result, metric)}")


@command(app, "set", "variant")
def inputs(
    request: CommandRequest,
    scenario: str,
    words: list[str] | None = None,
) -> None:
    """List the inputs of a scenario, by the paths that --set takes.

    Each input has its value, range, kind and source.

    Arguments:
        words ([WORD]...): Those alone that these words tell of: chip price, interest.

    """
    from tco.catalog.system_tree import load_system
    from tco.evaluation.chip_prices import chip_parts_price
    from tco.report.inputs import inputs_answer, result_and_money_inputs, search_inputs

    (evaluation,) = request.evaluate_scenarios([scenario], priced=False)
    catalogue, scenario_result = evaluation.catalogue, evaluation.result
    price = chip_parts_price(evaluation)
    matches = search_inputs(
        [*result_and_money_inputs(catalogue, scenario_result), *([price] if price else [])],
        words or (),
        load_system(catalogue, scenario_result.system).chip,
    )
    if not matches.inputs:
        raise DataError(
            f"no input of {scenario_result.scenario} is called {' '.join(words or [])!r}; `tco "
            f"inputs {scenario_result.scenario}` lists all"
        )
    request.emit(inputs_answer(catalogue, scenario_result, matches, words or ()))
