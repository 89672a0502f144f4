"""Stated figures of known models give the known counts; figures that do not fit are named."""

import pytest

import tco
from tco import DataError
from tco.models.from_figures import figures_text
from tests.catalogue import CATALOGUE, load_model

LLAMA = "layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13824,vocab=32000"
GPT = "layers=96,hidden=12288,heads=96,ffn=49152,vocab=50257"
MIXTRAL = "layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=32000,experts=8,active=2"


@pytest.mark.parametrize(
    ("figures", "name", "error"),
    [
        (LLAMA, "llama-2-13b", 0),
        (f"{LLAMA},params_b=13", "llama-2-13b", 0),
        (MIXTRAL, "mixtral-8x7b", 0),
        (f"{MIXTRAL},params_b=46.7", "mixtral-8x7b", 0),
        ("layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256", "llama-3.1-70b", 0),
        (
            "layers=64,hidden=5120,heads=64,kv_heads=8,head_dim=128,ffn=25600,vocab=151936",
            "qwen3-32b",
            1e-6,
        ),  # norms of queries and keys
        (GPT, "gpt3-175b", 5e-4),  # biases and learned positions are no part of the figures
        (f"{GPT},params_b=175", "gpt3-175b", 5e-4),
    ],
)
def test_figures_of_a_known_model_give_its_counts(figures, name, error):
    stated_model, published_model = load_model(CATALOGUE, figures), load_model(CATALOGUE, name)
    assert stated_model.parameters == pytest.approx(published_model.parameters, rel=error, abs=0)
    assert stated_model.active_parameters == pytest.approx(
        published_model.active_parameters, rel=error, abs=0
    )
    assert (
        stated_model.layers,
        stated_model.hidden,
        stated_model.vocabulary,
        stated_model.cached,
    ) == (
        published_model.layers,
        published_model.hidden,
        published_model.vocabulary,
        published_model.cached,
    )
    assert stated_model.tied == published_model.tied
    assert (
        stated_model.blocks[0].feed_forward.matrices
        == published_model.blocks[0].feed_forward.matrices
    )


@pytest.mark.parametrize(
    ("figures", "matrices", "tied"),
    [
        (LLAMA, 3, False),
        (GPT, 2, True),
        (f"{GPT},kv_heads=8", 3, False),  # groups of heads share keys: later than GPT
        (f"{GPT},matrices=3", 3, False),
        (f"{LLAMA},matrices=2", 2, True),
        (f"{GPT},tied=no", 2, False),
        (f"{LLAMA},tied=yes", 3, True),
        (
            "layers=48,hidden=6144,heads=24,kv_heads=24,ffn=24576,vocab=32000,params_b=29",
            3,
            False,
        ),  # as wide as GPT's, but gated
        ("layers=28,hidden=1536,heads=12,kv_heads=2,ffn=8960,vocab=151936,params_b=1.54", 3, True),
        ("layers=28,hidden=1536,heads=12,kv_heads=2,ffn=8960,vocab=151936,params_b=1.78", 3, False),
    ],
)
def test_gate_and_tied_embeddings_follow_the_parameters(figures, matrices, tied):
    stated_model = load_model(CATALOGUE, figures)
    assert (stated_model.blocks[0].feed_forward.matrices, stated_model.tied) == (matrices, tied)


def test_the_text_and_the_columns_of_a_row_name_one_model():
    row = {
        "vocab": 32000.0,
        "layers": 40.0,
        "hidden": 5120.0,
        "heads": 40.0,
        "ffn": 13824.0,
        "params_b": 13.02,
    }
    text = figures_text(row)
    assert text == "layers=40,hidden=5120,heads=40,ffn=13824,vocab=32000,params_b=13.02"
    assert load_model(CATALOGUE, text).parameters == load_model(CATALOGUE, "llama-2-13b").parameters


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ("layers=40,hidden=5120", "missing heads, ffn, vocab"),
        (LLAMA.replace("heads=40,kv", "hedas=40,kv"), "unknown key 'hedas'; did you mean 'heads'"),
        (f"{LLAMA},layers=41", "layers is given twice"),
        (f"{LLAMA},experts=8", "missing active"),
        (f"{LLAMA},active=2", "missing experts"),
        (f"{LLAMA},experts=8,active=9", "active is 9, expected a whole number from 1 to 8"),
        (
            LLAMA.replace("heads=40", "heads=48", 1),
            "heads is 48, expected a divisor of hidden, 5120",
        ),
        (
            LLAMA.replace("kv_heads=40", "kv_heads=7"),
            "kv_heads is 7, expected a divisor of the 40 heads",
        ),
        (LLAMA.replace("layers=40", "layers=40.5"), "layers is 40.5, expected a whole number"),
        (LLAMA.replace("layers=40", "layers=0"), "layers is 0, expected a whole number"),
        (LLAMA.replace("layers=40", "layers=many"), "layers is 'many', expected a whole number"),
        (LLAMA.replace("layers=40", "layers="), "is no key=value"),
        (f"{LLAMA},matrices=4", "matrices is 4, expected a whole number from 2 to 3"),
        (f"{LLAMA},tied=perhaps", "tied is 'perhaps', expected true or false"),
        (f"{LLAMA},params_b=nan", "params_b is nan, expected billions"),
        (f"{LLAMA},params_b=70", "the figures make 13.02 billion parameters, params_b says 70"),
        (f"{LLAMA},", "is no key=value"),
    ],
)
def test_wrong_figures_are_named(figures, says):
    with pytest.raises(DataError, match=says.replace("(", r"\(")):
        load_model(CATALOGUE, figures)


def test_a_scenario_takes_stated_figures():
    short = {
        "workload.input_tokens": "1024",
        "workload.output_tokens": "128",
        "workload.interactivity": "20 token/s",
    }
    stated, published = (
        tco.evaluate("gb200-nvl72", {"workload.model": model, **short})
        for model in (LLAMA, "llama-2-13b")
    )
    assert stated.metrics == published.metrics
    with pytest.raises(DataError, match="unknown key 'lyers'; did you mean 'layers'"):
        tco.evaluate("gb200-nvl72", {"workload.model": LLAMA.replace("layers", "lyers"), **short})
