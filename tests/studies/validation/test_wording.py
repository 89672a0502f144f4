"""Words in the columns of measured rows, in the spellings of frameworks, papers and logs."""

import csv
import gzip
from pathlib import Path

import pytest

from tco.studies.validation.wording import precision, yes_or_no
from tests.shipped import CATALOGUE
from tests.studies.validation.today import meaning, precisions, recomputation, sharding

ROOT = Path(__file__).parents[3]


def cells(kind, column):
    with gzip.open(ROOT / f"data/measured/{kind}.csv.gz", "rt", encoding="utf-8") as stream:
        return {row[column] for row in csv.DictReader(stream)} - {""}


@pytest.mark.parametrize(
    ("text", "recompute", "parallel"),
    [
        ("full", "full", None),
        ("Full", "full", None),
        ("full recompute (uniform)", "full", None),
        ("block, 12 layers", "partial", None),
        ("every other layer", "partial", None),
        ("full + sequence parallel", "full", True),
        ("every layer", "full", None),
        ("gradient checkpointing", "full", None),
        ("activation_checkpointing", "full", None),
        ("True", "full", None),
        ("yes", "full", None),
        ("qkv_proj_offloaded", "full", None),
        ("selective", "selective", None),
        ("selective + sequence parallel", "selective", True),
        ("sequence-parallelism + selective", "selective", True),
        ("SP + Selective recomputation", "selective", True),
        ("selective, no sequence parallelism", "selective", False),
        ("selective (core_attn)", "selective", None),
        ("core attention", "selective", None),
        ("none", "none", None),
        ("None", "none", None),
        ("no", "none", None),
        ("False", "none", None),
        ("0", "none", None),
        ("off", "none", None),
        ("no recompute + SP", "none", True),
        ("without recomputation", "none", None),
        ("sequence parallel, no recomputation", "none", True),
        ("minimal", "selective", None),  # products with weights are kept, attention is computed again
        ("save_dot_except_mlp", "selective", None),
        ("sequence parallel", "", True),
        ("", "", None),
        ("custom", "", None),
        ("see notes", "", None),
    ],
)
def test_recomputation(text, recompute, parallel):
    assert recomputation(CATALOGUE, text) == (recompute, parallel)


@pytest.mark.parametrize(
    ("text", "level", "hybrid", "group", "offload"),
    [
        ("FULL_SHARD", 3, False, None, False),
        ("ShardingStrategy.FULL_SHARD", 3, False, None, False),
        ("FSDP", 3, False, None, False),
        ("FSDP2", 3, False, None, False),
        ("fsdp 64", 3, False, 64, False),
        ("FSDP -1", 3, False, None, False),
        ("Fully Sharded Data Parallel", 3, False, None, False),
        ("ZeRO-3", 3, False, None, False),
        ("zero3", 3, False, None, False),
        ("DeepSpeed ZeRO stage 3", 3, False, None, False),
        ("deepspeed_stage_3_offload", 3, False, None, True),
        ("DeepSpeed ZeRO-3 + CPU offload", 3, False, None, True),
        ("optim_grads_params", 3, False, None, False),
        ("HSDP", 3, True, None, False),
        ("HSDP 8", 3, True, 8, False),
        ("HYBRID_SHARD", 3, True, None, False),
        ("_HYBRID_SHARD_ZERO2", 2, True, None, False),
        ("SHARD_GRAD_OP", 2, False, None, False),
        ("DeepSpeed ZeRO-2", 2, False, None, False),
        ("FSDP (optimizer+grad shard)", 2, False, None, False),
        ("ZeRO-1", 1, False, None, False),
        ("ZeRO-1 DP", 1, False, None, False),
        ("distributed optimizer", 1, False, None, False),
        ("dist-opt", 1, False, None, False),
        ("ZeroRedundancyOptimizer", 1, False, None, False),
        ("NO_SHARD", 0, False, None, False),
        ("DDP", 0, False, None, False),
        ("none", 0, False, None, False),
        ("", None, False, None, False),
        ("mystery", None, False, None, False),
    ],
)
def test_sharding(text, level, hybrid, group, offload):
    assert sharding(CATALOGUE, text) == (level, hybrid, group, offload)


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
    assert precision(CATALOGUE, text) == form


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
    assert yes_or_no(CATALOGUE, text) is True


@pytest.mark.parametrize("text", ["0", "0.0", "False", "no", "N", "off", "None", "disabled", "-"])
def test_no(text):
    assert yes_or_no(CATALOGUE, text) is False


@pytest.mark.parametrize("text", ["", "maybe", "4", "n/a"])
def test_neither_yes_nor_no(text):
    assert yes_or_no(CATALOGUE, text) is None


@pytest.mark.parametrize(
    ("subject", "text", "means"),
    [
        ("attention kernel", "FlashAttention-2", "flash-attention-2"),
        ("attention kernel", "flash_attn_v2", "flash-attention-2"),
        ("attention kernel", "FA1", "flash-attention-1"),
        ("attention kernel", "FlashAttention-3", "fused"),
        ("attention kernel", "cuDNN", "fused"),
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
    assert meaning(CATALOGUE, subject, text) == means


def test_every_text_of_the_given_files_is_read():
    assert [text for text in cells("training", "activation_recompute") if not recomputation(CATALOGUE, text)[0]] == []
    assert [text for text in cells("training", "sharding") if sharding(CATALOGUE, text).level is None] == []
    assert [text for kind in ("training", "inference") for text in cells(kind, "precision") if not precision(CATALOGUE, text)] == []
