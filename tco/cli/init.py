"""`tco init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.help import Taught

SCENARIO = """\
# A scenario of your own. Run it: tco price mine.toml
title = "My rack"
system = "trn3-nl72x2"            # tco systems list
site = "us-hyperscale"            # where it stands: data/sites
terms = "hyperscaler-2025-12"     # life, rate, utilisation and the date of prices: data/terms
workload = "deepseek-v3-8k-1k"    # what it serves: data/workloads
cluster = "tor-100g-16k"          # the scale-out network it shares: data/clusters

[variant]
switch = "gen1"

[set]                             # any input, with its unit: tco scenarios show mine.toml
"site.electricity_price" = "0.07 USD/kWh"
"terms.utilisation" = "0.7"
"""
PARTS = """\
part,attribute,value,unit,low,high,as_of,kind,source,note,use
nitro-v6-400g,price,500,USD,400,650,2025-12,assumed,my-quote,replace this by a price of your own,
"""
SOURCES = """\
id,title,url,date
my-quote,A quote of mine,,2025-12
"""
IGNORED = """\
# Prices of your own stay out of a shared history, and what rests on them. What is saved with --redact may be shared.
data/
reports/
"""


@app.command(cls=Taught)
def init(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")]) -> None:
    """Make a folder of your own, with an editable scenario and prices laid over the shipped ones."""
    from tco.foundation.errors import UsageError
    from tco.foundation.files import is_there, write_all
    from tco.foundation.streams import put

    if is_there(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists and is not an empty folder")
    files = {"mine.toml": SCENARIO, "data/parts/mine.csv": PARTS, "data/sources.csv": SOURCES, ".gitignore": IGNORED}
    write_all(folder, files)
    put(f"{folder}: a scenario (mine.toml) and a data folder of your own. Try: cd {folder} && tco price mine.toml\n")
