"""The settings of the service, and the quotas of a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from headgate.core.settings import Output, Request, Seconds, setting
from headgate.errors import SubscriptionError

TEXT, LINES = FORMATS = ("text", "json")


@dataclass(frozen=True)
class ServiceSettings(Request):
    """What `headgate serve` is told."""

    data: Output = setting(
        "the directory that everything is kept in; it is made if it is not there", metavar="DIRECTORY"
    )
    host: str = setting(
        "the address to listen at; one that others can reach needs keys (`headgate service key add`)",
        "127.0.0.1",
        metavar="ADDRESS",
    )
    port: int = setting(
        "the port to listen at; 0 takes a free one, and says which", 8080, least=0, most=65_535
    )
    certificate: str | None = setting("for TLS: a file with the certificate and its chain", metavar="FILE")
    private_key: str | None = setting(
        "for TLS: a file with the private key", metavar="FILE", needs="certificate"
    )
    body: int = setting("bytes that the body of a request may have, unpacked", 16 << 20, least=1_024)
    import_body: int = setting(
        "bytes that the body of an import of subscriptions may have, unpacked", 512 << 20, least=1_024
    )
    batch: int = setting("events that a request may have", 10_000, least=1)
    waiting: int = setting(
        "bytes of a tenant's events that may wait to be written; what is more is answered with 429",
        64 << 20,
        least=1_024,
    )
    upload: Seconds = setting("how long a body may take to come", 30.0, least=0.1)
    spare: int = setting(
        "bytes of the disk that stay free; below that events are answered with 507", 256 << 20, least=0
    )
    retention: Seconds = setting("how long events are kept", 7 * 86_400.0, least=1)
    retention_bytes: int = setting("bytes that the events of a tenant may take", 10 << 30, least=1 << 20)
    private_webhooks: bool = setting("whether webhooks may go to private and loopback addresses", False)
    stall: Seconds = setting("after how long a listener that takes nothing is cut off", 8.0, least=0.1)
    heartbeat: Seconds = setting(
        "after how long without an event listeners get a sign of life", 15.0, least=0.1
    )
    retry: Seconds = setting(
        "how long after its first attempt a webhook is tried again; each further wait is twice as long",
        1.0,
        least=0.001,
    )
    connections: int = setting("connections at once, at most", 10_000, least=1)
    log: str = setting("how lines of the log are written", TEXT, listed=FORMATS)

    @property
    def place(self) -> Path:
        """Return the data directory."""
        return Path(self.data)


@dataclass(frozen=True)
class QuotaSettings(Request):
    """What a tenant may use, as it is set; None leaves it as it is."""

    subscriptions: int | None = setting("how many it may have")
    events_a_second: float | None = setting("how many it may publish", metavar="N")
    bytes_a_second: float | None = setting("how many bytes these may have", metavar="N")
    filter_length: int | None = setting("how many characters a filter may have")
    unindexed: bool | None = setting("whether filters are taken that must be evaluated for every event")


class Quotas(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What a tenant may use; None is no limit of its own."""

    subscriptions: int | None = None
    events_a_second: float | None = None
    bytes_a_second: float | None = None
    filter_length: int | None = None
    """Characters of a filter."""
    unindexed: bool = False
    """Whether filters are taken that must be evaluated for every event."""

    def check(self) -> None:
        """Refuse values that make no sense."""
        for name in ("subscriptions", "events_a_second", "bytes_a_second", "filter_length"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SubscriptionError(f"{name} is {value}: give a number above 0, or leave it out")
