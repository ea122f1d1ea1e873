"""Commands that make workloads."""

from __future__ import annotations

from pathlib import Path

import click

from headgate.cli.shell import cli, session, spark_options, tell
from headgate.workloads.catalogue import NAMES


@cli.group()
def generate() -> None:
    """Generate workloads."""


@generate.command(name="records")
@click.option(
    "--output", required=True, metavar="DIRECTORY", type=click.Path(path_type=Path, file_okay=False)
)
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
@click.option("--seed", default=1, show_default=True, type=int, help="The same seed gives the same rows.")
@click.option("--format", "form", default="jsonl", show_default=True, type=click.Choice(["jsonl", "parquet"]))
@spark_options
def generate_records(
    output: Path,
    name: str,
    subscriptions: int,
    events: int,
    seed: int,
    form: str,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Generate the advertising workload, or another: subscriptions and events.

    \b
    Example:
      headgate generate records --output ads/ --subscriptions 1000 --events 500
      headgate generate records --output mix/ --workload mixed
    """
    from headgate.spark.generate import generate as run
    from headgate.spark.tables import check_output
    from headgate.workloads.catalogue import workload

    places = {
        "subscriptions": str(output / f"subscriptions.{form}"),
        "events": str(output / f"events.{form}"),
    }
    for place in places.values():
        check_output(place)
    made = workload(name, subscriptions)
    with session(master, conf, quiet=quiet) as spark:
        for make, schema, count, place in (
            (made.subscriptions, made.subscription_schema(), subscriptions, places["subscriptions"]),
            (made.events, made.schema(), events, places["events"]),
        ):
            run(spark, make, schema, count, place, seed=seed, quiet=quiet)
    lines = [f"wrote {subscriptions:,} subscriptions to {places['subscriptions']}"]
    lines.append(f"wrote {events:,} events to {places['events']}")
    tell({**places, "seed": seed}, lines, as_json=as_json)
