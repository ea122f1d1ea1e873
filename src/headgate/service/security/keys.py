"""Who may ask: who has a key; while there are none, programs of this machine and pages that it serves.

    hg_<id>_<secret>     the id finds the key; of the secret, 256 random bits, only SHA-256 is kept

A key belongs to one tenant, and has scopes. Who has no key may do everything only while there are no keys
at all, and the service is bound to loopback.

A page from elsewhere can have a name of its own lead to this machine, and a browser sends what it posts and
opens its WebSockets. Neither is anybody of this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import msgspec

from headgate.errors import SubscriptionError
from headgate.service.problems import Forbidden, Problem
from headgate.service.settings import Quotas
from headgate.service.storage.database import SERVER, Database, telling

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from urllib.parse import SplitResult

    from starlette.requests import HTTPConnection


FILE = "server.db"
DEFAULT_TENANT = "default"
SCOPES = ("publish", "subscribe", "read", "admin")
_PREFIX = "hg"
_PATIENCE = 0.5
"""Seconds until keys that another process has changed are looked at."""


class Key(NamedTuple):
    """Who asks."""

    id: str
    tenant: str
    scopes: frozenset[str]
    created: int = 0
    expires: int | None = None
    note: str = ""

    def allows(self, scope: str) -> bool:
        """Tell whether something may be done; who administers may do everything."""
        return scope in self.scopes or "admin" in self.scopes


EVERYBODY = Key("", DEFAULT_TENANT, frozenset(SCOPES))
"""Who asks while there are no keys."""


class Keys:
    """The keys of a server, and its list of who did what."""

    def __init__(self, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.database = Database(data / FILE, SERVER)
        self._seen: dict[str, tuple[Key, bytes]] = {}
        self.quotas: dict[str, Quotas] = {}
        """What tenants may use, as whoever runs the service said last."""
        self._version = -1
        self._next = 0.0
        self._guard = threading.Lock()
        self._read()

    def _read(self) -> None:
        """Read all keys and quotas again, if another process has changed the file."""
        now = time.monotonic()
        if now < self._next and self._version >= 0:
            return
        self._next = now + _PATIENCE
        version = int(self.database.reader.pragma("data_version"))
        if version == self._version:
            return
        rows = self.database.rows("SELECT id, tenant, scopes, created, expires, note, hash FROM keys")
        self._seen = {
            row[0]: (Key(row[0], row[1], frozenset(row[2].split()), row[3], row[4], row[5]), row[6])
            for row in rows
        }
        quotas = self.database.rows("SELECT id, quotas FROM tenants")
        self.quotas = {name: msgspec.json.decode(text, type=Quotas) for name, text in quotas}
        self._version = version

    def __len__(self) -> int:
        """Count them."""
        self._read()
        return len(self._seen)

    def _change(self, query: str, values: tuple[object, ...]) -> int:
        """Change the file, so that it is read again; returns how many rows were changed."""
        with self._guard, telling(self.database.path), self.database.writer as writer:
            writer.execute(query, values)
            changed = writer.changes()
        self._version = -1
        return changed

    def listed(self, tenant: str) -> list[Key]:
        """List the keys of a tenant."""
        self._read()
        return sorted(key for key, _ in self._seen.values() if key.tenant == tenant)

    def add(
        self, tenant: str, scopes: Iterable[str], *, expires: int | None = None, note: str = ""
    ) -> tuple[Key, str]:
        """Make a key; returns it and its text, which cannot be had again."""
        granted = frozenset(scopes)
        if not granted or granted - set(SCOPES):
            raise SubscriptionError(f"the scopes are {sorted(granted)}: give some of {', '.join(SCOPES)}")
        identity, secret = secrets.token_hex(6), secrets.token_hex(32)
        key = Key(identity, tenant, granted, time.time_ns() // 1_000, expires, note)
        self._change(
            "INSERT INTO keys (id, tenant, hash, scopes, created, expires, note) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (identity, tenant, _hash(secret), " ".join(sorted(granted)), key.created, expires, note),
        )
        return key, f"{_PREFIX}_{identity}_{secret}"

    def remove(self, tenant: str, identity: str) -> bool:
        """Have a key count no more; tells whether there was one."""
        return self._change("DELETE FROM keys WHERE id = ? AND tenant = ?", (identity, tenant)) > 0

    def find(self, text: str | None) -> Key:
        """Find who asks; refuses a key that is none, or counts no more."""
        self._read()
        if not self._seen:
            return EVERYBODY
        if text is None:
            raise Problem("there is no key: send `Authorization: Bearer hg_…`", 401)
        prefix, _, rest = text.partition("_")
        identity, _, secret = rest.partition("_")
        known = self._seen.get(identity)
        if prefix != _PREFIX or known is None or not hmac.compare_digest(known[1], _hash(secret)):
            raise Problem("the key is not known here", 401)
        key = known[0]
        if _has_expired(key):
            raise Problem("the key has expired: ask for another one", 401)
        return key

    def get(self, identity: str) -> Key | None:
        """Return a key by its id, if it counts."""
        self._read()
        known = self._seen.get(identity)
        return None if known is None or _has_expired(known[0]) else known[0]

    def keep_quotas(self, tenant: str, quotas: Quotas) -> None:
        """Keep the quotas of a tenant; a service that runs takes them with its next request."""
        quotas.check()
        self._change(
            "INSERT INTO tenants VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET quotas = excluded.quotas",
            (tenant, time.time_ns() // 1_000, msgspec.json.encode(quotas)),
        )

    def note(self, key: Key, action: str, what: str) -> None:
        """Write down who did what."""
        self._change(
            "INSERT INTO audit (time, tenant, key, action, what) VALUES (?, ?, ?, ?, ?)",
            (time.time_ns() // 1_000, key.tenant, key.id, action, what),
        )

    def close(self) -> None:
        """Close the file."""
        self.database.close()


def check_scope(key: Key, scope: str) -> None:
    """Refuse what a key does not allow."""
    if not key.allows(scope):
        raise Forbidden(f"the key has no scope {scope!r}: it has {', '.join(sorted(key.scopes))}")


def _has_expired(key: Key) -> bool:
    return key.expires is not None and key.expires <= time.time_ns() // 1_000


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def check_local(connection: HTTPConnection, host: str) -> None:
    """Refuse other names than those of this machine, and pages of others; `host` is where it listens."""
    if not is_loopback(host):
        # It began with keys, and all of them were removed since.
        raise Problem("there are no keys any more, and others can reach this service: make one", 401)
    named = connection.headers.get("host")
    if named is not None:
        name = (split_address(f"//{named}").hostname or "").rstrip(".")
        if name != host and not is_loopback(name):
            raise Forbidden(
                f"the host {name!r} is not a name of this machine: use localhost, or make keys first"
            )
    check_same(connection)


def check_same(connection: HTTPConnection) -> None:
    """Refuse what a page of another origin has sent."""
    origin = connection.headers.get("origin")
    if origin is not None and split_address(origin).netloc != connection.headers.get("host"):
        raise Forbidden(f"the request comes from {origin}: pages of other origins may not ask here")


def is_loopback(host: str) -> bool:
    """Tell whether a host is one that only this machine has."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_address(address: str) -> SplitResult:
    """Split an address; refuses what is none."""
    try:
        return urlsplit(address)
    except ValueError as error:
        raise Problem(f"{address!r} is no address: {error}", 400) from None
