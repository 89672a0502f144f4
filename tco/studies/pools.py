"""Systems as pools that serve one phase or both: each at its own prices, on one workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tco.catalog import Catalogue
from tco.chain.inputs import Inputs, Scenario, load_scenario
from tco.chain.result import Result
from tco.chain.scenario import evaluate
from tco.chain.workloads import server_of
from tco.foundation.dates import period
from tco.foundation.errors import DataError, unknown
from tco.foundation.values import Values, as_number
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine


@dataclass(slots=True)
class Pool:
    """A scenario whose system serves one phase or both."""

    result: Result
    scenario: Scenario
    machine: Machine
    model: Architecture
    values: Values
    catalogue: Catalogue
    settings: Mapping[str, str]  # of the user

    def metric(self, name: str) -> float:
        """Return a metric of the cost, which every scenario has."""
        value = self.result.metrics[name]
        if value is None:
            raise DataError(f"{self.result.scenario}: {name} cannot be computed")
        return float(value)

    @property
    def misfit(self) -> str:
        """Why its racks have no cost at its site; empty where they have."""
        if self.result.metrics["tco_usd_per_used_chip_hour"] is not None:
            return ""
        return "; ".join(self.result.notes) or "it does not fit its site"

    @property
    def workload(self) -> tuple[Any, ...]:
        """What is served, when and for whom: only answers to one workload, of one date and one owner are held against each other."""
        texts, values = self.result.texts, self.values
        asked = (texts["workload.model"], texts["workload.precision"], values["workload.input_tokens"], values["workload.output_tokens"])
        return (*asked, period(texts["terms.date"]).last, self.result.perspective, texts.get("terms.owner"))


def scenario_named(catalogue: Catalogue, name: str) -> Scenario:
    """Return a scenario by name or file, or a system of the catalogue on the headline's site, terms and workload."""
    systems = catalogue.ids("systems")
    if name in catalogue.scenarios or name.endswith(".toml"):
        return load_scenario(catalogue, name)
    if name.partition("@")[0] not in systems:
        raise unknown("scenario or system", name, sorted({*catalogue.scenarios, *systems}))
    return load_scenario(catalogue, name)


def pool_of(catalogue: Catalogue, name: str, settings: Mapping[str, str], serving: Scenario | None = None) -> Pool:
    """Return a scenario as a pool; with `serving` it takes on that scenario's workload, at its own prices."""
    scenario = scenario_named(catalogue, name)
    if serving is not None:
        chosen = {path: text for path, text in scenario.settings.items() if not path.startswith("workload.")}
        chosen |= {path: text for path, text in serving.settings.items() if path.startswith("workload.")}
        where = serving.where if serving.own else scenario.where  # a person's own setting stays his own
        scenario = scenario._replace(documents=scenario.documents | {"workload": serving.documents["workload"]}, settings=chosen, where=where)
    inputs = Inputs(catalogue, scenario, dict(settings), {})
    if inputs.kind != "serving":
        raise DataError(f"{name}: its workload trains (workload.kind), a frontier is one of serving")
    values = inputs.values(as_number)
    if values.exists("workload.offline"):
        raise DataError(f"{name}: workload.offline is set; a frontier goes over every batch, leave it at zero")
    if values.input("workload.concurrency").value > 0:
        raise DataError(f"{name}: workload.concurrency is set; a frontier goes over every batch, leave it at zero")
    result = evaluate(scenario, settings, catalogue=catalogue, refuse=False)
    return Pool(result, scenario, *server_of(inputs, values), values, catalogue, settings)
