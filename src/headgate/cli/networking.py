"""Commands about networks of sites: be a site, put a plan on sites, look after them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.options import options_of
from headgate.cli.reporting import report
from headgate.cli.shell import cli, json_option, shown_command, tell
from headgate.core.machine import need
from headgate.core.settings import Request, setting
from headgate.errors import TableError
from headgate.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headgate.engine.dissemination import Dissemination
    from headgate.network.assignment import Neighbour
    from headgate.network.deployment import Deployment
    from headgate.network.site import SiteStatus

_PLAN = click.argument("plan", metavar="PLAN", type=click.Path(path_type=Path))
_NAME = click.option("--name", default="headgate", show_default=True, help="The name of the network.")
_PICTURES = (".svg", ".png")


@dataclass(frozen=True, kw_only=True)
class Sites(Request):
    """The sites of a network."""

    sites: str = setting(
        "lines of JSON: `site`, `address`, `key_file` or `key`; the site of the publisher is `source`",
        metavar="FILE",
    )

    def read(self) -> dict[str, Neighbour]:
        """Read the file."""
        need("service")
        from headgate.network.assignment import read_sites

        return read_sites(Path(self.sites))


@dataclass(frozen=True, kw_only=True)
class Deployed(Sites):
    """The sites that a plan is put on, and what they are told besides."""

    name: str = setting("the name of the network", "headgate")
    documents: str = setting(
        "the tenant of the source that documents are published to", "default", metavar="TENANT"
    )
    watch: bool = setting("stay, and repair the network when sites fail", False)


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
    need("service")
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
@options_of(Deployed)
def deploy(asked: Deployed, plan: Path) -> None:
    r"""Put a plan on sites: each is told the views that it holds, and what they are computed from.

    \b
    Example:
      headgate network deploy network/ --sites sites.jsonl --watch
    """
    made, known = _plan(plan), asked.read()

    async def run(deployment: Deployment) -> None:
        if deployment.deployed:
            raise TableError(
                f"the sites hold network {asked.name!r} already: use `headgate network redeploy`"
            )
        await deployment.deploy()
        click.echo(f"{len(made):,} views are at {len(known) - 1:,} sites", err=True)

    _run(asked, made, known, run)


@network.command()
@_PLAN
@options_of(Deployed)
def redeploy(asked: Deployed, plan: Path) -> None:
    r"""Go over from the plan that the sites have to another one, while documents come.

    No subscriber misses a result or gets one twice. Views stay at their sites.

    \b
    Example:
      headgate network redeploy next/ --sites sites.jsonl
    """
    made, known = _plan(plan), asked.read()

    async def run(deployment: Deployment) -> None:
        await deployment.redeploy(made)
        click.echo(f"{len(made):,} views are fed as {plan} says", err=True)

    _run(asked, made, known, run)


@network.command()
@_PLAN
@click.argument("leaving", metavar="SITE")
@options_of(Deployed, without=("watch",))
def drain(asked: Deployed, plan: Path, leaving: str) -> None:
    r"""Have a site hold nothing, so that it can be stopped; those that it fed are fed in another way.

    \b
    Example:
      headgate network drain network/ paris --sites sites.jsonl
    """
    made, known = _plan(plan), asked.read()
    if leaving not in known:
        raise TableError(
            f"there is no site {leaving!r} in {asked.sites}: it has {', '.join(list(known)[:5])}"
        )

    async def run(deployment: Deployment) -> None:
        done = await deployment.drain(leaving)
        click.echo(
            f"site {leaving!r} holds nothing: {len(done.moved):,} views are fed in another way, "
            f"{len(done.unfed):,} by nobody",
            err=True,
        )

    _run(asked, made, known, run)


@network.command()
@options_of(Sites)
@json_option
def status(asked: Sites, *, as_json: bool) -> None:
    r"""Show how sites fare: their views, how far these have come, their links.

    \b
    Example:
      headgate network status --sites sites.jsonl
    """
    import asyncio

    known = asked.read()
    from headgate.network.deployment import look_at

    statuses = asyncio.run(look_at(known))
    last = max((each.documents for each in statuses.values() if each is not None), default=0)
    head = f"{'site':<20} {'views':>6} {'levels':>7} {'behind':>7} {'links':>9} {'MB':>5} {'CPU s':>7}  state"
    lines = [head, *(_line(name, each, last) for name, each in statuses.items())]
    import msgspec

    tell(msgspec.to_builtins(statuses), lines, as_json=as_json)


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
@options_of(Sites)
@click.option("--yes", is_flag=True, help="Do not ask.")
def stop(asked: Sites, *, yes: bool) -> None:
    r"""Have all sites hold nothing; results that they have kept stay until they are too old.

    \b
    Example:
      headgate network stop --sites sites.jsonl --yes
    """
    known = asked.read()
    if not yes:
        click.confirm(f"{len(known):,} sites will hold no views any more. Go on?", abort=True, err=True)

    import asyncio

    from headgate.network.deployment import clear_all

    click.echo(f"{asyncio.run(clear_all(known)):,} sites hold nothing", err=True)


@dataclass(frozen=True)
class Local(Request):
    """Where a network runs, and on how many sites."""

    directory: str = setting("what the sites keep, and the file of sites, `sites.jsonl`", metavar="DIRECTORY")
    sites: int | None = setting("how many", least=1, shown="those of the plan")
    port: int = setting("the port of the source; 0 takes a free one", 8080)


@network.command()
@_PLAN
@options_of(Local)
@_NAME
def local(asked: Local, plan: Path, name: str) -> None:
    r"""Run a whole network on this machine, to try it out: a process for each site, from one that is loaded.

    It runs until Ctrl-C, and repairs itself when a site is killed. With --sites the views are spread over so
    many sites, one after another.

    \b
    Example:
      headgate network local network/ --directory try/ --sites 20
    """
    directory, count = Path(asked.directory), asked.sites
    made = _plan(plan)
    names = sorted({view.site for view in made.placed()})
    if count is not None:
        spread = {each: f"site{number % count:03}" for number, each in enumerate(names)}
        made.rename_sites(spread)
        names = sorted(set(spread.values()))
    from headgate.network.assignment import SOURCE, write_sites
    from headgate.network.local import LocalSites

    with LocalSites(directory, many=len(names)) as running:
        click.echo(f"starting {len(names) + 1:,} sites", err=True)
        source = running.start(SOURCE, asked.port)
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

        (directory / "publisher.key").touch(0o600)
        (directory / "publisher.key").write_text(source.publisher.key or "")
        told = Deployed(sites="", name=name, watch=True)
        _run(told, made, running.neighbours(), run, attach=False)


@dataclass(frozen=True, kw_only=True)
class ReportNetwork(Sites):
    """What is drawn of a network."""

    output: str = setting("a page (.html), or the charts alone (.svg, .png)", metavar="FILE")
    document: int | None = setting(
        "the document whose way is drawn", least=1, shown="the last that all views have"
    )


@report.command(name="network")
@options_of(ReportNetwork)
@json_option
def report_network(asked: ReportNetwork, *, as_json: bool) -> None:
    r"""Draw a network that runs: who feeds whom, levels, who is behind, the way of one document.

    \b
    Examples:
      headgate report network --sites sites.jsonl --output network.html
      headgate report network --sites sites.jsonl --output network.png --document 17
    """
    import asyncio

    from headgate.report.pages import check_output

    output = asked.output
    check_output(Path(output))
    known = asked.read()
    from headgate.network.picture import picture_of
    from headgate.report.network_page import sentence, write_report

    picture = asyncio.run(picture_of(known, asked.document))
    command = shown_command(sys.argv[1:])
    write_report(picture, Path(output), title=f"The network {picture.name}", command=command)
    tell(
        {"sites": len(picture.sites), "documents": picture.documents, "output": output},
        [sentence(picture), f"drawn in {output}"],
        as_json=as_json,
    )


@dataclass(frozen=True)
class Simulate(Request):
    """What is simulated besides a plan."""

    links: str | None = setting(
        "JSON: `cities`, their `delay` and `speed`, `sites` with cities",
        metavar="FILE",
        shown="nine cities",
    )
    sites: int | None = setting("how many", least=1, shown="the plan's")
    documents: int = setting("how many", 100, least=1)
    interval: float = setting("between documents", 10.0, metavar="SECONDS", least=0)
    output: str | None = setting("a picture: .svg or .png", metavar="FILE")


@network.command()
@_PLAN
@options_of(Simulate)
@click.option(
    "--slower",
    default=1.0,
    show_default=True,
    metavar="TIMES",
    type=click.FloatRange(0.0, min_open=True),
    help="What work costs, times what was measured.",
)
@json_option
def simulate(asked: Simulate, plan: Path, slower: float, *, as_json: bool) -> None:
    r"""Tell how long results would take in a network of sites, before and after latency was lowered.

    Nothing runs but a simulation. Views give what they gave for the sample of the plan, on average.

    \b
    Example:
      headgate network simulate network/ --sites 300 --documents 1000 --output latency.svg
    """
    output = None if asked.output is None else Path(asked.output)
    links = None if asked.links is None else Path(asked.links)
    if output is not None and output.suffix not in _PICTURES:
        raise TableError(f"{output} is no picture: let it end in {' or '.join(_PICTURES)}")
    from headgate.network.simulation.figures import simulate_plan

    runs = simulate_plan(plan, links, asked.sites, asked.documents, asked.interval, slower)
    if output is not None:
        from headgate.report.deliveries import Delivered, write_charts

        write_charts(
            f"{plan}, simulated: {asked.documents:,} documents",
            [
                Delivered(str(plan), lowered, each.per_level, each.latency, each.delivery)
                for lowered, each in zip((False, True), runs, strict=True)
            ],
            output,
        )
    told = {
        name: {
            "per_level": each.per_level.tolist(),
            "latency": each.latency._asdict(),
            "delivery": each.delivery._asdict(),
            "results": each.results,
            "messages": each.messages,
            "busiest": each.busiest,
        }
        for name, each in zip(("before", "after"), runs, strict=True)
    }
    rows = {
        "": list(told),
        "levels": [f"{len(each.per_level):,}" for each in runs],
        "latency of a view, mean": [_seconds(each.latency.mean) for each in runs],
        "latency of a view, least": [_seconds(each.latency.least) for each in runs],
        "latency of a view, most": [_seconds(each.latency.most) for each in runs],
        "a document is everywhere, mean": [_seconds(each.delivery.mean) for each in runs],
        "a document is everywhere, most": [_seconds(each.delivery.most) for each in runs],
        "messages": [f"{each.messages:,}" for each in runs],
        "the busiest site works": [f"{each.busiest:.1%}" for each in runs],
    }
    lines = [f"{name:<34} {before:>12} {after:>12}" for name, (before, after) in rows.items()]
    tell(told, lines, as_json=as_json)


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.1f} ms"


def _plan(path: Path) -> Dissemination:
    need("service")
    from headgate.engine.dissemination import Dissemination

    return Dissemination.open(path)


def _run(
    asked: Deployed,
    plan: Dissemination,
    sites: dict[str, Neighbour],
    run: Callable[[Deployment], Awaitable[Any]],
    *,
    attach: bool = True,
) -> None:
    import asyncio

    from headgate.network.assignment import Kind
    from headgate.network.deployment import Deployment
    from headgate.network.watch import watch

    async def whole() -> None:
        kind = Kind(asked.name, asked.documents, plan.carries, names=plan.names)
        async with Deployment(kind, plan, sites) as deployment:
            if attach:
                await deployment.attach()
            await run(deployment)
            if asked.watch:
                await watch(deployment, lambda line: click.echo(line, err=True))

    asyncio.run(whole())
