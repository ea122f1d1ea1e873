"""A request for a page: what is checked first, who asks, and the operations of the API that it asks.

page("GET", "/console/now")     makes a function one of the console's pages
view.ask("info")                asks an operation of the API with the session's key
view.shown("now.html.j2", …)    makes the page
view.went(path, "…")            sends the browser on, and tells there what was done

origin    what changes anything comes from a page of this console
token     and carries the token of its session
headers   scripts and styles from here alone, no frames, nothing kept by caches
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headgate.console.session import Message
from headgate.console.templates import render
from headgate.core.event import JSON
from headgate.errors import HeadgateError
from headgate.service.api.operation import OPERATIONS, Answer, Call, is_number
from headgate.service.problems import Forbidden, Problem, problem_of
from headgate.service.security.keys import check_same, check_scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from headgate.console.extension import Console
    from headgate.console.session import Session
    from headgate.service.api.operation import Operation
    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.security.keys import Key
    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant

    Handler = Callable[["View"], Awaitable[Response]]


_KEY = "HEADGATE_KEY"


@dataclass(frozen=True)
class Asked:
    """A request as somebody could send it."""

    method: str
    path: str
    """With what stands after the question mark."""
    body: Any = None

    def curl(self, address: str) -> str:
        """Write it as a command; the key is in the environment.

        >>> print(Asked("GET", "/v1/info").curl("http://localhost:8080"))
        curl -H "Authorization: Bearer $HEADGATE_KEY" http://localhost:8080/v1/info
        """
        parts = ["curl"]
        if self.method != "GET":
            parts.append(f"-X {self.method}")
        parts.append(f'-H "Authorization: Bearer ${_KEY}"')
        if self.body is not None:
            parts.append(
                f"-H 'Content-Type: {JSON}' -d {shlex.quote(msgspec.json.encode(self.body).decode())}"
            )
        parts.append(shlex.quote(address + self.path))
        return " ".join(parts)

    def python(self, address: str) -> str:
        """Write it as a program; the client finds the key in the environment.

        >>> Asked("GET", "/v1/info").python("http://localhost:8080").splitlines()[-1].strip()
        "print(client.ask('GET', '/v1/info'))"
        """
        argument = "" if self.body is None else f", {msgspec.json.decode(msgspec.json.encode(self.body))!r}"
        return (
            "from headgate import Client\n\n"
            f"with Client({address!r}) as client:\n"
            f"    print(client.ask({self.method!r}, {self.path!r}{argument}))"
        )


class Asker:
    """Asks operations for one key."""

    def __init__(self, server: Server, key: Key) -> None:
        self._server = server
        self._key = key
        self.asked: list[Asked] = []
        """What was asked, in order."""

    async def ask(
        self,
        name: str,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Ask an operation by its name, and return what it answers; refuses what the key does not allow."""
        operation = _operation(name)
        parts = {each: str(value) for each, value in (path or {}).items()}
        after = urlencode({each: value for each, value in (query or {}).items() if value is not None})
        url = operation.path
        for each, value in parts.items():
            url = url.replace(f"{{{each}}}", quote(value, safe=""))
        self.asked.append(Asked(operation.method, url + (f"?{after}" if after else ""), body))
        check_scope(self._key, operation.scope)
        tenant = await self._server.tenant(self._key.tenant)
        named = [(b"content-type", JSON.encode())]
        named += [(each.casefold().encode(), value.encode()) for each, value in (headers or {}).items()]
        request = Request(
            {
                "type": "http",
                "method": operation.method,
                "path": url,
                "query_string": after.encode(),
                "headers": named,
                "path_params": parts,
                "scheme": "http",
                "server": ("localhost", 80),
            }
        )
        text = b"" if body is None else msgspec.json.encode(body)
        began, status = time.perf_counter(), 500
        try:
            answer = await operation.handler(Call(self._server, tenant, self._key, request, text))
            assert isinstance(answer, Answer)
            status = answer.status
        except HeadgateError as error:
            status = problem_of(error).status
            raise
        finally:
            tenant.counters.requested(name, status, time.perf_counter() - began)
        return answer.value


_BY_NAME: dict[str, Operation] = {}


def _operation(name: str) -> Operation:
    if name not in _BY_NAME:
        _BY_NAME.update({each.name: each for each in OPERATIONS})
    return _BY_NAME[name]


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


def local_path(path: str | None, otherwise: str) -> str:
    """Return where to go after signing in: a page of the console and nowhere else."""
    if path is None or not path.startswith("/console/") or "\\" in path or "//" in path:
        return otherwise
    # Headers have no other letters than these; what is quoted stays as it is.
    return quote(path, safe="/?#=&%:@!$'()*+,;~[]") if path.isprintable() else otherwise


