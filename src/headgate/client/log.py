"""Where the log of events that a service keeps is, and how it is read: `http://host:8080?setting=value`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headgate.client.asking import address_of
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping

FAIL, GO_ON = "fail", "go-on"
FIRST, NEW = "first", "new"
BEYOND = 1 << 62
"""A position that no event has."""


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
        if self.start not in {FIRST, NEW} and not (self.start.isdecimal() and 0 < int(self.start) < BEYOND):
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
