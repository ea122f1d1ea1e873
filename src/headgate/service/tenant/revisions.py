"""Revisions: numbers that rise with each change of a tenant's subscriptions and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.service.storage.store import keep

if TYPE_CHECKING:
    from headgate.service.storage.log import Write
    from headgate.service.storage.store import Store

_SETTING = "revision"


class Revisions:
    """The last revision that was given; by the matcher's thread only."""

    def __init__(self, store: Store) -> None:
        self._last: int = int(store.setting(_SETTING) or 0)  # type: ignore[call-overload]

    def next(self) -> int:
        """Give another one."""
        self._last += 1
        return self._last

    def kept(self) -> Write:
        """Return what must be written, so that none is given again."""
        return keep(_SETTING, self._last)
