"""Operators count the work of every token and read every weight once."""

from __future__ import annotations

import pytest

from tests.performance.servers import DecodePlan, PrefillPlan, flops_per_token, over_layers, server

LENGTH = 4096


def counted(pass_result, name):
    return sum(getattr(line, name) or 0.0 for line in pass_result.lines)


def test_a_prompt_on_one_chip_takes_the_work_of_its_tokens():
    """Every token passes all weights and attends to half of the others.

    The last token alone needs the output head.
    """
    model_server = server(
        "gb200-nvl72",
        workload__model="llama-3.1-8b",
        workload__precision="bf16",
        workload__input_tokens=str(LENGTH),
    )
    model = model_server.model
    head = 2 * model.hidden * model.vocabulary
    expected = LENGTH * float(flops_per_token(model, LENGTH, training=False)) - (LENGTH - 1) * head
    # norms are no products
    assert counted(model_server.prefill(PrefillPlan(1.0, 1.0)), "flops") == pytest.approx(
        expected, rel=1e-3
    )


def test_a_step_reads_every_weight_and_every_cache_once():
    model_server = server(
        "gb200-nvl72",
        workload__model="llama-3.1-8b",
        workload__precision="bf16",
        workload__input_tokens=str(LENGTH),
    )
    model, sequences = model_server.model, 16
    read = counted(
        model_server.decode(DecodePlan(1.0, 1.0, 1.0, 1.0, 0.0, float(sequences))), "bytes"
    )
    weights = 2 * (model.parameters - model.hidden * model.vocabulary)  # the embedding is looked up
    cache = sequences * (LENGTH + 512) * model.cached * 2
    assert read == pytest.approx(weights + cache, rel=0.03)  # and a little of the hidden states


def test_a_dense_layer_starts_the_kernels_of_its_parts():
    model_server = server(
        "gb200-nvl72",
        workload__model="llama-3.1-8b",
        workload__precision="bf16",
        workload__input_tokens=str(LENGTH),
    )
    attention, dense, head = (
        model_server.machine.counted(f"kernels_{kind}") for kind in ("grouped", "dense", "head")
    )
    assert (
        counted(model_server.decode(DecodePlan(1.0, 1.0, 1.0, 1.0, 0.0, 1.0)), "launches")
        == 32 * (attention + dense) + head
    )


# latent, windowed and recurrent attention; experts
MODELS = [
    "deepseek-v3",
    "gpt-oss-120b",
    "nemotron-3-nano-30b-a3b",
    "qwen3.5-397b-a17b",
]
SPLIT = (
    "attention core",
    "recurrent projections",
    "recurrence",
    "feed-forward",
    "shared expert",
    "experts",
    "output head",
)


def prompt_on(name, chips):
    return server(
        "gb200-nvl72",
        workload__model=name,
        workload__precision="bf16",
        workload__input_tokens=str(LENGTH),
    ).prefill(PrefillPlan(chips, chips))


@pytest.mark.parametrize("name", MODELS)
def test_a_prompt_takes_the_work_of_its_tokens_in_every_architecture(name):
    """Operators count the work of the architecture's closed form, as for a dense model above."""
    model = server(
        "gb200-nvl72",
        workload__model=name,
        workload__precision="bf16",
        workload__input_tokens=str(LENGTH),
    ).model
    head = 2 * model.hidden * model.vocabulary
    expected = LENGTH * float(flops_per_token(model, LENGTH, training=False)) - (LENGTH - 1) * head
    assert counted(prompt_on(name, 1.0), "flops") == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chips", [2.0, 8.0])
def test_chips_that_split_a_layer_do_its_work_together(name, chips):
    """All chips together count what one chip counts where heads, states and experts are divided.

    Inner widths are divided too. Routers and latents are repeated.
    """
    single_chip, together = prompt_on(name, 1.0), prompt_on(name, chips)
    for part in SPLIT:
        assert chips * over_layers(together, part, "flops") == pytest.approx(
            over_layers(single_chip, part, "flops"), rel=1e-12
        ), part
