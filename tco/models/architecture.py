"""Model architectures, read from the `config.json` that Hugging Face publishes for a model, or from stated figures.

An architecture is structure: whole numbers that say which operators exist and how large they are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tco.catalog import Catalogue
from tco.foundation.errors import DataError, unknown
from tco.foundation.files import is_folder
from tco.models.attention import Attention
from tco.models.config import Config, Layout, read_config
from tco.models.layers import Block, FeedForward, StateMixer
from tco.models.model import Architecture

__all__ = ["READERS", "Architecture", "Attention", "Block", "FeedForward", "Layout", "StateMixer", "architecture", "load_model"]

# model_type -> module and function that read its config: only that module is read in.
READERS = {
    "arctic": "families_routed.read_arctic",
    "baichuan": "families_gated.read_baichuan",
    "bloom": "families_plain.read_bloom",
    "chatglm": "families_gated.read_chatglm",
    "cohere": "families_gated.read_cohere",
    "cohere2": "families_gated.read_cohere2",
    "dbrx": "families.read_dbrx",
    "deepseek": "families_routed.read_deepseek1",
    "deepseek_v2": "latent.read_deepseek",
    "deepseek_v3": "latent.read_deepseek",
    "deepseek_v32": "latent.read_deepseek",
    "deepseek_v4": "latent.read_deepseek4",
    "ernie4_5": "families_gated.read_ernie",
    "ernie4_5_moe": "families_routed.read_ernie",
    "exaone": "families_gated.read_exaone",
    "falcon": "families_plain.read_falcon",
    "gemma": "families_gated.read_gemma",
    "gemma2": "families.read_gemma2",
    "gemma3": "families_gated.read_gemma3",
    "gemma3_text": "families_gated.read_gemma3",
    "glm4_moe": "families.read_glm4",
    "glm_moe_dsa": "latent.read_deepseek",
    "gpt2": "families.read_gpt2",
    "gpt_bigcode": "families_plain.read_gpt_bigcode",
    "gpt_neox": "families_plain.read_gpt_neox",
    "gpt_oss": "families.read_gpt_oss",
    "gptj": "families_plain.read_gptj",
    "granitemoe": "families_routed.read_granitemoe",
    "hunyuan": "families_routed.read_hunyuan",
    "hunyuan_v1_moe": "families_routed.read_hunyuan",
    "kimi_k2": "latent.read_deepseek",
    "kimi_k25": "latent.read_deepseek",
    "llama": "families.read_llama",
    "llama4": "families.read_llama4",
    "llama4_text": "families.read_llama4",
    "mamba2": "hybrids.read_mamba2",
    "minicpm3": "latent.read_minicpm3",
    "minimax_m2": "families.read_minimax",
    "mistral": "families.read_llama",
    "mixtral": "families.read_mixtral",
    "mpt": "families_plain.read_mpt",
    "nemotron": "families_plain.read_nemotron",
    "nemotron_h": "hybrids.read_nemotron",
    "olmo": "families_gated.read_olmo",
    "olmo2": "families_gated.read_olmo2",
    "olmoe": "families_routed.read_olmoe",
    "opt": "families_plain.read_opt",
    "parametric-moe": "latent.read_parametric",
    "phi": "families_plain.read_phi",
    "phi3": "families_gated.read_phi3",
    "phimoe": "families_routed.read_phimoe",
    "qwen2": "families.read_qwen2",
    "qwen2_moe": "families_routed.read_qwen2_moe",
    "qwen3": "families.read_qwen3",
    "qwen3_5_moe": "hybrids.read_qwen35",
    "qwen3_5_moe_text": "hybrids.read_qwen35",
    "qwen3_moe": "families.read_qwen3_moe",
    "qwen3_next": "hybrids.read_qwen35",
    "smollm3": "families_gated.read_smollm3",
    "stablelm": "families_plain.read_stablelm",
    "starcoder2": "families_plain.read_starcoder2",
}


SIZE = "total_parameters"  # key of a config whose other figures follow from it


def is_stated(name: str) -> bool:
    """Say whether the name of a model is a list of figures."""
    return "=" in name and "/" not in name and not name.endswith(".json")


def load_model(catalogue: Catalogue, name: str, size: Callable[[], float] | None = None) -> Architecture:
    """Return the architecture of a model of the catalogue, of figures stated in its place, or of a `config.json` a path leads to.

    A model of a given size may be asked for in another: `size` says how many parameters, zero as many as its config says.
    """
    if is_stated(name):
        from tco.models.stated import stated_model

        stated: Architecture = catalogue.once(("stated model", name), lambda: stated_model(name))
        return stated
    if not catalogue.once(("model by name", name), lambda: name in catalogue.models and not is_folder(Path(name))):
        path = Path(name) / "config.json" if is_folder(Path(name)) else Path(name)
        if path.suffix != ".json":
            raise unknown("model", name, catalogue.models)
        return architecture(of_size(read_config(path), size), path.resolve().parent.name, str(path))
    path = catalogue.models[name]
    content = of_size(catalogue.once(("config", path), lambda: read_config(path)), size)
    found: Architecture = catalogue.once((path, content.get(SIZE)), lambda: architecture(content, name, str(path)))
    return found


def of_size(content: dict[str, Any], size: Callable[[], float] | None) -> dict[str, Any]:
    """Return the config of a model, in another size if it is one of a given size and another is asked for."""
    wanted = round(size()) if size is not None and SIZE in content else 0
    return content | {SIZE: wanted} if wanted else content


def refusal(kind: str, where: str) -> DataError:
    """Return the error for a model type without a reader: why it has none, or the nearest that has one."""
    from tco.models.refused import REASONS

    if kind in REASONS:
        return DataError(f"{where}: model_type {kind!r} is not read: {REASONS[kind]}")
    return unknown("model_type", kind, READERS, where)


def architecture(content: dict[str, Any], name: str, where: str) -> Architecture:
    """Return the architecture a config describes; a model type not known here raises `DataError` by name.

    A model that also sees or hears keeps its language model in `text_config`; the rest is left out.
    """
    config = Config(content, where)
    kind = config.text("model_type")
    if kind not in READERS:
        raise refusal(kind, where)
    inner = config
    if config.has("text_config"):
        inner = config.section("text_config")
        inner.content.setdefault("tie_word_embeddings", content.get("tie_word_embeddings"))
    module, _, reader = READERS[kind].partition(".")
    made: Layout = getattr(import_module(f"tco.models.{module}"), reader)(inner)
    return Architecture(
        name,
        made.hidden,
        made.vocabulary,
        made.tied,
        made.context,
        made.blocks,
        config.text("_source"),
        config.text("_note"),
        made.positions,
        made.others,
        made.prediction_layers,
    )
