"""The compile job for a graph: tables of nodes, edges and subscriptions to a snapshot, or to one of shards.

each table: read_lines -> compile_rows (in parallel) -> collect
all:        assemble -> cut into shards -> number, take programs, index -> snapshot
                     `-> rejected
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.kind import Wanted
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import CLAUSES, RECORDS
from headgate.core.subscription import SQL
from headgate.graph.base import Base, Names
from headgate.graph.build.build import build
from headgate.graph.build.sharding import save_shards
from headgate.runtime.rows import WEIGHTS
from headgate.runtime.sharding import Sharding
from headgate.spark.compile.accepted import clause_index, has_any
from headgate.spark.compile.choosing import contents_of
from headgate.spark.compile.compile import spread
from headgate.spark.compile.graph_rows import EDGES, NODES, SHAPES, SUBSCRIPTIONS, compile_rows
from headgate.spark.compile.graph_tables import ORDER, TABLE, Read, assemble
from headgate.spark.session.progress import step, watch
from headgate.spark.session.session import spark_errors
from headgate.spark.shards.graph import place_graph
from headgate.spark.tables.places import Format, check_input, local
from headgate.spark.tables.requests import check_compile
from headgate.spark.tables.tables import read_lines, to_frame, write_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from headgate.contents.protocol import Contents, Counted
    from headgate.graph.model import Parts
    from headgate.ranking.filters.clause_index import ClauseIndex
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.spark.compile.graph_tables import Assembled


@dataclass(frozen=True)
class CompiledGraph:
    """What the job did. Rows in the graph and rejected ones are all that were given, blank lines left out."""

    nodes: int
    edges: int
    subscriptions: int
    """Those of the table, and those that nodes serve by themselves."""
    rows: dict[str, int]
    """Rows that are in the graph, by table."""
    refused: dict[str, int]
    """Rows that are not, by table."""
    rejected: int
    shards: int
    attributes: tuple[str, ...]
    parse_seconds: float
    build_seconds: float
    ranked: bool = False
    """Whether clauses can be ranked, too: scores can in any case."""
    content: str = RECORDS
    """The kind of content that filters look at."""
    holds: Counted | None = None
    """What there is of patterns over documents, if the filters are such."""


@dataclass(frozen=True)
class Tables:
    """Where the tables of a graph are."""

    nodes: str
    edges: str
    subscriptions: str | None = None

    @property
    def places(self) -> dict[str, str]:
        """List those that are given, by name."""
        found = {NODES: self.nodes, EDGES: self.edges, SUBSCRIPTIONS: self.subscriptions}
        return {name: path for name, path in found.items() if path is not None}


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
) -> CompiledGraph:
    """Compile a graph to a snapshot at `output`; refused rows of all tables go to the table `rejected`.

    What is said of the filters is as for subscriptions without a graph. With several shards, each is a
    snapshot inside that at `output`; a graph is put together here, on the driver, and cut here. Clauses are
    ranked if subscriptions have weights; `ranked` insists.
    """
    wanted = Wanted(dialect, schema, sample, taxonomy, options)
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
            saving = _Saving(assembled, contents)
            source = {name: Path(path).name for name, path in places.items()}
            if sharding.count == 1:
                saving.save(assembled.parts, local(output), source=source)
            else:
                home, routes = place_graph(session, assembled, contents, sharding, tables.subscriptions)
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
    return CompiledGraph(
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


def _has_weights(session: SparkSession, subscriptions: str | None) -> bool:
    if subscriptions is None:
        return False
    return has_any(session, subscriptions, check_input(subscriptions), [WEIGHTS])


def _read(
    session: SparkSession, contents: Contents, dialect: str, name: str, path: str | None, *, ranked: bool
) -> Read:
    """Have workers read a table and compile its filters. Shuffles, unless the lines lie well."""
    shape = SHAPES[name]
    made = shape.ranked_schema if ranked else shape.schema
    if path is None:
        return Read(made.empty_table(), Format.JSONL)
    form = check_input(path)
    lines = spread(session, read_lines(session, path, *shape.columns.required), form, path)
    work = partial(compile_rows, table=name, writers=contents.writers, dialect=dialect, ranked=ranked)
    rows = lines.mapInArrow(work, from_arrow_schema(made)).toArrow()
    return Read(rows, form)


class _Saving:
    """Number and index a graph, or a shard of it, and write it; notes the attributes that filters name."""

    def __init__(self, assembled: Assembled, contents: Contents) -> None:
        self._assembled = assembled
        self._contents = contents
        self.attributes: set[str] = set()

    def save(self, parts: Parts, place: Path, *, source: Mapping[str, object] | None = None) -> None:
        built = build(parts)
        programs = np.asarray(built.filters.cast(pa.int64()), np.int64)
        texts = self._assembled.texts.take(programs)
        filed = self._assembled.programs.take(programs)
        content = filed.index(
            Ids.from_arrow(pa.array(built.filtered, pa.int64())),
            TextPool.from_arrow(texts) if len(texts) else TextPool.build(()),
        )
        names = Names(
            parts.node_ids,
            parts.subscription_ids,
            parts.kinds,
            parts.node_kind,
            built.vertex_of_node,
            built.edge_ends,
        )
        inside = {} if self._assembled.ranks is None else {CLAUSES: self._clauses(parts).save}
        Base(built.arrays, names, content).save(place, source=source, inside=inside)
        self.attributes.update(filed.attributes)

    def _clauses(self, parts: Parts) -> ClauseIndex:
        """Index the clauses of the subscriptions of a graph, or of a shard of it."""
        assert self._assembled.ranks is not None
        every, some = (each.subscription_ids.to_arrow() for each in (self._assembled.parts, parts))
        places = pc.index_in(some, value_set=every).to_numpy().astype(np.int64)
        return clause_index(parts.subscription_ids, self._assembled.ranks, places, self._contents)
