"""Words in the columns of measured rows, in the spellings of frameworks, papers and logs."""

import csv
import gzip
from pathlib import Path

import pytest

from tests.catalogue import CATALOGUE
from tests.validation.today import interpret_note, precisions

ROOT = Path(__file__).parents[2]


def cells(kind, column):
    with gzip.open(ROOT / f"data/measured/{kind}.csv.gz", "rt", encoding="utf-8") as stream:
        return {row[column] for row in csv.DictReader(stream)} - {""}


@pytest.mark.parametrize(
    ("text", "recompute", "parallel"),
    [
        ("full", "full", ""),
        ("Full", "full", ""),
        ("full recompute (uniform)", "full", ""),
        ("block, 12 layers", "partial", ""),
        ("every other layer", "partial", ""),
        ("full + sequence parallel", "full", "yes"),
        ("every layer", "full", ""),
        ("gradient checkpointing", "full", ""),
        ("activation_checkpointing", "full", ""),
        ("True", "full", ""),
        ("yes", "full", ""),
        ("qkv_proj_offloaded", "full", ""),
        ("selective", "selective", ""),
        ("selective + sequence parallel", "selective", "yes"),
        ("sequence-parallelism + selective", "selective", "yes"),
        ("SP + Selective recomputation", "selective", "yes"),
        ("selective, no sequence parallelism", "selective", "no"),
        ("selective (core_attn)", "selective", ""),
        ("core attention", "selective", ""),
        ("none", "none", ""),
        ("None", "none", ""),
        ("no", "none", ""),
        ("False", "none", ""),
        ("0", "none", ""),
        ("off", "none", ""),
        ("no recompute + SP", "none", "yes"),
        ("without recomputation", "none", ""),
        ("sequence parallel, no recomputation", "none", "yes"),
        ("minimal", "selective", ""),  # products with weights are kept, attention is computed again
        ("save_dot_except_mlp", "selective", ""),
        ("sequence parallel", "", "yes"),
        ("", "", ""),
        ("custom", "", ""),
        ("see notes", "", ""),
    ],
)
def test_recomputation(text, recompute, parallel):
    assert (
        interpret_note(CATALOGUE, "recomputation", text),
        interpret_note(CATALOGUE, "sequence parallel", text),
    ) == (recompute, parallel)


@pytest.mark.parametrize(
    ("text", "sharded", "offload"),
    [
        ("FULL_SHARD", "3", ""),
        ("ShardingStrategy.FULL_SHARD", "3", ""),
        ("FSDP", "3", ""),
        ("FSDP2", "3", ""),
        ("fsdp 64", "3", ""),
        ("FSDP -1", "3", ""),
        ("Fully Sharded Data Parallel", "3", ""),
        ("ZeRO-3", "3", ""),
        ("zero3", "3", ""),
        ("DeepSpeed ZeRO stage 3", "3", ""),
        ("deepspeed_stage_3_offload", "3", "yes"),
        ("DeepSpeed ZeRO-3 + CPU offload", "3", "yes"),
        ("optim_grads_params", "3", ""),
        ("HSDP", "3 hybrid", ""),
        ("HSDP 8", "3 hybrid", ""),
        ("HYBRID_SHARD", "3 hybrid", ""),
        ("_HYBRID_SHARD_ZERO2", "2 hybrid", ""),
        ("SHARD_GRAD_OP", "2", ""),
        ("DeepSpeed ZeRO-2", "2", ""),
        ("FSDP (optimizer+grad shard)", "2", ""),
        ("ZeRO-1", "1", ""),
        ("ZeRO-1 DP", "1", ""),
        ("distributed optimizer", "1", ""),
        ("dist-opt", "1", ""),
        ("ZeroRedundancyOptimizer", "1", ""),
        ("NO_SHARD", "0", ""),
        ("DDP", "0", ""),
        ("none", "0", ""),
        ("", "", ""),
        ("mystery", "", ""),
    ],
)
def test_sharding(text, sharded, offload):
    assert (
        interpret_note(CATALOGUE, "sharding", text),
        interpret_note(CATALOGUE, "offload", text),
    ) == (
        sharded,
        offload,
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("bf16", "bf16"),
        ("BFloat16", "bf16"),
        ("torch.bfloat16", "bf16"),
        ("fp16", "bf16"),
        ("bf16-mixed", "bf16"),
        ("Autocast:BF16+FP32Optimizer", "bf16"),
        ("bf16 (the log does not say; A100 has no FP8)", "bf16"),
        ("FP8", "fp8"),
        ("amp_fp8", "fp8"),
        ("float8", "fp8"),
        ("float8_e4m3fn", "fp8"),
        ("fp8 delayed scaling", "fp8"),
        ("FP8-CS", "fp8"),
        ("fp8 hybrid", "fp8"),
        ("fp8 (typical for the round, not in the log)", "fp8"),
        ("(fp8)", "fp8"),
        ("fp8 blockwise", "fp8_block"),
        ("FP8_BLOCK", "fp8_block"),
        ("block-scaled fp8", "fp8_block"),
        ("MXFP8", "mxfp8"),
        ("mx-fp8", "mxfp8"),
        ("NVFP4", "nvfp4"),
        ("nv_fp4", "nvfp4"),
        ("fp4", "fp4"),
        ("mxfp4", "mxfp4"),
        ("int8", "int8"),
        ("INT8 w8a8", "int8"),
        ("AWQ", "int4"),
        ("int4-awq", "int4"),
        ("w4a8", "w4a8"),
        ("fp32", ""),
        ("tf32", ""),
        ("", ""),
    ],
)
def test_precision(text, form):
    assert precisions(CATALOGUE, text)[:1] == ((form,) if form else ())


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("fp8 gemm/dispatch, bf16 mla/combine", ("fp8", "bf16")),
        ("FP16, Matmult-BF16, int8", ("bf16", "int8")),
        ("fp8/mxfp4", ("fp8", "mxfp4")),
        ("int8/bf16 (typical for the round, not in the log)", ("int8", "bf16")),
    ],
)
def test_several_precisions_in_the_order_of_the_text(text, forms):
    assert precisions(CATALOGUE, text) == forms


