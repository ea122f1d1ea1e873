"""The backtest job: one filter over historic events.

A filter of records means what Spark SQL says: `where` asks Spark, or what says the same. Documents, and
records whose names mean something else than in Spark, are asked of an index.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.backtest import one_filter
from headgate.contents.registry import DEFAULT, content_of, kind_of
from headgate.core.event import ID, Event
from headgate.core.values import fold
from headgate.jobs.events import read_documents, read_records
from headgate.jobs.runner import job
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import predicates
from headgate.records.language.parse import parse_filter
from headgate.records.names import NameSettings
from headgate.tables.lines import VALUE
from headgate.tables.places import Format
from headgate.tables.requests import check_backtest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.kind import FilterSettings
    from headgate.jobs.events import EventTable
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
) -> one_filter.BacktestResult:
    """Count the events that a filter would have matched; with `output`, write those there.

    The text is parsed by us first, so a filter that passes here can be subscribed with as it is. Documents
    are written with the columns `id`, `source`, `datacontenttype` and `data`: as they came, and items of
    feeds as N-Triples.
    """
    content = content_of([wanted.dialect], "the filter") or DEFAULT
    pattern = one_filter.Pattern(filter_text, content, wanted)
    documents = kind_of(content).documents
    by_spark = not documents and NameSettings.of(vars(wanted)).usual
    matching_of = _by_spark(pattern) if by_spark else _by_index(pattern)
    lines = check_backtest(events, output, content, content_type) is Format.JSONL and not documents
    with runner.step("backtesting") as timing, ExitStack() as held:
        if documents:
            given = read_documents(runner, events, content, content_type, keep=output is not None)
        else:
            given = read_records(runner, events, pattern.mark)
        held.callback(given.forget)
        matching = held.enter_context(matching_of(given, events, lines))
        # Counted before anything is written, so that a value that cannot be cast leaves nothing behind.
        matches, sample = matching.count(), _ids(matching)
        if output is not None:
            if documents:
                matching = matching.map(one_filter.as_they_came, one_filter.documents_schema(given.id_type))
            elif lines and not by_spark:
                matching = matching.parsed(events)
            matching.write(output)
    return one_filter.BacktestResult(
        given.count, matches, given.rejected, sample, timing.seconds, given.feeds
    )


_MatchingOf = Callable[["EventTable[Any]", str, bool], "AbstractContextManager[Rows]"]
"""Finds the events of a table that match; the last says whether they are lines of JSON."""


def _by_spark(pattern: one_filter.Pattern) -> _MatchingOf:
    """Read a filter that Spark is asked about, or what says the same; refuses a bad one."""
    sql = to_sql(pattern.text, pattern.wanted.dialect)
    tree = parse_filter(sql)

    @contextmanager
    def matching(given: EventTable[Any], events: str, lines: bool) -> Iterator[Rows]:
        with given.rows.parsed(events).kept() if lines else nullcontext(given.rows) as table:
            if given.count:
                one_filter.check_attributes(table.attributes(), one_filter.named_in(predicates(tree)), events)
            yield table.where(sql, tree, events) if given.count else table

    return matching


def _by_index(pattern: one_filter.Pattern) -> _MatchingOf:
    """Index a filter over documents, or over records whose names are not Spark's; refuses a bad one."""
    index = pattern.indexed()

    def matching(given: EventTable[Any], events: str, lines: bool) -> AbstractContextManager[Rows]:
        if given.count and not kind_of(pattern.content).documents:
            if lines:
                listed = given.rows.filtered(partial(one_filter.list_paths, mark=pattern.mark)).collect()
                known = one_filter.read_paths(listed[VALUE].to_pylist())
            else:
                known = set(given.rows.attributes(pattern.mark))
            one_filter.check_paths(known, pattern, index, events)
        # Kept, because it is asked three times.
        kept: AbstractContextManager[Rows] = given.rows.filtered(
            partial(one_filter.keep, pattern=pattern, form=given.form)
        ).kept()
        return kept

    return matching


def _ids(rows: Rows) -> tuple[str, ...]:
    """Show the ids of the first rows."""
    if rows.names == [VALUE]:
        lines: list[Any] = rows.head(one_filter.SAMPLE)[VALUE].to_pylist()
        return tuple(str(Event.from_json(line).id) for line in lines)
    name = next(name for name in rows.names if fold(name) == ID)
    return tuple(map(str, rows.select(name).head(one_filter.SAMPLE).column(0).to_pylist()))
