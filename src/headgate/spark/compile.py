"""The compile job: a table of subscriptions to a snapshot, and a table of the rows that were refused.

read_lines -> compile (in parallel) -> collect -> number by id -> take programs -> index -> snapshot
                                    `-> rejected

The dialects of the filters say which content room they are for. Subscriptions that have scores or weights are
ranked; those can be cut into shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.core.event import ID
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import check_place
from headgate.core.subscription import SQL
from headgate.errors import EventError, TableError
from headgate.graph.sharding import check_count
from headgate.records.programs import starts
from headgate.spark.choosing import Wanted
from headgate.spark.compile_ranked import Filters, has_any, read_ranks, save_ranked
from headgate.spark.compiling import (
    COMPILED,
    COMPILED_RANKED,
    FILTER,
    NUMBER,
    PART,
    PLACE,
    PROGRAMS,
    REASON,
    ROW,
    compile_batches,
)
from headgate.spark.contents import counted
from headgate.spark.id_types import are_whole
from headgate.spark.progress import step, watch
from headgate.spark.ranked_rows import RANKS
from headgate.spark.record_contents import read_schema
from headgate.spark.session import spark_errors
from headgate.spark.tables import (
    BLOCK,
    FILE,
    POSITION,
    Format,
    check_apart,
    check_input,
    check_output,
    is_remote,
    local,
    read_columns,
    read_lines,
    to_frame,
    write_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

    from headgate.core.event import Id
    from headgate.rdf.model import Options
    from headgate.rdf.taxonomy import Taxonomy
    from headgate.spark.contents import Contents, Counts, Writers, XmlCounts

_TYPES: dict[str, pa.DataType] = {ID: pa.string(), ROW: pa.string(), REASON: pa.string(), PLACE: pa.int64()}
REJECTED = pa.schema(_TYPES)
"""The columns of a rejected table; `place` counts characters of the filter from 1."""


TASK_ROWS, TASK_BYTES = 100_000, 8 << 20
"""How much a task is given to read, at most."""


@dataclass(frozen=True)
class Compiled:
    """What the job did."""

    subscriptions: int
    rejected: int
    attributes: tuple[str, ...]
    parse_seconds: float
    build_seconds: float
    ranked: bool = False
    shards: int = 1
    rdf: Counts | None = None
    """What there is of patterns over RDF, if the filters are such."""
    xml: XmlCounts | None = None
    """What there is of patterns over XML, if the filters are such."""


def compile_subscriptions(
    session: SparkSession,
    subscriptions: str,
    output: str,
    *,
    rejected: str,
    schema: str | None = None,
    sample: str | None = None,
    dialect: str = SQL,
    taxonomy: Taxonomy | None = None,
    options: Options | None = None,
    ranked: bool | None = None,
    shards: int = 1,
    quiet: bool = False,
) -> Compiled:
    """Compile a table of subscriptions to a snapshot at `output`; refused rows go to the table `rejected`.

    With `schema` (JSON text), filters that name unknown attributes or mix types are refused too. With
    `sample`, a table of events, filters are filed under values that few of its first events have.

    Rows that name no dialect have `dialect`. Dialects say which content room the filters are for, and all of
    them must be for one. Patterns over RDF may have a `taxonomy` and `options`.

    Subscriptions are ranked if the table has scores or weights; `ranked` insists. With several `shards`, each
    is a snapshot inside that at `output`.
    """
    wanted = Wanted(dialect, schema, sample, taxonomy, options)
    form = check_request(
        subscriptions, output, rejected=rejected, wanted=wanted, ranked=ranked, shards=shards
    )
    with spark_errors():
        if ranked is None:
            ranked = has_any(session, subscriptions, form, RANKS)
        _check_shards(subscriptions, shards, ranked=ranked)
        with watch(session, "parsing filters", quiet=quiet) as parsing:
            contents = wanted.contents(session, [subscriptions])
            lines = spread(session, read_lines(session, subscriptions, ID, FILTER), form, subscriptions)
            made = from_arrow_schema(COMPILED_RANKED if ranked else COMPILED)
            work = partial(_compile, writers=contents.writers, dialect=dialect, ranked=ranked)
            compiled = lines.mapInArrow(work, made).toArrow()
        with step("building the index", quiet=quiet) as building:
            numbered = _number(compiled, form)
            filters = _filters(compiled, numbered, contents)
            source = {"subscriptions": Path(subscriptions).name}
            if ranked:
                ranks = read_ranks(compiled, PART, numbered.rows, contents)
                save_ranked(filters, ranks, Path(output), shards, contents, source=source)
            else:
                filters.programs.index(filters.ids, filters.texts).save(Path(output), source=source)
            write_table(to_frame(session, numbered.refused), rejected)
    return Compiled(
        subscriptions=len(numbered.ids),
        rejected=numbered.refused.num_rows,
        attributes=filters.programs.attributes,
        parse_seconds=parsing.seconds,
        build_seconds=building.seconds,
        ranked=ranked,
        shards=shards,
        **counted(contents, Path(output)),
    )


def check_request(
    subscriptions: str,
    output: str,
    *,
    rejected: str,
    wanted: Wanted,
    ranked: bool | None = None,
    shards: int = 1,
) -> Format:
    """Refuse what cannot be done before any work: used before Spark starts, too."""
    check_places([subscriptions], output, rejected=rejected, wanted=wanted)
    check_count(shards)
    if ranked is False:
        _check_shards(subscriptions, shards, ranked=False)
    return check_input(subscriptions)


def _check_shards(subscriptions: str, shards: int, *, ranked: bool) -> None:
    if shards > 1 and not ranked:
        raise TableError(
            f"{subscriptions} is to be cut into {shards} shards, and its subscriptions are not ranked: rank "
            "them (--ranked), or leave them in one piece"
        )


def check_places(inputs: list[str], output: str, *, rejected: str, wanted: Wanted) -> None:
    """Refuse tables that are not there, places that are taken, and a schema that cannot be read."""
    wanted.check()
    sample = wanted.sample
    for table in [*inputs, *([] if sample is None else [sample])]:
        check_input(table)
    check_output(rejected)
    check_apart(*inputs, output, rejected)
    if sample is not None:
        check_apart(sample, output, rejected)
    check_place(Path(output))
    if wanted.schema is not None:
        try:
            read_schema(wanted.schema)
        except EventError as error:
            raise TableError(f"schema: {error}") from None


def spread(session: SparkSession, lines: DataFrame, form: Format, path: str) -> DataFrame:
    """Give every core as much to parse; every row keeps its place. Shuffles, unless the lines lie well.

    Lines of text are cut into parts of equal size as they are read. A Parquet file may be one group of rows,
    and CSV is read as a whole. What a task has made of its rows must fit into memory several times.
    """
    parts = max(4 * session.sparkContext.defaultParallelism, _size(session, form, path))
    even = form is Format.JSONL and lines.rdd.getNumPartitions() >= parts
    return lines if even else lines.repartition(parts)


def _size(session: SparkSession, form: Format, path: str) -> int:
    """Measure a table in tasks of some megabytes; 0 if that is not to be had without reading it."""
    if form is Format.PARQUET:
        return read_columns(session, path, form).count() // TASK_ROWS
    if is_remote(path):
        return 0
    place = local(path)
    files = [place] if place.is_file() else place.iterdir()
    return sum(file.stat().st_size for file in files) // TASK_BYTES


def _compile(
    batches: Iterator[pa.RecordBatch], writers: Writers, *, dialect: str, ranked: bool
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    return compile_batches(batches, writers, partition, dialect=dialect, ranked=ranked)


class _Numbered(NamedTuple):
    """The accepted rows, as places in the table, sorted by their ids; and the table of the refused ones."""

    ids: Ids
    rows: NDArray[np.int64]
    refused: pa.Table


def _number(compiled: pa.Table, form: Format) -> _Numbered:
    """Give the accepted rows numbers by their ids, which have one type; the first of equal ids wins."""
    ordered = in_order(compiled)
    good = compiled[REASON].is_null().to_numpy()[ordered]
    rows, bad = ordered[good], ordered[~good]
    ids = _one_type(compiled.select(["id_number", "id_text"]).take(rows), form)
    # Both sorts are stable, so that the first of equal ids is the first of the table.
    if pa.types.is_integer(ids.type):
        by_id = np.argsort(ids.to_numpy(), kind="stable")
    else:
        by_id = pc.sort_indices(ids).to_numpy().astype(np.int64)
    ids = ids.take(by_id)
    first = np.ones(len(ids), bool)
    if len(ids) > 1:
        first[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    again = np.sort(by_id[~first])
    distinct = ids.filter(pa.array(first)) if len(again) else ids
    places = np.empty(len(ids), np.int64)
    places[by_id] = np.arange(len(ids))
    repeated: list[Any] = ids.take(places[again]).to_pylist()
    return _Numbered(
        Ids.from_arrow(distinct),
        rows[by_id[first]],
        _refused(compiled.take(bad), compiled.select([ROW]).take(rows[again]), repeated),
    )


def in_order(compiled: pa.Table) -> NDArray[np.int64]:
    """Return the places of the rows in the order of `ORDER`."""
    files = pc.unique(compiled[FILE]).sort()
    keys = (compiled[POSITION], compiled[BLOCK], pc.index_in(compiled[FILE], value_set=files))
    return np.lexsort([key.to_numpy() for key in keys])


def _one_type(ids: pa.Table, form: Format) -> pa.Array[Any]:
    """Take ids as numbers if all of them are, else as text; CSV has text only, so it is read."""
    numbers, texts = ids["id_number"].combine_chunks(), ids["id_text"].combine_chunks()
    if texts.null_count == len(texts):
        return numbers
    found = pc.coalesce(texts, numbers.cast(pa.string()))
    if form is Format.CSV and pc.all(are_whole(found)).as_py():
        return found.cast(pa.int64())
    return found.cast(pa.large_string())


def _refused(bad: pa.Table, again: pa.Table, identities: list[Id]) -> pa.Table:
    """Make the rejected table: the row as it came, its id if it had one, why, and where in the filter."""
    identity = pc.coalesce(bad["id_text"], bad["id_number"].cast(pa.string()))
    first = pa.table([identity, bad[ROW], bad[REASON], bad[PLACE]], schema=REJECTED)
    reasons = [f"id {identity!r} was given by an earlier row already" for identity in identities]
    columns = [[str(identity) for identity in identities], again[ROW], reasons, [None] * len(reasons)]
    return pa.concat_tables([first, pa.table(columns, schema=REJECTED)])


def _filters(compiled: pa.Table, numbered: _Numbered, contents: Contents) -> Filters:
    """Put the accepted rows into the order of their ids, each with its program."""
    payloads = compiled.select([PART, PROGRAMS]).filter(pc.is_valid(compiled[PROGRAMS])).sort_by(PART)
    filed, counts = contents.file([payload.as_buffer() for payload in payloads[PROGRAMS]])
    base = starts(counts)
    rows = compiled.select([PART, NUMBER]).take(numbered.rows)
    part = pc.index_in(rows[PART], value_set=payloads[PART].combine_chunks()).to_numpy()
    programs = filed.take(base[part] + rows[NUMBER].to_numpy())
    # Cast before it is taken, since millions of filters may be more than a column of plain strings holds.
    texts = compiled[FILTER].cast(pa.large_string()).take(numbered.rows).combine_chunks()
    pool = TextPool.from_arrow(texts) if len(texts) else TextPool.build(())
    return Filters(numbered.ids, pool, programs)
