"""Checked access to a model's `config.json`, with errors by key and a record of read keys."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from tco.core.errors import DataError, unknown
from tco.core.files import read_json
from tco.core.types import JsonMapping, JsonObject
from tco.models.layers import LayerBlock
from tco.models.spelling import (
    HARMLESS_KEYS,
    NAMED_STRUCTURE,
    PREDICTION_KEYS,
    SPELLINGS,
    STRUCTURAL_WORDS,
)


class ParsedConfig(NamedTuple):
    """Model dimensions and layer blocks read from a config."""

    hidden: int  # width of a token
    vocabulary: int  # tokens
    context: int  # most tokens of a sequence
    blocks: tuple[LayerBlock, ...]
    tied: bool = False  # the output shares the weights of the embeddings
    other_weights: int = 0  # beside blocks and embeddings
    lookups: int = 0
    positions: int = 0
    # a layer that predicts further tokens; None where it is like the last kind of layer
    prediction_block: LayerBlock | None = None


class Config:
    """One object of a config.json. A key that is null counts as missing.

    A key stands for all its spellings.

    Args:
        content: The object, by key.
        where: Path of the file, for errors.
        inside: Path of the object in the file, such as `text_config.`; empty at the top.
        keys_read: Receives the path of each key that is read.

    """

    def __init__(
        self,
        content: JsonMapping,
        where: str,
        inside: str = "",
        keys_read: set[str] | None = None,
    ) -> None:
        self.content = content
        self.where = where
        self.inside = inside
        self.keys_read: set[str] = set() if keys_read is None else keys_read

    def value(self, config_key: str) -> Any:
        """Return the value of a key under any of its spellings, or None."""
        spellings = (config_key, *SPELLINGS.get(config_key, ()))
        stated_values = (self.content.get(spelled_key) for spelled_key in spellings)
        config_value = next((stated for stated in stated_values if stated is not None), None)
        # a file may state a figure twice; a spelling with another value stays unread
        self.keys_read.update(
            f"{self.inside}{spelled_key}"
            for spelled_key in spellings
            if self.content.get(spelled_key) == config_value
        )
        self.keys_read.add(f"{self.inside}{config_key}")
        return config_value

    def has(self, config_key: str) -> bool:
        """Say whether a key is given."""
        return self.value(config_key) is not None

    def replaced(self, content: JsonMapping) -> Config:
        """Return a config with other content, which records the keys it reads in the same set."""
        return Config(content, self.where, self.inside, self.keys_read)

    def with_defaults(self, defaults: JsonMapping) -> Config:
        """Return a config with values for keys that the file leaves out."""
        absent = {
            config_key: usual_value
            for config_key, usual_value in defaults.items()
            if not self.has(config_key)
        }
        return self.replaced({**self.content, **absent})

    def wrong(self, config_key: str, expected: str) -> DataError:
        """Return the error for a key that is missing or holds something else than expected."""
        spellings = (config_key, *SPELLINGS.get(config_key, ()))
        spelling = next((spelt for spelt in spellings if self.content.get(spelt) is not None), None)
        if spelling is None:
            also = f", also spelled {', '.join(spellings[1:])}" if spellings[1:] else ""
            key_path = f"{self.inside}{config_key}"
            return DataError(
                f"{self.where}: the key {key_path!r} is missing, expected {expected}{also}"
            )
        mismatch = f"{self.inside}{spelling} is {self.content[spelling]!r}"
        return DataError(f"{self.where}: {mismatch}, expected {expected}")

    def misfit(self, what: str) -> DataError:
        """Return the error for figures that do not fit one another."""
        return DataError(f"{self.where}: {what}")

    def either(self, *config_keys: str) -> str:
        """Return the first key that is given, of several for one figure; else the first key."""
        for config_key in config_keys:
            if self.has(config_key):
                return config_key
        return config_keys[0]

    def integer(
        self, config_key: str, default: int | None = None, least: int = 1, most: int = 10**9
    ) -> int:
        """Return a whole number; without a default the key must be given."""
        config_value = self.value(config_key)
        if config_value is None and default is not None:
            return default
        if (
            isinstance(config_value, bool)
            or not isinstance(config_value, int)
            or not least <= config_value <= most
        ):
            raise self.wrong(config_key, f"a whole number from {least} to {most}")
        return config_value

    def count(self, config_key: str, most: int, default: int = 0) -> int:
        """Return a whole number that may be zero, such as how many of `most` layers are dense."""
        return self.integer(config_key, default, 0, most)

    def flag(self, config_key: str, default: bool = False) -> bool:
        """Return a truth value."""
        config_value = self.value(config_key)
        if config_value is None:
            return default
        if not isinstance(config_value, bool):
            raise self.wrong(config_key, "true or false")
        return config_value

    def text(self, config_key: str, default: str = "") -> str:
        """Return a text."""
        config_value = self.value(config_key)
        if config_value is None:
            return default
        if not isinstance(config_value, str):
            raise self.wrong(config_key, "a text")
        return config_value

    def section(self, config_key: str) -> Config:
        """Return a nested object."""
        config_value = self.value(config_key)
        if not isinstance(config_value, dict):
            raise self.wrong(config_key, "an object")
        return Config(config_value, self.where, f"{self.inside}{config_key}.", self.keys_read)

    def kinds(
        self,
        config_key: str,
        length: int,
        known_kinds: tuple[Any, ...],
        default: list[Any] | None = None,
    ) -> list[Any]:
        """Return the kind of each layer, from a list, or a text with a letter for each layer.

        Args:
            config_key: Key of the list.
            length: Number of layers; the list may be longer, and the rest is left out.
            known_kinds: Kinds that a layer may have.
            default: Kinds of the layers where the key is missing; without it the key must be given.

        """
        config_value = self.value(config_key)
        if config_value is None and default is not None:
            return default
        if not isinstance(config_value, list | str) or len(config_value) < length:
            raise self.wrong(config_key, f"a list of {length} kinds of layer")
        for kind in config_value:
            if isinstance(kind, str) and kind not in known_kinds:
                raise unknown(
                    f"kind of layer in {self.inside}{config_key}",
                    kind,
                    [str(kind_name) for kind_name in known_kinds],
                    self.where,
                )
            if kind not in known_kinds:
                raise DataError(
                    f"{self.where}: {self.inside}{config_key} holds {kind!r}, expected "
                    f"{', '.join(map(str, known_kinds))}"
                )
        return list(config_value[:length])

    def without(self, *config_keys: str) -> Config:
        """Return the config; a key that switches on what no reader supports is refused."""
        for config_key in config_keys:
            if self.value(config_key):
                raise self.wrong(config_key, "nothing here: models with it are not read")
        return self

    def unused(self, *config_keys: str) -> Config:
        """Return the config; record keys that need no reader as other keys say the same."""
        for config_key in config_keys:
            self.value(config_key)
        return self

    def layers(self, config_key: str = "num_hidden_layers") -> int:
        """Return the number of layers."""
        return self.integer(config_key, most=10_000)

    def prediction_layers(self) -> int:
        """Return the number of layers that predict further tokens."""
        if not self.flag("use_mtp", True):
            return 0
        counts = [self.count(config_key, 100) for config_key in PREDICTION_KEYS]
        return next((count for count in counts if count), 0)

    def layout(self, blocks: tuple[LayerBlock, ...], tied: bool = False) -> ParsedConfig:
        """Return the parsed config of some blocks, with the usual keys and one last norm.

        Args:
            blocks: Blocks of layers, in order.
            tied: Whether embeddings are tied where the config does not state it.

        """
        hidden = self.integer("hidden_size")
        context = self.integer("max_position_embeddings", 2048)
        shared = self.flag("tie_word_embeddings", tied)
        return ParsedConfig(hidden, self.integer("vocab_size"), context, blocks, shared, hidden)

    def unread_keys(self) -> tuple[str, ...]:
        """Return the keys that change the model's structure, are switched on and were not read."""
        return tuple(_unread(self.content, self.inside, self.keys_read))


