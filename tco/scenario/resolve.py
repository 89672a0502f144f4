"""Resolution of a scenario: reads its documents, applies its settings, and chooses its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tco.catalog import Catalogue
from tco.catalog.halls import COOLING_KINDS, hall_cooling
from tco.catalog.system_tree import (
    DOMAIN,
    System,
    bare_system,
    is_bare_chip,
    load_system,
)
from tco.core.errors import DataError, refuse_unknown, unknown
from tco.core.inputs import Values, given_of, joint_array_shape
from tco.core.provenance import KEPT, Given, making, period, refuse_own
from tco.core.types import JsonObject, Settings
from tco.cost.ownership import FOLDER, load_perspective, owner_of
from tco.performance.software_maturity import (
    SOFTWARE,
    SOFTWARE_ALIAS,
    canonical_software_name,
    inputs_of_software,
)
from tco.scenario.checkpoint import take_checkpoint
from tco.scenario.choices import (
    DOCUMENTS,
    TEXTS,
    texts_of,
)
from tco.scenario.document import HEADLINE_SYSTEM, Scenario, headline_scenario, variants_of
from tco.scenario.memo import stage
from tco.scenario.workload import KINDS, workload_kind
from tco.scenario.workload_sizing import CHIPS, DAYS, TRAIN_TOKENS, chips_in
from tco.system.wiring import refuse_bad_wires, refuse_unjoined

if TYPE_CHECKING:
    from tco.scenario.structure import Structure

from tco.scenario.resolved import GROUPS, ResolvedScenario


def resolve_scenario(
    catalogue: Catalogue,
    scenario: Scenario,
    settings: Settings,
    variant: Mapping[str, str],
    structure: Structure | None = None,
    earlier_values: Mapping[str, str] | None = None,
) -> ResolvedScenario:
    """Return a scenario with its documents read, its settings applied and its parts chosen.

    Args:
        catalogue: Holds the documents, parts and rows.
        scenario: The document of the scenario.
        settings: Values by input path, as a user sets them; an array asks for many values together.
        variant: Variants of the system by key; they win over those of the scenario.
        structure: Decisions of an earlier evaluation; None decides anew.
        earlier_values: Texts and quantities of an earlier answer, which replace all others.

    Raises:
        DataError: A document, path or value is unknown, or the system cannot be built.

    """
    inputs = ResolvedScenario(
        catalogue, scenario, dict(settings), dict(variant), structure, earlier_values or {}
    )
    documents = inputs.scenario.documents | _take_chosen_documents(inputs)
    inputs.scenario = inputs.scenario._replace(documents=documents)
    variants = {**inputs.scenario.variant, **inputs.variant}
    inputs.system = _system_of_scenario(inputs, variants)
    stated = _take_settings(inputs)
    _take_perspective(inputs)
    _take_date_and_software(inputs, stated)
    if inputs.structure is not None:
        inputs.readings.take(inputs.structure.readings)
    input_values = inputs.values()
    if inputs.system.bare:
        _size_bare_domain(inputs, input_values)
    if "workload.model" in stated:
        take_checkpoint(inputs, stated)
    _take_native_formats(inputs, input_values, stated)
    if inputs.kind == "training" and not inputs.saved_texts and input_values.exists(DAYS):
        texts = {
            path: setting.text
            for path, setting in stated.items()
            if path in inputs.settings and setting.array is None
        }
        _size_cluster(inputs, input_values, texts)
    if inputs.system.alternatives:
        _choose_parts(inputs, variants)
    stage("wires", inputs, input_values, lambda: _refuse_impossible_wires(inputs, input_values))
    inputs.judged |= set(input_values.inputs)
    return inputs


def _take_settings(inputs: ResolvedScenario) -> dict[str, Given]:
    """Read the documents, and return all settings by path; those of the user win."""
    scenario, catalogue = inputs.scenario, inputs.catalogue
    system, source = inputs.system, f"set by the scenario {inputs.scenario.name}"
    is_own = scenario.has_user_settings
    stated = {
        path: Given(setting_text, system.source, "analyst", system.where, is_own=False)
        for path, setting_text in system.settings.items()
    }
    for path, setting_text in scenario.settings.items():
        stated[path] = Given(setting_text, source, "assumed", scenario.where, is_own=is_own)
    for path, setting in inputs.settings.items():
        if path in TEXTS:
            stated[path] = given_of(path, setting, inputs.unit_of)
    _, defaults = catalogue.document("defaults", "cluster", "file")
    inputs.texts |= texts_of("cluster", defaults)
    # Terms come before the site, whose prices are of their date.
    for group, group_document in reversed(scenario.documents.items()):
        _read_document(inputs, group, group_document, stated)
    kind = KINDS.get(inputs.texts.get("workload.kind", ""))
    if kind is not None and kind.defaults:
        defaults_of_kind = catalogue.document_inputs("defaults", kind.defaults, "file", "workload")
        inputs.document_inputs = {**defaults_of_kind, **inputs.document_inputs}
    for path, setting in inputs.settings.items():
        stated[path] = given_of(path, setting, inputs.unit_of)
    inputs.settings = {path: stated[path].text for path in inputs.settings}
    for path, setting_text in inputs.saved_texts.items():
        stated[path] = Given(setting_text, KEPT, "assumed", KEPT, is_own=False)
    for path, setting in stated.items():
        _apply_setting(inputs, path, setting)
    inputs.shape = joint_array_shape(inputs.setting_values)
    return stated


def _take_perspective(inputs: ResolvedScenario) -> None:
    """Take in what the perspective states, and who owns the racks."""
    inputs.perspective = load_perspective(inputs.catalogue, inputs.text("terms.perspective"))
    perspective_names = inputs.catalogue.with_base(FOLDER, inputs.perspective.id, "perspective")
    for perspective_name in reversed(perspective_names):
        terms = inputs.catalogue.document_inputs(FOLDER, perspective_name, "perspective", "terms")
        inputs.document_inputs = {**terms, **inputs.document_inputs}
    inputs.texts.setdefault("terms.owner", owner_of(inputs.perspective, inputs.system))


def _take_date_and_software(inputs: ResolvedScenario, stated: Mapping[str, Given]) -> None:
    """Check the date of the terms, and take in what follows from it and from the software."""
    date = stated.get("terms.date")
    where = date.where if date else inputs.scenario.documents["terms"]
    period(inputs.date, f"{where}: terms.date")
    inputs.shared = inputs.catalogue.once(("dated", inputs.date), dict)
    if (region := inputs.texts.get("site.grid")) is not None:
        inputs.texts_used["site.grid"] = region
        inputs.document_inputs |= {
            "site.grid_carbon": inputs.catalogue.grid_carbon(region, inputs.date)
        }
    if SOFTWARE in inputs.texts:
        software = canonical_software_name(inputs.catalogue, inputs.texts[SOFTWARE])
        inputs.texts[SOFTWARE] = software
        inputs.document_inputs |= inputs_of_software(inputs.catalogue, inputs.system.chip, software)


def _size_bare_domain(inputs: ResolvedScenario, input_values: Values) -> None:
    """Give a chip alone the domain that its settings state."""
    chip_id = inputs.scenario.system
    chip = f"parts.{chip_id}"
    domain = input_values.structure(f"{chip}.{DOMAIN}")
    is_point_to_point = input_values.exists(f"{chip}.point_to_point")
    inputs.system = bare_system(inputs.catalogue, chip_id, domain, is_point_to_point)


def _choose_parts(inputs: ResolvedScenario, variants: dict[str, str]) -> None:
    """Put a part in each place of the tree that has alternatives."""
    if inputs.structure is not None:
        inputs.alternatives = dict(inputs.structure.alternatives)
    else:
        from tco.scenario.part_choice import choose_parts  # most systems list no alternatives

        choose_parts(inputs)
    inputs.system = load_system(
        inputs.catalogue, inputs.scenario.system, variants, inputs.alternatives
    )


def _size_cluster(inputs: ResolvedScenario, input_values: Values, settings: JsonObject) -> None:
    """Take as many chips as train in the days that are asked for."""
    days = input_values.structure(DAYS)
    tokens = input_values.structure(TRAIN_TOKENS)
    where = input_values.input(DAYS).where
    if CHIPS in inputs.settings:
        raise DataError(
            f"{where}: {DAYS} beside {CHIPS}: the chips follow from the days; leave one out"
        )
    inputs.setting_values.pop(CHIPS, None)  # a number of chips from the file of the scenario
    cluster_key = (
        DAYS,
        repr((inputs.scenario, sorted(settings.items()), sorted(inputs.variant.items()))),
    )
    chips = inputs.catalogue.once(
        cluster_key, lambda: _chips_for_days(inputs, settings, days, tokens, where)
    )
    inputs.training_chips = chips
    inputs.document_inputs[CHIPS] = inputs.document_inputs[CHIPS]._replace(
        value=chips,
        low=chips,
        high=chips,
        stated_quantity=(chips, inputs.document_inputs[CHIPS].unit),
    )
    inputs.notes.append(
        f"{CHIPS}: {chips:,.0f} in whole domains train {tokens:.3g} tokens in {days:g} days or less"
    )


def _chips_for_days(
    inputs: ResolvedScenario, settings: JsonObject, days: float, tokens: float, where: str
) -> float:
    """Return the chips with which a training job finishes within some days."""

    def token_rate(chips: float) -> float | None:
        resized = resolve_scenario(
            inputs.catalogue,
            inputs.scenario,
            settings | {DAYS: "0 day", CHIPS: repr(chips)},
            inputs.variant,
        )
        training_result = workload_kind(resized).walk(resized, resized.values(), None)
        rate: float | None = training_result.rates.get("train_tokens_per_s")
        return rate

    return chips_in(days, tokens, inputs.system.chips, token_rate, where)


def _refuse_impossible_wires(inputs: ResolvedScenario, input_values: Values) -> None:
    if not inputs.system.bare:
        refuse_bad_wires(inputs.system, inputs.catalogue, input_values)
    refuse_unjoined(inputs.system, inputs.catalogue, input_values)


def _take_native_formats(
    inputs: ResolvedScenario, input_values: Values, stated: Mapping[str, Given]
) -> None:
    """Set the chip's own formats, if they are requested and the user sets no others.

    All texts are known afterwards, so a given structure is compared with them.
    """
    if inputs.texts.get("workload.formats"):
        from tco.scenario.choices import (  # most scenarios state their formats
            native_formats,
            uses_native_formats,
        )

        if uses_native_formats(inputs.text("workload.formats")):
            inputs.texts |= {
                path: format_text
                for path, format_text in native_formats(input_values, inputs.system.chip).items()
                if path not in stated
            }
    if inputs.structure is not None:
        inputs.structure.check(inputs.system, inputs.text)


def _system_of_scenario(inputs: ResolvedScenario, variant: dict[str, str]) -> System:
    """Return a scenario's system, or the domain of a chip alone.

    Settings may still change the size and the links of that domain.
    """
    system_id = inputs.scenario.system
    if not is_bare_chip(inputs.catalogue, system_id):
        return load_system(inputs.catalogue, system_id, variant)
    if variant:
        raise DataError(
            f"{system_id} is a chip alone and has no variants; {', '.join(variant)} cannot be "
            "chosen"
        )
    return bare_system(inputs.catalogue, system_id, 1, False)


def _take_chosen_documents(inputs: ResolvedScenario) -> dict[str, str]:
    chosen = {
        group: document_name
        for group, document_name in inputs.settings.items()
        if group in DOCUMENTS
    }
    inputs.settings = {
        path: setting_text for path, setting_text in inputs.settings.items() if path not in chosen
    }
    return chosen


def _read_document(
    inputs: ResolvedScenario, group: str, base_name: str, stated: Mapping[str, Given]
) -> None:
    """Read the values and texts of a document over those of its base.

    A site's lie over those of its country at the date.
    """
    document_names = inputs.catalogue.with_base(DOCUMENTS[group], base_name, group)
    cooling = _site_hall_cooling(inputs, document_names, stated) if group == "site" else None
    for document_name in document_names:
        _, document = inputs.catalogue.document(DOCUMENTS[group], document_name, group)
        if (country := document.get("country")) is not None:
            date_setting = stated.get("terms.date")
            date = inputs.saved_texts.get("terms.date") or (
                inputs.date if date_setting is None else date_setting.text
            )
            terms_document = inputs.scenario.documents["terms"]
            terms_place = terms_document if date_setting is None else date_setting.where
            period(date, f"{terms_place}: terms.date")
            inputs.document_inputs |= inputs.catalogue.of_country(str(country), date)
        inputs.document_inputs |= inputs.catalogue.document_inputs(
            DOCUMENTS[group], document_name, group, group, cooling
        )
        inputs.texts |= inputs.catalogue.once(
            ("texts", group, document_name),
            partial(_document_texts, inputs.catalogue, group, document_name),
        )
    if cooling is not None:
        inputs.texts["site.cooling"] = cooling


def _document_texts(catalogue: Catalogue, group: str, document_name: str) -> dict[str, str]:
    """Return the texts of a document by path.

    Raises:
        KeptBackError: An answer keeps own values back, and a text stands in an own document and in
            no shipped one.

    """
    path, document = catalogue.document(DOCUMENTS[group], document_name, group)
    texts = texts_of(group, document)
    if making.get() and catalogue.is_overlay(path):
        shipped_files = (catalogue.folders[0] / DOCUMENTS[group]).glob("*.toml")
        shipped: set[tuple[str, str]] = set()
        for file in shipped_files:
            shipped.update(texts_of(group, catalogue.toml(file)).items())
        for input_path, _ in sorted(texts.items() - shipped):
            refuse_own(f"{path}: {input_path}: a text")
    return texts


def _site_hall_cooling(
    inputs: ResolvedScenario, site_names: Sequence[str], stated: Mapping[str, Given]
) -> str | None:
    """Return the cooling of the hall in which the racks stand, of a site's documents by name."""
    documents = [
        inputs.catalogue.document("sites", site_name, "site")[1] for site_name in site_names
    ]
    cooling_setting = stated.get("site.cooling")
    cooling = hall_cooling(
        documents,
        inputs.system.cooling,
        cooling_setting.text if cooling_setting else inputs.saved_texts.get("site.cooling"),
    )
    if cooling is not None:
        refuse_unknown("cooling", [cooling], COOLING_KINDS, "site.cooling")
    return cooling


