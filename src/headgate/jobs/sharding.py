"""Subscriptions cut into shards: rows surveyed, then placed, then built shard by shard, by workers.

lines -> survey (in parallel) -> kept -> counts, types of the ids, repeated ids -> rejected
                                      -> place -> rows of a shard together -> build -> moved into place

survey     each row compiled once: refused with the reason, or accepted with the keys of its filter
place      accepted rows to their shards
build      the rows of one shard to a snapshot of it, beside the place of the whole

Rows are compiled twice, which costs less than carrying programs about: they are long, and texts are not.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import ID
from headgate.core.ids import fit_ids
from headgate.core.values import fold
from headgate.errors import SnapshotError
from headgate.records.keys import number_key, text_key
from headgate.runtime.rows import FILTER
from headgate.runtime.sharding import TENANT as BY_TENANT
from headgate.runtime.shards import MOST_KEYS, Routes, ShardPlacement, rarest, save_shards
from headgate.runtime.targets import in_memory
from headgate.tables.accepted import REJECTED, number_rows, repeated_reason, save_index
from headgate.tables.filter_rows import ALONE, NUMBER, PLACE, PROGRAMS, REASON, ROW, SHAPES, compile_batches
from headgate.tables.lines import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE
from headgate.tables.places import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headgate.contents.protocol import Contents, Finder, Writers
    from headgate.jobs.compile import CompileTask
    from headgate.jobs.runner import Rows, Runner, Table
    from headgate.runtime.sharding import Sharding

    Column = pa.Array[Any]

NUMBER_ID, TEXT_ID = "id_number", "id_text"
TENANT, KEYS, HOME = "shard_tenant", "shard_keys", "shard"
NAME, COUNT, ATTRIBUTES, OPEN = "name", "subscriptions", "attributes", "open"

_compute: Any = pc
_PLACES: dict[str, pa.DataType] = {FILE: pa.string(), BLOCK: pa.int64(), POSITION: pa.int64()}
_TEXTS: pa.DataType = pa.list_(pa.string())
_ROWS: dict[str, pa.DataType] = {
    **_PLACES,
    NUMBER_ID: pa.int64(),
    TEXT_ID: pa.string(),
    ROW: pa.string(),
    REASON: pa.string(),
    PLACE: pa.int64(),
    TENANT: pa.string(),
    KEYS: _TEXTS,
}
SURVEYED = pa.schema(_ROWS)
"""A row of the table; every id is text, and a number if it is one. Keys are NULL if the filter is open."""
_HOMES: dict[str, pa.DataType] = {HOME: pa.int32(), **_PLACES, ROW: pa.string(), KEYS: _TEXTS}
PLACED = pa.schema(_HOMES)
_SHARDS: dict[str, pa.DataType] = {
    HOME: pa.int32(),
    NAME: pa.string(),
    COUNT: pa.int64(),
    ATTRIBUTES: _TEXTS,
    OPEN: pa.bool_(),
    KEYS: _TEXTS,
}
BUILT = pa.schema(_SHARDS)
"""A shard that was written, and what leads to it."""


class CompileSettings(NamedTuple):
    """What workers must know to compile rows."""

    writers: Writers
    dialect: str
    ranked: bool


class ShardResult(NamedTuple):
    """What came of it."""

    subscriptions: int
    rejected: int
    attributes: tuple[str, ...]
    parse_seconds: float
    build_seconds: float


def survey_settings(contents: Contents, sharding: Sharding) -> tuple[Finder | None, str | None]:
    """Return what finds the keys of filters, if they are asked for, and the column of tenants."""
    path = sharding.routed_by(contents.room_name)
    wanted = path is not None or sharding.demands(contents.room_name)
    return contents.finder(path) if wanted else None, sharding.column if sharding.by == BY_TENANT else None


def survey_rows(
    batches: Iterable[pa.RecordBatch],
    reading: CompileSettings,
    finder: Finder | None,
    column: str | None,
    *,
    numbers: bool,
) -> Iterator[pa.RecordBatch]:
    """Compile rows to see which are refused, and find the keys of the others, and the tenant in `column`.

    With `numbers`, ids that are text are read as whole numbers.
    """
    for compiled in compile_batches(
        batches, reading.writers, 0, dialect=reading.dialect, ranked=reading.ranked
    ):
        programs: list[int | None] = compiled[NUMBER].to_pylist()
        payload = compiled[PROGRAMS][0].as_py() if compiled.num_rows else None
        found_keys = finder.of_bytes(payload) if finder is not None and payload is not None else []
        keys = [found_keys[number] if number is not None and found_keys else None for number in programs]
        tenants: list[str | None] = [None] * len(programs)
        if column is not None:
            rows: list[Any] = compiled[ROW].to_pylist()
            tenants = [
                None if number is None else tenant_of(row, column)
                for number, row in zip(programs, rows, strict=True)
            ]
        whole, text = compiled[NUMBER_ID], compiled[TEXT_ID]
        more: dict[str, Column] = {
            NUMBER_ID: _either(whole, fit_ids(text, numbered=True)) if numbers else whole,
            TEXT_ID: _either(text, whole.cast(pa.string())),
            TENANT: pa.array(tenants, pa.string()),
            KEYS: pa.array([None if each is None else sorted(each) for each in keys], _TEXTS),
        }
        columns = [more[name] if name in more else compiled[name] for name in SURVEYED.names]
        yield pa.RecordBatch.from_arrays(columns, schema=SURVEYED)


def tenant_of(row: str, column: str) -> str | None:
    """Find the tenant of a row, with its type; names have no case.

    >>> tenant_of('{"id": 1, "Tenant": "acme"}', "tenant"), tenant_of('{"id": 1}', "tenant")
    ('=acme', None)
    """
    fields: dict[str, Any] = msgspec.json.decode(row)
    value = next((value for name, value in fields.items() if fold(name) == fold(column)), None)
    if value is None:
        return None
    if isinstance(value, str):
        return text_key(value)
    plain = isinstance(value, int) and not isinstance(value, bool)
    return number_key(value) if plain else msgspec.json.encode(value).decode()


def place_rows(
    batches: Iterable[pa.RecordBatch],
    placing: ShardPlacement,
    numbered: bool,
    counts: Mapping[str, int] | None,
) -> Iterator[pa.RecordBatch]:
    """Place accepted rows; with `counts`, of the keys of each the rarest is enough."""
    for batch in batches:
        ids = batch[NUMBER_ID if numbered else TEXT_ID]
        keys: list[list[str] | None] = batch[KEYS].to_pylist()
        if counts is not None:
            keys = [[rarest(each, counts)] if each else each for each in keys]
        first = pa.array([each[0] if each else None for each in keys], pa.string())
        homes = placing.homes(ids, batch[TENANT], first)
        columns: dict[str, Any] = {HOME: pa.array(homes, pa.int32()), KEYS: pa.array(keys, _TEXTS)}
        columns |= {name: batch[name] for name in (*ORDER, ROW)}
        yield pa.RecordBatch.from_arrays([columns[name] for name in PLACED.names], schema=PLACED)


def _either(one: Column, other: Column) -> Column:
    either: Column = _compute.coalesce(one, other)
    return either


def each_key(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """List the keys of all rows."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.list_flatten(batch[KEYS])], names=[KEYS])


