"""The explanation of a number as a tree: its equation, its inputs and their sources.

A node is known by its id, which no other node has and which does not move with values. A depth of
None opens everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import count_with_noun
from tco.core.equation import equation
from tco.core.trace import STRUCTURE, Node
from tco.core.types import JsonObject
from tco.report.ranges import base_case_words, figures, metric_heading
from tco.report.record import Answer, Document, Maybe, Member, Record, json_number_or_none
from tco.report.table import Table, input_text, input_unit, weak
from tco.scenario.metrics import METRICS
from tco.scenario.structure import Structure, plain_plan

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import Evaluation
    from tco.sampling.median import DrawnMetric

SHALLOW = 3  # levels below the number that the table form shows of itself
EQUATION_NAME = re.compile(r"[A-Za-z_]\w*")
INDENT = "   "  # of what is below a number
TERMS = 8  # of a long sum that it shows of itself
GATHERED = {
    "total": "sum of {} terms",
    "least": "least of {} candidates",
    "greatest": "greatest of {} candidates",
}
STRUCTURE_TITLE = "counts and shapes of the system, the model and the plan"
LEGEND = (
    "How to read it: NAME = VALUE: meaning  (ID). The equation of that number is the next line, "
    "and its inputs are indented below.",
    "   NAME, PATH = VALUE  [source]: an input; --set PATH=VALUE replaces it.",
    f"   [{STRUCTURE}]: {STRUCTURE_TITLE}",
    "   % share of a sum   ~ based on an estimate or an assumption, as `tco price` marks it",
)


def node_equation(node: Node) -> str | None:
    """Return the equation of a node as the code computes it; None for a leaf."""
    if node.formula is not None:
        return equation(node.formula)
    if node.operation is not None:
        return GATHERED[node.operation].format(len(node.inputs))
    return None


def _reader_equation(node: Node) -> str:
    """Return the equation of a node as the field writes it, else as the code computes it."""
    textbook_equation = node.formula.textbook_equation if node.formula else ""
    return textbook_equation or node_equation(node) or ""


def node_meaning(node: Node) -> str:
    """Return the meaning of a number that a formula gives, in words without its equation."""
    if node.formula is None:
        return ""
    summary = node.formula.text.partition("\n\n")[0]
    words = summary.partition(": ")[0].rstrip(".")
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


class View(NamedTuple):
    """Settings of an explanation: catalogue of its sources, depth, and kinds of cost lines."""

    catalogue: Catalogue
    depth: int | None
    # weakest kind of evidence of each line of the cost per chip-hour, by the id of its node
    line_kinds: Mapping[str, str] = {}

    def mark(self, node: Node) -> str:
        """Return the mark of a number that rests on an estimate, as `tco price` sets it.

        A gathered number, such as a sum, has the mark of any of its terms.
        """
        if node.operation is not None:
            return max((self.mark(inner) for _, inner in node.inputs), default="")
        return weak(self.line_kinds.get(node.id, node.kind))

    def ends(self, level: int) -> bool:
        """Say whether nothing below a level is shown."""
        return self.depth is not None and level >= self.depth


def _node_record(node_name: str, node: Node, view: View) -> JsonObject:
    """Return the record of a node: name, value, unit, equation and source."""
    node_value, unit = node.stated_quantity or (node.value, node.unit)
    source = source_text(node, view.catalogue)
    return {
        "id": node.id,
        "name": node_name,
        "value": json_number_or_none(node_value),
        "unit": unit,
        "equation": node_equation(node),
        "source": source,
    }


def _nonempty_members(**members: Any) -> JsonObject:
    return {
        member_name: member_value for member_name, member_value in members.items() if member_value
    }


def _explanation_tree(metric: str, root: Node, view: View) -> JsonObject:
    """Return the tree as JSON members; a node that is not opened says how many inputs it has."""
    visited_ids: set[str] = set()

    def branch(node_name: str, node: Node, level: int) -> JsonObject:
        if node.id in visited_ids:
            return {"ref": node.id}
        visited_ids.add(node.id)
        node_record = _node_record(node_name, node, view) | _nonempty_members(
            formula=node.formula and node.formula.name, path=node.path
        )
        if node.is_leaf:
            input_record = node.given
            node_record |= {"kind": node.kind} | _nonempty_members(
                as_of=input_record and input_record.as_of,
                own=input_record and input_record.overlay,
                note=node.note,
            )
        elif view.ends(level):
            node_record["more"] = len(node.inputs)
        else:
            node_record["inputs"] = [
                branch(inner_name, inner, level + 1) for inner_name, inner in node.inputs
            ]
        return node_record

    return branch(metric, root, 0)


def source_text(node: Node, catalogue: Catalogue) -> str:
    """Return the source of a node by its title."""
    return STRUCTURE_TITLE if node.source == STRUCTURE else catalogue.source_title(node.source)


def _origin(node: Node, view: View) -> str:
    if node.source == STRUCTURE:
        return STRUCTURE
    overlay_mark, date = (
        (" (own)" * node.given.overlay, node.given.as_of) if node.given else ("", "")
    )
    kind_text = f"{node.kind}{overlay_mark}{f' {date}' if date else ''}"
    return f"{kind_text}; {source_text(node, view.catalogue)}"


def _explanation_lines(metric: str, root: Node, view: View) -> Iterator[str]:
    """Yield the lines of the tree, with the terms of a sum in descending order.

    A repeated node is named by its id. The source of an equation stands where it is first used.
    """
    visited_ids: set[str] = set()
    cited: set[str] = set()

    def visit(
        node_name: str, node: Node, indent: str, level: int, share: str = ""
    ) -> Iterator[str]:
        line_text = indent + _number_text(node_name, node, share, view)
        meaning = node_meaning(node) if level and not share else ""
        line_text += f": {meaning}" if meaning else ""
        if node.is_leaf:
            yield f"{line_text}  [{_origin(node, view)}]"
        elif node.id in visited_ids:
            yield f"{line_text}  (see {node.id})"
        elif view.ends(level):
            yield f"{line_text}  ({count_with_noun(len(node.inputs), 'input')} below {node.id})"
        else:
            visited_ids.add(node.id)
            is_named = not level or view.depth is None
            yield f"{line_text}  ({node.id})" if is_named else line_text
            source = "" if node.source == STRUCTURE else source_text(node, view.catalogue)
            is_new = bool(source) and source not in cited
            cited.add(source)
            names = _distinct_input_names(node_name, node)
            equation_text = _renamed(_reader_equation(node), names)
            yield f"{indent}= {equation_text}" + (f"  [{source}]" if is_new else "")
            if not level and node.formula is not None:
                yield f"= {_equation_in_numbers(node)}"
            terms, rest = _expanded_terms(node, view)
            for inner_name, inner, inner_share in terms:
                shown_name = names.get(inner_name, inner_name)
                yield from visit(shown_name, inner, indent + INDENT, level + 1, inner_share)
            if rest:
                yield f"{indent}{INDENT}{rest}"

    yield from visit(metric, root, "", 0)


def _distinct_input_names(node_name: str, node: Node) -> dict[str, str]:
    """Return other names for the inputs of an equation that are called as its result is."""
    return {
        inner_name: f"{inner_name}_before"
        if inner.formula is None or inner.formula.name == node_name
        else inner.formula.name
        for inner_name, inner in node.inputs
        if inner_name == node_name and node.formula is not None
    }


def _renamed(equation_text: str, names: Mapping[str, str]) -> str:
    """Return an equation with some of its names replaced."""
    return EQUATION_NAME.sub(lambda word: names.get(word[0], word[0]), equation_text)


def _number_text(node_name: str, node: Node, share: str, view: View) -> str:
    """Return name and value of a node; the share of a term of a sum stands behind them.

    An input has the name that the equation above gives it, and its path.
    """
    node_value, unit = node.stated_quantity or (node.value, node.unit)
    path = node.path or ""
    label = node_name
    if share:  # a term of a sum, whose own name says where it belongs
        label = label.rpartition("/")[2]
    elif node.is_leaf and path:
        is_said = node_name in (path, path.rpartition(".")[2])
        label = path if is_said else f"{node_name}, {path}"
    if node.formula is not None and node.formula.textbook_unit:
        unit = node.formula.textbook_unit
    value_text = f"{view.mark(node)}{input_text(path, node_value)} {input_unit(path, unit)}"
    return f"{label} = {value_text.rstrip()}{share}"


def _equation_in_numbers(node: Node) -> str:
    """Return the equation of a node with the value and unit of each input in its place."""
    values = {
        inner_name: f"{input_text(inner.path or '', value)} {unit}".rstrip()
        for inner_name, inner in node.inputs
        for value, unit in [inner.stated_quantity or (inner.value, inner.unit)]
    }
    return _renamed(_reader_equation(node), values)


def _expanded_terms(node: Node, view: View) -> tuple[list[tuple[str, Node, str]], str]:
    """Return the terms below a node, and a note on omitted terms.

    The terms of a sum are sorted by their share of it. The note gives the number of terms beyond
    the largest and their share.
    """
    if node.operation != "total" or not node.value:
        return [(inner_name, inner, "") for inner_name, inner in node.inputs], ""
    parts = sorted(
        ((inner.value / node.value, inner_name, inner) for inner_name, inner in node.inputs),
        key=lambda part: -abs(part[0]),
    )
    most = len(parts) if view.depth is None or len(parts) <= TERMS + 1 else TERMS
    rest = sum(share for share, _, _ in parts[most:])
    words = f"{len(parts) - most} more terms, {rest * 100:.3g} % together" if parts[most:] else ""
    return [
        (inner_name, inner, f"  {share * 100:.3g} %") for share, inner_name, inner in parts[:most]
    ], words


# a row of a CSV
NODE = Record(
    "id",
    "name",
    "path",
    Member("value", float),
    "unit",
    "equation",
    "kind",
    "source",
    Member("inputs", [str]),
)


def _explanation_rows(root: Node, view: View) -> list[JsonObject]:
    """Return the CSV rows: every node once, parents before inputs."""
    node_rows: list[JsonObject] = []
    visited_ids: set[str] = set()

    def visit(node_name: str, node: Node, level: int) -> None:
        if node.id in visited_ids:
            return
        visited_ids.add(node.id)
        node_rows.append(
            _node_record(node_name, node, view)
            | {
                "path": node.path,
                "kind": node.kind,
                "inputs": [inner.id for _, inner in node.inputs],
            }
        )
        if not view.ends(level):
            for inner_name, inner in node.inputs:
                visit(inner_name, inner, level + 1)

    visit(root.path or root.name, root, 0)
    return node_rows


EXPLAIN = Document(
    "explain",
    Member("scenario", read="0.scenario"),
    Member("metric", read="1"),
    Member("range", Maybe(figures("p10", "p50", "p90")), "4"),
    Member("tree", dict, lambda content: _explanation_tree(*content[1:4])),
    Member("structure", dict | None, lambda content: structure_document(content[0].structure)),
)


def explanation_answer(
    evaluation: Evaluation,
    baseline: Evaluation | None,
    metric: str,
    root: Node,
    view: View,
    short: View,
    drawn: DrawnMetric | None,
) -> Answer:
    """Return the answer on the tree of formulas below a number.

    Args:
        evaluation: Scenario that the number is of.
        baseline: Baseline of a ratio; None for any other number.
        metric: Name of the metric or cell.
        root: Node of the number.
        view: Catalogue of the sources, and the depth of the answer's rows.
        short: View with the depth of the table.
        drawn: Percentiles of the metric over draws; None for a cell, or without draws.

    """
    scenario_result = evaluation.result
    meaning = METRICS[metric].label if metric in METRICS else node_meaning(root)
    if baseline is not None:
        meaning = metric_heading(metric, baseline)
    title = f"{scenario_result.title}: {meaning or metric}"
    below = []
    if short.depth is not None:
        below = [
            f"Open: {count_with_noun(short.depth, 'level')}. One more: --depth {short.depth + 1}. "
            f"All: --all. What is below an ID: tco explain {scenario_result.scenario} ID"
        ]
    if baseline is not None:
        below.append(
            f"An ID that begins with {baseline.name}/ is of the baseline: tco explain "
            f"{baseline.name} ID, without that beginning."
        )
    below += structure_text(scenario_result.structure)

    def tables() -> list[Table]:
        above = [
            base_case_words(scenario_result, metric, drawn),
            *LEGEND,
            "",
            *_explanation_lines(metric, root, short),
        ]
        return [Table((), [], title, above, below)]

    return EXPLAIN.answer(
        view.catalogue,
        (scenario_result, metric, root, view, drawn),
        tables,
        (NODE, _explanation_rows(root, view)),
        scenario_result.notes,
        of=scenario_result.context,
    )


# ---------------------------------------------------------------- what was decided before anything
# was computed
def structure_document(structure: Structure | None) -> JsonObject | None:
    """Return the structure for a JSON document: choices, plan, and the inputs that decided them."""
    if structure is None:
        return None
    return {
        "alternatives": structure.alternatives,
        "compared": structure.compared,
        "choices": structure.choices,
        "plan": plain_plan(structure.plan),
        "rests_on": structure.readings,
    }


def structure_text(structure: Structure | None) -> list[str]:
    """Return the structure in a line or two."""
    if structure is None:
        return []
    parts = [] if structure.plan is None else ["the plan"]
    parts += [f"{part} for {slot}" for slot, part in structure.alternatives.items()]
    if network := structure.choices.get("network"):
        tiers = count_with_noun(network["tiers"], "tier")
        parts.append(f"a network of {tiers} ({', '.join(network['parts'])})")
    formats = map(str.upper, dict.fromkeys(structure.choices.get("formats", {}).values()))
    parts += [*formats, *filter(None, [structure.choices.get("collectives", {}).get("library")])]
    inputs = count_with_noun(len(structure.readings), "input")
    chosen = f"Fixed for this answer by {inputs} (--format json lists them): {', '.join(parts)}."
    return [chosen] if parts else []
