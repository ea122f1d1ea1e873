"""All that a tenant keeps: its file, the log in it, and the place of the index's snapshots.

store.db      events, subscriptions, consumers, the graph (`schema`)
index/        snapshots of the index, in versions
"""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import TYPE_CHECKING

from headgate.service.storage.audit import Answers, Audit
from headgate.service.storage.consumers import Consumers
from headgate.service.storage.database import Database, keep, telling
from headgate.service.storage.graph import Graph
from headgate.service.storage.log import Log
from headgate.service.storage.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.service.storage.log import Write

FILE = "store.db"
INDEX = "index"
_REBUILD, _IDENTITY = "rebuild", "log"


class Store:
    """What is kept of one tenant."""

    def __init__(self, place: Path, *, vfs: str | None = None, forced: bool = True) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self.database = Database(place / FILE, vfs=vfs, forced=forced)
        self.setting = self.database.setting
        self.log = Log(self.database)
        self.subscriptions = Subscriptions(self.database)
        self.consumers = Consumers(self.database)
        self.answers = Answers(self.database)
        self.graph = Graph(self.database)
        self.audit = Audit(self.database)
        if self.setting(_IDENTITY) is None:
            renew(self.database)
        self.identity = str(self.setting(_IDENTITY))
        """Which log this is; positions in another one, also in one that was restored, mean other events."""

    @property
    def index(self) -> Path:
        """Return where snapshots of the index are."""
        return self.place / INDEX

    def limits(self) -> list[tuple[int, int, int, int, int]]:
        """List subscriptions with limits: when the period began, what was sent and held, and held in all."""
        rows = self.database.rows("SELECT subscription, began, sent, held, held_in_all FROM limits")
        return [(number, began, sent, held, total) for number, began, sent, held, total in rows]

    @property
    def must_build(self) -> bool:
        """Tell whether the index must be built anew: its snapshot lacks what no change tells."""
        return bool(self.setting(_REBUILD))

    def close(self) -> None:
        """Close the file."""
        self.database.close()


def is_called(place: Path) -> bool:
    """Tell whether a tenant's directory has a consumer whose webhook is called, without opening all of it."""
    if not (place / FILE).exists():
        return False
    with closing(Database(place / FILE)) as database:
        return Consumers(database).any_called()


def renew(database: Database) -> None:
    """Make the log another one: events that come now get positions that others may have had."""
    with telling(database.path), database.writer as writer:
        keep(_IDENTITY, uuid.uuid4().hex)(writer)


def demand_build() -> Write:
    """Have the index built anew when it is opened, until a snapshot contains all."""
    return keep(_REBUILD, 1)


def built() -> Write:
    """Trust the snapshot of the index again."""
    return keep(_REBUILD, 0)
