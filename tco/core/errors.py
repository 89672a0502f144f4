"""Errors that reach a user, each with its exit code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

SHORTEST_STEM = 3  # common first letters from which a known name counts as similar
FEW = 12  # largest number of names that an error lists
# Command that lists the ids, by kind of thing.
LISTINGS = {
    "scenario": "tco systems list",
    "scenario or system": "tco systems list",
    "system": "tco systems list",
    "input path": "tco inputs SCENARIO WORD",
    "input": "tco inputs SCENARIO WORD",
    "chip": "tco parts list",
    "chip with a rent": "tco rents",
    "part": "tco parts list",
    "site": "tco sites list",
    "terms": "tco terms list",
    "workload": "tco workloads list",
    "cluster": "tco clusters list",
    "perspective": "tco perspectives list",
    "agreement": "tco rebates list",
    "model": "tco models list",
    "source": "tco sources list",
    "accelerator": "tco parts list",
}


class TcoError(Exception):
    """Error that the user can correct; the message states fault, place and expectation."""

    exit_code = 3


class UsageError(TcoError):
    """The command line is wrong: a malformed option or an output that cannot be written."""

    exit_code = 2


class KeptBackError(UsageError):
    """Refusal of an answer that would reveal the user's own values.

    The message reveals none of the values.
    """


class DataError(TcoError):
    """The data is wrong: an unknown id or path, a wrong unit, a bad value or file."""

    exit_code = 3


class UnavailableError(DataError):
    """Data that no source states, or a system that the buyer cannot have.

    Other scenarios of the same command may still have an answer.
    """


def library(module_name: str, what: str, extra: str) -> Any:
    """Return an optional library.

    Args:
        module_name: Name of the module.
        what: Words for the feature that needs the library, with which the error begins.
        extra: Extra of this package that installs the library.

    Returns:
        The imported module.

    Raises:
        UsageError: The library is not installed; the message states the command to install it.

    """
    try:
        return import_module(module_name)
    except ImportError:
        raise UsageError(
            f"{what} needs {module_name.partition('.')[0]}: pip install '.[{extra}]'"
        ) from None


def nearest_name(unknown_name: str, candidates: Iterable[str]) -> str | None:
    """Return the nearest known name, or None where no known name is near.

    The nearest names have the unknown name as their last path step, then as a whole word, then as a
    part of a word.

    Args:
        unknown_name: Name that is not known.
        candidates: Names to choose from.

    """
    import difflib  # only errors need this import

    candidate_names = list(candidates)
    containing = [
        candidate
        for candidate in candidate_names
        if unknown_name and unknown_name.lower() in candidate.lower()
    ]
    if containing:
        path_end = re.compile(rf"\.{re.escape(unknown_name)}$", re.IGNORECASE)
        word = re.compile(rf"(?<![a-z0-9]){re.escape(unknown_name)}(?![a-z0-9])", re.IGNORECASE)
        for pattern in (word, path_end):
            containing = list(filter(pattern.search, containing)) or containing
    matches = difflib.get_close_matches(
        unknown_name, containing or candidate_names, n=1, cutoff=0.0 if containing else 0.6
    )
    if matches:
        return matches[0]
    stem = re.split("[^a-z]", unknown_name.lower(), maxsplit=1)[0]
    if len(stem) < SHORTEST_STEM:
        return None
    return next(
        (candidate for candidate in candidate_names if candidate.lower().startswith(stem)), None
    )


def nearest(unknown_name: str, known_names: Iterable[str]) -> str:
    """Return '; did you mean X?' for the nearest known name, else an empty text."""
    match = nearest_name(unknown_name, known_names)
    return f"; did you mean {match!r}?" if match else ""


def unknown(what: str, unknown_name: str, known_names: Iterable[str], where: str = "") -> DataError:
    """Return the error for an unknown id, with the nearest known id.

    Args:
        what: Kind of thing that the id names, such as `chip`.
        unknown_name: The unknown id.
        known_names: All known ids.
        where: Place of the fault, such as a file or an option; may be empty.

    Returns:
        Error to raise. Where no id is near, the text lists a few known ids or names the command
        that lists all of them.

    """
    sorted_names = sorted(known_names)
    hint = nearest(unknown_name, sorted_names)
    if not hint and len(sorted_names) <= FEW:
        hint = f"; there are {', '.join(sorted_names)}"
    elif not hint and what in LISTINGS:
        hint = f"; `{LISTINGS[what]}` lists what there is"
    return DataError(f"{where + ': ' if where else ''}unknown {what} {unknown_name!r}{hint}")


def refuse_unknown(
    what: str, checked_names: Iterable[str], known_names: Collection[str], where: str = ""
) -> None:
    """Refuse the first id that is not among the known ids.

    Args:
        what: Kind of thing that the ids name, such as `chip`.
        checked_names: Ids to check.
        known_names: All known ids.
        where: Place of the fault, such as a file or an option; may be empty.

    Raises:
        DataError: An id is unknown.

    """
    for name in checked_names:
        if name not in known_names:
            raise unknown(what, name, known_names, where)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix errors raised inside the block with their location.

    Args:
        where: Location, such as a file, a line or an option.

    Raises:
        DataError: The block raised `DataError` or `ValueError`; the message begins with `where`.

    """
    try:
        yield
    except (DataError, ValueError) as error:
        raise DataError(f"{where}: {error}") from None
