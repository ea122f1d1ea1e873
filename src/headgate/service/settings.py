"""The settings of the service, and the quotas of a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True)
class ServiceSettings:
    """What `headgate serve` is told."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    """For TLS: a file with the certificate and its chain."""
    private_key: Path | None = None
    body: int = 16 << 20
    """Bytes of a request's body, unpacked."""
    import_body: int = 512 << 20
    """Bytes of the body of an import of subscriptions, unpacked."""
    batch: int = 10_000
    """Events of a request."""
    waiting: int = 64 << 20
    """Bytes of events of a tenant that may wait to be written."""
    upload: float = 30.0
    """Seconds that a body may take to come."""
    spare: int = 256 << 20
    """Bytes of the disk that stay free: below that nothing more is taken."""
    retention: float = 7 * 86_400
    """Seconds that events are kept."""
    retention_bytes: int = 10 << 30
    """Bytes that events of a tenant may take."""
    private_webhooks: bool = False
    """Whether webhooks may go to private and loopback addresses."""
    stall: float = 8.0
    """Seconds after which a listener that takes nothing is cut off."""
    log_format: str = "text"


class Quotas(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What a tenant may use; None is no limit of its own."""

    subscriptions: int | None = None
    events_a_second: float | None = None
    bytes_a_second: float | None = None
    filter_length: int | None = None
    """Characters of a filter."""
    unindexed: bool = False
    """Whether filters are taken that must be evaluated for every event."""