def _apply_setting(inputs: ResolvedScenario, path: str, setting: Given) -> None:
    """Take in one setting: a text where the input is one, else a quantity for later."""
    if path in TEXTS or path == SOFTWARE_ALIAS:
        if setting.keeps_back(path):
            refuse_own(f"{setting.where}: {path}: a text")
        inputs.texts[SOFTWARE if path == SOFTWARE_ALIAS else path] = setting.text
    elif path.partition(".")[0] not in GROUPS:
        raise unknown("input path", path, inputs.known_paths(), "--set")
    else:
        inputs.setting_values[path] = setting


def system_inputs(
    catalogue: Catalogue,
    system_name: str,
    set: Mapping[str, str],  # noqa: A002 - the name of the option
    variant: Mapping[str, str],
) -> ResolvedScenario:
    """Return the inputs of a system on the headline's site and terms.

    Args:
        catalogue: Holds the documents, parts and rows.
        system_name: Id of the system or of a bare chip; `ID@key=value,...` also names variants.
        set: Values by input path, as a user sets them.
        variant: Variants of the system by key; they win over variants in `system_name`.

    Raises:
        DataError: The id, a variant, a path or a value is unknown.

    """
    system, _, variants = system_name.partition("@")
    chosen = {**variants_of(variants, system_name), **variant}
    if not is_bare_chip(catalogue, system):
        load_system(catalogue, system, chosen)
    return resolve_scenario(catalogue, headline_scenario(system, system, {}), dict(set), chosen)


def plain_inputs(catalogue: Catalogue, set: Mapping[str, str]) -> ResolvedScenario:  # noqa: A002
    """Return the inputs of the headline's site, terms and cluster.

    The inputs serve questions that name no system. The system is the headline's.

    Args:
        catalogue: Holds the documents, parts and rows.
        set: Values by input path, as a user sets them.

    Raises:
        DataError: A path or a value is unknown.

    """
    return system_inputs(catalogue, HEADLINE_SYSTEM, set, {})
