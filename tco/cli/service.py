"""`tco service` and `tco traffic new | from`: cost of promises under traffic, and own traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tco.cli import app
from tco.cli.catalogue import COMMAND_GROUPS
from tco.cli.options import CommandRequest, command
from tco.core.streams import print_text

TRAFFIC = COMMAND_GROUPS["traffic"]


@command(app, "set", "variant")
def service(
    request: CommandRequest,
    named_scenarios: list[str],
    traffic: str = "chat",
    users: Annotated[int | None, typer.Option(min=1)] = None,
    promise: list[str] | None = None,
    racks: Annotated[float | None, typer.Option(min=0)] = None,
    router: Literal["affinity", "random", "round-robin"] = "affinity",
    samples: Annotated[int, typer.Option(min=0)] = 0,
    seed: int = 0,
) -> None:
    """Size the racks that keep promises under traffic, and price them.

    The answer has the fewest racks, and what tokens, requests and agents cost on them.

    What is asked:
        traffic (NAME): Traffic by its name, or a file of it; `tco traffic list` shows them.
        users (N): How many sessions are under way at once; the rate of requests follows from
            them.
        promise (TEXT): Such as 'ttft p99 <= 2 s', of tpot or e2e too; default: the traffic's
            own. Repeatable.
        racks (N): Refuse a load that asks for more racks to be bought.
        router: Which engine reads a prompt: that of its session, any, or the next.

    Draws and workers:
        samples (N): Draws of prices and software maturity for the cost's P10 to P90; none: no
            range.

    """
    from tco.comparison.service import ServiceRequest, services
    from tco.report.service import service_answer

    demand = ServiceRequest(
        traffic,
        promise or (),
        request.settings,
        request.variant,
        request.data,
        racks,
        users,
        router,
        samples,
        seed,
    )
    sized_services, missed = services(named_scenarios, demand)
    request.emit(service_answer(request.catalogue_of(named_scenarios[0]), sized_services, missed))


@command(TRAFFIC, name="new", usual=("data",))
def new_traffic(
    request: CommandRequest,
    traffic: str,
    like: str = "chat",
) -> None:
    """Write traffic of your own to edit, in ./data or --data: that of another.

    Arguments:
        traffic (ID): Its name: letters, digits, dots and dashes.

    Options:
        like (ID): What it is copied from.

    """
    from tco.catalog.templates import refuse_taken, write_draft
    from tco.cli.drafts import catalogue_with_overlay, option, own_folder
    from tco.core.files import read_text

    catalogue, folder = catalogue_with_overlay(request), own_folder(request)
    refuse_taken(traffic, catalogue.ids("traffic"), "traffic")
    write_draft(
        folder,
        {f"traffic/{traffic}.toml": read_text(catalogue.document("traffic", like, "traffic")[0])},
    )
    print_text(
        f"{folder}/traffic/{traffic}.toml: as {like}, to edit. Try: tco service gb200-nvl72 "
        f"--traffic {traffic}{option(request)}\n"
    )


@command(TRAFFIC, name="from", usual=("data", "quiet"))
def traffic_from(
    request: CommandRequest,
    trace: Path,
    output: Path,
) -> None:
    """Sum up a trace of requests as traffic: rate, bursts, lengths, sessions.

    Arguments:
        trace (TRACE): CSV or JSON lines as Azure, BurstGPT, Mooncake, Bailian or vidur write
            them, or arrived,input_tokens,output_tokens and, if known, session and prefix
            tokens.

    Options:
        output (--output -o FILE.toml): Where the traffic goes.

    """
    from tco.comparison.request_traces import compared_means, traffic_text
    from tco.comparison.trace_files import read_trace
    from tco.core.files import write_atomically
    from tco.performance.service.traffic import traffic_from_text
    from tco.report.service import trace_text

    requests = read_trace(trace)
    document = traffic_text(requests, trace.name)
    traffic = traffic_from_text(document, output)
    write_atomically(output, document)
    if not request.quiet:
        print_text(trace_text(str(output), str(trace), requests, compared_means(requests, traffic)))
