"""The small tree of errors that reach a user, each with its exit code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

STEM = 3  # letters that a name begins with, by which another may be meant


class TcoError(Exception):
    """Something the user can mend; the message says what, where and what was expected."""

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
    """Data that nobody states, or that this buyer cannot have.

    A scenario beside it may still be answered.
    """


def library(name: str, what: str, extra: str) -> Any:
    """Return an optional library, or say how to install the library.

    Args:
        name: Name of the module.
        what: Words for the feature that needs the library, which begin the error.
        extra: Extra of this package that installs the library.

    Returns:
        The imported module.

    Raises:
        UsageError: The library is not installed.

    """
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(
            f"{what} needs {name.partition('.')[0]}: pip install '.[{extra}]'"
        ) from None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean X?' for the nearest known name.

    Args:
        name: Name that is not known.
        known: Names to choose from.

    Returns:
        Words for the end of an error; empty where no known name is near.

    """
    import difflib  # only when something is already wrong

    names = list(known)
    holding = [other for other in names if name and name.lower() in other.lower()]
    found = difflib.get_close_matches(name, holding or names, n=1, cutoff=0.0 if holding else 0.5)
    if not found and len(stem := re.match("[a-z]*", name.lower())[0]) >= STEM:  # type: ignore[index]
        found = [other for other in names if other.lower().startswith(stem)][:1]
    return f"; did you mean {found[0]!r}?" if found else ""


def unknown(what: str, name: str, known: Iterable[str], where: str = "") -> DataError:
    """Return the error for an unknown id, with the nearest known id.

    Args:
        what: Kind of thing that the id names, such as `chip`.
        name: The unknown id.
        known: All known ids.
        where: Place of the fault, such as a file or an option; may be empty.

    Returns:
        Error to raise; the text lists up to 12 known ids where no id is near.

    """
    names = sorted(known)
    hint = nearest(name, names) or (f"; there are {', '.join(names)}" if len(names) <= 12 else "")
    return DataError(f"{where + ': ' if where else ''}unknown {what} {name!r}{hint}")


def refuse_unknown(
    what: str, names: Iterable[str], known: Collection[str], where: str = ""
) -> None:
    """Refuse the first id that is not among the known ids.

    Args:
        what: Kind of thing that the ids name, such as `chip`.
        names: Ids to check.
        known: All known ids.
        where: Place of the fault, such as a file or an option; may be empty.

    Raises:
        DataError: An id is unknown.

    """
    if (name := next((one for one in names if one not in known), None)) is not None:
        raise unknown(what, name, known, where)


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
