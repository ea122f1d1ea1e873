"""What the API's resources are: subscriptions, consumers, nodes, edges, and what a request may say of each.

Fields of the CloudEvents Subscriptions API (`sink`, `protocol`, `filters`, `source`, `types`, `config`)
stand beside our own. A subscription has one or the other way to say its filter.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec

from headgate.core.subscription import CLOUDEVENTS, SQL, Subscription
from headgate.errors import SubscriptionError
from headgate.graph.path_cost import DECAY

_PATTERN = r"^[^\s/?#%\x00-\x1f\x7f][^/?#%\x00-\x1f\x7f]*$"
_MEANING = "text without '/', '?', '#', '%' and control characters, as it stands in a path"
Name = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, pattern=_PATTERN, description=f"{_MEANING.capitalize()}.")
]


def misfit(error: msgspec.ValidationError) -> str:
    """Say what does not fit, and of an id in words what its pattern means."""
    return str(error).replace(f"`str` matching regex {_PATTERN!r}", f"an id: {_MEANING}")


Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=31_622_400)]
DEFAULT = "default"
"""The consumer of subscriptions that name none."""


def moment_of(micros: int) -> dt.datetime:
    """Return a time that is kept as microseconds since 1970."""
    return dt.datetime.fromtimestamp(micros / 1e6, dt.UTC)


def micros_of(moment: dt.datetime, name: str) -> int:
    """Return a time as it is kept; refuses one of a field that has no zone."""
    if moment.tzinfo is None:
        raise SubscriptionError(f"`{name}` {moment.isoformat()} has no zone: add Z or +01:00")
    return int(moment.timestamp() * 1e6)


class Limit(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """At most `events` in a `period`.

    What is more is held back, or comes as a digest when the period ends.
    """

    events: Count
    period: Seconds
    digest: bool = False


class SubscriptionBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What a client says of a subscription."""

    id: Name | None = None
    filter: str | None = None
    dialect: str = SQL
    score: float | str = 0.0
    weights: dict[str, float] | list[float] | None = None
    node: Name | None = None
    consumer: Name | None = None
    metadata: dict[str, Any] = {}
    expires: dt.datetime | None = None
    limit: Limit | None = None
    sink: str | None = None
    protocol: Literal["HTTP"] | None = None
    filters: list[dict[str, Any]] | None = None
    source: str | None = None
    types: list[str] | None = None
    config: dict[str, Any] | None = None
    protocolsettings: dict[str, Any] | None = None
    sinkcredential: dict[str, Any] | None = None

    @property
    def cloudevents(self) -> bool:
        """Tell whether the filter is said as the CloudEvents Subscriptions API says it."""
        return self.filters is not None or self.source is not None or self.types is not None

    @property
    def expires_at(self) -> int | None:
        """Return when it ends, in microseconds since 1970."""
        return None if self.expires is None else micros_of(self.expires, "expires")

    def check(self) -> None:
        """Refuse what says its filter twice or not at all."""
        if self.filter is not None and self.cloudevents:
            raise SubscriptionError(
                "there are both `filter` and `filters`, `source` or `types`: give `filter` with its "
                "`dialect`, or "
                "those of the CloudEvents Subscriptions API"
            )
        if self.filter is None and not self.cloudevents and self.sink is None:
            raise SubscriptionError(
                "there is no `filter`: give one, or `filters`; a filter that all match is 'true'"
            )
        _ = self.expires_at
        if self.sinkcredential is not None:
            raise SubscriptionError(
                "`sinkcredential` is not supported: webhooks are signed with their own secret"
            )

    def subscription(self, identity: str) -> Subscription:
        """Return what is indexed."""
        text, dialect = self.filter, self.dialect
        if text is None and self.cloudevents:
            fields = {"source": self.source, "types": self.types, "filters": self.filters}
            known = {name: value for name, value in fields.items() if value is not None}
            text, dialect = msgspec.json.encode(known).decode(), CLOUDEVENTS
        elif text is None:
            text, dialect = "true", SQL
        weights = tuple(self.weights) if isinstance(self.weights, list) else self.weights
        return Subscription(identity, text, dialect, self.node, self.score, weights)


class RankBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How the best are asked for."""

    k: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    mode: Literal["exact", "relaxed"] = "exact"
    factors: dict[str, float] | None = None
    by: Literal["minus", "times"] = "minus"
    decay: Annotated[float, msgspec.Meta(gt=0, le=1)] = DECAY
    hops: bool = False

    @property
    def said(self) -> dict[str, Any]:
        """Return what an engine is asked."""
        return {name: getattr(self, name) for name in RankBody.__struct_fields__}


class ConsumerBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What a client says of a consumer: where it is told, and how."""

    id: Name | None = None
    url: str | None = None
    """Where its webhook is; a consumer without one pulls or listens."""
    secret: str | None = None
    """What webhooks are signed with; it is made up if none is given, and shown once."""
    order: Literal["ordered", "parallel"] = "ordered"
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    timeout: Annotated[float, msgspec.Meta(gt=0, le=60)] = 15.0
    enabled: bool = True
    """Whether its webhook is called.

    An endpoint that answers 410 is not any more, until this is true again.
    """
    metadata: dict[str, Any] = {}


class Part(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A node of the graph."""

    id: Name | None = None
    filter: str | None = None
    dialect: str = SQL
    kind: str | None = None
    score: float | None = None
    cost: float | None = None


class EdgeBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """An edge of the graph."""

    source: Name
    target: Name
    filter: str | None = None
    dialect: str = SQL
    cost: float | None = None
