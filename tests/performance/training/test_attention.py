"""Attention in training by the generation of its kernel: published rates, dates and chips."""

from __future__ import annotations

import csv

import pytest

from tco import DataError, evaluate
from tco.performance.training.job import (
    ATTENTION,
    GENERIC,
    UNFUSED,
    attention_kernels,
    attention_of,
    known_words,
)
from tco.performance.training.micro_batch import CORE, MicroBatchShape, work_of
from tests.catalogue import CATALOGUE, DATA
from tests.performance.training.jobs import job

# one of each pattern
CHIPS = {
    "*": "tpu-v5p",
    "a100-*": "a100-sxm-80gb",
    "h100-*": "h100-sxm",
    "b200-*": "b200-sxm",
    "b300-*": "b300-sxm",
}
CHIPS |= {chip: chip for chip in ("mi355x", "mi300x")}  # of lists
PUBLISHED = [  # TFLOP/s of one pass with a causal mask and heads of 128, by tokens
    (
        "h100-sxm",
        "flash-attention-2",
        8192,
        333.0,
        299.0,
    ),  # arXiv 2407.08608; backward from 308 of both passes
    ("h100-sxm", "flash-attention-2", 2048, 298.0, None),
    ("h100-sxm", "cudnn-9.0", 8192, 529.0, None),
    ("h100-sxm", "flash-attention-3", 16384, 616.0, None),
    ("h100-sxm", "cudnn", 8192, None, 541.0),  # cudnn-frontend, H200
    ("gb200-gpu", "cudnn", 8192, None, 1332.0),
    ("gb200-gpu", "cudnn", 4096, None, 1148.0),
    ("gb300-gpu", "cudnn", 8192, None, 1435.0),
    ("mi355x", "aiter", 8192, None, 1034.0),  # HipKittens' files
]


def core_of(chip: str, kernel: str, tokens: int, **settings: str):
    """Return the attention core of one sequence through a model with heads of 128 numbers.

    The model runs on one chip.
    """
    size = {
        "workload": "training",
        "workload__model": "llama-3.1-8b",
        "cluster__chips": "8",
        "workload__global_batch": "8",
    }
    size |= {"workload__sequence_length": str(tokens), "workload__attention": kernel} | settings
    training_job, machine = job(chip, **size)
    operators = work_of(training_job, machine, MicroBatchShape(1, 1, 1, 1, 1, 0, 0)).operators
    return next(operator for operator in operators if operator.name == CORE)


@pytest.mark.parametrize(("chip", "kernel", "tokens", "forward", "backward"), PUBLISHED)
def test_a_kernel_reaches_its_published_rate(chip, kernel, tokens, forward, backward):
    item = core_of(chip, kernel, tokens)
    flops = float(item.flops) * item.layers
    if forward is not None:
        assert flops / float(item.time) / 1e12 == pytest.approx(forward, rel=0.06)
    if backward is not None:
        assert 2.5 * flops / float(item.backward) / 1e12 == pytest.approx(backward, rel=0.06)


WRITTEN = sorted(
    {
        (kernel.name, CHIPS[kernel.chips[0]])
        for kernel in attention_kernels(CATALOGUE)
        if kernel.name != UNFUSED
    }
)


@pytest.mark.parametrize(("kernel", "chip"), WRITTEN)
def test_five_products_backward_run_no_quicker_than_the_two_of_the_chip_forward(kernel, chip):
    item, quickest = core_of(chip, kernel, 4096), core_of(chip, GENERIC, 4096)
    assert float(item.backward) >= 2.5 * float(quickest.time) * (1 - 1e-9)
    assert item.backward_work[0].flops == pytest.approx(2.5 * item.flops)


def test_scores_that_are_kept_are_not_computed_anew():
    item = core_of("a100-sxm-80gb", UNFUSED, 4096)
    assert item.backward_work[0].flops == pytest.approx(2 * item.flops)
    anew = core_of("a100-sxm-80gb", "fused", 4096)
    assert float(item.backward) == pytest.approx(float(anew.backward) * 2 / 2.5)


