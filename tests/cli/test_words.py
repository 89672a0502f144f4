"""The words of help, messages, tables, page and plots: short sentences, no retired terms."""

from __future__ import annotations

import ast
import csv
import re
import tomllib
from pathlib import Path

import pytest

from tco.core.files import data_directory
from tco.scenario.metrics import METRICS
from tco.sweeps.study import shipped_studies
from tests.cli.test_help import ALL, ROOT

LONGEST = 25  # words of a sentence
PROGRAM = Path(__file__).parents[2] / "tco"
# Terms that the glossary retires and that mean nothing else in this program.
RETIRED = re.compile(
    r"(?<![.\w])(interactivity|(keeps?|kept|choices keep) of the best|drafts differ|flips?|are let|"
    r"let for|is let|left out(?=:)|so many|whole world|(held|hold all designs) against|"
    r"practice|(tokens(/s| a second)?|USD|dollars|GB|W|requests?) an? "
    r"(user|token|million|dollar|chip|chip-hour|month|second|MW|megawatt|rack)|in their place|anew|"
    r"(plans?|structure|choices|point)( that is| that are| are| is|) held|an? prior|"
    r"at (its|their) values|P\(better|IT price|"
    r"what is bought|performance per cost|tokens per dollar|utilised chip-hours?|"
    r"rows that notice|in the middle of the draws|the middle of its draws)\b",
    re.IGNORECASE,
)
# An input by its key, which belongs into a command or an error, not above a column.
DOTTED_PATH = re.compile(r"\b(parts|terms|site|workload|cluster|performance|failures)\.[a-z{_*]")
PAGE = PROGRAM / "report/page"
LABELS, ATTRIBUTES = (data_directory() / name for name in ("words/labels.csv", "attributes.csv"))
HEADING = ("label", "title", "above", "below", "columns")


def sentences(text):
    """Yield the sentences of a text; a command in backticks counts as one word."""
    plain = re.sub(r"`[^`]*`", "CODE", text)
    for sentence in re.split(r"(?<=[.;:?!])\s+|\n\n", plain):
        yield " ".join(sentence.split())


def faults(text):
    """Return the long sentences and retired terms of a text."""
    long = [sentence for sentence in sentences(text) if len(sentence.split()) > LONGEST]
    return long + [match.group() for match in RETIRED.finditer(text)]


def help_texts(words):
    """Return the description of a command and the help of its parameters."""
    command = ROOT
    for word in words:
        command = command.commands[word]
    return [command.help or "", *(getattr(item, "help", "") or "" for item in command.params)]


@pytest.mark.parametrize("words", ALL, ids=["-".join(words) or "tco" for words in ALL])
def test_help_uses_short_sentences_and_terms_of_the_glossary(words):
    assert [fault for text in help_texts(words) for fault in faults(text)] == []


def literal_text(node):
    """Return a string literal with NUMBER in place of each value; None for any other node."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "NUMBER" for part in node.values
        )
    return None


def literal_texts(node):
    """Yield the line and text of each literal below a node that is no docstring or pattern."""
    for child in ast.iter_child_nodes(node):
        if isinstance(node, (ast.Expr, ast.JoinedStr)) and isinstance(child, ast.Constant):
            continue
        if getattr(getattr(node, "func", 0), "attr", "") == "compile":
            continue
        text = literal_text(child)
        if text is not None and " " in text.strip():
            yield child.lineno, text
        yield from literal_texts(child)


def program_texts():
    """Yield the source line and the text of each literal with a blank."""
    for path in sorted(PROGRAM.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, text in literal_texts(tree):
            yield f"{path.relative_to(PROGRAM)}:{line}", text


def test_texts_of_the_program_use_short_sentences_and_terms_of_the_glossary():
    texts = list(program_texts())
    assert len(texts) > 2500
    assert [(source, fault) for source, text in texts for fault in faults(text)] == []


def headings():
    """Yield each title, label and heading that a call of the report gives as a literal."""
    for path in sorted((PROGRAM / "report").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", "")
                arguments = [keyword.value for keyword in node.keywords if keyword.arg in HEADING]
                arguments += node.args if name in ("Table", "Section", "Drawing", "Sheet") else []
                for argument in arguments:
                    parts = getattr(argument, "elts", [argument])
                    for text in filter(None, map(literal_text, parts)):
                        yield f"{path.relative_to(PROGRAM)}:{node.lineno}", text


def label_texts():
    """Yield the labels of inputs and the descriptions of attributes and metrics."""
    for path, column in ((LABELS, "name"), (ATTRIBUTES, "description")):
        with path.open(encoding="utf-8") as file:
            for label_row in csv.DictReader(file):
                yield path.name, label_row[column]
    for metric_name, metric in METRICS.items():
        yield metric_name, metric.label


def page_texts():
    """Yield the texts of the templates and the script of the page."""
    for name in ("page.html", "whatif.html"):
        template = (PAGE / name).read_text(encoding="utf-8")
        visible_text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", "", template, flags=re.DOTALL)
        yield from (
            (name, text) for text in re.split(r"<[^>]*>", visible_text) if " " in text.strip()
        )
    script = re.sub(r"//.*", "", (PAGE / "whatif.js").read_text(encoding="utf-8"))
    for text in re.findall(r'"([^"\n]*)"|`([^`\n]*)`', script):
        yield "whatif.js", re.sub(r"\$\{[^}]*\}", "NUMBER", "".join(text))


def study_texts():
    """Yield title, question and answer of each shipped study."""
    for path in shipped_studies().values():
        study = tomllib.loads(path.read_text(encoding="utf-8"))
        yield from ((path.name, study[key]) for key in ("title", "question", "answer"))


@pytest.mark.parametrize(
    ("texts", "least"), [(study_texts, 30), (headings, 200), (label_texts, 500), (page_texts, 200)]
)
def test_headings_labels_and_the_page_use_terms_of_the_glossary_and_no_paths(texts, least):
    source_texts = list(texts())
    assert len(source_texts) > least
    retired = [(source, fault) for source, text in source_texts for fault in faults(text)]
    dotted = [(source, text) for source, text in source_texts if DOTTED_PATH.search(text)]
    assert retired + dotted == []


def test_faults_are_found():
    assert faults("word " * 26) != []
    assert faults("What interactivity costs.") == ["interactivity"]
    assert faults("Price a rack. Then compare it.") == []
    assert faults("USD a million, the plan held") == ["USD a million", "plan held"]
    assert faults("workload.interactivity is 50, USD per million, the plan is fixed") == []
    assert DOTTED_PATH.search("what terms.rate does")
