"""Commands that run a job on Spark over tables."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from headgate.cli.shell import STRICT_EXIT, beside, cli, read_text, session, spark_options, tell


@cli.command(name="compile")
@click.option(
    "--subscriptions", required=True, metavar="TABLE", help="Columns: id, filter, and perhaps dialect."
)
@click.option("--output", required=True, metavar="DIRECTORY", help="Where the snapshot goes.")
@click.option("--rejected", metavar="TABLE", help="Where refused rows go.  [default: OUTPUT-rejected.jsonl]")
@click.option(
    "--schema", metavar="FILE", help="JSON with the attributes' types; filters are checked against it."
)
@click.option(
    "--sample",
    metavar="TABLE",
    help="Events like those to come; filters are filed under values that few of them have.",
)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@spark_options
def compile_(
    subscriptions: str,
    output: str,
    rejected: str | None,
    schema: str | None,
    sample: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Compile a table of subscriptions to a snapshot.

    Tables are .jsonl, .csv or .parquet. Rows that are refused land in the rejected table with the reason.

    \b
    Example:
      headgate compile --subscriptions subs.jsonl --output snapshot/
    """
    from headgate.spark.compile import check_request, compile_subscriptions

    refused = rejected or beside(output, "rejected")
    types = read_text(schema) if schema else None
    check_request(subscriptions, output, rejected=refused, schema=types, sample=sample)
    with session(master, conf, quiet=quiet) as spark:
        done = compile_subscriptions(
            spark, subscriptions, output, rejected=refused, schema=types, sample=sample, quiet=quiet
        )
    lines = [
        f"compiled {done.subscriptions:,} subscriptions over {len(done.attributes)} attributes to {output}"
    ]
    lines.append(
        f"refused {done.rejected:,} rows, with the reasons in {refused}" if done.rejected else "refused none"
    )
    tell({**asdict(done), "snapshot": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


@cli.command()
@click.option("--snapshot", required=True, metavar="DIRECTORY", help="What compile wrote.")
@click.option("--events", required=True, metavar="TABLE", help="Columns: id and the attributes.")
@click.option("--output", required=True, metavar="TABLE", help="Where (event_id, subscription_id) goes.")
@click.option(
    "--rejected", metavar="TABLE", help="Where refused events go.  [default: OUTPUT-rejected.jsonl]"
)
@click.option("--strict", is_flag=True, help="Exit with 3 if any event was refused.")
@spark_options
def match(
    snapshot: str,
    events: str,
    output: str,
    rejected: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Match a table of events against a snapshot.

    Tables are .jsonl, .csv or .parquet; JSON lines and CSV are written as one file, Parquet as a directory.

    \b
    Example:
      headgate match --snapshot snapshot/ --events events.jsonl --output matches.jsonl
    """
    from headgate.core.snapshot import open_snapshot
    from headgate.records.index import ROOM
    from headgate.spark.match import check_request, match_events

    refused = rejected or beside(output, "rejected")
    check_request(snapshot, events, output, rejected=refused)
    open_snapshot(Path(snapshot), ROOM)
    with session(master, conf, quiet=quiet) as spark:
        done = match_events(spark, snapshot, events, output, rejected=refused, quiet=quiet)
    lines = [f"matched {done.events:,} events: {done.matches:,} matches in {output}"]
    lines.append(
        f"refused {done.rejected:,} events, with the reasons in {refused}"
        if done.rejected
        else "refused none"
    )
    if done.unknown_attributes:
        lines.append(f"note: no event has {', '.join(done.unknown_attributes)}, so filters see NULL there")
    result = {key: value for key, value in asdict(done).items() if key != "batches"}
    tell({**result, "output": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


@cli.command()
@click.option("--filter", "filter_text", required=True, metavar="SQL", help="The filter to try.")
@click.option("--events", required=True, metavar="TABLE", help="Historic events.")
@click.option("--output", metavar="TABLE", help="Where the matching events go.")
@spark_options
def backtest(
    filter_text: str,
    events: str,
    output: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Try one filter over historic events, evaluated by Spark SQL itself.

    \b
    Example:
      headgate backtest --filter "age > 30 AND topic = 'news'" --events events.jsonl
    """
    from headgate.records.parse import parse_filter
    from headgate.spark.backtest import backtest as run
    from headgate.spark.backtest import check_request

    parse_filter(filter_text)
    check_request(events, output)
    with session(master, conf, quiet=quiet) as spark:
        done = run(spark, filter_text, events, output=output, quiet=quiet)
    share = f"{done.matches / done.events:.2%}" if done.events else "none"
    lines = [f"{done.matches:,} of {done.events:,} events match ({share})"]
    if done.sample:
        lines.append(f"for example {', '.join(done.sample)}")
    if done.rejected:
        lines.append(f"{done.rejected:,} lines could not be read")
    if output:
        lines.append(f"the matching events are in {output}")
    tell(asdict(done), lines, as_json=as_json)
