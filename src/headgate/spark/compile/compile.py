"""The compile job: a table of subscriptions to a snapshot, and a table of the rows that were refused.

read_lines -> compile (in parallel) -> collect -> number by id -> take programs -> index -> snapshot
                                    `-> rejected

The dialects of the filters say which content room they are for. Subscriptions that have scores or weights are
ranked. In several shards the workers build the indexes, and nothing is collected (`shard_compile`).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.kind import FilterSettings
from headgate.core.event import ID
from headgate.core.subscription import SQL
from headgate.runtime.progress import step
from headgate.runtime.rows import FILTER, RANKS
from headgate.runtime.sharding import Sharding
from headgate.spark.compile.choosing import contents_of, has_any
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.shards.compile import compile_shards
from headgate.spark.tables.tables import read_columns, read_lines, to_frame, write_table
from headgate.tables.accepted import number_rows, save_index
from headgate.tables.filter_rows import COMPILED, COMPILED_RANKED, compile_batches
from headgate.tables.packed import size_of
from headgate.tables.places import Format, check_input, is_remote, local, table_files
from headgate.tables.requests import check_compile
from headgate.tables.results import CompileResult
from headgate.tables.shards.rows import ShardResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.protocol import Contents, Writers
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

TASK_ROWS, TASK_BYTES = 100_000, 8 << 20
"""How much a task is given to read, at most."""
FEW_ROWS, FEW_BYTES = 500, 64 << 10
"""What a task reads in the time that it takes to start one: a small table is not cut finer."""


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
    sharding: Sharding | None = None,
    quiet: bool = False,
) -> CompileResult:
    """Compile a table of subscriptions to a snapshot at `output`; refused rows go to the table `rejected`.

    With `schema` (JSON text), filters that name unknown attributes or mix types are refused too. With
    `sample`, a table of events, filters are filed under values that few of its first events have.

    Rows that name no dialect have `dialect`. Dialects say which content room the filters are for, and all of
    them must be for one. Patterns over RDF may have a `taxonomy` and `options`.

    Subscriptions are ranked if the table has scores or weights; `ranked` insists. With several shards, each
    is a snapshot inside that at `output`, built by a worker; `sharding` says which subscriptions are where,
    and `shards` is short for one by the hash of the ids.
    """
    wanted = FilterSettings(dialect, schema, sample, taxonomy, options)
    sharding = sharding or Sharding(shards)
    check_compile([subscriptions], output, rejected=rejected, wanted=wanted, sharding=sharding)
    form = check_input(subscriptions)
    source: dict[str, object] = {"subscriptions": Path(subscriptions).name}
    with spark_errors():
        if ranked is None:
            ranked = has_any(session, subscriptions, form, RANKS)
        contents = contents_of(wanted, session, [subscriptions])
        sharding.check_content(contents.name)
        lines = spread(session, read_lines(session, subscriptions, ID, FILTER), form, subscriptions)
        job = compile_shards if sharding.count > 1 else _in_one_piece
        done = job(
            session,
            lines,
            form,
            contents,
            local(output),
            sharding,
            rejected=rejected,
            dialect=dialect,
            ranked=ranked,
            source=source,
            quiet=quiet,
        )
    return CompileResult(
        **done._asdict(),
        ranked=ranked,
        shards=sharding.count,
        content=contents.name,
        holds=contents.counts(local(output)),
    )


def _in_one_piece(
    session: SparkSession,
    lines: DataFrame,
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
    """Collect what workers have compiled, and index it here."""
    del sharding
    with watch(session, "parsing filters", quiet=quiet) as parsing:
        made = from_arrow_schema(COMPILED_RANKED if ranked else COMPILED)
        work = partial(_compile, writers=contents.writers, dialect=dialect, ranked=ranked)
        compiled = lines.mapInArrow(work, made).toArrow()
    with step("building the index", quiet=quiet) as building:
        numbered = number_rows(compiled, form)
        filters = save_index(compiled, numbered, contents, output, ranked=ranked, source=source)
        write_table(to_frame(session, numbered.refused), rejected)
    return ShardResult(
        len(numbered.ids),
        numbered.refused.num_rows,
        filters.programs.attributes,
        parsing.seconds,
        building.seconds,
    )


def spread(session: SparkSession, lines: DataFrame, form: Format, path: str) -> DataFrame:
    """Give every core as much to parse; every row keeps its place. Shuffles, unless the lines lie well.

    Lines of text are cut into parts of equal size as they are read. A Parquet file may be one group of rows,
    and CSV is read as a whole. What a task has made of its rows must fit into memory several times.
    """
    parts = _parts(session, form, path)
    even = (form is Format.JSONL or parts == 1) and lines.rdd.getNumPartitions() >= parts
    return lines if even else lines.repartition(parts)


def _parts(session: SparkSession, form: Format, path: str) -> int:
    """Choose how many parts a table is cut into: some for each core, unless it is small or large."""
    usual = 4 * session.sparkContext.defaultParallelism
    if form is Format.PARQUET:
        size, few, many = read_columns(session, path, form).count(), FEW_ROWS, TASK_ROWS
    elif is_remote(path):
        # Not to be had without reading it.
        return usual
    else:
        size, few, many = sum(map(size_of, table_files(path))), FEW_BYTES, TASK_BYTES
    return max(1, min(usual, size // few), size // many)


def _compile(
    batches: Iterator[pa.RecordBatch], writers: Writers, *, dialect: str, ranked: bool
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    return compile_batches(batches, writers, partition, dialect=dialect, ranked=ranked)
