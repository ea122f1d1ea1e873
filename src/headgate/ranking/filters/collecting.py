"""Subscriptions to rows of weighted clauses, and these to codes: by columns where the content room can."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.protocol import Clause, CodesClauses
from headgate.core.interning import TextPool
from headgate.errors import made_of
from headgate.ranking.filters import coded
from headgate.ranking.filters.clauses import MOST, ClauseTable, Collector, Named, Weighted, weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.contents.protocol import ClauseColumns, CompiledFilters, ContentRoom
    from headgate.core.arrays import Bools, Floats64, Ints
    from headgate.core.subscription import Subscription
    from headgate.ranking.filters.coded import Coded


def collect(subscriptions: Sequence[Subscription], room: ContentRoom) -> ClauseTable:
    """Take filters apart, in the order given; refuses bad filters, and weights that do not fit."""
    columns = _columns(subscriptions, room)
    left = np.ones(len(subscriptions), np.bool_)
    tables: list[ClauseTable] = []
    places: list[Ints] = []
    for each in columns:
        tables.append(_table(each, subscriptions))
        places.append(each.rows)
        left[each.rows] = False
    collector = Collector()
    rest = np.flatnonzero(left)

    def add(row: Subscription) -> None:
        clauses = room.clauses(row.filter, row.dialect)
        collector.add(clauses, weigh(clauses, row.weights, f"subscription {row.id!r}"))

    made_of([subscriptions[place] for place in rest.tolist()], add)
    if not tables:
        return collector.finish()
    return _joined([collector.finish(), *tables], np.concatenate([rest, *places]))


def _columns(subscriptions: Sequence[Subscription], room: ContentRoom) -> list[ClauseColumns]:
    if not isinstance(room, CodesClauses) or any(each.dialect != room.dialect for each in subscriptions):
        return []
    try:
        texts = TextPool.build(each.filter for each in subscriptions)
    except UnicodeEncodeError:
        # Half a character, which the room refuses.
        return []
    return [each for each in room.clause_columns(texts) if len(each.names) <= MOST]


def _table(columns: ClauseColumns, subscriptions: Sequence[Subscription]) -> ClauseTable:
    """Weigh filters that were taken apart together; every clause has a number of its own."""
    width, count = len(columns.names), len(columns.rows)
    chosen = [subscriptions[row] for row in columns.rows.tolist()]
    names: dict[str, int] = {}
    places = [[names.setdefault(name, len(names)) for name in own] for own in columns.names]
    named = Named(
        tuple(names),
        np.arange(count * width + 1) if all(len(own) == 1 for own in places) else _starts(places, count),
        np.tile(np.array([number for own in places for number in own], np.int32), count),
    )
    rows = Weighted(
        np.arange(count + 1) * width,
        np.arange(count * width, dtype=np.int32),
        _weights(columns.names, chosen),
    )
    return ClauseTable(rows, columns.texts, named)


def _starts(places: Sequence[Sequence[int]], count: int) -> Ints:
    lengths = np.tile(np.array([len(own) for own in places], np.int64), count)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _weights(names: tuple[tuple[str, ...], ...], chosen: Sequence[Subscription]) -> Floats64:
    """Return the weights of all clauses, subscription by subscription."""
    quick = _quickly(names, chosen)
    if quick is not None:
        return quick
    clauses = [Clause("", own) for own in names]
    weighed = made_of(chosen, lambda row: weigh(clauses, row.weights, f"subscription {row.id!r}"))
    return np.array(weighed, np.float64).reshape(-1)


def _quickly(names: tuple[tuple[str, ...], ...], chosen: Sequence[Subscription]) -> Floats64 | None:
    """Return the weights where nothing is odd about them: none, or a plain number for each attribute."""
    width = len(names)
    if all(each.weights is None for each in chosen):
        return np.ones(len(chosen) * width)
    keys = [own[0] for own in names if len(own) == 1]
    if width < 2 or len(set(keys)) < width:
        return None
    pick = itemgetter(*keys)
    weights_: list[Any] = []
    for each in chosen:
        weights = each.weights
        if type(weights) is dict and len(weights) == width:
            try:
                weights_ += pick(weights)
            except KeyError:
                return None
        else:
            return None
    if not set(map(type, weights_)) <= {float, int}:
        return None
    values = np.array(weights_, np.float64)
    sums = values.reshape(-1, width).sum(axis=1)
    return values if bool((values >= 0).all()) and bool(np.isfinite(sums).all()) else None


def _joined(tables: Sequence[ClauseTable], places: Ints) -> ClauseTable:
    """Put rows into the order of their places; clauses keep theirs, table after table."""
    names: dict[str, int] = {}
    counts = [np.diff(table.rows.start) for table in tables]
    first = np.cumsum([0, *(table.texts.size for table in tables)])
    rows = Weighted(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))]),
        np.concatenate(
            [table.rows.clause + np.int32(at) for table, at in zip(tables, first[:-1], strict=True)]
        ),
        np.concatenate([table.rows.weight for table in tables]),
    )
    name, lengths = [], []
    for table in tables:
        own = [names.setdefault(each, len(names)) for each in table.named.names]
        name.append(np.array(own, np.int32)[table.named.name] if own else table.named.name)
        lengths.append(np.diff(table.named.start))
    texts = [table.texts for table in tables]
    ends = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(t.offsets) for t in texts]))]
    )
    pool = TextPool(ends, np.concatenate([text.data for text in texts]))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
    in_order = bool((places[1:] > places[:-1]).all())
    return ClauseTable(
        rows if in_order else rows.take(np.argsort(places)),
        pool,
        Named(tuple(names), starts, np.concatenate(name)),
    )


def code_table(table: ClauseTable, compiled: CompiledFilters, room: ContentRoom) -> Coded | None:
    """Put rows into boxes and lists of codes, if the room codes clauses and it is worth it."""
    if not isinstance(room, CodesClauses) or table.rows.size < coded.LEAST:
        return None
    return coded.make_coded(table.rows, room.coded_clauses(compiled), table.named)


def code_rows(room: ContentRoom, table: Weighted, texts: TextPool, named: Named) -> Coded | None:
    """Do the same where clauses are not compiled, and rows may not have all of them."""
    if not isinstance(room, CodesClauses) or table.size < coded.LEAST:
        return None
    used = np.bincount(table.clause, minlength=texts.size) > 0
    # Clauses keep their numbers: what no row has is a filter that says nothing.
    given = texts if used.all() else TextPool.build(_used(texts, used, room.always))
    return coded.make_coded(table, room.coded_clauses(room.compiled_clauses(given)), named)


def _used(texts: TextPool, used: Bools, otherwise: str) -> list[str]:
    return [text if each else otherwise for text, each in zip(texts.texts(), used.tolist(), strict=True)]
