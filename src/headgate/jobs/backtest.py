"""The backtest job: one filter over historic events.

A filter of records means what Spark SQL says: `where` asks Spark, or what says the same. Documents, and
records whose names mean something else than in Spark, are asked of an index.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.backtest.one_filter import (
    SAMPLE,
    BacktestResult,
    Pattern,
    as_they_came,
    check_attributes,
    check_paths,
    documents_schema,
    keep_columns,
    keep_documents,
    keep_lines,
    list_paths,
    named_in,
    read_paths,
)
from headgate.contents.registry import DEFAULT, content_of, kind_of
from headgate.core.event import ID, Event
from headgate.core.values import fold
from headgate.jobs.events import read_documents
from headgate.jobs.runner import job
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import predicates
from headgate.records.language.parse import parse_filter
from headgate.records.names import NameSettings
from headgate.tables.lines import VALUE
from headgate.tables.places import Format
from headgate.tables.requests import check_backtest

if TYPE_CHECKING:
    from headgate.contents.kind import FilterSettings
    from headgate.jobs.runner import Rows, Runner


@job
def backtest(
    runner: Runner,
    filter_text: str,
    events: str,
    wanted: FilterSettings,
    *,
    content_type: str | None = None,
    output: str | None = None,
) -> BacktestResult:
    """Count the events that a filter would have matched; with `output`, write those there.

    The text is parsed by us first, so a filter that passes here can be subscribed with as it is. Documents
    are written with the columns `id`, `source`, `datacontenttype` and `data`: as they came, and items of
    feeds as N-Triples.
    """
    content = content_of([wanted.dialect], "the filter") or DEFAULT
    pattern = Pattern(filter_text, content, wanted)
    work = _documents if kind_of(content).documents else _usual
    if work is _usual and not NameSettings.of(vars(wanted)).usual:
        work = _by_index
    return work(runner, pattern, events, content_type, output)


def _usual(
    runner: Runner, pattern: Pattern, events: str, content_type: str | None, output: str | None
) -> BacktestResult:
    sql = to_sql(pattern.text, pattern.wanted.dialect)
    tree = parse_filter(sql)
    lines = check_backtest(events, output, pattern.content, content_type) is Format.JSONL
    with runner.step("backtesting") as timing, ExitStack() as held:
        given = runner.records(events, pattern.mark)
        held.callback(given.forget)
        table = held.enter_context(given.rows.parsed(events).kept()) if lines else given.rows
        if given.count:
            check_attributes(table.attributes(), named_in(predicates(tree)), events)
        matching = table.where(sql, tree, events) if given.count else table
        # Counted before anything is written, so that a value that cannot be cast leaves nothing behind.
        matches, sample = matching.count(), _ids(matching)
        if output is not None:
            matching.write(output)
    return BacktestResult(given.count, matches, given.rejected, sample, timing.seconds)


def _by_index(
    runner: Runner, pattern: Pattern, events: str, content_type: str | None, output: str | None
) -> BacktestResult:
    """Ask about records where Spark's names are not those of the filter. No shuffle."""
    index = pattern.indexed()
    lines = check_backtest(events, output, pattern.content, content_type) is Format.JSONL
    with runner.step("backtesting") as timing, ExitStack() as held:
        given = runner.records(events, pattern.mark)
        held.callback(given.forget)
        if lines:
            listed = given.rows.filtered(partial(list_paths, mark=pattern.mark)).collect()
            paths: list[Any] = listed[VALUE].to_pylist()
            known = read_paths(paths)
        else:
            known = set(given.rows.attributes(pattern.mark))
        if given.count:
            check_paths(known, pattern, index, events)
        keep = partial(keep_lines if lines else keep_columns, pattern=pattern)
        # Kept, because it is asked three times.
        matching = held.enter_context(given.rows.filtered(keep).kept())
        matches = matching.count()
        if lines:
            found: list[Any] = matching.head(SAMPLE)[VALUE].to_pylist()
            sample = tuple(str(Event.from_json(line).id) for line in found)
        else:
            sample = _ids(matching)
        if output is not None:
            (matching.parsed(events) if lines else matching).write(output)
    return BacktestResult(given.count, matches, given.rejected, sample, timing.seconds)


def _documents(
    runner: Runner, pattern: Pattern, events: str, content_type: str | None, output: str | None
) -> BacktestResult:
    pattern.indexed()
    check_backtest(events, output, pattern.content, content_type)
    with runner.step("backtesting") as timing, ExitStack() as held:
        given = read_documents(runner, events, pattern.content, content_type, keep=output is not None)
        held.callback(given.forget)
        # Kept, because it is asked three times.
        kept = given.rows.filtered(partial(keep_documents, pattern=pattern)).kept()
        matching = held.enter_context(kept)
        matches, sample = matching.count(), _ids(matching)
        if output is not None:
            matching.map(as_they_came, documents_schema(given.id_type)).write(output)
    return BacktestResult(given.count, matches, given.rejected, sample, timing.seconds, given.feeds)


def _ids(rows: Rows) -> tuple[str, ...]:
    """Show the ids of the first rows."""
    name = next(name for name in rows.names if fold(name) == ID)
    found = rows.select(name).head(SAMPLE).column(0).to_pylist()
    return tuple(map(str, found))