def test_a_window_keeps_a_kernel_from_its_rate():
    """A window of 128 leaves a kernel 187 TFLOP/s backward, and a whole sequence over 1,000.

    Source: cudnn-frontend's table of gpt-oss on GB200; whole sequences have 8k tokens.
    """
    model = {"workload": "training", "workload__model": "gpt-oss-120b"}
    size = {
        "cluster__chips": "8",
        "workload__global_batch": "8",
        "workload__sequence_length": "8192",
        "workload__attention": "cudnn",
    }
    training_job, machine = job("gb200-gpu", **model, **size)
    cores = [
        item
        for item in work_of(training_job, machine, MicroBatchShape(1, 1, 1, 1, 1, 0, 0)).operators
        if item.name == CORE
    ]
    rates = sorted(
        2.5 * float(item.flops) * item.layers / float(item.backward) / 1e12 for item in cores
    )
    assert rates[0] == pytest.approx(187, rel=0.5)
    assert rates[-1] > 3 * rates[0]


@pytest.mark.parametrize(
    ("chip", "family", "engine", "month", "owner"),
    [
        ("a100-sxm-80gb", "nvidia", "megatron", "2021-04", "unfused"),
        ("a100-sxm-80gb", "nvidia", "megatron", "2026-03", "flash-attention-2-a100"),
        ("h100-sxm", "nvidia", "megatron", "2024-02", "flash-attention-2-h100"),
        ("h100-sxm", "nvidia", "megatron", "2024-06", "cudnn-9.0-h100"),
        ("h100-sxm", "nvidia", "family", "2024-07-31", "flash-attention-2-h100"),
        ("h100-sxm", "nvidia", "megatron", "2026-03", "cudnn-h100"),
        ("gb200-gpu", "nvidia", "megatron", "2026-03", "cudnn-b200"),
        ("gb300-gpu", "nvidia", "megatron", "2026-03", "cudnn-b300"),
        ("mi355x", "amd", "family", "2025-12", "aiter-mi355x"),
        ("mi450x", "amd", "family", "2026-12", "fused"),
        ("vr200-gpu", "nvidia", "family", "2026-12", "fused"),
        ("tpu-v5p", "tpu", "maxtext", "2024-06", "fused"),
    ],
)
def test_software_runs_the_last_kernel_of_its_month_that_is_written_for_the_chip(
    chip, family, engine, month, owner
):
    assert (
        attention_of(
            CATALOGUE, {"workload.software": month, "workload.engine": engine}, family, chip
        )
        == owner
    )


def test_older_kernels_make_longer_steps():
    steps = [
        evaluate(
            "h100-hgx8",
            {"workload": "llama-3.1-405b-training", "cluster.chips": "1024", ATTENTION: kernel},
            catalogue=CATALOGUE,
        ).metrics["step_s"]
        for kernel in (
            "unfused",
            "flash-attention-1",
            "flash-attention-2",
            "cudnn-9.0",
            "flash-attention-3",
        )
    ]
    assert steps == sorted(steps, reverse=True)


def test_an_unknown_kernel_is_refused_with_the_list():
    with pytest.raises(DataError, match=r"unknown workload\.attention 'nope'") as error:
        attention_of(CATALOGUE, {ATTENTION: "nope"}, "nvidia", "h100-sxm")
    assert all(word in str(error.value) for word in known_words(CATALOGUE)[ATTENTION])


def test_a_kernel_of_another_chip_is_refused_with_those_of_this_one():
    with pytest.raises(
        DataError,
        match=r"flash-attention-3, which is not written for a100-sxm-80gb; "
        r"expected one of .*flash-attention-2",
    ):
        attention_of(CATALOGUE, {ATTENTION: "flash-attention-3"}, "nvidia", "a100-sxm-80gb")


def test_every_kernel_and_its_date_have_a_source():
    for name in ("attention", "software", "engines"):
        with (DATA / f"training/{name}.csv").open(newline="") as lines:
            assert {
                row["source"] for row in csv.DictReader(lines) if "source" in row
            } <= CATALOGUE.sources.keys()


def test_every_kernel_has_rates_of_both_passes_and_a_source():
    for kernel in attention_kernels(CATALOGUE):
        if kernel.owner in (GENERIC, UNFUSED):
            continue
        for name in ("attention_forward_rate", "attention_backward_rate", "attention_half_span"):
            rate = CATALOGUE.practice(kernel.owner, name)
            assert rate.low < rate.value < rate.high
            assert rate.source in CATALOGUE.sources
