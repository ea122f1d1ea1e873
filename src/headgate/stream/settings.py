"""What is asked of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.contents.settings import formats
from headgate.core.ranks import EXACT
from headgate.core.settings import Input, Output, Seconds, check_values, setting, settings_of
from headgate.errors import TableError
from headgate.stream.sources.registry import source_of
from headgate.tables.settings import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping


PARQUET, JSONL = FORMATS = ("parquet", "jsonl")
KEEP, DELETE, ARCHIVE = "keep", "delete", "archive:"
"""What becomes of a file of events whose batch is committed."""


@dataclass(frozen=True)
class StreamSettings(Asked):
    """Where events come from, what they are matched against, where matches go, and how."""

    snapshot: Input = setting(
        "the directory that `compile` wrote; when it is replaced, the next batch uses the new one",
        key="compile.snapshot",
        metavar="DIRECTORY",
    )
    events: Input = setting(
        "a folder to which files of events are moved whole, `nats://…`, `kafka://…`, or `http://…` of a "
        "[service](service.md#its-log-as-a-source)",
        metavar="PLACE",
    )
    output: Output = setting("a folder for matches, `nats://…` or `kafka://…`", metavar="PLACE")
    state: Output = setting(
        "a directory for what the stream must remember; it belongs to one stream",
        metavar="DIRECTORY",
        more="Run again with the same one, it goes on.",
    )
    changes: Input | None = setting(
        "a folder to which files of [changed subscriptions](files.md#changes) are moved, or `nats://…`",
        metavar="PLACE",
    )
    dead_letters: Output | None = setting(
        "a folder for events that were not matched, with reasons",
        metavar="FOLDER",
        shown="`OUTPUT-dead-letters`",
    )
    rejected_changes: Output | None = setting(
        "a folder for changes that were refused, with reasons",
        metavar="FOLDER",
        shown="`OUTPUT-rejected-changes`",
    )
    format: str = setting(
        "the format of files of matches and dead letters", PARQUET, option="--files", listed=FORMATS
    )
    content_type: str | None = setting(
        "RDF, XML: what documents are written in that do not say so", option="--format", listed=formats
    )
    every: Seconds = setting(
        "from the start of one batch to the start of the next, at least",
        0.5,
        least=0,
        more="A time is seconds, or such as 90s, 10m, 2h or 1d.",
    )
    once: bool = setting("match what is there, then end", False)
    seconds: Seconds | None = setting("end after so long", least=0)
    max_files: int | None = setting("files of one batch, at most", least=1)
    max_bytes: int | None = setting("bytes of the files of one batch, about", least=1)
    max_rows: int | None = setting("messages of a broker in one batch, at most", least=1)
    finished: str = setting(
        "what becomes of files whose batch is committed: `keep`, `delete` or `archive:FOLDER`",
        KEEP,
        metavar="WHAT",
    )
    time: str = setting(
        "the attribute that holds the time of a record, as text like 2026-05-10T09:30:00Z",
        "time",
        metavar="NAME",
    )
    lateness: Seconds | None = setting(
        "events that are older than the newest that was committed by more are late", least=0, shown="none is"
    )
    window: Seconds | None = setting(
        "how long an id is remembered: the same id again is a duplicate; 0 for never", 600.0, least=0
    )
    fold: int = setting("changes after which they are folded into a new snapshot, aside", 10_000, least=1)
    keep: int = setting("batches whose records stay in the state", 1000, least=1)
    progress: Seconds = setting("between lines of progress", 5.0, least=0)
    metrics: Output | None = setting("a file for metrics, as Prometheus reads them", metavar="FILE")
    metrics_port: int | None = setting(
        "a port on this machine where Prometheus can read them", metavar="PORT", least=0, most=65_535
    )
    report: Output | None = setting(
        "[a page about the run](observing.md#the-report-of-a-run) (`.html`), written when it ends",
        metavar="FILE",
    )
    stats: Output | None = setting(
        "a file to which [statistics of subscriptions](observing.md#statistics-of-subscriptions) are added",
        metavar="FILE",
        more="It is made if there is none, and added to every 30 s and at the end. With `--top` only the "
        "best count.",
    )
    options: Mapping[str, str] = setting(
        "more for a broker, by its own names, such as `kafka.security.protocol`", {}, option="--option"
    )

    def __post_init__(self) -> None:
        """Take no time at all for never."""
        if self.window == 0:
            object.__setattr__(self, "window", None)

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
        check_values(settings_of(StreamSettings), self)
        if self.report is not None and not self.report.endswith(".html"):
            raise TableError(f"{self.report} is not the name of a page: let it end in .html")
        more = (self.factors, self.by, self.decay, self.hops, self.top_column)
        ranked = self.mode not in {None, EXACT} or any(more)
        if self.question.top is None and ranked:
            raise TableError("mode, factors and such say which are best: say with top how many are wanted")
        if self.finished not in {KEEP, DELETE} and not self.finished.removeprefix(ARCHIVE) != self.finished:
            raise TableError(f"finished is {self.finished!r}: use 'keep', 'delete' or 'archive:FOLDER'")
        broker = is_broker(self.events)
        if self.max_rows is not None and not broker:
            raise TableError("max_rows counts messages of a broker: limit files by max_files or max_bytes")
        if broker and (self.max_files or self.max_bytes or self.finished != KEEP):
            raise TableError("max_files, max_bytes and finished are for files: limit a broker by max_rows")


def is_broker(place: str | None) -> bool:
    """Tell a broker or a service from a folder, or nothing."""
    return source_of(place) is not None


def _beside(output: str, state: str, word: str) -> str:
    """Name a folder after the output; that of a broker is in the state."""
    return f"{state.rstrip('/')}/{word}" if is_broker(output) else f"{output.rstrip('/')}-{word}"
