"""The words of the help and of refusals: sentences of at most 25 words, and no retired terms."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.cli.test_help import ALL, ROOT

LONGEST = 25  # words of a sentence
PROGRAM = Path(__file__).parents[2] / "tco"
# Terms that the glossary retires and that mean nothing else in this program.
RETIRED = re.compile(
    r"\b(interactivity|(keeps?|kept|choices keep) of the best|drafts differ|what flips|are let|"
    r"let for|left out(?=:)|so many|whole world|(held|hold all designs) against|practice|"
    r"tokens/s a user|(USD|dollars) a (token|million|chip)|in their place)\b",
    re.IGNORECASE,
)
REFUSALS = ("UsageError", "DataError", "UnavailableError", "KeptBackError", "tell")


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


def refusals():
    """Yield the source line and the text of each refusal and note of the program."""
    for path in sorted(PROGRAM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if getattr(node.func, "id", "") in REFUSALS and (text := literal_text(node.args[0])):
                yield f"{path.relative_to(PROGRAM)}:{node.lineno}", text


def test_messages_use_short_sentences_and_terms_of_the_glossary():
    messages = list(refusals())
    assert len(messages) > 400
    assert [(source_line, fault) for source_line, text in messages for fault in faults(text)] == []


def test_faults_are_found():
    assert faults("word " * 26) != []
    assert faults("What interactivity costs.") == ["interactivity"]
    assert faults("Price a rack. Then compare it.") == []
