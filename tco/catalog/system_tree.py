"""Systems: the tree of parts with its variants, and the tables of fabric and network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tco.catalog.catalogue import Catalogue
from tco.core.errors import DataError, refuse_unknown
from tco.core.mappings import sums_by_key
from tco.core.memory import value_once
from tco.core.provenance import refuse_own
from tco.core.types import JsonMapping, JsonObject, TextMapping, is_finite_number

T = TypeVar("T")
DEEPEST = 40  # levels of assemblies; more is a mistake
MOST_PLACES = 20_000  # places of a tree; more is a mistake
# Tables of a system that a branch of a variant may extend.
BRANCH_TABLES = ("fabric", "network", "spares", "alternatives")
DOMAIN = "scale_up_domain"  # attribute of a chip: number of chips in its usual domain


class Leaf(NamedTuple):
    """Place in the tree of a system with its part, which may contain further parts."""

    path: str  # part ids from the root down, joined by "/"
    part: str  # part id
    quantity: float  # number of parts in one scale-up domain
    parent: str  # path of the assembly that contains the part; empty at the root


@dataclass(slots=True)
class System:
    """A system with its variants applied."""

    id: str
    name: str
    chip: str  # part id
    owner_pays: str
    cooling: str
    source: str
    note: str
    racks: float  # racks of one scale-up domain
    variant: dict[str, str]  # chosen option, by variant
    contains: dict[str, dict[str, float]]  # number of each child, by assembly and child
    fabric: JsonObject
    network: JsonObject
    rebates: tuple[str, ...]  # agreements that the usual owner holds
    settings: dict[str, str]  # inputs that a variant replaces, by path
    where: str  # path of the file, for errors
    # Number of parts that fill a slot of the tree once, by slot and alternative part.
    alternatives: dict[str, dict[str, float]]
    leaves: list[Leaf] = field(default_factory=list)  # all places of the tree, parents first
    # Number of parts in one scale-up domain, by part.
    quantity: dict[str, float] = field(default_factory=dict)
    builder: str = ""  # company that builds the system for its own use; empty where it is sold
    # Number of parts of a holder that may fail before chips stop, by part.
    spares: dict[str, float] = field(default_factory=dict)
    bare: bool = False  # only the chips of a scale-up domain, without prices
    # Results of `once`, which follow from the tree alone.
    cached_results: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, cache_key: Any, make: Callable[[], T]) -> T:
        """Return the result of `make`, which is called once for each key."""
        return value_once(self.cached_results, cache_key, make)

    @property
    def chips(self) -> float:
        """Number of accelerators in one scale-up domain."""
        return self.quantity[self.chip]

    @property
    def variant_text(self) -> str:
        """Variants in force, as the options that choose them."""
        return " ".join(f"{variant_key}={option}" for variant_key, option in self.variant.items())


def is_bare_chip(catalogue: Catalogue, system_name: str) -> bool:
    """Return whether a name is that of a chip without a system.

    The scale-up domain of the chip is known, and no system has the same name.

    Args:
        catalogue: Holds the systems and parts.
        system_name: Name of a system or chip.

    """
    systems: frozenset[str] = catalogue.once("systems", lambda: frozenset(catalogue.ids("systems")))
    return system_name not in systems and catalogue.has_part_value(system_name, DOMAIN)


def bare_system(catalogue: Catalogue, chip: str, domain: float, point_to_point: bool) -> System:
    """Return the scale-up domain of a chip as a system of chips and links, without prices.

    Args:
        catalogue: Holds the parts.
        chip: Id of the chip, which states a scale-up domain.
        domain: Number of chips in the domain.
        point_to_point: Whether the fabric is a mesh; otherwise the fabric is a star.

    """
    return System(
        id=chip,
        name=chip,
        chip=chip,
        owner_pays="",
        cooling="",
        source="",
        note="",
        racks=1.0,
        variant={},
        contains={"world": {chip: domain}},
        fabric={"kind": "mesh" if point_to_point else "star", "lanes": {}},
        network={"first_tier": "leaf"},
        rebates=(),
        settings={},
        where=catalogue.part_rows[chip, DOMAIN][0].where,
        alternatives={},
        leaves=[Leaf(chip, chip, domain, "")],
        quantity={chip: domain},
        bare=True,
    )


def known_systems(catalogue: Catalogue) -> list[str]:
    """Return the names of all systems, and of chips that may be used without a system.

    Args:
        catalogue: Holds the systems and parts.

    """
    return [
        *catalogue.ids("systems"),
        *(part for part in catalogue.parts if catalogue.has_part_value(part, DOMAIN)),
    ]


def load_system(
    catalogue: Catalogue,
    system_name: str,
    variant: TextMapping | None = None,
    chosen: TextMapping | None = None,
) -> System:
    """Return a system with variants applied.

    Args:
        catalogue: Holds the systems and parts.
        system_name: Id of the system.
        variant: Variants of the system by key.
        chosen: Part by place, for places with alternatives; by default the first alternative.

    Raises:
        DataError: The file is bad, a variant is unknown, or the tree has a cycle.

    """
    chosen_variants, parts = dict(variant or {}), dict(chosen or {})
    cache_key = ("system", system_name, *sorted(chosen_variants.items()), *sorted(parts.items()))
    return catalogue.once(
        cache_key, lambda: _read_system(catalogue, system_name, chosen_variants, parts)
    )


def _read_system(
    catalogue: Catalogue, system_name: str, variant: TextMapping, parts: TextMapping
) -> System:
    """Read a system's file, apply its variants and unfold its tree.

    Args:
        catalogue: Holds systems, shared assemblies and parts.
        system_name: Id of the system, or path of its file.
        variant: Value by key of the chosen variants.
        parts: Chosen part by place of the alternatives.

    Raises:
        DataError: The file, a variant, a part or a count of spares is wrong.

    """
    where, document = _checked_document(catalogue, system_name)
    contains = {part: dict(children) for part, children in _shared_assemblies(catalogue).items()}
    contains |= {part: dict(children) for part, children in document["assemblies"].items()}
    tables: dict[str, dict[str, Any]] = {"set": {}}
    tables |= {table_name: dict(document.get(table_name, {})) for table_name in BRANCH_TABLES}
    racks = float(document["racks"])
    chosen = _choose_variants(document.get("variants", {}), variant, system_name, where)
    for variant_key, chosen_option in chosen.items():
        branch = document["variants"][variant_key][chosen_option]
        branch_place = f"{where}: variant {variant_key}={chosen_option}"
        _change_assemblies(contains, branch.get("assemblies", {}), branch_place, system_name)
        racks = float(branch.get("racks", racks))
        for table_key, table in tables.items():
            table.update(branch.get(table_key, {}))
    for slot_place, candidates in tables["alternatives"].items():
        contains = _substitute_alternative(
            contains, slot_place, candidates, parts.get(slot_place), where
        )
    system = System(
        id=system_name,
        name=document["name"],
        chip=document["chip"],
        owner_pays=document["owner_pays"],
        cooling=document["cooling"],
        source=document["source"],
        note=document.get("note", ""),
        racks=racks,
        variant=chosen,
        contains=contains,
        fabric=tables["fabric"],
        network=tables["network"],
        rebates=tuple(document.get("rebates", ())),
        settings=tables["set"],
        where=where,
        alternatives=tables["alternatives"],
        builder=document.get("builder", ""),
        spares=tables["spares"],
    )
    system.leaves = list(expand(contains, where))
    system.quantity |= sums_by_key((leaf.part, leaf.quantity) for leaf in system.leaves)
    _expect_parts(catalogue, system)
    return system


def _checked_document(catalogue: Catalogue, system_name: str) -> tuple[str, JsonObject]:
    """Return the file of a system and its document; a user's file is checked first."""
    path, document = catalogue.document("systems", system_name, "system")
    if catalogue.is_overlay(path):  # shipped files are checked before release
        from tco.catalog.schema import expect_system

        expect_system(path, document)
    return str(path), document


