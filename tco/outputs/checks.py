"""What moved since a baseline, for machines that show it beside a change: annotations of GitHub, and JUnit's XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tco.outputs.drift import step_lines
from tco.studies.baseline import Drift


def to_github(name: str, scenarios: int, found: Sequence[Drift]) -> str:
    """Return a workflow command for each metric that moved, its steps in the message; a notice where nothing did."""
    if not found:
        return f"::notice title=baseline {in_title(name)}::{scenarios} scenarios, nothing moved\n"
    lines = []
    for drift in found:
        head, *steps = step_lines(drift.move)
        lines.append(f"::error title=baseline {in_title(f'{name}, {drift.scenario}')}::{in_message(chr(10).join([head, *steps]))}")
    return "\n".join(lines) + "\n"


def in_message(text: str) -> str:
    """Return a text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def in_title(text: str) -> str:
    """Return a text as a property of a workflow command."""
    return in_message(text).replace(":", "%3A").replace(",", "%2C")


def to_junit(name: str, checked: Mapping[str, Sequence[str]], found: Sequence[Drift]) -> str:
    """Return a test suite for each scenario, with a case for each metric that was checked; one that moved is a failure."""
    moved = {(drift.scenario, drift.move.metric): drift for drift in found}
    whole = sum(map(len, checked.values()))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name={quoted(f"baseline {name}")} tests="{whole}" failures="{len(moved)}">']
    for scenario, metrics in checked.items():
        failed = sum((scenario, metric) in moved for metric in metrics)
        lines.append(f'  <testsuite name={quoted(scenario)} tests="{len(metrics)}" failures="{failed}">')
        for metric in metrics:
            case = f"    <testcase classname={quoted(scenario)} name={quoted(metric)}"
            drift = moved.get((scenario, metric))
            if drift is None:
                lines.append(f"{case}/>")
                continue
            head, *steps = step_lines(drift.move)
            body = escape("\n".join([head, *steps]))
            lines.append(f"{case}><failure message={quoted(head)}>{body}</failure></testcase>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def quoted(text: Any) -> str:
    """Return a text as an attribute."""
    return quoteattr(str(text))
