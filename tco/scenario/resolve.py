"""What a scenario names, and how an input path finds its value: scenario over system variant over
catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, partial
from os.path import exists  # unlike a path's method it says no to a name that no file can have
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.halls import COOLINGS, hall_cooling
from tco.catalog.rows import input_attributes
from tco.catalog.system_tree import (
    DOMAIN,
    System,
    bare_system,
    is_bare_chip,
    known_systems,
    load_system,
)
from tco.core.errors import DataError, unknown
from tco.core.files import read_toml, scenario_directory
from tco.core.inputs import Reader, Readings, Values, as_number, given_of, joint_array_shape
from tco.core.provenance import ANCHOR, KEPT, Given, Input, making, period, refuse_own
from tco.cost.cash_flows import FROM_THE_AGE, LOSS
from tco.cost.ownership import FOLDER, Perspective, load_perspective, owner_of
from tco.fabric.topology import from_the_lanes
from tco.performance.software_maturity import ALIAS, SOFTWARE, parse_software_name, stated_by
from tco.scenario.choices import (
    CHOICES,
    DOCUMENTS,
    FOLLOWS,
    IMPLIED,
    TEXTS,
    USUAL,
    published,
    texts_of,
)
from tco.scenario.memo import stage
from tco.scenario.workload import KINDS, WorkloadKind
from tco.scenario.workload_sizing import CHIPS, DAYS, size_for
from tco.scenario.workload_sizing import TOKENS as TRAINED
from tco.system.scale_out_network import from_the_tree
from tco.system.wiring import refuse_bad_wires, refuse_unjoined

if TYPE_CHECKING:
    from tco.scenario.structure import Structure

GROUPS = (
    "parts",
    "site",
    "terms",
    "money",
    "failures",
    "carbon",
    "workload",
    "cluster",
    "rebates",
    "shares",
    "performance",
    "metrics",
    "system",
)
HEADLINE_SYSTEM = "gb200-nvl72"
HEADLINE_DOCUMENTS = {
    "site": "us-hyperscale",
    "terms": "hyperscaler-2026-11",
    "workload": "deepseek-v3-8k-1k",
    "cluster": "tor-100g-16k",
}
FIGURES = "published"  # of a scenario that holds figures of publications, read by who asks for them
SCENARIO_KEYS = {
    "title",
    "system",
    "site",
    "terms",
    "workload",
    "cluster",
    "rebates",
    "variant",
    "set",
    "note",
    ANCHOR,
    FIGURES,
}


class Scenario(NamedTuple):
    """A scenario as its file states it."""

    name: str
    title: str
    system: str
    documents: dict[str, str]  # site, terms, workload, cluster -> id
    rebates: tuple[str, ...] | None  # None: those the system's file names
    variant: dict[str, str]
    settings: dict[str, str]
    where: str

    @property
    def has_user_settings(self) -> bool:
        """Say whether its settings are a person's own: those of a file that is shipped are not."""
        return bool(self.settings) and not Path(self.where).resolve().is_relative_to(
            scenario_directory().resolve()
        )


