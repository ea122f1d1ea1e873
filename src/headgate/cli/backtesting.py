"""The command that tries a filter, or a set of changed subscriptions, over events of the past."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import (
    dialect_option,
    feed_lines,
    format_option,
    rdf_options,
    read_options,
    refuse_options,
)
from headgate.cli.shell import (
    beside,
    cli,
    factor_option,
    fields_of,
    mode_option,
    ready,
    session,
    shown_command,
    spark_options,
    tell,
    wanted_top,
)
from headgate.core.subscription import SQL
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.runtime.questions import Top
    from headgate.spark.backtest.backtest import BacktestResult
    from headgate.spark.backtest.what_if import Effect, WhatIf
    from headgate.spark.session.session import Session
    from headgate.tables.requests import Question

SHOWN = 10
"""Subscriptions that are told one by one."""


@dataclass(frozen=True, kw_only=True)
class BacktestOptions:
    """What was given on the command line."""

    filter_text: str | None
    changes: str | None
    events: str
    snapshot: str | None
    subscriptions: str | None
    dialect: str | None
    taxonomies: tuple[str, ...]
    options: Options | None
    output: str | None
    effects: str | None
    rejected: str | None
    report: str | None
    noise: float | None
    top: Top | None
    form: str | None
    no_cost: bool

    @property
    def text(self) -> str:
        """Return the filter to try."""
        return self.filter_text or ""

    @property
    def written_in(self) -> str:
        """Return the dialect, also where none was given."""
        return self.dialect or SQL

    def question(self, snapshot: str) -> Question:
        """Return what is asked of changes to a snapshot."""
        from headgate.tables.requests import Question

        noise = 0.1 if self.noise is None else self.noise / 100
        changes = self.changes or ""
        return Question(changes, snapshot, self.events, self.top, self.form, noise, not self.no_cost)

    def beside(self, given: str | None, word: str) -> str | None:
        """Name a table after the output, unless it has a name."""
        return given or (beside(self.output, word) if self.output else None)


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
def backtest(master: str | None, conf: tuple[str, ...], *, quiet: bool, as_json: bool, **given: Any) -> None:
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
    if (given["filter_text"] is None) == (given["changes"] is None):
        raise click.UsageError("give one of --filter and --changes")
    options = read_options(coerce=given.pop("coerce"), injective=given.pop("injective"))
    if given["changes"] is None:
        _refuse_changes_only()
        run, wanted = _one_filter, None
    else:
        run, wanted = _try_changes, wanted_top("--top", given["top"], given["mode"], given["factors"])
    for name in ("mode", "factors"):
        del given[name]
    asked = BacktestOptions(**{**given, "options": options, "top": wanted})
    run(asked, master, conf, quiet=quiet, as_json=as_json)


_FOR_CHANGES = (
    "snapshot", "subscriptions", "effects", "rejected", "report",
    "noise", "top", "mode", "factors", "no_cost",
)  # fmt: skip


def _refuse_changes_only() -> None:
    """Refuse options that mean nothing for one filter."""
    context = click.get_current_context()
    options = {each.name: each.opts[0] for each in context.command.params}
    for name in _FOR_CHANGES:
        if context.params.get(name) not in {None, False, ()}:
            raise click.UsageError(f"{options[name]} goes with --changes")


def _one_filter(
    asked: BacktestOptions, master: str | None, conf: tuple[str, ...], *, quiet: bool, as_json: bool
) -> None:
    """Try one filter and tell what it would have matched."""
    from headgate.contents.registry import DEFAULT, content_of, kind_of

    content = content_of([asked.written_in], "the filter") or DEFAULT
    refuse_options(content)
    run = (_documents if kind_of(content).documents else _records)(asked, content, master, conf)
    with session(master, conf, quiet=quiet) as spark:
        done = run(spark, quiet=quiet)
    share = f"{done.matches / done.events:.2%}" if done.events else "none"
    lines = [f"{done.matches:,} of {done.events:,} events match ({share})"]
    if done.sample:
        lines.append(f"for example {', '.join(done.sample)}")
    if done.rejected:
        lines.append(f"{done.rejected:,} lines could not be read")
    lines += feed_lines(done.feeds)
    if asked.output:
        lines.append(f"the matching events are in {asked.output}")
    tell(fields_of(done), lines, as_json=as_json)


def _records(
    asked: BacktestOptions, content: str, master: str | None, conf: tuple[str, ...]
) -> Callable[..., BacktestResult]:
    """Check what is asked of records, and return how to do it."""
    del content
    from headgate.tables.requests import check_backtest

    check_backtest(asked.events, asked.output)
    from headgate.records.language.dialects import to_sql
    from headgate.records.language.parse import parse_filter

    parse_filter(to_sql(asked.text, asked.written_in))
    ready(master, conf)
    from headgate.spark.backtest.backtest import backtest as run

    return partial(
        run, filter_text=asked.text, events=asked.events, dialect=asked.written_in, output=asked.output
    )


def _documents(
    asked: BacktestOptions, content: str, master: str | None, conf: tuple[str, ...]
) -> Callable[..., BacktestResult]:
    """Check what is asked of RDF or XML, and return how to do it."""
    from headgate.contents.registry import room_of_content
    from headgate.tables.requests import check_backtest_documents, check_taxonomy, read_taxonomy

    check_backtest_documents(asked.events, asked.output, content, asked.form)
    check_taxonomy(asked.taxonomies)
    room_of_content(content).clauses(asked.text, asked.written_in)
    ready(master, conf)
    from headgate.spark.backtest.backtest import backtest_documents

    return partial(
        backtest_documents,
        filter_text=asked.text,
        events=asked.events,
        dialect=asked.written_in,
        content_type=asked.form,
        taxonomy=read_taxonomy(asked.taxonomies),
        options=asked.options,
        output=asked.output,
    )


def _try_changes(
    asked: BacktestOptions, master: str | None, conf: tuple[str, ...], *, quiet: bool, as_json: bool
) -> None:
    """Try changes and tell what they would do."""
    from headgate.tables.requests import check_taxonomy, read_taxonomy

    check_taxonomy(asked.taxonomies)
    if (asked.snapshot is None) == (asked.subscriptions is None):
        raise click.UsageError("--changes wants one of --snapshot and --subscriptions")
    if asked.report is not None and not asked.report.endswith(".html"):
        raise TableError(f"{asked.report} names no page: let it end in .html")
    rejected = asked.beside(asked.rejected, "rejected")
    effects = asked.beside(asked.effects, "effects")
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        refused = rejected or str(Path(folder) / "rejected.jsonl")
        if asked.snapshot is not None:
            _check_snapshot(asked)
            asked.question(asked.snapshot).check(asked.output, effects, refused)
        else:
            _check_tables(asked, effects, refused)
        ready(master, conf)
        from headgate.pipeline.run.reporting import write_what_if
        from headgate.spark.backtest.what_if import what_if

        taxonomy = read_taxonomy(asked.taxonomies)
        with (
            session(master, conf, quiet=quiet) as spark,
            _snapshot(spark, asked, taxonomy, folder, quiet=quiet) as made,
        ):
            done = what_if(
                spark,
                asked.question(made),
                output=asked.output,
                effects=effects,
                rejected=refused,
                quiet=quiet,
            )
        lost = refused if rejected else None
        if asked.report is not None:
            write_what_if(
                done,
                asked.question(made),
                Path(asked.report),
                title=Path(asked.changes or "").name,
                command=shown_command(sys.argv[1:]),
                rejected=lost,
            )
    lines = _lines(asked, done, effects, lost)
    tell(_fields(done, asked, effects, lost), lines, as_json=as_json)


def _check_snapshot(asked: BacktestOptions) -> None:
    """Refuse options that a snapshot has answered already, or that its content knows nothing of."""
    from headgate.contents.registry import content_at

    for option, given in (
        ("--dialect", asked.dialect),
        ("--taxonomy", asked.taxonomies or None),
        ("--coerce and --injective", asked.options),
    ):
        if given is not None:
            raise click.UsageError(f"{option} goes with --subscriptions: a snapshot has its own")
    refuse_options(content_at(Path(asked.snapshot or "")))


def _check_tables(asked: BacktestOptions, effects: str | None, rejected: str) -> None:
    """Refuse tables that are not there, and places that are taken, as far as is known before compiling."""
    from headgate.tables.places import check_apart, check_input, check_output

    outputs = [place for place in (asked.output, effects, rejected) if place is not None]
    for table in (asked.changes or "", asked.subscriptions or ""):
        check_input(table)
    for place in outputs:
        check_output(place)
    check_apart(asked.changes, asked.subscriptions, asked.events, *outputs)


@contextmanager
def _snapshot(
    spark: Session, asked: BacktestOptions, taxonomy: Taxonomy | None, folder: str, *, quiet: bool
) -> Iterator[str]:
    """Yield the snapshot that was named, or one that is compiled from the table that was."""
    from headgate.spark.compile.compile import compile_subscriptions

    if asked.subscriptions is None:
        yield asked.snapshot or ""
        return
    place = str(Path(folder) / "snapshot")
    done = compile_subscriptions(
        spark,
        asked.subscriptions,
        place,
        rejected=str(Path(folder) / "refused.jsonl"),
        dialect=asked.written_in,
        taxonomy=taxonomy,
        options=asked.options,
        quiet=quiet,
    )
    if done.rejected:
        click.echo(f"note: {done.rejected:,} rows of {asked.subscriptions} were refused", err=True)
    yield place


def _lines(asked: BacktestOptions, done: WhatIf, effects: str | None, rejected: str | None) -> list[str]:
    what = "matches" if asked.top is None else f"places among the best {asked.top.k:,}"
    told = ", ".join(f"{count:,} {op}" for op, count in done.changes.items()) or "none"
    lines = [f"changes: {told}"]
    lines.append(f"in {done.events:,} events {done.gained:,} {what} would be gained and {done.lost:,} lost")
    if done.deliveries_a_day is not None:
        lines.append(f"that is {done.deliveries_a_day:+,.1f} deliveries a day")
    lines += _effect_lines(done.effects)
    if done.cost is not None:
        lines.append(f"snapshot: {done.cost.bytes_before:,} bytes before, {done.cost.bytes_after:,} after")
        before, after = done.cost.micros_before, done.cost.micros_after
        if before is not None and after is not None:
            lines.append(f"an event takes {before:,.1f} µs before, {after:,.1f} after")
    if done.rejected or done.rejected_events:
        where = (
            f", with the reasons in {rejected}" if rejected else ": name --output or --rejected to see why"
        )
        lines.append(f"refused {done.rejected:,} changes and {done.rejected_events:,} events{where}")
    for name, place in (("what comes and goes", asked.output), ("each subscription", effects)):
        if place is not None:
            lines.append(f"{name} is in {place}")
    if asked.report is not None:
        lines.append(f"report: {asked.report}")
    return lines


def _effect_lines(effects: tuple[Effect, ...]) -> list[str]:
    """List the noisiest subscriptions."""
    if not effects:
        return []
    width = max(len("subscription"), *(len(str(each.id)) for each in effects[:SHOWN]))
    width = min(width, 40)
    lines = [f"{'subscription':<{width}}  {'before':>9}  {'after':>9}  {'gained':>9}  {'lost':>9}  of events"]
    for each in effects[:SHOWN]:
        flag = f"  {each.flag}" if each.flag else ""
        lines.append(
            f"{str(each.id)[:width]:<{width}}  {each.before:>9,}  {each.after:>9,}  {each.gained:>9,}  "
            f"{each.lost:>9,}  {each.share:>8.2%}{flag}"
        )
    if len(effects) > SHOWN:
        lines.append(f"and {len(effects) - SHOWN:,} more")
    return lines


def _fields(
    done: WhatIf, asked: BacktestOptions, effects: str | None, rejected: str | None
) -> dict[str, Any]:
    """Return the result for JSON; the effects that are told, the others are in their table."""
    found: dict[str, Any] = {
        "events": done.events,
        "rejected_events": done.rejected_events,
        "changes": done.changes,
        "rejected": done.rejected,
        "gained": done.gained,
        "lost": done.lost,
        "subscriptions": len(done.effects),
        "silent": sum(each.flag == "matches nothing" for each in done.effects),
        "noisy": sum(each.flag == "noisy" for each in done.effects),
        "noisiest": [vars(each) for each in done.effects[:SHOWN]],
        "days": done.days,
        "deliveries_a_day": done.deliveries_a_day,
        "cost": done.cost._asdict() if done.cost else None,
        "seconds": done.seconds,
        "output": asked.output,
        "effects_table": effects,
        "rejected_table": rejected,
        "report": asked.report,
    }
    return {name: value for name, value in found.items() if value is not None}