@pytest.mark.parametrize("text", ["1", "1.0", "True", "true", "YES", "y", "on", "Enabled", " yes "])
def test_yes(text):
    assert interpret_note(CATALOGUE, "answer", text) == "yes"


@pytest.mark.parametrize("text", ["0", "0.0", "False", "no", "N", "off", "None", "disabled", "-"])
def test_no(text):
    assert interpret_note(CATALOGUE, "answer", text) == "no"


@pytest.mark.parametrize("text", ["", "maybe", "4", "n/a"])
def test_neither_yes_nor_no(text):
    assert interpret_note(CATALOGUE, "answer", text) == ""


@pytest.mark.parametrize(
    ("subject", "text", "means"),
    [
        ("attention kernel", "FlashAttention-2", "flash-attention-2"),
        ("attention kernel", "flash_attn_v2", "flash-attention-2"),
        ("attention kernel", "FA1", "flash-attention-1"),
        ("attention kernel", "FlashAttention-3", "flash-attention-3"),
        ("attention kernel", "cuDNN", "cudnn"),
        ("attention kernel", "AITER", "aiter"),
        ("attention kernel", "flash", "native"),
        ("attention kernel", "splash", "fused"),
        ("attention kernel", "unfused", "unfused"),
        ("attention kernel", "Triton flash attention", "triton-attention"),
        ("attention kernel", "", ""),
        ("schedule", "1F1B", "1f1b"),
        ("schedule", "interleaved 1F1B", "interleaved"),
        ("schedule", "1f1b-interleaved", "interleaved"),
        ("schedule", "zero-bubble", "zero-bubble"),
        ("schedule", "ZBV", "zero-bubble"),
        ("schedule", "DualPipe", "dual-pipe"),
        ("schedule", "gpipe", ""),
    ],
)
def test_kernels_and_schedules(subject, text, means):
    assert interpret_note(CATALOGUE, subject, text) == means


def test_every_text_of_the_given_files_is_read():
    assert [
        text
        for text in cells("training", "activation_recompute")
        if not interpret_note(CATALOGUE, "recomputation", text)
    ] == []
    assert [
        text
        for text in cells("training", "sharding")
        if not interpret_note(CATALOGUE, "sharding", text)
    ] == []
    assert [
        text
        for kind in ("training", "inference")
        for text in cells(kind, "precision")
        if not precisions(CATALOGUE, text)
    ] == []
