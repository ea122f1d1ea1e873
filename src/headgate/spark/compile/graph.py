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
from headgate.core.subscription import SQL
from headgate.graph.build.sharding import save_shards
from headgate.runtime.progress import step
from headgate.runtime.rows import WEIGHTS
from headgate.runtime.sharding import TENANT, Sharding
from headgate.spark.compile.choosing import contents_of, has_any
from headgate.spark.compile.compile import spread
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.tables import read_lines, to_frame, write_table
from headgate.tables.graph.rows import SHAPES, SUBSCRIPTIONS, compile_rows
from headgate.tables.graph.tables import ORDER, TABLE, GraphWriter, ReadTable, assemble
from headgate.tables.lines import ORDER as PLACES
from headgate.tables.places import Format, check_input, local
from headgate.tables.requests import check_compile
from headgate.tables.results import GraphCompileResult, Tables
from headgate.tables.shards.graph import place_graph, read_tenants, tenants_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from headgate.contents.protocol import Contents
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


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
    shards: int = 1,
    sharding: Sharding | None = None,
    ranked: bool | None = None,
    quiet: bool = False,
) -> GraphCompileResult:
    """Compile a graph to a snapshot at `output`; refused rows of all tables go to the table `rejected`.

    What is said of the filters is as for subscriptions without a graph. With several shards, each is a
    snapshot inside that at `output`; a graph is put together here, on the driver, and cut here. Clauses are
    ranked if subscriptions have weights; `ranked` insists.
    """
    wanted = FilterSettings(dialect, schema, sample, taxonomy, options)
    sharding = sharding or Sharding(shards)
    check_compile(list(tables.places.values()), output, rejected=rejected, wanted=wanted, sharding=sharding)
    places = tables.places
    with spark_errors():
        with watch(session, "reading the graph", quiet=quiet) as parsing:
            if ranked is None:
                ranked = _has_weights(session, tables.subscriptions)
            contents = contents_of(wanted, session, list(places.values()))
            sharding.check_content(contents.name)
            reading = partial(_read, session, contents, dialect)
            read = {
                name: reading(name, places.get(name), ranked=ranked and name == SUBSCRIPTIONS)
                for name in ORDER
            }
        with step("building the graph", quiet=quiet) as building:
            assembled = assemble(read, contents)
            saving = GraphWriter(assembled, contents)
            source = {name: Path(path).name for name, path in places.items()}
            if sharding.count == 1:
                saving.save(assembled.parts, local(output), source=source)
            else:
                hung = tables.subscriptions
                tenants = None if hung is None else partial(_tenants, session, hung)
                home, routes = place_graph(assembled, contents, sharding, tenants)
                save_shards(
                    local(output),
                    assembled.parts,
                    sharding.count,
                    saving.save,
                    source=source,
                    home=home,
                    routes=routes.arrays(),
                    about=routes.about(sharding),
                )
            write_table(to_frame(session, assembled.rejected), rejected)
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
        holds=contents.counts(local(output)),
    )


def _tenants(session: SparkSession, path: str, column: str) -> dict[str, str]:
    lines = read_lines(session, path, ID).orderBy(*PLACES)
    found = lines.mapInArrow(partial(read_tenants, column=column), f"{ID} string, {TENANT} string").collect()
    return tenants_of((row[ID], row[TENANT]) for row in found)


def _has_weights(session: SparkSession, subscriptions: str | None) -> bool:
    if subscriptions is None:
        return False
    return has_any(session, subscriptions, check_input(subscriptions), [WEIGHTS])


def _read(
    session: SparkSession, contents: Contents, dialect: str, name: str, path: str | None, *, ranked: bool
) -> ReadTable:
    """Have workers read a table and compile its filters. Shuffles, unless the lines lie well."""
    shape = SHAPES[name]
    made = shape.ranked_schema if ranked else shape.schema
    if path is None:
        return ReadTable(made.empty_table(), Format.JSONL)
    form = check_input(path)
    lines = spread(session, read_lines(session, path, *shape.columns.required), form, path)
    work = partial(_compile, table=name, writers=contents.writers, dialect=dialect, ranked=ranked)
    rows = lines.mapInArrow(work, from_arrow_schema(made)).toArrow()
    return ReadTable(rows, form)


def _compile(batches: Iterator[pa.RecordBatch], **work: Any) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    return compile_rows(batches, partition=0 if context is None else context.partitionId(), **work)
