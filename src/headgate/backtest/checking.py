"""Filters checked: what is refused, how events come to the rest, and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from headgate.contents.mixed.kind import read_dialect
from headgate.contents.protocol import TellsAccess
from headgate.contents.registry import kind_of
from headgate.core.arguments import did_you_mean
from headgate.core.event import EVENT_TIME, ID, JSON, SOURCE, TIME
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.values import dotted
from headgate.graph.model import SUBSCRIPTIONS
from headgate.records.explain.never import why_never
from headgate.records.names import NameSettings, plain_text
from headgate.tables.accepted import number_rows, take_filters
from headgate.tables.choosing import choose
from headgate.tables.filter_rows import ALONE, PLACE, REASON, ROW, SHAPES, compile_batches
from headgate.tables.graph import TABLE
from headgate.tables.lines import batches_of
from headgate.tables.places import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import CompiledFilters, Contents, Costs
    from headgate.core.event import Event, Id


@dataclass(frozen=True)
class FilterCheck:
    """What is known of one filter: why it is refused, or how events come to it."""

    table: str
    id: Id | None
    filter: str | None = None
    row: str | None = None
    """Of a row that is refused, the row as it came."""
    refused: str | None = None
    place: int | None = None
    """The character of the filter where that is, from 1."""
    indexed_by: str | None = None
    reached: float | None = None
    """The share of the events for which the filter is looked at."""
    matched: float | None = None
    """The share of the events that match."""
    costs: Costs | None = None
    """Of records: what the filter takes of an index."""
    notes: tuple[str, ...] = ()


class Filed(NamedTuple):
    """Filters that were compiled: those refused, and of the others their names, programs and texts."""

    refused: list[FilterCheck]
    named: list[tuple[str, Id]]
    filed: CompiledFilters
    texts: list[str]


def check_compiled(
    contents: Contents, given: Filed, events: Sequence[Event], mark: str = "", running: object = None
) -> list[FilterCheck]:
    """Say of compiled filters how events come to them, and what is odd about them.

    `mark` is that of the settings of their names (`NameSettings.mark`). How events come to them is said as
    if they were the only ones, or among those of a `running` index that can tell.
    """
    _, named, filed, texts = given
    kind = kind_of(contents.room_name)
    if isinstance(running, TellsAccess):
        access = running.access(texts, events)
    else:
        access = kind.access(contents, filed, events) if named else []
    matched = _matched(filed, texts, events, len(named))
    known = _attributes(events, mark) if kind.rows else set()
    never = [
        text
        for text, way, count in zip(texts, access, matched.tolist(), strict=True)
        if known and not count and way.note is None and kind.of_filter(text).rows
    ]
    plain = [read_dialect(text, contents.dialect)[0] for text in never]
    why = dict(zip(never, why_never(plain, events, mark) if plain else (), strict=True))
    # The time of an event stands for its attribute `time` in `:event_time`.
    there = known | ({TIME} if any(event.time is not None for event in events) else set())
    checks = []
    for index, ((table, identity), text, way) in enumerate(zip(named, texts, access, strict=True)):
        share = int(matched[index]) / len(events) if events else None
        notes = [] if way.note is None else [way.note]
        if not notes and len(events) > 1 and share == 1:
            notes.append(f"it matches all {len(events):,} events")
        if known and kind.of_filter(text).rows:
            # A schema has refused such names already. Clauses have their names folded.
            names = filed.take(np.array([index])).attributes if mark else _names(contents, text)
            notes += [
                f"no event has {name!r}{did_you_mean(name, known)}" for name in sorted({*names} - there)
            ]
            notes += why.get(text, [])
        note = kind.of_filter(text).verified_note(kind.plain(text), events)
        notes += [] if note is None else [note]
        reached = way.reached / len(events) if events and way.reached is not None else None
        checks.append(
            FilterCheck(
                table,
                identity,
                plain_text(text),
                indexed_by=way.by,
                reached=reached,
                matched=share,
                costs=way.costs,
                notes=tuple(notes),
            )
        )
    return checks


def check_filter(
    text: str, wanted: FilterSettings, events: Sequence[Event] = (), running: object = None
) -> FilterCheck:
    """Check one filter that is in no table.

    >>> from headgate.contents.kind import FilterSettings
    >>> check_filter("age > 30 AND age < 20", FilterSettings()).notes
    ('it can never match',)
    >>> check_filter("age >", FilterSettings()).place
    5
    """
    return check_filters([text], wanted, events, running)[0]


def check_filters(
    texts: Sequence[str], wanted: FilterSettings, events: Sequence[Event] = (), running: object = None
) -> list[FilterCheck]:
    """Check filters that are in no table, in their order."""
    contents = choose(wanted, ["the request"], {wanted.dialect}, _no_sample)
    lines = [msgspec.json.encode({ID: index, "filter": text}) for index, text in enumerate(texts)]
    batches = compile_batches(
        batches_of([("", line, None) for line in lines]), contents.writers, dialect=wanted.dialect
    )
    compiled = pa.Table.from_batches(batches, SHAPES[ALONE].schema(ranked=False))
    filed = filed_rows(compiled, Format.JSONL, contents)
    good = check_compiled(contents, filed, events, NameSettings.of(vars(wanted)).mark, running)
    by_place = {int(str(each.id)): each for each in (*good, *filed.refused)}
    return [by_place[index] for index in range(len(texts))]


def filed_rows(compiled: pa.Table, form: Format, contents: Contents) -> Filed:
    """Put together what was compiled of a table of subscriptions."""
    numbered = number_rows(compiled, form)
    filters = take_filters(compiled, numbered, contents)
    ids: list[Any] = numbered.ids.to_arrow().to_pylist()
    named: list[tuple[str, Id]] = [(SUBSCRIPTIONS, each) for each in ids]
    return Filed(refused_rows(numbered.refused), named, filters.programs, filters.texts.texts())


def _no_sample(path: str) -> Any:
    raise AssertionError(path)


def refused_rows(table: pa.Table) -> list[FilterCheck]:
    """Say of the rows of a table that were refused why, and where in their filter."""
    return [
        FilterCheck(
            row.get(TABLE, SUBSCRIPTIONS), row[ID], row=row[ROW], refused=row[REASON], place=row[PLACE]
        )
        for row in table.to_pylist()
    ]


def _matched(filed: CompiledFilters, texts: Sequence[str], events: Sequence[Event], count: int) -> Any:
    """Count the events that match each filter."""
    if not events or not count:
        return np.zeros(count, np.int64)
    index = filed.index(Ids.from_arrow(pa.array(np.arange(count))), TextPool.build(texts))
    matches = index.match_batch(events, pa.array(np.arange(len(events))))
    return np.bincount(np.asarray(matches.column(1), np.int64), minlength=count)


def _attributes(events: Sequence[Event], mark: str) -> set[str]:
    """List the attributes of events."""
    records = (event for event in events if event.content_type == JSON)
    names = {dotted(path) for event in records for path in event.attributes_as(mark) if path != EVENT_TIME}
    return names | {ID, SOURCE} if names else names


def _names(contents: Contents, text: str) -> set[str]:
    """List the attributes that a filter names."""
    room = contents
    return {name for clause in room.clauses(text, room.dialect) for name in clause.names}
