"""Events that are kept, matched by two indexes: what subscriptions match before and after, and which events.

log -> some events at a time -> both indexes -> a tally for each subscription
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from headgate.errors import EventError
from headgate.service.envelope import stored_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.core.event import Event, Id
    from headgate.service.storage.log import Block, Log

    Answer = Sequence[Id] | EventError
    Ask = Callable[[Sequence[Event]], Sequence[Answer]]

_Some = TypeVar("_Some")
SAMPLE = 5
"""Events that are shown of those that a subscription matches, gains, and loses."""
_TOGETHER = 200
"""Events between which it is seen whether to go on."""


class SampleMatch(msgspec.Struct, kw_only=True):
    """An event that would have matched."""

    cursor: int
    id: str


@dataclass
class Tally:
    """What one subscription matches."""

    before: int = 0
    after: int = 0
    gained: int = 0
    lost: int = 0
    higher: int = 0
    """Events for which it is further up than before, where answers have an order."""
    lower: int = 0
    sample: list[SampleMatch] = field(default_factory=list)
    """Of events that it matches after."""
    sample_gained: list[int] = field(default_factory=list)
    """Cursors."""
    sample_lost: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class Comparison:
    """Events from a cursor to another, compared one after the other."""

    first: int
    end: int
    most: int
    """How many events, at most."""
    patience: float
    """Seconds."""
    ranked: bool = False
    """Whether answers have an order."""
    events: int = 0
    refused_events: int = 0
    """Those that one of the indexes refuses: they count as matching nothing there."""
    late: bool = False
    """Whether the time was over before all were compared."""
    seconds_of_events: float = 0.0
    """From the first to the last, by when they were committed."""
    tallies: dict[str, Tally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin before the first event."""
        self.last = self.first - 1
        """The cursor of the last event that was compared."""

    @property
    def total(self) -> int:
        """Return how many events there are to compare."""
        return max(0, min(self.most, self.end - self.first + 1))

    def tally(self, identity: Id) -> Tally:
        """Return what is known of a subscription."""
        return self.tallies.setdefault(str(identity), Tally())

    def run(self, log: Log, before: Ask, after: Ask, stopped: Callable[[], bool] = lambda: False) -> None:
        """Compare, until all is done, the time is over, or somebody stops it."""
        began, first_time = time.monotonic(), 0
        for block in log.read(self.first, self.most) if self.end >= self.first else ():
            first_time = first_time or block.time
            self.seconds_of_events = (block.time - first_time) / 1e6
            for cursor, events in self._parts(block):
                if stopped():
                    return
                if time.monotonic() - began > self.patience:
                    self.late = True
                    return
                self._compare(cursor, zip(events, before(events), after(events), strict=True))
                self.events += len(events)
                self.last = cursor + len(events) - 1

    def _parts(self, block: Block) -> Iterator[tuple[int, Sequence[Event]]]:
        """Cut what is wanted of a block into parts, each with the position of its first event."""
        begin = max(0, self.first - block.first)
        end = min(len(block), self.end - block.first + 1, begin + self.most - self.events)
        for row in range(begin, end, _TOGETHER):
            yield block.first + row, stored_events(block.texts[row : min(row + _TOGETHER, end)])

    def _compare(self, cursor: int, answers: Iterable[tuple[Event, Answer, Answer]]) -> None:
        for here, (event, *both) in enumerate(answers, cursor):
            self.refused_events += any(isinstance(each, EventError) for each in both)
            old, new = ([] if isinstance(each, EventError) else each for each in both)
            places = {each: rank for rank, each in enumerate(old)}
            for rank, identity in enumerate(new):
                tally = self.tally(identity)
                tally.after += 1
                _show(tally.sample, SampleMatch(cursor=here, id=str(event.id)))
                if identity not in places:
                    tally.gained += 1
                    _show(tally.sample_gained, here)
                elif self.ranked:
                    tally.higher += rank < places[identity]
                    tally.lower += rank > places[identity]
            kept = {*new}
            for identity in old:
                tally = self.tally(identity)
                tally.before += 1
                if identity not in kept:
                    tally.lost += 1
                    _show(tally.sample_lost, here)


def _show(sample: list[_Some], one: _Some) -> None:
    if len(sample) < SAMPLE:
        sample.append(one)
