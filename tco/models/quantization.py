"""Number formats of a checkpoint, as `quantization_config` of its config.json states them.

Quantizers name the modules they leave out, or those they treat: the format of attention, experts
and dense parts is that of a module of each in most layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from typing import Any

from tco.core.types import JsonMapping
from tco.models.config import Config
from tco.models.layers import StoredFormats

SECTION = "quantization_config"
WIDE_TYPES = ("bfloat16", "float16")
WIDE = "bf16"
# formats by the names that quantizers have for them, in lower case
NAMED_FORMATS = {
    **dict.fromkeys(
        (
            *("fp8", "fbgemm_fp8", "finegrained_fp8", "modelopt_fp8", "fp8_pb_wo", "fp8_e4m3"),
            *("fp8_per_channel_per_token", "fp8_per_tensor"),
        ),
        "fp8",
    ),
    **dict.fromkeys(("nvfp4", "nvfp4_awq", "modelopt_fp4", "nvfp4_svdquant"), "nvfp4"),
    # weights in MXFP4 beside activations in 8 bits, as engines run such checkpoints
    **dict.fromkeys(("mxfp4", "w4a8_mxfp4_fp8", "w4a8_nvfp4_fp8"), "w4a8"),
    "w4a16_nvfp4": "w4a16",
    **dict.fromkeys(("w4a16_awq", "w4a8_awq", "int4_awq", "int4", "uint4"), "int4"),
    **dict.fromkeys(("mxfp8", "modelopt_mxfp8"), "mxfp8"),
    **dict.fromkeys(("w8a8_sq_per_channel", "int8_sq", "int8", "w8a16", "experts_int8"), "int8"),
}
# quantizers of whole numbers, whose bits stand under one of these keys
WHOLE_NUMBERS = ("awq", "gptq", "gptqmodel", "auto-round", "autoawq", "auto_gptq", "hqq")
BIT_KEYS = ("bits", "w_bit", "nbits", "wbits")
WHOLE_FORMATS = {4: "int4", 8: "int8"}
LEFT_OUT = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "exclude")
# where the layers stand in a model, and modules of each part in a layer
STACKS = (
    "model.layers",
    "model.language_model.layers",
    "language_model.model.layers",
    "backbone.layers",
)
MODULES = {
    "attention": ("self_attn.q_proj", "self_attn.o_proj", "self_attn.q_b_proj", "attn.wq"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.0.up_proj", "mlp.experts"),
    "shared": ("mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"),
    "dense": ("mlp.gate_proj", "mlp.up_proj", "feed_forward.w1"),
}
OTHER_STEMS = {"mlp.": ("block_sparse_moe.", "mixer.", "feed_forward."), "self_attn.": ("mixer.",)}

FormatOf = Callable[[str], str]  # format of a module by its name; raises LookupError if unknown


def stored_formats(config: Config, outer: Config) -> StoredFormats | None:
    """Return the formats of the parts of a checkpoint, or None where nothing is said.

    A method that is not known leaves the section unread.

    Args:
        config: Config of the language model.
        outer: Config of the whole model, which may state the formats instead.

    """
    content = outer.content.get(SECTION) or config.content.get(SECTION)
    if not isinstance(content, dict) or not content:
        types = (str(part.value("torch_dtype")) for part in (config, outer))
        is_wide = any(type_name.removeprefix("torch.") in WIDE_TYPES for type_name in types)
        return StoredFormats(WIDE, WIDE, WIDE) if is_wide else None
    try:
        format_of = _format_reader(content)
        parts = {part: _usual_format(config, format_of, part) for part in MODULES}
        cache = _cache_format(content)
    except (AttributeError, LookupError, StopIteration, TypeError, ValueError, re.error):
        return None
    config.value(SECTION)
    shared = any(
        config.value(expert_key)
        for expert_key in ("n_shared_experts", "shared_expert_intermediate_size")
    )
    if not config.value("num_experts"):
        return StoredFormats(parts["dense"], parts["attention"], parts["dense"], cache)
    experts = parts["experts"]
    if "fp4" in (config.value("expert_dtype"), content.get("expert_dtype")):
        experts = NAMED_FORMATS["mxfp4"]
    # without experts that every token passes only attention is dense in most layers
    dense = parts["shared" if shared else "attention"]
    return StoredFormats(dense, parts["attention"], experts, cache)


def _usual_format(config: Config, format_of: FormatOf, part: str) -> str:
    """Return the format that a part of the model has in most layers."""
    formats = Counter(_layer_format(format_of, part, layer) for layer in range(config.layers()))
    return formats.most_common(1)[0][0]


def _layer_format(format_of: FormatOf, part: str, layer: int) -> str:
    """Return the format of a part in one layer: what a rule says of any of its modules' names."""
    unnamed = format_of(f"{STACKS[0]}.{layer}.unnamed")
    formats = [format_of(module_name) for module_name in _module_names(part, layer)]
    return next((form for form in formats if form != unnamed), unnamed)


def _module_names(part: str, layer: int) -> list[str]:
    module_names = []
    for module in MODULES[part]:
        stems = [module]
        for stem, alternatives in OTHER_STEMS.items():
            if module.startswith(stem):
                stems += [
                    alternative_stem + module.removeprefix(stem)
                    for alternative_stem in alternatives
                ]
        module_names += [f"{stack}.{layer}.{stem}" for stack in STACKS for stem in stems]
    return module_names


