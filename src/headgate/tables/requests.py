"""What is asked of jobs, checked before any work: before Spark, a kernel, or anything large, is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.contents.registry import content_at, is_content, kind_at, kind_of
from headgate.core.event import CONTENT_TYPE, media_type
from headgate.core.rooms import FILTER_SHARDS, GRAPH_SHARDS, RANKING_SHARDS
from headgate.core.schema import read_schema
from headgate.core.snapshot import check_place, room_of
from headgate.core.values import fold
from headgate.core.versions.stores import located
from headgate.engine.question import ALL
from headgate.errors import EventError, SnapshotError, TableError
from headgate.graph.model import check_count
from headgate.rdf.kind import KIND
from headgate.runtime.questions import check_changes, check_ranks
from headgate.runtime.statistics import check_statistics
from headgate.tables import places
from headgate.tables.packed import ending
from headgate.tables.settings import WhatIf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headgate.contents.kind import FilterSettings, Kind
    from headgate.engine.question import Question, Top
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.runtime.sharding import Sharding


NATS, KAFKA = "nats://", "kafka://"


def check_log(place: str | None) -> None:
    """Refuse a log of changes that is not there; servers are not asked."""
    if place is None or place.startswith(NATS):
        return
    if place.startswith(KAFKA):
        raise TableError("changes of subscriptions come from a folder or from nats://, not from Kafka")
    check_changes(place)


def contained(place: str | None) -> dict[str, Any] | None:
    """Return what a snapshot says that is compiled of tables read from now on; None without a log."""
    check_log(place)
    if place is None:
        return None
    if place.startswith(NATS):
        from headgate.brokers.nats.settings import NatsSettings
        from headgate.brokers.nats.stream import Stream

        with Stream(NatsSettings.of(place, {})) as stream:
            return {"source": "nats", "position": stream.state().position}
    from headgate.runtime.changes import FileChanges

    return {"source": FileChanges.source, "position": FileChanges(place).end()}


def type_of_file(name: str, kind: Kind) -> str | None:
    """Find the content type of a file by its name."""
    return kind.suffixes.get(ending(name))


def type_of_name(name: object, kind: Kind) -> str | None:
    """Find the content type that is meant, if it is one of a kind of documents."""
    media = media_type(name) if isinstance(name, str) else None
    return media if media in kind.types.values() else None


def check_type(content_type: str | None, kind: Kind) -> str | None:
    """Return the content type that is meant, if any is; refuses one of another kind."""
    media = None if content_type is None else type_of_name(content_type, kind)
    if content_type is not None and media is None:
        raise TableError(f"{content_type!r} is not a format of {kind.title}: use {', '.join(kind.types)}")
    return media


def check_events(path: str, kind: Kind, content_type: str | None = None) -> places.Format | None:
    """Tell the format of a table of events; None for files. Refuses what is neither, before Spark starts."""
    named = check_type(content_type, kind)
    places.check_there(path)
    places.check_links(path)
    suffixes = _suffixes(path, kind)
    if suffixes.isdisjoint(kind.suffixes.keys() - kind.tabular) and not suffixes.isdisjoint(places.ENDINGS):
        return places.check_input(path)
    if suffixes.isdisjoint(kind.suffixes) and named is None:
        known = ", ".join((*places.ENDINGS, *kind.suffixes))
        raise TableError(f"the format of {path} is not clear: name it with one of {known}, or say --format")
    return None


def _suffixes(path: str, kind: Kind) -> set[str]:
    """List the ending of a path; if that says nothing, those of the files in the folder."""
    own = ending(path)
    if own in kind.suffixes or own in places.ENDINGS or places.is_remote(path):
        return {own}
    if not places.is_pattern(path) and not places.local(path).is_dir():
        return {own}
    return {ending(file) for file in places.table_files(path)}


def are_documents(kind: Kind, form: places.Format | None, names: Callable[[], Iterable[str]]) -> bool:
    """Tell whether events are read as documents, one by one: of several kinds, also if some are records.

    `form` is that of their table, None for files. Columns have types, which records keep if they stay
    columns: so a table of CSV or Parquet without a column `datacontenttype` has records only. In CSV all
    else is text: with that column, it has documents only.
    """
    if not kind.rows or form is None or form is places.Format.JSONL:
        return kind.documents
    return kind.documents and CONTENT_TYPE in map(fold, names())


def check_compile(
    inputs: Sequence[str],
    output: str,
    *,
    rejected: str,
    wanted: FilterSettings,
    sharding: Sharding | None = None,
) -> None:
    """Refuse tables that are not there, places that are taken, and a schema that cannot be read."""
    places.check_here_or_stored(output)
    sample = wanted.sample
    for table in [*inputs, *([] if sample is None else [sample])]:
        places.check_input(table)
    places.check_output(rejected)
    places.check_apart(*inputs, output, rejected)
    if sample is not None:
        places.check_apart(sample, output, rejected)
    places.check_snapshot_place(output)
    check_schema(wanted.schema)
    if sharding is not None and sharding.count:
        check_count(sharding.count)


def check_schema(schema: str | None) -> None:
    """Refuse a schema that cannot be read."""
    if schema is not None:
        try:
            read_schema(schema)
        except EventError as error:
            raise TableError(f"schema: {error}") from None


def check_match(
    snapshot: str,
    events: str,
    output: str,
    *,
    rejected: str,
    content_type: str | None = None,
    tuples: str | None = None,
    stats: str | None = None,
    question: Question = ALL,
) -> None:
    """Refuse what cannot be done before any work: used before Spark starts, too."""
    check_events_for(snapshot, events, content_type)
    if places.check_output(output) is places.Format.CSV and question.lists:
        name = question.lists[0]
        raise TableError(
            f"{output} is CSV, which has no lists, and {name} are lists: let it end in .parquet or .jsonl, "
            f"or leave out --{name}"
        )
    places.check_output(rejected)
    if tuples is not None:
        check_tuples(snapshot)
        places.check_output(tuples)
    places.check_apart(snapshot, events, output, rejected, tuples, stats)
    if stats is not None:
        places.check_here(stats)
        check_statistics(places.local(stats))


def check_events_for(snapshot: str, events: str, content_type: str | None) -> None:
    """Refuse events that are not there, or that a snapshot's filters do not look at."""
    kind = kind_at(located(snapshot))
    if kind.documents:
        check_events(events, kind, content_type)
    elif content_type is not None:
        raise TableError(
            f"snapshot {snapshot} has filters of {kind.title}, and their events have no content type: leave "
            "out --format"
        )
    else:
        places.check_input(events)


