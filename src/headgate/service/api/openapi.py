"""OpenAPI 3.1, made of the operations, and a page to try them."""

from __future__ import annotations

import base64
import hashlib
import http
import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.service.api.operation import OPERATIONS, READ, Answer, Call, operation
from headgate.service.problems import MEDIA_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.service.api.operation import Operation

HTML = "text/html; charset=utf-8"
_REF = "#/components/schemas/{name}"
_ALWAYS = (401, 403, 429, 431, 500, 503)
"""Problems of every operation that has a key."""
_WITH_BODY = (400, 408, 413, 415, 422)
_TOLD = ("application/json", "text/event-stream")
"""Media types of answers whose schema is that of what is answered."""
_HEADERS = {
    "If-Match": "An entity tag that it must have, or * for any.",
    "If-None-Match": "* to make what is not there; in a read, the entity tag that is known already.",
    "Idempotency-Key": "A name of this request: if it is sent again, it is answered as the first time.",
}


def document(operations: Sequence[Operation] = OPERATIONS) -> bytes:
    """Write the OpenAPI document."""
    kinds = [each for asked in operations for each in (asked.body, asked.query, *asked.answers.values())]
    given = [each for each in kinds if each is not None]
    schemas, components = msgspec.json.schema_components(given, ref_template=_REF)
    known = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for asked in operations:
        body = next(known) if asked.body is not None else None
        query = next(known) if asked.query is not None else None
        answers = {
            status: next(known) if kind is not None else None for status, kind in asked.answers.items()
        }
        about = _operation(asked, body, _resolved(query, components), answers)
        paths.setdefault(asked.path, {})[asked.method.lower()] = about
    whole = msgspec.json.decode(files("headgate.service.api").joinpath("openapi.json").read_bytes())
    whole["info"]["version"], whole["paths"] = version("headgate"), paths
    whole["components"]["schemas"] = components | whole["components"]["schemas"]
    return msgspec.json.encode(whole)


def _resolved(schema: dict[str, Any] | None, components: dict[str, Any]) -> dict[str, Any]:
    if schema is None:
        return {}
    return components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _operation(asked: Operation, body: Any, query: dict[str, Any], answers: dict[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": asked.name,
        "summary": asked.summary,
        "tags": [asked.path.removeprefix("/v1/").partition("/")[0].partition(":")[0]],
        "responses": {str(status): _answer(asked, status, kind) for status, kind in answers.items()},
    }
    if asked.public:
        described["security"] = []
    else:
        described["description"] = f"Needs the scope `{asked.scope}`."
    parameters = [*_path(asked), *_query(query), *_headers(asked)]
    if parameters:
        described["parameters"] = parameters
    if body is not None:
        content = {media: {"schema": _body(media, body)} for media in asked.media}
        described["requestBody"] = {"required": True, "content": content}
    for status in sorted(problems_of(asked)):
        described["responses"][str(status)] = _problem(status)
    return described


def problems_of(asked: Operation) -> set[int]:
    """List the statuses of problems that an operation may answer with."""
    statuses = set(asked.problems)
    if not asked.public:
        statuses |= set(_ALWAYS)
    if asked.body is not None:
        statuses |= set(_WITH_BODY)
    if asked.query is not None or "If-None-Match" in asked.headers:
        statuses.add(400)
    return statuses | ({404} if "{" in asked.path else set())


def _answer(asked: Operation, status: int, kind: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"description": http.HTTPStatus(status).phrase}
    if kind is not None:
        # The schema of a stream is that of each of its events; all other text is one value.
        schema = kind if asked.answer_media in _TOLD else {"type": "string"}
        described["content"] = {asked.answer_media: {"schema": schema}}
    return described


def _problem(status: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": http.HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    if status in {429, 503, 507}:
        described["headers"] = {
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds after which to try again."}
        }
    return described


def _body(media: str, schema: dict[str, Any]) -> dict[str, Any]:
    if media == "application/x-ndjson":
        return {"type": "string", "description": "A line of JSON each."}
    if not schema and media == "application/cloudevents-batch+json":
        return {"type": "array", "items": {"type": "object"}}
    return schema


def _path(asked: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", asked.path)
    ]


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": about}
        for name, about in schema.get("properties", {}).items()
    ]


def _headers(asked: Operation) -> list[dict[str, Any]]:
    names = (*asked.headers, *(("Idempotency-Key",) if asked.idempotent else ()))
    return [
        {"name": name, "in": "header", "schema": {"type": "string"}, "description": _HEADERS[name]}
        for name in names
    ]


@operation("GET", "/v1/openapi.json", READ, answers={200: dict[str, Any]}, public=True)
async def read_openapi(call: Call) -> Answer:
    """Read this description of the API."""
    return Answer(document((*OPERATIONS, *call.server.more.operations)))


@operation("GET", "/v1/docs", READ, answers={200: str}, public=True, answer_media="text/html")
async def read_docs(call: Call) -> Answer:
    """A page to try the API."""
    del call
    page, headers = _page()
    return Answer(page, headers=headers, media_type=HTML)


@cache
def _page() -> tuple[bytes, dict[str, str]]:
    """Put the page together: nothing from a network, and no script and style but its own."""
    here = files("headgate.service.api")
    page, style, script = (
        here.joinpath(name).read_text("utf-8") for name in ("docs.html", "docs.css", "docs.js")
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    return page.format(style=style, script=script).encode(), headers


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