class BuildSettings(NamedTuple):
    """What workers must know to build a shard."""

    stage: str
    """A directory beside the place of the whole snapshot."""
    contents: Contents
    reading: CompileSettings
    numbered: bool
    """Whether ids are whole numbers, in the whole table."""


def build_shard(
    batches: Iterable[pa.RecordBatch], building: BuildSettings, part: int
) -> Iterator[pa.RecordBatch]:
    """Build the shard whose rows are these, all of one part, and write it; tell what leads to it."""
    yield pa.RecordBatch.from_pylist([write_shard(batches, building, part)], schema=BUILT)


def write_shard(batches: Iterable[pa.RecordBatch], building: BuildSettings, number: int) -> dict[str, Any]:
    """Build a shard of some rows and write it; returns a row of `BUILT`.

    Attempts write to places of their own, so that one which was cut short is never taken for a whole one.
    """
    shard_keys = _ShardKeys()
    reading, name = building.reading, f"{number}-{uuid4().hex}"
    with in_memory(f"shard {number}"):
        kinds = SHAPES[ALONE].schema(ranked=reading.ranked)
        given = _again(batches, shard_keys)
        parts = compile_batches(given, reading.writers, 0, dialect=reading.dialect, ranked=reading.ranked)
        compiled = pa.Table.from_batches(list(parts), kinds)
        accepted = number_rows(compiled, Format.JSONL, numbered=building.numbered)
        assert not accepted.refused.num_rows, "these rows were accepted before"
        path = Path(building.stage) / name
        filters = save_index(compiled, accepted, building.contents, path, ranked=reading.ranked)
    return {
        HOME: number,
        NAME: name,
        COUNT: len(accepted.ids),
        ATTRIBUTES: list(filters.programs.attributes),
        OPEN: shard_keys.open,
        KEYS: sorted(shard_keys.keys),
    }


