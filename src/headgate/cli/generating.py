"""Commands that make workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.shell import cli, engine_option, prepare, run_job, spark_options, tell
from headgate.workloads.catalogue import (
    EXCHANGE_SELECTIVITIES,
    NAMES,
    RANKING_SCORES,
    RDF_NAMES,
    SOCIAL_SELECTIVITIES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.spark.session.session import Session

    Decorated = Callable[..., Any]

TAXONOMY = "taxonomy.nt"


@cli.group()
def generate() -> None:
    """Generate workloads."""


def _options(command: Decorated) -> Decorated:
    """Add the options that every workload has."""
    for option in (
        click.option(
            "--format", "form", default="jsonl", show_default=True, type=click.Choice(["jsonl", "parquet"])
        ),
        click.option(
            "--seed", default=1, show_default=True, type=int, help="The same seed gives the same rows."
        ),
        click.option(
            "--output", required=True, metavar="DIRECTORY", type=click.Path(path_type=Path, file_okay=False)
        ),
    ):
        command = option(command)
    return command


def _count(name: str, default: int) -> Callable[[Decorated], Decorated]:
    """Make the option that says how many there are of something."""
    return click.option(name, default=default, show_default=True, type=click.IntRange(min=0))


@generate.command(name="records")
@_options
@click.option(
    "--workload",
    "name",
    default="advertising",
    show_default=True,
    type=click.Choice(NAMES),
    help="equality is W-eq, mixed is W-mix; ranges, negations and growth vary W-mix.",
)
@_count("--subscriptions", 100_000)
@_count("--events", 20_000)
@engine_option
@spark_options
def generate_records(name: str, subscriptions: int, events: int, **shared: Any) -> None:
    r"""Generate the advertising workload, or another: subscriptions and events.

    \b
    Example:
      headgate generate records --output ads/ --subscriptions 1000 --events 500
      headgate generate records --output mix/ --workload mixed
    """
    _make(name, {"subscriptions": subscriptions, "events": events}, **shared)


@generate.command(name="exchange")
@_options
@click.option(
    "--scale", default=1, show_default=True, type=click.IntRange(1, 5), help="Times the size of the paper's."
)
@click.option(
    "--selectivity",
    default="1/4",
    show_default=True,
    type=click.Choice(EXCHANGE_SELECTIVITIES),
    help="The part of the nodes that want an event; 1 is no filters.",
)
@click.option(
    "--vocabulary",
    metavar="N",
    type=click.IntRange(16, 1_000_000),
    help="Values of each attribute; by default they have 4 to 86.",
)
@_count("--events", 1_000)
@engine_option
@spark_options
def generate_exchange(
    scale: int, selectivity: str, vocabulary: int | None, events: int, **shared: Any
) -> None:
    r"""Generate an advertising exchange: publishers, networks and advertisers, their edges, and events.

    \b
    Example:
      headgate generate exchange --output exchange/
      headgate generate exchange --output large/ --scale 5 --selectivity 1/16 --vocabulary 10000
    """
    asked = {"scale": scale, "selectivity": selectivity, "vocabulary": vocabulary, "events": events}
    _make("exchange", asked, **shared)


@generate.command(name="social")
@_options
@click.option("--nodes", default=1_000_000, show_default=True, type=int)
@click.option("--edges", default=10_000_000, show_default=True, type=int, help="Twice the nodes at least.")
@click.option(
    "--selectivity",
    default="1/16",
    show_default=True,
    type=click.Choice(SOCIAL_SELECTIVITIES),
    help="The part of the persons who want a post; 1 is no filters.",
)
@_count("--events", 1_000)
@engine_option
@spark_options
def generate_social(nodes: int, edges: int, selectivity: str, events: int, **shared: Any) -> None:
    r"""Generate a social network: persons with filters, who follows whom, and posts.

    \b
    Example:
      headgate generate social --output social/ --nodes 10000 --edges 100000
    """
    asked = {"nodes": nodes, "edges": edges, "selectivity": selectivity, "events": events}
    _make("social", asked, **shared)


@generate.command(name="ranking")
@_options
@click.option("--dimensions", metavar="D", type=int, help="Intervals of a subscription; 1 by default.")
@click.option(
    "--attributes",
    metavar="N",
    type=int,
    help="Attributes of events; a subscription then has intervals for 3 to 8 of them.",
)
@click.option(
    "--presence",
    metavar="PART",
    type=float,
    help="The part of the attributes that an event has, with --attributes; 1 by default.",
)
@click.option("--skew-length", default=0.75, show_default=True, type=float, help="Higher: shorter intervals.")
@click.option(
    "--scores",
    default="length",
    show_default=True,
    type=click.Choice(RANKING_SCORES),
    help="length: the mean of the weights, which are higher for shorter intervals.",
)
@_count("--subscriptions", 1_000_000)
@_count("--events", 1_000)
@engine_option
@spark_options
def generate_ranking(**given: Any) -> None:
    r"""Generate subscriptions of intervals with scores and weights, and events that are points.

    \b
    Example:
      headgate generate ranking --output boxes/ --dimensions 4 --subscriptions 100000
      headgate generate ranking --output sparse/ --attributes 500 --presence 0.2
    """
    if given["attributes"] is not None and given["dimensions"] is not None:
        raise click.UsageError("give --dimensions or --attributes, not both")
    if given["attributes"] is None and given["presence"] is not None:
        raise click.UsageError("--presence goes with --attributes")
    names = ("dimensions", "attributes", "presence", "skew_length", "scores", "subscriptions", "events")
    _make("ranking", {name: given.pop(name) for name in names}, **given)


@generate.command(name="rdf")
@_options
@click.option(
    "--workload",
    "name",
    default="paper",
    show_default=True,
    type=click.Choice(RDF_NAMES),
    help="paper: graphs with nodes for variables; stars: instances of classes, with ranges.",
)
@click.option(
    "--match-ratio",
    metavar="PART",
    type=float,
    help="The part of the subscriptions that an event matches, for paper; 0.001 by default.",
)
@click.option(
    "--overlap",
    metavar="PART",
    type=float,
    help="The part of the others that share edges, for paper; 0.5 by default.",
)
@click.option("--constrained", is_flag=True, help="Put bounds on variables, for paper.")
@_count("--subscriptions", 30_000)
@_count("--events", 1_000)
@engine_option
@spark_options
def generate_rdf(name: str, **given: Any) -> None:
    r"""Generate filters in SPARQL, events in N-Triples and a taxonomy.

    \b
    Example:
      headgate generate rdf --output graphs/ --subscriptions 30000 --events 1000
      headgate generate rdf --output stars/ --workload stars
    """
    of_paper = {option: given.pop(option) for option in ("match_ratio", "overlap", "constrained")}
    if name == "stars" and any(value is not None and value is not False for value in of_paper.values()):
        raise click.UsageError("--match-ratio, --overlap and --constrained go with --workload paper")
    counts = {option: given.pop(option) for option in ("subscriptions", "events")}
    _make(name, {**of_paper, **counts}, **given)


@generate.command(name="xmark")
@_options
@click.option(
    "--unique",
    metavar="N",
    type=int,
    help="How many subscriptions are different; the others repeat them. All, by default.",
)
@click.option(
    "--kilobytes",
    nargs=2,
    default=(10, 40),
    show_default=True,
    metavar="LEAST MOST",
    type=click.IntRange(1, 10_000),
    help="The size of a document.",
)
@_count("--subscriptions", 100_000)
@_count("--events", 200)
@engine_option
@spark_options
def generate_xmark(**given: Any) -> None:
    r"""Generate views over XMark's schema in XPath, and documents of auction sites that answer them.

    \b
    Example:
      headgate generate xmark --output auctions/ --subscriptions 10000 --events 100
      headgate generate xmark --output popular/ --subscriptions 10000 --unique 3000
    """
    names = ("unique", "kilobytes", "subscriptions", "events")
    _make("xmark", {name: given.pop(name) for name in names}, **given)


def _make(
    name: str,
    asked: dict[str, Any],
    *,
    output: Path,
    seed: int,
    form: str,
    engine: str | None,
    master: str | None,
    conf: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Make the tables of a workload in a directory, and tell where they are."""
    from headgate.errors import TableError
    from headgate.local.small import ROWS
    from headgate.pipeline.file.model import GRAPHS
    from headgate.pipeline.file.settings import Generate
    from headgate.pipeline.run.generating import workload_of
    from headgate.tables.places import check_output

    # Places that are taken, and a machine without Spark, are refused before what takes long to load.
    for table in ("nodes", "edges", "events") if name in GRAPHS else ("subscriptions", "events"):
        check_output(_place(output, table, form))
    if name in RDF_NAMES and (output / TAXONOMY).is_dir():
        raise TableError(f"{output / TAXONOMY} is a directory: choose another place")
    settings = Generate(workload=name, seed=seed, **asked)
    prepare(engine, master, conf, None)
    made = workload_of(settings)
    total = sum(table.rows for table in made.tables.values())
    large = None if total <= ROWS else f"{total:,} rows are many"
    places = {table: _place(output, table, form) for table in made.tables}

    def here() -> None:
        from headgate.local.generate import generate

        for table, (make, schema, count) in made.tables.items():
            generate(make, schema, count, places[table], seed=seed, quiet=quiet)

    def on_spark(spark: Session) -> None:
        from headgate.spark.tables.generate import generate

        for table, (make, schema, count) in made.tables.items():
            generate(spark, make, schema, count, places[table], seed=seed, quiet=quiet)

    run_job(engine, master, conf, large, here, on_spark, quiet=quiet)
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
