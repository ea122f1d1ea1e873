"""The compile job: a table of subscriptions to a snapshot, and a table of the rows that were refused.

lines -> compile (in parallel) -> collect -> number by id -> take programs -> index -> snapshot
                             `-> rejected

The dialects of the filters say which content room they are for. Subscriptions that have scores or weights
are ranked. In several shards the workers build the indexes (`sharding.py`), and no row goes through the
driver but those of its own counts.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Required, TypedDict, Unpack

from headgate.contents.kind import FilterSettings
from headgate.core.versions.replacing import new_version
from headgate.graph.model import SUBSCRIPTIONS
from headgate.jobs.choosing import contents_of, has_any
from headgate.jobs.runner import job
from headgate.jobs.sharding import ShardResult, compile_shards
from headgate.runtime.rows import RANKS
from headgate.runtime.sharding import Sharding
from headgate.tables.accepted import number_rows, save_index
from headgate.tables.filter_rows import ALONE, SHAPES, compile_batches
from headgate.tables.places import given_place
from headgate.tables.requests import check_compile, contained
from headgate.tables.results import CompileResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from headgate.contents.protocol import Contents
    from headgate.jobs.runner import Rows, Runner, Table


@dataclass(frozen=True)
class CompileTask:
    """What tables are compiled to, and how; it was checked."""

    output: Path
    wanted: FilterSettings
    sharding: Sharding
    refuse: Callable[[Rows], None]
    """Takes the rows that were refused."""
    source: Mapping[str, object]
    """What the snapshot says that its tables are."""
    ranked: bool | None = None
    sample: Table | None = None
    """That of the settings, if it is not in files."""

    def contents(self, runner: Runner, tables: Iterable[Table]) -> Contents:
        """Choose the kinds of content that tables are for."""
        contents = contents_of(self.wanted, tables, lambda path: self.sample or runner.table(path))
        self.sharding.check_content(contents.room_name)
        return contents


class CompileOptions(TypedDict, total=False):
    """What is asked of either job that compiles, besides tables and the place of the snapshot."""

    rejected: Required[str]
    """The table of rows that are refused."""
    wanted: FilterSettings | None
    """What is said of the filters.

    With a schema, those that name unknown attributes or mix types are refused too; with a sample, a table of
    events, they are filed under values that few of its first events have. Dialects say which content room the
    filters are for, and all of them must be for one.
    """
    ranked: bool | None
    """Whether to rank, whatever columns the tables have."""
    sharding: Sharding | None
    """Which subscriptions are where; with several shards, each is a snapshot inside that at `output`."""
    changes: str | None
    """The log of changes that the tables contain so far."""


@contextmanager
def compiling(
    places: Mapping[str, str], output: str, **asked: Unpack[CompileOptions]
) -> Iterator[CompileTask]:
    """Check what is asked for, and yield the task; the snapshot takes its place after the block."""
    rejected = asked["rejected"]
    wanted, sharding = asked.get("wanted") or FilterSettings(), asked.get("sharding") or Sharding(1)
    check_compile(list(places.values()), output, rejected=rejected, wanted=wanted, sharding=sharding)
    source = {name: Path(path).name for name, path in places.items()}

    def refuse(rows: Rows) -> None:
        rows.write(rejected)

    with new_version(given_place(output), contained(asked.get("changes"))) as new_path:
        yield CompileTask(new_path, wanted, sharding, refuse, source, asked.get("ranked"))


@job
def compile_subscriptions(
    runner: Runner, subscriptions: str, output: str, **asked: Unpack[CompileOptions]
) -> CompileResult:
    """Compile a table of subscriptions to a snapshot at `output`.

    Subscriptions are ranked if the table has scores or weights. Shards are built by workers.
    """
    with compiling({SUBSCRIPTIONS: subscriptions}, output, **asked) as task:
        return compile_table(runner, runner.table(subscriptions), task)


def compile_table(runner: Runner, table: Table, task: CompileTask) -> CompileResult:
    """Compile subscriptions."""
    ranked = has_any(table, RANKS) if task.ranked is None else task.ranked
    contents = task.contents(runner, [table])
    sharding = task.sharding
    if not sharding.count:
        sharding = sharding.fitted(table.lines().count(), runner.building_memory)
    task = replace(task, ranked=ranked, sharding=sharding)
    done = (compile_shards if sharding.count > 1 else _in_one_piece)(runner, table, contents, task)
    return CompileResult(
        **done._asdict(),
        ranked=ranked,
        shards=sharding.count,
        content=contents.room_name,
        holds=contents.counts(task.output),
    )


def _in_one_piece(runner: Runner, table: Table, contents: Contents, task: CompileTask) -> ShardResult:
    """Collect what workers have compiled, and index it here."""
    ranked = bool(task.ranked)
    with runner.step("parsing filters") as parsing:
        compiled = parse(table, contents, task.wanted.dialect, ranked=ranked)
    with runner.step("building the index") as building:
        numbered = number_rows(compiled, table.form)
        filters = save_index(
            compiled, numbered, contents, task.output, ranked=ranked, source=dict(task.source)
        )
        task.refuse(runner.rows(numbered.refused))
    return ShardResult(
        len(numbered.ids),
        numbered.refused.num_rows,
        filters.programs.attributes,
        parsing.seconds,
        building.seconds,
    )


def parse(table: Table, contents: Contents, dialect: str, *, ranked: bool, shape: str = ALONE) -> pa.Table:
    """Have workers compile the filters of a table, row by row; `shape` is what its rows are."""
    work = partial(compile_batches, writers=contents.writers, table=shape, dialect=dialect, ranked=ranked)
    made = SHAPES[shape]
    lines = table.lines(*made.columns.required, even=True)
    return lines.map(work, made.schema(ranked=ranked), numbered=True).collect()
