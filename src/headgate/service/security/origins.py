"""Who may ask while there are no keys: programs of this machine, and pages that it serves itself.

A page from elsewhere can have a name of its own lead to this machine, and a browser sends what it posts and
opens its WebSockets. Neither is anybody of this machine.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headgate.service.problems import Forbidden, Problem

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from starlette.requests import HTTPConnection


def check_local(connection: HTTPConnection, host: str) -> None:
    """Refuse other names than those of this machine, and pages of others; `host` is where it listens."""
    if not is_loopback(host):
        # It began with keys, and all of them were removed since.
        raise Problem("there are no keys any more, and others can reach this service: make one", 401)
    given = connection.headers.get("host")
    if given is not None:
        name = (split_address(f"//{given}").hostname or "").rstrip(".")
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