def _change_assemblies(
    contains: dict[str, dict[str, float]],
    changes: Mapping[str, Mapping[str, float]],
    where: str,
    system_name: str,
) -> None:
    """Change the children of assemblies in place.

    Raises:
        DataError: An assembly is unknown.

    """
    for part, children in changes.items():
        if part not in contains:
            raise DataError(f"{where} changes {part!r}, which is no assembly of {system_name}")
        contains[part] |= children


def _expect_parts(catalogue: Catalogue, system: System) -> None:
    """Check the parts of a system's tree, its alternatives and its spares.

    Raises:
        DataError: A part is unknown, a number of spares is invalid, or the tree lacks the chip.

    """
    where = system.where
    candidates = (part for parts in system.alternatives.values() for part in parts)
    for part in (*system.quantity, *candidates):
        refuse_unknown("part", [part], catalogue.parts, where)
    for part, count in system.spares.items():
        refuse_unknown("part", [part], catalogue.parts, f"{where}: spares")
        if not is_part_count(count):
            raise DataError(
                f"{where}: spares.{part} is {count!r}, expected how many of a holder's may fail "
                "before chips stop"
            )
    if not system.quantity.get(system.chip):
        raise DataError(f"{where}: the tree holds no {system.chip!r}, which `chip` names")


