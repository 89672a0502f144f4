"""The verdict in words: the first sentence of a comparison, and its part of the document."""

from __future__ import annotations

from typing import Any

from tco.outputs.ranges import DIGITS, RATIO, end_words, percent
from tco.outputs.table import significant
from tco.studies.comparison import Verdict

WORK = {
    "usd_per_million_output_tokens": ("output tokens", "a million output tokens"),
    "train_usd_per_trillion_tokens": ("training tokens", "a trillion training tokens"),
}


def verdict_words(found: Verdict) -> str:
    """Return the verdict as a sentence, and after it who is in no order with the rest, and why."""
    return " ".join([sentence(found), *(f"{name} is not rated: {why}." for name, why in found.unrated.items() if found.best is not None)])


def sentence(found: Verdict) -> str:
    """Return who is best per cost, by how much and how surely; or what there is to say in its place."""
    if found.metric is None or found.best is None:
        return "No verdict: " + "; ".join(f"{name} {why}" for name, why in found.unrated.items()) + "."
    work, amount = WORK[found.metric]
    if found.against is None or found.ratio is None:
        return f"{found.best} does this work at ~{significant(found.cost, DIGITS + 1)} USD {amount}."
    if found.ratio == 1:
        return f"Level at this workload: {found.best} and {found.against} give the same {work} per dollar."
    ratio = f"~{significant(found.ratio, DIGITS)} times the {work} per dollar of {found.against}"
    formats = ", in different formats" if found.formats else ""
    if found.lead is None:
        return f"Best per cost at this workload: {found.best}, {ratio}{formats}; no range was drawn."
    range_ = " to ".join(end_words(RATIO, one) for one in (found.lead.p10, found.lead.p90))
    ahead = f"ahead in {percent(found.lead.probability)} of draws"
    if found.close:
        return f"Too close to call at this workload: {found.best} gives {ratio}{formats}, but P10 to P90 is {range_}; it is {ahead}."
    return f"Best per cost at this workload: {found.best}, {ratio}{formats}; P10 to P90 {range_}, {ahead}."


def verdict_document(found: Verdict) -> dict[str, Any]:
    """Return the verdict as its part of a JSON document."""
    lead = found.lead
    return {
        "text": verdict_words(found),
        "metric": found.metric,
        "best": found.best,
        "against": found.against,
        "ratio": found.ratio,
        "range": None if lead is None else {"p10": lead.p10, "p50": lead.p50, "p90": lead.p90},
        "probability": None if lead is None else lead.probability,
        "too_close_to_call": found.close,
        "unrated": dict(found.unrated),
    }
