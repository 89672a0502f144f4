"""Model architectures, read from the `config.json` that Hugging Face publishes for a model, or from
stated figures.

An architecture is structure: whole numbers that say which operators exist and how large they are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tco.catalog import Catalogue
from tco.core.errors import DataError, unknown
from tco.core.files import is_folder
from tco.core.provenance import refuse_own
from tco.core.types import JsonObject
from tco.models.config import Config, ParsedConfig, read_config
from tco.models.layers import Architecture, Attention, FeedForward, LayerBlock, StateMixer
from tco.models.readers import latent_attention

__all__ = [
    "Architecture",
    "Attention",
    "FeedForward",
    "LayerBlock",
    "ParsedConfig",
    "StateMixer",
    "architecture",
    "load_model",
]

SIZE = "total_parameters"  # key of a config whose other figures follow from it


def is_stated_model(name: str) -> bool:
    """Say whether the name of a model is a list of figures.

    Args:
        name: Name, path, or list of figures such as `key=value`.

    """
    return "=" in name and "/" not in name and not name.endswith(".json")


def load_model(
    catalogue: Catalogue, name: str, size: Callable[[], float] | None = None
) -> Architecture:
    """Return the architecture of a model.

    Args:
        catalogue: Holds the models.
        name: Id of a model, list of figures, or path of a `config.json` or of its folder.
        size: Function that returns the number of parameters, for a model that exists in many sizes;
            zero keeps the number of the config.

    Raises:
        DataError: The model is unknown, or its config or figures cannot be read.

    """
    if is_stated_model(name):
        refuse_own("a model stated by its figures")
        from tco.models.from_figures import stated_model

        stated: Architecture = catalogue.once(("stated model", name), lambda: stated_model(name))
        return stated
    if not catalogue.once(
        ("model by name", name), lambda: name in catalogue.models and not is_folder(Path(name))
    ):
        path = Path(name) / "config.json" if is_folder(Path(name)) else Path(name)
        if path.suffix != ".json":
            raise unknown("model", name, catalogue.models)
        refuse_own(f"{path}: a model of your own")
        return architecture(
            _of_size(read_config(path), size), path.resolve().parent.name, str(path)
        )
    path = catalogue.models[name]
    if catalogue.is_overlay(path):
        refuse_own(f"{path}: a model of your own")
    content = _of_size(catalogue.once(("config", path), lambda: read_config(path)), size)
    found: Architecture = catalogue.once(
        (path, content.get(SIZE)), lambda: architecture(content, name, str(path))
    )
    return found


def _of_size(content: JsonObject, size: Callable[[], float] | None) -> JsonObject:
    wanted = round(size()) if size is not None and SIZE in content else 0
    return content | {SIZE: wanted} if wanted else content


def _reader_of(kind: str, where: str) -> Callable[[Config], ParsedConfig]:
    """Return the configuration reader of the model type `kind`.

    A type without a reader raises `DataError`. The message gives the reason, or the nearest type
    that has a reader.
    """
    from tco.models.readers.families import (
        READERS,
        REASONS,
    )  # the headline's model is read without them

    if kind in READERS:
        return READERS[kind]
    if kind in REASONS:
        raise DataError(f"{where}: model_type {kind!r} is not read: {REASONS[kind]}")
    raise unknown("model_type", kind, READERS, where)


def architecture(content: JsonObject, name: str, where: str) -> Architecture:
    """Return the architecture a config describes; a model type not known here raises `DataError` by
    name.

    A model that also sees or hears keeps its language model in `text_config`; the rest is left out.
    """
    config = Config(content, where)
    kind = config.text("model_type")
    read = latent_attention.READERS.get(kind) or _reader_of(kind, where)
    inner = config
    if config.has("text_config"):
        inner = config.section("text_config")
        inner.content.setdefault("tie_word_embeddings", content.get("tie_word_embeddings"))
    return Architecture(
        id=name, source=config.text("_source"), note=config.text("_note"), **read(inner)._asdict()
    )
