"""A checkpoint's number formats are those its quantization_config states, part by part."""

from __future__ import annotations

import json

import pytest

from tco import DataError, evaluate
from tco.models.architecture import load_model
from tco.models.layers import StoredFormats
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.models.test_configurations import EXPERTS, read

WEIGHTS = {"num_bits": 4, "type": "float", "group_size": 16}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}


def group(weights, activations=None, **rules):
    """Return a quantization_config of compressed-tensors with one group."""
    only = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": only}, **rules}


@pytest.mark.parametrize(
    ("section", "formats"),
    [
        (FP8, ("fp8", "fp8", "fp8", "")),
        ({**FP8, "modules_to_not_convert": ["self_attn"]}, ("bf16", "bf16", "fp8", "")),
        ({"quant_method": "awq", "bits": 4}, ("int4", "int4", "int4", "")),
        ({"quant_method": "gptq", "bits": 8}, ("int8", "int8", "int8", "")),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, ("int4", "int4", "int4", "")),
        (
            {
                "quant_method": "mxfp4",
                "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"],
            },
            ("bf16", "bf16", "w4a8", ""),
        ),
        (
            group(WEIGHTS, {"num_bits": 4}, kv_cache_scheme={"num_bits": 8, "type": "float"}),
            ("nvfp4", "nvfp4", "nvfp4", "fp8"),
        ),
        (
            group(WEIGHTS, {"num_bits": 4}, ignore=["re:.*self_attn.*", "lm_head"]),
            ("bf16", "bf16", "nvfp4", ""),
        ),
        (group({"num_bits": 4, "type": "int"}), ("int4", "int4", "int4", "")),
        (group({**WEIGHTS, "group_size": 32}, {"num_bits": 4}), ("mxfp4", "mxfp4", "mxfp4", "")),
        (group(WEIGHTS), ("w4a16", "w4a16", "w4a16", "")),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
            ("nvfp4", "nvfp4", "nvfp4", "fp8"),
        ),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {
                    "model.layers.*.mlp.experts": {"quant_algo": "NVFP4"},
                    "model.layers.*.self_attn": {"quant_algo": "FP8"},
                },
            },
            ("fp8", "fp8", "nvfp4", ""),
        ),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {
                    "weight": {"dtype": "fp4"},
                    "input_tensors": {"dtype": "fp4"},
                },
                "exclude": ["*self_attn*"],
            },
            ("bf16", "bf16", "mxfp4", ""),
        ),
    ],
)
def test_formats_are_those_of_each_part(section, formats):
    model = read(EXPERTS, quantization_config=section, torch_dtype="bfloat16")
    assert model.stored == StoredFormats(*formats)
    assert model.unread == ()


def test_a_rule_of_most_layers_counts():
    ignored = [f"model.layers.{layer}.self_attn*" for layer in range(3)]
    model = read(EXPERTS, quantization_config={**FP8, "ignore": ignored})
    assert model.stored == StoredFormats("bf16", "bf16", "fp8", "")


def test_a_method_that_is_not_known_is_named():
    model = read(EXPERTS, quantization_config={"quant_method": "novel"})
    assert (model.stored, model.unread) == (None, ("quantization_config",))


def test_a_checkpoint_without_quantization_is_as_wide_as_its_weights():
    assert read(EXPERTS, dtype="bfloat16").stored == StoredFormats("bf16", "bf16", "bf16", "")
    assert read(EXPERTS).stored is None


def test_a_chosen_model_is_priced_in_its_checkpoints_formats():
    model = {"workload.model": "kimi-k2.5"}
    result = evaluate("gb200-nvl72", model)
    formats = [result.texts[f"workload.{part}"] for part in ("precision", "expert_format")]
    assert formats == ["bf16", "int4"]
    assert any("experts INT4, as its checkpoint is stored" in note for note in result.notes)
    stated_formats = evaluate("gb200-nvl72", {**model, "workload.precision": "fp8"}).texts
    assert stated_formats["workload.precision"] == "fp8"
    assert "workload.expert_format" not in stated_formats  # it follows the precision


