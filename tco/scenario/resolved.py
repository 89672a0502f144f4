"""A resolved scenario: the value of each input path, from settings, variant and catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from os.path import exists
from typing import TYPE_CHECKING, Any

from tco.catalog import Catalogue
from tco.catalog.rows import attribute_of_path, input_attributes, split_path
from tco.catalog.system_tree import System
from tco.core.errors import DataError, unknown
from tco.core.inputs import Reader, Readings, Values, as_number
from tco.core.provenance import Given, Input
from tco.cost.cash_flows import FROM_THE_AGE, LOSS
from tco.cost.ownership import Perspective
from tco.fabric.topology import from_the_lanes
from tco.scenario.choices import (
    CHOICES,
    DOCUMENTS,
    FOLLOWS,
    IMPLIED,
    TEXTS,
    USUAL,
    formats_of_checkpoint,
)
from tco.scenario.document import Scenario
from tco.system.scale_out_network import from_the_tree

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


@dataclass(slots=True)
class ResolvedScenario:
    """A scenario with its documents read and its settings taken in, and the values of its inputs.

    `resolve_scenario` of `tco.scenario.resolve` makes one.
    """

    catalogue: Catalogue
    scenario: Scenario
    # texts, once they are read: an array is a word on how many values it has
    settings: dict[str, Any]
    variant: dict[str, str]
    structure: Structure | None = None  # that is given; else it is decided here and on the way
    # texts and quantities of an earlier answer, in place of all others
    saved_texts: Mapping[str, str] = field(default_factory=dict)
    system: System = field(init=False)
    texts: dict[str, str] = field(init=False, default_factory=dict)  # that are stated
    texts_used: dict[str, str] = field(init=False, default_factory=dict)  # that were asked for
    perspective: Perspective = field(init=False)
    document_inputs: dict[str, Input] = field(init=False, default_factory=dict)
    setting_values: dict[str, Given] = field(init=False, default_factory=dict)
    shape: tuple[int, ...] = field(init=False, default=())  # of what is asked together
    # inputs that decide structure, as they decide it
    readings: Readings = field(init=False, default_factory=Readings)
    # place of the tree -> the part that stands there
    alternatives: dict[str, str] = field(init=False, default_factory=dict)
    # inputs by which it was the cheapest
    compared: list[str] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    # notes on what casts doubt on the answer, which a short answer has too
    cautions: list[str] = field(init=False, default_factory=list)
    # texts that listed parts to choose the cheapest of
    choosable: dict[str, str] = field(init=False, default_factory=dict)
    # of the date, with every scenario of the catalogue
    shared: dict[str, Input] = field(init=False, default_factory=dict)
    # inputs the shape of the tree rests on
    judged: set[str] = field(init=False, default_factory=set)
    # chips by which a job keeps the days that are asked for
    taken: float | None = field(init=False, default=None)

    def trial_of(self, system: System) -> ResolvedScenario:
        """Return the inputs with another system; what is read on the trial stays with it."""
        trial = copy(self)
        trial.system = system
        trial.readings = Readings(self.readings, self.readings.decisions)
        trial.texts_used, trial.choosable = {}, {}
        trial.compared, trial.notes, trial.cautions, trial.judged = [], [], [], set()
        return trial

    def text(self, path: str) -> str:
        """Return a text input, stated or implied; a text that is not allowed raises `DataError`."""
        input_text = self.texts.get(path)
        if input_text is None and path in IMPLIED:
            model = self.text("workload.model")
            input_text = self.catalogue.once(
                ("published", model), lambda: formats_of_checkpoint(self.catalogue, model)
            ).get(path)
        if input_text is None and path in FOLLOWS:
            return self.text(FOLLOWS[path])
        if input_text is None and (input_text := USUAL.get(path)) is None:
            group = path.partition(".")[0]
            raise DataError(
                f"{self.scenario.documents[group]}: {path} is missing in data/{DOCUMENTS[group]}"
            )
        if path in CHOICES and input_text not in CHOICES[path][1]:
            raise unknown(CHOICES[path][0], input_text, CHOICES[path][1], path)
        self.texts_used[path] = input_text
        return input_text

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
    def rebates(self) -> tuple[str, ...]:
        """Return the agreements that the scenario counts on, or else those of its system."""
        return self.system.rebates if self.scenario.rebates is None else self.scenario.rebates

    @property
    def is_shipped(self) -> bool:
        """Whether all that is no setting of one number is shipped with the program."""
        catalogue, scenario = self.catalogue, self.scenario
        if len(catalogue.folders) > 1 or catalogue.anchors or scenario.has_user_settings:
            return False
        texts = {**self.texts, **scenario.documents, "system": scenario.system}
        return not any(isinstance(text, str) and exists(text) for text in texts.values())

    def values(self, read: Reader = as_number) -> Values:
        """Return the mapping of all inputs in one reading, by default that of numbers."""
        rules = self.system.once(
            "rules",
            lambda: {**from_the_tree(self.system, self.catalogue), **from_the_lanes(self.system)},
        )
        follows = (
            {**rules, **FROM_THE_AGE}
            if LOSS in self.document_inputs or LOSS in self.setting_values
            else rules
        )
        return Values(
            self.resolve,
            read,
            self.setting_values,
            bounds,
            self.unit_of,
            follows,
            self.readings,
        )

    def resolve(self, path: str) -> Input:
        """Return the catalogue's input for a path.

        An unknown path or a missing value raises `DataError`.
        """
        catalogue_input = self.document_inputs.get(path)
        if catalogue_input is not None:
            return catalogue_input
        catalogue_input = self.shared.get(path)
        if catalogue_input is None:
            catalogue_input = self.dated(path)
            if catalogue_input is None:
                return self.documented(path)
            self.shared[path] = catalogue_input
        return catalogue_input

    def dated(self, path: str) -> Input | None:
        """Return the catalogue's input by date or family, or None for a document's."""
        group, subject_id, last = split_path(path)
        if group == "parts" and subject_id:
            return self.catalogue.part_input(subject_id, last, self.date)
        if group == "shares" and subject_id:
            return self.catalogue.share_price(subject_id, self.date)
        if group == "rebates" and last == "vested":
            return self.catalogue.vested(subject_id, self.date)
        if group == "rebates" and last == "reachable":
            return self.catalogue.reachable(subject_id, self.date)
        if (
            group == "performance"
            and {(subject_id, last), (self.catalogue.kind_of(subject_id), last)}
            & self.catalogue.calibration_rows.keys()
        ):
            return self.catalogue.practice(subject_id, last)
        return None

    def documented(self, path: str) -> Input:
        """Return the input of a path in a document; any other path raises `DataError`."""
        group, document_id, _ = split_path(path)
        if group in ("performance", "rebates") and document_id:
            self.document_inputs |= self.catalogue.document_inputs(
                group, document_id, group, f"{group}.{document_id}"
            )
            if path in self.document_inputs:
                return self.document_inputs[path]
        if group in ("money", "failures", "carbon", "site", "cluster"):
            self.document_inputs |= self.catalogue.document_inputs("defaults", group, group, group)
            if path in self.document_inputs:
                return self.document_inputs[path]
        raise unknown("input path", path, self.known_paths())

    def unused(self, input_values: Values) -> list[str]:
        """Return the paths that the user set without effect; an unknown path raises `DataError`."""
        idle = input_values.check_given(self.is_known)
        for path in idle:  # a bad value is refused whether or not something rests on it
            input_values.override(path, self.unit_of(path), input_values.given[path])
        return [path for path in idle if path not in self.judged and path in self.settings]

    def unused_notes(self, input_values: Values, subject: str) -> list[str]:
        """Return a note on each setting that moves nothing of a subject, such as "this bill"."""
        return [
            f"{path} is set, but {subject} does not rest on it"
            for path in self.unused(input_values)
        ]

    def unit_of(self, path: str) -> str:
        """Return the unit of an input that is set, even if the catalogue has no value for it."""
        attribute = attribute_of_path(path)
        return attribute.unit if attribute and self.is_known(path) else self.resolve(path).unit

    def known_paths(self) -> list[str]:
        """Return the paths of documents and parts, for the nearest name."""
        return [
            *self.document_inputs,
            *TEXTS,
            *(
                f"{group}.{attribute_name}"
                for group, attribute_name in input_attributes()
                if group in ("terms", "site", "workload", "cluster")
            ),
            *(
                f"parts.{part}.{attribute_name}"
                for part, attribute_name in self.catalogue.part_rows
            ),
            f"parts.{self.system.chip}.price",  # that a chip built up from parts takes too
        ]

    def states(self, path: str, input_values: Values) -> bool:
        """Say whether a document of the scenario or a setting gives an optional input."""
        return path in self.document_inputs or input_values.has(path)

    def is_known(self, path: str) -> bool:
        """Say whether a path is an input, even if this scenario does not rest on it."""
        group, subject_id, last = split_path(path)
        if group == "parts":
            return subject_id in self.catalogue.parts and (group, last) in input_attributes()
        if group in ("shares", "rebates", "performance") and subject_id:
            try:
                return self.resolve(path).path == path
            except DataError:
                return False
        return path in self.document_inputs or (
            not subject_id and (group, last) in input_attributes()
        )


@cache
def bounds(path: str) -> tuple[float, float]:
    """Return the smallest and largest value an input may take.

    Args:
        path: Path of the input.

    Returns:
        Bounds in the unit of the formulas; 0 and 1e30 for a derived value, which has no attribute.

    """
    attribute = attribute_of_path(path)
    return (attribute.minimum, attribute.maximum) if attribute else (0.0, 1e30)
