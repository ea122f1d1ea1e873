"""An operation of the API.

All that is known of it in one place, from which routes, checks and OpenAPI are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from headgate.core.event import JSON
from headgate.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.security.keys import Key
    from headgate.service.server import Server
    from headgate.service.storage.log import Write
    from headgate.service.tenant.tenant import Tenant

    Handler = Callable[["Call"], Awaitable["Answer | Response"]]

Scope = Literal["publish", "subscribe", "read", "admin"]
PUBLISH: Scope = "publish"
SUBSCRIBE: Scope = "subscribe"
READ: Scope = "read"
ADMIN: Scope = "admin"
_Query = TypeVar("_Query", bound=msgspec.Struct)
_Body = TypeVar("_Body")
_encode = msgspec.json.Encoder().encode


@dataclass
class Answer:
    """What an operation answers: something that is written as JSON, or bytes of another type."""

    value: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = JSON
    parts: AsyncIterator[bytes] | None = None
    """What is written part after part, in the place of `value`."""

    def body(self) -> bytes:
        """Write it."""
        if isinstance(self.value, bytes):
            return self.value
        return b"" if self.status in {204, 304} else _encode(self.value)


@dataclass
class Call:
    """A request that was let in: by whom, to which tenant, and what it says."""

    server: Server
    tenant: Tenant
    key: Key
    request: Request
    body: bytes
    remember: Callable[[Answer], Write] | None = None
    """What keeps the answer with what the request did, if it has an Idempotency-Key."""

    @property
    def dispatcher(self) -> Dispatcher:
        """Return what delivers the tenant's events."""
        return self.server.dispatchers[self.tenant.name]

    @property
    def path(self) -> Mapping[str, str]:
        """Return the parts of the path that have names."""
        return self.request.path_params

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers."""
        return self.request.headers

    def query(self, kind: type[_Query]) -> _Query:
        """Read what stands after the question mark; refuses what is not known."""
        given: dict[str, str] = {}
        for name, value in self.request.query_params.multi_items():
            if name in given:
                raise Problem(f"{name!r} is in the query twice: give it once", 400)
            given[name] = value
        try:
            return msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as error:
            raise Problem(f"the query cannot be read: {error}", 400) from None

    def said(self, kind: type[_Body]) -> _Body:
        """Read the body."""
        media = self.headers.get("content-type", JSON).partition(";")[0].strip().casefold()
        if media != JSON and not media.endswith("+json"):
            raise Problem(f"the content type is {media!r}: send {JSON}", 415)
        try:
            return msgspec.json.decode(self.body, type=kind)
        except msgspec.ValidationError as error:
            raise Problem(f"the body does not fit: {error}", 422) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Problem(f"the body is not valid JSON: {error}", 400) from None


@dataclass(frozen=True)
class Operation:
    """What can be asked for."""

    method: str
    path: str
    name: str
    """As OpenAPI and clients call it."""
    summary: str
    scope: Scope
    handler: Handler
    answers: Mapping[int, Any]
    """What is answered, by status; None for nothing."""
    body: Any = None
    media: tuple[str, ...] = (JSON,)
    query: type[msgspec.Struct] | None = None
    problems: tuple[int, ...] = ()
    example: str = ""
    """The rest of a curl command, after the address."""
    idempotent: bool = False
    """Whether an Idempotency-Key is understood."""
    headers: tuple[str, ...] = ()
    """Other headers that are understood."""
    answer_media: str = JSON
    public: bool = False
    """Whether it is answered without a key."""
    large: bool = False
    """Whether its body may have as many bytes as an import."""


OPERATIONS: list[Operation] = []
"""All of them, in the order of the pages that list them."""


def operation(
    method: str,
    path: str,
    summary: str,
    scope: Scope,
    answers: Mapping[int, Any],
    *,
    among: list[Operation] = OPERATIONS,
    **more: Any,
) -> Callable[[Handler], Handler]:
    """Make a function an operation; its name is the operation's."""

    def made(handler: Handler) -> Handler:
        name = getattr(handler, "__name__", "").rstrip("_")
        among.append(Operation(method, path, name, summary, scope, handler, answers, **more))
        return handler

    return made


def in_json(body: str) -> str:
    """Return the rest of a curl command that sends JSON."""
    return f"-H 'Content-Type: {JSON}' -d '{body}'"


def is_number(text: str) -> bool:
    """Tell whether a text is a whole number that fits everywhere.

    >>> is_number("12"), is_number("²"), is_number("9" * 5_000), is_number("")
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < 19


class Page(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which part of a list is wanted."""

    after: str = ""
    """The cursor that the part before ended with."""
    limit: int = 100
    search: str | None = None

    def most(self) -> int:
        """Return how many are wanted; refuses too many."""
        if not 1 <= self.limit <= 1_000:
            raise Problem(f"limit is {self.limit}: give 1 to 1000", 400)
        return self.limit
