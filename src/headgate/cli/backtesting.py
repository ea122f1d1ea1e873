"""The command that tries a filter, or a set of changed subscriptions, over events of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.cli.changing import ChangeOptions, try_changes
from headgate.cli.documents import (
    dialect_option,
    feed_lines,
    format_option,
    rdf_options,
    read_options,
    read_settings,
    refuse_options,
)
from headgate.cli.shell import (
    cli,
    factor_option,
    fields_of,
    mode_option,
    ready,
    session,
    spark_options,
    tell,
    wanted_top,
)
from headgate.core.subscription import SQL

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.spark.backtest.backtest import Backtested
    from headgate.spark.session.session import Session


@cli.command()
@click.option("--filter", "filter_text", metavar="TEXT", help="The filter to try.")
@click.option(
    "--changes",
    metavar="TABLE",
    help="Changed subscriptions to try. Columns: op, id, filter; dialect, score, weights, node.",
)
@dialect_option("What the filter is written in; sql by default. With --subscriptions, that of its rows.")
@click.option(
    "--events", required=True, metavar="TABLE", help="Historic events; documents in a table or files."
)
@click.option("--snapshot", metavar="DIRECTORY", help="--changes: the subscriptions as they are.")
@click.option("--subscriptions", metavar="TABLE", help="--changes: the same as a table, compiled for this.")
@click.option(
    "--output", metavar="TABLE", help="Where the matching events go; with --changes, what comes and goes."
)
@click.option(
    "--effects",
    metavar="TABLE",
    help="--changes: a row for each subscription.  [default: OUTPUT-effects.jsonl]",
)
@click.option(
    "--rejected", metavar="TABLE", help="--changes: where refused rows go.  [default: OUTPUT-rejected.jsonl]"
)
@click.option("--report", metavar="FILE", help="--changes: a page with pictures (.html).")
@click.option(
    "--noise",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="--changes: mark what matches more of the events than that.  [default: 10]",
)
@click.option(
    "--top", type=click.IntRange(0), metavar="K", help="--changes: ask for the best K of each event."
)
@mode_option
@factor_option
@click.option("--no-cost", is_flag=True, help="--changes: do not measure size and speed.")
@format_option
@rdf_options
@spark_options
def backtest(
    filter_text: str | None,
    changes: str | None,
    dialect: str | None,
    events: str,
    snapshot: str | None,
    subscriptions: str | None,
    output: str | None,
    effects: str | None,
    rejected: str | None,
    report: str | None,
    noise: float | None,
    top: int | None,
    mode: str | None,
    factors: tuple[str, ...],
    form: str | None,
    taxonomies: tuple[str, ...],
    master: str | None,
    conf: tuple[str, ...],
    *,
    no_cost: bool,
    coerce: bool,
    injective: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Try one filter, or a set of changed subscriptions, over historic events.

    A filter of records is evaluated by Spark SQL itself, one of RDF and XML by our index. Changes are tried
    against a snapshot: what would newly match, what would no longer, how noisy, and at what cost.

    \b
    Examples:
      headgate backtest --filter "age > 30 AND topic = 'news'" --events events.jsonl
      headgate backtest --filter "ASK { ?x a <urn:Art> }" --dialect sparql --events documents/
      headgate backtest --filter "//news[topic = 'art']" --dialect xpath --events documents/
      headgate backtest --changes changes.jsonl --snapshot snapshot/ --events events.jsonl --output diff.jsonl
      headgate backtest --changes new.csv --snapshot ranked/ --events old.csv --top 10 --report what-if.html
    """
    if (filter_text is None) == (changes is None):
        raise click.UsageError("give one of --filter and --changes")
    if changes is not None:
        options = read_options(coerce=coerce, injective=injective)
        asked = ChangeOptions(
            changes, events, snapshot, subscriptions, dialect, taxonomies, options, output, effects, rejected,
            report, noise, wanted_top("--top", top, mode, factors), form, cost=not no_cost,
        )  # fmt: skip
        try_changes(asked, master, conf, quiet=quiet, as_json=as_json)
        return
    _refuse_changes_only()
    _one_filter(
        filter_text or "", dialect or SQL, events, output, form, taxonomies, master, conf,
        coerce=coerce, injective=injective, quiet=quiet, as_json=as_json,
    )  # fmt: skip


_FOR_CHANGES = {
    "snapshot": "--snapshot",
    "subscriptions": "--subscriptions",
    "effects": "--effects",
    "rejected": "--rejected",
    "report": "--report",
    "noise": "--noise",
    "top": "--top",
    "mode": "--mode",
    "factors": "--factor",
    "no_cost": "--no-cost",
}


def _refuse_changes_only() -> None:
    """Refuse options that mean nothing for one filter."""
    given = click.get_current_context().params
    for name, option in _FOR_CHANGES.items():
        if given.get(name) not in {None, False, ()}:
            raise click.UsageError(f"{option} goes with --changes")


def _one_filter(
    text: str,
    dialect: str,
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
    """Try one filter and tell what it would have matched."""
    from headgate.contents.registry import DEFAULT, content_of, kind_of

    content = content_of([dialect], "the filter") or DEFAULT
    refuse_options(content)
    if kind_of(content).documents:
        run = _documents(
            text, dialect, content, events, output, form, taxonomies, master, conf,
            coerce=coerce, injective=injective,
        )  # fmt: skip
    else:
        run = _records(text, dialect, events, output, master, conf)
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


def _records(
    text: str, dialect: str, events: str, output: str | None, master: str | None, conf: tuple[str, ...]
) -> Callable[..., Backtested]:
    """Check what is asked of records, and return how to do it."""
    from headgate.spark.tables.requests import check_backtest

    check_backtest(events, output)
    from headgate.records.language.dialects import to_sql
    from headgate.records.language.parse import parse_filter

    parse_filter(to_sql(text, dialect))
    ready(master, conf)
    from headgate.spark.backtest.backtest import backtest as run

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
    master: str | None,
    conf: tuple[str, ...],
    *,
    coerce: bool,
    injective: bool,
) -> Callable[..., Backtested]:
    """Check what is asked of RDF or XML, and return how to do it."""
    from headgate.contents.registry import room_of_content
    from headgate.spark.tables.requests import check_backtest_documents
    from headgate.spark.tables.taxonomy_files import check_taxonomy

    check_backtest_documents(events, output, content, form)
    check_taxonomy(taxonomies)
    room_of_content(content).clauses(text, dialect)
    ready(master, conf)
    from headgate.spark.backtest.documents import backtest_documents

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
