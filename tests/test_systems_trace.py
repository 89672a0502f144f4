"""Every system of the catalogue, read as a trace, gives the numbers it gives as numbers."""

from __future__ import annotations

import pytest

from tco import evaluate
from tco.catalog.systems import load_system
from tco.chain.inputs import load_scenario
from tests.shipped import CATALOGUE

METRICS = ("tco_usd_per_chip_hour", "output_tokens_per_s_per_chip", "ttft_s", "usd_per_million_output_tokens")
WORKLOADS = [
    {"workload": "chat"},
    {"workload": "long-context", "workload.precision": "nvfp4"},
    {"workload": "agent", "workload.model": "qwen3.5-397b-a17b", "workload.precision": "w4a8", "workload.draft_tokens": "2"},
    {"workload": "chat", "workload.model": "gpt-oss-120b", "workload.concurrency": "512"},
]


@pytest.mark.parametrize("settings", WORKLOADS, ids=lambda found: "-".join(found.values()))
@pytest.mark.parametrize("system", CATALOGUE.ids("systems"))
def test_the_trace_is_the_number(system, settings):
    found = evaluate(load_scenario(CATALOGUE, system), settings | {"workload.interactivity": "5 token/s"}, catalogue=CATALOGUE, trace=True)
    for metric in METRICS:
        assert found.nodes[metric].value == pytest.approx(found.metrics[metric], rel=1e-9), metric


@pytest.mark.parametrize("system", CATALOGUE.ids("systems"))
def test_the_trace_of_training_is_the_number(system):
    base = load_scenario(CATALOGUE, "llama-3.1-405b-training-gb200-nvl72")
    scenario = base._replace(name=system, system=system, rebates=None)
    chips = "288" if int(load_system(CATALOGUE, system).chips) % 9 == 0 else "256"
    found = evaluate(scenario, {"workload.model": "llama-3.1-8b", "cluster.chips": chips}, catalogue=CATALOGUE, trace=True)
    for metric in ("tco_usd_per_chip_hour", "step_s", "mfu", "train_usd_per_trillion_tokens"):
        assert found.nodes[metric].value == pytest.approx(found.metrics[metric], rel=1e-9), metric
