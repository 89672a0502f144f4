"""Checked access to a model's `config.json`, with errors by key and a record of read keys.

A reader of a model family asks a `Config` for the keys that it knows. Whatever changes the model's
structure and no reader asked for is listed by `Config.unread_keys`, so that it can be refused.
"""

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

# file beside a config.json in which modelopt states the number formats of a checkpoint
FORMATS_FILE = "hf_quant_config.json"


class ParsedConfig(NamedTuple):
    """Model dimensions and layer blocks read from a config."""

    hidden: int  # width of a token
    vocabulary: int  # tokens
    context: int  # greatest length of a sequence, tokens
    blocks: tuple[LayerBlock, ...]
    tied: bool = False  # whether the output layer shares the weights of the embeddings
    other_weights: int = 0  # parameters beside blocks and embeddings
    lookups: int = 0  # parameters of the embeddings of single layers
    positions: int = 0  # learned position embeddings, each as wide as a token
    # layer that predicts further tokens; None if it is like the last layer of the model
    prediction_block: LayerBlock | None = None


class Config:
    """One object of a config.json.

    A key that is null counts as missing, and a key stands for all its spellings. Every method that
    asks for a key records it in `keys_read`, also where the key is missing.

    Args:
        content: The object, by key.
        where: Path of the file, for errors.
        section_path: Path of the object in the file, such as `text_config.`; empty at the top.
        keys_read: Receives the path of each key that is read.

    """

    def __init__(
        self,
        content: JsonMapping,
        where: str,
        section_path: str = "",
        keys_read: set[str] | None = None,
    ) -> None:
        self.content = content
        self.where = where
        self.section_path = section_path
        self.keys_read: set[str] = set() if keys_read is None else keys_read

    def value(self, config_key: str) -> Any:
        """Return the value of a key under any of its spellings, or None."""
        spellings = self._spellings(config_key)
        stated_values = [self.content.get(spelling) for spelling in spellings]
        config_value = next((stated for stated in stated_values if stated is not None), None)
        self.keys_read.add(f"{self.section_path}{config_key}")
        # a second spelling counts as read only if it states the same value
        for spelling, stated in zip(spellings, stated_values, strict=True):
            if stated == config_value:
                self.keys_read.add(f"{self.section_path}{spelling}")
        return config_value

    def mark_read(self, *config_keys: str) -> Config:
        """Record keys as read, as other keys say the same, and return the config."""
        for config_key in config_keys:
            self.value(config_key)
        return self

    def refuse_keys(self, *config_keys: str) -> Config:
        """Refuse keys that switch on what no reader supports, and return the config.

        Args:
            *config_keys: Keys that have to be missing, null, false or 0.

        Raises:
            DataError: One of the keys is switched on.

        """
        for config_key in config_keys:
            if self.value(config_key):
                raise self.wrong(config_key, "nothing here: models with it are not read")
        return self

    def _spellings(self, config_key: str) -> tuple[str, ...]:
        return (config_key, *SPELLINGS.get(config_key, ()))

    def has(self, config_key: str) -> bool:
        """Say whether a key is given."""
        return self.value(config_key) is not None

    def replaced(self, content: JsonMapping) -> Config:
        """Return a config with other content, which records the keys it reads in the same set."""
        return Config(content, self.where, self.section_path, self.keys_read)

    def with_defaults(self, defaults: JsonMapping) -> Config:
        """Return a config with values for keys that the file leaves out."""
        absent = {
            config_key: usual_value
            for config_key, usual_value in defaults.items()
            if not self.has(config_key)
        }
        return self.replaced({**self.content, **absent})

    def wrong(self, config_key: str, expected: str) -> DataError:
        """Return the error for a key that is missing or has a wrong value.

        Args:
            config_key: Key under its usual spelling.
            expected: Words for the expected value.

        """
        spellings = self._spellings(config_key)
        for spelling in spellings:
            config_value = self.content.get(spelling)
            if config_value is not None:
                key_path = f"{self.section_path}{spelling}"
                return DataError(
                    f"{self.where}: {key_path} is {config_value!r}, expected {expected}"
                )
        also = f", also spelled {', '.join(spellings[1:])}" if spellings[1:] else ""
        key_path = f"{self.section_path}{config_key}"
        return DataError(
            f"{self.where}: the key {key_path!r} is missing, expected {expected}{also}"
        )

    def misfit(self, fault: str) -> DataError:
        """Return the error for figures that do not fit one another."""
        return DataError(f"{self.where}: {fault}")

    def either(self, *config_keys: str) -> str:
        """Return the first of several keys that is given, else the first key.

        Args:
            *config_keys: Keys that different families use for the same figure.

        """
        for config_key in config_keys:
            if self.has(config_key):
                return config_key
        return config_keys[0]

    def integer(
        self, config_key: str, default: int | None = None, least: int = 1, most: int = 10**9
    ) -> int:
        """Return a whole number.

        Args:
            config_key: Key of the number.
            default: Number where the key is missing; None requires the key.
            least: Least number that is allowed.
            most: Greatest number that is allowed.

        Raises:
            DataError: The value is no such number, or a required key is missing.

        """
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
        """Return a whole number from zero to `most`, such as the dense layers of a model."""
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
        """Return a nested object, which records the keys it reads in the same set."""
        config_value = self.value(config_key)
        if not isinstance(config_value, dict):
            raise self.wrong(config_key, "an object")
        return Config(config_value, self.where, f"{self.section_path}{config_key}.", self.keys_read)

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
            length: Number of layers; the rest of a longer list is left out.
            known_kinds: Kinds that a layer may have.
            default: Kinds of the layers where the key is missing; None requires the key.

        Raises:
            DataError: The value is no such list, or has an unknown kind.

        """
        config_value = self.value(config_key)
        if config_value is None and default is not None:
            return default
        if not isinstance(config_value, list | str) or len(config_value) < length:
            raise self.wrong(config_key, f"a list of {length} kinds of layer")
        key_path, kind_names = f"{self.section_path}{config_key}", [*map(str, known_kinds)]
        for kind in config_value:
            if kind in known_kinds:
                continue
            if isinstance(kind, str):
                raise unknown(f"kind of layer in {key_path}", kind, kind_names, self.where)
            raise DataError(
                f"{self.where}: {key_path} holds {kind!r}, expected {', '.join(kind_names)}"
            )
        return list(config_value[:length])

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
        """Return the parsed config of some blocks, with the usual keys for the dimensions.

        Args:
            blocks: Blocks of layers, in order.
            tied: Whether embeddings are tied where the config does not state it.

        """
        hidden = self.integer("hidden_size")
        return ParsedConfig(
            hidden=hidden,
            vocabulary=self.integer("vocab_size"),
            context=self.integer("max_position_embeddings", 2048),
            blocks=blocks,
            tied=self.flag("tie_word_embeddings", tied),
            other_weights=hidden,  # of the norm after the last layer
        )

    def unread_keys(self) -> tuple[str, ...]:
        """Return the paths of unread keys that are switched on and change the structure."""
        return tuple(_unread_paths(self.content, self.section_path, self.keys_read))


def _unread_paths(content: JsonMapping, section_path: str, keys_read: set[str]) -> Iterator[str]:
    for config_key, config_value in content.items():
        key_path = f"{section_path}{config_key}"
        is_read_section = any(path.startswith(f"{key_path}.") for path in keys_read)
        if isinstance(config_value, dict) and is_read_section:
            yield from _unread_paths(config_value, f"{key_path}.", keys_read)
        elif config_value and key_path not in keys_read and _is_structural(config_key):
            yield key_path


def _is_structural(config_key: str) -> bool:
    if config_key in NAMED_STRUCTURE:
        return True
    has_structural_word = any(word in config_key.lower() for word in STRUCTURAL_WORDS)
    is_harmless = any(fnmatchcase(config_key, pattern) for pattern in HARMLESS_KEYS)
    return has_structural_word and not is_harmless


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
