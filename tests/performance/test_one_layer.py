"""The time of an operator of one layer is the same in serving and in training.

Recomputing all layers runs their forward part once more, so an operator's forward time is what its
line of a step then grows by.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli import document

TOKENS, PROMPTS = 4096, 2  # as many as a pass of an engine takes
CASES = (  # system, its chip, chips of a domain, model, format, tensor parallel
    ("h100-hgx8", "h100-sxm", 8, "llama-3-70b", "bf16", 8),
    ("h100-hgx8", "h100-sxm", 8, "mixtral-8x7b", "fp8", 4),
    ("gb200-nvl72", "gb200-gpu", 72, "llama-3.1-405b", "nvfp4", 8),
    ("gb200-nvl72", "gb200-gpu", 72, "kimi-k2", "mxfp8", 8),
    ("mi355x-8", "mi355x", 8, "llama-3-70b", "bf16", 8),
    ("trn2-nl16", "trn2", 16, "llama-3-70b", "bf16", 16),
    ("trn3-nl72x2", "trn3", 144, "mixtral-8x7b", "mxfp8", 4),
    ("h100-hgx8", "h100-sxm", 8, "nemotron-3-nano-30b-a3b", "bf16", 2),
)
# between an engine's chips, and its own time
APART = {
    "all-reduce",
    "dispatch",
    "combine",
    "host and scheduling",
}
# an engine makes logits of a prompt's last token, a job of every one
LOGITS = {
    "output head",
    "launches",
}


def operators(system: str, plan: str, settings: dict[str, str]) -> list[dict[str, Any]]:
    """Return the operators of a question."""
    sets = [word for path, text in settings.items() for word in ("--set", f"{path}={text}")]
    operator_rows: list[dict[str, Any]] = document("perf", system, *sets, "--plan", plan)[
        "operators"
    ]
    return operator_rows


@pytest.mark.parametrize(("system", "chip", "domain", "model", "form", "tensor"), CASES)
def test_serving_and_training_agree_on_every_operator_both_have(
    system, chip, domain, model, form, tensor
):
    workload_settings = {
        "workload.model": model,
        f"parts.{chip}.hbm_capacity": "10 TB",
        "workload.precision": form,
        "workload.software": "public",
    }
    # engines fuse less than training frameworks
    workload_settings |= {
        f"performance.{owner}.elementwise_traffic": "2" for owner in ("layer", "training")
    }
    job = workload_settings | {
        "workload": "training",
        "workload.global_batch": str(PROMPTS * domain // tensor),
        "workload.sequence_length": str(TOKENS),
    }
    job |= {
        "cluster.chips": str(domain),
        "workload.expert_kernels": "grouped",
        "workload.attention": "fused",
        "workload.programs": "eager",
    }
    axes = (
        f"tp={tensor},pp=1,cp=1,ep={1 if 'llama' in model else tensor},micro_batch={PROMPTS},zero=0"
    )
    rest = "sequence_parallel=no,tp_overlap=no,optimizer_offload=no"
    none, full = (
        {
            operator["name"]: operator
            for operator in operators(system, f"{axes},{rest},recompute={again}", job)
        }
        for again in ("none", "full")
    )
    engine = (
        workload_settings
        | {f"workload.{part}_format": form for part in ("attention", "expert")}
        | {"workload.cache_format": "bf16"}
    )
    engine |= {
        "workload.input_tokens": str(TOKENS),
        "workload.interactivity": "1 token/s",
        "workload.attention_core_format": "bf16",
    }
    pools = f"chips={tensor},tp={tensor},prefill_chips={tensor},prefill_tp={tensor}"
    served = {
        operator["name"]: operator
        for operator in operators(system, pools, engine)
        if operator["phase"] == "prefill"
    }
    assert set(served) <= full.keys() | APART | LOGITS
    both = set(served) & full.keys() - LOGITS
    assert {"elementwise", "attention projections", "attention core"} < both
    for name in sorted(both):
        for key in ("time_us", "flops", "bytes"):
            assert full[name][key] - none[name][key] == pytest.approx(
                served[name][key], rel=1e-12
            ), f"{name}: {key}"