def _substitute_alternative(
    contains: Mapping[str, Mapping[str, float]],
    slot_place: str,
    candidates: Any,
    part: str | None,
    where: str,
) -> dict[str, dict[str, float]]:
    """Return the tree with an alternative in a slot.

    The alternative is `part`, or the first candidate where `part` is None. A slot that an assembly
    has n times receives n times the number of parts that fill it once.
    """
    if (
        not isinstance(candidates, dict)
        or not candidates
        or not all(is_part_count(number) for number in candidates.values())
    ):
        raise DataError(
            f"{where}: alternatives.{slot_place} is {candidates!r}, expected parts and how many of "
            f"each, such as {{ a = 8, b = 4 }}"
        )
    if not any(slot_place in children for children in contains.values()):
        raise DataError(
            f"{where}: alternatives.{slot_place} stands nowhere in the tree; name {slot_place!r} "
            "in an assembly"
        )
    chosen = next(iter(candidates)) if part is None else part
    changed: dict[str, dict[str, float]] = {}
    for holder, children in contains.items():
        changed[holder] = {
            chosen if child == slot_place else child: quantity
            for child, quantity in children.items()
        }
        slots = children.get(slot_place)
        if slots is not None and is_part_count(slots):  # `expand` refuses any other value
            changed[holder][chosen] = slots * candidates[chosen] + children.get(chosen, 0)
    return changed


def is_part_count(quantity: Any) -> bool:
    """Return whether a value is a number of parts.

    Args:
        quantity: Value of any type.

    Returns:
        True for a finite number of at least zero, False for a boolean.

    """
    return is_finite_number(quantity) and quantity >= 0


def _shared_assemblies(catalogue: Catalogue) -> dict[str, dict[str, float]]:
    """Return the parts inside assemblies that all systems share, such as HBM stacks per chip.

    Raises:
        DataError: The contents of a part are not a table of parts.

    """
    shared_parts: dict[str, dict[str, float]] = {}
    for path in catalogue.folder_files("assemblies.toml"):
        if catalogue.is_overlay(path):
            refuse_own(f"{path}: what parts of your own contain")
        document = catalogue.toml(path)
        for part, children in document.items():
            if not isinstance(children, dict):
                raise DataError(
                    f"{path}: {part} is {children!r}, expected the parts it contains, such as "
                    "{ hbm4-stack = 4 }"
                )
        shared_parts |= document
    return shared_parts


def _choose_variants(
    variants: JsonMapping, chosen_variants: TextMapping, system_name: str, where: str
) -> dict[str, str]:
    """Return the option in force of each variant: the chosen one, else the default."""
    refuse_unknown(f"variant of {system_name}", chosen_variants, variants)
    chosen = {}
    for variant_key, options in variant_options(variants).items():
        chosen_option = chosen_variants.get(variant_key, variants[variant_key].get("default", ""))
        refuse_unknown(
            f"variant {variant_key} of {system_name}",
            [chosen_option],
            options,
            where if variant_key not in chosen_variants else "",
        )
        chosen[variant_key] = chosen_option
    return chosen


def variant_options(variants: JsonMapping) -> dict[str, list[str]]:
    """Return the options of each variant, from the table `variants` of a system's document."""
    return {
        variant_key: [option for option in branches if option != "default"]
        for variant_key, branches in variants.items()
    }


def single_variants(document: JsonMapping) -> Iterator[dict[str, str]]:
    """Yield choices of variants of a system: the defaults, then each option with the defaults."""
    yield {}
    for variant_key, options in variant_options(document.get("variants", {})).items():
        yield from ({variant_key: option} for option in options)


def expand(contains: Mapping[str, Mapping[str, float]], where: str) -> Iterator[Leaf]:
    """Yield every place of the tree below `world`, parents first.

    Args:
        contains: Number of each child, by assembly and child.
        where: Path of the file, for errors.

    Raises:
        DataError: The tree has no root, a cycle, an invalid number of parts, or too many places.

    """
    place_numbers = itertools.count(1)

    def leaves_inside(
        part: str, path: str, count: float, ancestors: tuple[str, ...]
    ) -> Iterator[Leaf]:
        if len(ancestors) > DEEPEST:
            raise DataError(
                f"{where}: {part} stands more than {DEEPEST} assemblies deep: "
                f"{' > '.join(ancestors[:4])} > ..."
            )
        for child, quantity in contains.get(part, {}).items():
            if not is_part_count(quantity):
                raise DataError(
                    f"{where}: {part} contains {quantity!r} of {child}, expected a count"
                )
            if child in ancestors:
                cycle = " > ".join([*ancestors, child])
                raise DataError(f"{where}: {child} contains itself: {cycle}")
            if quantity:
                if next(place_numbers) > MOST_PLACES:
                    raise DataError(
                        f"{where}: the tree has more than {MOST_PLACES:,} places, expected "
                        "assemblies named once"
                    )
                child_path = f"{path}/{child}" if path else child
                yield Leaf(child_path, child, count * quantity, path)
                yield from leaves_inside(child, child_path, count * quantity, (*ancestors, child))

    if "world" not in contains:
        raise DataError(f"{where}: the assembly 'world' is missing; it is the root of the tree")
    yield from leaves_inside("world", "", 1, ("world",))
