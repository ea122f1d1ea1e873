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
from headgate.core.versions.replacing import new_version
from headgate.runtime.progress import step
from headgate.runtime.rows import FILTER, RANKS
from headgate.runtime.sharding import Sharding
from headgate.spark.jobs.compile.choosing import contents_of
from headgate.spark.jobs.shards.compile import compile_shards
from headgate.spark.session.memory import building_memory
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.given import FileTable
from headgate.spark.tables.tables import to_frame, write_table
from headgate.tables.accepted import number_rows, save_index
from headgate.tables.contained import contained
from headgate.tables.filter_rows import COMPILED, COMPILED_RANKED, compile_batches
from headgate.tables.places import given_place
from headgate.tables.requests import check_compile
from headgate.tables.results import CompileResult
from headgate.tables.shards.rows import ShardResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.protocol import Contents, Writers
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.records.events.columns import Columns
    from headgate.spark.tables.given import GivenTable
    from headgate.tables.places import Format


@in_own_session
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
    """Compile a table of subscriptions to a snapshot at `output`; refused rows go to the table `rejected`.

    With `schema` (JSON text), filters that name unknown attributes or mix types are refused too. With
    `sample`, a table of events, filters are filed under values that few of its first events have.

    Rows that name no dialect have `dialect`. Dialects say which content room the filters are for, and all of
    them must be for one. Patterns over RDF may have a `taxonomy` and `options`.

    Subscriptions are ranked if the table has scores or weights; `ranked` insists. With several shards, each
    is a snapshot inside that at `output`, built by a worker; `sharding` says which subscriptions are where,
    and `shards` is short for one by the hash of the ids.
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
    check_compile([subscriptions], output, rejected=rejected, wanted=wanted, sharding=sharding)
    source: dict[str, object] = {"subscriptions": Path(subscriptions).name}
    with spark_errors(), new_version(given_place(output), contained(changes)) as place:
        return compile_table(
            session,
            FileTable(session, subscriptions),
            place,
            wanted,
            sharding,
            partial(write_table, path=rejected),
            ranked=ranked,
            source=source,
            quiet=quiet,
        )


def compile_table(
    session: SparkSession,
    table: GivenTable,
    output: Path,
    wanted: FilterSettings,
    sharding: Sharding,
    refuse: Callable[[DataFrame], None],
    *,
    sample: Callable[[str], Columns] | None = None,
    ranked: bool | None,
    source: dict[str, object],
    quiet: bool,
) -> CompileResult:
    """Compile subscriptions that were checked; refused rows are handed to `refuse`."""
    if ranked is None:
        ranked = table.has_any(RANKS)
    contents = contents_of(wanted, [table], session, sample)
    sharding.check_content(contents.name)
    if not sharding.count:
        sharding = sharding.fitted(table.count(), building_memory(session))
    job = compile_shards if sharding.count > 1 else _in_one_piece
    done = job(
        session,
        table.lines(ID, FILTER),
        table.form,
        contents,
        output,
        sharding,
        refuse=refuse,
        dialect=wanted.dialect,
        ranked=ranked,
        source=source,
        quiet=quiet,
    )
    return CompileResult(
        **done._asdict(),
        ranked=ranked,
        shards=sharding.count,
        content=contents.name,
        holds=contents.counts(output),
    )


def _in_one_piece(
    session: SparkSession,
    lines: DataFrame,
    form: Format,
    contents: Contents,
    output: Path,
    sharding: Sharding,
    *,
    refuse: Callable[[DataFrame], None],
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
        refuse(to_frame(session, numbered.refused))
    return ShardResult(
        len(numbered.ids),
        numbered.refused.num_rows,
        filters.programs.attributes,
        parsing.seconds,
        building.seconds,
    )


def _compile(
    batches: Iterator[pa.RecordBatch], writers: Writers, *, dialect: str, ranked: bool
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    return compile_batches(batches, writers, partition, dialect=dialect, ranked=ranked)
