"""Compile DataFrames of subscriptions, nodes and edges to a snapshot."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.contents.kind import FilterSettings
from headgate.core.subscription import SQL
from headgate.core.versions.replacing import new_version
from headgate.errors import TableError
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.jobs.compile import CompileTask
from headgate.jobs.graph import compile_given
from headgate.runtime.sharding import HASH, Sharding
from headgate.spark.frames.columns import check_frame
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.given import FrameTable
from headgate.tables.places import check_snapshot_place, given_place
from headgate.tables.requests import check_schema, contained, read_taxonomy
from headgate.tables.settings import Filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

SAMPLE = "sample"


@dataclass(frozen=True)
class Compiled(os.PathLike[str]):
    """A snapshot that was compiled. Hand it to `match` and the others as it is: it stands for its path."""

    path: str
    subscriptions: int
    nodes: int
    edges: int
    rejected: int
    """How many rows were refused."""
    refused: DataFrame = field(repr=False)
    """Those rows as JSON, each with the reason; of a graph also with the name of its table."""
    attributes: tuple[str, ...] = field(repr=False)
    """What filters of records look at."""
    shards: int
    ranked: bool

    def __fspath__(self) -> str:
        """Return the path."""
        return self.path


def compile(  # noqa: A001 -- what it does; it is used as hg.compile
    subscriptions: DataFrame | None,
    to: str | os.PathLike[str],
    *,
    nodes: DataFrame | None = None,
    edges: DataFrame | None = None,
    dialect: str = SQL,
    schema: str | None = None,
    sample: DataFrame | None = None,
    taxonomy: Sequence[str] = (),
    coerce: bool = False,
    injective: bool = False,
    namespaces: Mapping[str, str] | None = None,
    unindexed: str | None = None,
    nulls: str | None = None,
    names: str | None = None,
    dots: str | None = None,
    ranked: bool | None = None,
    shards: int | str = 1,
    shard_by: str = HASH,
    shard_column: str | None = None,
    changes: str | None = None,
    quiet: bool = True,
) -> Compiled:
    """Compile subscriptions to a snapshot at `to`, which is replaced if it is one: columns `id` and `filter`.

    They may have `dialect`, `score`, `weights`, and with `nodes` and `edges` the `node` where they hang: all
    columns of the tables of `headgate compile`, and the same settings. `schema` is JSON text; `sample` has
    events, of which the first are looked at. Rows are parsed by the workers that the frame's partitions give.

    `changes` is the place of the log of changes that the frames contain so far: its position is noted before
    they are read, and a stream applies what comes after it.

    Rows that are refused are those of `refused`; the others are compiled.

    >>> snap = compile(subscriptions, "snapshot", nodes=nodes, edges=edges)  # doctest: +SKIP
    >>> matched = hg.match(events, snap)  # doctest: +SKIP
    """
    given = {NODES: nodes, EDGES: edges, SUBSCRIPTIONS: subscriptions}
    frames = {name: frame for name, frame in given.items() if frame is not None}
    for name, frame in frames.items():
        _check_frame(frame, name)
    if sample is not None:
        _check_frame(sample, SAMPLE)
    if not frames or (nodes is None) != (edges is None):
        raise TableError("give subscriptions, or nodes and edges with subscriptions or without")
    output = os.fspath(to)
    check_snapshot_place(output)
    check_schema(schema)
    wanted = FilterSettings(
        dialect,
        schema,
        None if sample is None else SAMPLE,
        read_taxonomy(tuple(taxonomy)),
        Filters(coerce=coerce, injective=injective).options,
        namespaces=namespaces,
        unindexed=unindexed,
        nulls=nulls,
        names=names,
        dots=dots,
    )
    sharding = Sharding.of(shards, shard_by, shard_column)
    session = next(iter(frames.values())).sparkSession
    refused: list[pa.Table] = []
    runner, source = SparkRunner(session, quiet), dict.fromkeys(frames, "DataFrame")
    tables = {name: FrameTable(frame, name) for name, frame in frames.items()}
    events = None if sample is None else FrameTable(sample, SAMPLE)
    with spark_errors(), new_version(given_place(output), contained(changes)) as path:
        # Refused rows are kept: what they are made of is forgotten when the snapshot is there.
        task = CompileTask(
            path, wanted, sharding, lambda rows: refused.append(rows.collect()), source, ranked, events
        )
        done = compile_given(runner, tables, task)
    return Compiled(
        output,
        done.subscriptions,
        getattr(done, "nodes", 0),
        getattr(done, "edges", 0),
        done.rejected,
        session.createDataFrame(refused[0]),
        done.attributes,
        done.shards,
        done.ranked,
    )


def _check_frame(frame: object, name: str) -> None:
    check_frame(frame, name)
    if getattr(frame, "isStreaming", False):
        raise TableError(f"{name} are a stream: compile a table, and hand changes to headgate stream")
