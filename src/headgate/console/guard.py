"""What is checked before a page is made, and what browsers are told about it.

origin    what changes anything comes from a page of this console
token     and carries the token of its session
headers   scripts and styles from here alone, no frames, nothing kept by caches
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from headgate.service.problems import Forbidden, Problem
from headgate.service.security.origins import check_same

if TYPE_CHECKING:
    from starlette.requests import Request

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
SAFE = frozenset({"GET", "HEAD"})
_OWN = frozenset({"same-origin", "none"})
"""Where a browser says a request comes from: a page of ours, or its user."""


def check_origin(request: Request) -> None:
    """Refuse what a page from elsewhere has sent."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site not in _OWN:
        raise Forbidden("the request comes from another site: use the pages of this console")
    check_same(request)
    if site is None and origin is None:
        raise Problem("the request does not say where it comes from: use a browser, or the API", 403)


def local_path(given: str | None, otherwise: str) -> str:
    """Return where to go after signing in: a page of the console and nowhere else."""
    if given is None or not given.startswith("/console/") or "\\" in given or "//" in given:
        return otherwise
    # Headers have no other letters than these; what is quoted stays as it is.
    return quote(given, safe="/?#=&%:@!$'()*+,;~[]") if given.isprintable() else otherwise
