"""Check tables of filters: what is refused, how events come to the rest, and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import ID, JSON, SOURCE
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.likeliest import did_you_mean
from headgate.core.values import dotted
from headgate.local.compile import contents_for, has_any, read_table
from headgate.local.events import first_events
from headgate.records.names import NameSettings, plain_text
from headgate.runtime.rows import FILTER, RANKS, WEIGHTS
from headgate.tables.accepted import number_rows, take_filters
from headgate.tables.filter_rows import COMPILED, COMPILED_RANKED, PLACE, REASON, ROW, compile_batches
from headgate.tables.graph.rows import EDGES, NODES, SUBSCRIPTIONS
from headgate.tables.graph.tables import ORDER, TABLE, assemble
from headgate.tables.lines import read_lines
from headgate.tables.places import check_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import CompiledFilters, Contents, Costs
    from headgate.core.event import Event, Id
    from headgate.tables.graph.tables import AssembledGraph

EVENTS = 10_000
"""Events of a sample that are looked at: the first of the table."""


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


@dataclass(frozen=True)
class Validation:
    """All filters of some tables, those that were refused first."""

    filters: tuple[FilterCheck, ...]
    content: str
    events: int | None
    refused_events: int

    @property
    def refused(self) -> int:
        """Count the rows that were refused."""
        return sum(each.refused is not None for each in self.filters)

    @property
    def noted(self) -> int:
        """Count the filters about which something is odd."""
        return sum(bool(each.notes) for each in self.filters)


def validate(
    places: dict[str, str],
    wanted: FilterSettings,
    *,
    events: str | None = None,
    content_type: str | None = None,
) -> Validation:
    """Check the filters of a table of subscriptions, or of the tables of a graph; `places` by their names."""
    contents = contents_for(wanted, list(places.values()))
    mark = NameSettings.of(vars(wanted)).mark
    read = _read_graph if NODES in places else _read_subscriptions
    refused, named, filed, texts = read(places, wanted, contents)
    given: list[Event] = []
    bad = 0
    if events is not None:
        given, bad = first_events(events, contents.name, content_type, EVENTS, mark)
    kind = kind_of(contents.name)
    access = kind.access(contents, filed, given) if named else []
    matched = _matched(filed, texts, given, len(named))
    known = _attributes(given, mark) if kind.rows else set()
    found = []
    for place, ((table, identity), text, way) in enumerate(zip(named, texts, access, strict=True)):
        share = int(matched[place]) / len(given) if given else None
        notes = [] if way.note is None else [way.note]
        if not notes and len(given) > 1 and share == 1:
            notes.append(f"it matches all {len(given):,} events")
        # A schema has refused such names already.
        if known and kind.of_filter(text).rows:
            # Clauses have their names folded.
            own = filed.take(np.array([place])).attributes if mark else _names(contents, text)
            notes += [f"no event has {name!r}{did_you_mean(name, known)}" for name in sorted({*own} - known)]
        note = kind.of_filter(text).verified_note(kind.plain(text), given)
        notes += [] if note is None else [note]
        reached = way.reached / len(given) if given and way.reached is not None else None
        found.append(
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
    return Validation((*refused, *found), contents.name, len(given) if events else None, bad)


_Read = tuple[list[FilterCheck], list[tuple[str, "Id"]], "CompiledFilters", list[str]]


def _read_subscriptions(places: dict[str, str], wanted: FilterSettings, contents: Contents) -> _Read:
    path = places[SUBSCRIPTIONS]
    form = check_input(path)
    ranked = has_any(path, form, RANKS)
    lines = read_lines(path, ID, FILTER)
    batches = compile_batches(lines, contents.writers, dialect=wanted.dialect, ranked=ranked)
    compiled = pa.Table.from_batches(batches, COMPILED_RANKED if ranked else COMPILED)
    numbered = number_rows(compiled, form)
    filters = take_filters(compiled, numbered, contents)
    ids: list[Any] = numbered.ids.to_arrow().to_pylist()
    named: list[tuple[str, Id]] = [(SUBSCRIPTIONS, each) for each in ids]
    return _refused(numbered.refused), named, filters.programs, filters.texts.texts()


def _read_graph(places: dict[str, str], wanted: FilterSettings, contents: Contents) -> _Read:
    hung = places.get(SUBSCRIPTIONS)
    ranked = hung is not None and has_any(hung, check_input(hung), [WEIGHTS])
    read = {
        name: read_table(
            contents, wanted.dialect, name, places.get(name), ranked=ranked and name == SUBSCRIPTIONS
        )
        for name in ORDER
    }
    assembled = assemble(read, contents)
    named, programs = _filters_of(assembled)
    order = np.array(programs, np.int64)
    texts = [str(text) for text in assembled.texts.take(pa.array(order, pa.int64())).to_pylist()]
    return _refused(assembled.rejected), named, assembled.programs.take(order), texts


def _filters_of(assembled: AssembledGraph) -> tuple[list[tuple[str, Any]], list[int]]:
    """Name the filters of a graph, and the programs that they are."""
    parts = assembled.parts
    nodes: list[Any] = parts.node_ids.to_arrow().to_pylist()
    ends = zip(parts.edge_source.tolist(), parts.edge_target.tolist(), strict=True)
    columns: Iterable[tuple[str, Iterable[Any], pa.Array[Any]]] = (
        (NODES, nodes, parts.node_filter),
        (EDGES, [f"{nodes[source]} → {nodes[target]}" for source, target in ends], parts.edge_filter),
        (SUBSCRIPTIONS, parts.subscription_ids.to_arrow().to_pylist(), parts.subscription_filter),
    )
    named, programs = [], []
    for table, names, filters in columns:
        for name, number in zip(names, filters.to_pylist(), strict=True):
            if number is not None:
                named.append((table, name))
                programs.append(int(number))
    return named, programs


def _refused(table: pa.Table) -> list[FilterCheck]:
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
    found = index.match_events(events, pa.array(np.arange(len(events))))
    return np.bincount(np.asarray(found.column(1), np.int64), minlength=count)


def _attributes(events: Sequence[Event], mark: str) -> set[str]:
    """List the attributes of events."""
    records = (event for event in events if event.content_type == JSON)
    found = {dotted(path) for event in records for path in event.attributes_as(mark)}
    return found | {ID, SOURCE} if found else found


def _names(contents: Contents, text: str) -> set[str]:
    """List the attributes that a filter names."""
    room = contents.room
    return {name for clause in room.clauses(text, room.dialect) for name in clause.names}
