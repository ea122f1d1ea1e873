"""The compile job in this process: tables of subscriptions, or of a graph, to a snapshot.

The rows go through the functions that workers of Spark run, one batch after the other.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.contents.kind import FilterSettings
from headgate.core.event import ID
from headgate.core.machine import memory
from headgate.core.subscription import SQL
from headgate.core.values import fold
from headgate.core.versions.replacing import new_version
from headgate.graph.build.sharding import save_shards
from headgate.local.events import read_sample
from headgate.local.shards import compile_shards
from headgate.runtime.progress import step
from headgate.runtime.rows import FILTER, RANKS, WEIGHTS
from headgate.runtime.sharding import TENANT, Sharding
from headgate.tables.accepted import number_rows, save_index
from headgate.tables.choosing import choose, find_dialects
from headgate.tables.contained import contained
from headgate.tables.filter_rows import COMPILED, COMPILED_RANKED, compile_batches, find_fields
from headgate.tables.graph.rows import SHAPES, SUBSCRIPTIONS, compile_rows
from headgate.tables.graph.tables import ORDER, TABLE, GraphWriter, ReadTable, assemble
from headgate.tables.lines import VALUE, column_names, read_lines
from headgate.tables.places import Format, check_input, given_place
from headgate.tables.requests import check_compile
from headgate.tables.results import CompileResult, GraphCompileResult
from headgate.tables.shards.graph import place_graph, read_tenants, tenants_of
from headgate.tables.shards.rows import ShardResult
from headgate.tables.writing import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.contents.protocol import Contents
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.tables.results import Tables


def compile_subscriptions(
    subscriptions: str,
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
    ranked: bool | None = None,
    shards: int = 1,
    sharding: Sharding | None = None,
    changes: str | None = None,
    quiet: bool = False,
) -> CompileResult:
    """Compile a table of subscriptions to a snapshot, as `spark.compile.compile_subscriptions` does."""
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
    check_compile([subscriptions], output, rejected=rejected, wanted=wanted, sharding=sharding)
    log = contained(changes)
    form = check_input(subscriptions)
    if ranked is None:
        ranked = has_any(subscriptions, form, RANKS)
    contents = contents_for(wanted, [subscriptions])
    sharding.check_content(contents.name)
    lines = read_lines(subscriptions, ID, FILTER)
    if not sharding.count:
        read = list(lines)
        sharding = sharding.fitted(sum(batch.num_rows for batch in read), memory() // 2)
        lines = iter(read)
    job = compile_shards if sharding.count > 1 else _in_one_piece
    with new_version(given_place(output), log) as place:
        done = job(
            lines,
            form,
            contents,
            place,
            sharding,
            rejected=rejected,
            dialect=dialect,
            ranked=ranked,
            source={"subscriptions": Path(subscriptions).name},
            quiet=quiet,
        )
        holds = contents.counts(place)
    return CompileResult(
        done.subscriptions,
        done.rejected,
        done.attributes,
        done.parse_seconds,
        done.build_seconds,
        shards=sharding.count,
        ranked=ranked,
        content=contents.name,
        holds=holds,
    )


def _in_one_piece(
    lines: Iterable[pa.RecordBatch],
    form: Format,
    contents: Contents,
    output: Path,
    sharding: Sharding,
    *,
    rejected: str,
    dialect: str,
    ranked: bool,
    source: dict[str, object],
    quiet: bool,
) -> ShardResult:
    del sharding
    with step("parsing filters", quiet=quiet) as parsing:
        batches = compile_batches(lines, contents.writers, dialect=dialect, ranked=ranked)
        compiled = pa.Table.from_batches(batches, COMPILED_RANKED if ranked else COMPILED)
    with step("building the index", quiet=quiet) as building:
        numbered = number_rows(compiled, form)
        filters = save_index(compiled, numbered, contents, output, ranked=ranked, source=source)
        write_table(numbered.refused, rejected)
    attributes = filters.programs.attributes
    count, refused = len(numbered.ids), numbered.refused.num_rows
    return ShardResult(count, refused, attributes, parsing.seconds, building.seconds)


def compile_graph(
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
    """Compile a graph to a snapshot, as `spark.compile.compile_graph` does."""
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
    places = tables.places
    sharding = sharding or Sharding.of(shards)
    check_compile(list(places.values()), output, rejected=rejected, wanted=wanted, sharding=sharding)
    log = contained(changes)
    with step("reading the graph", quiet=quiet) as parsing:
        if ranked is None:
            hung = tables.subscriptions
            ranked = hung is not None and has_any(hung, check_input(hung), [WEIGHTS])
        contents = contents_for(wanted, list(places.values()))
        sharding.check_content(contents.name)
        read = {
            name: read_table(
                contents, dialect, name, places.get(name), ranked=ranked and name == SUBSCRIPTIONS
            )
            for name in ORDER
        }
    with step("building the graph", quiet=quiet) as building, new_version(given_place(output), log) as place:
        assembled = assemble(read, contents)
        saving = GraphWriter(assembled, contents)
        sharding = sharding.fitted(len(assembled.parts.subscription_ids), memory() // 2)
        source = {name: Path(path).name for name, path in places.items()}
        if sharding.count == 1:
            saving.save(assembled.parts, place, source=source)
        else:
            hung = tables.subscriptions
            tenants = None if hung is None else partial(_tenants, hung)
            home, routes = place_graph(assembled, contents, sharding, tenants)
            save_shards(
                place,
                assembled.parts,
                sharding.count,
                saving.save,
                source=source,
                home=home,
                routes=routes.arrays(),
                about=routes.about(sharding),
            )
        write_table(assembled.rejected, rejected)
        holds = contents.counts(place)
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
        holds=holds,
    )


def _tenants(path: str, column: str) -> dict[str, str]:
    read = read_tenants(read_lines(path, ID), column)
    return tenants_of((row[ID], row[TENANT]) for batch in read for row in batch.to_pylist())


def has_any(path: str, form: Format, names: Sequence[str]) -> bool:
    """Tell whether a table has one of some columns; in JSON lines, whether a row has one of the fields."""
    if form is not Format.JSONL:
        return not {*map(fold, column_names(path))}.isdisjoint(names)
    batches = (batch.select([VALUE]) for batch in read_lines(path))
    return any(found.num_rows for found in find_fields(batches, names))


def contents_for(wanted: FilterSettings, tables: Sequence[str]) -> Contents:
    """Choose the kind that the filters of tables are for, by the dialects that their rows name."""
    dialects: set[str] = set()
    for path in tables:
        for found in find_dialects(read_lines(path), wanted.dialect):
            dialects |= {str(each) for each in found.column(0).to_pylist()}
    return choose(wanted, tables, dialects, read_sample)


def read_table(contents: Contents, dialect: str, name: str, path: str | None, *, ranked: bool) -> ReadTable:
    """Read a table of a graph; one that is not given is empty."""
    shape = SHAPES[name]
    made = shape.ranked_schema if ranked else shape.schema
    if path is None:
        return ReadTable(made.empty_table(), Format.JSONL)
    lines = read_lines(path, *shape.columns.required)
    batches = compile_rows(lines, name, contents.writers, dialect=dialect, ranked=ranked)
    return ReadTable(pa.Table.from_batches(batches, made), check_input(path))
