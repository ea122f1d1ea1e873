"""What a stream may be told; every setting has a row in docs/streaming.md. Addresses of Kafka."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from headgate.errors import TableError
from headgate.runtime.questions import EXACT, MODES, RELAXED, Top

if TYPE_CHECKING:
    from collections.abc import Mapping


NATS, KAFKA = "nats://", "kafka://"
PARQUET, JSONL = FORMATS = ("parquet", "jsonl")
KEEP, DELETE, ARCHIVE = "keep", "delete", "archive:"
"""What becomes of a file of events whose batch is committed."""


@dataclass(frozen=True)
class StreamSettings:
    """Where events come from, what they are matched against, where matches go, and how."""

    snapshot: str
    """The directory that `compile` wrote; when it is replaced, the next batch uses the new one."""
    events: str
    """A folder to which files of events are moved, `nats://…` or `kafka://…`."""
    output: str
    """A folder for matches, `nats://…` or `kafka://…`."""
    state: str
    """A directory for what the stream must remember; it belongs to one stream."""
    changes: str | None = None
    """A folder to which files of changed subscriptions are moved, or `nats://…`."""
    dead_letters: str | None = None
    """A folder for events that were not matched, with reasons; by default OUTPUT-dead-letters."""
    rejected_changes: str | None = None
    """A folder for changes that were refused, with reasons; by default OUTPUT-rejected-changes."""
    format: str = PARQUET
    """The format of matches and dead letters in folders: parquet or jsonl."""
    content_type: str | None = None
    """The format of documents that name none, such as turtle or xml."""
    top: int | None = None
    """Only the best so many of each event, with score and rank."""
    mode: str = EXACT
    """How the best are found: exact or relaxed."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """Relaxed: what the weights of attributes are multiplied by."""
    every: float = 0.5
    """Seconds from the start of one batch to the start of the next, at least."""
    once: bool = False
    """Match what is there, then end."""
    seconds: float | None = None
    """End after so many seconds."""
    max_files: int | None = None
    """Files of one batch, at most."""
    max_bytes: int | None = None
    """Bytes of the files of one batch, about."""
    max_rows: int | None = None
    """Messages of a broker in one batch, at most."""
    finished: str = KEEP
    """What becomes of files whose batch is committed: keep, delete, or archive:FOLDER."""
    time: str = "time"
    """The attribute that holds the time of a record, as text like 2026-05-10T09:30:00Z."""
    lateness: float | None = None
    """Seconds by which an event may be older than the newest that was committed; by default any."""
    window: float | None = 600.0
    """Seconds for which an id is remembered: the same id again is a duplicate. Nothing: never."""
    fold: int = 10_000
    """Changes after which they are folded into a new snapshot, aside."""
    keep: int = 1000
    """Batches whose records stay in the state."""
    progress: float = 5.0
    """Seconds between lines of progress."""
    metrics: str | None = None
    """A file for metrics, as Prometheus reads them."""
    metrics_port: int | None = None
    """A port on this machine where Prometheus can read them."""
    report: str | None = None
    """A page about the run, written when it ends: a file whose name ends in .html."""
    options: Mapping[str, str] = field(default_factory=dict)
    """More for a broker, by its own names, such as kafka.security.protocol."""

    @property
    def best(self) -> Top | None:
        """Return what is asked for, if not all matches are."""
        return None if self.top is None else Top.of(self.top, self.mode, dict(self.factors) or None)

    @property
    def dead(self) -> str:
        """Return where dead letters go."""
        return self.dead_letters or _beside(self.output, self.state, "dead-letters")

    @property
    def rejected(self) -> str:
        """Return where refused changes go."""
        return self.rejected_changes or _beside(self.output, self.state, "rejected-changes")

    def check(self) -> None:
        """Refuse values that make no sense, before any work."""
        for name in ("every", "seconds", "lateness", "window", "progress"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise TableError(f"{name} is {value:g}: give seconds, 0 or more")
        for name in ("max_files", "max_bytes", "max_rows", "fold", "keep"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise TableError(f"{name} is {value}: give a whole number, 1 or more")
        if self.format not in FORMATS:
            raise TableError(f"format {self.format!r} is not known: use {' or '.join(map(repr, FORMATS))}")
        if self.report is not None and not self.report.endswith(".html"):
            raise TableError(f"{self.report} names no page: let it end in .html")
        if self.mode not in MODES:
            raise TableError(f"there is no mode {self.mode!r}: use {' or '.join(map(repr, MODES))}")
        if self.top is None and (self.mode != EXACT or self.factors):
            raise TableError("mode and factors say which are best: say with top how many are wanted")
        if self.factors and self.mode != RELAXED:
            raise TableError("factors weigh clauses that hold, and exact matching weighs none: use relaxed")
        if self.finished not in {KEEP, DELETE} and not self.finished.removeprefix(ARCHIVE) != self.finished:
            raise TableError(f"finished is {self.finished!r}: use 'keep', 'delete' or 'archive:FOLDER'")
        broker = is_broker(self.events)
        if self.max_rows is not None and not broker:
            raise TableError("max_rows counts messages of a broker: limit files by max_files or max_bytes")
        if broker and (self.max_files or self.max_bytes or self.finished != KEEP):
            raise TableError("max_files, max_bytes and finished are for files: limit a broker by max_rows")


def is_broker(place: str) -> bool:
    """Tell a broker from a folder."""
    return place.startswith((NATS, KAFKA))


def _beside(output: str, state: str, word: str) -> str:
    """Name a folder after the output; that of a broker is in the state."""
    return f"{state.rstrip('/')}/{word}" if is_broker(output) else f"{output.rstrip('/')}-{word}"


NATS_OPTIONS = "nats."


class Topic(NamedTuple):
    """What an address names."""

    servers: str
    name: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, address: str, shared: Mapping[str, str]) -> Topic:
        """Read an address; its own options go before those that are shared.

        >>> Topic.of("kafka://a:9092,b:9092/events?startingOffsets=latest", {})
        Topic(servers='a:9092,b:9092', name='events', options={'startingOffsets': 'latest'})
        """
        place, _, query = address.removeprefix(KAFKA).partition("?")
        servers, _, name = place.partition("/")
        if "@" in servers:
            raise TableError(
                "a Kafka address has no user: set kafka.security.protocol, kafka.sasl.mechanism and "
                "kafka.sasl.jaas.config as options"
            )
        if not servers or not name:
            raise TableError("a Kafka address is kafka://host:9092/topic, with options after a ?")
        options = {key: value for key, value in shared.items() if not key.startswith(NATS_OPTIONS)}
        for part in filter(None, query.split("&")):
            key, equals, value = part.partition("=")
            if not equals:
                raise TableError(
                    f"options of a Kafka address are name=value, joined by &: {key!r} has no value"
                )
            options[key] = unquote(value)
        return cls(servers, unquote(name), options)


def check(settings: StreamSettings) -> None:
    """Refuse addresses that cannot be right, before Spark starts."""
    for address in (settings.events, settings.output):
        if address.startswith(KAFKA):
            Topic.of(address, settings.options)
    if (settings.changes or "").startswith(KAFKA):
        raise TableError("changes of subscriptions come from a folder or from nats://, not from Kafka")