class _ShardKeys:
    """What the rows of a shard say of its keys."""

    def __init__(self) -> None:
        self.open = False
        self.keys: set[str] = set()

    def take(self, keys: Iterable[str] | None) -> None:
        """Take in the keys of a row; None if it is open."""
        if keys is not None and not self.open:
            self.keys.update(keys)
        if keys is None or len(self.keys) > MOST_KEYS:
            self.open = True
            self.keys.clear()


def _again(batches: Iterable[pa.RecordBatch], told: _ShardKeys) -> Iterator[pa.RecordBatch]:
    """Give rows the columns that they had when they were read, and note their keys."""
    for batch in batches:
        for keys in batch[KEYS].to_pylist():
            told.take(keys)
        columns = [*(batch[name] for name in ORDER), batch[ROW].cast(pa.binary())]
        broken: Column = pa.array([None] * batch.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays([*columns, broken], names=[*ORDER, VALUE, BROKEN])


def refuse_rows(batches: Iterable[pa.RecordBatch], numbered: bool) -> Iterator[pa.RecordBatch]:
    """Make rows of `REJECTED` of rows that were refused, and of those whose id was given before."""
    for batch in batches:
        ids: list[Any] = batch[NUMBER_ID if numbered else TEXT_ID].to_pylist()
        reasons = [
            repeated_reason(identity) if reason is None else reason
            for identity, reason in zip(ids, batch[REASON].to_pylist(), strict=True)
        ]
        columns = [
            batch[TEXT_ID],
            batch[ROW],
            pa.array(reasons, pa.string()),
            batch[PLACE],
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=REJECTED)


@contextmanager
def staging(output: Path) -> Iterator[Path]:
    """Make a folder beside a snapshot for its shards while they are written; nothing of it is left."""
    output = Path(os.path.abspath(output))  # noqa: PTH100 -- resolve() would write through a symbolic link
    stage = output.with_name(f".{output.name}.{os.getpid()}.shards")
    shutil.rmtree(stage, ignore_errors=True)
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        raise SnapshotError(f"snapshot {output} cannot be written: {error}; choose another place") from error
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def save_built(built: list[dict[str, Any]], stage: Path, contents: Contents, task: CompileTask) -> None:
    """Put shards that were written into their place."""
    places = [stage / row[NAME] for row in built]
    for folder in places:
        if not folder.is_dir():
            raise SnapshotError(
                f"a worker has written a shard to {folder}, and it is not there: give a place that all "
                "machines see"
            )
    routes = Routes.of_shards(
        contents.room_name,
        task.sharding.routed_by(contents.room_name),
        [row[COUNT] for row in built],
        [row[OPEN] for row in built],
        [row[KEYS] for row in built],
    )
    ranked, sharding = bool(task.ranked), task.sharding
    save_shards(task.output, places, ranked=ranked, routes=routes, sharding=sharding, source=task.source)


_KEYS = pa.schema({KEYS: pa.string()})


def compile_shards(runner: Runner, table: Table, contents: Contents, task: CompileTask) -> ShardResult:
    """Have workers cut the rows of a table into shards and write them."""
    sharding, ranked = task.sharding, bool(task.ranked)
    reading = CompileSettings(contents.writers, task.wanted.dialect, ranked)
    finder, column = survey_settings(contents, sharding)
    # CSV has text only, so it is read.
    survey = partial(
        survey_rows, reading=reading, finder=finder, column=column, numbers=table.form is Format.CSV
    )
    lines = table.lines(ID, FILTER, even=True)
    with lines.map(survey, SURVEYED).kept() as rows:
        with runner.step("parsing filters") as parsing:
            every = _counted(rows)
            numbered = every.numbers == every.good
            accepted, again = rows.lacking(REASON).firsts(TEXT_ID, *ORDER)
            repeated = _counted(again)
            count, keyed = every.good - repeated.good, every.keyed - repeated.keyed
            refused = rows.having(REASON).sorted(*ORDER)
            if repeated.good:
                refused = refused.then(again.sorted(*ORDER))
            task.refuse(refused.map(partial(refuse_rows, numbered=numbered), REJECTED))
        with (
            runner.step(f"building {sharding.count} shards") as building,
            staging(task.output) as stage,
        ):
            placing = ShardPlacement(sharding, keyed, count - keyed)
            counts = _counts(accepted) if sharding.demands(contents.room_name) else None
            placed = partial(place_rows, placing=placing, numbered=numbered, counts=counts)
            made = BuildSettings(str(stage), contents, reading, numbered)
            # A shard is a part, also one without rows.
            parts = accepted.map(placed, PLACED).parted(HOME, sharding.count, *ORDER)
            tasks = parts.map(partial(build_shard, building=made), BUILT, numbered=True).collect()
            done = {row[HOME]: row for row in tasks.to_pylist()}
            # Spark runs no tasks at all if it knows that there are no rows.
            built = [
                done[number] if number in done else write_shard([], made, number)
                for number in range(sharding.count)
            ]
            save_built(built, stage, contents, task)
    attributes = tuple(sorted({name for row in built for name in row[ATTRIBUTES]}))
    return ShardResult(count, every.bad + repeated.good, attributes, parsing.seconds, building.seconds)


class _Counts(NamedTuple):
    """How many rows there are, how many with an id that is a number, and with keys."""

    good: int
    bad: int
    numbers: int
    keyed: int


_COUNTS = pa.schema([pa.field(name, pa.int64()) for name in _Counts._fields])


def _counted(rows: Rows) -> _Counts:
    counts = rows.select(REASON, NUMBER_ID, KEYS).map(_count, _COUNTS).collect()
    return _Counts(*(int(np.sum(column.to_numpy())) for column in counts.columns))


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts = np.zeros(len(_COUNTS), np.int64)
    for batch in batches:
        good = batch.filter(batch[REASON].is_null())
        valid = [good.num_rows - good[name].null_count for name in (NUMBER_ID, KEYS)]
        counts += [good.num_rows, batch.num_rows - good.num_rows, *valid]
    yield pa.RecordBatch.from_pylist([dict(zip(_COUNTS.names, counts.tolist(), strict=True))], _COUNTS)


def _counts(accepted: Rows) -> dict[str, int]:
    """Count in how many filters each key is."""
    counted = accepted.select(KEYS).map(each_key, _KEYS).counted(KEYS).collect()
    counts: dict[str, int] = dict(zip(*(column.to_pylist() for column in counted.columns), strict=True))
    return counts
