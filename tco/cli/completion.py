"""Shell completion of ids, metrics and input paths.

The names are read from the catalogue when Tab is pressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tco.catalog import Catalogue, load_catalogue
from tco.catalog.rows import input_attributes


def completion_names(kind: str) -> Iterable[str]:
    """Return the names of a kind for shell completion.

    `kind` is scenarios, systems, chips, studies, metrics or settings. Systems include the chips
    that may be asked for alone.
    """
    from tco.catalog.system_tree import known_systems
    from tco.scenario.metrics import METRICS
    from tco.sweeps.study import shipped_studies

    catalogue = load_catalogue()
    name_sources: dict[str, Callable[[], Iterable[str]]] = {
        "scenarios": lambda: dict.fromkeys([*catalogue.scenarios, *known_systems(catalogue)]),
        "systems": lambda: known_systems(catalogue),
        "chips": lambda: [
            part for part in catalogue.parts if catalogue.has_part_value(part, "hbm_bandwidth")
        ],
        "studies": shipped_studies,
        "metrics": lambda: METRICS,
        "settings": lambda: settings(catalogue),
    }
    return name_sources[kind]()


def settings(catalogue: Catalogue) -> list[str]:
    """Return the inputs `--set` replaces, each with the sign its value follows."""
    plain = [
        f"{group}.{attribute_name}="
        for group, attribute_name in input_attributes()
        if group in ("site", "terms", "workload", "cluster")
    ]
    return [
        *plain,
        *(
            f"{group}.{owner}.{attribute_name}="
            for group in ("parts", "performance", "shares")
            for owner, attribute_name in catalogue.rows(group)
        ),
    ]
