"""Activations that the layers of a training micro-batch keep, by recomputation level."""

from __future__ import annotations

from tco.core.formula import formula, total
from tco.core.types import Quantity
from tco.core.units import Byte, Pure
from tco.models.layers import LayerBlock, keys_and_values
from tco.performance.layer.chip_model import Machine
from tco.performance.layer.layers import hidden_state_part_count
from tco.performance.layer.operators import DENSE
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch import MicroBatchShape


@formula("byte", source="korthikanti2022")
def layer_activations(
    tokens: Pure,
    wide: Pure,
    masked: Pure,
    wide_split: Pure,
    narrow: Pure,
    tensor_parallel: Pure,
    element_size: Byte,
    mask_size: Byte = 1,
    wide_inputs: Pure = 0,
    narrow_inputs: Pure = 0,
    input_size: Byte = 2,
) -> Quantity:
    """Activations that layers keep of a micro-batch.

    M = T ((wide b + inputs b_in + masked b_mask) / sp + (narrow b + inputs b_in) / tp).

    Inputs of products are kept in the format these compute in. For a GPT layer in 16 bits wide = 4
    h, masked = 2 h, narrow = 12 h: s b h (10 + 24/t), or 34 s b h / t with sequence parallelism.
    """
    wide_bytes = (wide * element_size + wide_inputs * input_size + masked * mask_size) / wide_split
    return tokens * (
        wide_bytes + (narrow * element_size + narrow_inputs * input_size) / tensor_parallel
    )


@formula("byte", source="korthikanti2022")
def score_activations(
    tokens: Pure,
    sequence: Pure,
    heads: Pure,
    tensor_parallel: Pure,
    copies: Pure,
    masks: Pure,
    element_size: Byte,
    mask_size: Byte = 1,
) -> Quantity:
    """Scores that unfused attention keeps: T s H / tp (copies b + masks b_mask).

    With dropout that is 5 a s^2 b / t bytes.
    """
    return tokens * sequence * heads / tensor_parallel * (copies * element_size + masks * mask_size)


@formula("byte", source="korthikanti2022")
def held_activations(
    model_activations: Byte, slots: Pure, layers: Pure, in_flight: Pure
) -> Quantity:
    """Activations that the first stage holds: A slots / L x micro-batches in flight."""
    return model_activations * slots / layers * in_flight


def kept_activations(
    job: TrainingJob, machine: Machine, shape: MicroBatchShape, tokens: Quantity, recompute: str
) -> Quantity:
    """Return the activations of a micro-batch that all layers keep.

    Recomputed activations are held for one layer at a time.
    """
    software = job.software
    dropout_masks = int(software.dropout)
    block_terms, recomputed = [], []
    for block in job.model.blocks:
        heads = block.attention.heads
        products = _product_activations(job, machine, shape, tokens, block, recompute)
        scores = score_activations(
            tokens,
            job.sequence,
            heads,
            shape.tensor,
            1 + dropout_masks,
            dropout_masks,
            job.wide_size,
        )
        has_scores = heads and not software.fused
        layer = total("layer_activations", [products, scores] if has_scores else [products])
        if recompute == "full":
            recomputed.append(layer)
            layer = layer_activations(
                tokens, job.model.hidden, 0, shape.split, 0, shape.tensor, job.wide_size
            )
        elif recompute == "selective" and not software.fused:
            recomputed.append(scores)
            layer = products
        block_terms.append(held_activations(layer, block.layers, 1, 1))
    return total("kept_activations", [*block_terms, *recomputed[:1]])


def _product_activations(
    job: TrainingJob,
    machine: Machine,
    shape: MicroBatchShape,
    tokens: Quantity,
    block: LayerBlock,
    recompute: str,
) -> Quantity:
    """Return the inputs and results of a layer's products, without attention scores."""
    hidden, attention, part = job.model.hidden, block.attention, block.feed_forward
    states = hidden_state_part_count([block._replace(layers=1)]) * hidden
    feed_forward_width = part.width
    if part.experts:
        feed_forward_width = part.active * part.width + part.shared_width
    latent = projected = 0
    if attention.latent:
        latent = attention.q_rank + attention.cached
    else:
        projected = attention.heads * attention.qk_dim + keys_and_values(attention, 1)
    projected += (part.matrices - 1) * feed_forward_width
    if block.mixer:
        projected += 2 * block.mixer.projected
    narrow_inputs = attention.heads * attention.v_dim
    if part.experts:
        narrow_inputs += part.active * hidden
    wide_inputs = 0
    # fused software recomputes norms and activation functions, whose results are products' inputs
    if recompute != "selective" or not job.software.fused:
        wide_inputs = states
        narrow_inputs += feed_forward_width
    return layer_activations(
        tokens,
        states + latent,
        states * int(job.software.dropout),
        shape.split,
        projected,
        shape.tensor,
        job.wide_size,
        wide_inputs=wide_inputs,
        narrow_inputs=narrow_inputs,
        input_size=machine.operands[DENSE].input_size,
    )
