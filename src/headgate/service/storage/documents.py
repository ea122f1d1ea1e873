"""Where a site's log has the results of a document first: it is asked for all after a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.service.storage.database import many, one, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.service.storage.database import Database
    from headgate.service.storage.log import Write

_TABLE = "CREATE TABLE IF NOT EXISTS documents (document INTEGER PRIMARY KEY, cursor INTEGER NOT NULL)"

_FORGOTTEN = "forgotten"


def begin() -> Write:
    """Make the table, in the file of a tenant that is a site's."""
    return one(_TABLE)


def note(documents: Sequence[int], positions: Sequence[int | None]) -> Write:
    """Note where each document is first; later results of it change nothing."""
    firsts: dict[int, int] = {}
    for document, position in zip(documents, positions, strict=False):
        if position is not None:
            firsts.setdefault(document, position)
    return many("INSERT OR IGNORE INTO documents VALUES (?, ?)", list(firsts.items()))


def forget(before: int) -> Write:
    """Forget documents whose first results are before a position, and note the last of them."""
    # Without any, there is no row to note.
    noting = (
        "INSERT OR REPLACE INTO meta SELECT ?, document FROM documents "
        "WHERE cursor < ? ORDER BY document DESC LIMIT 1"
    )
    return together(one(noting, _FORGOTTEN, before), one("DELETE FROM documents WHERE cursor < ?", before))


def forgotten(database: Database) -> int:
    """Return the last document of which results are not kept any more; 0 if all are."""
    return database.setting(_FORGOTTEN) or 0


def first_after(database: Database, document: int) -> int | None:
    """Return the first position of a result of any document after one; None if there is none."""
    first: int | None = database.value("SELECT min(cursor) FROM documents WHERE document > ?", document)
    return first