def load_scenario(catalogue: Catalogue, name: str | Path) -> Scenario:
    """Read a scenario of the catalogue by name, or a file by path; the id of a system or a chip
    stands for the headline's workload on it.

    `ID@key=value,...` names variants of a system.
    """
    path, known = Path(name), catalogue.scenarios
    if str(name) in known:
        path = known[str(name)]
    elif path.parent.name == "published" and path.name in catalogue.published:
        path = catalogue.published[path.name]
    elif path.suffix != ".toml" and not exists(path):
        system, _, variants = str(name).partition("@")
        if system not in known_systems(catalogue):
            racks = [
                *known,
                *catalogue.ids("systems"),
            ]  # are meant before a publication or a chip alone where a part of their name is given
            more = [*(f"published/{one}" for one in catalogue.published), *known_systems(catalogue)]
            raise unknown(
                "scenario",
                str(name),
                racks if any(str(name).lower() in rack for rack in racks) else [*racks, *more],
            )
        return headline_scenario(str(name), system, variants_of(variants, str(name)))
    document = (
        catalogue.toml(path)
        if path in (known.get(path.stem), catalogue.published.get(path.name))
        else read_toml(path)
    )
    for key in document:
        if key not in SCENARIO_KEYS:
            raise unknown("key", key, SCENARIO_KEYS, str(path))
    for key in ("system", *DOCUMENTS):
        if not isinstance(document.get(key), str):
            raise DataError(
                f"{path}: the key {key!r} is missing; it names one of "
                f"{', '.join(catalogue.ids(DOCUMENTS.get(key, 'systems')))}"
            )
    for key in ("variant", "set"):
        table = document.get(key, {})
        if not isinstance(table, dict) or not all(
            isinstance(value, str) for value in table.values()
        ):
            raise DataError(
                f'{path}: [{key}] takes texts, such as "site.electricity_price" = "0.09 USD/kWh"'
            )
    if ANCHOR in document and not (catalogue.anchors or making.get()):
        raise DataError(
            f"{path}: {ANCHOR}: its runs are read where one scenario or several are asked (perf, "
            "price, compare, uncertainty), not here"
        )
    rebates = document.get("rebates")
    if rebates is not None and not isinstance(rebates, list):
        raise DataError(f"{path}: rebates takes a list of ids")
    return Scenario(
        path.stem,
        str(document.get("title", path.stem)),
        document["system"],
        {group: document[group] for group in DOCUMENTS},
        None if rebates is None else tuple(map(str, rebates)),
        document.get("variant", {}),
        document.get("set", {}),
        str(path),
    )


def headline_scenario(name: str, system: str, variant: dict[str, str]) -> Scenario:
    """Return the headline's workload, site and terms on a system."""
    return Scenario(name, system, system, dict(HEADLINE_DOCUMENTS), None, variant, {}, "--set")


def variants_of(text: str, where: str) -> dict[str, str]:
    """Return the variants that `key=value,...` names; a malformed one raises `DataError`."""
    found = {}
    for one in filter(None, text.split(",")):
        key, sign, value = one.partition("=")
        if not (sign and key and value):
            raise DataError(f"{where}: {one!r} after @, expected KEY=VALUE, such as switch=gen2")
        found[key] = value
    return found


