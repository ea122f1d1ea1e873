"""Who gets what, in which order: the plain answer that feeds and the log are tested against.

An event is for a consumer if one of the subscriptions that it matched belongs to that consumer when it is
read. A
consumer gets its events in the order of their positions, those after its cursor, as long as they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Model:
    """The events of a tenant, its subscriptions and its consumers."""

    events: list[tuple[int, bytes, list[str]]] = field(default_factory=list)
    """Position, text, and the subscriptions that matched, in order."""
    owners: dict[str, str] = field(default_factory=dict)
    """The consumer of each subscription."""
    cursors: dict[str, int] = field(default_factory=dict)

    def deliveries(self, consumer: str, after: int) -> list[tuple[int, bytes, list[str]]]:
        """List what a consumer gets after a position: position, text, and its subscriptions that matched.

        >>> model = Model([(1, b"a", ["s", "t"]), (2, b"b", ["t"])], {"s": "c", "t": "d"})
        >>> model.deliveries("c", 0), model.deliveries("d", 1)
        ([(1, b'a', ['s'])], [(2, b'b', ['t'])])
        """
        found = []
        for position, text, matched in self.events:
            mine = [each for each in matched if self.owners.get(each) == consumer]
            if position > after and mine:
                found.append((position, text, mine))
        return found

    def acknowledge(self, consumer: str, cursor: int) -> None:
        """Have a consumer's cursor at a position; never before where it is."""
        self.cursors[consumer] = max(self.cursors.get(consumer, 0), cursor)

    def replay(self, consumer: str, cursor: int) -> None:
        """Have a consumer go on after a position."""
        self.cursors[consumer] = cursor

    def trim(self, before: int) -> dict[str, int]:
        """Forget events before a position; returns how many of them each consumer had not acknowledged."""
        lost = {}
        for consumer, cursor in self.cursors.items():
            late = [each for each in self.deliveries(consumer, cursor) if each[0] < before]
            if late:
                lost[consumer] = len(late)
            self.cursors[consumer] = max(cursor, before - 1)
        self.events = [each for each in self.events if each[0] >= before]
        return lost
