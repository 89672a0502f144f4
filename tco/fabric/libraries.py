"""Libraries of collectives: which algorithms each offers for an operation, as data.

A library may extend another, so that an engine's own kernels stand beside those of the library
under them. What is not offered may be shown as a candidate and is never chosen. `best` offers
whatever a fabric allows: what a future library could reach.
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
COPIED = "normal"  # the way of an expert exchange in which cores copy tokens
# by operation and algorithm: whether groups of several domains have it too
Offers = Mapping[str, Mapping[str, bool]]


class CollectiveLibrary(NamedTuple):
    """Algorithms offered by a collective library, and its overheads on fabric time."""

    id: str
    name: str
    offers: Offers
    offers_all: bool = False  # offers whatever the fabric allows
    caller: str = ""  # owner of what a caller adds
    called: tuple[str, ...] = ()  # operations it adds that to
    exchange: str = ""  # owner of the practice of expert exchanges
    overhead: Quantity | None = None  # the caller's, of a collective
    staged: Any = None  # the caller's, of each byte
    cores: Any = None  # that copy tokens in an expert exchange
    kernels: Mapping[str, Any] = {}  # of an expert exchange that forwards tokens, by operation
    # of tokens on the wire: bytes of an element, of a scale, elements of a block
    formats: Mapping[str, tuple[float, float, float]] = {}

    def offered(self, operation: str, algorithm: str) -> bool:
        """Say whether an algorithm of an operation is offered, at least to groups in one domain."""
        return self.offers_all or algorithm in self.offers.get(operation, ())

    def anywhere(self, operation: str, algorithm: str) -> bool:
        """Say whether it is offered to groups of several domains too."""
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
    if catalogue.is_overlay(path):  # shipped files are checked before they are shipped
        from tco.catalog.schema import LibrarySchema, expect

        expect(LibrarySchema, path, document)
    inside, anywhere = (
        {
            operation: dict.fromkeys(algorithm_names, wide)
            for operation, algorithm_names in document.get(document_key, {}).items()
        }
        for document_key, wide in (("inside_domain", False), ("offers", True))
    )
    formats = {
        form: (
            float(token_format["element"]),
            float(token_format["scale"]),
            float(token_format["block"]),
        )
        for form, token_format in document.get("formats", {}).items()
    }
    file_library = CollectiveLibrary(
        library_id,
        str(document.get("name", library_id)),
        _merged(inside, anywhere),
        bool(document.get("every", False)),
        caller=str(document.get("caller", "")),
        called=tuple(map(str, document.get("called", ()))),
        exchange=str(document.get("exchange", "")),
        formats=formats,
    )
    return (
        over(read_library(catalogue, str(document["extends"])), file_library)
        if "extends" in document
        else file_library
    )


def _merged(first_offers: Offers, second_offers: Offers) -> Offers:
    """Return the union of the algorithms in `first_offers` and `second_offers`."""
    merged_offers = {}
    for operation in {**first_offers, **second_offers}:
        left, right = first_offers.get(operation, {}), second_offers.get(operation, {})
        merged_offers[operation] = {
            algorithm_name: left.get(algorithm_name, False) or right.get(algorithm_name, False)
            for algorithm_name in {**left, **right}
        }
    return merged_offers


def over(below: CollectiveLibrary, top: CollectiveLibrary) -> CollectiveLibrary:
    """Return a library with all of the one it stands on."""
    offers, offers_everything = (
        _merged(below.offers, top.offers),
        below.offers_all or top.offers_all,
    )
    return top._replace(
        offers=offers,
        offers_all=offers_everything,
        caller=top.caller or below.caller,
        called=tuple(dict.fromkeys((*below.called, *top.called))),
        exchange=top.exchange or below.exchange,
        formats={**below.formats, **top.formats},
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
            combined = over(combined, library)._replace(
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
        The first member that offers the algorithm for the operation; `library` without such a
        member.

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
    """Return a library with its fitted parameters: its caller's overhead and its token exchange."""
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
        cores = (
            input_values[f"{path_prefix}.exchange_cores"]
            if library.offered(EXCHANGES[0], COPIED)
            else None
        )
        library = library._replace(cores=cores, kernels=kernels)
    return library


def token_size(library: CollectiveLibrary, form: str, hidden: Quantity) -> Quantity:
    """Return the bytes of a token on the wire, with block scales.

    Args:
        library: The library with its formats of tokens.
        form: Name of the format.
        hidden: Elements of a token.

    Raises:
        DataError: The library has no such format.

    """
    refuse_unknown("format", [form], library.formats, f"tokens of {library.name}")
    return token_bytes(hidden, *library.formats[form])


class NotOfferedError(DataError):
    """An algorithm that neither the fabric nor the library has."""


def nothing_offered(
    library: CollectiveLibrary, operation: str, algorithm_names: Iterable[str]
) -> NotOfferedError:
    """Return the error for an operation whose algorithms for a group the library lacks."""
    has = (
        ", ".join(library.offers.get(operation, ()))
        or f"no {operation}, but {', '.join(library.offers)}"
    )
    return NotOfferedError(
        f"{library.name} offers {has}; this group has {', '.join(algorithm_names)}: choose another "
        "library or algorithm"
    )
