"""The examples of CONTRIBUTING.md that extend the program are read out of the page and run."""

from __future__ import annotations

import csv
import io
import json
import sys
from types import ModuleType
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator

from tco import evaluate as tco_evaluate
from tco.catalog.rows import Attribute
from tco.cli import options
from tco.cli.descriptions import described_parameters
from tco.cost import ledger
from tco.scenario import choices, workload
from tco.scenario.metrics import Metric
from tco.scenario.result import why_absent
from tests.catalog.test_contributing import blocks
from tests.catalogue import DATA, input_attributes
from tests.cli import app, document, output, tco, testing
from tests.registry import REGISTRY, equation
from tests.report.helpers import DOCUMENTS
from tests.report.schema import published_schema
from tests.scenario_helpers import METRICS, metrics

METRIC = "output_tokens_per_usd"


@pytest.fixture(autouse=True)
def keeps_nothing(monkeypatch, tmp_path):
    """Answers of a program that a page has extended are kept for no other."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def with_metric(monkeypatch, catalogue):
    """The program with the metric of the page."""
    code, row, line, _ = blocks("Add a metric")
    exec(compile("from __future__ import annotations\n" + code, "page", "exec"), vars(metrics))
    (page_metric,) = (
        Metric(*entry)
        for name, entry in eval(f"{{{row}}}", {"Metric": Metric}).items()
        if name == METRIC
    )
    monkeypatch.setitem(METRICS, METRIC, page_metric)
    # as the row in the file does, whose name has tokens
    monkeypatch.setattr(metrics, "PERFORMANCE", metrics.PERFORMANCE | {METRIC})
    usual = metrics.joined_metrics

    def joined(*joined_arguments):
        usual(*joined_arguments)
        *_, metrics_found, name_metric = joined_arguments
        out = metrics_found.get("output_tokens_per_s_per_chip")
        if out is not None:
            used = metrics_found["tco_usd_per_used_chip_hour"]
            exec(line, vars(metrics) | {"used": used, "out": out, "name_metric": name_metric})

    monkeypatch.setattr(metrics, "joined_metrics", joined)
    yield
    del REGISTRY["tokens_for_money"]
    del metrics.tokens_for_money


def test_example_metric_is_computed_and_exported(with_metric):
    metric_values = document("price", "gb200-nvl72")["metrics"]
    assert metric_values[METRIC] == pytest.approx(
        1e6 / metric_values["usd_per_million_output_tokens"], rel=1e-12
    )
    tree = document("explain", "gb200-nvl72", METRIC, "--depth", "1")["tree"]
    assert (tree["equation"], tree["unit"]) == (equation(REGISTRY["tokens_for_money"]), "token/USD")


def test_example_golden_row_holds(with_metric):
    """The row has the columns of the file, and its value is what the formula gives."""
    (row,) = csv.reader([blocks("Add a metric")[3].strip()])
    name, inputs, expected, unit, tolerance, source = row
    record = REGISTRY[name]
    assert record.function(**json.loads(inputs)) == pytest.approx(
        float(expected), rel=float(tolerance)
    )
    assert record.unit == unit
    assert source


def test_example_workload_kind_costs_what_a_stated_rate_costs(own_data, monkeypatch):
    """An hour and its tokens cost what they do at a stated rate.

    The kinds differ in what they do.
    """
    code, row = blocks("Add a kind of workload")
    page_namespace = vars(workload) | {}
    exec("from __future__ import annotations\n" + code, page_namespace)
    for name, kind in eval(f"{{{row}}}", page_namespace).items():
        monkeypatch.setitem(workload.KINDS, name, kind)
        kinds = (*choices.WORKLOAD_KINDS, name)
        monkeypatch.setitem(choices.CHOICES, "workload.kind", ("kind of workload", kinds))
    own_data.write("workloads/replay.toml", 'name = "A replay"\nkind = "replayed"\n')
    rate_setting = {"workload.output_rate": "500 token/s/chip"}
    replayed_result, stated = (
        tco_evaluate(
            "gb200-nvl72", {"workload": name, **rate_setting}, catalogue=own_data.catalogue()
        )
        for name in ("replay", "stated")
    )
    assert replayed_result.metrics == stated.metrics
    assert replayed_result.metrics["usd_per_million_output_tokens"] > 0
    assert "trains, this one replays requests" in why_absent(replayed_result, "step_s")


def test_example_cost_line_is_in_the_hour_and_the_months(own_data, monkeypatch):
    """Insurance costs 0.4 % of the servers' price every year, in the hour as in the months.

    It holds for every owner whose perspective does not state another share.
    """
    row, value, line = blocks("Add a cost line")
    group, name, unit, least, most, belief, dated, words, also = next(csv.reader([row.strip()]))
    monkeypatch.setitem(
        input_attributes(),
        (group, name),
        Attribute(
            group, name, unit, float(least), float(most), belief, dated == "yes", words, also
        ),
    )
    usual = ledger.add_repairs

    def repairs(lines, bill, broken):
        exec(line, {"ledger": lines, "bill": bill, "yearly_upkeep": ledger.yearly_upkeep})
        usual(lines, bill, broken)

    monkeypatch.setattr(ledger, "add_repairs", repairs)
    own_data.write(
        "perspectives/hyperscaler.toml",
        (DATA / "perspectives" / "hyperscaler.toml").read_text(encoding="utf-8") + "\n" + value,
    )
    for perspective in ("hyperscaler", "neocloud"):
        scenario_arguments = (
            "gb200-nvl72",
            "--data",
            str(own_data.folder),
            "--set",
            f"terms.perspective={perspective}",
        )
        price_document, price = (
            document("price", *scenario_arguments, "--cash-flow"),
            document("bom", *scenario_arguments)["totals"]["price_usd"],
        )
        premium = next(
            cost_line
            for cost_line in price_document["lines"]
            if cost_line["path"] == "upkeep/insurance"
        )
        assert premium["kind"] == "estimate"
        assert premium["usd_per_chip_hour"] * 8760 * 72 == pytest.approx(0.004 * price, rel=1e-12)
        assert sum(
            cash_flow_line["usd"]
            for cash_flow_line in price_document["cash_flow"]
            if cash_flow_line["line"] == "upkeep/insurance"
        ) == pytest.approx(5 * 0.004 * price, rel=1e-12)


@pytest.fixture
def commands():
    """Remove the commands that a test registers."""
    yield
    app.registered_commands[:] = [
        registered_command
        for registered_command in app.registered_commands
        if registered_command.callback.__module__ != "page"
    ]
    testing._get_command.cache_clear()


def run(code: str) -> None:
    exec(
        compile(code, "page", "exec"),
        {
            "__name__": "page",
            "app": app,
            "command": options.command,
            "Request": options.CommandRequest,
        },
    )


@pytest.fixture
def with_output(monkeypatch):
    """The program with the output of the page."""
    page = ModuleType("tco.report.watts")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    exec(compile(blocks("Add an output")[0], "page", "exec"), vars(page))
    yield page
    del DOCUMENTS["tco.watts/1"]


def test_example_command_runs(commands, with_output):
    run(blocks("Add a command")[0])
    watts_document = json.loads(
        tco("watts", "gb200-nvl72", "--set", "site.pue=1.5", "--format", "json").stdout
    )
    assert watts_document["schema"] == "tco.watts/1"
    (_, rack), (_, meter) = (row.values() for row in watts_document["rows"])
    assert meter > rack > 1000
    assert "W per chip" in tco("watts", "gb200-nvl72").stdout
    assert "Show what a chip of a scenario draws." in tco("watts", "--help").stdout
    assert tco("watts", "gb200").exit_code == 3


def test_the_output_of_the_page_has_every_form(commands, with_output):
    run(blocks("Add a command")[0])
    document, csv_text, table, page = (
        tco("watts", "gb200-nvl72", "--format", form).stdout
        for form in ("json", "csv", "table", "md")
    )
    watts_document = json.loads(document)
    assert (
        list(Draft202012Validator(published_schema("tco.watts/1")).iter_errors(watts_document))
        == []
    )
    assert (
        list(
            Draft202012Validator(published_schema("tco.watts/1")).iter_errors(
                watts_document | {"rows": [{"place": 1}]}
            )
        )
        != []
    )
    assert [list(row.values()) for row in csv.DictReader(io.StringIO(csv_text))] == [
        [location, repr(power)] for location, power in map(dict.values, watts_document["rows"])
    ]
    for text in (table, page):
        assert all(
            word in text
            for word in ("where", "W per chip", *(row["place"] for row in watts_document["rows"]))
        )


def test_example_form_is_printed(commands, with_output, monkeypatch, tmp_path):
    run(blocks("Add a command")[0])
    ((name, page_rendering),) = eval(
        f"{{{blocks('Add an output')[1]}}}", {"Rendering": output.Rendering}
    ).items()
    monkeypatch.setitem(output.FORMS, name, page_rendering)
    path = tmp_path / "watts.tsv"
    assert tco("watts", "gb200-nvl72", "--output", path).exit_code == 0
    with path.open(encoding="utf-8") as stream:
        tsv_rows = list(csv.reader(stream, delimiter="\t"))
    assert tsv_rows == list(
        csv.reader(io.StringIO(tco("watts", "gb200-nvl72", "--format", "csv").stdout))
    )
    assert output.format_choices("own")("tsv")
    assert (
        "expected one of .csv, .json, .md, .tsv, .txt"
        in tco("watts", "gb200-nvl72", "--output", tmp_path / "watts.foo").stderr
    )


def test_example_option_is_read(commands, monkeypatch):
    declaration, code = blocks("Add an option")
    exec(declaration, page := {})
    _, (strict,) = described_parameters(page["shared_options"])
    monkeypatch.setitem(options.SHARED, strict.name, strict)
    run(code)
    assert tco("sure", "--strict", "--set", "a=b").stdout == "strict {'a': 'b'}\n"
    assert tco("sure").stdout == "easy {}\n"
    assert "Fail where a path that is set has no effect." in " ".join(
        tco("sure", "--help").stdout.replace("│", " ").split()
    )
    assert tco("watts", "--strict").exit_code == 2


def every_option() -> list[tuple[str, Any]]:
    """The options of all commands."""
    root = typer.main.get_command(app)
    root.list_commands(None)
    command_options, todo = [], [((), root)]
    while todo:
        words, group = todo.pop()
        command_options += [
            (" ".join(words), option)
            for option in group.params
            if option.param_type_name == "option"
        ]
        todo += [((*words, name), inner) for name, inner in getattr(group, "commands", {}).items()]
    return command_options


def making() -> set[str]:
    """The commands that make something for a file and print no answer."""
    return {
        "calibrate",
        "export",
        "measure",
        "report",
        "traffic from",
        *(command for command, _ in every_option() if command.startswith("plot ")),
    }


def test_a_shared_option_is_the_same_in_every_command():
    shared = {
        (declared.param_decls or [f"--{name}"])[0].partition("/")[0]: declared.help
        for name, parameter in options.SHARED.items()
        for declared in parameter.annotation.__metadata__
    }
    # of what is made, not of an answer
    exempt_options = {(command, "--output") for command in (*making(), "sweep")} | {
        ("calibrate", "--date"),
        *((command, f"--{name}") for command in ("kernel", "collective") for name in options.FACTS),
    }
    checked_spellings = set()
    for command, option in every_option():
        for spelling in set(option.opts) & shared.keys():
            if (command, spelling) not in exempt_options:
                assert option.help == shared[spelling], f"{command} {spelling}"
                checked_spellings.add(spelling)
    assert checked_spellings == shared.keys()


@pytest.mark.parametrize("name", ["--data", "--format", "--output", "--quiet"])
def test_every_command_that_answers_takes_the_usual_options(name):
    having = {command for command, option in every_option() if name in option.opts}
    # these write files
    answering_commands = {command for command, _ in every_option()} - {
        "parts new",
        "systems new",
        "scenarios new",
        "traffic new",
        "models add",
    }
    groups = {command.partition(" ")[0] for command in answering_commands if " " in command} | {""}
    formless = making() - {"plot line"}  # which prints its numbers where it draws no figure
    assert answering_commands - groups - having == (formless if name == "--format" else set())
