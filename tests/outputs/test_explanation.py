"""Explanations: the same tree as a document, as lines and as rows."""

from __future__ import annotations

import pytest

from tco import evaluate
from tco.outputs.explanation import TERMS, View, explanation_lines, explanation_rows, explanation_tree
from tests.chain import HEADLINE, nodes_below, result

SHALLOW = 3

METRIC = "tco_usd_per_chip_hour"


def tree(name, catalogue, metric=METRIC):
    return explanation_tree(metric, result(name).nodes[metric], View(catalogue))


def nodes_of(root):
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += node.get("inputs", [])
    return found


def in_order(node):
    """The nodes of a tree as a reader meets them."""
    return [node, *(below for inner in node.get("inputs", []) for below in in_order(inner))]


@pytest.mark.parametrize("name", HEADLINE)
def test_a_tree_reaches_its_sources(name, catalogue):
    nodes = nodes_of(tree(name, catalogue))
    whole = {node["id"]: node for node in nodes if "ref" not in node}
    refs = [node["ref"] for node in nodes if "ref" in node]
    leaves = [node for node in whole.values() if "inputs" not in node]
    inner = [node for node in whole.values() if "inputs" in node]
    assert set(refs) <= whole.keys()
    assert len(whole) == len(nodes) - len(refs)
    assert len(leaves) >= 40
    assert all(node["source"] and node["kind"] for node in leaves)
    assert all(node["equation"] and "kind" not in node for node in inner)
    assert len({node["equation"] for node in inner}) >= 10
    assert whole[result(name).nodes[METRIC].id]["value"] == pytest.approx(result(name).metrics[METRIC], rel=1e-12)


def test_a_leaf_reads_as_a_setting(catalogue):
    leaf = next(node for node in nodes_of(tree("trn3-nl72x2", catalogue)) if node.get("path") == "site.electricity_price")
    given = result("trn3-nl72x2").inputs["site.electricity_price"]
    assert (leaf["value"], leaf["unit"]) == given.shown


def test_lines_show_value_equation_and_source(catalogue):
    node = result("trn3-nl72x2").nodes["energy_usd_per_chip_hour"]
    lines = list(explanation_lines("energy_usd_per_chip_hour", node, View(catalogue)))
    text = "\n".join(lines)
    assert "= yearly_cost / (chips * hours_per_year)" in text
    assert "site.electricity_price = " in text
    assert lines[0].endswith("(cost/site/energy/per_chip_hour)")
    assert text.count("(bill/") > 3


def test_a_node_met_again_is_named_by_its_id(catalogue):
    text = list(explanation_lines(METRIC, result("trn3-nl72x2").nodes[METRIC], View(catalogue)))
    opened = [line for line in text if line.endswith("(cost/charge/life/capital_charge)")]
    assert len(opened) == 1
    assert sum(line.endswith("(cost/recovery/life/capital_recovery_factor)") for line in text) == 1
    assert sum(line.endswith("(see cost/charge/life/capital_charge)") for line in text) > 10


def test_depth_stops_the_lines_and_says_so(catalogue):
    node = result("trn3-nl72x2").nodes[METRIC]
    short, whole = (list(explanation_lines(METRIC, node, View(catalogue, depth))) for depth in (1, None))
    assert len(short) == 2 + TERMS + 1
    assert all(" below cost/" in line for line in short[2:-1])
    assert len(whole) > 500


def test_terms_of_a_sum_are_named_and_sorted_by_share(catalogue):
    node = result("gb200-nvl72").nodes[METRIC]
    *terms, rest = list(explanation_lines(METRIC, node, View(catalogue, 1)))[2:]
    shares = [float(line.split("  ")[1].removesuffix(" %")) for line in terms]
    assert len({line.split(" = ")[0] for line in terms}) == TERMS
    assert "servers/nvl72-rack/gb200-compute-tray/gb200-gpu = " in terms[0]
    assert shares == sorted(shares, reverse=True)
    words = rest.removeprefix("`- ").split(" ")  # 27 more terms, 3.2 % together
    assert int(words[0]) == len(node.inputs) - TERMS
    assert sum(shares) + float(words[3]) == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("name", HEADLINE)
@pytest.mark.parametrize("metric", [METRIC, "usd_per_million_output_tokens", "capex_usd"])
def test_three_levels_fit_a_page(name, metric, catalogue):
    assert 10 <= len(list(explanation_lines(metric, result(name).nodes[metric], View(catalogue, SHALLOW)))) <= 118


def test_a_document_cut_at_a_depth_says_what_is_left(catalogue):
    node = result("trn3-nl72x2").nodes[METRIC]
    short = explanation_tree(METRIC, node, View(catalogue, 1))
    assert all("inputs" not in inner and inner["more"] == 3 for inner in short["inputs"])
    assert len(explanation_rows(node, View(catalogue, 1))) == 1 + len(short["inputs"])


def graph_of(found):
    return {node.id: node for node in nodes_below(*found.nodes.values())}


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
    after = evaluate("trn3-nl72x2", {path: MOVED[path]}, before.plan, catalogue=catalogue, trace=True)
    old, new = graph_of(before), graph_of(after)
    assert new.keys() == old.keys()
    assert any(new[name].value != node.value for name, node in old.items())


@pytest.mark.parametrize("name", HEADLINE)
def test_rows_hold_every_node_once(name, catalogue):
    rows = explanation_rows(result(name).nodes[METRIC], View(catalogue))
    whole = {node["id"] for node in nodes_of(tree(name, catalogue)) if "id" in node}
    assert [row["id"] for row in rows] == [node["id"] for node in in_order(tree(name, catalogue)) if "id" in node]
    assert {inner for row in rows for inner in row["inputs"]} == whole - {rows[0]["id"]}


def test_a_leaf_says_of_which_date_it_is(catalogue):
    view = View(catalogue, dates={path: given.as_of for path, given in result("trn3-nl72x2").inputs.items()})
    node = result("trn3-nl72x2").nodes[METRIC]
    lines = list(explanation_lines(METRIC, node, view))
    price = result("trn3-nl72x2").inputs["parts.ddr5-dimm.price"]
    (line,) = {text.lstrip("|`- ") for text in lines if "parts.ddr5-dimm.price = " in text}
    assert f"[{price.kind} {price.as_of}; {catalogue.source_title(price.source)}]" in line
    leaf = next(one for one in nodes_of(explanation_tree(METRIC, node, view)) if one.get("path") == price.path)
    assert leaf["as_of"] == price.as_of
    assert any(text.endswith("[structure]") for text in lines)
