"""A request for a page: who asks, what the form says, and how the answer is made.

page("GET", "/console/now")     makes a function one of the console's pages
view.ask("info")                asks an operation of the API with the session's key
view.shown("now.html.j2", …)    makes the page
view.went(path, "…")            sends the browser on, and tells there what was done
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.responses import Response

from headgate.console.asking import Asked, Asker
from headgate.console.session import Message
from headgate.console.templates import render
from headgate.service.api.operation import is_number
from headgate.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from headgate.console.extension import Console
    from headgate.console.session import Session
    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.security.keys import Key
    from headgate.service.server import Server
    from headgate.service.tenant.tenant import Tenant

    Handler = Callable[["View"], Awaitable[Response]]

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


def page(method: str, path: str, *, public: bool = False) -> Callable[[Handler], Handler]:
    """Make a function a page."""

    def made(handler: Handler) -> Handler:
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
            found = urlsplit(self.request.headers.get("referer", ""))
        except ValueError:
            return ""
        return found.path + (f"?{found.query}" if found.query else "")

    @property
    def in_part(self) -> bool:
        """Tell whether a part of a page is asked for, to be put into one that is there."""
        return self.request.headers.get("hx-request") == "true"

    async def ask(
        self,
        operation: str,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Ask an operation of the API; returns what it answers."""
        return (await self._asker.answer(operation, path, query, body, headers)).value

    @property
    def asked(self) -> list[Asked]:
        """List what was asked for this page."""
        return self._asker.asked

    def number(self, name: str, otherwise: int = 0) -> int:
        """Read a whole number of the query."""
        given = self.query.get(name, "")
        if not given:
            return otherwise
        if not is_number(given):
            raise Problem(f"{name} is {given!r}: give a whole number", 400)
        return int(given)

    def shown(
        self, template: str, *, status: int = 200, copy: Asked | None = None, **values: Any
    ) -> Response:
        """Make a page; `copy` is the request that people may take with them."""
        messages = list(self.session.messages)
        self.session.messages.clear()
        return Response(
            render(template, view=self, messages=messages, copy=copy, **values), status, media_type=HTML
        )

    def part(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Make a part of a page."""
        return Response(render(template, view=self, messages=(), **values), status, media_type=HTML)

    def tell(self, text: str, *, good: bool = True, undo: str | None = None) -> None:
        """Have the next page tell something."""
        self.session.messages.append(Message(text, good, undo))

    def went(self, path: str, text: str = "", *, undo: str | None = None) -> Response:
        """Send the browser to a page, which tells what was done."""
        if text:
            self.tell(text, undo=undo)
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
