"""Libraries of collectives: which algorithms each offers for an operation, as data.

A library may extend another, so that the kernels of an engine are offered beside those of the
library that the engine uses. An algorithm that is not offered may be listed and is never chosen.
The library `best` offers every algorithm that a fabric allows, as a future library could.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.core.errors import DataError, refuse_unknown
from tco.core.memory import once_per_owner
from tco.core.types import Quantity, Settings
from tco.fabric.collective_costs import token_bytes

FOLDER = "libraries"
EXCHANGES = ("dispatch", "combine")
COPIED = "normal"  # algorithm of an expert exchange in which cores copy tokens
# Whether an algorithm is offered to groups of several domains too, by operation and algorithm.
Offers = Mapping[str, Mapping[str, bool]]


class TokenFormat(NamedTuple):
    """Format of tokens on the wire."""

    element: float  # bytes per element
    scale: float  # bytes per scale of a block
    block: float  # elements per block


class CollectiveLibrary(NamedTuple):
    """Algorithms offered by a collective library, and its overheads on fabric time."""

    id: str
    name: str
    offers: Offers
    offers_all: bool = False  # offers every algorithm that the fabric allows
    caller: str = ""  # owner, under `performance`, of the parameters of the caller; empty without
    called: tuple[str, ...] = ()  # operations to which the caller adds time
    exchange: str = ""  # owner, under `performance`, of the parameters of expert exchanges
    overhead: Quantity | None = None  # time that the caller adds to a collective, s
    staged: Any = None  # time that the caller adds per byte, s
    cores: Any = None  # number of cores that copy tokens in an expert exchange
    kernels: Mapping[str, Any] = {}  # kernels of an expert exchange that forwards, by operation
    formats: Mapping[str, TokenFormat] = {}  # by name

    def offered(self, operation: str, algorithm: str) -> bool:
        """Return whether an algorithm is offered to groups of one domain, or of any number."""
        return self.offers_all or algorithm in self.offers.get(operation, ())

    def anywhere(self, operation: str, algorithm: str) -> bool:
        """Return whether an algorithm is offered to groups of several domains too."""
        return self.offers_all or self.offers.get(operation, {}).get(algorithm, False)


@once_per_owner
def read_library(catalogue: Catalogue, library_id: str) -> CollectiveLibrary:
    """Return a collective library by its id.

    The library has all algorithms of the library that the file extends.

    Args:
        catalogue: Holds the files of the libraries; each is read once.
        library_id: Id of the library.

    Raises:
        DataError: The library, or a library that the file extends, is unknown.

    """
    path, document = catalogue.document(FOLDER, library_id, "library")
    if catalogue.is_overlay(path):  # shipped files are checked before release
        from tco.catalog.schema import LibrarySchema, expect

        expect(LibrarySchema, path, document)
    offers_inside, offers_anywhere = (
        {
            operation: dict.fromkeys(algorithm_names, spans_domains)
            for operation, algorithm_names in document.get(document_key, {}).items()
        }
        for document_key, spans_domains in (("inside_domain", False), ("offers", True))
    )
    formats = {
        format_name: TokenFormat(
            element=float(token_format["element"]),
            scale=float(token_format["scale"]),
            block=float(token_format["block"]),
        )
        for format_name, token_format in document.get("formats", {}).items()
    }
    library = CollectiveLibrary(
        id=library_id,
        name=str(document.get("name", library_id)),
        offers=_merged_offers(offers_inside, offers_anywhere),
        offers_all=bool(document.get("every", False)),
        caller=str(document.get("caller", "")),
        called=tuple(map(str, document.get("called", ()))),
        exchange=str(document.get("exchange", "")),
        formats=formats,
    )
    if "extends" not in document:
        return library
    return extend_library(read_library(catalogue, str(document["extends"])), library)


def _merged_offers(first_offers: Offers, second_offers: Offers) -> Offers:
    """Return the union of the algorithms in `first_offers` and `second_offers`."""
    merged_offers = {}
    for operation in {**first_offers, **second_offers}:
        first = first_offers.get(operation, {})
        second = second_offers.get(operation, {})
        merged_offers[operation] = {
            algorithm_name: first.get(algorithm_name, False) or second.get(algorithm_name, False)
            for algorithm_name in {**first, **second}
        }
    return merged_offers


def extend_library(base: CollectiveLibrary, extension: CollectiveLibrary) -> CollectiveLibrary:
    """Return `extension` with everything that `base` offers; `extension` takes precedence."""
    return extension._replace(
        offers=_merged_offers(base.offers, extension.offers),
        offers_all=base.offers_all or extension.offers_all,
        caller=extension.caller or base.caller,
        called=tuple(dict.fromkeys((*base.called, *extension.called))),
        exchange=extension.exchange or base.exchange,
        formats={**base.formats, **extension.formats},
    )


def combined_library(catalogue: Catalogue, member_ids: Iterable[str]) -> CollectiveLibrary:
    """Return a library with the algorithms of all `member_ids`.

    An example is a library for sums and gathers, combined with a library for expert exchanges.

    Args:
        catalogue: Holds the files of the libraries.
        member_ids: Ids of libraries, at least one; a later library takes precedence over an
            earlier one.

    Returns:
        A library whose id joins the ids with `+`.

    Raises:
        DataError: A library is unknown.

    """
    library_ids = tuple(member_ids)

    def read() -> CollectiveLibrary:
        combined, *rest = [read_library(catalogue, library_id) for library_id in library_ids]
        for library in rest:
            combined = extend_library(combined, library)._replace(
                id=f"{combined.id}+{library.id}", name=f"{combined.name} and {library.name}"
            )
        return combined

    return catalogue.once(("joined libraries", *library_ids), read)


def offering(
    catalogue: Catalogue, library: CollectiveLibrary, operation: str, algorithm: str
) -> CollectiveLibrary:
    """Return the member of a combined library that offers an algorithm.

    Args:
        catalogue: Holds the files of the libraries.
        library: A library, whose id may join several ids with `+`.
        operation: Name of the operation.
        algorithm: Name of the algorithm.

    Returns:
        The first member that offers the algorithm for the operation; `library` if none does.

    """
    members = [combined_library(catalogue, [library_id]) for library_id in library.id.split("+")]
    return next((member for member in members if member.offered(operation, algorithm)), library)


def family_library(catalogue: Catalogue, family: str) -> CollectiveLibrary:
    """Return the libraries that a family's chips use by default, combined.

    Args:
        catalogue: Holds the data folders with `performance/libraries.toml`.
        family: Family of chips.

    Raises:
        DataError: The family, or a library of the family, is unknown.

    """

    def read() -> dict[str, list[str]]:
        return {
            family_name: [str(library_id) for library_id in library_ids]
            for path in catalogue.folder_files("performance/libraries.toml")
            for family_name, library_ids in catalogue.toml(path).items()
        }

    libraries_by_family: dict[str, list[str]] = catalogue.once("family libraries", read)
    refuse_unknown("family", [family], libraries_by_family, "performance/libraries.toml")
    return combined_library(catalogue, libraries_by_family[family])


def library_with_parameters(
    library: CollectiveLibrary, input_values: Settings
) -> CollectiveLibrary:
    """Return a library with the parameters of its caller and of its expert exchanges.

    Args:
        library: Library without parameters.
        input_values: Inputs by path, which hold the fitted parameters.

    """
    if library.caller:
        path_prefix = f"performance.{library.caller}"
        library = library._replace(
            overhead=input_values[f"{path_prefix}.eager_overhead"],
            staged=input_values[f"{path_prefix}.staged_time"],
        )
    if library.exchange:
        path_prefix = f"performance.{library.exchange}"
        kernels = {
            operation: input_values[f"{path_prefix}.{operation}_kernels"] for operation in EXCHANGES
        }
        cores = None
        if library.offered(EXCHANGES[0], COPIED):
            cores = input_values[f"{path_prefix}.exchange_cores"]
        library = library._replace(cores=cores, kernels=kernels)
    return library


def token_size(library: CollectiveLibrary, form: str, hidden: Quantity) -> Quantity:
    """Return the bytes of a token on the wire, including block scales.

    Args:
        library: Library with its formats of tokens.
        form: Name of the format.
        hidden: Elements of a token.

    Raises:
        DataError: The library does not have the format.

    """
    refuse_unknown("format", [form], library.formats, f"tokens of {library.name}")
    return token_bytes(hidden, *library.formats[form])


class NotOfferedError(DataError):
    """An algorithm that the fabric does not have or the library does not offer."""


def nothing_offered(
    library: CollectiveLibrary, operation: str, algorithm_names: Iterable[str]
) -> NotOfferedError:
    """Return the error for a group to which the library offers no algorithm of an operation."""
    offered = (
        ", ".join(library.offers.get(operation, ()))
        or f"no {operation}, but {', '.join(library.offers)}"
    )
    return NotOfferedError(
        f"{library.name} offers {offered}; this group has {', '.join(algorithm_names)}: choose "
        "another library or algorithm"
    )
