"""What is known of a consumer while the service runs: how far it came, who listens, how its webhook does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.service.delivery.breaker import Breaker
from headgate.service.security.signature import key_of

if TYPE_CHECKING:
    from headgate.service.delivery.listener import Listener
    from headgate.service.delivery.webhook import Webhook
    from headgate.service.resources import ConsumerBody
    from headgate.service.storage.consumers import StoredConsumer


class State:
    """One consumer. It belongs to the event loop."""

    def __init__(self, stored: StoredConsumer, retry: float) -> None:
        self.id = stored.id
        self.number = stored.number
        self.cursor = stored.cursor
        """The position up to which all is acknowledged, on disk."""
        self.clear = stored.cursor
        """The position up to which, after the cursor, nothing is for it."""
        self.moved = 0
        """How often it was set to another cursor: what was acknowledged before does not count then."""
        self.passed = 0
        """Events that were forgotten before they were delivered."""
        self.listeners: set[Listener] = set()
        self.breaker = Breaker(retry)
        self.webhook: Webhook | None = None
        self.replaying = False
        """Whether its dead letters are being tried again."""
        self.reason: str | None = None
        """Why its webhook is not called any more, or what it failed with last."""
        self.told(stored)

    def told(self, stored: StoredConsumer) -> None:
        """Take over what a client said of it."""
        self.revision = stored.revision
        self.said: ConsumerBody = stored.said
        self.key = b"" if self.said.secret is None else key_of(self.said.secret)

    @property
    def called(self) -> bool:
        """Tell whether a webhook is called for it."""
        return self.said.url is not None and self.said.enabled