@dataclass(slots=True)
class Inputs:
    """Resolves the paths of one scenario."""

    catalogue: Catalogue
    scenario: Scenario
    settings: dict[
        str, Any
    ]  # texts, once they are read: an array is a word on how many values it has
    variant: dict[str, str]
    structure: Structure | None = None  # that is given; else it is decided here and on the way
    kept: Mapping[str, str] = field(
        default_factory=dict
    )  # texts and quantities of an earlier answer, in place of all others
    system: System = field(init=False)
    texts: dict[str, str] = field(init=False, default_factory=dict)  # that are stated
    texts_used: dict[str, str] = field(init=False, default_factory=dict)  # that were asked for
    perspective: Perspective = field(init=False)
    found: dict[str, Input] = field(init=False, default_factory=dict)
    given: dict[str, Given] = field(init=False, default_factory=dict)
    shape: tuple[int, ...] = field(init=False, default=())  # of what is asked together
    readings: Readings = field(
        init=False, default_factory=Readings
    )  # inputs that decide structure, as they decide it
    alternatives: dict[str, str] = field(
        init=False, default_factory=dict
    )  # place of the tree -> the part that stands there
    compared: list[str] = field(
        init=False, default_factory=list
    )  # inputs by which it was the cheapest
    notes: list[str] = field(init=False, default_factory=list)
    choosable: dict[str, str] = field(
        init=False, default_factory=dict
    )  # texts that listed parts to choose the cheapest of
    shared: dict[str, Input] = field(
        init=False, default_factory=dict
    )  # of the date, with every scenario of the catalogue
    judged: set[str] = field(
        init=False, default_factory=set
    )  # inputs the shape of the tree rests on
    taken: float | None = field(
        init=False, default=None
    )  # chips by which a job keeps the days that are asked for

    def __post_init__(self) -> None:
        scenario = self.scenario = self.scenario._replace(
            documents=self.scenario.documents | self.chosen_documents()
        )
        variant = {**scenario.variant, **self.variant}
        self.system = self.system_of(variant)
        wanted = {
            path: Given(text, self.system.source, "analyst", self.system.where, own=False)
            for path, text in self.system.settings.items()
        }
        own, by = scenario.has_user_settings, f"set by the scenario {scenario.name}"
        wanted |= {
            path: Given(text, by, "assumed", scenario.where, own=own)
            for path, text in scenario.settings.items()
        }
        wanted |= {
            path: given_of(path, setting, self.unit_of)
            for path, setting in self.settings.items()
            if path in TEXTS
        }
        _, defaults = self.catalogue.document("defaults", "cluster", "file")
        self.texts |= texts_of("cluster", defaults)
        for group, name in reversed(
            scenario.documents.items()
        ):  # terms before the site, whose prices are of their date
            self.read(group, name, wanted)
        if (kind := KINDS.get(self.texts.get("workload.kind", ""))) is not None and kind.defaults:
            self.found = {
                **self.catalogue.document_inputs("defaults", kind.defaults, "file", "workload"),
                **self.found,
            }
        wanted |= {
            path: given_of(path, setting, self.unit_of) for path, setting in self.settings.items()
        }
        self.settings = {path: wanted[path].text for path in self.settings}
        wanted |= {
            path: Given(text, KEPT, "assumed", KEPT, own=False) for path, text in self.kept.items()
        }
        for path, given in wanted.items():
            self.apply_setting(path, given)
        self.shape = joint_array_shape(self.given)
        self.perspective = load_perspective(self.catalogue, self.text("terms.perspective"))
        for one in reversed(self.catalogue.with_base(FOLDER, self.perspective.id, "perspective")):
            self.found = {
                **self.catalogue.document_inputs(FOLDER, one, "perspective", "terms"),
                **self.found,
            }
        self.texts.setdefault("terms.owner", owner_of(self.perspective, self.system))
        stated = wanted.get("terms.date")
        period(self.date, f"{stated.where if stated else scenario.documents['terms']}: terms.date")
        self.shared = self.catalogue.once(("dated", self.date), dict)
        if (region := self.texts.get("site.grid")) is not None:
            self.texts_used["site.grid"] = region
            self.found |= {"site.grid_carbon": self.catalogue.grid_carbon(region, self.date)}
        if SOFTWARE in self.texts:
            self.texts[SOFTWARE] = parse_software_name(self.catalogue, self.texts[SOFTWARE])
            self.found |= stated_by(self.catalogue, self.system.chip, self.texts[SOFTWARE])
        if self.structure is not None:
            self.readings.take(self.structure.readings)
        values = self.values()
        if self.system.bare:
            chip = f"parts.{scenario.system}"
            self.system = bare_system(
                self.catalogue,
                scenario.system,
                values.structure(f"{chip}.{DOMAIN}"),
                values.exists(f"{chip}.point_to_point"),
            )
        elif self.system.alternatives:
            self.alternatives = (
                self.cheapest(values)
                if self.structure is None
                else dict(self.structure.alternatives)
            )
            self.system = load_system(self.catalogue, scenario.system, variant, self.alternatives)
        stage("wires", self, values, lambda: self.refuse_wires(values))
        self.take_formats(values, wanted)
        if self.kind == "training" and not self.kept and values.exists(DAYS):
            self.take_size(
                values,
                {
                    path: one.text
                    for path, one in wanted.items()
                    if path in self.settings and one.many is None
                },
            )
        self.judged = set(values.inputs)

    def take_size(self, values: Values, settings: dict[str, Any]) -> None:
        """Take as many chips as train in the days that are asked for."""
        days, tokens, where = (
            values.structure(DAYS),
            values.structure(TRAINED),
            values.input(DAYS).where,
        )
        if CHIPS in self.settings:
            raise DataError(
                f"{where}: {DAYS} beside {CHIPS}: the chips follow from the days; leave one out"
            )
        self.given.pop(CHIPS, None)  # of the scenario
        key = DAYS, repr((self.scenario, sorted(settings.items()), sorted(self.variant.items())))
        chips = self.catalogue.once(key, lambda: size_for(self, settings, days, tokens, where))
        self.taken = chips
        self.found[CHIPS] = self.found[CHIPS]._replace(
            value=chips, low=chips, high=chips, shown=(chips, self.found[CHIPS].unit)
        )
        self.notes.append(
            f"{CHIPS}: {chips:,.0f} in whole domains train {tokens:.3g} tokens in {days:g} days or "
            "less"
        )

    def refuse_wires(self, values: Values) -> None:
        """Refuse a system whose wires cannot be, or which nothing joins; a chip alone has no wires."""
        if not self.system.bare:
            refuse_bad_wires(self.system, self.catalogue, values)
        refuse_unjoined(self.system, self.catalogue, values)

    def take_formats(self, values: Values, wanted: Mapping[str, Given]) -> None:
        """Take the formats that the chip computes itself where they are asked for, but for those
        that somebody sets.

        Then all texts are known, and a structure that was given can be told from that of others.
        """
        if self.texts.get("workload.formats"):
            from tco.scenario.choices import formats_named, native  # most scenarios state theirs

            if formats_named(self.text("workload.formats")):
                self.texts |= {
                    path: text
                    for path, text in native(values, self.system.chip).items()
                    if path not in wanted
                }
        if self.structure is not None:
            self.structure.check(self.system, self.text)

    def system_of(self, variant: dict[str, str]) -> System:
        """Return the system a scenario names, or the domain of a chip alone, whose size and links
        settings may still change.
        """
        name = self.scenario.system
        if not is_bare_chip(self.catalogue, name):
            return load_system(self.catalogue, name, variant)
        if variant:
            raise DataError(
                f"{name} is a chip alone and has no variants; {', '.join(variant)} cannot be chosen"
            )
        return bare_system(self.catalogue, name, 1, False)

    def chosen_documents(self) -> dict[str, str]:
        """Return the documents that settings name in place of the scenario's, as
        `workload=reasoning` does.
        """
        chosen = {group: text for group, text in self.settings.items() if group in DOCUMENTS}
        self.settings = {path: text for path, text in self.settings.items() if path not in chosen}
        return chosen

    def cheapest(self, values: Values) -> dict[str, str]:
        """Return the part for each place of the tree with alternatives, and note what was chosen
        among.
        """
        from tco.system.bill import chosen_among  # most trees list none

        chosen, compared, notes = chosen_among(self.system, self.catalogue, values, self.date)
        self.compared += compared
        self.notes += notes
        return chosen

    def read(self, group: str, name: str, stated: Mapping[str, Given]) -> None:
        """Take in the values and texts of one document, over those of the one it is `base`d on; a
        site's over those of its country at the date.
        """
        names = self.catalogue.with_base(DOCUMENTS[group], name, group)
        cooling = self.hall_cooling(names, stated) if group == "site" else None
        for one in names:
            _, document = self.catalogue.document(DOCUMENTS[group], one, group)
            if (country := document.get("country")) is not None:
                given = stated.get("terms.date")
                date = self.kept.get("terms.date") or (self.date if given is None else given.text)
                period(
                    date,
                    f"{self.scenario.documents['terms'] if given is None else given.where}: "
                    "terms.date",
                )
                self.found |= self.catalogue.of_country(str(country), date)
            self.found |= self.catalogue.document_inputs(
                DOCUMENTS[group], one, group, group, cooling
            )
            self.texts |= self.catalogue.once(
                ("texts", group, one), partial(texts_of, group, document)
            )
        if cooling is not None:
            self.texts["site.cooling"] = cooling

    def hall_cooling(self, names: Sequence[str], stated: Mapping[str, Given]) -> str | None:
        """Return the cooling of the hall in which the racks stand, of a site's documents by name."""
        documents = [self.catalogue.document("sites", name, "site")[1] for name in names]
        given = stated.get("site.cooling")
        cooling = hall_cooling(
            documents, self.system.cooling, given.text if given else self.kept.get("site.cooling")
        )
        if cooling is not None and cooling not in COOLINGS:
            raise unknown("cooling", cooling, COOLINGS, "site.cooling")
        return cooling

    def apply_setting(self, path: str, given: Given) -> None:
        """Take in one setting: a text where the input is one, else a quantity for later."""
        if path in TEXTS or path == ALIAS:
            if given.keeps_back(path):
                refuse_own(f"{given.where}: {path}: a text")
            self.texts[SOFTWARE if path == ALIAS else path] = given.text
        elif path.partition(".")[0] not in GROUPS:
            raise unknown("input path", path, self.known_paths(), "--set")
        else:
            self.given[path] = given

    def text(self, path: str) -> str:
        """Return an input that is a text: as it is stated, or what it follows from; one that may
        not be raises `DataError`.
        """
        found = self.texts.get(path)
        if found is None and path in IMPLIED:
            model = self.text("workload.model")
            found = self.catalogue.once(
                ("published", model), lambda: published(self.catalogue, model)
            ).get(path)
        if found is None and path in FOLLOWS:
            return self.text(FOLLOWS[path])
        if found is None and (found := USUAL.get(path)) is None:
            group = path.partition(".")[0]
            raise DataError(
                f"{self.scenario.documents[group]}: {path} is missing in data/{DOCUMENTS[group]}"
            )
        if path in CHOICES and found not in CHOICES[path][1]:
            raise unknown(CHOICES[path][0], found, CHOICES[path][1], path)
        self.texts_used[path] = found
        return found

    @property
    def owner(self) -> str:
        """Who owns the racks: agreements with suppliers count where they are his."""
        return self.text("terms.owner")

    @property
    def date(self) -> str:
        """The date prices hold for."""
        return self.text("terms.date")

    @property
    def kind(self) -> str:
        """The name of what the workload does."""
        return self.text("workload.kind")

    @property
    def workload(self) -> WorkloadKind:
        """What the workload does."""
        return KINDS[self.kind]

    @property
    def rebates(self) -> tuple[str, ...]:
        """The agreements that give something back, if the owner holds them: those a scenario counts
        on, or those that cover its system.
        """
        return self.system.rebates if self.scenario.rebates is None else self.scenario.rebates

    def values(self, read: Reader = as_number) -> Values:
        """Return the mapping of all inputs in one reading, that of numbers unless another is asked
        for.
        """
        rules = self.system.once(
            "rules",
            lambda: {**from_the_tree(self.system, self.catalogue), **from_the_lanes(self.system)},
        )
        follows = {**rules, **FROM_THE_AGE} if LOSS in self.found or LOSS in self.given else rules
        return Values(
            self.resolve,
            read,
            self.given,
            bounds,
            self.unit_of,
            lambda date: self.on_date(date).values(read),
            follows,
            self.readings,
        )

    def on_date(self, date: str) -> Inputs:
        """Return the same inputs at another date: prices move, the system, its choices and whatever
        is set stay as they are.
        """
        period(date)
        other = copy(self)
        other.texts = self.texts | {"terms.date": date}
        other.texts_used, other.notes, other.readings = {}, [], Readings()
        other.shared = self.catalogue.once(("dated", date), dict)
        return other

    def resolve(self, path: str) -> Input:
        """Return the catalogue's input for a path; an unknown path or a missing value raises
        `DataError`.
        """
        found = self.found.get(path)
        if found is not None:
            return found
        found = self.shared.get(path)
        if found is None:
            found = self.dated(path)
            if found is None:
                return self.documented(path)
            self.shared[path] = found
        return found

    def dated(self, path: str) -> Input | None:
        """Return the input of a path that the catalogue holds by date or by family; None for those
        of documents.
        """
        group, _, rest = path.partition(".")
        name, _, last = rest.rpartition(".")
        if group == "parts" and name:
            return self.catalogue.part_input(name, last, self.date)
        if group == "shares" and name:
            return self.catalogue.share_price(name, self.date)
        if group == "rebates" and last == "vested":
            return self.catalogue.vested(name, self.date)
        if group == "rebates" and last == "reachable":
            return self.catalogue.reachable(name, self.date)
        if (
            group == "performance"
            and {(name, last), (self.catalogue.kind_of(name), last)}
            & self.catalogue.calibration_rows.keys()
        ):
            return self.catalogue.practice(name, last)
        return None

    def documented(self, path: str) -> Input:
        """Return the input of a path that a document of its own holds; any other path raises
        `DataError`.
        """
        group, name = path.partition(".")[0], path.partition(".")[2].rpartition(".")[0]
        if group in ("performance", "rebates") and name:
            self.found |= self.catalogue.document_inputs(group, name, group, f"{group}.{name}")
            if path in self.found:
                return self.found[path]
        if group in ("money", "failures", "carbon", "site", "cluster"):
            self.found |= self.catalogue.document_inputs("defaults", group, group, group)
            if path in self.found:
                return self.found[path]
        raise unknown("input path", path, self.known_paths())

    def unused(self, values: Values) -> list[str]:
        """Return the paths the user has set to no effect; a path that is no input at all raises
        `DataError`.
        """
        idle = values.check_given(self.is_known)
        for path in idle:  # a bad value is refused whether or not something rests on it
            values.override(path, self.unit_of(path), values.given[path])
        return [path for path in idle if path not in self.judged and path in self.settings]

    def unit_of(self, path: str) -> str:
        """Return the unit of an input that is set, whether or not the catalogue has a value for it."""
        group, _, rest = path.partition(".")
        found = input_attributes().get((group, rest.rpartition(".")[2]))
        return found.unit if found and self.is_known(path) else self.resolve(path).unit

    def known_paths(self) -> list[str]:
        """Return the paths of documents and parts, for the nearest name."""
        return [
            *self.found,
            *TEXTS,
            *(f"parts.{part}.{name}" for part, name in self.catalogue.part_rows),
        ]

    def states(self, path: str, values: Values) -> bool:
        """Say whether a document of the scenario or a setting gives an input that need not be
        there.
        """
        return path in self.found or values.has(path)

    def is_known(self, path: str) -> bool:
        """Say whether a path is an input, even if this scenario does not rest on it."""
        group, _, rest = path.partition(".")
        name, _, last = rest.rpartition(".")
        if group == "parts":
            return name in self.catalogue.parts and (group, last) in input_attributes()
        if group in ("shares", "rebates", "performance") and name:
            try:
                return self.resolve(path).path == path
            except DataError:
                return False
        return path in self.found or (not name and (group, last) in input_attributes())


def system_inputs(
    catalogue: Catalogue,
    name: str,
    set: Mapping[str, str],  # noqa: A002 - the name of the option
    variant: Mapping[str, str],
) -> Inputs:
    """Return the inputs of a system by its id, on the headline's site and terms; an unknown id or
    variant raises `DataError`.

    `ID@key=value,...` names variants, as it does of a scenario; those of `variant` win over them.
    """
    system, _, variants = name.partition("@")
    chosen = {**variants_of(variants, name), **variant}
    if not is_bare_chip(catalogue, system):
        load_system(catalogue, system, chosen)
    return Inputs(catalogue, headline_scenario(system, system, {}), dict(set), chosen)


def plain_inputs(catalogue: Catalogue, set: Mapping[str, str]) -> Inputs:  # noqa: A002
    """Return the inputs of the headline's site, terms and cluster, for questions that name no
    system.
    """
    return system_inputs(catalogue, HEADLINE_SYSTEM, set, {})


@cache
def bounds(path: str) -> tuple[float, float]:
    """Return the smallest and largest value an input may take; derived values must not be negative."""
    group, _, rest = path.partition(".")
    found = input_attributes().get((group, rest.rpartition(".")[2]))
    return (found.minimum, found.maximum) if found else (0.0, 1e30)
