"""Explanations: the same tree as a document, as lines and as rows."""

from __future__ import annotations

import csv
import itertools
import re
from functools import cache

import pytest

from tco import evaluate
from tco.core.formula import REGISTRY
from tests.cli import document, tco
from tests.scenario_helpers import HEADLINE, nodes_below, result

TERMS = 8  # of a long sum that the table shows of itself
METRIC, RATIO = "tco_usd_per_chip_hour", "perf_per_tco_vs_baseline"


@cache
def tree(name, metric=METRIC, *more):
    return document("explain", name, metric, *more)["tree"]


@cache
def lines(name, metric=METRIC, *more):
    """The lines of the tree, without what is said above it and below it."""
    output_lines = tco("explain", name, metric, *more).stdout.splitlines()
    below = re.compile(r"Open: \d+ level|Chosen beforehand")
    tree_lines = output_lines[output_lines.index("") + 1 :]
    return list(itertools.takewhile(lambda line: not below.match(line), tree_lines))


def rows(name, *more):
    return list(
        csv.DictReader(tco("explain", name, METRIC, "--format", "csv", *more).stdout.splitlines())
    )


def nodes_of(root):
    tree_nodes, todo = [], [root]
    while todo:
        node = todo.pop()
        tree_nodes.append(node)
        todo += node.get("inputs", [])
    return tree_nodes


def in_order(node):
    """The nodes of a tree as a reader meets them."""
    return [node, *(below for inner in node.get("inputs", []) for below in in_order(inner))]


@pytest.mark.parametrize("name", HEADLINE)
def test_a_tree_reaches_its_sources(name):
    nodes = nodes_of(tree(name))
    nodes_by_id = {node["id"]: node for node in nodes if "ref" not in node}
    refs = [node["ref"] for node in nodes if "ref" in node]
    leaves = [node for node in nodes_by_id.values() if "inputs" not in node]
    inner = [node for node in nodes_by_id.values() if "inputs" in node]
    assert set(refs) <= nodes_by_id.keys()
    assert len(nodes_by_id) == len(nodes) - len(refs)
    assert len(leaves) >= 40
    assert all(node["source"] and node["kind"] for node in leaves)
    assert all(node["equation"] and "kind" not in node for node in inner)
    assert len({node["equation"] for node in inner}) >= 10
    assert nodes_by_id[result(name).nodes[METRIC].id]["value"] == pytest.approx(
        result(name).metrics[METRIC], rel=1e-12
    )


def test_a_leaf_reads_as_a_setting():
    leaf = next(
        node
        for node in nodes_of(tree("trn3-nl72x2"))
        if node.get("path") == "site.electricity_price"
    )
    price_input = result("trn3-nl72x2").inputs["site.electricity_price"]
    assert (leaf["value"], leaf["unit"]) == price_input.stated_quantity


def test_lines_show_value_equation_and_source():
    text = lines("trn3-nl72x2", "energy_usd_per_chip_hour", "--all")
    assert text[0].endswith("(cost/site/energy/per_chip_hour)")
    assert "= yearly_cost / (chips * hours_per_year)" in "\n".join(text)
    assert any("site.electricity_price = " in line for line in text)
    assert sum(line.count("(bill/") for line in text) > 3


def test_a_node_met_again_is_named_by_its_id():
    text = lines("trn3-nl72x2", METRIC, "--all")
    opened = [line for line in text if line.endswith("(cost/charge/life/capital_charge)")]
    assert len(opened) == 1
    assert sum(line.endswith("(cost/recovery/life/capital_recovery_factor)") for line in text) == 1
    assert sum(line.endswith("(see cost/charge/life/capital_charge)") for line in text) > 10


def test_limit_of_the_depth_ends_the_lines_with_a_note():
    short, all_lines = (
        lines("trn3-nl72x2", METRIC, *depth) for depth in (("--depth", "1"), ("--all",))
    )
    assert len(short) == 2 + TERMS + 1
    assert all(" inputs below cost/" in line for line in short[2:-1])
    assert len(all_lines) > 500


