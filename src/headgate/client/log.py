"""The log of events that a service keeps, read by position: `http://host:8080?setting=value`.

Nothing is acknowledged, and no consumer is needed: whoever reads remembers its position. Positions rise and
are never given again within one log, so that what is between two of them can be read again and again, until
it is forgotten. A log that was made again, or restored from a backup, is another one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from headgate.client.asking import Retries, address_of
from headgate.client.client import Client
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from headgate.client.model import KeptEvent, KeptEvents

SCHEMES = ("http://", "https://")
FAIL, GO_ON = "fail", "go-on"
FIRST, NEW = "first", "new"
_PAGE = 1_000
"""Events of one request, at most."""
_END = 1 << 62
"""A position that no event has."""
_LOG = logging.getLogger(__name__)
_AGAIN = "start again with another state directory"


@dataclass(frozen=True)
class LogSettings:
    """Where a log is, and how it is read; all but the first and the key may stand behind the address."""

    address: str
    """Where the service is."""
    start: str = FIRST
    """Where a new reader begins: `first`, `new`, or the cursor of the first event that it reads."""
    max_rows: int = 50_000
    """How many positions a batch has at most."""
    partitions: int = 0
    """How many tasks share a batch; 0 is one a core of the driver's machine."""
    on_loss: str = FAIL
    """If events were forgotten that are still to be read: `fail`, or `go-on` without them."""
    key: str | None = field(default=None, repr=False)
    """The key of the service; without one it is that of `HEADGATE_KEY`. It is never shown."""

    @classmethod
    def of(
        cls, address: str, shared: Mapping[str, str] | None = None, **more: str | int | None
    ) -> LogSettings:
        """Read an address; what is given by name goes before what it says, and that before what is `shared`.

        >>> LogSettings.of("http://localhost:8080?start=new", {"max_rows": "10"})
        LogSettings(address='http://localhost:8080', start='new', max_rows=10, partitions=0, on_loss='fail')
        """
        place, _, query = address.partition("?")
        if "@" in address:
            # What stands before it may be a password, so nothing of it is shown.
            raise TableError(
                "the address of a service has no user, password or @: its key is in HEADGATE_KEY, or in the "
                "option service.key"
            )
        said = {**(shared or {}), **_query(query)}
        said |= {name: str(value) for name, value in more.items() if value is not None}
        return cls(address_of(place), **_typed(place, said))

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        if self.on_loss not in {FAIL, GO_ON}:
            raise TableError(f"{self.address}: on_loss is fail or go-on, not {self.on_loss!r}")
        if self.start not in {FIRST, NEW} and not (self.start.isdecimal() and 0 < int(self.start) < _END):
            raise TableError(f"{self.address}: start is first, new or a cursor, not {self.start!r}")
        for name, least in (("max_rows", 1), ("partitions", 0)):
            if getattr(self, name) < least:
                raise TableError(f"{self.address}: {name} is at least {least}, not {getattr(self, name)}")


def _query(text: str) -> dict[str, str]:
    said = {}
    for part in filter(None, text.split("&")):
        name, equals, value = part.partition("=")
        if name == "key":
            raise TableError(
                "the address of a service has no key: put it into HEADGATE_KEY, or the option service.key"
            )
        if not equals:
            raise TableError(
                f"settings of a service's address are name=value, joined by &: {name!r} has no value"
            )
        said[name] = unquote(value)
    return said


def _typed(place: str, said: Mapping[str, str]) -> dict[str, Any]:
    defaults = {each.name: each.default for each in fields(LogSettings)[1:]}
    found: dict[str, Any] = {}
    for name, text in said.items():
        if name not in defaults:
            known = ", ".join(each for each in defaults if each != "key")
            raise TableError(f"{place}: there is no setting {name!r} of a service: known are {known}")
        if isinstance(defaults[name], int):
            if not text.isdecimal():
                raise TableError(f"{place}: {name} is a whole number, not {text!r}")
            found[name] = int(text)
        else:
            found[name] = text
    return found


class LogState(NamedTuple):
    """What a log has now: all before `first` is forgotten, `last` is the last position."""

    first: int
    last: int
    log: str


class Position(NamedTuple):
    """How far a reader came: the last position that it read, in which log, and where it began."""

    after: int
    log: str
    began: int

    @classmethod
    def of(cls, noted: Mapping[str, Any], place: str) -> Position:
        """Read what was noted."""
        try:
            return cls(int(noted["after"]), str(noted["log"]), int(noted["began"]))
        except (KeyError, TypeError, ValueError):
            raise TableError(
                f"{place}: the state is of a stream that reads from another kind of source: name that one, "
                "or start with a new state and new outputs"
            ) from None

    def noted(self) -> dict[str, Any]:
        """Return what is noted of it."""
        return self._asdict()


class EventLog:
    """The log of a service."""

    def __init__(self, settings: LogSettings, *, patient: bool = True) -> None:
        self.settings = settings
        # About half a minute: a service that is started again is waited for.
        retries = Retries(attempts=10) if patient else Retries(attempts=1)
        self._client = Client(settings.address, key=settings.key, retries=retries)

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def state(self) -> LogState:
        """Ask what there is now."""
        found = self._client.kept(after=_END, limit=1)
        return LogState(found.first, found.last, found.log)

    def begin(self) -> Position:
        """Return where a new reader begins."""
        state, start = self.state(), self.settings.start
        after = {FIRST: state.first - 1, NEW: state.last}.get(start)
        if after is None:
            after = int(start) - 1
        return Position(after, state.log, after)

    def end(self, position: Position, state: LogState, most: int | None = None) -> Position:
        """Return how far the next batch goes; refuses to go on without what was forgotten."""
        self.check(position, state)
        # What is forgotten takes no room in a batch.
        begin = max(position.after, state.first - 1)
        last = state.last if most is None else min(state.last, begin + most)
        return position if last <= position.after else position._replace(after=last)

    def check(self, position: Position, state: LogState) -> None:
        """Refuse a log that no longer has what is to be read next."""
        place, after = self.settings.address, position.after
        if position.log != state.log:
            raise TableError(
                f"{place}: cursor {after} was read of another log: this one was made again or restored from "
                f"a backup, and its cursors mean other events; {_AGAIN}"
            )
        if after > state.last and after != position.began:
            raise TableError(
                f"{place}: the log ends at cursor {state.last}, and {after} was read already: {_AGAIN}"
            )
        if after + 1 < state.first:
            self._lost(after, state.first)

    def read(self, after: int, last: int, log: str) -> Iterator[list[KeptEvent]]:
        """Read the events after a position, up to another one that the log had."""
        while after < last:
            page: KeptEvents = self._client.kept(after=after, limit=min(_PAGE, last - after))
            self.check(Position(after, log, after), LogState(page.first, page.last, page.log))
            found = [each for each in page.items if each.cursor <= last]
            if found:
                yield found
            if page.next is None:
                return
            after = page.items[-1].cursor

    def _lost(self, after: int, first: int) -> None:
        told = (
            f"{self.settings.address}: the log begins at cursor {first}, and {after + 1} is the next to be "
            f"read: up to {first - after - 1:,} events were forgotten unread, by the service's retention"
        )
        if self.settings.on_loss == FAIL:
            raise TableError(f"{told}; on_loss=go-on goes on without them")
        _LOG.warning("%s", told)