def check_tuples(snapshot: str) -> None:
    """Refuse a snapshot whose filters return nothing, or not by themselves."""
    room = room_of(located(snapshot))
    alone = is_content(room) or room == FILTER_SHARDS
    if not alone or not kind_at(located(snapshot)).gives("tuples"):
        raise TableError(
            f"snapshot {snapshot} is a snapshot of {room!r}, and tuples are of XML patterns without graph "
            "and ranks: compile the subscriptions alone, or leave out --tuples"
        )


def check_plan(
    snapshot: str,
    sample: str,
    output: str,
    *,
    rejected: str,
    sites: str | None = None,
    links: str | None = None,
    content_type: str | None = None,
    carries: str | None = None,
) -> None:
    """Refuse what cannot be done before any work: used before Spark starts, too."""
    places.check_here(output)
    content_at(located(snapshot))
    from headgate.engine.views import check_views

    check_views(located(snapshot), carries=carries)
    check_events_for(snapshot, sample, content_type)
    for table in (sites, links):
        if table is not None:
            places.check_input(table)
    places.check_output(rejected)
    places.check_apart(snapshot, sample, sites, links, output, rejected)
    check_place(places.local(output))


def check_backtest(
    events: str, output: str | None, content: str, content_type: str | None
) -> places.Format | None:
    """Refuse what cannot be done before any work: used before Spark starts, too."""
    kind = kind_of(content)
    form = check_events(events, kind, content_type) if kind.documents else places.check_input(events)
    if output is not None:
        places.check_output(output)
    places.check_apart(events, output)
    return form


def read_taxonomy(paths: Sequence[str]) -> Taxonomy | None:
    """Read the files of a taxonomy; none if there are none."""
    if not paths:
        return None
    files = [(path, *_content(path)) for path in paths]
    # Not before all files are there: parsers take long to load.
    from headgate.rdf.events.reading import Reader
    from headgate.rdf.events.screening import Limits
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    # A taxonomy is our own, and may be large; it is read in this process.
    limits = Limits(size=1 << 30, triples=20_000_000, terms=1 << 30, seconds=600, memory=8 << 30)
    reader = Reader(isolated=False, limits=limits)
    statements = []
    for path, kind, data in files:
        try:
            statements += reader.read(data, kind).statements()
        except EventError as error:
            raise TableError(f"{path}: {error}") from None
    return Taxonomy.of(statements)


def check_taxonomy(paths: Sequence[str]) -> None:
    """Refuse files that are not there, or whose names say no format."""
    for path in paths:
        _kind(path)
        if not Path(path).is_file():
            _content(path)


def _content(path: str) -> tuple[str, bytes]:
    """Return the content type of a file, and what it holds."""
    kind = _kind(path)
    try:
        return kind, Path(path).read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None


def _kind(path: str) -> str:
    kind = type_of_file(path, KIND)
    if kind is None:
        raise TableError(f"the format of {path} is not clear: name it with one of {', '.join(KIND.suffixes)}")
    return kind


@dataclass(frozen=True)
class WhatIfRequest:
    """What is asked: of which changes, against what, over which events."""

    changes: str
    snapshot: str
    events: str
    top: Top | None = None
    content_type: str | None = None
    noise: float = WhatIf.noise
    cost: bool = True

    def check(self, *outputs: str | None) -> None:
        """Refuse what cannot be done before any work: used before Spark starts, too."""
        places.check_input(self.changes)
        check_trial(self.snapshot, self.top, self.noise)
        check_events_for(self.snapshot, self.events, self.content_type)
        for output in outputs:
            if output is not None:
                places.check_output(output)
        places.check_apart(self.changes, self.snapshot, self.events, *outputs)


def check_trial(snapshot: str, top: Top | None, noise: float) -> None:
    """Refuse a snapshot on which changes cannot be tried, or not with ranks."""
    path = located(snapshot)
    content_at(path)
    room = room_of(path)
    if not 0 <= noise <= 1:
        raise TableError(f"noise {noise} is not a share of the events: give one from 0 to 1")
    if top is not None:
        check_ranks(path, room, top)
    if room == GRAPH_SHARDS or (top is not None and room in {RANKING_SHARDS, FILTER_SHARDS}):
        raise SnapshotError(
            f"snapshot {snapshot} is cut into shards, and {_WHOLE}: compile it in one piece for this"
        )


_WHOLE = "who is reached through a graph, or among the best, is known of the whole only"
