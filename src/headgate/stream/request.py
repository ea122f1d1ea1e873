"""What is asked of a stream, checked before any work: before Spark, or anything large, is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.brokers.nats.settings import shown
from headgate.contents.registry import kind_at
from headgate.core.versions.stores import located
from headgate.errors import TableError
from headgate.runtime.questions import STAGED, check_changes, check_snapshot
from headgate.runtime.statistics import check_statistics
from headgate.stream.settings import ARCHIVE, JSONL, PARQUET, is_broker
from headgate.stream.sources.registry import sources_of
from headgate.tables.places import check_apart, check_here, check_links, is_remote, local
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from headgate.stream.settings import StreamSettings


def check_request(settings: StreamSettings) -> None:
    """Refuse what cannot be done before any work: used before Spark starts, too."""
    settings.check()
    check_snapshot(settings.snapshot, settings.question.top)
    kind = kind_at(located(settings.snapshot))
    if kind.documents:
        check_type(settings.content_type, kind)
    elif settings.content_type is not None:
        raise TableError(
            f"snapshot {settings.snapshot} has filters of {kind.title}, and their events have no content "
            "type: leave it out"
        )
    for source in sources_of(settings):
        source.check(settings)
    if not is_broker(settings.events):
        check_source(settings)
    if settings.changes is not None and not is_broker(settings.changes):
        check_changes(settings.changes)
    places = [settings.dead, settings.rejected]
    if not is_broker(settings.output):
        places.append(settings.output)
    for folder in (*places, settings.state):
        if is_remote(folder):
            raise TableError(
                f"{shown(folder)}: a stream writes to a folder that all machines see; name one, or a broker"
            )
    for folder in places:
        check_folder(folder, settings.format)
    if settings.report is not None and not Path(settings.report).absolute().parent.is_dir():
        raise TableError(
            f"{settings.report} lies in no folder: make it, or choose another place for the page"
        )
    if settings.stats is not None:
        check_here(settings.stats)
        check_statistics(local(settings.stats))
    if Path(settings.state).exists() and not Path(settings.state).is_dir():
        raise TableError(f"{settings.state} is a file, and the state of a stream is a directory")
    apart = [settings.snapshot, settings.state, *places, settings.events, settings.changes]
    apart += [settings.report, settings.stats]
    check_apart(*(each for each in apart if each is None or not is_broker(each)))
    for source in sources_of(settings):
        source.ask(settings)


def check_folder(path: str, form: str) -> None:
    """Refuse a folder that holds something else than what streams write, before any work."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise TableError(f"{path} is a file, and a stream writes to a folder: choose another place")
    if folder.is_dir():
        other = JSONL if form == PARQUET else PARQUET
        for file in folder.iterdir():
            if file.name != STAGED and not file.name.startswith(("batch-", "columns.", ".")):
                raise TableError(f"{path} has {file.name}, which no stream wrote: choose another folder")
            if file.name.startswith("batch-") and file.suffix == f".{other}":
                raise TableError(f"{path} has files of another format ({file.name}): choose another folder")


def check_source(settings: StreamSettings) -> None:
    """Refuse a folder that files cannot be taken from."""
    if is_remote(settings.events):
        raise TableError(
            f"{settings.events}: a stream takes files from a folder that all machines see: name one, "
            "or a broker"
        )
    if not local(settings.events).is_dir():
        raise TableError(f"{settings.events} is not a folder: make it, and move files of events into it")
    check_links(settings.events, folders=True)
    kept = settings.finished.removeprefix(ARCHIVE)
    if kept != settings.finished:
        inside = Path(kept).absolute().is_relative_to(local(settings.events).absolute())
        if not kept or inside:
            raise TableError(f"finished is {settings.finished!r}: name a folder outside of {settings.events}")
