"""What subscribers leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.core.arguments import likeliest, told
from headgate.core.ranks import check_score, check_weights
from headgate.core.rooms import discover
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights

SQL = "sql"
LABELS = "labels"
EVENTBRIDGE = "eventbridge"
CLOUDEVENTS = "cloudevents"
CESQL = "cesql"
ELASTICSEARCH = "elasticsearch"
VESPA = "vespa"
FOREIGN = (EVENTBRIDGE, CLOUDEVENTS, CESQL, ELASTICSEARCH, VESPA)
"""Languages of other systems, converted to SQL."""
SPARQL = "sparql"
TUPLES = "tuples"
XPATH = "xpath"
TREE = "tree"
MIXED = "mixed"
"""The dialect of texts that say theirs, `sparql: ASK {…}`: between indexes only, nobody writes it."""
_dialects = [SQL, LABELS, SPARQL, TUPLES, XPATH, TREE, *FOREIGN]


def dialects() -> tuple[str, ...]:
    """List the dialects of all kinds of content, those of others included."""
    discover()
    return tuple(_dialects)


def learn_dialects(more: Iterable[str]) -> None:
    """Learn the dialects of a kind of content."""
    _dialects.extend(each for each in more if each not in _dialects)


def check_dialect(dialect: str, own: Sequence[str] = (), content: str = "") -> None:
    """Refuse a dialect that no content has, and one of another content than that with the dialects `own`.

    >>> check_dialect("xslt")
    Traceback (most recent call last):
    ...
    headgate.errors.SubscriptionError: dialect 'xslt' is not known: use 'sql', 'labels', 'sparql', 'tuples',\
 'xpath', 'tree', 'eventbridge', 'cloudevents', 'cesql', 'elasticsearch' or 'vespa'
    """
    if dialect not in _dialects and dialect not in dialects():
        *most, last = map(repr, _dialects)
        given: object = dialect
        meant = likeliest(given, _dialects) if isinstance(given, str) else None
        hint = f" (did you mean {meant!r}?)" if meant else ""
        raise SubscriptionError(
            f"dialect {dialect!r} is not known: use {', '.join(most)} or {last}{hint}", names_it=False
        )
    if own and dialect not in own:
        *most, last = map(repr, own)
        raise SubscriptionError(
            f"dialect {dialect!r} is not for {content}: filters of {content} are {', '.join(most)} or {last}",
            names_it=False,
        )


@dataclass(frozen=True)
class Subscription:
    """A standing filter and its name; in a graph, the node where it hangs; and what it is ranked by.

    The score ranks it among those that match; as text it is an expression over the event's attributes. The
    weights say what each clause of the filter counts that
    holds, when not all of them must: by the attribute that it looks at, or one for each clause in the order
    they are written; without them each counts 1.

    >>> Subscription("s1", "age > 30 AND topic = 'news'", weights={"topic": 2.5}).dialect
    'sql'
    """

    id: Id
    filter: str
    dialect: str = SQL
    node: Id | None = None
    score: Score = 0.0
    weights: Weights | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        """Refuse dialects that no room speaks, filters that are no text, and ranks that are none."""
        if self.dialect != MIXED:
            check_dialect(self.dialect)
        text: object = self.filter
        if not isinstance(text, str):
            raise SubscriptionError(f"subscription {self.id!r}: its filter is {told(text)}: give text")
        if self.score != 0.0:
            check_score(self.score, f"subscription {self.id!r}")
        if self.weights is not None:
            check_weights(self.weights, f"subscription {self.id!r}")
