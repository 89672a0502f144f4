"""Printed names of accelerators and models mean known parts, and none is guessed."""

import csv
import shlex
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from tests.catalogue import CATALOGUE, DATA, load_model
from tests.cli import document

KERNEL = {
    "op": "gemm",
    "kernel_source": "torch",
    "dtype": "bfloat16",
    "m": 4096,
    "n": 4096,
    "k": 4096,
    "time_us": 500,
}
SERVING = {
    "accelerator": "H200 SXM",
    "n_gpus": 8,
    "precision": "fp8",
    "framework": "vllm",
    "concurrency": 16,
    "tp": 8,
    "ep": 1,
}
SERVING |= {
    "isl_tokens": 128,
    "osl_tokens": 128,
    "total_tput_tok_s_per_gpu": 100,
    "date": "2026-06",
}


def read(rows):
    """Return the command and the reason for skipping that `tco validate` gives for each row."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        pd.DataFrame(rows).to_csv(path, index=False)
        return [
            (shlex.split(row["command"] or ""), row["skipped"])
            for row in document("validate", path, "--rows")["rows"]
        ]


@cache
def parts_of(names):
    """The part that each of some names means, empty where it is unknown, and why."""
    readings = read([{"accelerator": name, **KERNEL} for name in names])
    return {
        name: (command[2] if command else "", why)
        for name, (command, why) in zip(names, readings, strict=True)
    }


def models_of(rows):
    """The model of each of some rows, empty where it is unknown, and why."""
    readings = read([SERVING | row for row in rows])
    return [
        (
            next(
                (word.partition("=")[2] for word in command if word.startswith("workload.model=")),
                "",
            ),
            why,
        )
        for command, why in readings
    ]


def table(name):
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


PRINTED = {
    "NVIDIA Blackwell GPU (GB200)": "gb200-gpu",
    "NVIDIA Blackwell GPU (B200-SXM-180GB)": "b200-sxm",
    "NVIDIA GB300 (Blackwell Ultra)": "gb300-gpu",
    "gb300_nvl72": "gb300-gpu",
    "DGX GB200": "gb200-gpu",
    "NVIDIA GB200 186GB": "gb200-gpu",  # usable memory
    "HGX B200 NVL8": "b200-sxm",
    "B200 192 GB": "b200-sxm",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "H100-SXM5-80GB": "h100-sxm",
    "8x H100 SXM5": "h100-sxm",
    "Nvidia H100 SXM (8x)": "h100-sxm",
    "dgx h100": "h100-sxm",
    "NVIDIA H200 141GB HBM3e": "h200-sxm",
    "Grace Hopper GH200": "gh200",
    "NVIDIA GH200 480GB": "gh200",  # the driver prints the memory of the CPU
    "A100-SXM4-40GB": "a100-sxm-40gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "AMD Instinct MI300X 192GB HBM3": "mi300x",
    "AMD_Instinct_MI300X_OAM": "mi300x",
    "MI300X (gfx942)": "mi300x",
    "Instinct MI 325X": "mi325x",
    "mi355x": "mi355x",
    "TPU v7 (Ironwood)": "tpu-v7",
    "Google TPU v7 Ironwood": "tpu-v7",
    "TPU v6e (Trillium)": "tpu-v6e",
    "Cloud TPU v5e": "tpu-v5e",
    "TPU_V5P": "tpu-v5p",
    "Inferentia2": "inf2",
    "AWS Trainium 2": "trn2",
    "Trainium1 (instance not printed)": "trn1",
    "Trainium2 (trn2.48xlarge)": "trn2",
    "NVIDIA H200 NVL": "h200-nvl",
    "MI350X": "mi350x",
    "H20": "h20-sxm",
    "Intel\N{REGISTERED SIGN} Gaudi\N{REGISTERED SIGN} 3": "gaudi3",
}
OTHERS = [
    *(
        "",
        "GPU",
        "TPU",
        "A100",
        "A100 80GB",
        "NVIDIA Blackwell GPU",
        "NVIDIA Hopper",
        "Trainium",
        "Trainium (generation not printed)",
        "Gaudi",
        "v5e",
    ),
    *(
        "NVIDIA A100 80GB PCIe",
        "NVIDIA H100 PCIe",
        "H100 (PCIe)",
        "H100 NVL",
        "NVIDIA H100 80GB HBM2e",
    ),
    *(
        "H100 SXM 64GB",
        "H100-SXM5 96GB",
        "GH200 144GB HBM3e",
        "MI300A",
        "NVIDIA L40",
        "NVIDIA A800-SXM4-80GB",
    ),
    *("TPU v5p (Trillium)", "NVIDIA Hopper GPU (GB200)", "H100 or H200", "H100 (B200)", "Abacus 3"),
]


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_name_means_its_part(name):
    assert parts_of((*PRINTED, *OTHERS))[name] == (PRINTED[name], "")


@pytest.mark.parametrize("name", OTHERS)
def test_another_variant_is_never_taken_for_a_known_one(name):
    part, why = parts_of((*PRINTED, *OTHERS))[name]
    assert part == ""
    assert why.startswith("unknown-accelerator: ")


def test_every_name_and_part_means_itself():
    exact = {
        part: part
        for part, part_attributes in CATALOGUE.parts.items()
        if "hbm_bandwidth" in part_attributes
    }
    exact = {row["name"]: row["part"] for row in table("accelerators.csv")} | exact
    parts_by_name = parts_of(
        tuple(
            dict.fromkeys(
                spelling for name in exact for spelling in (name, name.upper(), f" {name} ")
            )
        )
    )
    for name, part in exact.items():
        assert {parts_by_name[spelling][0] for spelling in (name, name.upper(), f" {name} ")} == {
            part
        }, name
    assert {row["word"] for row in table("words/accelerator_aliases.csv")} & set(exact) == set()


def test_unknown_accelerator_is_skipped_with_the_reason():
    assert parts_of(("A100", "Abacus 3", "H100")) == {
        "A100": ("", "unknown-accelerator: 'A100' may be a100-sxm-40gb or a100-sxm-80gb"),
        "Abacus 3": ("", "unknown-accelerator: 'Abacus 3'"),
        "H100": ("h100-sxm", ""),
    }


MODELS = {
    "llama2-70b": "llama-2-70b",
    "llama2-70b-99.9": "llama-2-70b",
    "Llama-2-70B-chat-hf": "llama-2-70b",
    "Llama 2 70B LoRA": "llama-2-70b",
    "llama3.1-405b": "llama-3.1-405b",
    "LLAMA3.1_405B": "llama-3.1-405b",
    "meta-llama/Meta-Llama-3.1-405B-Instruct": "llama-3.1-405b",
    "nvidia/Llama-3.1-405B-Instruct-FP8": "llama-3.1-405b",
    "Llama31-70B pre-training": "llama-3.1-70b",
    "Llama-3.3-70B": "llama-3.3-70b",
    "meta-llama/Meta-Llama-3-8B": "llama-3-8b",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-r1",
    "DeepSeek-V3/R1 (671B-A37B)": "deepseek-v3",
    "DeepSeek-V3.1-NVFP4": "deepseek-v3",
    "DeepSeek-V3.2-Exp": "deepseek-v3.2",
    "Kimi-K2-Instruct": "kimi-k2",
    "moonshotai/Kimi-K2.5": "kimi-k2.5",
    "MiniMaxAI/MiniMax-M2": "minimax-m2",
    "MiniMax-M2.5": "minimax-m2.5",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "GPT OSS 120B": "gpt-oss-120b",
    "gpt-oss:20b": "gpt-oss-20b",
    "GPT3-175B": "gpt3-175b",
    "GPT-3 (175B)": "gpt3-175b",
    "gpt3": "gpt3-175b",
    "GPT-3 22B": "",
    "Llama 2 (70B)": "llama-2-70b",
    "llama-v2-7b": "llama-2-7b",
    "llama-70b": "",
    "GPT 7.5B": "megatron-gpt-7.5b",
    "Qwen3_235B_a22B": "qwen3-235b-a22b",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b",
    "MaxText 32B dense": "maxtext-32b",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "",
    "DeepSeek-V4-Flash cut to 16 layers": "",
    "zai-org/GLM-4.5-Air": "",
    "Llama-3.2-1B": "",
    "Qwen3-Coder-480B-A35B": "qwen3-coder-480b-a35b",
    "Qwen2.5-VL-7B-Instruct": "qwen2.5-7b",
    "moonshotai/Kimi-K2.6": "kimi-k2.5",
    "GLM-5.2-MXFP4": "glm-5.2",
    "Nemotron_3_5_Lightning": "nemotron-3.5-lightning-30b-a3b",
    "Llama-3.2-3B": "",
    "gpt-3.5": "",
    "our-13b": "",
}


@cache
def meant():
    return dict(zip(MODELS, models_of([{"model": name} for name in MODELS]), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_a_printed_model_means_its_architecture(name):
    model, why = meant()[name]
    assert model == MODELS[name]
    assert why.startswith("" if model else "unknown-model: ")


SHAPE = {
    "layers": 40.0,
    "hidden": 5120.0,
    "heads": 40.0,
    "kv_heads": 40.0,
    "ffn": 13824.0,
    "vocab": 32000.0,
    "params_b": 13.0,
}


def rows(*changes):
    return [{"model": "our-13b", **SHAPE, **change} for change in changes]


def test_a_row_may_state_its_own_model():
    model_names = [
        model
        for model, _ in models_of(rows({}, {"params_b": float("nan")}, {"model": "Llama-2-7B"}))
    ]
    assert model_names[2] == "llama-2-7b"
    for model in model_names[:2]:
        assert load_model(CATALOGUE, model)._replace(id="", source="", context=0) == load_model(
            CATALOGUE, "llama-2-13b"
        )._replace(id="", source="", context=0, note="")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"heads": float("nan"), "ffn": float("nan")},
            "neither the name 'our-13b' nor its shape is known; missing: heads, ffn",
        ),
        ({"experts": 8.0}, "nor its shape is known; missing: active"),
        ({"heads": 48.0}, "heads is 48, expected a divisor of hidden, 5120"),
        ({"params_b": 70.0}, "the figures make 13.02 billion parameters, params_b says 70"),
        ({"model": "layers=40"}, "missing hidden, heads, ffn, vocab"),
    ],
)
def test_unknown_model_is_skipped_with_the_reason(change, says):
    ((model, why),) = models_of(rows(change))
    assert model == ""
    assert why.startswith("unknown-model: ")
    assert says in why


def test_a_file_without_columns_of_shape_names_them_all():
    assert models_of([{"model": "x"}])[0][1].endswith("missing: layers, hidden, heads, ffn, vocab")
