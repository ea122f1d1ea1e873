"""Commands that make workloads."""

from __future__ import annotations

from pathlib import Path

import click

from headgate.cli.shell import cli, session, spark_options, tell


@cli.group()
def generate() -> None:
    """Generate workloads."""


@generate.command(name="records")
@click.option(
    "--output", required=True, metavar="DIRECTORY", type=click.Path(path_type=Path, file_okay=False)
)
@click.option("--subscriptions", default=100_000, show_default=True, type=click.IntRange(min=0))
@click.option("--events", default=20_000, show_default=True, type=click.IntRange(min=0))
@click.option("--seed", default=1, show_default=True, type=int, help="The same seed gives the same rows.")
@click.option("--format", "form", default="jsonl", show_default=True, type=click.Choice(["jsonl", "parquet"]))
@spark_options
def generate_records(
    output: Path,
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
    r"""Generate the advertising workload: subscriptions and events.

    \b
    Example:
      headgate generate records --output ads/ --subscriptions 1000 --events 500
    """
    from headgate.spark.generate import generate as run
    from headgate.spark.tables import check_output
    from headgate.workloads import advertising

    places = {
        "subscriptions": str(output / f"subscriptions.{form}"),
        "events": str(output / f"events.{form}"),
    }
    for place in places.values():
        check_output(place)
    with session(master, conf, quiet=quiet) as spark:
        schema = advertising.subscription_schema()
        run(
            spark,
            advertising.subscriptions,
            schema,
            subscriptions,
            places["subscriptions"],
            seed=seed,
            quiet=quiet,
        )
        run(
            spark,
            advertising.events,
            advertising.schema(),
            events,
            places["events"],
            seed=seed,
            quiet=quiet,
        )
    lines = [f"wrote {subscriptions:,} subscriptions to {places['subscriptions']}"]
    lines.append(f"wrote {events:,} events to {places['events']}")
    tell({**places, "seed": seed}, lines, as_json=as_json)
