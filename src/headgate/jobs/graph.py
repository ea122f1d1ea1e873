"""The compile job for a graph: tables of nodes, edges and subscriptions to a snapshot, or to one of shards.

each table: lines -> compile (in parallel) -> collect
all:        assemble -> cut into shards -> number, take programs, index -> snapshot
                     `-> rejected

An event that reaches a subscription has passed its own filter; one that a node serves by itself, without a
filter of its own, is reached through that node, whose filter the event has passed. So keys of the one or of
the other are keys of the subscription, by which it is placed in a shard. What hangs at nodes without a
filter is open.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from headgate.core.event import ID
from headgate.core.machine import memory
from headgate.errors import HeadgateError
from headgate.graph.build.sharding import save_shards
from headgate.graph.model import NODES, SUBSCRIPTIONS
from headgate.jobs.choosing import has_any
from headgate.jobs.compile import compile_subscriptions, compile_table, compiling, parse
from headgate.jobs.runner import job
from headgate.jobs.sharding import tenant_of
from headgate.runtime.rows import WEIGHTS, read_line
from headgate.runtime.sharding import TENANT
from headgate.runtime.shards import Routes, ShardPlacement, rarest
from headgate.tables.filter_rows import SHAPES, UNUSUAL
from headgate.tables.graph import ORDER, TABLE, GraphWriter, ReadTable, assemble
from headgate.tables.lines import ORDER as PLACES
from headgate.tables.lines import VALUE
from headgate.tables.places import Format
from headgate.tables.results import GraphCompileResult, Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents, Keys
    from headgate.core.arrays import Ints
    from headgate.graph.model import Parts
    from headgate.jobs.compile import CompileOptions, CompileTask
    from headgate.jobs.runner import Runner, Table
    from headgate.runtime.sharding import Sharding
    from headgate.tables.graph import AssembledGraph
    from headgate.tables.results import CompileResult
    from headgate.tables.settings import Compile

    FindTenants = Callable[[str], Mapping[str, str | None]]


class GraphPlacement(NamedTuple):
    """The shard of each subscription, and what leads to each shard."""

    home: Ints
    routes: Routes


def place_graph(
    assembled: AssembledGraph, contents: Contents, sharding: Sharding, find_tenants: FindTenants | None
) -> GraphPlacement:
    """Place the subscriptions of a graph; `find_tenants` reads the tenants in a column of their table."""
    parts = assembled.parts
    path = sharding.routed_by(contents.room_name)
    keys: list[Keys] = [None] * len(parts.subscription_ids)
    if path is not None or sharding.demands(contents.room_name):
        finder = contents.finder(path)
        keys = _keys_of(parts, finder.of_compiled(assembled.programs))
        if finder.demands:
            counts = Counter(key for each in keys if each for key in each)
            keys = [frozenset([rarest(sorted(each), counts)]) if each else each for each in keys]
    first = pa.array([min(each) if each else None for each in keys], pa.string())
    tenants: pa.Array[Any] = pa.array([None] * len(keys), pa.string())
    if sharding.by == TENANT and find_tenants is not None and sharding.column is not None:
        tenant_of_id = find_tenants(sharding.column)
        tenants = pa.array([tenant_of_id.get(str(each)) for each in parts.subscription_ids], pa.string())
    keyed = sum(each is not None for each in keys)
    placing = ShardPlacement(sharding, keyed, len(keys) - keyed)
    home = placing.homes(parts.subscription_ids.to_arrow(), tenants, first)
    shards = [np.flatnonzero(home == number).tolist() for number in range(sharding.count)]
    summed = [(len(places), [keys[index] for index in places]) for places in shards]
    return GraphPlacement(home, Routes.make(contents.room_name, path, summed))


def _keys_of(parts: Parts, programs: list[Keys]) -> list[Keys]:
    """Find the keys of subscriptions, by those of the programs of filters."""
    own, nodes = (
        [None if each is None else programs[int(each)] if programs else None for each in column.to_pylist()]
        for column in (parts.subscription_filter, parts.node_filter)
    )
    filtered = parts.subscription_filter.is_valid().to_pylist()
    open_at = np.zeros(len(own), np.bool_)
    open_at[parts.hang_subscription] = True
    keys_of: list[Keys] = [keys if has else None for keys, has in zip(own, filtered, strict=True)]
    served: dict[int, list[Keys]] = {}
    for node in np.flatnonzero(parts.node_subscription >= 0).tolist():
        served.setdefault(int(parts.node_subscription[node]), []).append(nodes[node])
    for subscription, each in served.items():
        if not filtered[subscription] and not open_at[subscription] and None not in each:
            keys_of[subscription] = frozenset().union(*(keys for keys in each if keys is not None))
    return keys_of


def read_tenants(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[pa.RecordBatch]:
    """Read the ids and tenants of rows."""
    for batch in batches:
        rows = [each for each in map(_named, batch[VALUE].to_pylist()) if each is not None]
        yield pa.RecordBatch.from_pydict(
            {
                ID: pa.array([name for name, _ in rows], pa.string()),
                TENANT: pa.array([tenant_of(row, column) for _, row in rows], pa.string()),
            }
        )


def _named(value: bytes | None) -> tuple[str, str] | None:
    """Read the id of a row; what is none is refused elsewhere."""
    if not value or not value.strip():
        return None
    try:
        row = read_line(value)
        return (str(row[ID]), value.decode()) if row.get(ID) is not None else None
    except (*UNUSUAL, HeadgateError):
        return None


_TENANTS = pa.schema({ID: pa.string(), TENANT: pa.string()})


@job
def compile_graph(
    runner: Runner, tables: Tables, output: str, **asked: Unpack[CompileOptions]
) -> GraphCompileResult:
    """Compile a graph to a snapshot at `output`; refused rows of all tables go to one table.

    A graph is put together here, on the driver, and cut into shards here. Clauses are ranked if subscriptions
    have weights.
    """
    with compiling(tables.places, output, **asked) as task:
        opened = {name: runner.table(path) for name, path in tables.places.items()}
        return compile_tables(runner, opened, task)


def compile_asked(runner: Runner, asked: Compile, wanted: FilterSettings, **other: Any) -> CompileResult:
    """Compile the tables that settings name: subscriptions, or those of a graph."""
    options = {**asked.arguments(wanted), **other}
    if asked.nodes is None or asked.edges is None:
        return compile_subscriptions(runner, str(asked.subscriptions), asked.snapshot, **options)
    tables = Tables(asked.nodes, asked.edges, asked.subscriptions)
    return compile_graph(runner, tables, asked.snapshot, **options)


def compile_given(runner: Runner, given: Mapping[str, Table], task: CompileTask) -> CompileResult:
    """Compile tables by their names: subscriptions, or those of a graph."""
    if NODES in given:
        return compile_tables(runner, given, task)
    return compile_table(runner, given[SUBSCRIPTIONS], task)


def compile_tables(runner: Runner, given: Mapping[str, Table], task: CompileTask) -> GraphCompileResult:
    """Compile the tables of a graph."""
    hung = given.get(SUBSCRIPTIONS)
    with runner.step("reading the graph") as parsing:
        ranked = is_ranked(given) if task.ranked is None else task.ranked
        contents = task.contents(runner, given.values())
        read = read_tables(given, contents, task.wanted.dialect, ranked=ranked)
    with runner.step("building the graph") as building:
        assembled = assemble(read, contents)
        saving = GraphWriter(assembled, contents)
        parts = assembled.parts
        # Shards of a graph are made one after the other, here.
        sharding = task.sharding.fitted(len(parts.subscription_ids), memory() // 2)
        if sharding.count == 1:
            saving.save(parts, task.output, source=task.source)
        else:
            tenants = None if hung is None else partial(_find_tenants, hung)
            home, routes = place_graph(assembled, contents, sharding, tenants)
            save_shards(
                task.output,
                parts,
                sharding.count,
                saving.save,
                source=task.source,
                home=home,
                routes=routes.arrays(),
                about=routes.about(sharding),
            )
        task.refuse(runner.rows(assembled.rejected))
    refused = assembled.rejected[TABLE].to_pylist()
    return GraphCompileResult(
        nodes=len(parts.node_ids),
        edges=len(parts.edge_source),
        subscriptions=len(parts.subscription_ids),
        rows=dict(assembled.accepted),
        refused={name: refused.count(name) for name in ORDER},
        rejected=len(refused),
        shards=sharding.count,
        attributes=tuple(sorted(saving.attributes)),
        parse_seconds=parsing.seconds,
        build_seconds=building.seconds,
        ranked=ranked,
        content=contents.room_name,
        holds=contents.counts(task.output),
    )


def is_ranked(given: Mapping[str, Table]) -> bool:
    """Tell whether the clauses of a graph are ranked: if its subscriptions have weights."""
    hung = given.get(SUBSCRIPTIONS)
    return hung is not None and has_any(hung, [WEIGHTS])


def read_tables(
    given: Mapping[str, Table], contents: Contents, dialect: str, *, ranked: bool
) -> dict[str, ReadTable]:
    """Have workers read the tables of a graph and compile their filters; one that is not given is empty."""
    read = {}
    for name in ORDER:
        table, weighed = given.get(name), ranked and name == SUBSCRIPTIONS
        if table is None:
            read[name] = ReadTable(SHAPES[name].schema(ranked=weighed).empty_table(), Format.JSONL)
        else:
            rows = parse(table, contents, dialect, ranked=weighed, shape=name)
            read[name] = ReadTable(rows, table.form)
    return read


def _find_tenants(table: Table, column: str) -> dict[str, str | None]:
    """Find the tenants of subscriptions, by the text of ids; the first row of an id counts."""
    work = partial(read_tenants, column=column)
    tenants: dict[str, str | None] = {}
    for row in table.lines(ID).sorted(*PLACES).map(work, _TENANTS).collect().to_pylist():
        tenants.setdefault(str(row[ID]), row[TENANT])
    return tenants
