"""Model architectures, read from Hugging Face's `config.json` or from stated figures.

An architecture is structure: whole numbers that say which operators exist and how large they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tco.catalog import Catalogue
from tco.core.errors import DataError, unknown
from tco.core.files import is_folder
from tco.core.provenance import refuse_own
from tco.core.types import JsonObject, is_finite_number
from tco.models.config import Config, ParsedConfig, read_config
from tco.models.layers import BY_KEYS, Architecture, Attention, FeedForward, LayerBlock, StateMixer
from tco.models.quantization import SECTION as QUANTIZATION
from tco.models.quantization import stored_formats
from tco.models.readers import latent_attention
from tco.models.spelling import TEXT_SECTIONS

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


def is_stated_model(model_name: str) -> bool:
    """Say whether the name of a model is a list of figures.

    Args:
        model_name: Name, path, or list of figures such as `key=value`.

    """
    return "=" in model_name and "/" not in model_name and not model_name.endswith(".json")


def load_model(
    catalogue: Catalogue, model_name: str, size: Callable[[], float] | None = None
) -> Architecture:
    """Return the architecture of a model.

    Args:
        catalogue: Holds the models.
        model_name: Id of a model or a beginning that no other id has, list of figures,
            or path of a `config.json` or of its folder.
        size: Function that returns the number of parameters, for a model that exists in many sizes;
            zero keeps the number of the config.

    Raises:
        DataError: The model is unknown, or its config or figures cannot be read.

    """
    if is_stated_model(model_name):
        refuse_own("a model stated by its figures")
        from tco.models.from_figures import stated_model

        return catalogue.once(("stated model", model_name), lambda: stated_model(model_name))
    if not catalogue.once(
        ("model by name", model_name),
        lambda: model_name in catalogue.models and not is_folder(Path(model_name)),
    ):
        path = Path(model_name) / "config.json" if is_folder(Path(model_name)) else Path(model_name)
        if path.suffix != ".json":
            longer = [model for model in catalogue.models if model.startswith(f"{model_name}-")]
            if len(longer) == 1:
                return load_model(catalogue, longer[0], size)
            raise unknown("model", model_name, catalogue.models)
        refuse_own(f"{path}: a model of your own")
        return architecture(
            _of_size(read_config(path), size), path.resolve().parent.name, str(path)
        )
    path = catalogue.models[model_name]
    if catalogue.is_overlay(path):
        refuse_own(f"{path}: a model of your own")
    content = _of_size(catalogue.once(("config", path), lambda: read_config(path)), size)
    return catalogue.once(
        (path, content.get(SIZE)), lambda: architecture(content, model_name, str(path))
    )


def _of_size(content: JsonObject, size: Callable[[], float] | None) -> JsonObject:
    stated_size = round(size()) if size is not None and SIZE in content else 0
    return content | {SIZE: stated_size} if stated_size else content


def architecture(content: JsonObject, model_name: str, where: str) -> Architecture:
    """Return the architecture a config describes.

    A model that also sees or hears keeps its language model in a section, which alone is read. A
    model type that no reader knows is read by its keys.

    Args:
        content: The config.
        model_name: Id of the model.
        where: File of the config, for errors.

    Raises:
        DataError: The model is no decoder, or a key is missing or wrong.

    """
    config = Config(content, where)
    inner = _language_model(config)
    kind = inner.text("model_type") or config.text("model_type")
    read, reading = _reader_of(kind, config)
    try:
        parsed = read(inner)
    except DataError as error:
        if reading != BY_KEYS:
            raise
        raise DataError(
            f"{error}; model_type {kind!r} is of no known family and is read by its keys"
        ) from None
    parsed = parsed._replace(context=_extended_context(inner, parsed.context))
    stored, prediction_layers = stored_formats(inner, config), inner.prediction_layers()
    unread = inner.unread_keys()
    if stored is None and config.content.get(QUANTIZATION):
        unread = tuple(dict.fromkeys((*unread, QUANTIZATION)))
    model = Architecture(
        id=model_name,
        source=config.text("_source"),
        note=config.text("_note"),
        prediction_layers=prediction_layers,
        stored=stored,
        unread=unread,
        **parsed._asdict(),
    )
    if reading != BY_KEYS:
        return model._replace(reading=reading)
    counts = f"{model.parameters / 1e9:,.1f} B parameters, {model.active_parameters / 1e9:,.1f} B"
    return model._replace(reading=f"{BY_KEYS}: {counts} active")


def refuse_unread_keys(model: Architecture, where: str) -> None:
    """Refuse a model with a key of its structure that was not read.

    Raises:
        DataError: Names the keys, and what to do.

    """
    if model.unread:
        raise DataError(
            f"{where}: {unread_text(model)}. Remove a key that changes no layer of the model, or "
            "state the model by its figures: tco compare --set "
            "workload.model=layers=40,hidden=5120,heads=40,ffn=13824,vocab=32000"
        )


def unread_text(model: Architecture) -> str:
    """Return in words which keys of a config were not read."""
    unread_keys = ", ".join(model.unread)
    return f"not read, though named like structure: {unread_keys}; the counts may be wrong"


def _language_model(config: Config) -> Config:
    """Return the section that holds the language model, or the config itself."""
    sections = [
        section_key for section_key in TEXT_SECTIONS if isinstance(config.value(section_key), dict)
    ]
    if config.has("text_config"):
        sections = ["text_config"]
    section = next(iter(sections), None)
    if section is None:
        return config
    inner = config.section(section)
    tied = config.content.get("tie_word_embeddings")
    if inner.content.get("tie_word_embeddings") is None:
        inner = inner.replaced({**inner.content, "tie_word_embeddings": tied})
    return _language_model(inner)


def _reader_of(kind: str, config: Config) -> tuple[Callable[[Config], ParsedConfig], str]:
    """Return the reader of a model type, and what a reader of another name is to be told.

    The language model of `X_vl` or `X_text` is read as X. A type that is no decoder raises
    `DataError` with the reason.
    """
    if kind in latent_attention.READERS:  # the headline's model is read without the others
        return latent_attention.READERS[kind], ""
    from tco.models.readers.families import READERS, refusal

    outer = config.text("model_type")
    if reason := refusal(outer, config) or refusal(kind, config):
        raise DataError(f"{config.where}: model_type {outer or kind!r} is not read: {reason}")
    for type_name in (kind, outer):
        if type_name in READERS:
            return READERS[type_name], ""
    for type_name in (kind, outer):
        plain = _without_media(type_name)
        if plain in READERS:
            return READERS[plain], f"the language model, read as {plain}; other media are left out"
    from tco.models.readers.by_keys import read_by_keys

    return read_by_keys, BY_KEYS


def _without_media(kind: str) -> str:
    """Return the name of the language model inside a model type that also sees or hears."""
    language_type = re.sub(r"_(text|thinker|omni|vl|vision|audio|multimodal)(?=_|$)", "", kind)
    return re.sub(r"(?<=\d)v(?=_|$)", "", language_type)


def _extended_context(config: Config, context: int) -> int:
    """Return the context that YaRN gives: its factor times the original context."""
    if not isinstance(config.value("rope_parameters"), dict):
        return context
    scaling = config.section("rope_parameters")
    # of each kind of attention, or of all
    nested = [
        attention_kind
        for attention_kind, kind_scaling in scaling.content.items()
        if isinstance(kind_scaling, dict)
    ]
    scalings = [scaling.section(attention_kind) for attention_kind in nested] or [scaling]
    return max(context, *(_yarn_context(scaling, context) for scaling in scalings))


def _yarn_context(scaling: Config, context: int) -> int:
    kinds, factor = [scaling.value("rope_type"), scaling.value("type")], scaling.value("factor")
    if "yarn" not in kinds or not is_finite_number(factor) or factor <= 0:
        return context
    return round(factor * scaling.integer("original_max_position_embeddings", context))
