"""A cell of the trace has one name, and keeps it when the chain gains another cell."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tco import evaluate
from tco.performance.layer.layers import forward_pass
from tco.performance.layer.operators import HEAD
from tests.catalogue import CATALOGUE, DATA
from tests.performance.servers import serving as phases
from tests.scenario_helpers import Node, by_path, inputs_of, load_scenario, nodes_below

NAMES = list(CATALOGUE.scenarios)


@cache
def plan_of(name: str):
    return evaluate(name, catalogue=CATALOGUE).plan


def cells(name, catalogue=CATALOGUE, **settings: str) -> dict[str, Node]:
    """Every cell below any metric by its name; that no two share one is checked on the way."""
    traced_result = evaluate(
        name, by_path(settings), plan_of(name), catalogue=catalogue, trace=True
    )
    nodes = nodes_below(*traced_result.nodes.values())
    nodes_by_id = {node.id: node for node in nodes}
    assert len(nodes_by_id) == len(nodes)
    assert set(traced_result.inputs) & nodes_by_id.keys() == {
        path
        for path in nodes_by_id
        if path in traced_result.inputs and nodes_by_id[path].path == path
    }
    return nodes_by_id


def operation_of(node: Node) -> tuple[str | None, str | None]:
    """Return the operation of a cell without its inputs; a leaf is its input."""
    return (
        node.formula.name if node.formula else node.operation
    ), node.path if node.is_leaf else None


def changed_cells(before: dict[str, Node], after: dict[str, Node]) -> list[str]:
    """Return the cells whose content under their name has changed.

    A sum may gain a term, and a cell that takes a new cell is a neighbour of it.
    """
    new = after.keys() - before.keys()
    changed_names = []
    for name, node in before.items():
        there = after[name]
        takes = {inner.id for _, inner in there.inputs}
        same = [inner.id for _, inner in node.inputs] == [inner.id for _, inner in there.inputs]
        if operation_of(node) != operation_of(there) or not (same or takes & new):
            changed_names.append(name)
    return changed_names


@pytest.mark.parametrize("name", NAMES)
def test_adding_a_cost_line_leaves_all_other_names(name, own_data):
    system = load_scenario(CATALOGUE, name).system
    text = (DATA / "systems" / f"{system}.toml").read_text(encoding="utf-8")
    own_data.write(
        f"systems/{system}.toml",
        re.sub(r"^world = \{ ", "world = { aaa-crate = 3, ", text, count=1, flags=re.MULTILINE),
    )
    own_data.parts(
        "aaa-crate,price,10,USD,9,11,2025-06,estimate,tco-estimate-2026,,",
        "aaa-crate,power,1,W,0.9,1.1,2025-06,estimate,tco-estimate-2026,,",
    )
    before, after = cells(name), cells(name, own_data.catalogue())
    added = after.keys() - before.keys()
    assert before.keys() <= after.keys()
    assert all("aaa-crate" in added_name for added_name in added)
    assert any(added_name.startswith("cost/servers/aaa-crate/") for added_name in added)
    assert changed_cells(before, after) == []


SERVING = [name for name in NAMES if not name.startswith(("train", "llama"))]


@pytest.mark.parametrize("name", SERVING)
def test_adding_an_operator_to_a_pass_leaves_all_other_names(name, monkeypatch):
    def more(layer_pass, tokens):
        layer_pass.products(
            "another product", 1, ((layer_pass.model.hidden, 96.0),), tokens, HEAD, "head"
        )
        return forward_pass(layer_pass, tokens)

    before = cells(name)
    monkeypatch.setattr(phases, "forward_pass", more)
    after = cells(name)
    added = after.keys() - before.keys()
    assert before.keys() <= after.keys()
    parts = {
        added_name.rpartition("another-product/")[0]
        for added_name in added
        if "another-product/" in added_name
    }
    assert parts == {"serving/decode/", "serving/prefill/", "serving/prompt-alone/"}
    assert changed_cells(before, after) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SERVING])
def test_adding_an_operator_to_a_step_leaves_all_other_names(name):
    """Attention that keeps its scores in memory has passes that a fused kernel has not."""
    before, after = (
        cells(name, workload__attention="fused"),
        cells(name, workload__attention="unfused"),
    )
    added = after.keys() - before.keys()
    assert before.keys() <= after.keys()
    assert any("attention-scores-in-memory" in added_name for added_name in added)
    assert changed_cells(before, after) == []


@pytest.mark.parametrize("name", SERVING)
def test_input_of_zero_has_its_cells_already(name):
    """An input that is zero by default is a cell from the start."""
    assert cells(name).keys() == cells(name, workload__kv_offload="0.3").keys()


@pytest.mark.parametrize("name", NAMES)
def test_leaves_are_called_alike_in_explanations_and_results(name):
    traced_result = evaluate(name, plan=plan_of(name), catalogue=CATALOGUE, trace=True)
    leaves = {
        node.id for node in nodes_below(*traced_result.nodes.values()) if node.path and node.is_leaf
    }
    values = inputs_of(name).values()
    unread_values = {
        node.id: node.value
        for node in nodes_below(*traced_result.nodes.values())
        if node.id in leaves - traced_result.inputs.keys()
    }
    # what a zero leaves without effect is in no result, under the same name
    assert {path: values[path] for path in unread_values} == unread_values
    lines = {f"cost/{line.path}/per_chip_hour" for line in traced_result.lines}
    named = {node.id for node in nodes_below(*traced_result.nodes.values())}
    assert lines <= named
