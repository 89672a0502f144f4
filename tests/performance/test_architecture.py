"""Every shipped model agrees with counts made elsewhere: tensor by tensor, and as published."""

import csv
import json
from pathlib import Path

import pytest

from tco import DataError
from tests.catalogue import CATALOGUE, Attention, load_model
from tests.registry import over

TABLE = Path(__file__).parents[1] / "golden" / "models.csv"
# `weights` are counted tensor by tensor from the same config by another library's model code
# (Hugging Face Transformers 5.23),
# those of Ministral 3 8B and 14B, Solar Open, GLM-4.7-Flash, Kimi K3 and MPT's learned positions by
# hand from the shapes of their tensors.
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
each_row = over({row["model"]: row for row in ROWS})
SCALE = {"M": 10**6, "B": 10**9, "T": 10**12}


def figure(text):
    """The value of a text such as '12.9B', and one unit of its last digit."""
    number, scale = text[:-1], SCALE[text[-1]]
    return float(number) * scale, scale / 10 ** len(number.partition(".")[2])


def test_the_table_holds_every_shipped_model():
    assert sorted(CATALOGUE.models) == [row["model"] for row in ROWS]


@each_row
def test_weights_are_counted_exactly(row):
    if row["weights"]:
        assert load_model(CATALOGUE, row["model"]).parameters == int(row["weights"])
    else:  # a parametric model: as near to its target as a step of the expert width allows
        assert load_model(CATALOGUE, row["model"]).parameters == pytest.approx(
            figure(row["published_total"])[0], rel=2e-3
        )


@each_row
def test_total_weights_are_those_published(row):
    model, adds = load_model(CATALOGUE, row["model"]), row["total_adds"]
    # named after a target, such as 1,024 billion, and no count is published
    if not row["published_total"]:
        return
    total = model.parameters + (model.prediction_parameters if adds.startswith("prediction") else 0)
    if adds.startswith("vision"):
        total += int(adds.split()[1])
    ends = {"prediction and its embeddings": 1, "prediction without embeddings": -1}.get(adds, 0)
    published, unit = figure(row["published_total"])
    assert abs(total + ends * model.embedding_parameters - published) <= unit / 2


@each_row
def test_active_weights_are_those_published(row):
    model, counts = load_model(CATALOGUE, row["model"]), row["active_counts"]
    if not row["published_active"]:
        experts = any(block.feed_forward.experts for block in model.blocks)
        lookups = model.hidden * ((0 if model.tied else model.vocabulary) + model.positions)
        assert experts or model.active_parameters == model.parameters - lookups
        return
    side = (
        {"no embedding": -1, "output embedding": 0, "both embeddings": 1}[counts]
        * model.hidden
        * model.vocabulary
    )
    published, unit = figure(row["published_active"])
    assert abs(model.active_parameters + side - published) < unit


