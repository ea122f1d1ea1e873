"""How large things will be: the first subscriptions and events, compiled and matched by the jobs, and scaled.

rows -> compiled -> refused rows with their reasons
                 -> a snapshot of the others -> its size
events -> matched -> refused rows with their reasons
                  -> matches, whose number and size say the rest
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.protocol import EVENT_ID
from headgate.contents.registry import kind_of
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.jobs.compile import CompileTask
from headgate.jobs.events import read_documents, read_records
from headgate.jobs.graph import compile_given, is_ranked, read_tables
from headgate.jobs.match import match_events
from headgate.local.runner import LocalRunner
from headgate.pipeline.dry_run import samples
from headgate.records.names import NameSettings
from headgate.runtime.sharding import Sharding
from headgate.tables.filter_rows import REASON
from headgate.tables.graph import TABLE
from headgate.tables.places import Format, format_of, is_remote, is_table
from headgate.tables.results import GraphCompileResult
from headgate.workloads.catalogue import workload_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from headgate.contents.kind import FilterSettings
    from headgate.jobs.runner import Rows
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.file.settings import Match


EVENTS, DOCUMENTS = 1_000, 200
"""Events of a sample: each is matched, and documents are parsed as well."""
GRAPH_ROWS = 60_000
"""A graph with more nodes or edges than this is not read as a whole, and then it cannot be put together."""
_PAIRS = 200_000
"""Matches of the sample that are written to see what one takes."""
_ELSEWHERE = "a table is on another file system, which is not checked"
_RANK_BYTES = {True: 9, False: 30}
"""What a score and a rank take in a row of Parquet, where ranks are few, and of text."""
_COMPILING = 3.0
"""What the driver holds while it compiles, in sizes of its tables and of the snapshot together."""


class Output(NamedTuple):
    """What a match will give, about."""

    matches: int
    bytes: int
    at_most: bool
    """Whether it is a bound, and no estimate."""


@dataclass(frozen=True)
class Sizes:
    """What was found in the first rows, and what follows from it."""

    tables: Mapping[str, samples.CheckedRows | None]
    """By name; None for what only Spark can look at."""
    snapshot: int | None = None
    """Bytes."""
    outputs: dict[str, Output] | None = None
    """By the name of the match."""
    driver: int | None = None
    """Bytes of memory that the driver needs to compile."""
    note: str = ""
    """Why there is no estimate, if there is none."""


def estimate(pipeline: Pipeline, wanted: FilterSettings) -> Sizes:
    """Read the first rows of each table, compile and match them, and scale what comes of it."""
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        return _Trial(pipeline, wanted, Path(folder)).sizes()


class _Trial:
    """The first rows of a pipeline's tables, and what jobs make of them in a folder."""

    def __init__(self, pipeline: Pipeline, wanted: FilterSettings, folder: Path) -> None:
        self._pipeline = pipeline
        self._kind = kind_of(samples.content_at_hand(pipeline))
        self._wanted = replace(wanted, dialect=pipeline.dialect, sample=None)
        self._folder = folder
        self._snapshot = folder / "snapshot"
        self._runner = LocalRunner(quiet=True)
        settings = pipeline.compile
        paths = {SUBSCRIPTIONS: settings.subscriptions, NODES: settings.nodes, EDGES: settings.edges}
        self._given = {
            name: self._sampled(name, path, samples.ROWS if name == SUBSCRIPTIONS else GRAPH_ROWS)
            for name, path in paths.items()
            if path is not None
        }
        self._read = {name: table for name, table in self._given.items() if table is not None}

    def sizes(self) -> Sizes:
        """Compile the tables and match the events, as far as they can be looked at."""
        note = self._why_apart()
        compiled = self._judge_rows() if note else self._compile(self._read, self._snapshot)
        tables: dict[str, samples.CheckedRows | None] = {**dict.fromkeys(self._given), **compiled}
        matches = None
        if self._pipeline.events is not None:
            events = self._sample_events(self._pipeline.events)
            tables["events"] = None
            if events is None:
                note = note or _ELSEWHERE
            elif note:
                tables["events"] = self._judge_events(*events)
            else:
                tables["events"], matches = self._match(*events)
        return Sizes(tables, note=note) if note else self._sized(tables, compiled, matches)

    def _why_apart(self) -> str:
        """Say why the tables cannot be compiled together; empty if they can."""
        if len(self._read) < len(self._given):
            return _ELSEWHERE
        if any(len(self._read[name].rows) >= GRAPH_ROWS for name in (NODES, EDGES) if name in self._read):
            return (
                f"the graph has more than {GRAPH_ROWS:,} rows, and is not read as a whole: what its rows and "
                "the events' sources refer to is not checked"
            )
        return ""

    def _sampled(self, name: str, path: str, most: int) -> samples.SampledTable | None:
        """Read the first rows of a table; those of one that is to be generated can be made here."""
        generate = self._pipeline.generate
        if generate is not None and path == self._pipeline.generated(name):
            return samples.generated(path, workload_of(generate).tables[name], generate.seed, most)
        return None if is_remote(path) else samples.first_rows(path, most)

    def _sample_events(self, path: str) -> tuple[samples.SampledTable, str] | None:
        """Write the first events to a table of their own, or copy the first documents; says where."""
        made = path == self._pipeline.generated("events")
        if self._kind.documents and not (made or is_remote(path) or is_table(path)):
            folder = self._folder / "events"
            return samples.sample_files(path, DOCUMENTS, folder), str(folder)
        events = self._sampled("events", path, DOCUMENTS if self._kind.documents else EVENTS)
        if events is None:
            return None
        path_written = self._folder / "events.jsonl"
        events.write_events(path_written)
        return events, str(path_written)

    def _compile(
        self, read: Mapping[str, samples.SampledTable], path: Path
    ) -> dict[str, samples.CheckedRows]:
        """Compile tables to a snapshot of what can be used of them."""
        refused: list[dict[str, Any]] = []

        def refuse(rows: Rows) -> None:
            refused.extend(rows.collect().to_pylist())

        ranked = self._pipeline.compile.ranked
        done = compile_given(
            self._runner, read, CompileTask(path, self._wanted, Sharding(1), refuse, {}, ranked)
        )
        usable = done.rows if isinstance(done, GraphCompileResult) else {SUBSCRIPTIONS: done.subscriptions}
        return {
            name: table.checked(
                usable[name], [row[REASON] for row in refused if row.get(TABLE, name) == name]
            )
            for name, table in read.items()
        }

    def _judge_rows(self) -> dict[str, samples.CheckedRows]:
        """Judge the rows of a graph that was not read as a whole, each by itself."""
        if not {NODES, EDGES} & {*self._read}:
            return {}
        contents = self._kind.compiler(self._wanted, lambda path: path)
        ranked_asked = self._pipeline.compile.ranked
        ranked = is_ranked(self._read) if ranked_asked is None else ranked_asked
        read = read_tables(self._read, contents, self._wanted.dialect, ranked=ranked)
        reasons = {name: read[name].rows[REASON] for name in self._read}
        return {
            name: self._read[name].checked(each.null_count, each.drop_null().to_pylist())
            for name, each in reasons.items()
        }

    def _judge_events(self, events: samples.SampledTable, path: str) -> samples.CheckedRows:
        """Judge events alone."""
        if self._kind.documents:
            judged = read_documents(self._runner, path, self._kind.name, self._pipeline.format)
        else:
            judged = read_records(self._runner, path, NameSettings.of(vars(self._wanted)).mark)
        return events.checked(judged.count, judged.refused.collect()[REASON].to_pylist())

    def _match(self, events: samples.SampledTable, path: str) -> tuple[samples.CheckedRows, pa.Table]:
        """Match events, and return the matches."""
        output, rejected = (str(self._folder / name) for name in ("matches.parquet", "rejected.parquet"))
        done = match_events(
            self._runner,
            str(self._snapshot),
            path,
            output,
            rejected=rejected,
            content_type=self._pipeline.format,
        )
        # Filters that were left out of events come last.
        refused = self._runner.table(rejected).typed().head(done.rejected)
        matches = self._runner.table(output).typed().collect()
        return events.checked(done.events, refused[REASON].to_pylist()), matches

    def _sized(
        self,
        tables: dict[str, samples.CheckedRows | None],
        compiled: dict[str, samples.CheckedRows],
        matches: pa.Table | None,
    ) -> Sizes:
        """Scale what was found to the whole tables."""
        subscriptions, events = compiled.get(SUBSCRIPTIONS), tables.get("events")
        count, total = (subscriptions.usable, subscriptions.total) if subscriptions else (0, 0)
        whole = snapshot = samples.bytes_below(self._snapshot)
        if subscriptions and count >= 2 and total > count:
            half = self._folder / "half"
            self._compile({**self._read, SUBSCRIPTIONS: self._read[SUBSCRIPTIONS].half()}, half)
            snapshot += (whole - samples.bytes_below(half)) * (total - count) // (count - count // 2)
        driver = round(_COMPILING * (sum(table.size for table in self._read.values()) + snapshot))
        outputs = None
        if events is not None and matches is not None:
            scale = total / count if count else 1.0
            outputs = {
                match.name: _output(match, matches, events, scale, max(total, 1))
                for match in self._pipeline.matches
            }
        return Sizes(tables, snapshot, outputs, driver)


def _output(match: Match, matches: pa.Table, events: samples.CheckedRows, scale: float, total: int) -> Output:
    """Say what a match will give; in the sample, all matches were asked for."""
    counts = np.zeros(events.usable)
    by_event = matches[EVENT_ID].value_counts().field("counts").to_numpy()
    counts[: len(by_event)] = by_event * scale
    relaxed = match.mode == "relaxed"
    if match.top is not None:
        counts = np.minimum(match.top, total if relaxed else counts)
    mean = float(counts.sum()) / events.looked_at if events.looked_at else 0.0
    count = round(mean * events.table.total)
    if not matches.num_rows:
        return Output(count, 0, relaxed)
    some = matches.slice(0, _PAIRS)
    form = format_of(str(match.output))
    # Ranks and scores are not in the sample.
    ranked = 0 if match.top is None else _RANK_BYTES[form is Format.PARQUET]
    size = samples.written_size(some, form) / some.num_rows + ranked
    return Output(count, round(count * size), relaxed)
