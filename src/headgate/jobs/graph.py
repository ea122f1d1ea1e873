"""The compile job for a graph: tables of nodes, edges and subscriptions to a snapshot, or to one of shards.

each table: lines -> compile_rows (in parallel) -> collect
all:        assemble -> cut into shards -> number, take programs, index -> snapshot
                     `-> rejected
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.event import ID
from headgate.core.machine import memory
from headgate.graph.build.sharding import save_shards
from headgate.jobs.choosing import has_any
from headgate.jobs.compile import compiling
from headgate.jobs.runner import job
from headgate.runtime.rows import WEIGHTS
from headgate.runtime.sharding import TENANT
from headgate.tables.graph.rows import SHAPES, SUBSCRIPTIONS, compile_rows
from headgate.tables.graph.tables import ORDER, TABLE, GraphWriter, ReadTable, assemble
from headgate.tables.lines import ORDER as PLACES
from headgate.tables.places import Format
from headgate.tables.results import GraphCompileResult
from headgate.tables.shards.graph import place_graph, read_tenants, tenants_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.jobs.compile import CompileTask
    from headgate.jobs.runner import Runner, Table
    from headgate.runtime.sharding import Sharding
    from headgate.tables.results import Tables

_TENANTS = pa.schema({ID: pa.string(), TENANT: pa.string()})


@job
def compile_graph(
    runner: Runner,
    tables: Tables,
    output: str,
    *,
    rejected: str,
    wanted: FilterSettings | None = None,
    ranked: bool | None = None,
    sharding: Sharding | None = None,
    changes: str | None = None,
) -> GraphCompileResult:
    """Compile a graph to a snapshot at `output`; refused rows of all tables go to the table `rejected`.

    What is said of the filters is as for subscriptions without a graph. With several shards, each is a
    snapshot inside that at `output`; a graph is put together here, on the driver, and cut here. Clauses are
    ranked if subscriptions have weights; `ranked` insists.
    """
    with compiling(
        tables.places,
        output,
        rejected=rejected,
        wanted=wanted,
        ranked=ranked,
        sharding=sharding,
        changes=changes,
    ) as task:
        return compile_tables(
            runner, {name: runner.table(path) for name, path in tables.places.items()}, task
        )


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
        shape, table = SHAPES[name], given.get(name)
        weighed = ranked and name == SUBSCRIPTIONS
        made = shape.ranked_schema if weighed else shape.schema
        if table is None:
            read[name] = ReadTable(made.empty_table(), Format.JSONL)
            continue
        work = partial(compile_rows, table=name, writers=contents.writers, dialect=dialect, ranked=weighed)
        lines = table.lines(*shape.columns.required, even=True)
        read[name] = ReadTable(lines.map(work, made, numbered=True).collect(), table.form)
    return read


def _find_tenants(table: Table, column: str) -> dict[str, str]:
    work = partial(read_tenants, column=column)
    found = table.lines(ID).sorted(*PLACES).map(work, _TENANTS).collect()
    return tenants_of((str(row[ID]), row[TENANT]) for row in found.to_pylist())