def _format_reader(content: JsonMapping) -> FormatOf:
    """Return the function that names the format of a module."""
    listed = [pattern for exclusion_key in LEFT_OUT for pattern in content.get(exclusion_key) or ()]
    # rules of GPTQModel that begin so leave modules out
    rules = content.get("dynamic") or ()
    listed += [f"re:{rule[2:]}" for rule in rules if str(rule).startswith("-:")]
    skipped = _matcher(listed)
    default = _format_of_rules(content)

    def format_of(module_name: str) -> str:
        return WIDE if skipped(module_name) else default(module_name)

    return format_of


def _format_of_rules(content: JsonMapping) -> FormatOf:
    groups = content.get("config_groups")
    if isinstance(groups, dict) and groups:
        return _format_of_groups(content, list(groups.values()))
    listed = content.get("quantized_layers")
    if isinstance(listed, dict) and listed:
        return _format_of_listed(listed)
    form = _one_format(content)
    return lambda _: form


def _format_of_groups(content: JsonMapping, groups: list[JsonMapping]) -> FormatOf:
    """Return the format of a module by the first group of compressed-tensors that targets it."""
    return _format_by_rules(
        [
            (_matcher(group.get("targets") or ("Linear",)), _group_format(content, group))
            for group in groups
        ]
    )


def _format_of_listed(listed: JsonMapping) -> FormatOf:
    return _format_by_rules(
        [
            (_matcher([pattern]), NAMED_FORMATS[str(entry["quant_algo"]).lower()])
            for pattern, entry in listed.items()
        ]
    )


def _format_by_rules(rules: Sequence[tuple[Callable[[str], bool], str]]) -> FormatOf:
    """Return the format of a module by the first rule that targets it."""

    def format_of(module_name: str) -> str:
        return next((form for targets, form in rules if targets(module_name)), WIDE)

    return format_of


def _group_format(content: JsonMapping, group: JsonMapping) -> str:
    """Return the format of a group of compressed-tensors: bits and type of its numbers."""
    weights, activations = group["weights"], group.get("input_activations")
    algorithm = str(content.get("quant_algo", "")).lower()
    label = f"{group.get('format') or content.get('format') or ''} {algorithm}"
    bits, kind = int(weights["num_bits"]), weights.get("type", "float" if "fp" in label else "int")
    if kind == "int":
        return WHOLE_FORMATS[bits]
    if bits == 8:
        return "mxfp8" if "mxfp8" in label or weights.get("group_size") == 32 else "fp8"
    if bits != 4:
        raise LookupError(bits)
    if not activations:
        return "w4a16"
    if activations["num_bits"] == 8:
        return "w4a8"
    return "mxfp4" if "mxfp4" in label or weights.get("group_size") == 32 else "nvfp4"


def _one_format(content: JsonMapping) -> str:
    """Return the format of all modules that are not left out."""
    method = str(content.get("quant_method", "")).lower()
    bits = [int(content[bits_key]) for bits_key in BIT_KEYS if content.get(bits_key)]
    if method in WHOLE_NUMBERS or (bits and not method):
        return WHOLE_FORMATS[bits[0]]
    if method == "bitsandbytes":
        is_four = content.get("load_in_4bit") or content.get("_load_in_4bit")
        return "int4" if is_four else "int8"
    if method == "quark":
        return _quark_format(content["global_quant_config"])
    method_names = (
        str(content.get(method_key, "")).lower()
        for method_key in ("quant_algo", "quant_method", "format")
    )
    return next(
        NAMED_FORMATS[method_name] for method_name in method_names if method_name in NAMED_FORMATS
    )


def _quark_format(group: Any) -> str:
    weights, activations = group["weight"], group.get("input_tensors")
    weights = weights[0] if isinstance(weights, list) else weights
    kind = str(weights["dtype"]).lower()
    if kind != "fp4":
        return NAMED_FORMATS[kind]
    if not activations:
        return "w4a16"
    return "mxfp4" if str(activations.get("dtype", "")).lower() == "fp4" else "w4a8"


def _cache_format(content: JsonMapping) -> str:
    """Return the format of the cache, empty where nothing is said."""
    scheme, algorithm = content.get("kv_cache_scheme"), content.get("kv_cache_quant_algo")
    if isinstance(scheme, dict) and scheme.get("num_bits"):
        bits, kind = int(scheme["num_bits"]), scheme.get("type", "float")
        return WHOLE_FORMATS[bits] if kind == "int" else {4: "nvfp4", 8: "fp8"}[bits]
    return NAMED_FORMATS[str(algorithm or scheme).lower()] if algorithm or scheme else ""


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return the function that says whether a module's name is among patterns.

    A pattern is a class of layers, an expression after `re:`, a name with stars, or a name whose
    dotted parts stand in that of the module.
    """
    expressions = []
    for pattern in map(str, patterns):
        if pattern == "Linear":
            expressions.append(".*")
        elif pattern.startswith("re:"):
            expressions.append(f"(?:{pattern[3:]}).*")
        elif "*" in pattern:
            stem = translate(pattern).removesuffix(r"\Z").removesuffix(r"\z")
            expressions.append(rf"{stem}(?:\..*)?")
        else:
            expressions.append(rf"(?:.*\.)?{re.escape(pattern)}(?:\..*)?")
    if not expressions:
        return lambda _: False
    pattern_of_all = re.compile(
        "|".join(f"(?:{expression_text})" for expression_text in expressions)
    )
    return lambda module_name: pattern_of_all.fullmatch(module_name) is not None
