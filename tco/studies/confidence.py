"""How sure a comparison is: drawn, or kept from when it was.

What takes long and never changes is kept in the user's cache folder until the program, its data, its scenarios or what computes them do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tco.foundation.arithmetic import arithmetic
from tco.foundation.errors import TcoError
from tco.foundation.files import data_directory, scenario_directory, write_atomically
from tco.studies.comparison import AtSpeed, Confidence, Driver, Measurement, Regime, Sureness, speeds_of

if TYPE_CHECKING:
    from tco.studies.evaluation import Evaluation

UNREAD = ("__pycache__", "measured")  # folders that no answer rests on


def confidence_of(
    asked: Sequence[Evaluation],
    baseline: str,
    speeds: Sequence[float] = (),
    hold: bool = False,
    ranges: bool = True,
    why: bool = False,
) -> Confidence:
    """Return how sure each of some scenarios is against the one that is named as the baseline; with `hold` each on the plan of its point.

    Of shipped scenarios on shipped data it is kept until the program or its data change.
    """
    reference = next(one.result for one in asked if one.result.scenario == baseline)
    how = speeds_of(reference, speeds), hold, ranges, why
    if not all(is_shipped(one) for one in asked):
        return drawn_anew(asked, baseline, *how)
    plain = kept("-".join(map(str, ("confidence", *how, *(one.name for one in asked), baseline))), lambda: drawn_anew(asked, baseline, *how))
    sure, curve, regimes, left = plain
    return Confidence(
        [Sureness(*one)._replace(drivers=[Driver(*each) for each in one[3]]) for one in sure],
        [AtSpeed(*one) for one in curve],
        [
            Regime(*one)._replace(
                speeds=tuple(one[5]), drivers=[Driver(*each) for each in one[8]], measurements=[Measurement(*each) for each in one[9]]
            )
            for one in regimes
        ],
        left,
    )


def is_shipped(one: Evaluation) -> bool:
    """Say whether a scenario is one that travels with the program, on the data that does, as it stands there."""
    catalogue = one.catalogue
    return one.name in catalogue.scenarios and not (one.settings or one.saved or catalogue.anchors or len(catalogue.folders) > 1)


def drawn_anew(asked: Sequence[Evaluation], baseline: str, *how: Any) -> Confidence:
    """Draw the inputs of some scenarios."""
    from tco.studies.curve import confidence_in  # what is kept is read without it

    return confidence_in(asked, baseline, *how)


# ---------------------------------------------------------------- what is kept
def kept(name: str, make: Callable[[], Any]) -> Any:
    """Return what was kept under a name, or make and keep it, as JSON holds it; a folder that cannot be written keeps nothing.

    A file that is not whole, or that another than this program on this data has written or changed, is made anew.
    """
    folder, rests = cache_folder(), f"{name} {stamp()}"
    path = folder / f"{sha256(name.encode()).hexdigest()[:16]}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("sum") == summed(rests, found.get("content")):
            return found["content"]
    except (OSError, ValueError, RecursionError):
        pass
    made = json.loads(json.dumps(make(), default=float))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"sum": summed(rests, made), "content": made}))
    except (OSError, TcoError):
        pass
    return made


def summed(rests: str, content: Any) -> str:
    """Return a sum over what is kept and all it rests on."""
    return sha256(f"{rests}\n{json.dumps(content, sort_keys=True)}".encode()).hexdigest()


def cache_folder() -> Path:
    """Return the folder of the program in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tco"


def stamp() -> str:
    """Return a hash of all files an answer rests on, byte by byte, and of what computes: a size and a time say nothing of what is in a file."""
    digest = sha256(arithmetic().encode())
    for folder in (Path(__file__).resolve().parents[1], data_directory(), scenario_directory()):
        begin = len(str(folder)) + 1  # a path within a folder begins here
        for place, folders, files in os.walk(folder):
            folders[:] = sorted(one for one in folders if one not in UNREAD)
            for name in sorted(files):
                path = os.path.join(place, name)
                with open(path, "rb") as stream:
                    content = stream.read()
                digest.update(f"{path[begin:]} {len(content)}\n".encode() + content)
    return digest.hexdigest()
