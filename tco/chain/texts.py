"""Inputs that are no numbers: what a scenario names, and what follows where it names nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tco.catalog import Catalogue
from tco.chain.practice import FAMILY, MATURE, OWN, attention_core_of
from tco.economics.rent import COMMITMENTS, COMMITTED
from tco.foundation.errors import DataError, unknown
from tco.hardware.silicon import USUAL_YIELD, YIELDS

if TYPE_CHECKING:
    from tco.catalog.systems import System
    from tco.chain.inputs import Scenario

DOCUMENTS = {"site": "sites", "terms": "terms", "workload": "workloads", "cluster": "clusters"}
TEXTS = {  # inputs that are no numbers, and the key of the document that holds them
    "terms.date": "date",
    "terms.perspective": "perspective",
    "terms.owner": "owner",
    "terms.yield": "yield",
    "terms.commitment": "commitment",
    "site.tenure": "tenure",
    "site.grid": "grid",
    "site.cooling": "cooling",
    "site.ready": "ready",
    "workload.kind": "kind",
    "workload.model": "model",
    "workload.precision": "precision",
    "workload.backward_precision": "backward_precision",
    "workload.attention_format": "attention_format",
    "workload.expert_format": "expert_format",
    "workload.cache_format": "cache_format",
    "workload.attention_core_format": "attention_core_format",
    "workload.engine": "engine",
    "workload.software": "software",
    "workload.practice": "practice",
    "workload.formats": "formats",
    "workload.attention": "attention",
    "workload.dropout": "dropout",
    "workload.expert_kernels": "expert_kernels",
    "workload.trained": "trained",
    "workload.gradient_sums": "gradient_sums",
    "workload.stage_transfers": "stage_transfers",
    "workload.programs": "programs",
    "workload.loss": "loss",
    "cluster.switch": "switch",
    "cluster.port": "port",
    "cluster.network": "network",
}
KINDS = ("serving", "training", "stated")  # of workloads: the last runs no model, its rates are inputs
FOLLOWS = {  # texts that follow another where they are not given
    "workload.backward_precision": "workload.precision",
    "workload.attention_format": "workload.precision",
    "workload.expert_format": "workload.precision",
    "workload.cache_format": "workload.precision",
}
CORE = "workload.attention_core_format"
IMPLIED = ("workload.attention_format", "workload.expert_format", CORE)  # texts that the model's checkpoint or the chip's engine may say
USUAL = {  # texts that are taken so where nothing says otherwise
    "terms.yield": USUAL_YIELD,
    "terms.commitment": COMMITTED,
    "workload.formats": "given",
    "cluster.network": "rdma",
    **dict.fromkeys(
        (
            *("workload.attention", "workload.dropout", "workload.expert_kernels", "workload.trained", "workload.gradient_sums"),
            *("workload.stage_transfers", "workload.programs", "workload.loss"),
        ),
        "native",  # as the software has it by its date
    ),
    "workload.engine": FAMILY,
    "workload.software": MATURE,
    "workload.practice": OWN,  # of the chip's own family
}


@dataclass(slots=True)
class Texts:
    """The texts of one scenario: those it states, those that follow, and those that were asked for."""

    catalogue: Catalogue
    scenario: Scenario
    system: System = field(init=False)
    texts: dict[str, str] = field(init=False, default_factory=dict)
    texts_used: dict[str, str] = field(init=False, default_factory=dict)

    def text(self, path: str) -> str:
        """Return an input that is a text."""
        if path not in self.texts:
            if path in IMPLIED and (found := self.implied().get(path)):
                self.texts_used[path] = found
                return found
            if path in FOLLOWS:
                return self.text(FOLLOWS[path])
            if path in USUAL:
                self.texts_used[path] = USUAL[path]
                return USUAL[path]
            group = path.partition(".")[0]
            raise DataError(f"{self.scenario.documents[group]}: {path} is missing in data/{DOCUMENTS[group]}")
        self.texts_used[path] = self.texts[path]
        return self.texts[path]

    def implied(self) -> dict[str, str]:
        """Return the formats that the model is published in whatever precision is asked, and that in which engines run attention on the chip."""
        from tco.chain.formats import published  # workloads that train serve in none

        model, chip = self.text("workload.model"), self.system.chip
        found: dict[str, str] = self.catalogue.once(
            ("implied", model, chip), lambda: published(self.catalogue, model) | {CORE: attention_core_of(self.catalogue, chip)}
        )
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
        """What the workload does."""
        kind = self.text("workload.kind")
        if kind not in KINDS:
            raise unknown("kind of workload", kind, KINDS, "workload.kind")
        return kind

    @property
    def tenure(self) -> str:
        """Whether the owner builds the site or rents it."""
        tenure = self.text("site.tenure")
        if tenure not in ("own", "colocation"):
            raise unknown("tenure", tenure, ("own", "colocation"), "site.tenure")
        return tenure

    @property
    def dies(self) -> str:
        """The model of the yield of the dies that are built up from their wafer."""
        model = self.text("terms.yield")
        if model not in YIELDS:
            raise unknown("model of yield", model, YIELDS, "terms.yield")
        return model

    @property
    def commitment(self) -> str:
        """What a renter commits himself to."""
        commitment = self.text("terms.commitment")
        if commitment not in COMMITMENTS:
            raise unknown("commitment", commitment, COMMITMENTS, "terms.commitment")
        return commitment

    @property
    def cooling(self) -> str:
        """What takes the heat out of the site's halls."""
        cooling = self.text("site.cooling")
        if cooling not in ("air", "liquid"):
            raise unknown("cooling", cooling, ("air", "liquid"), "site.cooling")
        return cooling


def texts_of(group: str, document: Mapping[str, Any]) -> dict[str, str]:
    """Return the inputs of a document that are no numbers, by path."""
    return {path: str(document[key]) for path, key in TEXTS.items() if path.startswith(group + ".") and key in document}