def test_terms_of_a_sum_are_named_and_sorted_by_share():
    *terms, rest = lines("gb200-nvl72", METRIC, "--depth", "1")[2:]
    shares = [float(line.split("  ")[-2].removesuffix(" %")) for line in terms]
    assert len({line.split(" = ")[0] for line in terms}) == TERMS
    assert terms[0].startswith("   gb200-gpu = ")
    assert shares == sorted(shares, reverse=True)
    words = rest.split()  # 27 more terms, 3.2 % together
    assert int(words[0]) == len(result("gb200-nvl72").nodes[METRIC].inputs) - TERMS
    assert sum(shares) + float(words[3]) == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("name", HEADLINE)
@pytest.mark.parametrize("metric", [METRIC, "usd_per_million_output_tokens", "capex_usd"])
def test_three_levels_of_an_explanation_fit_a_page(name, metric):
    assert 10 <= len(lines(name, metric)) <= 118


def test_a_document_cut_at_a_depth_says_what_is_left():
    short = tree("trn3-nl72x2", METRIC, "--depth", "1")
    assert all("inputs" not in inner and inner["more"] == 3 for inner in short["inputs"])
    assert len(rows("trn3-nl72x2", "--depth", "1")) == 1 + len(short["inputs"])


def graph_of(traced_result):
    return {node.id: node for node in nodes_below(*traced_result.nodes.values())}


@pytest.mark.parametrize("name", HEADLINE)
def test_a_name_is_of_one_cell(name):
    nodes = nodes_below(*result(name).nodes.values())
    assert len(graph_of(result(name))) == len(nodes)
    inner = [node for node in nodes if not node.is_leaf]
    assert sum("/" in node.id for node in inner) >= 0.99 * len(inner)


MOVED = {
    "site.electricity_price": "0.2 USD/kWh",
    "terms.rate": "0.05",
    "parts.trn3.hbm_bandwidth": "5.5 TB/s",
    "parts.ddr5-dimm.price": "999 USD",
    "workload.output_tokens": "2000",
}


@pytest.mark.parametrize("path", MOVED)
def test_names_stay_where_values_move(path, catalogue):
    before = result("trn3-nl72x2")
    after = evaluate(
        "trn3-nl72x2", {path: MOVED[path]}, before.plan, catalogue=catalogue, trace=True
    )
    old, new = graph_of(before), graph_of(after)
    assert new.keys() == old.keys()
    assert any(new[name].value != node.value for name, node in old.items())


@pytest.mark.parametrize("name", HEADLINE)
def test_rows_hold_every_node_once(name):
    csv_rows, node_ids = rows(name), [node["id"] for node in in_order(tree(name)) if "id" in node]
    assert [row["id"] for row in csv_rows] == node_ids
    assert {inner for row in csv_rows for inner in filter(None, row["inputs"].split(";"))} == {
        *node_ids
    } - {node_ids[0]}


def test_leaf_states_its_date(catalogue):
    text = lines("trn3-nl72x2", METRIC, "--all")
    price = result("trn3-nl72x2").inputs["parts.ddr5-dimm.price"]
    (line,) = {text_line.lstrip() for text_line in text if "parts.ddr5-dimm.price = " in text_line}
    assert f"[{price.kind} {price.as_of}; {catalogue.source_title(price.source)}]" in line
    leaf = next(node for node in nodes_of(tree("trn3-nl72x2")) if node.get("path") == price.path)
    assert leaf["as_of"] == price.as_of
    assert any(text_line.endswith("[structure]") for text_line in text)


