"""The command that tries a filter over events of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.cli.documents import (
    dialect_option,
    feed_lines,
    format_option,
    rdf_options,
    read_settings,
    refuse_options,
)
from headgate.cli.shell import cli, fields_of, session, spark_options, tell
from headgate.core.subscription import SQL

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.spark.backtest import Backtested
    from headgate.spark.session import Session


@cli.command()
@click.option("--filter", "filter_text", required=True, metavar="TEXT", help="The filter to try.")
@dialect_option("What it is written in; sql by default.")
@click.option(
    "--events", required=True, metavar="TABLE", help="Historic events; documents in a table or files."
)
@click.option("--output", metavar="TABLE", help="Where the matching events go.")
@format_option
@rdf_options
@spark_options
def backtest(
    filter_text: str,
    dialect: str | None,
    events: str,
    output: str | None,
    form: str | None,
    taxonomies: tuple[str, ...],
    master: str | None,
    conf: tuple[str, ...],
    *,
    coerce: bool,
    injective: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Try one filter over historic events: records by Spark SQL itself, RDF and XML by our index.

    \b
    Examples:
      headgate backtest --filter "age > 30 AND topic = 'news'" --events events.jsonl
      headgate backtest --filter "ASK { ?x a <urn:Art> }" --dialect sparql --events documents/
      headgate backtest --filter "//news[topic = 'art']" --dialect xpath --events documents/
    """
    from headgate.contents import RECORDS, content_of

    spoken = dialect or SQL
    content = content_of([spoken], "the filter") or RECORDS
    refuse_options(content)
    if content != RECORDS:
        run = _documents(
            filter_text, spoken, content, events, output, form, taxonomies, coerce=coerce, injective=injective
        )
    else:
        run = _records(filter_text, spoken, events, output)
    with session(master, conf, quiet=quiet) as spark:
        done = run(spark, quiet=quiet)
    share = f"{done.matches / done.events:.2%}" if done.events else "none"
    lines = [f"{done.matches:,} of {done.events:,} events match ({share})"]
    if done.sample:
        lines.append(f"for example {', '.join(done.sample)}")
    if done.rejected:
        lines.append(f"{done.rejected:,} lines could not be read")
    lines += feed_lines(done.feeds)
    if output:
        lines.append(f"the matching events are in {output}")
    tell(fields_of(done), lines, as_json=as_json)


def _records(text: str, dialect: str, events: str, output: str | None) -> Callable[..., Backtested]:
    """Check what is asked of records, and return how to do it."""
    from headgate.records.dialects import to_sql
    from headgate.records.parse import parse_filter
    from headgate.spark.backtest import backtest as run
    from headgate.spark.backtest import check_request

    parse_filter(to_sql(text, dialect))
    check_request(events, output)

    def over(spark: Session, *, quiet: bool) -> Backtested:
        return run(spark, text, events, dialect=dialect, output=output, quiet=quiet)

    return over


def _documents(
    text: str,
    dialect: str,
    content: str,
    events: str,
    output: str | None,
    form: str | None,
    taxonomies: tuple[str, ...],
    *,
    coerce: bool,
    injective: bool,
) -> Callable[..., Backtested]:
    """Check what is asked of RDF or XML, and return how to do it."""
    from headgate.contents import room_of_content
    from headgate.spark.backtest_documents import backtest_documents, check_request

    room_of_content(content).clauses(text, dialect)
    check_request(events, output, content, form)
    taxonomy, options = read_settings(taxonomies, coerce=coerce, injective=injective)

    def over(spark: Session, *, quiet: bool) -> Backtested:
        return backtest_documents(
            spark,
            text,
            events,
            dialect=dialect,
            content_type=form,
            taxonomy=taxonomy,
            options=options,
            output=output,
            quiet=quiet,
        )

    return over