@each_row
def test_every_published_count_names_its_source(row):
    model = load_model(CATALOGUE, row["model"])
    assert model.source == row["source"]
    assert model.source in CATALOGUE.sources


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("deepseek-v3", 70272 // 2),
        ("llama-3.1-405b", 516096 // 2),
        ("qwen2.5-72b", 327680 // 2),
    ],  # published bytes a token in BF16
)
def test_cache_per_token_is_the_published_one(name, numbers):
    assert load_model(CATALOGUE, name).cached == numbers


def test_layers_are_of_the_published_kinds():
    nano = load_model(CATALOGUE, "nemotron-3-nano-30b-a3b")
    kinds = {block.layers: bool(block.mixer) - bool(block.attention.heads) for block in nano.blocks}
    assert sum(block.layers for block in nano.blocks) == nano.layers == 52
    assert kinds == {23: 0, 6: -1}  # 23 mixers and 23 experts share a key
    assert sum(nano.mixers.values()) == 23
    assert sum(nano.attentions.values()) == 6
    oss = load_model(CATALOGUE, "gpt-oss-120b")
    assert {attention.window: layers for attention, layers in oss.attentions.items()} == {
        128: 18,
        0: 18,
    }
    flash = load_model(CATALOGUE, "deepseek-v4-flash")
    assert {attention.compression: layers for attention, layers in flash.attentions.items()} == {
        0: 2,
        4: 21,
        128: 20,
    }


def test_state_of_a_mixer_has_a_fixed_size():
    nano = load_model(CATALOGUE, "nemotron-3-nano-30b-a3b")
    (mixer,) = nano.mixers
    assert mixer.state_numbers == 64 * 64 * 128
    assert nano.fixed_numbers_per_sequence == 23 * (64 * 64 * 128 + 6144 * 3)
    assert nano.cached == 6 * 2 * 2 * 128


def test_indexer_costs_a_key_a_token():
    plain, sparse = load_model(CATALOGUE, "deepseek-v3"), load_model(CATALOGUE, "deepseek-v3.2")
    assert sparse.cached - plain.cached == 61 * 128


def test_own_file_reads_as_the_shipped_one(tmp_path):
    shipped = CATALOGUE.models["gpt-oss-20b"]
    config_path = tmp_path / "mine" / "config.json"
    config_path.parent.mkdir()
    config_path.write_text(shipped.read_text(encoding="utf-8"), encoding="utf-8")
    for name in (str(config_path), str(config_path.parent)):
        model = load_model(CATALOGUE, name)
        assert model.id == "mine"
        assert model.blocks == load_model(CATALOGUE, "gpt-oss-20b").blocks


def test_parametric_width_follows_the_target(tmp_path):
    config = json.loads(CATALOGUE.models["moe-3t"].read_text(encoding="utf-8"))
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({**config, "total_parameters": 2 * config["total_parameters"]}), encoding="utf-8"
    )
    small, large = load_model(CATALOGUE, "moe-3t"), load_model(CATALOGUE, str(path))
    assert (small.blocks[0].feed_forward.experts, small.blocks[0].feed_forward.active) == (512, 64)
    assert large.blocks[0].feed_forward.width % 16 == 0
    assert large.parameters / small.parameters == pytest.approx(2, rel=4e-3)
    small_shape = {
        "hidden_size": 256,
        "num_hidden_layers": 2,
        "n_routed_experts": 3,
        "num_experts_per_tok": 1,
        "total_parameters": 3 * 10**8,
    }
    path.write_text(json.dumps({**config, **small_shape}), encoding="utf-8")
    # half a step of the width of every expert
    assert (
        abs(load_model(CATALOGUE, str(path)).parameters - 3 * 10**8)
        <= 2 * (3 + 1) * 3 * 256 * 16 / 2
    )


def test_model_can_be_scaled_to_a_given_size():
    stated_model, resized_model = (
        load_model(CATALOGUE, "sparse-3t"),
        load_model(CATALOGUE, "sparse-3t", lambda: 2e12),
    )
    assert stated_model.parameters == pytest.approx(3e12, rel=0.005)
    assert resized_model.parameters == pytest.approx(2e12, rel=0.005)
    assert (
        resized_model.hidden,
        resized_model.layers,
        resized_model.blocks[0].feed_forward.experts,
    ) == (
        stated_model.hidden,
        stated_model.layers,
        stated_model.blocks[0].feed_forward.experts,
    )
    assert (
        load_model(CATALOGUE, "sparse-3t", lambda: 0.0) is stated_model
    )  # zero: as its config says
    # others are not asked for one
    assert load_model(CATALOGUE, "deepseek-v3", lambda: 1 / 0) is load_model(
        CATALOGUE, "deepseek-v3"
    )
    with pytest.raises(DataError, match=r"more than the .* weights beside the experts"):
        load_model(CATALOGUE, "sparse-3t", lambda: 1e9)


def test_sparse_models_pass_eight_of_their_experts():
    for name, active in (
        ("sparse-2t", 50e9),
        ("sparse-3t", 70e9),
        ("sparse-5t", 111e9),
        ("sparse-8t", 169e9),
    ):
        model = load_model(CATALOGUE, name)
        part = model.blocks[0].feed_forward
        assert (part.experts, part.active) == (512, 8)
        assert model.active_parameters == pytest.approx(active, rel=0.02)


def test_biases_are_counted_beside_the_weights():
    """Sides that share no factor: 3 heads of 5 on a width of 7, one of keys and values."""
    plain = Attention(3, 1, 5, 5)
    assert plain.parameters(7) == 7 * 15 + 2 * 7 * 5 + 15 * 7
    assert (
        plain._replace(in_bias=True, out_bias=True).parameters(7)
        == plain.parameters(7) + 15 + 2 * 5 + 7
    )
    assert (
        plain._replace(in_bias=True, gated=True).parameters(7)
        == plain.parameters(7) + 7 * 15 + 2 * 15 + 2 * 5
    )
