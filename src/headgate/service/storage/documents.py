"""Where a site's log has the results of a document first: it is asked for all after a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from headgate.service.storage.database import Database
    from headgate.service.storage.log import Write

_TABLE = "CREATE TABLE IF NOT EXISTS documents (document INTEGER PRIMARY KEY, cursor INTEGER NOT NULL)"

_FORGOTTEN = "forgotten"


def begin() -> Write:
    """Make the table, in the file of a tenant that is a site's."""

    def write(writer: apsw.Connection) -> None:
        writer.execute(_TABLE)

    return write


def note(documents: Sequence[int], positions: Sequence[int | None]) -> Write:
    """Note where each document is first; later results of it change nothing."""
    firsts: dict[int, int] = {}
    for document, position in zip(documents, positions, strict=False):
        if position is not None:
            firsts.setdefault(document, position)

    def write(writer: apsw.Connection) -> None:
        writer.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?)", firsts.items())

    return write


def forget(before: int) -> Write:
    """Forget documents whose first results are before a position, and note the last of them."""

    def write(writer: apsw.Connection) -> None:
        (last,) = next(
            iter(writer.execute("SELECT max(document) FROM documents WHERE cursor < ?", (before,)))
        )
        if last is not None:
            writer.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_FORGOTTEN, last))
            writer.execute("DELETE FROM documents WHERE cursor < ?", (before,))

    return write


def forgotten(database: Database) -> int:
    """Return the last document of which results are not kept any more; 0 if all are."""
    found = database.row("SELECT value FROM meta WHERE name = ?", _FORGOTTEN)
    return 0 if found is None else int(found[0])


def first_after(database: Database, document: int) -> int | None:
    """Return the first position of a result of any document after one; None if there is none."""
    found = database.row("SELECT min(cursor) FROM documents WHERE document > ?", document)
    return None if found is None else found[0]
