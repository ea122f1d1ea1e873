"""Commands that make workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.shell import cli, ready, session, spark_options, tell
from headgate.workloads.catalogue import (
    EXCHANGE_SELECTIVITIES,
    NAMES,
    RANKING_SCORES,
    RDF_NAMES,
    SOCIAL_SELECTIVITIES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.workloads.graphs.graphs import GraphWorkload

    Maker = Callable[[NDArray[np.int64], int], pa.RecordBatch]
    Tables = dict[str, tuple[Maker, pa.Schema, int]]
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
@click.option("--subscriptions", default=100_000, show_default=True, type=click.IntRange(min=0))
@click.option("--events", default=20_000, show_default=True, type=click.IntRange(min=0))
@spark_options
def generate_records(name: str, subscriptions: int, events: int, **shared: Any) -> None:
    r"""Generate the advertising workload, or another: subscriptions and events.

    \b
    Example:
      headgate generate records --output ads/ --subscriptions 1000 --events 500
      headgate generate records --output mix/ --workload mixed
    """
    _check("subscriptions", "events", **shared)
    from headgate.workloads.catalogue import workload

    made = workload(name, subscriptions)
    tables: Tables = {
        "subscriptions": (made.subscriptions, made.subscription_schema(), subscriptions),
        "events": (made.events, made.schema(), events),
    }
    _write(tables, **shared)


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
@click.option("--events", default=1_000, show_default=True, type=click.IntRange(min=0))
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
    _check("nodes", "edges", "events", **shared)
    from headgate.workloads.graphs.exchange import Exchange

    _write(_tables(Exchange(scale, selectivity, vocabulary), events), **shared)


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
@click.option("--events", default=1_000, show_default=True, type=click.IntRange(min=0))
@spark_options
def generate_social(nodes: int, edges: int, selectivity: str, events: int, **shared: Any) -> None:
    r"""Generate a social network: persons with filters, who follows whom, and posts.

    \b
    Example:
      headgate generate social --output social/ --nodes 10000 --edges 100000
    """
    _check("nodes", "edges", "events", **shared)
    from headgate.workloads.graphs.social import Social

    _write(_tables(Social(nodes, edges, selectivity), events), **shared)


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
@click.option("--subscriptions", default=1_000_000, show_default=True, type=click.IntRange(min=0))
@click.option("--events", default=1_000, show_default=True, type=click.IntRange(min=0))
@spark_options
def generate_ranking(
    dimensions: int | None,
    attributes: int | None,
    presence: float | None,
    skew_length: float,
    scores: str,
    subscriptions: int,
    events: int,
    **shared: Any,
) -> None:
    r"""Generate subscriptions of intervals with scores and weights, and events that are points.

    \b
    Example:
      headgate generate ranking --output boxes/ --dimensions 4 --subscriptions 100000
      headgate generate ranking --output sparse/ --attributes 500 --presence 0.2
    """
    if attributes is not None and dimensions is not None:
        raise click.UsageError("give --dimensions or --attributes, not both")
    if attributes is None and presence is not None:
        raise click.UsageError("--presence goes with --attributes")
    _check("subscriptions", "events", **shared)
    from headgate.workloads.boxes.boxes import TABLE_1
    from headgate.workloads.boxes.ranking import Ranking, Sparse

    law = TABLE_1._replace(skew_length=skew_length)
    if attributes is not None:
        part = 1.0 if presence is None else presence
        made: Ranking | Sparse = Sparse(attributes, presence=part, scores=scores, law=law)
    else:
        made = Ranking(1 if dimensions is None else dimensions, scores, law)
    tables: Tables = {
        "subscriptions": (made.subscriptions, made.subscription_schema(), subscriptions),
        "events": (made.events, made.schema(), events),
    }
    _write(tables, **shared)


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
@click.option("--subscriptions", default=30_000, show_default=True, type=click.IntRange(min=0))
@click.option("--events", default=1_000, show_default=True, type=click.IntRange(min=0))
@spark_options
def generate_rdf(
    name: str,
    match_ratio: float | None,
    overlap: float | None,
    constrained: bool,
    subscriptions: int,
    events: int,
    **shared: Any,
) -> None:
    r"""Generate filters in SPARQL, events in N-Triples and a taxonomy.

    \b
    Example:
      headgate generate rdf --output graphs/ --subscriptions 30000 --events 1000
      headgate generate rdf --output stars/ --workload stars
    """
    given = {"ratio": match_ratio, "overlap": overlap, "constrained": constrained or None}
    chosen: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    if name == "stars" and chosen:
        raise click.UsageError("--match-ratio, --overlap and --constrained go with --workload paper")
    _check("subscriptions", "events", taxonomy=True, **shared)
    from headgate.workloads.rdf.stars import Stars
    from headgate.workloads.rdf.triples import Paper

    made = Stars() if name == "stars" else Paper(**chosen)
    tables: Tables = {
        "subscriptions": (made.subscriptions, made.subscription_schema(), subscriptions),
        "events": (made.events, made.schema(), events),
    }
    _write(tables, taxonomy=made.taxonomy_text(shared["seed"]), **shared)


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
@click.option("--subscriptions", default=100_000, show_default=True, type=click.IntRange(min=0))
@click.option("--events", default=200, show_default=True, type=click.IntRange(min=0))
@spark_options
def generate_xmark(
    unique: int | None, kilobytes: tuple[int, int], subscriptions: int, events: int, **shared: Any
) -> None:
    r"""Generate views over XMark's schema in XPath, and documents of auction sites that answer them.

    \b
    Example:
      headgate generate xmark --output auctions/ --subscriptions 10000 --events 100
      headgate generate xmark --output popular/ --subscriptions 10000 --unique 3000
    """
    _check("subscriptions", "events", **shared)
    from headgate.workloads.xml.xmark import XMark

    least, most = kilobytes
    made = XMark(unique=unique, sizes=(1_000 * least, 1_000 * most)).settled(subscriptions, shared["seed"])
    tables: Tables = {
        "subscriptions": (made.subscriptions, made.subscription_schema(), subscriptions),
        "events": (made.events, made.schema(), events),
    }
    _write(tables, **shared)


def _tables(made: GraphWorkload, events: int) -> Tables:
    return {
        "nodes": (made.nodes, made.node_schema(), made.node_count),
        "edges": (made.edges, made.edge_schema(), made.edge_count),
        "events": (made.events, made.schema(), events),
    }


def _check(
    *names: str,
    output: Path,
    form: str,
    master: str | None,
    conf: tuple[str, ...],
    taxonomy: bool = False,
    **others: Any,
) -> None:
    """Refuse places that are taken, and a machine without Spark, before what takes long to load."""
    from headgate.errors import TableError
    from headgate.spark.tables.places import check_output

    del others
    for name in names:
        check_output(_place(output, name, form))
    if taxonomy and (output / TAXONOMY).is_dir():
        raise TableError(f"{output / TAXONOMY} is a directory: choose another place")
    ready(master, conf)


def _place(output: Path, name: str, form: str) -> str:
    return str(output / f"{name}.{form}")


def _write(
    tables: Tables,
    output: Path,
    seed: int,
    form: str,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
    taxonomy: str | None = None,
) -> None:
    """Write tables into a directory, and a taxonomy if there is one, and tell where they are."""
    from headgate.spark.tables.generate import generate as run

    places = {name: _place(output, name, form) for name in tables}
    classes = output / TAXONOMY
    with session(master, conf, quiet=quiet) as spark:
        for name, (make, schema, count) in tables.items():
            run(spark, make, schema, count, places[name], seed=seed, quiet=quiet)
    lines = [f"wrote {count:,} {name} to {places[name]}" for name, (_, _, count) in tables.items()]
    if taxonomy is not None:
        output.mkdir(parents=True, exist_ok=True)
        classes.write_text(taxonomy, "utf-8")
        places["taxonomy"] = str(classes)
        lines.append(f"wrote {taxonomy.count(chr(10)):,} statements to {classes}")
    tell({**places, "seed": seed}, lines, as_json=as_json)
