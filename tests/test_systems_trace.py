"""Every system of the catalogue, read as a trace, gives the numbers it gives as numbers."""

from __future__ import annotations

import pytest

from tco.catalog import load_catalogue
from tco.scenario import evaluate
from tco.studies.pools import scenario_named

CATALOGUE = load_catalogue()
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
    found = evaluate(scenario_named(CATALOGUE, system), settings | {"workload.interactivity": "5 token/s"}, catalogue=CATALOGUE, trace=True)
    for metric in METRICS:
        assert found.nodes[metric].value == pytest.approx(found.metrics[metric], rel=1e-9), metric
