"""How large things will be: the first subscriptions and events, matched in this process and scaled."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.engine.engine import Engine
from headgate.errors import EventError, HeadgateError
from headgate.pipeline.dry_run.checked_rows import (
    CheckedRows,
    Source,
    judge_events,
    refuse_sources,
)
from headgate.pipeline.dry_run.compiled_rows import GRAPH_ROWS, CompiledRows
from headgate.pipeline.run.generating import workload_of
from headgate.runtime.batch_queries import sources_of
from headgate.runtime.engines import ShardEngines
from headgate.tables.places import Format, format_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.contents.kind import FilterSettings
    from headgate.core.event import Event
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.file.settings import Match

_PAIRS = 200_000
"""Matches of the sample that are written to see what one takes."""
_ELSEWHERE = "a table is on another file system, which is not checked"
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

    tables: Mapping[str, CheckedRows | None]
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
    """Read the first rows of each table, match them, and scale what comes of it."""
    sources = _sources(pipeline)
    compiled = CompiledRows(pipeline, wanted, sources)
    tables: dict[str, CheckedRows | None] = dict.fromkeys(sources)
    tables |= compiled.checked()
    if "events" in sources:
        tables["events"] = judge_events(pipeline, sources["events"])
    if compiled.graph and not compiled.elsewhere and not compiled.whole:
        note = f"the graph has more than {GRAPH_ROWS:,} rows, and is not read as a whole: what its rows and "
        return Sizes(tables, note=f"{note}the events' sources refer to is not checked")
    if compiled.elsewhere:
        return Sizes(tables, note=_ELSEWHERE)
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        place = Path(folder) / "snapshot"
        try:
            compiled.save(place)
            events = tables.get("events")
            if compiled.graph and events is not None:
                reasons = ShardEngines.open(place, verify=False).refusals(sources_of(events.events))
                tables["events"] = refuse_sources(events, reasons)
            if None in tables.values():
                return Sizes(tables, note=_ELSEWHERE)
            return _sized(pipeline, compiled, tables, place)
        except HeadgateError as error:
            return Sizes(tables, note=f"the first rows cannot be compiled together: {error}")


def _sources(pipeline: Pipeline) -> dict[str, Source]:
    """Find where tables come from: those that are to be generated can be made here, some rows of them."""
    made = workload_of(pipeline.generate).tables if pipeline.generate else {}
    seed = pipeline.generate.seed if pipeline.generate else 1
    places = {
        "subscriptions": pipeline.compile.subscriptions,
        "nodes": pipeline.compile.nodes,
        "edges": pipeline.compile.edges,
        "events": pipeline.events,
    }
    return {
        name: Source(path, made.get(name) if path == pipeline.generated(name) else None, seed)
        for name, path in places.items()
        if path is not None
    }


def _sized(
    pipeline: Pipeline, compiled: CompiledRows, tables: Mapping[str, CheckedRows | None], place: Path
) -> Sizes:
    found = {name: judged for name, judged in tables.items() if judged is not None}
    subscriptions = found.get("subscriptions")
    count, total = (subscriptions.usable, subscriptions.total) if subscriptions else (0, 0)
    whole = snapshot = _bytes(place)
    if subscriptions and count >= 2 and total > count:
        half = place.with_name("half")
        compiled.save(half, subscriptions.looked_at // 2)
        snapshot += (whole - _bytes(half)) * (total - count) // (count - count // 2)
    held = sum(judged.rows.bytes for name, judged in found.items() if name != "events")
    driver = round(_COMPILING * (held + snapshot))
    outputs = None
    events = found.get("events")
    if events is not None:
        pairs = _pairs(Engine.open(place, verify=False), events.events)
        scale = total / count if count else 1.0
        outputs = {
            match.name: _output(match, pairs, events, scale, max(total, 1)) for match in pipeline.matches
        }
    return Sizes(tables, snapshot, outputs, driver)


def _bytes(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def _pairs(engine: Engine, events: Sequence[Event]) -> list[tuple[Any, list[Any]]]:
    """Match the events of a sample; those that cannot be read match nothing."""
    found = []
    for event in events:
        try:
            found.append((event.id, engine.match(event)))
        except EventError:
            found.append((event.id, []))
    return found


def _output(
    match: Match, pairs: list[tuple[Any, list[Any]]], events: CheckedRows, scale: float, total: int
) -> Output:
    counts = [len(found) * scale for _, found in pairs]
    relaxed = match.mode == "relaxed"
    if match.top is not None:
        counts = [min(float(match.top), float(total) if relaxed else count) for count in counts]
    mean = sum(counts) / len(counts) if counts else 0.0
    read = events.looked_at
    documents = events.usable / read if read else 1.0
    matches = round(mean * events.rows.total * documents)
    return Output(matches, round(matches * _bytes_of_a_match(match, pairs)), relaxed)


def _bytes_of_a_match(match: Match, pairs: list[tuple[Any, list[Any]]]) -> float:
    """Write the matches of the sample, to see what one takes."""
    flat = [(event, identity) for event, found in pairs for identity in found][:_PAIRS]
    if not flat:
        return 0.0
    ranked = match.top is not None
    form = format_of(str(match.output))
    if form is Format.PARQUET:
        columns = {"event_id": [event for event, _ in flat], "subscription_id": [each for _, each in flat]}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink, compression="snappy")
        # Scores differ from each other, ranks do not.
        return sink.getvalue().size / len(flat) + (9 if ranked else 0)
    words = json.dumps({"event_id": flat[0][0], "subscription_id": flat[0][1]})
    if form is Format.CSV:
        words = ",".join(map(str, flat[0]))
    return len(words) + 1 + (30 if ranked else 0)
