"""Every system of the catalogue, read as a trace, gives the numbers it gives as numbers."""

from __future__ import annotations

import pytest

from tco import evaluate
from tests.catalogue import CATALOGUE

METRICS = (
    "tco_usd_per_chip_hour",
    "output_tokens_per_s_per_chip",
    "ttft_s",
    "usd_per_million_output_tokens",
)
WORKLOADS = [
    {"workload": "chat"},
    {"workload": "long-context", "workload.precision": "nvfp4"},
    {
        "workload": "agent",
        "workload.model": "qwen3.5-397b-a17b",
        "workload.precision": "w4a8",
        "workload.draft_tokens": "2",
    },
    {"workload": "chat", "workload.model": "gpt-oss-120b", "workload.concurrency": "512"},
]


# whole worlds of 64 and of 72
TRAINING = {
    "workload": "llama-3.1-405b-training",
    "workload.model": "llama-3.1-8b",
    "cluster.chips": "2304",
}
# fits every chip, and exchanges over all that joins them
PLAN = {
    "tp": "2",
    "pp": "2",
    "micro_batch": "1",
    "zero": "3",
}


def same(system, settings, plan, metrics):
    evaluation = evaluate(system, settings, plan, catalogue=CATALOGUE, trace=True)
    for metric in metrics:
        assert evaluation.nodes[metric].value == pytest.approx(
            evaluation.metrics[metric], rel=1e-9
        ), metric


@pytest.mark.parametrize("settings", WORKLOADS, ids=lambda settings: "-".join(settings.values()))
@pytest.mark.parametrize("system", CATALOGUE.ids("systems"))
def test_the_trace_is_the_number(system, settings):
    same(system, settings | {"workload.interactivity": "5 token/s"}, None, METRICS)


@pytest.mark.parametrize("system", CATALOGUE.ids("systems"))
def test_the_trace_of_training_is_the_number(system):
    same(
        system,
        TRAINING,
        PLAN,
        ("tco_usd_per_chip_hour", "step_s", "mfu", "train_usd_per_trillion_tokens"),
    )
