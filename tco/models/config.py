"""A model's `config.json` behind checked access: what is missing or wrong is named with its file
and key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tco.core.errors import DataError, unknown
from tco.core.files import read_json
from tco.core.types import JsonObject
from tco.models.layers import LayerBlock


class ParsedConfig(NamedTuple):
    """Model dimensions and layer blocks read from a config."""

    hidden: int
    vocabulary: int
    context: int
    blocks: tuple[LayerBlock, ...]
    tied: bool = False
    others: int = 0
    positions: int = 0
    prediction_layers: int = 0


class Config:
    """One object of a config.json. A key that is null counts as missing."""

    def __init__(self, content: JsonObject, where: str, inside: str = "") -> None:
        self.content = content
        self.where = where
        self.inside = inside

    def has(self, key: str) -> bool:
        """Say whether a key is given."""
        return self.content.get(key) is not None

    def wrong(self, key: str, expected: str) -> DataError:
        """Return the error for a key that is missing or holds something else than expected."""
        name = f"{self.inside}{key}"
        if not self.has(key):
            return DataError(f"{self.where}: the key {name!r} is missing, expected {expected}")
        return DataError(f"{self.where}: {name} is {self.content[key]!r}, expected {expected}")

    def misfit(self, what: str) -> DataError:
        """Return the error for figures that do not fit one another."""
        return DataError(f"{self.where}: {what}")

    def either(self, *keys: str) -> str:
        """Return the key that is given, of several that releases of a family use for one figure:
        the first where none is.
        """
        return next((key for key in keys if self.has(key)), keys[0])

    def integer(
        self, key: str, default: int | None = None, least: int = 1, most: int = 10**9
    ) -> int:
        """Return a whole number; without a default the key must be given."""
        value = self.content.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def count(self, key: str, most: int, default: int = 0) -> int:
        """Return a whole number that may be zero, such as how many of `most` layers are dense."""
        return self.integer(key, default, 0, most)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a truth value."""
        value = self.content.get(key, default)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        value = self.content.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def section(self, key: str) -> Config:
        """Return a nested object."""
        value = self.content.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Config(value, self.where, f"{self.inside}{key}.")

    def kinds(
        self, key: str, length: int, known: tuple[Any, ...], default: list[Any] | None = None
    ) -> list[Any]:
        """Return a list that gives one of the `known` kinds for each of `length` layers."""
        value = self.content.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, list | str) or len(value) < length:
            raise self.wrong(key, f"a list of {length} kinds of layer")
        for kind in value:
            if isinstance(kind, str) and kind not in known:
                raise unknown(
                    f"kind of layer in {self.inside}{key}",
                    kind,
                    [str(name) for name in known],
                    self.where,
                )
            if kind not in known:
                raise DataError(
                    f"{self.where}: {self.inside}{key} holds {kind!r}, expected "
                    f"{', '.join(map(str, known))}"
                )
        return list(value[:length])

    def without(self, *keys: str) -> Config:
        """Return the config; one that switches on something no reader knows is refused."""
        for key in keys:
            if self.content.get(key):
                raise self.wrong(key, "nothing here: models with it are not read")
        return self

    def every_layer(self, key: str) -> Config:
        """Return the config; one whose experts are not on every layer is refused."""
        self.integer(key, 1, most=1)
        return self

    def layers(self, key: str = "num_hidden_layers") -> int:
        """Return the number of layers."""
        return self.integer(key, most=10_000)

    def layout(
        self, blocks: tuple[LayerBlock, ...], tied: bool = False, prediction: str = ""
    ) -> ParsedConfig:
        """Return the layout of a config with the usual keys and one last norm; `prediction` is the
        key of layers that predict ahead.
        """
        hidden = self.integer("hidden_size")
        context, ahead = (
            self.integer("max_position_embeddings", 2048),
            self.count(prediction, 100) if prediction else 0,
        )
        shared = self.flag("tie_word_embeddings", tied)
        return ParsedConfig(
            hidden, self.integer("vocab_size"), context, blocks, shared, hidden, 0, ahead
        )


def read_config(path: Path) -> JsonObject:
    """Return the content of a config.json."""
    config = read_json(path, "a JSON object")
    if not isinstance(config, dict):
        raise DataError(f"{path}: expected a JSON object")
    return config
