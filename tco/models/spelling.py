"""Spellings of the keys of a `config.json`, structural keys and harmless ones.

They are those of `data/words/config_keys.toml`.
"""

from __future__ import annotations

from tco.core.files import data_directory, read_toml
from tco.core.types import JsonObject

_KEYS = read_toml(data_directory() / "words" / "config_keys.toml")
# spellings of each key, besides itself
SPELLINGS: dict[str, tuple[str, ...]] = {
    config_key: tuple(spelling for spelling in group if spelling != config_key)
    for group in _KEYS["spellings"]
    for config_key in group
}
# how many layers predict further tokens
PREDICTION_KEYS: list[str] = _KEYS["prediction"]
# sections of a multimodal model that hold its language model
TEXT_SECTIONS: list[str] = _KEYS["text_sections"]
# parts of a key's name that speak of the structure of a model
STRUCTURAL_WORDS: list[str] = _KEYS["structural_words"]
# structural keys that no word tells
NAMED_STRUCTURE: list[str] = _KEYS["named_structure"]
# patterns of keys that hold such a word, and change no count and no time
HARMLESS_KEYS: list[str] = _KEYS["harmless"]
# kind of a layer by its word in `layer_types`
LAYER_KINDS: dict[str, str] = {
    layer_word: layer_kind
    for layer_kind, layer_words in _KEYS["layer_kinds"].items()
    for layer_word in layer_words
}
# model types that are not read, with the reason
UNREAD_TYPES: JsonObject = _KEYS["unread"]
