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
README = """\
# Racks and prices of our own

`mine.toml` is a scenario, `data/` lies over the data that `tco` ships: a row here replaces the shipped row of the same part and attribute.

    tco price mine.toml                                   what a chip-hour costs, line by line
    tco compare mine.toml gb200-nvl72                     beside another rack
    tco explain mine.toml tco_usd_per_chip_hour           where the number comes from, down to its rows
    tco inputs mine.toml price                            what may be set, with today's value and source
    tco parts check && tco systems check                  whether the rows of `data/` can be read

More of one's own, copied from what is there, to edit:

    tco parts new acme-x1 --like b200-sxm                 rows of a chip, a card, a cable
    tco systems new acme-rack --like b200-hgx8            the tree of a rack
    tco models add hf/config.json                         a model, as Hugging Face publishes it
    tco scenarios new theirs --like gb200-nvl72

A row needs a unit, a date, a kind (`vendor`, `filing`, `analyst`, `press`, `measured`, `derived`, `estimate`, `assumed`) and a source of
`data/sources.csv`; an estimate or an assumption also its low and high, the 5th and 95th percentile of what you believe. Money is in USD.

Every answer says how many own values are in force and names those that nothing uses. Before an answer leaves the house:
`--redact`, or `TCO_REDACT=1`, withholds whatever rests on values of your own.
`data/` and `reports/` stay out of a shared history (`.gitignore`).
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
    files = {"mine.toml": SCENARIO, "data/parts/mine.csv": PARTS, "data/sources.csv": SOURCES, ".gitignore": IGNORED, "README.md": README}
    write_all(folder, files)
    put(f"{folder}: a scenario (mine.toml) and a data folder of your own. Try: cd {folder} && tco price mine.toml\n")
