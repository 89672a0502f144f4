"""Explanations: the same tree as a document, as lines and as rows."""

from __future__ import annotations

import pytest

from tco.outputs.explanation import explanation_document, explanation_lines, explanation_rows
from tests.chain import HEADLINE, result

METRIC = "tco_usd_per_chip_hour"


def tree(name, catalogue, metric=METRIC):
    return explanation_document(metric, result(name).nodes[metric], catalogue)["tree"]


def nodes_of(root):
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += node.get("inputs", [])
    return found


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
    assert whole["n1"]["value"] == pytest.approx(result(name).metrics[METRIC], rel=1e-12)


def test_a_leaf_reads_as_a_setting(catalogue):
    leaf = next(node for node in nodes_of(tree("trn3-nl72x2", catalogue)) if node.get("path") == "site.electricity_price")
    given = result("trn3-nl72x2").inputs["site.electricity_price"]
    assert (leaf["value"], leaf["unit"]) == given.shown


def test_lines_show_value_equation_and_source(catalogue):
    lines = list(explanation_lines("energy_usd_per_chip_hour", result("trn3-nl72x2").nodes["energy_usd_per_chip_hour"], catalogue, 99))
    text = "\n".join(lines)
    assert "= yearly_cost / (chips * hours_per_year)" in text
    assert "site.electricity_price = " in text
    assert "(see n" in text or text.count("(n") > 3


def test_depth_stops_the_lines_and_says_so(catalogue):
    node = result("trn3-nl72x2").nodes[METRIC]
    short, whole = (list(explanation_lines(METRIC, node, catalogue, depth)) for depth in (1, 99))
    assert len(short) < len(whole)
    assert any("--depth 2 shows them" in line for line in short)


@pytest.mark.parametrize("name", HEADLINE)
def test_rows_hold_every_node_once(name, catalogue):
    rows = explanation_rows(result(name).nodes[METRIC], catalogue)
    whole = {node["id"] for node in nodes_of(tree(name, catalogue)) if "id" in node}
    assert [row[0] for row in rows] == sorted(whole, key=lambda text: int(text[1:]))
    assert {inner for row in rows for inner in row[8].split(";") if inner} == whole - {"n1"}


def test_redaction_hides_the_value_only(catalogue):
    node = result("trn3-nl72x2").nodes[METRIC]
    own = frozenset({"site.electricity_price"})
    hidden = [n for n in nodes_of(explanation_document(METRIC, node, catalogue, True, own)["tree"]) if n.get("path") in own]
    assert [n["value"] for n in hidden] == [None]
    shown = repr(result("trn3-nl72x2").inputs["site.electricity_price"].shown[0])
    line = next(text for text in explanation_lines(METRIC, node, catalogue, 99, True, own) if "site.electricity_price" in text)
    assert "(own value, left out)" in line
    assert shown not in line
    cells = next(row for row in explanation_rows(node, catalogue, True, own) if row[2] in own)
    assert cells[3] is None
