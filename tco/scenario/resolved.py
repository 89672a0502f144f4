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
    """A scenario whose documents are read and whose settings are applied.

    `resolve_scenario` of `tco.scenario.resolve` returns one. Some fields are filled while the
    scenario is evaluated.
    """

    catalogue: Catalogue
    scenario: Scenario
    # settings by input path, as texts; the text of an array says how many values the array has
    settings: dict[str, Any]
    variant: dict[str, str]  # variants of the system, by key
    # structure that an evaluation holds; None decides one during the evaluation
    structure: Structure | None = None
    # texts and quantities of a saved result, which replace all others
    saved_texts: Mapping[str, str] = field(default_factory=dict)
    system: System = field(init=False)
    texts: dict[str, str] = field(init=False, default_factory=dict)  # text inputs that are stated
    texts_used: dict[str, str] = field(init=False, default_factory=dict)  # text inputs read so far
    perspective: Perspective = field(init=False)
    document_inputs: dict[str, Input] = field(init=False, default_factory=dict)
    setting_values: dict[str, Given] = field(init=False, default_factory=dict)
    # shape of the arrays among the settings; empty for single values
    shape: tuple[int, ...] = field(init=False, default=())
    # inputs that decided structure, with the numbers that decided
    readings: Readings = field(init=False, default_factory=Readings)
    # part chosen at each place of the system tree that lists alternatives
    alternatives: dict[str, str] = field(init=False, default_factory=dict)
    # inputs that were compared to choose these parts
    compared: list[str] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    # notes that cast doubt on the answer; short answers show them too
    cautions: list[str] = field(init=False, default_factory=list)
    # text inputs that list the parts to choose among
    choosable: dict[str, str] = field(init=False, default_factory=dict)
    # catalogue inputs at the scenario's date, shared with all scenarios of that date
    shared: dict[str, Input] = field(init=False, default_factory=dict)
    # inputs that decided the shape of the system tree
    judged: set[str] = field(init=False, default_factory=set)
    # number of chips that a training job needs to finish in the requested days
    training_chips: float | None = field(init=False, default=None)

    def trial_of(self, system: System) -> ResolvedScenario:
        """Return a copy with another system, whose reads and notes leave this scenario as it is."""
        trial = copy(self)
        trial.system = system
        trial.readings = Readings(self.readings, self.readings.decisions)
        trial.texts_used = {}
        trial.choosable = {}
        trial.compared = []
        trial.notes = []
        trial.cautions = []
        trial.judged = set()
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
        if input_text is None:
            input_text = USUAL.get(path)
        if input_text is None:
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
        """Owner of the racks, whose agreements with suppliers count."""
        return self.text("terms.owner")

    @property
    def date(self) -> str:
        """Date of the prices."""
        return self.text("terms.date")

    @property
    def kind(self) -> str:
        """Kind of the workload: serving, training or stated rates."""
        return self.text("workload.kind")

    @property
    def rebates(self) -> tuple[str, ...]:
        """Agreements of the scenario if it names any, else those of its system."""
        return self.system.rebates if self.scenario.rebates is None else self.scenario.rebates

    @property
    def is_shipped(self) -> bool:
        """Whether the documents and rows of the scenario all ship with the program.

        Settings of single numbers may differ from the shipped ones.
        """
        catalogue, scenario = self.catalogue, self.scenario
        if len(catalogue.folders) > 1 or catalogue.anchors or scenario.has_user_settings:
            return False
        texts = {**self.texts, **scenario.documents, "system": scenario.system}
        return not any(isinstance(text, str) and exists(text) for text in texts.values())

    def values(self, read: Reader = as_number) -> Values:
        """Return the mapping of all inputs by path.

        Args:
            read: Turns an input into the value of the mapping, by default into its number.

        """
        rules = self.system.once(
            "rules",
            lambda: {**from_the_tree(self.system, self.catalogue), **from_the_lanes(self.system)},
        )
        if LOSS in self.document_inputs or LOSS in self.setting_values:
            rules = {**rules, **FROM_THE_AGE}
        return Values(
            self.resolve,
            read,
            self.setting_values,
            bounds,
            self.unit_of,
            rules,
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
        """Return a catalogue input that depends on the date or the chip family.

        Returns None for the path of a document.
        """
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
        """Return the input of a document; a path that no document has raises `DataError`."""
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
        unread_paths = input_values.check_given(self.is_known)
        for path in unread_paths:  # a bad value is an error even if nothing reads the input
            input_values.override(path, self.unit_of(path), input_values.given[path])
        return [path for path in unread_paths if path not in self.judged and path in self.settings]

    def unused_notes(self, input_values: Values, subject: str) -> list[str]:
        """Return a note on each setting without effect on a subject, such as "this bill"."""
        return [
            f"{path} is set, but {subject} does not rest on it"
            for path in self.unused(input_values)
        ]

    def unit_of(self, path: str) -> str:
        """Return the unit of an input that is set, even if the catalogue has no value for it."""
        attribute = attribute_of_path(path)
        return attribute.unit if attribute and self.is_known(path) else self.resolve(path).unit

    def known_paths(self) -> list[str]:
        """Return the paths that an error about an unknown path may suggest."""
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
            f"parts.{self.system.chip}.price",  # a chip built up from parts also takes a price
        ]

    def states(self, path: str, input_values: Values) -> bool:
        """Return whether a document of the scenario or a setting gives an optional input."""
        return path in self.document_inputs or input_values.has(path)

    def is_known(self, path: str) -> bool:
        """Return whether a path is an input, even if this scenario does not read it."""
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
