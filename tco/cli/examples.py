"""The examples on the pages of help, by command: each is a command line that runs."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": ("tco compare", "tco explain trn3-nl72x2 tco_usd_per_chip_hour"),
    "compare": (
        "tco compare h200-hgx8 trn3-nl72x2@switch=gen2 --set terms.date=2026-09",
        "tco compare --set site=us-air-hall --hall '20 MW' -o hall.csv",
    ),
    "price": ("tco price trn3-nl72x2 --variant switch=gen2", "tco price gb200-nvl72 --cash-flow --set 'money.rent=3.3 USD/chip/h'"),
    "perf": ("tco perf gb200-nvl72 --set workload=reasoning", "tco perf trn3-nl72x2 --plan tp=4,pp=1"),
    "frontier": ("tco frontier trn3-nl32x2 trn3-nl72x2 gb200-nvl72 --pareto", "tco frontier h200-hgx8 --range -o points.csv"),
    "bom": ("tco bom trn3-nl72x2 --variant nic=400g", "tco bom gb200-nvl72 -o bom.csv"),
    "fabric": ("tco fabric trn3-nl72x2", "tco fabric trn2-nl32x2-3d --format json"),
    "network": ("tco network --switch 12.8T --port 100G --tiers 3", "tco network --chips 131072 --nic 400G --port 100G"),
    "collective": (
        "tco collective gb200-nvl72 --op all-reduce --size 64MiB",
        "tco collective trn3-nl72x2 --op all-to-all --size 64KiB --ranks 64",
    ),
    "kernel": (
        "tco kernel h100-sxm --m 4096 --n 8192 --k 8192 --precision fp8",
        "tco kernel trn3 --op gemm --m 64 --n 7168 --k 2048 --format json",
    ),
    "explain": ("tco explain trn3-nl72x2 tco_usd_per_chip_hour", "tco explain gb200-nvl72 usd_per_million_output_tokens --depth 2"),
    "diff": (
        "tco diff trn3-nl72x2 gb200-nvl72",
        "tco diff gb200-nvl72 gb200-nvl72 --set terms.date=2026-09",
    ),
    "uncertainty": ("tco uncertainty trn3-nl72x2 --baseline gb200-nvl72", "tco uncertainty gb200-nvl72 --samples 1000000 --seed 7 --workers 2"),
    "sensitivity": ("tco sensitivity trn3-nl72x2", "tco sensitivity trn3-nl72x2 --metric perf_per_tco_vs_baseline"),
    "solve": (
        "tco solve gb200-nvl72 --vary terms.life --until tco_usd_per_chip_hour=+10%",
        "tco solve gb200-nvl72 --vary terms.date --until capex_usd=+5%",
    ),
    "metrics": ("tco metrics list", "tco metrics list --format csv"),
    "metrics list": ("tco metrics list", "tco metrics list -o metrics.csv"),
    "inputs": ("tco inputs gb200-nvl72 price gpu", "tco inputs trn3-nl72x2 terms --format csv"),
    "fleet": (
        "tco fleet 'gb200-nvl72:40 MW:2026-03' 'trn3-nl72x2:60 MW:2026-09'",
        "tco fleet 'trn3-nl32x2:500 MW' 'trn3-nl72x2:1.5 GW:2026-09' --power '2.2 GW'",
    ),
    "report": ("tco report -o report.html", "tco report gb200-nvl72 trn3-nl72x2 --baseline gb200-nvl72 -o two.html"),
    "sweep": ("tco sweep switch-generations -o out", "tco sweep memory-prices -o out --workers 2"),
    "plot": ("tco plot cost -o cost.svg", "tco plot roofline gb200-nvl72 -o roofline.svg"),
    "plot cost": ("tco plot cost -o cost.svg", "tco plot cost h200-hgx8 b200-hgx8 -o cost.svg --width 360"),
    "plot fabric": ("tco plot fabric trn3-nl72x2 -o fabric.svg", "tco plot fabric trn2-nl32x2-3d gb200-nvl72 -o fabric.svg"),
    "plot map": (
        "tco plot map --vary site.electricity_price --vary terms.life -o map.svg",
        "tco plot map h200-hgx8 --vary terms.rate --vary terms.life -o map.svg",
    ),
    "plot errors": ("tco plot errors -o errors.svg", "tco plot errors -o errors.svg --width 360"),
    **{
        f"plot {kind}": (f"tco plot {kind} {argument} -o {kind}.svg", f"tco plot {kind} {argument} -o {kind}.svg --width 360")
        for kind, argument in {
            **dict.fromkeys(("roofline", "operators", "frontier", "tornado", "range", "money"), "gb200-nvl72"),
            "bom": "trn3-nl72x2",
        }.items()
    },
    "export": ("tco export trn3-nl72x2 gb200-nvl72 -o model.xlsx", "tco export gb200-nvl72 -o tables/"),
    "baseline": ("tco baseline save main", "tco baseline check main --max-increase 2%"),
    "baseline save": ("tco baseline save main", "tco baseline save main gb200-nvl72 --set terms.life='4 year'"),
    "baseline check": (
        "tco baseline check main --max-increase 2%",
        "tco baseline check main --metric usd_per_million_output_tokens --format github",
    ),
    "baseline list": ("tco baseline list", "tco baseline list --format json"),
    "baseline show": ("tco baseline show main", "tco baseline show main --format csv"),
    "claims": ("tco claims", "tco claims -o claims.csv"),
    "validate": ("tco validate kernels.csv", "tco validate kernels.csv --rows --format csv -o scored.csv"),
    "calibrate": (
        "tco calibrate kernels.csv -o data/calibration/mine.csv",
        "tco calibrate kernels.csv --data data -o data/calibration/mine.csv",
    ),
    "measure": ("tco measure --quick -o kernels.csv", "tco measure --kind collectives -o collectives.csv"),
    "parts new": ("tco parts new acme-x1 --like b200-sxm", "tco parts new acme-nic --like connectx-7 --data mine/data"),
    "systems new": ("tco systems new acme-rack --like b200-hgx8", "tco systems new acme-pod --like trn3-nl32x2 --data mine/data"),
    "scenarios new": ("tco scenarios new ours --like gb200-nvl72", "tco scenarios new theirs --like trn3-nl72x2@switch=gen2"),
    "models add": ("tco models add hf/config.json", "tco models add hf/config.json --id our-model"),
    "help": ("tco help compare", "tco help baseline check"),
    "init": ("tco init mine", "tco init ~/racks/quotes"),
}
SHELVES = {  # group -> what its `show` is an example of
    "scenarios": "gb200-nvl72",
    "systems": "trn3-nl72x2",
    "parts": "trn3",
    "models": "deepseek-v3",
    "sites": "us-hyperscale",
    "terms": "hyperscaler-2025-12",
    "workloads": "deepseek-v3-8k-1k",
    "clusters": "tor-100g-16k",
    "perspectives": "hyperscaler",
    "rebates": "astera-2022",
    "sources": "wafer-300mm",
}


def examples(words: str) -> tuple[str, ...]:
    """Return the examples of a command, by its words after the program's name."""
    if words in EXAMPLES:
        return EXAMPLES[words]
    group, _, what = words.partition(" ")
    if group not in SHELVES:
        return ()
    shown = {
        "": (f"tco {group} list", f"tco {group} show {SHELVES[group]}"),
        "list": (f"tco {group} list", f"tco {group} list --format csv"),
        "show": (f"tco {group} show {SHELVES[group]}", f"tco {group} show {SHELVES[group]} --format json"),
        "check": (f"tco {group} check", f"tco {group} check --data data"),
    }
    return shown.get(what, ())