HTML = "text/html"


@dataclass(frozen=True)
class Page:
    """A page, or a part of one."""

    method: str
    path: str
    handler: Handler
    public: bool = False
    """Whether it is shown to who is not signed in."""


PAGES: list[Page] = []
_Made = TypeVar("_Made", bound="Handler")


def page(method: str, path: str, *, public: bool = False) -> Callable[[_Made], _Made]:
    """Make a function a page."""

    def made(handler: _Made) -> _Made:
        PAGES.append(Page(method, path, handler, public))
        return handler

    return made


@dataclass
class View:
    """One request."""

    console: Console
    request: Request
    session: Session
    key: Key
    tenant: Tenant
    form: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._asker = Asker(self.server, self.key)
        self.ask = self._asker.ask

    async def tried(self, operation: str, body: dict[str, Any]) -> tuple[Any, str | None]:
        """Ask an operation; what is refused is told in the place of an answer."""
        try:
            return await self.ask(operation, body=body), None
        except HeadgateError as error:
            return None, str(error)

    @property
    def server(self) -> Server:
        """Return the server."""
        return self.console.server

    @property
    def dispatcher(self) -> Dispatcher:
        """Return what delivers the tenant's events."""
        return self.server.dispatchers[self.tenant.name]

    @property
    def query(self) -> Mapping[str, str]:
        """Return what stands after the question mark."""
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, str]:
        """Return the parts of the path that have names."""
        return self.request.path_params

    @property
    def address(self) -> str:
        """Return where the API is, as the browser calls it."""
        scheme = "http" if self.server.settings.certificate is None else "https"
        return f"{scheme}://{self.request.headers.get('host', 'localhost')}"

    @property
    def referrer(self) -> str:
        """Return the path that the browser came from, whatever its host."""
        try:
            address = urlsplit(self.request.headers.get("referer", ""))
        except ValueError:
            return ""
        return address.path + (f"?{address.query}" if address.query else "")

    @property
    def in_part(self) -> bool:
        """Tell whether a part of a page is asked for, to be put into one that is there."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def asked(self) -> list[Asked]:
        """List what was asked for this page."""
        return self._asker.asked

    def number(self, name: str, otherwise: int = 0) -> int:
        """Read a whole number of the query."""
        text = self.query.get(name, "")
        if not text:
            return otherwise
        if not is_number(text):
            raise Problem(f"{name} is {text!r}: give a whole number", 400)
        return int(text)

    def typed_number(self, name: str, kind: type[float] = float) -> float | None:
        """Read a number of the form; None if the field is empty."""
        text = self.form.get(name, "").strip()
        try:
            return kind(text) if text else None
        except ValueError:
            raise Problem(f"{name} is {text!r}: give a number, or leave it empty", 422) from None

    def shown(
        self,
        template: str,
        *,
        error: HeadgateError | None = None,
        copy: Asked | None = None,
        **values: Any,
    ) -> Response:
        """Make a page; `copy` is the request that people may take with them, `error` why one was refused."""
        status = 200 if error is None else problem_of(error).status
        messages = list(self.session.messages)
        self.session.messages.clear()
        return Response(
            render(template, view=self, messages=messages, copy=copy, error=error, **values),
            status,
            media_type=HTML,
        )

    def part(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Make a part of a page."""
        return Response(render(template, view=self, messages=(), **values), status, media_type=HTML)

    def tell(self, text: str, *, good: bool = True, undo: str | None = None) -> None:
        """Have the next page tell something."""
        self.session.messages.append(Message(text, good, undo))

    def went(self, path: str, text: str = "", *, back: tuple[str, list[Any]] | None = None) -> Response:
        """Send the browser to a page, which tells what was done; `back` is what is undone, and by what."""
        if text:
            self.tell(text, undo=None if back is None else self.session.can_restore(back[0], *back[1]))
        if self.in_part:
            return Response(status_code=204, headers={"HX-Redirect": path})
        return Response(status_code=303, headers={"Location": path})


def place_of(*parts: object) -> str:
    """Return the path of a page of the console.

    >>> place_of("subscriptions", "a b")
    '/console/subscriptions/a%20b'
    """
    return "/console/" + "/".join(quote(str(part), safe="") for part in parts)


def read_form(body: bytes) -> dict[str, str]:
    """Read the fields of a form; of those that are there twice, the last."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1_000)
    except (UnicodeDecodeError, ValueError) as error:
        raise Problem(f"the form cannot be read: {error}", 400) from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}
