"""Jobs over JSON lines in this process: what workers run and what the driver does, without Spark.

What Spark adds is to read files, to cut tables into parts and to write what comes out. Tests that judge rows
need none of it.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from headgate.core.rooms import RECORDS
from headgate.core.subscription import SQL
from headgate.engine.question import Question
from headgate.graph.build.sharding import save_shards
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.jobs.graph import place_graph
from headgate.jobs.match import columns_of
from headgate.records.compiling import RecordContents
from headgate.runtime import shards as shard_snapshots
from headgate.runtime.sharding import Sharding
from headgate.runtime.shards import Routes
from headgate.runtime.targets import open_target
from headgate.tables.accepted import number_rows, save_index
from headgate.tables.event_rows import KEY, LINES, REASON, ROW
from headgate.tables.filter_rows import SHAPES, compile_batches
from headgate.tables.frames.report import Reporter
from headgate.tables.frames.rows import both_frame
from headgate.tables.frames.task import FrameTask
from headgate.tables.graph import GraphWriter, ReadTable, assemble
from headgate.tables.lines import BLOCK, BROKEN, FILE, POSITION, VALUE
from headgate.tables.places import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from headgate.contents.protocol import Contents
    from headgate.engine.question import Top
    from tests.spark.files import Row

    Line = Row | str | bytes


class Compiled(NamedTuple):
    """What was compiled, and the rejected table."""

    subscriptions: int
    attributes: tuple[str, ...]
    refused: list[Row]


class CompiledGraph(NamedTuple):
    """The same of a graph, with the rows of each table that are in it."""

    subscriptions: int
    rows: dict[str, int]
    refused: list[Row]


class Matched(NamedTuple):
    """The events, the rows of the matches in the order in which they came, and the rejected table."""

    events: int
    rows: list[Row]
    refused: list[Row]
    met: int
    """How often an event met a shard."""

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """List events and subscriptions."""
        return [(row["event_id"], row["subscription_id"]) for row in self.rows]


def _bytes(line: Line) -> bytes:
    text = json.dumps(line, ensure_ascii=False) if isinstance(line, dict) else line
    return text.encode() if isinstance(text, str) else text


def lines_of(given: Iterable[Line]) -> pa.RecordBatch:
    """Put lines into a batch as `read_lines` does."""
    values = [_bytes(line) for line in given]
    columns: dict[str, Any] = {
        FILE: pa.array([""] * len(values)),
        BLOCK: pa.array([0] * len(values), pa.int64()),
        POSITION: pa.array(range(len(values)), pa.int64()),
        VALUE: pa.array(values, pa.binary()),
        BROKEN: pa.nulls(len(values), pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def compile_lines(
    place: Path,
    given: Iterable[Line],
    *,
    form: Format = Format.JSONL,
    contents: Contents | None = None,
    dialect: str = SQL,
    ranked: bool = False,
) -> Compiled:
    """Compile subscriptions to a snapshot in one piece; `form` is the one that their table would have."""
    contents = contents or RecordContents()
    batches = compile_batches([lines_of(given)], contents.writers, dialect=dialect, ranked=ranked)
    table = pa.Table.from_batches(batches)
    numbered = number_rows(table, form)
    filters = save_index(table, numbered, contents, place, ranked=ranked)
    return Compiled(len(numbered.ids), filters.programs.attributes, numbered.refused.to_pylist())


def compile_shards(place: Path, given: Sequence[Line], count: int, *, ranked: bool = False) -> None:
    """Compile subscriptions over records to a snapshot of shards, dealt out one by one."""
    parts = [given[number::count] for number in range(count)]
    staged = [place.with_name(f"{place.name}-{number}") for number in range(count)]
    for part, stage in zip(parts, staged, strict=True):
        assert not compile_lines(stage, part, ranked=ranked).refused
    routes = Routes.make(RECORDS, None, [(len(part), [None] * len(part)) for part in parts])
    shard_snapshots.save_shards(place, staged, ranked=ranked, routes=routes, sharding=Sharding(count))


def compile_graph_lines(
    place: Path,
    nodes: Iterable[Line],
    edges: Iterable[Line],
    subscriptions: Iterable[Line] = (),
    *,
    shards: int = 1,
    ranked: bool = False,
    contents: Contents | None = None,
) -> CompiledGraph:
    """Compile a graph to a snapshot, in shards by hash if there are to be several."""
    contents = contents or RecordContents()
    read = {}
    for name, lines in ((NODES, nodes), (EDGES, edges), (SUBSCRIPTIONS, subscriptions)):
        weighed = ranked and name == SUBSCRIPTIONS
        made = SHAPES[name].schema(ranked=weighed)
        work = partial(compile_batches, table=name, writers=contents.writers, dialect=SQL, ranked=weighed)
        read[name] = ReadTable(pa.Table.from_batches(work([lines_of(lines)]), made), Format.JSONL)
    assembled = assemble(read, contents)
    save = GraphWriter(assembled, contents).save
    if shards == 1:
        save(assembled.parts, place)
    else:
        rule = Sharding(shards)
        home, routes = place_graph(assembled, contents, rule, None)
        about = routes.about(rule)
        save_shards(
            place, assembled.parts, shards, save, home=home, routes=routes.arrays(), about=about, source={}
        )
    count = len(assembled.parts.subscription_ids)
    return CompiledGraph(count, dict(assembled.accepted), assembled.rejected.to_pylist())


def meetings(snapshot: Path, given: Sequence[Line], top: Top | None, memory: int) -> int:
    """Count how often an event meets a shard, where as many shards lie together as fit into a memory."""
    target = open_target(str(snapshot), top=top)
    groups, sources = target.groups(memory), target.sources(memory)
    met = 0
    lines = pa.array([_bytes(line) for line in given], pa.binary())
    batch = pa.RecordBatch.from_pydict({VALUE: lines, KEY: pa.array(range(len(given)), pa.int64())})
    for group in groups:
        first, report = group is groups[0], Reporter(0)
        task = FrameTask(
            group,
            target.content,
            LINES,
            target.numbered,
            sources=sources if first else None,
            tells=first,
            question=Question(top),
            keyed=top is not None and len(groups) > 1,
        )
        for _ in both_frame([batch], task, report):
            pass
        met += report.done().met
    return met


def match_lines(
    snapshot: Path, given: Sequence[Line], *, graph: bool | None = None, top: Top | None = None
) -> Matched:
    """Match records, given as lines, against a snapshot."""
    target = open_target(str(snapshot), graph=graph, top=top)
    groups = target.groups(1 << 30)
    assert len(groups) == 1, "the answers of several groups are merged by Spark"
    batch = pa.RecordBatch.from_pydict({VALUE: pa.array([_bytes(line) for line in given], pa.binary())})
    task = FrameTask(
        groups[0],
        target.content,
        LINES,
        target.numbered,
        sources=target.sources(1 << 30),
        question=Question(top),
    )
    report = Reporter(0)
    told = [row for part in both_frame([batch], task, report) for row in part.to_pylist()]
    done = report.done()
    kind = str if done.texts else int
    rows = [
        {
            called: row[name] if called != "event_id" else kind(row[name])
            for name, called in columns_of(task).items()
        }
        for row in told
        if row[REASON] is None
    ]
    refused = [{ROW: row[ROW], REASON: row[REASON]} for row in told if row[REASON] is not None]
    return Matched(done.events, rows, refused, done.met)
