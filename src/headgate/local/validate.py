"""Check tables of filters: what is refused, how events come to the rest, and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.backtest.checking import Filed, FilterCheck, check_compiled, refused_rows
from headgate.core.event import ID
from headgate.local.compile import contents_for, has_any, read_table
from headgate.local.events import first_events
from headgate.records.names import NameSettings
from headgate.runtime.rows import FILTER, RANKS, WEIGHTS
from headgate.tables.accepted import number_rows, take_filters
from headgate.tables.filter_rows import COMPILED, COMPILED_RANKED, compile_batches
from headgate.tables.graph.rows import EDGES, NODES, SUBSCRIPTIONS
from headgate.tables.graph.tables import ORDER, assemble
from headgate.tables.lines import read_lines
from headgate.tables.places import check_input

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.core.event import Event, Id
    from headgate.tables.graph.tables import AssembledGraph

EVENTS = 10_000
"""Events of a sample that are looked at: the first of the table."""


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
    read_filters = read(places, wanted, contents)
    given: list[Event] = []
    bad = 0
    if events is not None:
        given, bad = first_events(events, contents.name, content_type, EVENTS, mark)
    found = check_compiled(contents, read_filters, given, mark)
    return Validation((*read_filters.refused, *found), contents.name, len(given) if events else None, bad)


def _read_subscriptions(places: dict[str, str], wanted: FilterSettings, contents: Contents) -> Filed:
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
    return Filed(refused_rows(numbered.refused), named, filters.programs, filters.texts.texts())


def _read_graph(places: dict[str, str], wanted: FilterSettings, contents: Contents) -> Filed:
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
    return Filed(refused_rows(assembled.rejected), named, assembled.programs.take(order), texts)


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
