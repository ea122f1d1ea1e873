"""Commands that make workloads."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.options import options_of
from headgate.cli.shell import cli, prepare, run_on, tell, where_options
from headgate.core.settings import settings_of
from headgate.workloads.catalogue import NAMES, RDF_NAMES
from headgate.workloads.settings import GRAPHS, Generate, settings_of_workloads

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.jobs.runner import Runner
    from headgate.tables.settings import Where

    Decorated = Callable[..., Any]

TAXONOMY = "taxonomy.nt"


@cli.group()
def generate() -> None:
    """Generate workloads."""


def _workload(*names: str) -> Callable[[Decorated], Decorated]:
    """Add the options of some workloads; the command gets what is asked of one of them."""
    settings = settings_of_workloads(names)
    made = partial(Generate, workload=names[0]) if len(names) == 1 else Generate
    folder = click.Path(path_type=Path, file_okay=False)
    output = click.option(
        "--output", required=True, metavar="DIRECTORY", type=folder, help="Where the tables go."
    )

    def add(command: Decorated) -> Decorated:
        return output(options_of(made, settings)(where_options()(command)))

    return add


@generate.command(name="records")
@_workload(*NAMES)
def generate_records(asked: Generate, where: Where, **shared: Any) -> None:
    r"""Generate the advertising workload, or another: subscriptions and events.

    \b
    Example:
      headgate generate records --output ads/ --subscriptions 1000 --events 500
      headgate generate records --output mix/ --workload mixed
    """
    _make(asked, where, **shared)


@generate.command(name="exchange")
@_workload("exchange")
def generate_exchange(asked: Generate, where: Where, **shared: Any) -> None:
    r"""Generate an advertising exchange: publishers, networks and advertisers, their edges, and events.

    \b
    Example:
      headgate generate exchange --output exchange/
      headgate generate exchange --output large/ --scale 5 --selectivity 1/16 --vocabulary 10000
    """
    _make(asked, where, **shared)


@generate.command(name="social")
@_workload("social")
def generate_social(asked: Generate, where: Where, **shared: Any) -> None:
    r"""Generate a social network: persons with filters, who follows whom, and posts.

    \b
    Example:
      headgate generate social --output social/ --nodes 10000 --edges 100000
    """
    _make(asked, where, **shared)


@generate.command(name="ranking")
@_workload("ranking")
def generate_ranking(asked: Generate, where: Where, **shared: Any) -> None:
    r"""Generate subscriptions of intervals with scores and weights, and events that are points.

    \b
    Example:
      headgate generate ranking --output boxes/ --dimensions 4 --subscriptions 100000
      headgate generate ranking --output sparse/ --attributes 500 --presence 0.2
    """
    if asked.attributes is not None and asked.dimensions is not None:
        raise click.UsageError("give --dimensions or --attributes, not both")
    _make(asked, where, **shared)


@generate.command(name="rdf")
@_workload(*RDF_NAMES)
def generate_rdf(asked: Generate, where: Where, **shared: Any) -> None:
    r"""Generate filters in SPARQL, events in N-Triples and a taxonomy.

    \b
    Example:
      headgate generate rdf --output graphs/ --subscriptions 30000 --events 1000
      headgate generate rdf --output stars/ --workload stars
    """
    _make(asked, where, **shared)


@generate.command(name="xmark")
@_workload("xmark")
def generate_xmark(asked: Generate, where: Where, **shared: Any) -> None:
    r"""Generate views over XMark's schema in XPath, and documents of auction sites that answer them.

    \b
    Example:
      headgate generate xmark --output auctions/ --subscriptions 10000 --events 100
      headgate generate xmark --output popular/ --subscriptions 10000 --unique 3000 --law wan
    """
    _make(asked, where, **shared)


def _make(asked: Generate, where: Where, *, output: Path, quiet: bool, as_json: bool) -> None:
    """Make the tables of a workload in a directory, and tell where they are."""
    from headgate.errors import TableError
    from headgate.local.small import ROWS
    from headgate.tables.places import check_output
    from headgate.workloads.catalogue import workload_of

    for each in settings_of(Generate):
        if each.only and asked.workload not in each.only and each.given(asked):
            raise click.UsageError(f"{each.flag} goes with --workload {each.only[0]}")
    # Places that are taken, and a machine without Spark, are refused before what takes long to load.
    for table in ("nodes", "edges", "events") if asked.workload in GRAPHS else ("subscriptions", "events"):
        check_output(_place(output, table, asked.format))
    if asked.workload in RDF_NAMES and (output / TAXONOMY).is_dir():
        raise TableError(f"{output / TAXONOMY} is a directory: choose another place")
    prepare(where, None)
    made, seed = workload_of(asked), asked.seed
    total = sum(table.rows for table in made.tables.values())
    large = None if total <= ROWS else f"{total:,} rows are many"
    places = {table: _place(output, table, asked.format) for table in made.tables}

    def run(runner: Runner) -> None:
        from headgate.jobs.generate import generate

        for table, (make, schema, count) in made.tables.items():
            generate(runner, make, schema, count, places[table], seed=seed)

    run_on(where, large, run, quiet=quiet)
    lines = [f"wrote {table.rows:,} {called} to {places[called]}" for called, table in made.tables.items()]
    if made.taxonomy is not None:
        classes = output / TAXONOMY
        output.mkdir(parents=True, exist_ok=True)
        classes.write_text(made.taxonomy, "utf-8")
        places["taxonomy"] = str(classes)
        lines.append(f"wrote {made.taxonomy.count(chr(10)):,} statements to {classes}")
    tell({**places, "seed": seed}, lines, as_json=as_json)


def _place(output: Path, name: str, form: str) -> str:
    return str(output / f"{name}.{form}")
