"""Operators compute, move, start and hold the kept amounts, whatever the chips' practice."""

from __future__ import annotations

import pytest

from tests.cli import document

DRAFT = ("--set", "workload.draft_tokens=1")
CLOSED = ("--set", "workload.concurrency=64", "--set", "workload.interactivity=1 token/s")
TRAINING = ("--set", "workload=llama-3.1-405b-training")
MIXTRAL = ("--set", "workload.model=mixtral-8x7b", "--set", "cluster.chips=256")
# what is asked: latent attention and experts, a format that software unpacks, mixers, sliding
# windows, a draft, steps of training
CASES = {
    "latent": ("gb200-nvl72", "--plan", "tp=8,ep=1", *CLOSED, *DRAFT),
    "unpacked": (
        "h100-hgx8",
        "--plan",
        "tp=8,ep=8",
        *CLOSED,
        *DRAFT,
        "--set",
        "workload.expert_format=nvfp4",
        "--set",
        "workload.precision=nvfp4",
    ),
    "mixers": (
        "h100-hgx8",
        "--plan",
        "tp=4,ep=1",
        *CLOSED,
        "--set",
        "workload.model=nemotron-3-nano-30b-a3b",
    ),
    "windows": ("mi355x-8", "--plan", "tp=8,ep=1", *CLOSED, "--set", "workload.model=gpt-oss-120b"),
    "draft": ("b200-hgx8", "--plan", "tp=8,ep=8", *CLOSED, "--set", "workload.draft_tokens=2"),
    "trainium": (
        "trn3-nl72x2",
        "--plan",
        "tp=16,ep=4",
        *CLOSED,
        *DRAFT,
        "--set",
        "workload.expert_format=mxfp4",
    ),
    "step": ("gb200-nvl72", *TRAINING, "--set", "cluster.chips=1152", "--plan", "tp=8,pp=18,dp=8"),
    "step of experts": ("h100-hgx8", *TRAINING, "--plan", "tp=4,pp=4,dp=16,ep=4", *MIXTRAL),
}


@pytest.mark.parametrize("case", CASES)
def test_what_operators_do(case, num_regression):
    answer = document("perf", *CASES[case])
    operator_quantities = {
        f"{operator['phase']} {operator['name']} {what}": operator[what]
        for operator in answer["operators"]
        for what in ("flops", "bytes", "launches")
        if operator[what]
    }
    memory_sizes = {
        f"memory {name}": size
        for name, size in dict(answer["memory_bytes"]).items()
        if size is not None
    }
    num_regression.check(
        operator_quantities | memory_sizes, default_tolerance={"rtol": 1e-9, "atol": 0}
    )
