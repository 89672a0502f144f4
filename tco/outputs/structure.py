"""The structure of a result: what was decided before anything was computed, and by which inputs."""

from __future__ import annotations

from typing import Any

from tco.chain.plans import plain_plan
from tco.chain.structure import Structure


def structure_document(structure: Structure | None) -> dict[str, Any] | None:
    """Return the structure for a JSON document: choices, the plan, and the inputs that were read to decide, as they were then."""
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
    parts = [f"{part} as {place}" for place, part in structure.alternatives.items()]
    if network := structure.choices.get("network"):
        parts.append(f"a network of {counted(network['tiers'], 'tier')} ({', '.join(network['parts'])})")
    formats = list(dict.fromkeys(structure.choices.get("formats", {}).values()))
    parts += [*formats, *filter(None, [structure.choices.get("collectives", {}).get("library")])]
    return [f"Fixed: the plan, {', '.join(parts)}; decided by {counted(len(structure.readings), 'input')}, listed with --format json."]


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
