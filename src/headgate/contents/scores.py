"""Scores that depend on the event, as content rooms hand them to the ranking: a form, and numbers for it.

    0.3 * price + 2        form  ? * price + ?        numbers 0.3, 2
    5 * price + 0.1        the same form              numbers 5, 0.1

What a form asks of an event, here `price`, are its *terms*. Each is computed once an event, by the room,
which knows the language; the form itself is arithmetic over doubles, done by the ranking for many
subscriptions at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from headgate.errors import FilterError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from headgate.core.arrays import Floats64
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Score

NUMBER, TERM, NEGATE = "number", "term", "negative"
OPERATIONS: Final = ("+", "-", "*", "/", "least", "greatest", NEGATE)
"""What a form can do; anything else is inside a term."""


class Step(NamedTuple):
    """A step of a form: take a number or a term, or apply an operation to what was taken last."""

    what: str
    place: int = 0
    """Which number, or which term."""


class Form(NamedTuple):
    """Steps in postfix order, the texts of the terms, and how many numbers there are."""

    steps: tuple[Step, ...]
    terms: tuple[str, ...]
    numbers: int


class Scoring(NamedTuple):
    """The score of one subscription."""

    form: Form
    numbers: tuple[float, ...]


class TermReader(Protocol):
    """What computes terms for events; NaN where one is NULL or no number."""

    @property
    def attributes(self) -> set[tuple[str, ...]]:
        """Return what of events the terms look at."""

    def one(self, event: Event) -> Floats64:
        """Compute them for one event."""

    def many(self, events: pa.RecordBatch | Sequence[Event]) -> Floats64:
        """Compute them for many events, one column each."""


@runtime_checkable
class ReadsScores(Protocol):
    """What reads scores that are expressions."""

    def scoring(self, text: str) -> Scoring:
        """Parse a score; refuses what is none, with its place."""


@runtime_checkable
class ScoresEvents(ReadsScores, Protocol):
    """A content room whose scores may be expressions."""

    def scoring_text(self, scoring: Scoring) -> str:
        """Write a score as text that parses to the same."""

    def term_reader(self, terms: Sequence[str]) -> TermReader:
        """Return what computes these terms."""


def read_scoring(reader: object, score: Score, identity: Id) -> float | Scoring:
    """Read the score of a subscription; one that is text is an expression over the event."""
    if not isinstance(score, str):
        return float(score)
    if not isinstance(reader, ReadsScores):
        raise SubscriptionError(
            f"the score of subscription {identity!r} is {score!r}, and the events of its filter have no "
            "attributes: give a finite number"
        )
    try:
        return reader.scoring(score)
    except FilterError as error:
        raise SubscriptionError(f"the score of subscription {identity!r}: {error}") from error