def test_cost_of_a_chip_hour_is_explained_without_a_search_of_plans(monkeypatch):
    def refuse(*_):
        raise AssertionError("plans are searched")

    monkeypatch.setattr("tco.scenario.run_chain.rate_workload", refuse)
    cost = document("explain", "gb200-nvl72", METRIC)
    assert cost["structure"]["plan"] is None
    assert (
        "inputs (--format json lists them): a network"
        in tco("explain", "gb200-nvl72", METRIC).stdout
    )
    for searching in (["usd_per_million_output_tokens"], [METRIC, "--plan", "tp=8"]):
        assert "plans are searched" in tco("explain", "gb200-nvl72", *searching).stderr


def test_explanation_of_a_token_names_the_plan_among_what_was_decided():
    token_cost = "usd_per_million_output_tokens"
    assert document("explain", "gb200-nvl72", token_cost)["structure"]["plan"]["decode"]
    assert (
        "inputs (--format json lists them): the plan, a network"
        in tco("explain", "gb200-nvl72", token_cost).stdout
    )


def test_the_first_equation_is_said_in_numbers_and_what_is_below_is_indented():
    text = lines("gb200-nvl72", "usd_per_million_output_tokens")
    (numbers,) = [line for line in text if line.startswith("= 1 * ")]
    metrics = result("gb200-nvl72").metrics
    used_hour = metrics["tco_usd_per_used_chip_hour"]
    rate = metrics["output_tokens_per_s_per_chip"]
    assert numbers.startswith(f"= 1 * {used_hour:.6g} USD/chip/h / ({rate:,.6g} token/s/chip *")
    assert any(line.startswith("   used_hour = ") for line in text)
    assert any(line.startswith("      calendar = ") for line in text)


@pytest.mark.parametrize("name", HEADLINE)
def test_no_equation_computes_a_name_from_itself(name):
    text = lines(name, "usd_per_million_output_tokens", "--all")
    equations = [
        (re.match(r"\s*([\w.]+)(?:, \S+)? = ", line), equation.lstrip().removeprefix("= "))
        for line, equation in itertools.pairwise(text)
        if equation.lstrip().startswith("= ")
    ]
    named = [(match[1], equation.partition("  [")[0]) for match, equation in equations if match]
    assert len(named) > 100
    assert [pair for pair in named if re.search(rf"(?<![\w.]){pair[0]}(?![\w.])", pair[1])] == []


def test_the_rate_of_a_deployment_is_said_of_another_rate():
    text = lines("gb200-nvl72", "usd_per_million_output_tokens")
    position = next(index for index, line in enumerate(text) if line.startswith("   rate = "))
    assert text[position + 1].startswith("   = output_rate * efficiency")
    assert text[position + 2].startswith("      output_rate = ")
    # JSON and CSV keep the names of the formula
    node = tree("gb200-nvl72", "usd_per_million_output_tokens")
    (rate,) = [inner for inner in node["inputs"] if inner["name"] == "rate"]
    assert rate["equation"] == "rate * efficiency"
    assert rate["inputs"][0]["name"] == "rate"


def test_an_input_has_the_name_of_its_equation_and_its_path():
    text = lines("gb200-nvl72", METRIC, "--all")
    assert any(line.lstrip().startswith("price, site.electricity_price = ") for line in text)
    assert any(line.lstrip().startswith("site.pue = ") for line in text)  # its last word says it


def test_a_ratio_opens_the_costs_of_the_scenario_and_of_the_baseline():
    words = ("trn3-nl72x2", RATIO, "--baseline", "h200-hgx8")
    text = lines(*words)
    costs = {
        name: result(name).metrics["usd_per_million_output_tokens"]
        for name in ("trn3-nl72x2", "h200-hgx8")
    }
    ratio = tree(*words)
    assert ratio["value"] == pytest.approx(costs["h200-hgx8"] / costs["trn3-nl72x2"], rel=1e-12)
    assert ratio["equation"] == "baseline / scenario_cost"
    assert text[1].startswith("= baseline / scenario_cost")
    ids = [node["id"] for node in nodes_of(ratio) if "id" in node]
    assert len(ids) == len(set(ids))
    assert sum(node_id.startswith("h200-hgx8/") for node_id in ids) > 100
    printed = tco("explain", *words).stdout
    assert printed.startswith("AWS Trainium3 NL72x2 Switched: performance per TCO (h200-hgx8 = 1)")
    assert "An ID that begins with h200-hgx8/ is of the baseline" in printed


