"""The ASGI application: every request is limited, let in or not, answered or refused as problem+json."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from headgate.errors import HeadgateError
from headgate.service.api import (  # noqa: F401 -- their operations
    admin,
    asking,
    consumers,
    deliveries,
    events,
    graph,
    openapi,
    subscriptions,
    tracing,
    validating,
)
from headgate.service.api.listening import socket_of
from headgate.service.api.operation import OPERATIONS, Answer, Call
from headgate.service.problems import MEDIA_TYPE, NotFound, Problem, body_of, problem_of
from headgate.service.security.keys import EVERYBODY, check_local, check_scope
from headgate.service.security.protocol import HEADERS
from headgate.service.storage.audit import Kept, digest_of, remember

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import HTTPConnection, Request

    from headgate.service.api.operation import Operation
    from headgate.service.security.keys import Key
    from headgate.service.server import Server

# Whoever loads a module of them first does not change what is listed first.
OPERATIONS.sort(key=lambda each: each.handler.__module__)
_LOG = logging.getLogger("headgate.service")
_BEARER = "bearer "
_KEY = "idempotency-key"
NO_TENANT: Any = None
"""What operations without a key have for a tenant."""


def make_app(server: Server) -> Starlette:
    """Make the application of a server."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await server.more.close()
        await server.close()

    async def failed(request: Request, error: Exception) -> Response:
        _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
        problem = Problem("the service failed at this request: its log says why", 500)
        return await server.more.failed(request, problem) or refusal(request, problem)

    return Starlette(
        routes=[
            Route(each.path, _endpoint(server, each), methods=[each.method], name=each.name)
            for each in (*OPERATIONS, *server.more.operations)
        ]
        + [WebSocketRoute("/v1/consumers/{id}/socket", socket_of(server), name="socket")]
        + [*server.more.routes(server)],
        exception_handlers={404: _not_found, 405: _not_found, Exception: failed},
        lifespan=lifespan,
    )


def _endpoint(server: Server, asked: Operation) -> Any:
    async def endpoint(request: Request) -> Response:
        began, tenant = time.perf_counter(), None
        try:
            if sum(len(name) + len(value) for name, value in request.scope["headers"]) > HEADERS:
                raise Problem(f"the headers have more than {HEADERS:,} bytes: send less", 431)
            if asked.public:
                return _response(await asked.handler(Call(server, NO_TENANT, EVERYBODY, request, b"")))
            key = who_asks(server, request)
            check_scope(key, asked.scope)
            tenant = await server.tenant(key.tenant)
            most = server.settings.import_body if asked.large else server.settings.body
            body = await read_body(request, server, most) if asked.body is not None else b""
            call = Call(server, tenant, key, request, body)
            answer = await (_answered_once(call, asked) if _KEY in request.headers else asked.handler(call))
            response = _response(answer)
        except HeadgateError as error:
            response = refusal(request, error)
        except ClientDisconnect:
            response = Response(status_code=499)
        if tenant is not None:
            tenant.counters.requested(asked.name, response.status_code, time.perf_counter() - began)
        return response

    return endpoint


async def _answered_once(call: Call, asked: Operation) -> Answer | Response:
    """Answer a request that may be repeated as it was answered the first time."""
    if not asked.idempotent:
        raise Problem(f"{asked.method} {asked.path} knows no Idempotency-Key: leave it out", 400)
    key, request, answers = call.headers[_KEY], call.request, call.tenant.store.answers
    digest = digest_of(request.method, request.url.path, request.url.query, call.body)
    kept = answers.begin(key, digest)
    if kept is not None:
        return Answer(kept.body, kept.status, {"Idempotency-Replayed": "true"})
    call.remember = lambda answer: remember(key, digest, Kept(answer.status, answer.body()))
    try:
        return await asked.handler(call)
    finally:
        answers.end(key)


def _response(answer: Answer | Response) -> Response:
    if isinstance(answer, Response):
        return answer
    if answer.parts is not None:
        return StreamingResponse(answer.parts, answer.status, answer.headers, answer.media_type)
    media = None if answer.status in {204, 304} else answer.media_type
    return Response(answer.body(), answer.status, answer.headers, media)


def refusal(request: HTTPConnection, error: HeadgateError) -> Response:
    """Answer with a problem."""
    problem = problem_of(error)
    if problem.status == 401:
        problem.headers["WWW-Authenticate"] = "Bearer"
    return Response(body_of(problem, request.url.path), problem.status, problem.headers, MEDIA_TYPE)


def key_of(request: HTTPConnection) -> str | None:
    """Return the key that a request has, if any."""
    header = request.headers.get("authorization")
    if header is not None and header[: len(_BEARER)].casefold() == _BEARER:
        return header[len(_BEARER) :].strip()
    return request.headers.get("x-api-key")


def who_asks(server: Server, connection: HTTPConnection) -> Key:
    """Find who asks; without keys, it is somebody of this machine or nobody."""
    key = server.keys.find(key_of(connection))
    if not key.id:
        check_local(connection, server.settings.host)
    return key


async def read_body(request: Request, server: Server, most: int) -> bytes:
    """Read a body, within its limits of size and time, unpacked."""
    settings = server.settings
    packed = request.headers.get("content-encoding", "identity").strip().casefold()
    if packed not in {"identity", "gzip"}:
        raise Problem(f"the content encoding is {packed!r}: send gzip, or none", 415)
    too_large = Problem(f"the body has more than {most:,} bytes: send less at once", 413)
    parts, size = [], 0
    try:
        async with asyncio.timeout(settings.upload):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Problem(f"the body did not come within {settings.upload:g} seconds", 408) from None
    body = b"".join(parts)
    if packed == "identity":
        return body
    unpacking = zlib.decompressobj(31)
    try:
        unpacked = unpacking.decompress(body, most + 1)
    except zlib.error as error:
        raise Problem(f"the body is not gzip: {error}", 400) from None
    if len(unpacked) > most:
        raise too_large
    if not unpacking.eof:
        raise Problem("the body is not whole gzip: it ends too early", 400)
    return unpacked


async def _not_found(request: Request, error: Any) -> Response:
    if getattr(error, "status_code", 404) == 405:
        allowed = (error.headers or {}).get("Allow", "")
        problem: Problem = Problem(
            f"{request.url.path} does not take {request.method}: it takes {allowed}", 405
        )
        problem.headers["Allow"] = allowed
    else:
        slash = b"%2f" in request.scope.get("raw_path", b"").lower()
        why = "an id has no '/'" if slash else "/v1/openapi.json lists what there is"
        problem = NotFound(f"there is nothing at {request.url.path}: {why}")
    return refusal(request, problem)
