"""Commands about networks of sites: be a site, put a plan on sites, look after them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.options import options_of
from headgate.cli.reporting import report
from headgate.cli.serving import need_service
from headgate.cli.shell import cli, json_option, tell
from headgate.errors import TableError
from headgate.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headgate.engine.dissemination import Dissemination
    from headgate.network.assignment import Neighbour
    from headgate.network.deployment import Deployment
    from headgate.network.site import SiteStatus

_PLAN = click.argument("plan", metavar="PLAN", type=click.Path(path_type=Path))
_SITES = click.option(
    "--sites",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Lines of JSON: `site`, `address`, `key_file` or `key`; the site of the publisher is `source`.",
)
_NAME = click.option("--name", default="headgate", show_default=True, help="The name of the network.")
_DOCUMENTS = click.option(
    "--documents",
    default="default",
    show_default=True,
    metavar="TENANT",
    help="The tenant of the source that documents are published to.",
)

_PICTURES = (".svg", ".png")


@cli.command()
@options_of(ServiceSettings)
@click.option(
    "--tenant", default="network", show_default=True, help="The tenant that keeps the results of views."
)
def site(asked: ServiceSettings, tenant: str) -> None:
    r"""Run a site of a network: a service that holds views, takes their inputs and feeds other sites.

    What it holds is told by `headgate network deploy`, with a key of its tenant. The site of the publisher is
    a site, too: documents are published there, to another tenant.

    \b
    Examples:
      headgate service key add --data site/ --tenant network --scope admin > site.key
      headgate site --data site/ --port 8081
    """
    need_service()
    from headgate.network.extension import SiteExtension
    from headgate.service.running import Running, set_up_log

    set_up_log(asked.log)
    running = Running(asked, SiteExtension(tenant))
    running.run(lambda address: click.echo(f"headgate is a site at {address}", err=True))


@cli.group()
def network() -> None:
    """Sites that feed each other: put a plan on them, look after them, change it."""


@network.command()
@_PLAN
@_SITES
@_NAME
@_DOCUMENTS
@click.option("--watch", "watched", is_flag=True, help="Stay, and repair the network when sites fail.")
def deploy(plan: Path, sites: Path, name: str, documents: str, *, watched: bool) -> None:
    r"""Put a plan on sites: each is told the views that it holds, and what they are computed from.

    \b
    Example:
      headgate network deploy network/ --sites sites.jsonl --watch
    """
    made, known = _plan(plan), _sites(sites)

    async def run(deployment: Deployment) -> None:
        await deployment.attach()
        if deployment.deployed:
            raise TableError(f"the sites hold network {name!r} already: use `headgate network redeploy`")
        await deployment.deploy()
        click.echo(f"{len(made):,} views are at {len(known) - 1:,} sites", err=True)
        if watched:
            await _watch(deployment)

    _run(made, known, name, documents, run)


@network.command()
@_PLAN
@_SITES
@_NAME
@_DOCUMENTS
@click.option("--watch", "watched", is_flag=True, help="Stay, and repair the network when sites fail.")
def redeploy(plan: Path, sites: Path, name: str, documents: str, *, watched: bool) -> None:
    r"""Go over from the plan that the sites have to another one, while documents come.

    No subscriber misses a result or gets one twice. Views stay at their sites.

    \b
    Example:
      headgate network redeploy next/ --sites sites.jsonl
    """
    made, known = _plan(plan), _sites(sites)

    async def run(deployment: Deployment) -> None:
        await deployment.attach()
        await deployment.redeploy(made)
        click.echo(f"{len(made):,} views are fed as {plan} says", err=True)
        if watched:
            await _watch(deployment)

    _run(made, known, name, documents, run)


@network.command()
@_PLAN
@click.argument("leaving", metavar="SITE")
@_SITES
@_NAME
@_DOCUMENTS
def drain(plan: Path, leaving: str, sites: Path, name: str, documents: str) -> None:
    r"""Have a site hold nothing, so that it can be stopped; those that it fed are fed in another way.

    \b
    Example:
      headgate network drain network/ paris --sites sites.jsonl
    """
    made, known = _plan(plan), _sites(sites)
    if leaving not in known:
        raise TableError(f"there is no site {leaving!r} in {sites}: it has {', '.join(list(known)[:5])}")

    async def run(deployment: Deployment) -> None:
        await deployment.attach()
        done = await deployment.drain(leaving)
        click.echo(
            f"site {leaving!r} holds nothing: {len(done.moved):,} views are fed in another way, "
            f"{len(done.unfed):,} by nobody",
            err=True,
        )

    _run(made, known, name, documents, run)


@network.command()
@_SITES
@json_option
def status(sites: Path, *, as_json: bool) -> None:
    r"""Show how sites fare: their views, how far these have come, their links.

    \b
    Example:
      headgate network status --sites sites.jsonl
    """
    known = _sites(sites)

    async def run() -> dict[str, SiteStatus | None]:
        from headgate.network.deployment import look_at

        return await look_at(known)

    import asyncio

    found = asyncio.run(run())
    if as_json:
        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(found)))
        return
    last = max((each.documents for each in found.values() if each is not None), default=0)
    click.echo(
        f"{'site':<20} {'views':>6} {'levels':>7} {'behind':>7} {'links':>9} {'MB':>5} {'CPU s':>7}  state"
    )
    for name, each in found.items():
        click.echo(_line(name, each, last))


def _line(name: str, status: SiteStatus | None, last: int) -> str:
    if status is None:
        return f"{name:<20} does not answer"
    levels = sorted({view.level for view in status.views})
    span = "" if not levels else f"{levels[0]}-{levels[-1]}" if levels[-1] > levels[0] else str(levels[0])
    behind = last - min((view.reached for view in status.views), default=last)
    up = sum(link.state == "open" for link in status.links)
    lost = next((f"{link.site}: {link.state}" for link in status.links if link.state != "open"), "")
    return (
        f"{name:<20} {len(status.views):>6,} {span:>7} {behind:>7,} {f'{up}/{len(status.links)}':>9} "
        f"{(status.memory or 0) >> 20:>5,} {status.cpu:>7.1f}  {status.failure or lost or 'runs'}"
    )


@network.command()
@_SITES
@click.option("--yes", is_flag=True, help="Do not ask.")
def stop(sites: Path, *, yes: bool) -> None:
    r"""Have all sites hold nothing; results that they have kept stay until they are too old.

    \b
    Example:
      headgate network stop --sites sites.jsonl --yes
    """
    known = _sites(sites)
    if not yes:
        click.confirm(f"{len(known):,} sites will hold no views any more. Go on?", abort=True, err=True)

    async def run() -> int:
        from headgate.network.deployment import clear_all

        return await clear_all(known)

    import asyncio

    click.echo(f"{asyncio.run(run()):,} sites hold nothing", err=True)


@network.command()
@_PLAN
@click.option(
    "--directory",
    required=True,
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    help="What the sites keep, and the file of sites, `sites.jsonl`.",
)
@click.option(
    "--sites",
    "count",
    metavar="N",
    type=click.IntRange(1),
    help="How many.  [default: those of the plan]",
)
@_NAME
@click.option("--port", default=8080, show_default=True, help="The port of the source; 0 takes a free one.")
def local(plan: Path, directory: Path, count: int | None, name: str, port: int) -> None:
    r"""Run a whole network on this machine, to try it out: a process for each site, from one that is loaded.

    It runs until Ctrl-C, and repairs itself when a site is killed. With --sites the views are spread over so
    many sites, one after another.

    \b
    Example:
      headgate network local network/ --directory try/ --sites 20
    """
    need_service()
    made = _plan(plan)
    names = sorted({view.site for view in made.placed()})
    if count is not None:
        spread = {each: f"site{place % count:03}" for place, each in enumerate(names)}
        made.rename_sites(spread)
        names = sorted(set(spread.values()))
    from headgate.network.assignment import SOURCE
    from headgate.network.local import LocalSites
    from headgate.network.sites_file import write_sites

    with LocalSites(directory, many=len(names)) as running:
        click.echo(f"starting {len(names) + 1:,} sites", err=True)
        source = running.start(SOURCE, port)
        for each in names:
            running.start(each)
        write_sites(directory / "sites.jsonl", running.neighbours())
        assert source.publisher is not None

        async def run(deployment: Deployment) -> None:
            await deployment.deploy()
            click.echo(f"{len(made):,} views are at {len(names):,} sites. Publish documents with", err=True)
            click.echo(f"  export HEADGATE_URL={source.neighbour.address}", err=True)
            click.echo(f"  export HEADGATE_KEY=$(cat {directory / 'publisher.key'})", err=True)
            click.echo(
                f"See how it fares: headgate network status --sites {directory / 'sites.jsonl'}", err=True
            )
            await _watch(deployment)

        (directory / "publisher.key").touch(0o600)
        (directory / "publisher.key").write_text(source.publisher.key or "")
        _run(made, running.neighbours(), name, "default", run)


@report.command(name="network")
@_SITES
@click.option(
    "--output", required=True, metavar="FILE", help="A page (.html), or the charts alone (.svg, .png)."
)
@click.option(
    "--document",
    metavar="N",
    type=click.IntRange(1),
    help="The document whose way is drawn.  [default: the last that all views have]",
)
@json_option
def report_network(sites: Path, output: str, document: int | None, *, as_json: bool) -> None:
    r"""Draw a network that runs: who feeds whom, levels, who is behind, the way of one document.

    \b
    Examples:
      headgate report network --sites sites.jsonl --output network.html
      headgate report network --sites sites.jsonl --output network.png --document 17
    """
    import asyncio

    from headgate.report.pages import check_output

    check_output(Path(output))
    known = _sites(sites)
    from headgate.network.picture import picture_of
    from headgate.report.network_page import sentence, write_report

    found = asyncio.run(picture_of(known, document))
    given = ["headgate", "report", "network", "--sites", str(sites), "--output", output]
    if document is not None:
        given += ["--document", str(document)]
    write_report(found, Path(output), title=f"The network {found.name}", command=shlex.join(given))
    tell(
        {"sites": len(found.sites), "documents": found.documents, "output": output},
        [sentence(found), f"drawn in {output}"],
        as_json=as_json,
    )


@network.command()
@_PLAN
@click.option(
    "--links",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="JSON: `cities`, their `delay` and `speed`, `sites` with cities.  [default: nine cities]",
)
@click.option(
    "--sites", "count", metavar="N", type=click.IntRange(1), help="How many.  [default: the plan's]"
)
@click.option("--documents", default=100, show_default=True, metavar="N", type=click.IntRange(1))
@click.option(
    "--interval",
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(0.0),
    help="Between documents.",
)
@click.option(
    "--slower",
    default=1.0,
    show_default=True,
    metavar="TIMES",
    type=click.FloatRange(0.0, min_open=True),
    help="What work costs, times what was measured.",
)
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="A picture: .svg or .png.")
@json_option
def simulate(
    plan: Path,
    links: Path | None,
    count: int | None,
    documents: int,
    interval: float,
    slower: float,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    r"""Tell how long results would take in a network of sites, before and after latency was lowered.

    Nothing runs but a simulation. Views give what they gave for the sample of the plan, on average.

    \b
    Example:
      headgate network simulate network/ --sites 300 --documents 1000 --output latency.svg
    """
    if output is not None and output.suffix not in _PICTURES:
        raise TableError(f"{output} is no picture: let it end in {' or '.join(_PICTURES)}")
    from headgate.network.simulation.saved import simulate_plan

    runs = simulate_plan(plan, links, count, documents, interval, slower)
    if output is not None:
        from headgate.report.deliveries import Delivered, write_charts

        write_charts(
            f"{plan}, simulated: {documents:,} documents",
            [
                Delivered(str(plan), lowered, each.per_level, each.latency, each.delivery)
                for lowered, each in zip((False, True), runs, strict=True)
            ],
            output,
        )
    if as_json:
        names = ("before", "after")
        told = {
            name: {
                "per_level": each.per_level.tolist(),
                "latency": each.latency._asdict(),
                "delivery": each.delivery._asdict(),
                "results": each.results,
                "messages": each.messages,
                "busiest": each.busiest,
            }
            for name, each in zip(names, runs, strict=True)
        }
        click.echo(json.dumps(told))
        return
    click.echo(f"{'':<34} {'before':>12} {'after':>12}")
    rows = {
        "levels": [f"{len(each.per_level):,}" for each in runs],
        "latency of a view, mean": [_seconds(each.latency.mean) for each in runs],
        "latency of a view, least": [_seconds(each.latency.least) for each in runs],
        "latency of a view, most": [_seconds(each.latency.most) for each in runs],
        "a document is everywhere, mean": [_seconds(each.delivery.mean) for each in runs],
        "a document is everywhere, most": [_seconds(each.delivery.most) for each in runs],
        "messages": [f"{each.messages:,}" for each in runs],
        "the busiest site works": [f"{each.busiest:.1%}" for each in runs],
    }
    for name, (before, after) in rows.items():
        click.echo(f"{name:<34} {before:>12} {after:>12}")


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.1f} ms"


def _plan(path: Path) -> Dissemination:
    need_service()
    from headgate.engine.dissemination import Dissemination

    return Dissemination.open(path)


def _sites(path: Path) -> dict[str, Neighbour]:
    need_service()
    from headgate.network.sites_file import read_sites

    return read_sites(path)


async def _watch(deployment: Deployment) -> None:
    from headgate.network.watch import watch

    await watch(deployment, lambda line: click.echo(line, err=True))


def _run(
    plan: Dissemination,
    sites: dict[str, Neighbour],
    name: str,
    documents: str,
    run: Callable[[Deployment], Awaitable[Any]],
) -> None:
    import asyncio

    from headgate.network.deployment import Deployment
    from headgate.network.placement import Kind

    async def whole() -> None:
        kind = Kind(name, documents, plan.carries, names=plan.names)
        async with Deployment(kind, plan, sites) as deployment:
            await run(deployment)

    asyncio.run(whole())
