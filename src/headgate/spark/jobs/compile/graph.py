"""The compile job for a graph: tables of nodes, edges and subscriptions to a snapshot, or to one of shards.

each table: read_lines -> compile_rows (in parallel) -> collect
all:        assemble -> cut into shards -> number, take programs, index -> snapshot
                     `-> rejected
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.kind import FilterSettings
from headgate.core.event import ID
from headgate.core.machine import memory
from headgate.core.subscription import SQL
from headgate.core.versions.replacing import new_version
from headgate.graph.build.sharding import save_shards
from headgate.runtime.progress import step
from headgate.runtime.rows import WEIGHTS
from headgate.runtime.sharding import TENANT, Sharding
from headgate.spark.jobs.compile.choosing import contents_of
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.given import FileTable
from headgate.spark.tables.tables import to_frame, write_table
from headgate.tables.contained import contained
from headgate.tables.graph.rows import SHAPES, SUBSCRIPTIONS, compile_rows
from headgate.tables.graph.tables import ORDER, TABLE, GraphWriter, ReadTable, assemble
from headgate.tables.lines import ORDER as PLACES
from headgate.tables.places import Format, given_place
from headgate.tables.requests import check_compile
from headgate.tables.results import GraphCompileResult, Tables
from headgate.tables.shards.graph import place_graph, read_tenants, tenants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.protocol import Contents
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.records.events.columns import Columns
    from headgate.spark.tables.given import GivenTable


@in_own_session
def compile_graph(
    session: SparkSession,
    tables: Tables,
    output: str,
    *,
    rejected: str,
    schema: str | None = None,
    sample: str | None = None,
    dialect: str = SQL,
    taxonomy: Taxonomy | None = None,
    options: Options | None = None,
    namespaces: Mapping[str, str] | None = None,
    unindexed: str | None = None,
    nulls: str | None = None,
    names: str | None = None,
    dots: str | None = None,
    shards: int = 1,
    sharding: Sharding | None = None,
    ranked: bool | None = None,
    changes: str | None = None,
    quiet: bool = False,
) -> GraphCompileResult:
    """Compile a graph to a snapshot at `output`; refused rows of all tables go to the table `rejected`.

    What is said of the filters is as for subscriptions without a graph. With several shards, each is a
    snapshot inside that at `output`; a graph is put together here, on the driver, and cut here. Clauses are
    ranked if subscriptions have weights; `ranked` insists.
    """
    wanted = FilterSettings(
        dialect,
        schema,
        sample,
        taxonomy,
        options,
        namespaces=namespaces,
        unindexed=unindexed,
        nulls=nulls,
        names=names,
        dots=dots,
    )
    sharding = sharding or Sharding.of(shards)
    check_compile(list(tables.places.values()), output, rejected=rejected, wanted=wanted, sharding=sharding)
    given = {name: FileTable(session, path) for name, path in tables.places.items()}
    source: dict[str, object] = {name: Path(path).name for name, path in tables.places.items()}
    with spark_errors(), new_version(given_place(output), contained(changes)) as place:
        return compile_tables(
            session,
            given,
            place,
            wanted,
            sharding,
            partial(write_table, path=rejected),
            ranked=ranked,
            source=source,
            quiet=quiet,
        )


def compile_tables(
    session: SparkSession,
    given: Mapping[str, GivenTable],
    output: Path,
    wanted: FilterSettings,
    sharding: Sharding,
    refuse: Callable[[DataFrame], None],
    *,
    sample: Callable[[str], Columns] | None = None,
    ranked: bool | None,
    source: dict[str, object],
    quiet: bool,
) -> GraphCompileResult:
    """Compile tables that were checked; refused rows are handed to `refuse`."""
    hung = given.get(SUBSCRIPTIONS)
    with watch(session, "reading the graph", quiet=quiet) as parsing:
        if ranked is None:
            ranked = hung is not None and hung.has_any([WEIGHTS])
        contents = contents_of(wanted, list(given.values()), session, sample)
        sharding.check_content(contents.name)
        reading = partial(_read, contents, wanted.dialect)
        read = {
            name: reading(name, given.get(name), ranked=ranked and name == SUBSCRIPTIONS) for name in ORDER
        }
    with step("building the graph", quiet=quiet) as building:
        assembled = assemble(read, contents)
        saving = GraphWriter(assembled, contents)
        # Shards of a graph are made one after the other, here.
        sharding = sharding.fitted(len(assembled.parts.subscription_ids), memory() // 2)
        if sharding.count == 1:
            saving.save(assembled.parts, output, source=source)
        else:
            tenants = None if hung is None else partial(_tenants, hung)
            home, routes = place_graph(assembled, contents, sharding, tenants)
            save_shards(
                output,
                assembled.parts,
                sharding.count,
                saving.save,
                source=source,
                home=home,
                routes=routes.arrays(),
                about=routes.about(sharding),
            )
        refuse(to_frame(session, assembled.rejected))
    refused = assembled.rejected[TABLE].to_pylist()
    return GraphCompileResult(
        nodes=len(assembled.parts.node_ids),
        edges=len(assembled.parts.edge_source),
        subscriptions=len(assembled.parts.subscription_ids),
        rows=dict(assembled.accepted),
        refused={name: refused.count(name) for name in ORDER},
        rejected=len(refused),
        shards=sharding.count,
        attributes=tuple(sorted(saving.attributes)),
        parse_seconds=parsing.seconds,
        build_seconds=building.seconds,
        ranked=ranked,
        content=contents.name,
        holds=contents.counts(output),
    )


def _tenants(table: GivenTable, column: str) -> dict[str, str]:
    lines = table.lines(ID).orderBy(*PLACES)
    found = lines.mapInArrow(partial(read_tenants, column=column), f"{ID} string, {TENANT} string").collect()
    return tenants_of((row[ID], row[TENANT]) for row in found)


def _read(
    contents: Contents, dialect: str, name: str, table: GivenTable | None, *, ranked: bool
) -> ReadTable:
    """Have workers read a table and compile its filters. Shuffles, unless the lines lie well."""
    shape = SHAPES[name]
    made = shape.ranked_schema if ranked else shape.schema
    if table is None:
        return ReadTable(made.empty_table(), Format.JSONL)
    work = partial(_compile, table=name, writers=contents.writers, dialect=dialect, ranked=ranked)
    rows = table.lines(*shape.columns.required).mapInArrow(work, from_arrow_schema(made)).toArrow()
    return ReadTable(rows, table.form)


def _compile(batches: Iterator[pa.RecordBatch], **work: Any) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    return compile_rows(batches, partition=0 if context is None else context.partitionId(), **work)
