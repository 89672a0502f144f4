"""What takes long and never changes, kept in the user's cache folder until the program, its data or its scenarios do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from tco.foundation.errors import TcoError
from tco.foundation.files import data_directory, scenario_directory, write_atomically


def kept(name: str, make: Callable[[], Any]) -> Any:
    """Return what was kept under a name, or make and keep it, as JSON holds it; a folder that cannot be written keeps nothing."""
    folder = cache_folder()
    path = folder / f"{sha256(name.encode()).hexdigest()[:16]}-{stamp()}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        pass
    made = json.loads(json.dumps(make(), default=float))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{path.name.partition('-')[0]}-*.json"):
            old.unlink(missing_ok=True)
        write_atomically(path, json.dumps(made))
    except (OSError, TcoError):
        pass
    return made


def cache_folder() -> Path:
    """Return the folder of the program in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tco"


def stamp() -> str:
    """Return a short hash of the names, sizes and times of all files an answer rests on: reading them takes as long as the answer."""
    digest = sha256()
    for folder in (Path(__file__).resolve().parents[1], data_directory(), scenario_directory()):
        for place, _, files in sorted(os.walk(folder)):
            for name in sorted(files):
                if name.endswith((".py", ".csv", ".toml", ".json")):
                    found = os.stat(os.path.join(place, name))
                    digest.update(f"{place}/{name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
