"""Webhooks: the addresses that they may go to, and how they are signed (Standard Webhooks).

    url        http or https, no user, a port that web servers have; a host that is a name or a plain address
    address    none that is private, loopback, link-local, metadata, multicast or reserved, also inside an
    IPv6 one

A name is resolved once. Every address that it has is checked, and the connection goes to one that was.
Addresses that
stand in the URL never meet a resolver, so they are checked again when the socket is made.

webhook-id           the same for every attempt at a delivery: what a receiver de-duplicates by
webhook-timestamp    seconds since 1970
webhook-signature    v1,<base64 of HMAC-SHA256 over id.timestamp.body>
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import re
import secrets
from typing import TYPE_CHECKING

from yarl import URL

from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    Address = ipaddress.IPv4Address | ipaddress.IPv6Address


_REFUSED = [
    ipaddress.ip_network(each)
    for each in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        # Of a cloud, for its machines only, though the address is a public one.
        "168.63.129.16/32",
        "2001::/23", "2001:db8::/32", "3fff::/20",
    )
]  # fmt: skip
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL = ipaddress.IPv6Network("2000::/3")
_LOW_PORTS = frozenset((80, 443))
_NUMBER = re.compile(r"(?:\d+|0x[0-9a-f]*)", re.IGNORECASE)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.IGNORECASE)


class AddressError(SubscriptionError):
    """An address that webhooks may not go to."""


def check_url(text: str, *, private: bool = False) -> URL:
    """Read the URL of a webhook; refuses what it may not be.

    >>> check_url("https://example.com/hook").host
    'example.com'
    >>> check_url("http://127.0.0.1/")
    Traceback (most recent call last):
    headgate.service.security.webhooks.AddressError: webhooks do not go to 127.0.0.1: it is no public address
    """
    if any(each <= " " or each in "\\\x7f" for each in text):
        raise AddressError(f"the URL {text!r} has a space, a control character or a backslash in it")
    try:
        url = URL(text)
        host, port = url.host, url.port
    except (ValueError, UnicodeError) as error:
        raise AddressError(f"the URL {text!r} cannot be read: {error}") from None
    if url.scheme not in {"http", "https"} or not host:
        raise AddressError(f"the URL {text!r} cannot be called: give http://… or https://…")
    if url.user is not None or url.password is not None or "@" in url.raw_authority:
        raise AddressError("the URL of a webhook has no user and no password: it is signed with its secret")
    if port is None or not (port in _LOW_PORTS or 1_024 <= port <= 65_535 or (private and port > 0)):
        raise AddressError(f"port {port} is none of a web server: give 80, 443, or one from 1024 on")
    check_host(url.raw_host or host, private=private)
    return url


def check_host(host: str, *, private: bool = False) -> None:
    """Refuse a host that is an address where webhooks do not go, or no proper name."""
    if "%" in host:
        raise AddressError(f"the host {host!r} has a zone or an escape in it: give a name or an address")
    bare = host.removesuffix(".")
    try:
        address: Address | None = ipaddress.ip_address(bare)
    except ValueError:
        address = None
    if address is not None:
        if bare != host:
            raise AddressError(f"the host {host!r} is an address with a full stop after it")
        check_address(address, private=private)
        return
    labels = bare.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # As 2130706433, 0x7f.1 or 0177.0.0.1, which some libraries read as an address.
        raise AddressError(f"the host {host!r} is no name, and no address in four decimal numbers")
    if not bare.isascii() or len(bare) > 253 or not all(_LABEL.fullmatch(each) for each in labels):
        raise AddressError(f"the host {host!r} is no name of a host")
    if not private and (labels[-1].casefold() in {"localhost", "internal", "local"}):
        raise AddressError(f"webhooks do not go to {host}: it is a name inside a network")


def check_address(address: Address | str, *, private: bool = False) -> None:
    """Refuse an address where webhooks do not go."""
    checked = ipaddress.ip_address(address) if isinstance(address, str) else address
    if private:
        return
    for each in _inside(checked):
        outside = each.version == 6 and each not in _GLOBAL
        if outside or not each.is_global or each.is_multicast or any(each in net for net in _REFUSED):
            raise AddressError(f"webhooks do not go to {checked}: it is no public address")


def _inside(address: Address) -> list[Address]:
    """List an address, and the IPv4 addresses that it leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    addresses: list[Address] = [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        addresses.append(address.sixtofour)
    if address.teredo is not None:
        addresses.extend(address.teredo)
    if address in _TRANSLATED:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return addresses


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