def _unread(content: JsonMapping, inside: str, keys_read: set[str]) -> Iterator[str]:
    for config_key, config_value in content.items():
        key_path = f"{inside}{config_key}"
        sections_read = any(path.startswith(f"{key_path}.") for path in keys_read)
        if isinstance(config_value, dict) and sections_read:
            yield from _unread(config_value, f"{key_path}.", keys_read)
        elif config_value and key_path not in keys_read and _speaks_of_structure(config_key):
            yield key_path


def _speaks_of_structure(config_key: str) -> bool:
    if config_key in NAMED_STRUCTURE:
        return True
    is_structural = any(word in config_key.lower() for word in STRUCTURAL_WORDS)
    return is_structural and not any(
        fnmatchcase(config_key, harmless) for harmless in HARMLESS_KEYS
    )


# file beside a config.json in which modelopt states the formats of a checkpoint
FORMATS_FILE = "hf_quant_config.json"


def read_config(path: Path) -> JsonObject:
    """Return the content of a config.json, with the formats that a file beside it states."""
    config = _read_table(path)
    formats_file = path.with_name(FORMATS_FILE)
    if "quantization_config" in config or not formats_file.is_file():
        return config
    section = _read_table(formats_file).get("quantization")
    if not isinstance(section, dict):
        raise DataError(
            f"{formats_file}: quantization: expected a JSON object, as modelopt writes it"
        )
    return config | {"quantization_config": {"quant_method": "modelopt", **section}}


def _read_table(path: Path) -> JsonObject:
    content = read_json(path, "a JSON object")
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object")
    return content