def test_a_ratio_is_of_the_headline_system_unless_another_is_named():
    assert tree("h200-hgx8", RATIO)["value"] == pytest.approx(
        result("gb200-nvl72").metrics["usd_per_million_output_tokens"]
        / result("h200-hgx8").metrics["usd_per_million_output_tokens"],
        rel=1e-12,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("capex_usd", "--baseline", "gb200-nvl72"), "capex_usd is compared with no baseline"),
        ((RATIO, "--plan", "tp=8"), "of two scenarios, each with its own plan"),
    ],
)
def test_a_baseline_or_a_plan_that_says_nothing_is_refused(words, message):
    done = tco("explain", "h200-hgx8", *words)
    assert done.exit_code == 2 + ("capex_usd" in words)
    assert message in done.stderr


def test_a_cell_is_titled_by_its_meaning():
    printed = tco("explain", "gb200-nvl72", "serving/deployed_rate").stdout
    title = printed.splitlines()[0]
    assert title.startswith("Nvidia GB200 NVL72: tokens per second and chip of a deployment")


def test_a_number_says_what_it_is_beside_the_name_that_the_equation_has():
    text = lines("gb200-nvl72", "usd_per_million_output_tokens")
    used_hour = next(line for line in text if line.startswith("   used_hour = "))
    assert used_hour.endswith("USD/chip/h: cost per used chip-hour")
    decode = next(line for line in text if line.lstrip().startswith("decode = "))
    assert ": output tokens per second and decoding chip  (4 inputs below " in decode
    (term,) = [line for line in text if line.lstrip().startswith("gb200-gpu = ")]
    assert " %  (3 inputs below " in term  # its share says what it is of


def test_recovery_of_capital_is_written_as_the_field_writes_it():
    text = tco("explain", "trn3-nl72x2", "cost/charge/life/capital_charge").stdout
    assert "= rate / (1 - (1 + rate)^-(life / period)) / period\n" in text
    assert "= 1 - residual / (1 + rate)^(life / period)\n" in text
    assert "rate = 0.0075 1/month" in text
    assert "expm1" not in text


def test_textbook_equations_give_what_the_code_computes():
    formulas = [formula for formula in REGISTRY.values() if formula.textbook_equation]
    assert {"capital_recovery_factor", "recoverable_share"} <= {
        formula.name for formula in formulas
    }
    values = {"rate": 0.0075, "life": 5.0, "period": 1 / 12, "residual": 0.1}
    for formula in formulas:
        stated = {name: values[name] for name in formula.parameters}
        expression = formula.textbook_equation.replace("^", "**")
        assert eval(expression, {}, stated) == pytest.approx(formula.function(**stated), rel=1e-12)


def test_terms_and_their_sum_have_the_marks_of_the_price():
    lines = document("price", "trn3-nl72x2")["lines"]
    text = tco("explain", "trn3-nl72x2", "tco_usd_per_chip_hour", "--depth", "1").stdout
    marks = dict(re.findall(r"^   (\S+) = (~?)[\d.]+ USD/chip/h  ", text, flags=re.MULTILINE))
    kinds = {line["path"].rpartition("/")[2]: line["kind"] for line in lines}
    assert len(marks) == 8
    assert set(marks.values()) == {"", "~"}
    for name, mark in marks.items():
        assert mark == ("~" if kinds[name] in ("estimate", "assumed") else ""), name
    assert "tco_usd_per_chip_hour = ~1." in text
