"""What a surface is: whatever answers questions about events, be it the library, the batch job or the stream.

A new surface joins by one class, in `SURFACES` of `test_contract.py`. It is asked for refused rows, for
matches, and for explanations; what it is meant to do otherwise than others, it says by its attributes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.contract.world import line, loud

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.event import Id
    from headgate.runtime.sharding import Sharding
    from tests.contract.jobs import Snapshots
    from tests.contract.refusals import Bad
    from tests.contract.world import Question, World
    from tests.spark.files import Row

Match = tuple[Any, ...]
"""An event and a subscription; of the best, with score and rank."""
Refusal = tuple[str, str]
"""The id of a row, as text, and the reason."""


class Told(NamedTuple):
    """An explanation: the verdict, and the lines for people."""

    matches: bool
    lines: list[str]

    def without_index(self) -> Told:
        """Return it without what the index does for a filter of records."""
        said = ("indexed by ", "indexed only in part, ", "verified: ", "computed once an event: ")
        return Told(self.matches, [line for line in self.lines if not line.startswith(said)])


class Shape(NamedTuple):
    """Where snapshots are, how they are cut, and what tables are written in."""

    snapshots: Snapshots
    sharding: Sharding
    form: str
    """That of events."""
    out: str
    """That of matches."""


class Surface(ABC):
    """Whatever can be asked. A surface is of one world, and keeps what it compiled."""

    name: str = ""
    spark: bool = False
    """Whether it needs Spark."""
    objects: bool = False
    """Whether it refuses in the words of the library's objects; else in those of rows of tables."""
    text_ids: bool = False
    """Whether events are named by text, whatever their ids are."""
    once: bool = False
    """Whether an id that came before is refused."""
    changes: bool = False
    """Whether it can be asked about the changed subscriptions."""
    columns: bool = False
    """Whether events come in columns of one type each: not every bad row can."""

    def __init__(self, world: World, shape: Shape) -> None:
        del shape
        self.world = world

    @abstractmethod
    def compile(self) -> Counter[Refusal]:
        """Take the subscriptions and the graph of the world; lists the rows that are refused."""

    @abstractmethod
    def match(self, question: Question) -> Counter[Match]:
        """Answer a question about all events."""

    @abstractmethod
    def refused(self) -> Counter[Refusal]:
        """List the events that the last question was not about, because they are refused."""

    def refused_changes(self) -> Counter[Refusal]:
        """List the changes that were refused when the last question was about the changed subscriptions."""
        return Counter()

    @abstractmethod
    def explain(self, event: Row, subscription: Id) -> Told:
        """Say why a subscription gets an event or not, as of the last question."""


def event_lines(world: World, *, columns: bool = False) -> list[str]:
    """List the events as they are sent: bad ones among the others, repeated ones last."""
    good = [line(loud(row) if number % 2 > columns else row) for number, row in enumerate(world.events)]
    bad = [each.line for each in world.bad_events if each.columns or not columns]
    odd = [] if columns else [line(row) for row in world.odd]
    return [*good[:5], *bad, *odd, *good[5:], *map(line, world.repeated)]


def table_lines(rows: Iterable[Row], bad: Iterable[Bad]) -> str:
    return "".join(f"{each}\n" for each in (*map(line, rows), *(each.line for each in bad)))
