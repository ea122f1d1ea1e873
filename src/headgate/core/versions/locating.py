"""Where a snapshot lies: the directory on this machine that counts at a place, or at an address."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headgate.core.arguments import place_of
from headgate.core.versions.current import at_current, called, resolved
from headgate.core.versions.stores import Address, Store, is_stored, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from pathlib import Path

_Read = TypeVar("_Read")


class Located(NamedTuple):
    """A version, which does not change any more."""

    place: Path
    """Its directory on this machine."""
    name: str
    """What other machines find it by: a path that all see, or an address."""

    def name_of(self, inside: str) -> str:
        """Name something inside of it."""
        if not is_stored(self.name):
            return self.name + inside
        return str(Address.of(self.name)._replace(inside=inside.strip("/")))


def locate(given: str | PathLike[str]) -> Located:
    """Find the version that counts at a place, or at an address, from which it is fetched once a machine."""
    if not is_stored(given):
        place = resolved(place_of(given).absolute())
        return Located(place, str(place))
    from headgate.core.versions.cache import fetched

    address = Address.of(os.fspath(given))
    if address.name is None:
        address = address._replace(name=Store(address).current().name)
    return Located(fetched(address) / address.inside, str(address))


def located(given: str | PathLike[str]) -> Path:
    """Return the directory of the version that counts."""
    return locate(given).place if is_stored(given) else resolved(place_of(given))


def opened_at(given: str | PathLike[str], read: Callable[[Located], _Read]) -> _Read:
    """Open the version that counts at a place; another one, if that is removed before it is open."""
    if is_stored(given):
        return read(locate(given))
    return at_current(place_of(given).absolute(), lambda place: read(Located(place, str(place))))


def title_of(name: str) -> str:
    """Return what people call the snapshot of a version.

    >>> title_of("s3://key:secret@bucket/ads/000002-c3b8e0f2d94a6157"), title_of("ads")
    ('s3://bucket/ads', 'ads')
    """
    return shown(Address.of(name).base) if is_stored(name) else called(name)