def test_the_formats_of_a_workloads_own_model_are_the_workloads():
    assert evaluate("gb200-nvl72").texts["workload.precision"] == "fp8"
    assert not any("checkpoint is stored" in note for note in evaluate("gb200-nvl72").notes)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("llama-3.1-70b", "its checkpoint is BF16: --set workload.precision=bf16"),
        ("sparse-2t", "its config states no format: --set workload.precision=bf16"),
    ],
)
def test_a_model_priced_in_another_format_than_its_checkpoint_says_so(model, reason):
    settings = {"workload.model": model, "workload.concurrency": "8"}
    (note,) = [
        note for note in evaluate("b200-hgx8", settings).notes if note.startswith(f"model {model}:")
    ]
    assert note.startswith(f"model {model}: weights FP8, as the workload is stated; {reason}")


@pytest.mark.parametrize(
    "settings",
    [
        {"workload.model": "llama-3.1-70b", "workload.precision": "fp8"},
        {"workload.model": "llama-3.1-70b", "workload.formats": "native"},
        {"workload.model": "layers=40,hidden=5120,heads=40,ffn=13824,vocab=32000"},
        {},
    ],
)
def test_formats_that_are_chosen_need_no_note(settings):
    notes = evaluate("b200-hgx8", {**settings, "workload.concurrency": "8"}).notes
    assert not any("as the workload is stated" in note for note in notes)


@pytest.mark.parametrize(
    ("model", "layers"),
    [("deepseek-v4-pro", 1), ("minimax-m2.5", 3), ("nemotron-3-ultra", 1)],
)
def test_shipped_models_show_their_draft_heads(model, layers):
    assert document("models", "show", model)["draft_layers"] == layers


def test_a_model_with_an_unread_key_is_not_added(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**EXPERTS, "num_sparse_layers": 2}), encoding="utf-8")
    refused = tco("models", "add", str(config), "--id", "own")
    assert refused.exit_code == 3
    assert "num_sparse_layers" in refused.stderr
    assert not (tmp_path / "data").exists()


@pytest.fixture
def checkpoint(tmp_path):
    """Return the config.json of a checkpoint as modelopt writes it, formats in a file beside."""
    config = tmp_path / "checkpoint" / "config.json"
    config.parent.mkdir()
    config.write_text(json.dumps(EXPERTS))
    section = {
        "quant_algo": "NVFP4",
        "kv_cache_quant_algo": "FP8",
        "group_size": 16,
        "exclude_modules": ["lm_head", "model.layers.*.self_attn*"],
    }
    formats = {"producer": {"name": "modelopt", "version": "0.37"}, "quantization": section}
    (config.parent / "hf_quant_config.json").write_text(json.dumps(formats))
    return config


def test_formats_of_a_file_beside_the_config_are_those_of_the_checkpoint(checkpoint):
    stored = load_model(CATALOGUE, str(checkpoint)).stored
    assert (stored.attention, stored.experts, stored.cache) == ("bf16", "nvfp4", "fp8")


def test_a_model_is_added_with_the_formats_beside_it(checkpoint, tmp_path):
    draft = tco("models", "add", str(checkpoint), "--data", str(tmp_path / "data"))
    assert draft.exit_code == 0, draft.stderr
    added = tmp_path / "data" / "models" / "checkpoint" / "config.json"
    assert load_model(CATALOGUE, str(added)).stored.experts == "nvfp4"


def test_a_file_beside_the_config_without_formats_is_refused(checkpoint):
    checkpoint.with_name("hf_quant_config.json").write_text("{}")
    with pytest.raises(DataError, match=r"hf_quant_config.json: quantization: expected"):
        load_model(CATALOGUE, str(checkpoint))
