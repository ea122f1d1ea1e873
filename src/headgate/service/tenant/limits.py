"""Limits of subscriptions: so many events in a period; the rest is held back, counted, told in a digest.

A period begins with the first event after the last one ended. What was sent and held back in it is written
together with the events, so that a limit holds across restarts.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.event import JSON
from headgate.service.envelope import write_envelope
from headgate.service.resources import moment_of
from headgate.service.storage.database import many, one
from headgate.service.tenant.matcher import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headgate.service.resources import Limit
    from headgate.service.storage.log import Write


DIGEST = "headgate.digest"
SOURCE = "/headgate"


@dataclass
class _Period:
    limit: Limit
    began: int = 0
    sent: int = 0
    held: int = 0
    """In this period."""
    held_in_all: int = 0

    @property
    def end(self) -> int:
        """Return when it ends, in microseconds."""
        return self.began + int(self.limit.period * 1e6)


class Digest(NamedTuple):
    """What a subscription is told of what was held back."""

    subscription: int
    began: int
    ended: int
    held: int


class Limits:
    """The limits of a tenant's subscriptions, by number. They belong to the matcher's thread."""

    def __init__(self) -> None:
        self._periods: dict[int, _Period] = {}
        self._ended: list[Digest] = []

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._periods)

    def set(self, number: int, limit: Limit | None) -> list[Write]:
        """Have a limit for a subscription, or none; what was held back so far stays counted."""
        before = self._periods.pop(number, None)
        if limit is None:
            return [] if before is None else [one("DELETE FROM limits WHERE subscription = ?", number)]
        self._periods[number] = _Period(limit, held_in_all=0 if before is None else before.held_in_all)
        return [self._write({number})]

    def read(self, number: int, limit: Limit, began: int, sent: int, held: int, total: int) -> None:
        """Have a limit as it was stored."""
        self._periods[number] = _Period(limit, began, sent, held, total)

    def held(self, number: int) -> int:
        """Count what was held back of a subscription since it has its limit."""
        period = self._periods.get(number)
        return 0 if period is None else period.held_in_all

    def hold(self, now: int, matches: list[list[int]]) -> tuple[list[list[int]] | None, list[Write]]:
        """Take what is held back out of matches; returns that, or None, and what must be written."""
        periods, touched = self._periods, dict[int, None]()
        held: list[list[int]] | None = None
        for row, numbers in enumerate(matches):
            for number in [each for each in numbers if each in periods]:
                period = periods[number]
                touched[number] = None
                if now >= period.end:
                    self._end(number, period, now)
                if period.sent < period.limit.events:
                    period.sent += 1
                    continue
                period.held += 1
                period.held_in_all += 1
                numbers.remove(number)
                held = held or [[] for _ in matches]
                held[row].append(number)
        return held, [self._write(touched)] if touched else []

    def due(self, now: int) -> tuple[list[Digest], list[Write]]:
        """List the digests of periods that ended, and begin these anew; returns what must be written, too."""
        for number, period in self._periods.items():
            if period.limit.digest and period.held and now >= period.end:
                self._end(number, period, now)
        digests = [each for each in self._ended if each.subscription in self._periods]
        self._ended = []
        return digests, [self._write({each.subscription for each in digests})] if digests else []

    @property
    def digests(self) -> bool:
        """Tell whether a digest may become due."""
        return bool(self._ended) or any(
            each.limit.digest and each.held for each in list(self._periods.values())
        )

    def _end(self, number: int, period: _Period, now: int) -> None:
        if period.limit.digest and period.held:
            self._ended.append(Digest(number, period.began, period.end, period.held))
        period.began, period.sent, period.held = now, 0, 0

    def _write(self, touched: Iterable[int]) -> Write:
        rows = [
            (number, period.began, period.sent, period.held, period.held_in_all)
            for number, period in ((each, self._periods[each]) for each in touched)
        ]
        return many("INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?, ?)", rows)


def digests_of(due: Iterable[Digest], ids_of: Callable[[Iterable[int]], list[str]]) -> list[Told]:
    """Make the events that tell subscriptions of what was held back from them."""
    events = []
    for digest in due:
        names = ids_of([digest.subscription])
        if not names:
            continue
        identity = str(uuid.uuid4())
        began, ended = _text_of(digest.began), _text_of(digest.ended)
        data = {"subscription": names[0], "held": digest.held, "from": began, "to": ended}
        about = {"time": _text_of(time.time_ns() // 1_000), "subject": names[0], "datacontenttype": JSON}
        text = write_envelope(identity, SOURCE, DIGEST, data, **about)
        events.append(Told(identity, text, [digest.subscription]))
    return events


def _text_of(micros: int) -> str:
    return moment_of(micros).isoformat().replace("+00:00", "Z")
