"""Standard Webhooks: secrets, ids of messages, and signatures.

webhook-id           the same for every attempt at a delivery: what a receiver de-duplicates by
webhook-timestamp    seconds since 1970
webhook-signature    v1,<base64 of HMAC-SHA256 over id.timestamp.body>
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from headgate.errors import SubscriptionError

PREFIX = "whsec_"
_LEAST, _MOST = 24, 64


def new_secret() -> str:
    """Make a secret up."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret; refuses what is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not _LEAST <= len(key) <= _MOST:
        raise SubscriptionError(
            f"the secret is none of Standard Webhooks: give '{PREFIX}' and {_LEAST} to {_MOST} bytes as "
            "base64, or leave it out and have one made up"
        )
    return key


def message_id(tenant: str, consumer: str, position: int) -> str:
    """Return the id of a delivery; it has no full stop, which separates the parts of what is signed."""
    whose = hashlib.blake2s(f"{tenant}/{consumer}".encode(), digest_size=6).hexdigest()
    return f"msg_{whose}_{position}"


def sign(key: bytes, identity: str, timestamp: int, body: bytes) -> str:
    """Sign a message.

    >>> sign(b"k" * 24, "msg_1", 1614265330, b'{"test": 2432232314}')
    'v1,TScfZU5W0Dsfb7RPdzgO787YhjOEgrDHCPjYVxCiy/0='
    """
    signed = b"%b.%d.%b" % (identity.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers_of(key: bytes, identity: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message."""
    return {
        "webhook-id": identity,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(key, identity, timestamp, body),
    }
