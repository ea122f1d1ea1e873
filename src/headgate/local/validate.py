"""Check tables of filters: what is refused, how events come to the rest, and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.backtest.checking import Filed, FilterCheck, check_compiled, filed_rows, refused_rows
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.jobs.choosing import contents_of, has_any
from headgate.jobs.compile import parse
from headgate.jobs.events import first_events
from headgate.jobs.graph import is_ranked, read_tables
from headgate.local.runner import LocalRunner
from headgate.records.names import NameSettings
from headgate.runtime.rows import RANKS
from headgate.tables.graph import assemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.core.event import Event
    from headgate.jobs.runner import Table
    from headgate.tables.graph import AssembledGraph

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
    runner = LocalRunner()
    tables = {name: runner.table(path) for name, path in places.items()}
    contents = contents_of(wanted, tables.values(), runner.table)
    mark = NameSettings.of(vars(wanted)).mark
    read = _read_graph if NODES in places else _read_subscriptions
    read_filters = read(tables, wanted, contents)
    sample: list[Event] = []
    bad = 0
    if events is not None:
        sample, bad = first_events(runner, events, contents.room_name, content_type, EVENTS, mark)
    checks = check_compiled(contents, read_filters, sample, mark)
    return Validation(
        (*read_filters.refused, *checks), contents.room_name, len(sample) if events else None, bad
    )


def _read_subscriptions(given: Mapping[str, Table], wanted: FilterSettings, contents: Contents) -> Filed:
    table = given[SUBSCRIPTIONS]
    compiled = parse(table, contents, wanted.dialect, ranked=has_any(table, RANKS))
    return filed_rows(compiled, table.form, contents)


def _read_graph(given: Mapping[str, Table], wanted: FilterSettings, contents: Contents) -> Filed:
    assembled = assemble(read_tables(given, contents, wanted.dialect, ranked=is_ranked(given)), contents)
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
