"""What may be shown of texts that may hold secrets: addresses without users and passwords."""

from __future__ import annotations

import re

from headgate.spark.nats.settings import shown

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
_BROKERS = ("nats://", "kafka://")
"""Their addresses may have secrets among their settings, too."""


def without_secrets(text: str) -> str:
    """Return a text whose addresses name no users and passwords.

    >>> without_secrets("no answer from nats://ann:secret@host/EVENTS?token=secret")
    'no answer from nats://host/EVENTS'
    >>> without_secrets("url = 'http://host/?page=2'")
    "url = 'http://host/?page=2'"
    """
    return _ADDRESS.sub(lambda found: _shown(found[0]), text)


def _shown(address: str) -> str:
    return shown(address) if "@" in address or address.startswith(_BROKERS) else address
