"""An operation of the API.

All that is known of it in one place, from which routes, checks and OpenAPI are made. Most of it is what a
function says anyway: its name, its summary, what it takes of the query and of the body, and what it answers.

    @operation("GET", "/v1/keys", ADMIN)
    async def list_keys(call: Call, query: Page) -> KeyPage:
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_type_hints

import msgspec
from starlette.responses import Response

from headgate.core.event import JSON
from headgate.service.problems import Conflict, Problem
from headgate.service.resources import Name, misfit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import HTTPConnection, Request

    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.security.keys import Key
    from headgate.service.server import Server
    from headgate.service.storage.log import Write
    from headgate.service.tenant.tenant import Tenant

    Handler = Callable[["Call"], Awaitable["Answer | Response"]]
    Written = TypeVar("Written", bound=Callable[..., Awaitable[Any]])

Scope = Literal["publish", "subscribe", "read", "admin"]
PUBLISH: Scope = "publish"
SUBSCRIBE: Scope = "subscribe"
READ: Scope = "read"
ADMIN: Scope = "admin"
_Read = TypeVar("_Read")
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

    @property
    def media(self) -> str:
        """Return the type of the body."""
        return self.headers.get("content-type", "").partition(";")[0].strip().casefold()

    def check_media(self, media: str) -> None:
        """Refuse a body of another type."""
        if self.media != media:
            raise Problem(f"the content type is {self.media!r}: send {media}", 415)

    def read(self, kind: type[_Read]) -> _Read:
        """Read the body."""
        media = self.media or JSON
        if media != JSON and not media.endswith("+json"):
            raise Problem(f"the content type is {media!r}: send {JSON}", 415)
        try:
            return msgspec.json.decode(self.body, type=kind)
        except msgspec.ValidationError as error:
            raise Problem(f"the body does not fit: {misfit(error)}", 422) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Problem(f"the body is not valid JSON: {error}", 400) from None

    def expected(self, revision: int) -> int | None:
        """Return the revision that a change asks for, 0 for none, None for any; it has `revision` now."""
        match, none = self.headers.get("if-match"), self.headers.get("if-none-match")
        if none is not None:
            if none.strip() != "*" or match is not None:
                raise Problem(f"If-None-Match is {none!r}: give * alone, to make what is not there", 400)
            return 0
        if match is None:
            return None
        tags = tags_of(match)
        if not revision or (tag_of(revision) not in tags and "*" not in tags):
            now = f"it has the entity tag {tag_of(revision)} now" if revision else "there is none"
            raise Conflict(f"{self.request.url.path} is not as you know it: {now}; read it again", 412)
        return revision


def tag_of(revision: int) -> str:
    """Return the entity tag of a revision."""
    return f'"{revision}"'


def tags_of(header: str) -> set[str]:
    """List the entity tags of a header."""
    return {each.strip() for each in header.split(",") if each.strip()}


def read_query(connection: HTTPConnection, kind: type[_Read]) -> _Read:
    """Read what stands after the question mark; refuses what is not known."""
    values: dict[str, str] = {}
    for name, value in connection.query_params.multi_items():
        if name in values:
            raise Problem(f"{name!r} is in the query twice: give it once", 400)
        values[name] = value
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(f"the query cannot be read: {misfit(error)}", 400) from None


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
    """What it may be refused with, besides what any with such a path, query or body may be."""
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
    scope: Scope,
    *,
    answers: Mapping[int, Any] | None = None,
    status: int = 200,
    answer_media: str = JSON,
    among: list[Operation] = OPERATIONS,
    **more: Any,
) -> Callable[[Written], Written]:
    """Make a function an operation: what it returns is answered with a status, 204 if it returns nothing.

    `answers` are said where it returns an `Answer`; `body` and `query` where it reads them itself.
    """

    def made(written: Written) -> Written:
        hints = get_type_hints(written, include_extras=True)
        query, body, returned = hints.get("query"), hints.get("body"), hints["return"]
        usual = 204 if returned is type(None) else status

        async def handler(call: Call) -> Answer | Response:
            parts: dict[str, Any] = {}
            if query is not None:
                parts["query"] = read_query(call.request, query)
            if body is not None:
                parts["body"] = call.read(body)
            value = await written(call, **parts)
            if isinstance(value, Response):
                return value
            answer = value if isinstance(value, Answer) else Answer(value, usual, media_type=answer_media)
            revision = getattr(answer.value, "revision", None)
            if revision is not None:
                answer.headers["ETag"] = tag_of(revision)
            return answer

        handler.__module__ = written.__module__
        described = Operation(
            method,
            path,
            written.__name__.rstrip("_"),
            inspect.cleandoc(written.__doc__ or ""),
            scope,
            handler,
            answers or {usual: None if usual == 204 else returned},
            answer_media=answer_media,
            **{"query": query, "body": body, **more},
        )
        among.append(described)
        return written

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


class Limited(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How much of a list is wanted."""

    limit: int = 100

    def __post_init__(self) -> None:
        """Refuse a limit that is too large, or below 1."""
        if not 1 <= self.limit <= 1_000:
            raise Problem(f"limit is {self.limit}: give 1 to 1000", 400)


class Items(msgspec.Struct, Generic[_Read], kw_only=True):
    """Some of a list, in its order."""

    items: list[_Read]
    next: str | None
    """What `after` is for those that follow; none at the end."""


class Page(Limited, kw_only=True):
    """Which part of a list is wanted."""

    after: str = ""
    """The cursor that the part before ended with."""
    search: str | None = None

    def cut(
        self, rows: list[_Read], cursor: Callable[[Any], str] = lambda each: each.id
    ) -> tuple[list[_Read], str | None]:
        """Cut off what is more than wanted; returns the cursor to go on after, too, if anything was."""
        if len(rows) <= self.limit:
            return rows, None
        return rows[: self.limit], cursor(rows[self.limit - 1])


def fit(members: Any, kind: type[_Read]) -> _Read:
    """Read the members of a body that were put together."""
    try:
        return msgspec.convert(members, kind)
    except msgspec.ValidationError as error:
        raise Problem(f"the body does not fit: {misfit(error)}", 422) from None


def merged(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396).

    >>> merged({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}})
    {'b': {'c': 4, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    members = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            members.pop(name, None)
        else:
            members[name] = merged(members.get(name), value)
    return members


def read_name(text: str, what: str, within: str | None = None) -> str:
    """Return the id of a path; refuses one that is none, or another one `within` the body."""
    try:
        name: str = msgspec.convert(text, Name)
    except msgspec.ValidationError as error:
        raise Problem(f"{text!r} cannot be the id of a {what}: {misfit(error)}", 422) from None
    if within is not None and within != name:
        raise Problem(f"the body has the id {within!r}, and the path {name!r}: leave `id` out", 422)
    return name
