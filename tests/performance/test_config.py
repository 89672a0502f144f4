"""A broken config.json is refused with its file, its key and the nearest name."""

import json

import pytest

from tco import DataError
from tco.models.spelling import SPELLINGS
from tests.catalogue import CATALOGUE, READERS, load_model

LLAMA = json.loads(CATALOGUE.models["llama-3-8b"].read_text(encoding="utf-8"))


def refusal(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_model(CATALOGUE, str(path))
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "config.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"hidden_size": None},
            "config.json: the key 'hidden_size' is missing, expected a whole number from 1 to "
            "1000000000, also spelled n_embd, n_embed, d_model, model_dim",
        ),
        (
            {"hidden_size": "4096"},
            "config.json: hidden_size is '4096', expected a whole number from 1 to 1000000000",
        ),
        (
            {"vocab_size": True},
            "config.json: vocab_size is True, expected a whole number from 1 to 1000000000",
        ),
        (
            {"num_hidden_layers": 0},
            "config.json: num_hidden_layers is 0, expected a whole number from 1 to 10000",
        ),
        (
            {"num_hidden_layers": 10**8},
            "config.json: num_hidden_layers is 100000000, expected a whole number from 1 to 10000",
        ),
        (
            {"num_key_value_heads": 5},
            "config.json: num_key_value_heads is 5, expected a divisor of the 32 heads",
        ),
        (
            {"tie_word_embeddings": 1},
            "config.json: tie_word_embeddings is 1, expected true or false",
        ),
        (
            {"model_type": "qwen2", "use_sliding_window": True},
            "config.json: use_sliding_window is True, expected nothing here: models with it are "
            "not read",
        ),
        ({"text_config": 7}, "config.json: text_config is 7, expected an object"),
    ],
)
def test_a_bad_key_is_named(tmp_path, change, message):
    assert refusal(tmp_path, {**LLAMA, **change}) == message


def test_a_key_inside_a_section_is_named(tmp_path):
    config = json.loads(CATALOGUE.models["dbrx"].read_text(encoding="utf-8"))
    del config["ffn_config"]["moe_top_k"]
    assert "the key 'ffn_config.moe_top_k' is missing" in refusal(tmp_path, config)


def test_an_unknown_kind_of_layer_is_named(tmp_path):
    config = json.loads(CATALOGUE.models["gpt-oss-20b"].read_text(encoding="utf-8"))
    message = refusal(tmp_path, {**config, "layer_types": ["full_atention"] * 24})
    assert (
        "unknown kind of layer in layer_types 'full_atention'; did you mean 'full_attention'?"
        in message
    )
    assert "expected a list of 24 kinds of layer" in refusal(
        tmp_path, {**config, "layer_types": ["full_attention"]}
    )


def test_more_active_experts_than_experts_are_refused(tmp_path):
    config = json.loads(CATALOGUE.models["mixtral-8x7b"].read_text(encoding="utf-8"))
    assert "num_experts_per_tok is 9, expected a whole number from 1 to 8" in refusal(
        tmp_path, {**config, "num_experts_per_tok": 9}
    )


def test_target_size_below_the_other_weights_is_refused(tmp_path):
    config = json.loads(CATALOGUE.models["moe-3t"].read_text(encoding="utf-8"))
    assert "total_parameters is 1000, expected more than the" in refusal(
        tmp_path, {**config, "total_parameters": 1000}
    )


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, '{"model_type": 3}'])
def test_config_that_is_no_object_is_refused(tmp_path, content):
    refusal(tmp_path, content)


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(DataError, match="unknown model 'deepsek-v3'; did you mean 'deepseek-v3'"):
        load_model(CATALOGUE, "deepsek-v3")


def reading(path):
    """Return the size of a config's model, or the message of its refusal."""
    try:
        return str(load_model(CATALOGUE, str(path)).parameters)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("name", sorted(CATALOGUE.models))
def test_a_missing_key_has_a_default_or_is_named(tmp_path, name):
    config = json.loads(CATALOGUE.models[name].read_text(encoding="utf-8"))
    assert config["model_type"] in READERS
    config_path = tmp_path / "config.json"
    for key in sorted(config.keys() - {"model_type", "text_config"}):
        config_path.write_text(
            json.dumps({k: v for k, v in config.items() if k != key}), encoding="utf-8"
        )
        reading_outcome = reading(config_path)
        assert reading_outcome.isdigit() or any(
            f"{config_path}: the key {name!r} is missing" in reading_outcome
            and (name == key or f" {key}" in reading_outcome.partition("also spelled")[2])
            for name in (key, *SPELLINGS.get(key, ()))
        )
